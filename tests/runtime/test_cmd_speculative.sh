#!/bin/sh
# SPDX-License-Identifier: MIT
# Forks, rewinds and speculative steps in a replay, on small traces whose numbers are
# counted by hand.
. "$(dirname -- "$0")/cmd.sh"

# Pages of four tokens, one of them the sink's.
header() {
	echo '{"quire":"plan-trace","version":1,' \
		'"cache":{"layout":"NHD","dtype":"'"${2:-bf16}"'",' \
		'"num_layers":2,"num_kv_heads":2,"head_dim":3,"page_size":4},' \
		'"pool":{"num_pages":'"$1"',"sink":true},' \
		'"limits":{"rows":8,"tokens":256,"requests":4,"seq_tokens":512,' \
		'"labels":4,"tables":4,"table_pages":4096}}'
}

open() { echo '{"do":"open","request":'"$1"'}'; }
close() { echo '{"do":"close","request":'"$1"'}'; }
submit() { echo '{"do":"submit","segments":['"$1"']'"${2:-}"'}'; }
# guess ID SEGMENTS [MORE] - a speculative submit
guess() { submit "$2" ',"id":'"$1"',"speculative":true'"${3:-}"; }
promote() { echo '{"do":"promote","ticket":'"$1"'}'; }
abandon() { echo '{"do":"abandon","ticket":'"$1"'}'; }
tokens() { echo '{"do":"'"$1"'","request":'"$2"',"label":"'"$3"'","tokens":'"$4"'}'; }

# ways FILE - replay it in all ways: the numbers of the last one are left for is().
ways() {
	for way in "--depth 1" "--depth 64 --device cpu:inline" "--threads caller" \
		"--depth 3 --seed-delays 7" "--depth 2"; do
		# shellcheck disable=SC2086
		run 0 replay --json --check $way "$1"
		[ -z "${digest:-}" ] || is digest "$digest"
		digest=$(value digest)
	done
	digest=
}

# ---------------------------------------------------------------- forks
# main has 6 tokens: 2 pages.  A fork onto a shares one and copies one, a grows by one;
# main goes on and grows by one.  In the end main gets what a holds: two pages shared, one
# copied.  Read: main and a at their last steps, main once more at the close: 9 tokens each.
{
	header 20 f32
	open 1
	submit '[1,"main",6,0]'
	submit '[1,"a",3,6]' ',"pre_forks":[["main","a"]]'
	submit '[1,"main",3,6]'
	submit '[1,"a",0,9],[1,"main",0,9]' ',"post_forks":[["a","main"]]'
	close 1
} >"$work/forks.plan"
ways "$work/forks.plan"
is steps 4
is tokens 12
is pages_taken 6
is pages_given 6
is checked_rows 3
is checked_tokens 27
run 0 info --json "$work/forks.plan"
is forks 2
is speculative 0

# Copies of all pages: 2 for main, then 3 for a, 1 for main, 3 for main.
{
	header 20 f32
	open 1
	submit '[1,"main",6,0]'
	submit '[1,"a",3,6]' ',"copy":true,"pre_forks":[["main","a"]]'
	submit '[1,"main",3,6]'
	submit '[1,"a",0,9],[1,"main",0,9]' ',"copy":true,"post_forks":[["a","main"]]'
	close 1
} >"$work/copy.plan"
ways "$work/copy.plan"
is pages_taken 9
is checked_tokens 27

# A page shared full, rewound into and written on both sides: the first writer copies.  A
# fork onto a label of a request that has no source is passed over; what the label held is
# read before and after.
{
	header 20 f16
	open 1
	open 2
	submit '[1,"main",8,0],[2,"b",1,0]' ',"post_forks":[["main","a"]]'
	tokens rewind 1 main 3
	tokens rewind 1 a 2
	submit '[1,"main",2,5],[1,"a",2,6],[2,"b",0,1]' ',"pre_forks":[["c","b"]]'
	close 1
	close 2
} >"$work/shared.plan"
ways "$work/shared.plan"
is pages_taken 4
is checked_rows 4
is checked_tokens 17

# ---------------------------------------------------------------- rewind, release_front
# 10 tokens, 3 taken back, 2 written: 9 of 3 pages.  Two pages go from the front, never the
# last: 1 token at position 8 is left; one more is written and both are read.
{
	header 20 bf16
	open 1
	submit '[1,"main",10,0]'
	tokens rewind 1 main 3
	submit '[1,"main",2,7]'
	tokens rewind 1 main 10
	tokens release_front 1 main 9
	submit '[1,"main",1,1]'
	close 1
} >"$work/front.plan"
ways "$work/front.plan"
is INVALID 1
is checked_rows 1
is checked_tokens 2
# All tokens of two full pages: the last page stays.
{
	header 20 bf16
	open 1
	submit '[1,"main",8,0]'
	tokens release_front 1 main 8
	submit '[1,"main",1,4]'
	close 1
} >"$work/full.plan"
ways "$work/full.plan"
is checked_tokens 5
# One page: 5 of 9 tokens are left, at the close too, when the step that was to read them
# is refused.
{
	sed '$d' "$work/front.plan" | sed '$d' | sed 's/"tokens":9/"tokens":4/'
	submit '[1,"main",200,5]'
	close 1
} >"$work/front1.plan"
ways "$work/front1.plan"
is NO_PAGES 1
is checked_rows 1
is checked_tokens 5

# ---------------------------------------------------------------- promote, abandon
# 4 tokens, 3 and 2 on top of them held, the 2 abandoned for 1, both promoted, 1 more: 9.
{
	header 20
	open 1
	submit '[1,"main",4,0]'
	guess 10 '[1,"main",3,4]' ',"base":null'
	guess 11 '[1,"main",2,7]'
	abandon 11
	guess 12 '[1,"main",1,7]' ',"base":10'
	promote 10
	promote 12
	promote 12
	abandon 77
	submit '[1,"main",1,8]'
	close 1
} >"$work/guess.plan"
ways "$work/guess.plan"
is commands 12
is ABANDONED 1
is INVALID 2
is checked_rows 1
is checked_tokens 9
run 0 info --json "$work/guess.plan"
is speculative 3
is promote 3
is abandon 2
run 0 replay -q --outcomes "$work/r.plan" "$work/guess.plan"
grep -q '"id":11.*"base":10,"outcome":{"status":"ABANDONED","detail":0}' "$work/r.plan" ||
	fail "the abandoned step is recorded with its base and its final outcome"
grep -q '"ticket":77,"outcome":{"status":"INVALID","detail":0}' "$work/r.plan" ||
	fail "an abandon of nothing is recorded"
run 0 replay --json "$work/r.plan"
is compared 12
sed 's/"ticket":10,"outcome":{"status":"OK"/"ticket":10,"outcome":{"status":"INVALID"/' \
	"$work/r.plan" >"$work/wrong.plan"
run 1 replay "$work/wrong.plan"
says "$work/wrong.plan:8: promote diverged: expected INVALID, got OK"

# The step that is to read a stream at its last is abandoned, or open at the end of the
# trace: the stream is read all the same.
for last in abandon none; do
	{
		header 20
		open 1
		submit '[1,"main",8,0]'
		guess 5 '[1,"main",3,8]'
		[ $last = none ] || abandon 5
		[ $last = none ] || close 1
	} >"$work/last.plan"
	ways "$work/last.plan"
	is ABANDONED 1
	is checked_rows 1
	is checked_tokens 8
done
is commands 3

# ---------------------------------------------------------------- bases
# A base that was abandoned before the step took effect, one that was promoted and is
# refused, and one that was promoted and is OK.
{
	header 6
	open 1
	guess 1 '[1,"main",4,0]' ',"base":null'
	abandon 1
	guess 2 '[1,"main",4,4]' ',"base":1'
	guess 3 '[1,"main",100,0]' ',"base":null'
	promote 3
	guess 4 '[1,"main",1,0]' ',"base":3'
	promote 4
	guess 5 '[1,"main",4,0]' ',"base":null'
	promote 5
	guess 6 '[1,"main",4,4]' ',"base":5'
	promote 6
	close 1
} >"$work/bases.plan"
ways "$work/bases.plan"
is steps 2
is ABANDONED 3
is NO_PAGES 1
is checked_tokens 8

# Promoted on top of one that is held, then refused, then rested on: the order in which the
# fates were heard says that the last step rests on the refused one.
{
	header 6
	open 1
	guess 1 '[1,"main",4,0]' ',"base":null'
	guess 2 '[1,"main",100,4]' ',"base":1'
	promote 2
	guess 3 '[1,"main",1,4]' ',"base":2'
	promote 1
	promote 3
	close 1
} >"$work/late.plan"
ways "$work/late.plan"
is steps 1
is NO_PAGES 1
is ABANDONED 1
# ... and here that it was given later, and rests on the held one.
sed 's/"base":2/"base":1/' "$work/late.plan" >"$work/later.plan"
ways "$work/later.plan"
is steps 2
is NO_PAGES 1
is checked_tokens 5

# What lies between two steps counts, left out or not.
{
	header 6
	open 1
	guess 1 '[1,"main",100,0]' ',"base":null'
	submit '[1,"main",8,0]' ',"no_wait":true,"outcome":{"status":"AGAIN"}'
	guess 2 '[1,"main",4,0]' ',"base":null'
	promote 2
	abandon 1
	close 1
} >"$work/between.plan"
ways "$work/between.plan"
is AGAIN 1
is ABANDONED 1
is steps 1
is checked_tokens 4

# A base that the order of the trace does not allow is a fault of the file, which is good
# before that; and so is one that is nothing.
{
	header 6
	open 1
	guess 1 '[1,"main",4,0]'
	guess 2 '[1,"main",4,4]' ',"base":null'
	promote 1
	promote 2
} >"$work/base.plan"
run 2 replay --json "$work/base.plan"
says "$work/base.plan:4: base must be the newest submit whose fate is open"
is status damaged
is commands 2
sed '2s/}$/,"outcome":{"status":"LIMIT"}}/' "$work/base.plan" >"$work/before.plan"
run 1 replay "$work/before.plan"
says "$work/before.plan:2: open diverged: expected LIMIT, got OK"
{
	header 6
	open 1
	guess 1 '[1,"main",4,0]' ',"base":null'
	open 1
	guess 2 '[1,"main",4,4]' ',"base":1'
	promote 1
} >"$work/behind.plan"
run 2 replay "$work/behind.plan"
says "$work/behind.plan:5: base must be"
sed '5s/,"speculative"/,"outcome":{"status":"AGAIN"}&/' "$work/behind.plan" >"$work/out.plan"
run 2 replay "$work/out.plan" # a line that is left out is read all the same
says "$work/out.plan:5: base must be"
sed 's/"base":null/"base":1/; s/"id":1,/"id":1,"outcome":{"status":"OK"},/' \
	"$work/base.plan" >"$work/good.plan"
ways "$work/good.plan"
{
	header 6
	open 1
	guess 9 '[1,"main",4,0]' ',"base":7'
} >"$work/unknown.plan"
run 2 replay "$work/unknown.plan"
says "$work/unknown.plan:3: base 7 is none of the last 8192 speculative submits"

# ---------------------------------------------------------------- too late
# Commands behind a step that is held, and stays so.
{
	header 6
	open 1
	guess 1 '[1,"main",4,0]'
	n=0
	while [ $n -lt 1200 ]; do
		open 1
		n=$((n + 1))
	done
	promote 1
} >"$work/held.plan"
run 1 replay "$work/held.plan"
says ": the queue is full behind a speculative step that is held"
run 1 replay --threads caller "$work/held.plan"
says ": the queue is full behind a speculative step that is held"

# ... and a stream that a step behind it was to read is let go unread.
{
	header 6
	open 1
	open 2
	guess 1 '[1,"main",4,0]'
	submit '[2,"main",4,0]'
	close 2
	guess 2 '[1,"main",4,0]'
	close 1
	promote 1
} >"$work/unread.plan"
ways "$work/unread.plan"

# Behind one that was refused they run, but not for ever.
{
	header 6
	open 1
	guess 1 '[1,"main",100,0]'
	n=0
	while [ $n -lt 4000 ]; do
		echo '{"do":"open","request":1}'
		n=$((n + 1))
	done
} >"$work/refused.plan"
{
	cat "$work/refused.plan"
	promote 1
	close 1
} >"$work/long.plan"
run 0 replay --json "$work/long.plan"
is NO_PAGES 1
is commands 4004
{
	cat "$work/refused.plan"
	sed 1,3d "$work/refused.plan"
	promote 1
} >"$work/longer.plan"
run 2 replay "$work/longer.plan"
says "$work/longer.plan:3: the fate of a speculative step is open 4096 commands later"

# More steps open at once than a runtime has places for.
{
	header 6
	open 1
	n=1
	while [ $n -le 1100 ]; do
		echo '{"do":"submit","id":'$n',"segments":[[1,"main",100,0]],"speculative":true}'
		n=$((n + 1))
	done
} >"$work/many.plan"
run 2 replay "$work/many.plan"
says ": more than 1024 speculative submits whose fate is open"

# A stream's last reader is abandoned, whether or not it was planned by then: its six
# tokens are read when the request closes.  A hundred times, as it is a race.
{
	header 6
	n=0
	while [ $n -lt 100 ]; do
		n=$((n + 1))
		open 1
		submit '[1,"main",6]'
		guess $n '[1,"main",0]'
		abandon $n
		close 1
	done
} >"$work/reader.plan"
run 0 replay --json --check --depth 64 "$work/reader.plan"
is checked_tokens 600

# A recording that was cut before two promotes: what they came to is known all the same.
# The third was abandoned, the fourth ended with its runtime.
ok=',"outcome":{"status":"OK"}'
{
	header 40
	open 1
	guess 1 '[1,"main",5,0]' "$ok"
	guess 2 '[1,"main",5,5]' "$ok"
	guess 3 '[1,"main",5,10]' ',"outcome":{"status":"ABANDONED"}'
	echo '{"do":"abandon","ticket":3}'
	guess 4 '[1,"main",5,10]' ',"outcome":{"status":"CANCELLED"},"base":2'
} >"$work/cut.plan"
ways "$work/cut.plan"
is steps 2
is tokens 10
# What refused a step may not be in the trace: it is left out.
{
	header 40
	open 1
	submit '[1,"main",5,0]' ',"outcome":{"status":"INVALID","outside":true}'
	submit '[1,"main",3,0]' "$ok"
} >"$work/outside.plan"
ways "$work/outside.plan"
is steps 1
is tokens 3
# A row may not be wider than the recorded block table.
{
	header 40 | sed 's/"table_pages":4096/&,"row_pages":2/'
	open 1
	submit '[1,"main",9,0]' ',"outcome":{"status":"LIMIT"}'
	submit '[1,"main",8,0]' "$ok"
} >"$work/wide.plan"
ways "$work/wide.plan"
is steps 1
# Seventy steps stacked: --depth holds 64, the queue the others, whoever is faster.
{
	header 40 | sed 's/"rows":8,/"rows":32768,/'
	open 1
	n=0
	while [ $n -lt 70 ]; do
		guess $((n + 1)) '[1,"main",1,'$n']'
		n=$((n + 1))
	done
	n=1
	while [ $n -le 70 ]; do
		promote $n
		n=$((n + 1))
	done
} >"$work/stack.plan"
for way in "--depth 64" "--depth 64 --seed-delays 3" "--depth 64 --threads caller"; do
	# shellcheck disable=SC2086
	run 0 replay --json $way "$work/stack.plan"
done
done_testing
