#!/bin/sh
# SPDX-License-Identifier: MIT
# quire diff on small traces: what is a difference, where the first one is, how many.
. "$(dirname -- "$0")/cmd.sh"

header() {
	echo '{"quire":"plan-trace","version":1,' \
		'"cache":{"layout":"NHD","dtype":"bf16",' \
		'"num_layers":1,"num_kv_heads":1,"head_dim":8,"page_size":4},' \
		'"pool":{"num_pages":64,"sink":true},' \
		'"limits":{"rows":8,"tokens":256,"requests":4,"seq_tokens":512,' \
		'"labels":4,"tables":4,"table_pages":64}}'
}

# differ WHAT A B - they differ, and the first difference is told with WHAT.
differ() {
	run 1 diff --json "$2" "$3"
	says "$1"
	is status different
}

# alike A B - there is no difference; the other way round neither.
alike() {
	run 0 diff --json "$1" "$2"
	is status same
	run 0 diff --json "$2" "$1"
}

# edit SCRIPT [FILE] - $work/b is $work/a, or FILE, after a sed script that changes it.
edit() {
	sed "$1" "${2:-$work/a}" >"$work/b"
	if cmp -s "${2:-$work/a}" "$work/b"; then
		fail "\"$1\" changes nothing"
	fi
}

{
	header
	cat <<'END'
{"do":"open","request":1}
{"do":"open","request":2,"prefix":{"tokens":4,"keys":[1,2]}}
{"do":"submit","id":5,"segments":[[1,"main",6,0],[2,"main",9,0]],"outcome":{"status":"OK","digest":"00000000000000aa","pages":[1,2,3,4,5]}}
{"do":"submit","id":6,"segments":[[1,"main",1,null]],"bucket":[8,8],"outcome":{"status":"OK","digest":"00000000000000bb","pages":[]}}
{"do":"submit","id":8,"segments":[[1,"main",2,7]],"speculative":true,"base":null,"outcome":{"status":"OK"}}
{"do":"submit","id":9,"segments":[[1,"main",4,9]],"speculative":true,"base":8,"outcome":{"status":"ABANDONED"}}
{"do":"promote","ticket":8,"outcome":{"status":"OK"}}
{"do":"abandon","ticket":9,"outcome":{"status":"OK"}}
{"do":"submit","id":12,"segments":[[2,"main",90,9],[1,"main",90,9]],"outcome":{"status":"NO_PAGES","detail":3}}
{"do":"rewind","request":1,"tokens":2}
{"do":"release_front","request":2,"label":"main","tokens":4}
{"do":"reset","request":1,"keep":false}
{"do":"close","request":2}
END
} >"$work/a"

# ---------------------------------------------------------------- no difference
alike "$work/a" "$work/a"
alike "$sample" "$sample"
run 0 diff "$work/a" "$work/a"
grep -q '^commands aligned  *13$' "$work/out" || fail "diff does not print the commands"
run 0 diff --quiet "$work/a" "$work/a"
[ ! -s "$work/out" ] || fail "--quiet prints"
"$quire" diff - "$work/a" <"$work/a" >"$work/out" || fail "diff of a pipe"
"$quire" diff --json "$work/a" - <"$work/a" >"$work/out" || fail "diff of a pipe"
is aligned 13
is same 13
is same_outcome 7
# Other ids, the order of fields, fields nobody knows, what is meant when left out.
edit 's/"id":5/"id":4/; s/"id":8/"id":20/; s/"id":9/"id":21/; s/"base":8/"base":20/
	s/"ticket":8/"ticket":20/; s/"ticket":9/"ticket":21/; s/"id":12/"id":31/'
alike "$work/a" "$work/b"
edit 's/"id":5,//'
alike "$work/a" "$work/b"
edit 's/{"do":"open","request":1}/{"x":[1,{"y":2}],"request":1,"do":"open"}/'
alike "$work/a" "$work/b"
edit 's/,1,null\]/,1]/; s/,"keep":false//; s/"request":1,"tokens"/"label":"main",&/
	s/"bucket"/"commit":true,"copy":false,"no_wait":false,"post_forks":[],&/
	s/"detail":3/"detail":3,"outside":false/'
alike "$work/a" "$work/b"
edit 's/"base":null,//; s/"base":8,//' # what the order comes to
alike "$work/a" "$work/b"
edit 's/}}$/},"times":[1,2,3]}/'
alike "$work/a" "$work/b"
[ "$(value given_to_decided_a_median_ns)" = "" ] || fail "times of one trace are told"
grep -q '"times": "in A only"' "$work/out" || fail "that there are times is not told"
edit '1s/}}/},"source":"somewhere"}/'
alike "$work/a" "$work/b"

# ---------------------------------------------------------------- headers
for field in layout:NHD:HND dtype:bf16:f16; do
	name=${field%%:*} old=${field#*:} new=${field##*:}
	edit '1s/"'"${old%:*}"'"/"'"$new"'"/'
	differ "$work/a:1: $work/b:1: header: cache.$name is ${old%:*}, $new" \
		"$work/a" "$work/b"
	is header_fields 1
	is same 13
done
for field in num_layers num_kv_heads head_dim page_size num_pages rows tokens requests \
	seq_tokens labels tables table_pages; do
	edit '1s/"'$field'":[0-9]*/"'$field'":7/'
	differ ".$field is " "$work/a" "$work/b"
	is header_fields 1
	is same 13
done
edit '1s/true/false/'
differ "header: pool.sink is true, false" "$work/a" "$work/b"
edit '1s/"labels"/"row_pages":9,&/'
differ "header: limits.row_pages is left out, there" "$work/a" "$work/b"
sed 's/"row_pages":9/"row_pages":8/' "$work/b" >"$work/c"
differ "header: limits.row_pages is 9, 8" "$work/b" "$work/c"
edit '1s/64/65/g'
differ "pool.num_pages is 64, 65" "$work/a" "$work/b"
is header_fields 2

# ---------------------------------------------------------------- what is asked
# part LINE SCRIPT WHAT - in that line something else is asked
part() {
	edit "$1$2"
	differ "$work/a:$1: $work/b:$1: $3" "$work/a" "$work/b"
	is only_a 1
	is only_b 1
	is only_a_line_a "$1"
	is only_b_line_b "$1"
	is same 12
}
part 4 's/9,0/8,0/' 'submit: segments[1] is [2,"main",9,0], [2,"main",8,0]'
part 4 's/6,0/6,1/' 'submit: segments[0] is [1,"main",6,0], [1,"main",6,1]'
part 4 's/6,0/6,null/' 'submit: segments[0] is [1,"main",6,0], [1,"main",6,null]'
part 4 's/\[2,"main"/[2,"m"/' 'submit: segments[1] is [2,"main",9,0], [2,"m",9,0]'
part 4 's/\[1,"main"/[3,"main"/' 'submit: segments[0] is [1,"main",6,0], [3,"main",6,0]'
part 4 's/,\[2,"main",9,0\]//' 'submit: 2 segments, 1 segments'
part 5 's/8,8/8,7/' 'submit: bucket is not the same'
part 5 's/8,8/9,8/' 'submit: bucket is not the same'
part 5 's/"bucket"/"copy":true,&/' 'submit: copy is not the same'
part 5 's/"bucket"/"commit":false,&/' 'submit: commit is not the same'
part 5 's/"bucket"/"no_wait":true,&/' 'submit: no_wait is not the same'
part 5 's/"bucket"/"pre_forks":[["a","b"]],&/' 'submit: pre_forks is not the same'
part 5 's/"bucket"/"post_forks":[["a","b"]],&/' 'submit: post_forks is not the same'
part 5 's/"bucket"/"combined":{"both":["a"]},&/' 'submit: combined is not the same'
part 10 's/$/ /; s/"id":12,/&"speculative":true,/' 'submit: speculative is not the same'
part 11 's/"tokens":2/"tokens":1/' \
	'rewind of request 1 "main" by 2 tokens against rewind of request 1 "main" by 1 token'
part 11 's/"tokens"/"label":"m",&/' \
	'rewind of request 1 "main" by 2 tokens against rewind of request 1 "m" by 2 tokens'
part 12 's/release_front/rewind/' \
	'release_front of request 2 "main" by 4 tokens against rewind of request 2 "main" by 4 tokens'
part 13 's/false/true/' 'reset of request 1 "main" against reset of request 1 "main", pages kept'
part 14 's/2/1/' 'close of request 2 against close of request 1'
part 9 's/abandon/promote/' 'abandon of 9 against promote of 9'
# Pairs of forks, and which of several labels comes first, are no sets.
edit '5s/"bucket"/"post_forks":[["a","b"],["a","c"]],"combined":{"x":["a","b"],"y":["c"]},&/'
cp "$work/b" "$work/c"
edit 's/\["a","b"\],\["a","c"\]/["a","c"],["a","b"]/' "$work/c"
differ 'post_forks is not the same' "$work/c" "$work/b"
edit 's/"x":\["a","b"\],"y":\["c"\]/"y":["c"],"x":["a","b"]/' "$work/c"
differ 'combined is not the same' "$work/c" "$work/b"
edit 's/"x":\["a","b"\]/"x":["b","a"]/' "$work/c"
differ 'combined is not the same' "$work/c" "$work/b"

# ---------------------------------------------------------------- one has more
edit '3d'
differ "$work/a:3: $work/b:3: only in $work/a: open of request 2" "$work/a" "$work/b"
is only_a 1
is only_b 0
is same 12
differ "$work/b:3: $work/a:3: only in $work/a: open of request 2" "$work/b" "$work/a"
is only_a 0
is only_b 1
edit '14d'
differ "$work/a:14: $work/b:14: only in $work/a: close of request 2" "$work/a" "$work/b"
edit '4d;11d;12d'
differ "$work/a:4: $work/b:4: only in $work/a: submit of 2 segments, the first [1," \
	"$work/a" "$work/b"
is only_a 3
is only_a_line_a 4
is same 10
edit '2,$d'
differ "$work/a:2: $work/b:2: only in $work/a: open of request 1" "$work/a" "$work/b"
is only_a 13
is aligned 0

# Edits close to each other: what comes once only is aligned wherever it is.
{
	header
	for i in 1 2 3 4 5 6; do
		echo '{"do":"open","request":1}'
		echo '{"do":"rewind","request":1,"tokens":'$i'}'
	done
} >"$work/c"
edit '2s/.*/{"do":"open","request":3}/;4,5d' "$work/c"
differ "open of request 1 against open of request 3" "$work/c" "$work/b"
is only_b_line_a 2
is only_b_line_b 2
is only_a 3
is only_b 1
is same 9
# What comes again and again is aligned where more is alike behind it.
{
	header
	echo '{"do":"open","request":1}'
	for i in 11 12 13 14 15 1 2 3 4; do
		echo '{"do":"rewind","request":1,"tokens":'$i'}'
		[ $i -ne 1 ] || echo '{"do":"open","request":1}'
	done
} >"$work/c"
edit '2,7d' "$work/c"
differ "$work/c:2: $work/b:2: only in $work/c: open of request 1" "$work/c" "$work/b"
is only_a 6
is only_b 0
is same 5
# Where nothing else is alike, that is.
{
	header
	for i in 1 2 3 4; do
		echo '{"do":"open","request":1}'
		echo '{"do":"rewind","request":1,"tokens":'$i'}'
	done
} >"$work/c"
edit '2,$s/"tokens":/&9/' "$work/c"
differ 'by 1 token against rewind of request 1 "main" by 91 tokens' "$work/c" "$work/b"
is only_a 4
is only_b 4
is same 4

# A gap is bridged as far as the look ahead goes, 4096 commands, and no farther.
{
	header
	echo '{"do":"open","request":1}'
	i=0
	while [ $i -lt 5000 ]; do
		i=$((i + 1))
		echo '{"do":"rewind","request":1,"tokens":'$i'}'
	done
	echo '{"do":"open","request":2}'
	echo '{"do":"close","request":1}'
	echo '{"do":"close","request":2}'
} >"$work/c"
sed '3,4097d' "$work/c" >"$work/b"
differ "only in $work/c: rewind of request 1 \"main\" by 1 token" "$work/c" "$work/b"
is only_a 4095
is only_b 0
is same 909
run 1 diff --json "$work/b" "$work/c"
is only_a 0
is only_b 4095
sed '3,4099d' "$work/c" >"$work/b"
differ 'rewind of request 1 "main" by 1 token against rewind of request 1 "main" by 4098' \
	"$work/c" "$work/b"
is same 1
is only_b 906 # 903 of 5000, and three

# Two commands that are each other's: one is passed over, the same one whichever trace comes
# first.
for pair in 1:2 3:4 5:6; do
	{
		header
		echo '{"do":"open","request":'${pair%:*}'}'
		echo '{"do":"open","request":'${pair#*:}'}'
	} >"$work/c"
	sed '2{h;d;};3G' "$work/c" >"$work/b"
	run 1 diff --json "$work/c" "$work/b"
	first=$(value first)
	[ -n "$first" ] || fail "the first difference is not told"
	is only_a 1
	is only_b 1
	run 1 diff --json "$work/b" "$work/c"
	is first "$first"
done

# Every second command is another, and every third; a search that looked at all pairs of the
# windows each time would be at it for minutes.
for every in 2 3; do
	for side in 1 2; do
		{
			header
			awk -v every=$every -v side=$side 'BEGIN {
				for (i = 0; i < 9000; i++)
					printf "{\"do\":\"rewind\",\"request\":1,\"tokens\":%d}\n",
						i % every == every - 1 ? 2 * i + side : 0
			}'
		} >"$work/every$side"
	done
	run 1 diff --json "$work/every1" "$work/every2"
	is aligned $((9000 / every * (every - 1)))
	is only_a $((9000 / every))
	is only_b $((9000 / every))
done

# ---------------------------------------------------------------- ids
# The same commands, and promotes that speak of each other's steps.
{
	header
	cat <<'END'
{"do":"open","request":1}
{"do":"submit","id":1,"segments":[[1,"a",1,0]],"speculative":true}
{"do":"submit","id":2,"segments":[[1,"a",1,1]],"speculative":true}
{"do":"submit","id":3,"segments":[[1,"a",0,2]],"speculative":true}
{"do":"submit","id":4,"segments":[[1,"a",0,2]],"speculative":true}
{"do":"abandon","ticket":4}
{"do":"promote","ticket":3}
{"do":"promote","ticket":77}
END
} >"$work/s"
edit '7s/4/3/' "$work/s"
differ "$work/s:7: $work/b:7: abandon: is of step 4, step 3, which is not the same" \
	"$work/s" "$work/b"
is other_step 1
is only_a 0
edit '6s/"speculative"/"base":2,&/' "$work/s"
differ "submit: rests on the newest open step, step 2, which is not the same" \
	"$work/s" "$work/b"
is other_step 1
edit '6s/"speculative"/"base":null,&/' "$work/s"
differ "rests on the newest open step, nothing" "$work/s" "$work/b"
edit '9s/77/78/' "$work/s"
alike "$work/s" "$work/b"
edit '9s/77/1/' "$work/s"
differ "promote of 77 against promote of 1" "$work/s" "$work/b"
edit '4d' "$work/s" # a step that is there in one only, and what rested on it
differ "only in $work/s: speculative submit of 1 segment," "$work/s" "$work/b"
is only_a 1
is other_step 1

# A base that is left out is the newest step whose fate is open, if nothing but
# speculative submits, promotes and abandons lies between.
{
	header
	cat <<'END'
{"do":"open","request":1}
{"do":"submit","id":1,"segments":[[1,"a",1,0]],"speculative":true}
{"do":"submit","id":2,"segments":[[1,"a",1,1]],"speculative":true}
{"do":"abandon","ticket":2}
{"do":"submit","id":3,"segments":[[1,"a",2,1]],"speculative":true}
{"do":"submit","id":4,"segments":[[1,"a",3,3]],"speculative":true}
{"do":"promote","ticket":4}
{"do":"submit","id":5,"segments":[[1,"a",4,6]],"speculative":true}
{"do":"open","request":2}
{"do":"submit","id":6,"segments":[[1,"a",5,10]],"speculative":true}
END
} >"$work/s"
edit '3s/"spec/"base":null,&/; 4s/"spec/"base":1,&/; 6s/"spec/"base":1,&/
	7s/"spec/"base":3,&/; 9s/"spec/"base":3,&/; 11s/"spec/"base":null,&/' \
	"$work/s"
alike "$work/s" "$work/b"
is aligned 10

# ---------------------------------------------------------------- outcomes
# outcome LINE SCRIPT WHAT KEY - in that line's outcome
outcome() {
	edit "$1$2"
	differ "$work/a:$1: $work/b:$1: $3" "$work/a" "$work/b"
	is "$4" 1
	is "$4_line_a" "$1"
	is "$4_line_b" "$1"
	is same 12
	is only_a 0
	is only_b 0
}
outcome 10 's/3}}/4}}/' "submit: detail of NO_PAGES is 3, 4" other_detail
outcome 10 's/}}$/,"outside":true}}/' "submit: outside is false, true" other_outside
outcome 10 's/NO_PAGES/STALE/' "submit: status is NO_PAGES, STALE" other_status
grep -q '"NO_PAGES -> STALE": 1$' "$work/out" || fail "statuses are not counted in pairs"
outcome 4 's/aa"/ab"/' \
	"submit: digest is 00000000000000aa, 00000000000000ab" other_digest
outcome 3 's/\[1,2\]/[1,3]/' "open: prefix is not the same" other_prefix
outcome 3 's/"tokens":4/"tokens":5/' "open: prefix is not the same" other_prefix
edit '2,$s/"status":"OK"/"status":"LIMIT"/'
differ "status is OK, LIMIT" "$work/a" "$work/b"
is other_status 5
is other_status_line_a 4
grep -q '"OK -> LIMIT": 5$' "$work/out" || fail "statuses are not counted in pairs"

# What one of them says and the other does not is counted, and is no difference.
# one_sided LINE SCRIPT KEY SAME - there, and so many outcomes are the same
one_sided() {
	edit "$1$2"
	alike "$work/b" "$work/a"
	for key in prefix outcome digest pages; do
		is ${key}_in_one $([ $key = "$3" ] && echo 1 || echo 0)
	done
	is "$3_in_one_line_a" "$1"
	is "$3_in_one_line_b" "$1"
	is same 13
	is same_outcome "$4"
	is first ""
}
one_sided 8 's/,"outcome".*/}/' outcome 6
one_sided 2 's/}$/,"outcome":{"status":"OK"}}/' outcome 7
one_sided 4 's/"digest":"[0-9a-f]*",//' digest 7
one_sided 4 's/,"pages":.*/}}/' pages 7
one_sided 5 's/,"pages":.*/}}/' pages 7
one_sided 3 's/,"prefix":.*/}/' prefix 7
sed 's/,"outcome":.*/}/; s/,"prefix":.*/}/' "$work/a" >"$work/b"
alike "$work/b" "$work/a"
is outcome_in_one 7
is prefix_in_one 1
is same 13
is same_outcome 0
# ... beside what is one, which is told.
edit '4s/"digest":"[0-9a-f]*",//;5s/,"pages":.*/}}/;10s/3}}/4}}/'
differ "$work/a:10: $work/b:10: submit: detail of NO_PAGES is 3, 4" "$work/a" "$work/b"
is digest_in_one 1
is pages_in_one 1
is same 12
is same_outcome 6

# Pages: request 1 takes two of its 6 tokens, request 2 three.
outcome 4 's/2,3,4,5/2,3,6,5/' \
	'submit: pages[3] is 4, 6: page 1 of segments[1], request 2 "main"' other_pages
outcome 4 's/1,2,3/9,2,3/' \
	'submit: pages[0] is 1, 9: page 0 of segments[0], request 1 "main"' other_pages
outcome 4 's/,5\]/]/' 'submit: took 5 pages, 4 pages' other_pages
outcome 5 's/\[\]/[7]/' 'submit: took 0 pages, 1 pages' other_pages
# A digest is told before pages, both are counted.
edit '4s/aa"/ab"/; 4s/,5\]/,6]/'
differ "submit: digest is" "$work/a" "$work/b"
is other_digest 1
is other_pages 1
is same 12
# The second growth of a stream begins behind its pages; where pages may be shared or
# spare, or an `at` is not known, nobody can tell whose they are.
{
	header
	echo '{"do":"open","request":1}'
	echo '{"do":"submit","segments":[[1,"main",5,0]],"outcome":{"status":"OK","pages":[1,2]}}'
	echo '{"do":"submit","segments":[[1,"main",8,5]],"outcome":{"status":"OK","pages":[3,4]}}'
} >"$work/p"
edit '4s/3,4/3,5/' "$work/p"
differ 'pages[1] is 4, 5: page 3 of segments[0], request 1 "main"' "$work/p" "$work/b"
for script in '3s/"segments"/"post_forks":[["main","a"]],&/' '3s/"segments"/"commit":false,&/' \
	'2s/$/\n{"do":"rewind","request":1,"tokens":1}/' '4s/8,5/8,null/' \
	'2s/$/\n{"do":"reset","request":1,"keep":true}/'; do
	sed "$script" "$work/p" >"$work/p1"
	sed "$script" "$work/b" >"$work/b1"
	differ 'submit: pages[1] is 4, 5' "$work/p1" "$work/b1"
	if grep -q 'of segments' "$work/err"; then
		fail "$script: a page's place is told"
	fi
done

# ---------------------------------------------------------------- times
sed 's/}}$/},"times":[1000,1500,4500]}/' "$work/a" >"$work/t"
edit 's/}}$/},"times":[7000,9000,9040]}/'
alike "$work/b" "$work/t" # B is t in the first run, A in the second: t b
run 0 diff --json "$work/t" "$work/b"
# to 1/16 of the time: 500 is told as 496, 2000 as 1984, 3000 as 2944, 40 as 40
is given_to_decided_a_median_ns 496
is given_to_decided_b_p99_ns 1984
is decided_to_issued_a_p99_ns 2944
is decided_to_issued_b_median_ns 40
run 0 diff "$work/t" "$work/b"
grep -q '^A: until decided, median *496 ns$' "$work/out" || fail "diff prints no times"

# ---------------------------------------------------------------- bad input
run 2 diff
says "two plan traces are wanted"
run 2 diff "$work/a"
says "two plan traces are wanted"
run 2 diff "$work/a" "$work/a" "$work/a"
says "one too many"
run 2 diff - -
says "not both"
run 2 diff "$work/a" "$work/none"
says "$work/none"
says "No such file"
run 2 diff "$requests" "$work/a"
says "$requests:1: not a plan trace"
edit '6s/2,7/-2,7/'
run 2 diff "$work/a" "$work/b"
says "$work/b:6: segments[0]: span must be"
run 2 diff "$work/b" "$work/a"
says "$work/b:6: segments[0]: span must be"
head -c -9 "$work/a" >"$work/b"
run 2 diff "$work/a" "$work/b"
says "$work/b:14: truncated"
run 1 diff --quiet "$work/a" "$work/p"
[ ! -s "$work/out" ] || fail "--quiet prints"
if [ -e /dev/full ]; then
	got=0
	"$quire" diff "$work/a" "$work/a" >/dev/full 2>"$work/err" || got=$?
	[ "$got" -eq 2 ] || fail "numbers that cannot be written: exit $got"
fi
if command -v python3 >/dev/null 2>&1; then
	"$quire" diff --json "$work/a" "$work/p" 2>/dev/null |
		python3 -m json.tool >/dev/null || fail "diff --json is no JSON"
fi

done_testing
