#!/bin/sh
# SPDX-License-Identifier: MIT
# A whole request trace, imported and replayed without work: median of five runs, one line
# `name value unit ratio` each.  The trace is the Azure code trace of $QUIRE_TRACES where it
# is, otherwise the sample.
#   replay_takes    page takes per second of planner time; to 1 million
#   replay_planner  planner time; to the wall time
#   replay_wall     wall time of the replay; 1
set -eu
quire=${top_builddir:-.}/quire
requests=${QUIRE_TRACES:-${top_srcdir:-.}/../shared/traces}/azure2023/AzureLLMInferenceTrace_code.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -f "$requests" ]; then
	"$quire" import -q "$requests" -o "$work/plan"
else
	echo "no Azure trace: the sample is replayed" >&2
	cp "${top_srcdir:-.}/plans/sample.plan" "$work/plan"
fi

# value NAME - a number of the last report
value() {
	sed -n 's/^ *"'"$1"'": \([0-9.]*\),*$/\1/p' "$work/report"
}

for _ in 1 2 3 4 5; do
	"$quire" replay --json --no-digests "$work/plan" >"$work/report"
	echo "$(value planner_busy_ns) $(value wall_ns) $(value pages_taken)"
done | sort -n | sed -n 3p | awk '{
	printf "replay_takes %.2f M/s %.2f\n", $3 * 1e3 / $1, $3 * 1e3 / $1
	printf "replay_planner %.1f ms %.2f\n", $1 / 1e6, $1 / $2
	printf "replay_wall %.1f ms 1\n", $2 / 1e6
}'
