#!/bin/sh
# SPDX-License-Identifier: MIT
# Replays of a part of a trace, of one that is damaged, at recorded times, again and again,
# many at once, on another pool, and what is left out of them.
. "$(dirname -- "$0")/cmd.sh"

# Pages of four tokens, the first one the sink's.
header() {
	echo '{"quire":"plan-trace","version":1,' \
		'"cache":{"layout":"NHD","dtype":"bf16",' \
		'"num_layers":1,"num_kv_heads":2,"head_dim":3,"page_size":4},' \
		'"pool":{"num_pages":'"$1"',"sink":true},' \
		'"limits":{"rows":8,"tokens":256,"requests":4,"seq_tokens":512,' \
		'"labels":4,"tables":4,"table_pages":4096}}'
}

open() { echo '{"do":"open","request":'"$1"'}'; }
submit() { echo '{"do":"submit","segments":['"$1"']'"${2:-}"'}'; }
OK=',"outcome":{"status":"OK"}'

# ---------------------------------------------------------------- --from, --to
# Lines 4 to 8 write 2, 3, 4, 5 and 6 tokens; 5 and 7 are wrong on record.
{
	header 40
	open 1
	open 2
	submit '[1,"main",2,0]' "$OK"
	submit '[1,"main",3,2]' ',"outcome":{"status":"STALE"}'
	submit '[1,"main",4,5]' "$OK"
	submit '[2,"main",5,0]' ',"outcome":{"status":"LIMIT"}'
	submit '[2,"main",6,5]' "$OK"
} >"$work/wrong.plan"
run 1 replay "$work/wrong.plan"
says "$work/wrong.plan:5: submit diverged: expected STALE, got OK"
run 1 replay --from 6 "$work/wrong.plan"
says "$work/wrong.plan:7: submit diverged: expected LIMIT, got OK"
run 0 replay --json --from 8 "$work/wrong.plan"
is commands 1
is steps 1
is tokens 6
is pages_taken 1
is compared 1
[ -z "$(value pages_peak)" ] || fail "the peak from line 8 on would be of all lines"
run 0 replay --json --to 4 "$work/wrong.plan"
is commands 3
is compared 1
is tokens 2
run 0 replay --json --from 6 --to 6 "$work/wrong.plan"
is commands 1
is tokens 4
is compared 1
one=$(value digest)
for way in "--threads caller" "--depth 1 --seed-delays 3" --check; do
	# shellcheck disable=SC2086
	run 0 replay --json --from 6 --to 6 $way "$work/wrong.plan"
	is digest "$one"
done
is checked_rows 1 # request 1 at its last step in this part, 9 tokens
is checked_tokens 9
run 2 replay --from 9 "$work/wrong.plan"
says "$work/wrong.plan: --from 9 is behind the last line, which is 8"
run 2 replay --from 8 --to 7 "$work/wrong.plan"
says "--to is before --from"
run 2 replay --from 0 "$work/wrong.plan"
says "--from must be an integer 1.."
run 0 replay --json --from 1 --to 1 "$work/wrong.plan" # the header alone is a part
is commands 0
run 1 replay --from 1 "$work/wrong.plan"
says "$work/wrong.plan:5: submit diverged"
head -n 1 "$work/wrong.plan" >"$work/bare.plan"
run 0 replay --from 1 "$work/bare.plan"
run 2 replay --from 2 "$work/bare.plan"
says "$work/bare.plan: --from 2 is behind the last line, which is 1"

# A fate that comes later than the part: what the step came to in the end is not compared,
# and neither is what was promoted on top of it.
{
	header 40
	open 1
	submit '[1,"main",2,0]' ',"id":1,"speculative":true,"base":null'"$OK"
	submit '[1,"main",3,2]' ',"id":2,"speculative":true,"base":1'"$OK"
	echo '{"do":"promote","ticket":2'"$OK"'}'
	echo '{"do":"promote","ticket":1'"$OK"'}'
	submit '[1,"main",1,5]' "$OK"
} >"$work/fates.plan"
run 0 replay --json "$work/fates.plan"
is compared 5
for to in 3 4 5; do
	run 0 replay --json --to $to "$work/fates.plan"
	is tokens 0
	is ABANDONED $((to == 3 ? 1 : 2))
	is compared $((to == 5))
	run 0 replay --json --check --from $to "$work/fates.plan"
	is compared $((8 - to))
done

# Neither is what waited for that step, nor what its outcome hangs on: cut behind line 5 or
# 6 the rewind finds 2 tokens, and the step in line 6 fits behind them, of which --check
# expected nothing.  Promotes and abandons wait for nothing.
{
	header 40
	open 1
	submit '[1,"main",2,0]' "$OK"
	submit '[1,"main",5,2]' ',"id":1,"speculative":true,"base":null'"$OK"
	echo '{"do":"rewind","request":1,"tokens":3'"$OK"'}'
	submit '[1,"main",4,2]' ',"outcome":{"status":"STALE","detail":4}'
	echo '{"do":"promote","ticket":9,"outcome":{"status":"INVALID"}}'
	echo '{"do":"promote","ticket":1'"$OK"'}'
	submit '[1,"main",1,4]' "$OK"
} >"$work/waits.plan"
run 0 replay --json --check "$work/waits.plan"
is compared 7
is checked_tokens 5
for to in 4 5 6 7; do
	for check in "" --check; do
		# shellcheck disable=SC2086
		run 0 replay --json --to $to $check "$work/waits.plan"
		is compared $((to == 7 ? 2 : 1))
	done
done
is steps 2 # those in lines 3 and 6
sed '7s/INVALID/OK/' "$work/waits.plan" >"$work/told.plan"
run 1 replay --to 7 "$work/told.plan"
says "$work/told.plan:7: promote diverged: expected OK, got INVALID"

# ---------------------------------------------------------------- damage
# Whole lines before are replayed, compared, reported; what they are wrong in comes first.
damaged() { # CODE TEXT NUMBER - of work/damaged.plan
	run "$1" replay -q --check --jobs 2 "$work/damaged.plan"
	says "$2"
	run "$1" replay --json "$work/damaged.plan"
	says "$2"
	is compared "$3"
}
{ cat "$work/fates.plan" && printf '{"do":"submit","seg'; } >"$work/damaged.plan"
damaged 2 "$work/damaged.plan:8: truncated" 5
is status damaged
"$quire" replay "$work/damaged.plan" 2>/dev/null | grep -q '^outcomes as recorded *5$' ||
	fail "what was whole is not reported"
{ head -n 3 "$work/fates.plan" && echo '{"do":"dance"}'; } >"$work/damaged.plan"
damaged 2 "$work/damaged.plan:4: do must be" 1 # it was promoted behind the damage
is commands 2
{ sed 's/LIMIT/OK/' "$work/wrong.plan" && echo nonsense; } >"$work/damaged.plan"
damaged 1 "$work/damaged.plan:5: submit diverged" 1
is status diverged
for lines in 4 5 6; do
	{ head -n $lines "$work/waits.plan" && echo nonsense; } >"$work/damaged.plan"
	damaged 2 "$work/damaged.plan:$((lines + 1)): must be one JSON object" $((lines - 2))
done
{ cat "$work/fates.plan" && echo nonsense; } >"$work/damaged.plan"
echo keep >"$work/kept"
run 2 replay --outcomes "$work/kept" "$work/damaged.plan"
[ "$(cat "$work/kept")" = keep ] || fail "the record of a damaged trace is kept"

# ---------------------------------------------------------------- --timing
# Given 20 s after the recording began and 0.2 and 0.4 s later; the second of them took
# effect after the last.
{
	header 40
	echo '{"do":"open","request":1,"times":[20000000000,20000000001]}'
	submit '[1,"main",2,0]' ',"times":[20400000000,20400000000,20400000001]'
	submit '[1,"main",2,2]' ',"times":[20200000000,20400000000,20400000001]'
} >"$work/times.plan"
for way in "--threads caller" "--threads library" "--jobs 2"; do
	# shellcheck disable=SC2086
	run 0 replay --json --timing recorded $way "$work/times.plan"
	ns=$(value wall_ns)
	[ "$ns" -ge 400000000 ] || fail "$way: 0.4 s were replayed in $ns ns"
	[ "$ns" -lt 15000000000 ] || fail "$way: time starts with the first command"
done
run 0 replay --json --timing recorded --from 3 "$work/times.plan"
run 0 replay --json --timing fast "$work/times.plan"
sed '4s/"times":[^]]*\]/"tag":1/' "$work/times.plan" >"$work/timeless.plan"
run 2 replay --timing recorded "$work/timeless.plan"
says "$work/timeless.plan:4: times must be there for --timing recorded"
run 0 replay --timing recorded --to 3 "$work/timeless.plan"
run 2 replay --timing slow "$work/times.plan"
says '--timing must be fast or recorded, got "slow"'

# ---------------------------------------------------------------- --loop, --jobs
run 0 replay --json "$sample"
commands=$(value commands)
tokens=$(value tokens)
peak=$(value pages_peak)
digest=$(value digest)
for way in "--loop 4" "--jobs 4" "--jobs 2 --loop 2" \
	"--jobs 4 --check --device cpu:inline --threads caller" \
	"--jobs 2 --loop 2 --check --depth 8 --seed-delays 5"; do
	# shellcheck disable=SC2086
	run 0 replay --json $way "$sample"
	is commands $((4 * commands))
	is compared $((4 * commands))
	is tokens $((4 * tokens))
	is pages_peak "$peak"
	is digest "$digest"
done
is jobs 2
is loops 2
line=$(grep -n '"digest"' "$sample" | sed -n '20s/:.*//p')
sed "${line}s/\"digest\":\"./\"digest\":\"x/; ${line}s/\"x/\"0/" "$sample" >"$work/one.plan"
cmp -s "$sample" "$work/one.plan" &&
	sed "${line}s/\"digest\":\"./\"digest\":\"1/" "$sample" >"$work/one.plan"
run 1 replay --json --jobs 4 --loop 1000 "$work/one.plan"
says "$work/one.plan:$line: submit diverged"
is line "$line"
run 2 replay --jobs 65 "$sample"
says "--jobs must be an integer 1..64"
run 2 replay --loop 0 "$sample"
run 2 replay --jobs 2 --outcomes "$work/x" "$sample"
says "--outcomes is of one replay"
run 2 replay --loop 2 --outcomes "$work/x" "$sample"
# Eight times the machine's memory, an eighth for each job.
pages=$(($(getconf _PHYS_PAGES) * $(getconf PAGESIZE) / 8 / 65536))
sed '1s/"num_pages":40/"num_pages":'$pages'/; 1s/"page_size":4/"page_size":16/
	1s/"num_kv_heads":2/"num_kv_heads":4/; 1s/"head_dim":3/"head_dim":256/' \
	"$work/times.plan" >"$work/large.plan"
run 2 replay --jobs 64 "$work/large.plan"
says "$work/large.plan:1: pool.num_pages $pages takes $((pages * 65536)) bytes in each of 64 jobs"

# Another trace takes the place of this one while it is replayed again and again.
cp "$work/fates.plan" "$work/moving.plan"
"$quire" replay --loop 1000000 "$work/moving.plan" 2>"$work/err" &
sleep 0.2
cp "$work/times.plan" "$work/moved.plan"
mv "$work/moved.plan" "$work/moving.plan"
got=0
wait $! || got=$?
[ $got -eq 1 ] || fail "a run that came to something else: exit $got"
says "$work/moving.plan: the same commands came to another digest of the run"

# ---------------------------------------------------------------- --pages
# Of five pages beside the sink: 2, then 4 are one too many, then 2 are not.  A length that
# is not there is not a matter of pages.
{
	header 6
	open 1
	open 2
	submit '[1,"main",8,0]'
	submit '[2,"main",16,0]' ',"id":1,"speculative":true,"base":null'
	submit '[2,"main",1,16]' ',"id":2,"speculative":true,"base":1'
	echo '{"do":"promote","ticket":1}'
	echo '{"do":"promote","ticket":2}'
	submit '[2,"main",8,0]'
	submit '[2,"main",1,7]'
} >"$work/bare.plan"
run 0 replay -q --outcomes "$work/pool.plan" "$work/bare.plan"
# Nothing is on record there; where the first outcome differs, something is.
run 0 replay --json "$work/bare.plan"
is compares "nothing: no outcome to compare is on record"
is compared 0
sed '2s/}$/,"outcome":{"status":"LIMIT","detail":0}}/' "$work/bare.plan" >"$work/first.plan"
run 1 replay --json "$work/first.plan"
is compares "all that is on record"
is compared 0
run 0 replay --json --pages 6 "$work/pool.plan"
is compares "all that is on record"
is left_out 0
for pages in 5 7 100; do
	run 0 replay --json --check --pages $pages "$work/pool.plan"
	is compares "statuses and details: the pool is not the trace's"
	is compared 9
	is left_out 1
	is NO_PAGES 1
	is STALE 1
	is steps 2
	is tokens 16
	# Its outcomes are of that pool: a trace that comes to the same.
	digest=$(value digest)
	run 0 replay -q --pages $pages --outcomes "$work/resized.plan" "$work/pool.plan"
	run 0 replay --json --check "$work/resized.plan"
	head -n 1 "$work/resized.plan" | grep -q '"num_pages":'"$pages," || fail "not of $pages pages"
	is compares "all that is on record"
	is left_out 1
	is digest "$digest"
done
run 1 replay --pages 4 "$work/pool.plan"
says "$work/pool.plan:9: submit diverged: expected OK, got NO_PAGES 1 (request 2, label \"main\","
says "the pool of 4 pages is too small for this trace"
sed 's/"detail":8/"detail":9/' "$work/pool.plan" >"$work/other.plan"
run 1 replay --pages 7 "$work/other.plan"
says "$work/other.plan:10: submit diverged: expected STALE 9, got STALE 8"
run 0 replay --json --no-verify --pages 4 "$work/pool.plan"
is compared 0

# ---------------------------------------------------------------- left out
# What the machine, time, or something that is not in the trace refused.
{
	header 6
	open 1
	for outcome in '"DEVICE"' '"CALLBACK"' '"CANCELLED"' '"TIMEOUT"' '"INVALID","outside":true'; do
		submit '[1,"main",8,0]' ',"outcome":{"status":'"$outcome"'}'
	done
	submit '[1,"main",8,0]' "$OK"
	echo '{"do":"rewind","request":1,"tokens":1,"outcome":{"status":"CANCELLED"}}'
	submit '[1,"main",1,8]' "$OK"
} >"$work/out.plan"
run 0 replay --json --check "$work/out.plan"
is left_out 6
is compared 8
is steps 2
run 0 replay -q --outcomes "$work/again.plan" "$work/out.plan"
[ "$(grep -c '"outside":true' "$work/again.plan")" -eq 1 ] || fail "a refusal from outside"
# What was not refused was not refused from outside.
sed '8s/"OK"/"OK","outside":true/' "$work/out.plan" >"$work/in.plan"
cmp -s "$work/out.plan" "$work/in.plan" && fail "line 8 has no outcome OK"
run 0 replay --json --check "$work/in.plan"
is left_out 6
is steps 2
run 1 replay --no-digests "$work/out.plan" --pages 2
says "the pool of 2 pages is too small"
done_testing
