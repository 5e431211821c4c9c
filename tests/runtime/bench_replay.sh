#!/bin/sh
# SPDX-License-Identifier: MIT
# A whole request trace, imported and replayed without work (but digested), with and without a recording, in
# turns: medians of seven rounds, one line `name value unit ratio` each.  The trace is the
# Mooncake conversation trace of $QUIRE_TRACES where it is, in a pool of 65,536 pages,
# otherwise the sample.
#   replay_import    wall time of the import; 1
#   replay_takes     page takes per second of planner time; to 1 million
#   replay_planner   planner time; to the wall time
#   replay_wall      wall time of the replay; 1
#   replay_recorded  planner time with a recording (digests, pages, times) to a file; to
#                    that without, of the same round
#   replay_recorded_wall, replay_recorded_zst_wall
#                    wall time with a recording, plain and compressed; to that without
set -eu
quire=${top_builddir:-.}/quire
requests=${QUIRE_TRACES:-${top_srcdir:-.}/../shared/traces}/mooncake/conversation_trace.jsonl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# value NAME - a number of the last report
value() {
	sed -n 's/^ *"'"$1"'": \([0-9.]*\),*$/\1/p' "$work/report"
}

# replay ARGUMENT... - planner time and wall time
replay() {
	"$quire" replay --json "$@" "$work/plan" >"$work/report"
	echo "$(value planner_busy_ns) $(value wall_ns) $(value pages_taken)"
}

record() {
	"$quire" replay --json --no-verify --record "$@" "$work/plan" >"$work/report"
	echo "$(value planner_busy_ns) $(value wall_ns)"
}

# median COLUMN-EXPRESSION - over the rounds
median() {
	awk "{ print $1 }" "$work/rounds" | sort -g | sed -n 4p
}

start=$(date +%s%N)
if [ -f "$requests" ]; then
	"$quire" import -q --pages 65536 "$requests" -o "$work/plan"
	echo "replay_import $((($(date +%s%N) - start) / 1000000)) ms 1"
else
	echo "no Mooncake trace: the sample is replayed" >&2
	cp "${top_srcdir:-.}/plans/sample.plan" "$work/plan"
fi

for _ in 1 2 3 4 5 6 7; do
	echo "$(replay) $(record "$work/record") $(record "$work/record.zst")"
done >"$work/rounds"

takes=$(median '$3 * 1e3 / $1')
printf 'replay_takes %.2f M/s %.2f\n' "$takes" "$takes"
printf 'replay_planner %.1f ms %.2f\n' "$(median '$1 / 1e6')" "$(median '$1 / $2')"
printf 'replay_wall %.1f ms 1\n' "$(median '$2 / 1e6')"
printf 'replay_recorded %.1f ms %.3f\n' "$(median '$4 / 1e6')" "$(median '$4 / $1')"
printf 'replay_recorded_wall %.1f ms %.2f\n' "$(median '$5 / 1e6')" "$(median '$5 / $2')"
printf 'replay_recorded_zst_wall %.1f ms %.2f\n' "$(median '$7 / 1e6')" \
	"$(median '$7 / $2')"
