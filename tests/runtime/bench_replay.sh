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
#                    that without, of the same round.  One thread is planner and executor
#                    on cpu:inline, so that two cores are enough for it and the
#                    recording's thread
#   replay_recorded_digests
#                    wall time of that thread without a recording, plans digested; to that
#                    without digests: what the executor pays
#   replay_recorded_busy
#                    as replay_recorded, with the threads and streams of `cpu`, six in all
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

# replay ARGUMENT... - planner time, wall time, pages taken
replay() {
	"$quire" replay --json "$@" "$work/plan" >"$work/report"
	echo "$(value planner_busy_ns) $(value wall_ns) $(value pages_taken)"
}

# record FILE ARGUMENT... - the same with a recording
record() {
	file=$1
	shift
	replay --no-verify --record "$file" "$@"
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

alone='--threads caller --device cpu:inline'
for _ in 1 2 3 4 5 6 7; do
	# shellcheck disable=SC2086 # several options
	echo "$(replay) $(record "$work/record") $(record "$work/record.zst")" \
		"$(replay $alone) $(record "$work/record" $alone)" \
		"$(replay $alone --no-digests)"
done >"$work/rounds"

takes=$(median '$3 * 1e3 / $1')
printf 'replay_takes %.2f M/s %.2f\n' "$takes" "$takes"
printf 'replay_planner %.1f ms %.2f\n' "$(median '$1 / 1e6')" "$(median '$1 / $2')"
printf 'replay_wall %.1f ms 1\n' "$(median '$2 / 1e6')"
printf 'replay_recorded %.1f ms %.3f\n' "$(median '$13 / 1e6')" "$(median '$13 / $10')"
printf 'replay_recorded_digests %.1f ms %.2f\n' "$(median '$11 / 1e6')" \
	"$(median '$11 / $17')"
printf 'replay_recorded_busy %.1f ms %.3f\n' "$(median '$4 / 1e6')" \
	"$(median '$4 / $1')"
printf 'replay_recorded_wall %.1f ms %.2f\n' "$(median '$5 / 1e6')" "$(median '$5 / $2')"
printf 'replay_recorded_zst_wall %.1f ms %.2f\n' "$(median '$8 / 1e6')" \
	"$(median '$8 / $2')"
