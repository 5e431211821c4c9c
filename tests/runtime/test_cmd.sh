#!/bin/sh
# SPDX-License-Identifier: MIT
# The quire command on the sample: import, replay, record, info, and one digest for all
# ways to replay.
. "$(dirname -- "$0")/cmd.sh"

# Tokens and pages of the sample: every request that fits writes input + output tokens
# into ceil(tokens / 16) pages, whatever the policy.
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
is tokens "$written"
is pages_taken "$taken"
steps=$(value steps)
peak=$(value pages_peak)
run 0 import -q "$requests" --pages 512 --tokens 256 --rows 32 -o "$work/again.plan"
same "$work/s.plan" "$work/again.plan"
"$quire" import -q - --pages 512 --tokens 256 --rows 32 -o - <"$requests" \
	>"$work/pipe.plan" || fail "import of a pipe into a pipe"
same "$work/s.plan" "$work/pipe.plan"
run 0 import -q --first 5 "$requests" -o "$work/five.plan"
run 0 info --json "$work/five.plan"
is requests 5

# ---------------------------------------------------------------- info
run 0 info --json "$work/s.plan"
is kind plan-trace
is pages 512
is page_size 16
is requests "$served"
is steps "$steps"
is tokens "$written"
is outcomes 0
run 0 info --json "$requests"
is kind request-trace
is requests $((served + refused))
is input_tokens "$(awk -F, 'NR > 1 { n += $2 } END { print n }' "$requests")"
run 0 info "$requests"
grep -q '^ideal peak of pages ' "$work/out" || fail "info prints no ideal peak"
run 0 info "$work/s.plan"
grep -q '^page size  *16$' "$work/out" || fail "info prints no page size"

# ---------------------------------------------------------------- replay
run 0 replay --json "$work/s.plan"
is status ok
is commands $((3 * served + steps))
is steps "$steps"
is tokens "$written"
is pages_taken "$taken"
is pages_given "$taken"
is pages_peak "$peak"
is compared 0
digest=$(value digest)
run 0 replay --json --check "$sample"
is digest "$digest"
is compared $((3 * served + steps))
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
run 0 replay -q --record "$work/r.plan" "$work/s.plan"
same "$work/r.plan" "$sample"
run 0 replay -q --depth 64 --record "$work/r.plan" "$work/r.plan" # over itself
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
run 1 replay --record "$work/kept" "$work/wrong.plan"
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
"$quire" replay --record - "$sample" >"$work/recorded" 2>"$work/err" ||
	fail "replay --record -"
cmp -s "$sample" "$work/recorded" || fail "the recorded sample is not the sample"

# A header is found to be one however much stands in front of its name.
sed "1s/{/{\"pad\":\"$(printf '%9000s' '' | tr ' ' x)\",/" "$sample" >"$work/padded"
run 0 info --json "$work/padded"
is kind plan-trace

done_testing
