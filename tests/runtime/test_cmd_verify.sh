#!/bin/sh
# SPDX-License-Identifier: MIT
# What a replay says of a trace whose record is wrong in one place: where, what would be
# right, what it got.  The pages on record are counted by hand.
. "$(dirname -- "$0")/cmd.sh"

# Pages of four tokens, the first one the sink's.
header() {
	echo '{"quire":"plan-trace","version":1,' \
		'"cache":{"layout":"NHD","dtype":"bf16",' \
		'"num_layers":2,"num_kv_heads":2,"head_dim":3,"page_size":4},' \
		'"pool":{"num_pages":'"$1"',"sink":true},' \
		'"limits":{"rows":8,"tokens":256,"requests":4,"seq_tokens":512,' \
		'"labels":4,"tables":4,"table_pages":4096'"${2:-}"'}}'
}

open() { echo '{"do":"open","request":'"$1"'}'; }
# submit SEGMENTS PAGES MORE - a step that is OK on record
submit() {
	echo '{"do":"submit","segments":['"$1"']'"${3:-}"',"outcome":{"status":"OK","pages":['"$2"']}}'
}
tokens() { echo '{"do":"'"$1"'","request":'"$2"',"label":"'"$3"'","tokens":'"$4"'}'; }

# wrong LINE SED TEXT... - the trace with that line changed is a divergence there, told with
# all the texts.
wrong() {
	line=$1
	sed "$1$2" "$trace" >"$work/wrong.plan"
	! cmp -s "$trace" "$work/wrong.plan" || fail "line $1: $2 changes nothing"
	shift 2
	run 1 replay "$work/wrong.plan"
	says "$work/wrong.plan:$line: submit diverged: "
	for text in "$@"; do
		says "$text"
	done
}

# ---------------------------------------------------------------- pages
# Line 4: request 1 takes pages 1 and 2, request 2 pages 3 and 4.  5: one token more for
# each, row 1 crosses into a third page only with four; 6 are 5 and 6.  6: main has 9 tokens
# in 1, 2, 5: a shares 1 and 2 and gets a copy of 5 in 7, where its tokens have room.
# 7: b gets a copy of 10 tokens: 1, 2 and 8.  9: main is cut to 7 tokens: page 2 has three
# owners and is copied to 9; the first new token of a table of two labels is b's, whose
# third page has room for two of three tokens: 10 is its fourth.  12: what was drafted in 11
# on pages 11 and 12 never was, so 11 is taken; 14 rests on it and takes 12.
trace=$work/pages.plan
{
	header 20
	open 1
	open 2
	submit '[1,"main",8,0],[2,"main",5,0]' 1,2,3,4
	submit '[1,"main",1,8],[2,"main",4,5]' 5,6
	submit '[1,"a",3,9]' 7 ',"pre_forks":[["main","a"]]'
	submit '[1,"main",1,9]' 8 ',"post_forks":[["main","b"]]'
	tokens rewind 1 main 3
	submit '[1,"main",1,7],[1,"b",3,10],[2,"main",1,9]' 9,10 \
		',"combined":{"both":["b","main"]},"bucket":[8,4]'
	echo '{"do":"submit","id":5,"segments":[[1,"b",8,13]],"speculative":true,"base":null}'
	echo '{"do":"abandon","ticket":5}'
	submit '[2,"main",4,10]' 11 ',"id":6,"speculative":true,"base":null'
	submit '[2,"main",3,14]' 12 ',"id":7,"speculative":true,"base":6'
	echo '{"do":"promote","ticket":6}'
	echo '{"do":"promote","ticket":7}'
	echo '{"do":"close","request":1}'
} >"$trace"
for way in "--depth 1" "--depth 64 --device cpu:inline" "--threads caller" \
	"--depth 3 --seed-delays 7" "--check"; do
	# shellcheck disable=SC2086
	run 0 replay --json $way "$trace"
	is pages_compared 7
	is compared 7
	is ABANDONED 1
done

row() { # ROW REQUEST LABEL TABLE INDEX
	echo "row $1, request $2, label \"$3\", table \"$4\", kv_indices[$5]"
}
wrong 4 's/\[1,2,3,4\]/[1,2,8,4]/' "expected page 8, got page 3 (step 1, $(row 1 2 main main 2), page 2 in take order"
wrong 4 's/\[1,2,3,4\]/[1,2,4,3]/' "expected page 4, got page 3 (step 1"
wrong 5 's/\[5,6\]/[6,5]/' "expected page 6, got page 5 (step 2, $(row 0 1 main main 2)"
wrong 5 's/\[5,6\]/[5,9]/' "expected page 9, got page 6 (step 2, $(row 1 2 main main 5)"
wrong 6 's/\[7\]/[9]/' "expected page 9, got page 7 (step 3, $(row 0 1 a a 2)" \
	'for pre_forks[0], "main" to "a"'
wrong 7 's/\[8\]/[1]/' 'expected page 1, got page 8 (step 4, request 1, label "b"' \
	'page 2 of the stream; for post_forks[0], "main" to "b"'
wrong 9 's/\[9,10\]/[10,9]/' "expected page 10, got page 9 (step 5, $(row 0 1 main both 5)" \
	'page 1 of the stream; for the copy on first write'
wrong 9 's/\[9,10\]/[9,11]/' "expected page 11, got page 10 (step 5, $(row 1 1 b both 3)"
wrong 12 's/\[11\]/[12]/' "expected page 12, got page 11 (step 6, $(row 0 2 main main 3)"
wrong 13 's/\[12\]/[13]/' "expected page 13, got page 12 (step 7, $(row 0 2 main main 4)"
wrong 4 's/\[1,2,3,4\]/[1,2,3]/' "expected 3 pages, got 4 pages (step 1"
wrong 6 's/\[7\]/[]/' "expected 0 pages, got 1 pages (step 3"
run 0 replay --no-verify "$work/wrong.plan"
run 0 replay --pages 21 "$work/wrong.plan"
sed '9s/\[9,10\]/[9,11]/' "$trace" >"$work/wrong.plan"
run 1 replay --json "$work/wrong.plan"
is status diverged
is what pages
is line 9
is command submit
is step 5
is row 1
is request 1
is label b
is table both
is array kv_indices
is index 3
is take 1
is expected 'page 11'
is got 'page 10'
# Recorded again it has the pages once more.
run 0 replay -q --outcomes "$work/again.plan" "$trace"
run 0 replay --json "$work/again.plan"
is pages_compared 7
is compared 15

# ---------------------------------------------------------------- digests
# Of every step of these traces: what is worked out again from the streams before and the
# pages taken is what the tables hold, so a wrong digest is of other tables.  Those of the
# trace above, and what else changes streams.
{
	header 40
	open 3
	open 1
	echo '{"do":"submit","segments":[[3,"main",10,0],[1,"main",2,0]]}'
	tokens rewind 3 main 3
	echo '{"do":"submit","segments":[[3,"main",2,7]],"post_forks":[["main","a"],["a","b"]]}'
	tokens rewind 3 a 3
	tokens rewind 3 b 2
	echo '{"do":"submit","segments":[[3,"b",1],[3,"a",1],[1,"main",0]]}'
	echo '{"do":"submit","segments":[[3,"b",6],[1,"main",3]],"commit":false,' \
		'"post_forks":[["b","c"]]}'
	echo '{"do":"submit","segments":[[1,"main",9],[3,"b",9]],"copy":true,' \
		'"pre_forks":[["main","b"],["b","a"]],"post_forks":[["b","main"]]}'
	tokens release_front 3 main 5
	tokens release_front 1 main 4
	echo '{"do":"submit","segments":[[1,"main",4],[3,"main",3],[3,"a",0]],' \
		'"combined":{"z":["a","main"]},"bucket":[16,8]}'
	echo '{"do":"reset","request":3,"label":"a","keep":true}'
	echo '{"do":"submit","segments":[[3,"a",5]]}'
} >"$work/more.plan"
for file in "$work/pages.plan" "$work/more.plan"; do
	run 0 replay -q --outcomes "$work/digests.plan" "$file"
	# The first digit changes: 0 to 1, all others to 0.
	looked=0
	for line in $(grep -n '"digest":' "$work/digests.plan" | sed 's/:.*//'); do
		sed "$line"'s/"digest":"0/"digest":"x/
			'"$line"'s/"digest":"[1-9a-f]/"digest":"0/
			'"$line"'s/"digest":"x/"digest":"1/' \
			"$work/digests.plan" >"$work/wrong.plan"
		run 1 replay "$work/wrong.plan"
		says "$work/wrong.plan:$line: submit diverged: expected OK with digest "
		says "every entry is as the streams before and the pages taken make it"
		looked=$((looked + 1))
	done
	[ "$looked" -ge 7 ] || fail "only $looked digests in $file"
done

# ---------------------------------------------------------------- pages, later
# Pages count wherever they stand: step 1200 is the first that has any.  Its page is the
# second: four steps' tokens fill one.
trace=$work/later.plan
{
	header 400
	open 1
	n=0
	while [ $n -lt 1200 ]; do
		echo '{"do":"submit","segments":[[1,"main",0,0]],"outcome":{"status":"OK"}}'
		n=$((n + 1))
	done
	submit '[1,"main",4,0]' 1
	submit '[1,"main",4,4]' 2
} >"$trace"
run 0 replay --json "$trace"
is pages_compared 2
wrong 1204 's/\[2\]/[3]/' "expected page 3, got page 2" "kv_indices[1]"
run 0 replay --to 1203 "$work/wrong.plan"
for way in --no-verify "--pages 300"; do
	# shellcheck disable=SC2086
	run 0 replay -q $way --outcomes "$work/kept.plan" "$trace"
	tail -n 1 "$work/kept.plan" | grep -q '"pages":\[2\]' || fail "$way: pages are lost"
done

# ---------------------------------------------------------------- outcomes
trace=$work/outcomes.plan
{
	header 5 ',"row_pages":2'
	open 1
	open 2
	echo '{"do":"submit","segments":[[1,"main",8,0]]}'
	echo '{"do":"submit","segments":[[2,"main",8,0],[1,"main",12,8]]}'
	echo '{"do":"submit","segments":[[2,"main",1,3]]}'
	echo '{"do":"submit","segments":[[2,"x",0,0]]}'
	echo '{"do":"submit","segments":[[1,"main",1,8]]}'
} >"$work/bare.plan"
run 0 replay --json --outcomes "$trace" "$work/bare.plan"
is NO_PAGES 1
is STALE 1
is NO_LABEL 1
is LIMIT 1 # a third page, of a row of two
wrong 5 's/"detail":3/"detail":2/' 'expected NO_PAGES 2, got NO_PAGES 3 (request 1, label "main")'
wrong 5 's/"status":"NO_PAGES","detail":3/"status":"OK"/' 'expected OK, got NO_PAGES 3 (request 1'
wrong 6 's/"detail":0/"detail":7/' 'expected STALE 7, got STALE 0 (request 2, label "main")'
wrong 6 's/STALE/LIMIT/' 'expected LIMIT, got STALE (request 2, label "main")'
wrong 7 's/NO_LABEL/STALE/' 'expected STALE, got NO_LABEL (request 2, label "x")'
wrong 8 's/LIMIT/OK/' 'expected OK, got LIMIT (block_width: pages of a row)'
wrong 4 's/OK/NO_PAGES/' 'expected NO_PAGES, got OK (step 1)'
run 1 replay --json "$work/wrong.plan"
is what status
is expected NO_PAGES
is got OK
done_testing
