#!/bin/sh
# SPDX-License-Identifier: MIT
# The quire command on the sample: import, replay, record, info, and one digest for all
# ways to replay.
. "$(dirname -- "$0")/cmd.sh"

# Tokens and pages of the sample: every request that fits writes input + output tokens
# into ceil(tokens / 16) pages, whatever the policy, beside what is computed again.
sums=$(awk -F, -v page=16 -v pages=511 'NR > 1 {
	tokens = $2 + $3; need = int((tokens + page - 1) / page)
	if (need > pages || tokens == 0) refused++
	else { served++; written += tokens; taken += need }
} END { print served, refused + 0, written, taken }' "$requests")
# shellcheck disable=SC2086
set -- $sums
served=$1 refused=$2 written=$3 taken=$4

# ---------------------------------------------------------------- import
run 0 import --json "$requests" --pages 512 --tokens 256 --rows 32 -o "$work/s.plan"
is requests $((served + refused))
is refused "$refused"
preempted=$(value preemptions)
[ "$preempted" -gt 0 ] || fail "the sample lacks a preemption"
recomputed=$(value tokens_recomputed)
all_written=$((written + recomputed))
is tokens "$all_written"
all_taken=$(value pages_taken)
# A preempted stream gave up the whole pages of its tokens, and one page at most.
[ "$all_taken" -ge $((taken + recomputed / 16)) ] &&
	[ "$all_taken" -le $((taken + recomputed / 16 + preempted)) ] ||
	fail "$all_taken pages taken, $taken needed, $recomputed tokens recomputed"
steps=$(value steps)
peak=$(value pages_peak)
commands=$((3 * served + preempted + steps))
run 0 import -q "$requests" --pages 512 --tokens 256 --rows 32 -o "$work/again.plan"
same "$work/s.plan" "$work/again.plan"
"$quire" import -q - --pages 512 --tokens 256 --rows 32 -o - <"$requests" \
	>"$work/pipe.plan" || fail "import of a pipe into a pipe"
same "$work/s.plan" "$work/pipe.plan"
run 0 import -q --first 5 "$requests" -o "$work/five.plan"
run 0 info --json "$work/five.plan"
is requests 5

# A pool that is enough for all is never short; in one that is not, no step is: the
# runtime counts as the policy does, and refuses nothing.
run 0 import --json "$requests" --pages 4096 --seq-tokens 8176 --tokens 256 --rows 32 \
	-o "$work/wide.plan"
is preemptions 0
is tokens_recomputed 0
is tokens "$written"
is pages_taken "$taken"
for pages in 140 260 400; do
	run 0 import --json "$requests" --pages "$pages" --rows 32 -o "$work/narrow.plan"
	[ "$(value preemptions)" -gt 0 ] || fail "no preemption with $pages pages"
	tokens=$(value tokens) taken_narrow=$(value pages_taken) narrow_peak=$(value pages_peak)
	run 0 replay --json --check "$work/narrow.plan"
	is refused '{}'
	is tokens "$tokens"
	is pages_taken "$taken_narrow"
	is pages_given "$taken_narrow"
	is pages_peak "$narrow_peak"
done

# ---------------------------------------------------------------- info
run 0 info --json "$work/s.plan"
is kind plan-trace
is pages 512
is page_size 16
is requests "$served"
is steps "$steps"
is tokens "$all_written"
is outcomes 0
run 0 info --json "$requests"
is kind request-trace
is requests $((served + refused))
is input_tokens "$(awk -F, 'NR > 1 { n += $2 } END { print n }' "$requests")"
run 0 info "$requests"
grep -q '^ideal peak of pages ' "$work/out" || fail "info prints no ideal peak"
run 0 info "$work/s.plan"
grep -q '^page size  *16$' "$work/out" || fail "info prints no page size"

# Names of prompts: the second request has the first block of 512 tokens, 32 pages, in
# common with the first one, which is alive; its part block is longer.
cat >"$work/mooncake" <<'END'
{"timestamp": 0, "input_length": 528, "output_length": 1, "hash_ids": [4, 5]}
{"timestamp": 9, "input_length": 600, "output_length": 1, "hash_ids": [4, 6]}
{"timestamp": 9, "input_length": 0, "output_length": 0, "hash_ids": []}
END
run 0 info --json "$work/mooncake"
is format mooncake
is empty 1
is ideal_peak_pages 72
is ideal_takes 72
is ideal_shared_peak_pages 40
is ideal_shared_takes 40
is prompt_pages 70
is prompt_pages_repeated 0.457142857
"$quire" info --json - <"$work/mooncake" >"$work/out" || fail "info of a pipe"
is ideal_shared_takes 40
run 0 import --json "$work/mooncake" -o "$work/m.plan"
is refused 1
grep -qF '{"do":"open","request":1,"prefix":{"tokens":512,"keys":[4,6]}}' "$work/m.plan" ||
	fail "an open lacks its prefix"
run 0 info --json "$work/m.plan"
is prefix_keys 4
is prefix_keys_repeated 0.25
is duration_s ''
# A session: the sub-agent's turn has the first block of 16 tokens in common with the one
# before it, which is alive; the last turn has both blocks of the first, which is gone.  Of
# the last 8, 3 and 2 tokens of the prompts there are no names: the first prompt's fifth
# page of 8 tokens is full, and nobody's.
cat >"$work/session" <<'END'
{"block_size": 16, "requests": [{"t": 0.0, "type": "n", "in": 40, "out": 1, "hash_ids": [1, 2]}, {"t": 10, "type": "s", "in": 50, "out": 2, "hash_ids": [1, 2, 4]}, {"t": 0.001, "type": "subagent", "requests": [{"t": 0.001, "type": "n", "in": 35, "out": 1, "hash_ids": [1, 3]}]}]}
END
run 0 info --json "$work/session"
is format session
is requests 3
is duration_s 10.0
is input_tokens 125
is output_tokens 4
is ideal_peak_pages 6
is ideal_takes 10
is ideal_shared_peak_pages 5
is ideal_shared_takes 9
is prompt_pages 7
is prompt_pages_repeated 0.428571429
run 0 info --json --page-size 8 "$work/session"
is prompt_pages 15
is prompt_pages_repeated 0.4
run 0 info --json --page-size 32 "$work/session"
is prompt_pages 3
is prompt_pages_repeated 0.333333333
run 0 import --json "$work/session" -o "$work/t.plan"
is requests 3
is tokens 129
grep -qF '{"do":"open","request":1,"prefix":{"tokens":16,"keys":[1,3]}}' "$work/t.plan" ||
	fail "an open lacks its turn's prefix"
run 0 replay --check "$work/t.plan"
run 0 info --json "$work/t.plan"
is prefix_keys 7
is prefix_keys_repeated 0.428571429
sed '2s/}$/,"times":[1000000000,1500000000]}/
	4s/}$/,"times":[2000000000,2250000000,3500000000]}/' "$work/m.plan" >"$work/timed.plan"
run 0 info --json "$work/timed.plan"
is duration_s 3.5
run 0 info --json "$requests"
is prompt_pages '' # there are no names

# ---------------------------------------------------------------- replay
run 0 replay --json "$work/s.plan"
is status ok
is commands "$commands"
is steps "$steps"
is tokens "$all_written"
is pages_taken "$all_taken"
is pages_given "$all_taken"
is pages_peak "$peak"
is compared 0
digest=$(value digest)
run 0 replay --json --check "$sample"
is digest "$digest"
is compared "$commands"
# The last step of every request reads it whole, so every token is read at least once.
[ "$(value checked_rows)" -ge "$served" ] || fail "some requests were never read"
[ "$(value checked_tokens)" -ge "$written" ] || fail "some tokens were never read"
run 0 replay "$sample"
for label in commands steps tokens 'pages taken' 'plan of a step, median' \
	'executor waiting' 'steps per second' refused digest; do
	grep -q "^$label  *[^ ]" "$work/out" || fail "replay prints no \"$label\""
done
run 0 replay -q "$sample"
[ ! -s "$work/out" ] || fail "--quiet prints"
run 0 replay --json --no-digests "$sample"
is digest null
"$quire" replay --check - <"$sample" >"$work/out" 2>"$work/err" || fail "replay of a pipe"

# ---------------------------------------------------------------- one digest
digest_of() {
	run 0 replay --json "$@" "$sample"
	[ "$(value digest)" = "$digest" ] || fail "replay $*: digest $(value digest)"
}
for depth in 1 2 3 8 64; do
	for device in cpu cpu:inline; do
		digest_of --depth "$depth" --device "$device"
		digest_of --depth "$depth" --device "$device" --threads caller
	done
done
for seed in 1 2 3; do
	digest_of --check --seed-delays "$seed" --depth "$seed"
	digest_of --seed-delays "$seed" --depth 3 --device cpu:inline
	digest_of --seed-delays "$seed" --threads caller
done

# ---------------------------------------------------------------- record
run 0 replay -q --outcomes "$work/r.plan" "$work/s.plan"
same "$work/r.plan" "$sample"
run 0 replay -q --depth 64 --outcomes "$work/r.plan" "$work/r.plan" # over itself
same "$work/r.plan" "$sample"

# A digest that is not the recorded one: the line is named.
line=$(grep -n '"digest"' "$sample" | sed -n '20s/:.*//p')
sed "$line"'s/"digest":"\([0-9a-f]*\)[0-9a-f]"/"digest":"\1x"/; s/x"}}$/0"}}/' \
	"$sample" >"$work/wrong.plan"
if cmp -s "$sample" "$work/wrong.plan"; then
	sed "$line"'s/0"}}$/1"}}/' "$sample" >"$work/wrong.plan"
fi
run 1 replay "$work/wrong.plan"
says "$work/wrong.plan:$line: submit diverged: expected OK with digest "
[ ! -s "$work/out" ] || fail "a divergence prints a summary"
run 1 replay --json --check "$work/wrong.plan"
is status diverged
run 0 replay --no-digests "$work/wrong.plan"
run 0 replay --pages 600 "$work/wrong.plan" # other page ids: nothing to compare
echo keep >"$work/keep"
cp "$work/keep" "$work/kept"
run 1 replay --outcomes "$work/kept" "$work/wrong.plan"
same "$work/keep" "$work/kept"
sed '7s/"status":"OK"/"status":"LIMIT"/' "$sample" >"$work/wrong.plan"
run 1 replay "$work/wrong.plan"
says "$work/wrong.plan:7: "
says "expected LIMIT, got OK"
ls "$work"/*.tmp >/dev/null 2>&1 && fail "temporary files are left"

# ---------------------------------------------------------------- JSON
if command -v python3 >/dev/null 2>&1; then
	for command in 'replay --check' info; do
		# shellcheck disable=SC2086
		"$quire" $command --json "$sample" | python3 -m json.tool >/dev/null ||
			fail "$command --json is no JSON"
	done
	"$quire" info --json "$requests" | python3 -m json.tool >/dev/null ||
		fail "info --json is no JSON"
	"$quire" import --json "$requests" -o "$work/s.plan" |
		python3 -m json.tool >/dev/null || fail "import --json is no JSON"
else
	echo "no python3 here: whether the output is JSON was not tested"
fi
# Standard output is the trace's alone, when it is asked to go there.
"$quire" replay --outcomes - "$sample" >"$work/recorded" 2>"$work/err" ||
	fail "replay --outcomes -"
cmp -s "$sample" "$work/recorded" || fail "the recorded sample is not the sample"

# A header is found to be one however much stands in front of its name.
sed "1s/{/{\"pad\":\"$(printf '%9000s' '' | tr ' ' x)\",/" "$sample" >"$work/padded"
run 0 info --json "$work/padded"
is kind plan-trace

done_testing
