#!/bin/sh
# SPDX-License-Identifier: MIT
# replay --check and the outcomes of a replay, on small traces whose numbers are counted
# by hand.
. "$(dirname -- "$0")/cmd.sh"

# header PAGES PAGE_SIZE DTYPE LAYERS
header() {
	echo '{"quire":"plan-trace","version":1,' \
		'"cache":{"layout":"NHD","dtype":"'"$3"'",' \
		'"num_layers":'"$4"',"num_kv_heads":2,"head_dim":3,"page_size":'"$2"'},' \
		'"pool":{"num_pages":'"$1"',"sink":true},' \
		'"limits":{"rows":8,"tokens":256,"requests":4,"seq_tokens":512,' \
		'"labels":4,"tables":4,"table_pages":4096}}'
}

open() { echo '{"do":"open","request":'"$1"'}'; }
close() { echo '{"do":"close","request":'"$1"'}'; }
reset() { echo '{"do":"reset","request":'"$1"',"label":"'"$2"'"}'; }
submit() { echo '{"do":"submit","segments":['"$1"']'"${2:-}"'}'; }

# ways FILE - replay it in all ways: the numbers of the last one are left for is().
ways() {
	for way in "--depth 1" "--depth 64 --device cpu:inline" "--threads caller" \
		"--depth 2"; do
		# shellcheck disable=SC2086
		run 0 replay --json --check $way "$1"
		[ -z "${digest:-}" ] || is digest "$digest"
		digest=$(value digest)
	done
	digest=
}

# Four pages beside the sink, of four tokens.  Request 1 takes two.  Request 2 wants
# three: one short; what follows on it expects tokens that were not written; it gets
# two.  Request 1 gives its two back and is gone.
{
	header 5 4 bf16 2
	open 1
	open 2
	submit '[1,"main",8,0]'
	submit '[2,"main",12,0]'
	submit '[2,"main",1,12]'
	submit '[2,"main",8,0]'
	reset 1 main
	close 1
	close 3
	submit '[1,"main",1,0]'
} >"$work/refused.plan"
ways "$work/refused.plan"
is status ok
is commands 10
is steps 2
is tokens 16
is pages_taken 4
is pages_given 2
is pages_peak 4
is NO_PAGES 1
is STALE 1
is NO_REQUEST 2
is checked_rows 2
is checked_tokens 16
run 0 replay -q --outcomes "$work/r.plan" "$work/refused.plan"
grep -q '12,0.*"status":"NO_PAGES","detail":1}' "$work/r.plan" || fail "one page short"
grep -q '1,12.*"status":"STALE","detail":0}' "$work/r.plan" || fail "a length of 0"
run 0 replay --json "$work/r.plan"
is compared 10
sed 's/"NO_PAGES","detail":1/"NO_PAGES","detail":2/' "$work/r.plan" >"$work/wrong.plan"
run 1 replay "$work/wrong.plan"
says "$work/wrong.plan:5: submit diverged: expected NO_PAGES 2, got NO_PAGES 1"

# Two hundred times all five pages, each wanted while the last ones are on their way back:
# whatever an engine that would not wait was told, a replay waits and answers the same.
{
	header 6 4 bf16 1
	n=0
	while [ $n -lt 200 ]; do
		open $n
		submit "[$n,\"main\",20,0]" ',"no_wait":true,"outcome":{"status":"OK","detail":0}'
		close $n
		n=$((n + 1))
	done
} >"$work/nowait.plan"
for seed in 1 2 3; do
	run 0 replay --json --seed-delays $seed "$work/nowait.plan"
	is steps 200
	is compared 200
done

# The step that would read request 1 at its last is refused: it is read all the same,
# before its close and at the end of the trace.
for last in close open; do
	{
		header 5 4 f16 1
		open 1
		submit '[1,"main",8,0]'
		submit '[1,"main",100,8]'
		$last 1
	} >"$work/unread.plan"
	ways "$work/unread.plan"
	is NO_PAGES 1
	is checked_rows 1
	is checked_tokens 8
done

# 150 steps of one token: read at the 64th, the 128th and the last, 342 tokens in all.
{
	header 60 4 f32 3
	open 1
	at=0
	while [ "$at" -lt 150 ]; do
		submit '[1,"main",1,'"$at"']'
		at=$((at + 1))
	done
	close 1
} >"$work/long.plan"
ways "$work/long.plan"
is steps 150
is checked_rows 3
is checked_tokens 342

# Tokens that do not commit and are written again; two labels in one table; `at` left
# out; a read without a span; padding; a life that begins again at 0.  Read are 8 of
# main, 5 of cfg, then 6.
{
	header 30 4 bf16 1
	open 1
	submit '[1,"main",4,0]'
	submit '[1,"main",2,4]' ',"commit":false'
	submit '[1,"main",3]'
	submit '[1,"cfg",5,0],[1,"main",1]' ',"combined":{"both":["main","cfg"]}'
	submit '[1,"cfg",0,5]' ',"bucket":[16,4]'
	reset 1 main
	submit '[1,"main",6]'
	submit '[1,"main",0,6]'
	close 1
} >"$work/mixed.plan"
ways "$work/mixed.plan"
is steps 7
is tokens 21
is checked_rows 3
is checked_tokens 19

# 70 rows end in one step, more than one step's work can read: the others are read at
# their close.
{
	header 300 4 bf16 1 | sed 's/"rows":8/"rows":80/; s/"requests":4/"requests":80/'
	segments=
	for request in $(seq 70); do
		open "$request"
		segments="$segments${segments:+,}[$request,\"main\",2,0]"
	done
	submit "$segments"
	for request in $(seq 70); do
		close "$request"
	done
} >"$work/many.plan"
ways "$work/many.plan"
is checked_rows 70
is checked_tokens 140

# A command recorded as refused for want of time is left out, and its outcome counts.
{
	header 5 4 bf16 1
	open 1
	submit '[1,"main",8,0]' ',"no_wait":true,"outcome":{"status":"AGAIN"}'
	submit '[1,"main",8,0]' ',"outcome":{"status":"WOULD_BLOCK"}'
	submit '[1,"main",4,0]'
} >"$work/again.plan"
ways "$work/again.plan"
is steps 1
is AGAIN 1
is WOULD_BLOCK 1
is compared 2

# More writes than a step may have work.
{
	header 5 4 bf16 65
	open 1
	submit '[1,"main",4,0]'
} >"$work/deep.plan"
run 2 replay --check "$work/deep.plan"
says "$work/deep.plan:3: --check writes every layer of every table, at most 64"
run 0 replay "$work/deep.plan"
done_testing
