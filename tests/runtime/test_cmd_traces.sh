#!/bin/sh
# SPDX-License-Identifier: MIT
# The quire command on real request traces, where they are: QUIRE_TRACES names their
# folder.
. "$(dirname -- "$0")/cmd.sh"
traces=${QUIRE_TRACES:-$top_srcdir/../shared/traces}
azure=$traces/azure2023/AzureLLMInferenceTrace_code.csv
mooncake=$traces/mooncake/conversation_trace.jsonl

if [ ! -e "$azure" ] || [ ! -e "$mooncake" ]; then
	echo "no request traces in $traces: set QUIRE_TRACES to their folder"
	exit 77
fi

# ideal FILE FIRST PAGE_SIZE PEAK TAKES [SHARED_PEAK SHARED_TAKES] - the golden numbers that
# come with the traces.
ideal() {
	run 0 info --json --first "$2" --page-size "$3" "$1"
	is requests "$2"
	is ideal_peak_pages "$4"
	is ideal_takes "$5"
	is ideal_shared_peak_pages "${6:-}"
	is ideal_shared_takes "${7:-}"
}
ideal "$azure" 1000 16 6384 134856
ideal "$azure" 1000 128 815 17292
ideal "$mooncake" 150 16 54437 137203 53189 132435
ideal "$mooncake" 150 128 6825 17221 6669 16625
ideal "$mooncake" 1000 16 68766 880611 67102 845603
ideal "$mooncake" 1000 128 8621 110524 8413 106148
run 0 info "$mooncake"
grep -q '^repeated of them  *37.4 %$' "$work/out" || fail "repeated: $(cat "$work/out")"

# A whole trace, in a pool of which a single request may take all but a few pages; memory
# that does not grow with the rows read.
run 0 import --json "$mooncake" -o "$work/whole.plan"
is requests "$(wc -l <"$mooncake")"
is refused 0
is tokens $(($(sed 's/.*"input_length": \([0-9]*\), "output_length": \([0-9]*\),.*/\1 + \2/' \
	"$mooncake" | awk '{ n += $1 + $3 } END { print n }') + $(value tokens_recomputed)))
run 0 info --json "$work/whole.plan"
is requests "$(wc -l <"$mooncake")"
is prefix_keys "$(grep -o '[0-9]\{1,\}[],]' "$mooncake" | wc -l | awk -v rows="$(wc -l <"$mooncake")" \
	'{ print $1 - 3 * rows }')"

# Every token of the first 300 requests is written, and read back at the latest by the
# last step.
sums=$(tr -d '\r' <"$azure" | awk -F, 'NR > 1 && NR <= 301 {
	tokens = $2 + $3; written += tokens; taken += int((tokens + 15) / 16)
} END { print written, taken }')
written=${sums% *}
taken=${sums#* }
run 0 import --json --first 300 "$azure" -o "$work/code.plan"
is preemptions 0
run 0 replay --json --check "$work/code.plan"
is status ok
is tokens "$written"
is pages_taken "$taken"
is pages_given "$taken"
[ "$(value checked_rows)" -ge 300 ] || fail "only $(value checked_rows) rows were read"
[ "$(value checked_tokens)" -ge "$written" ] || fail "some tokens were never read"
digest=$(value digest)
run 0 replay --json --depth 16 --device cpu:inline "$work/code.plan"
is digest "$digest"
done_testing
