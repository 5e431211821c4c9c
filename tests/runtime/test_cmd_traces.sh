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

# Sessions of coding agents, against a model that lists every page of every turn by name:
# turns, tokens of prompts, of answers, peak and takes alone, shared, share repeated, names.
cat >"$work/session.py" <<'END'
import json, sys
trace, ps = json.load(open(sys.argv[1])), int(sys.argv[2])
size = trace["block_size"]
turns = []
for entry in trace["requests"]:
    for turn in entry.get("requests", [entry]):
        start = entry["t"] + (turn["t"] if turn is not entry else 0)
        turns.append((round(start * 10000), turn["in"], turn["out"], turn["hash_ids"]))
turns.sort(key=lambda turn: turn[0])
events = []  # time in 0.1 ms, 0: gives, 1: takes; then in the order of arrival
for number, (start, used, out, ids) in enumerate(turns):
    pages = [("full", j, ids[((j + 1) * ps - 1) // size])
             if (j + 1) * ps <= len(ids) * size else ("own", number, j)
             for j in range(-(-used // ps))]
    events.append((start, 1, number, pages))
    decode = start + used
    for k in range(1, out + 1):
        if (used + k - 1) % ps == 0:
            pages = pages + [("own", number, (used + k - 1) // ps)]
            events.append((decode + (k - 1) * 300, 1, number, pages[-1:]))
    events.append((decode + out * 300, 0, number, pages))
events.sort(key=lambda event: event[:2])
alone = peak = takes = shared_peak = shared_takes = repeated = 0
live, seen = {}, set()
for _, take, _, pages in events:
    alone += len(pages) if take else -len(pages)
    takes += len(pages) * take
    peak = max(peak, alone)
    for page in pages:
        live[page] = live.get(page, 0) + (1 if take else -1)
        if take:
            shared_takes += live[page] == 1
            repeated += page in seen
            seen.add(page)
        elif live[page] == 0:
            del live[page]
    shared_peak = max(shared_peak, len(live))
print(len(turns), sum(turn[1] for turn in turns), sum(turn[2] for turn in turns), peak, takes,
      shared_peak, shared_takes, "%.9g" % (repeated / sum(turn[1] // ps for turn in turns)),
      sum(len(turn[3]) for turn in turns))
END

# session FILE PAGE_SIZE - its numbers are the model's.
session() {
	# shellcheck disable=SC2046
	set -- "$1" "$2" $(python3 "$work/session.py" "$1" "$2")
	run 0 info --json --page-size "$2" "$1"
	is format session
	is requests "$3"
	is input_tokens "$4"
	is output_tokens "$5"
	is ideal_peak_pages "$6"
	is ideal_takes "$7"
	is ideal_shared_peak_pages "$8"
	is ideal_shared_takes "$9"
	is prompt_pages_repeated "${10}"
	run 0 import --json --page-size "$2" --pages 65536 "$1" -o "$work/session.plan"
	is requests "$3"
	is refused 0
	is tokens $(($4 + $5))
	run 0 info --json "$work/session.plan"
	is prefix_keys "${11}"
}
if ! command -v python3 >/dev/null; then
	echo "no python3: sessions were not tested"
elif [ ! -e "$traces/kvct" ]; then
	echo "no sessions in $traces/kvct: they were not tested"
else
	for file in "$traces"/kvct/*.json; do
		for page_size in 16 24 128; do
			session "$file" "$page_size"
		done
	done
fi

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
