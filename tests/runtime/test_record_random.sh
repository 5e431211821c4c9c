#!/bin/sh
# SPDX-License-Identifier: MIT
# Random recordings: quire replay and the reader that is written from the format's page find
# them as recorded, whatever came of their runtimes.
#
#   test_record_random.sh [FIRST [LAST]]   seeds.  1 12
. "$(dirname -- "$0")/cmd.sh"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
program=${top_builddir:-.}/tests/runtime/random_recording
reader=$top_srcdir/tests/plans/plan_trace.py
seed=${1:-1}
while [ "$seed" -le "${2:-12}" ]; do
	rm -f "$work/trace" "$work/timeline"
	"$program" "$seed" "$work/trace" "$work/timeline" >"$work/what" ||
		fail "seed $seed: $(cat "$work/what")"
	run 0 replay --quiet --depth $((seed % 8 + 1)) "$work/trace"
	if command -v python3 >/dev/null 2>&1; then
		python3 "$reader" "$work/trace" >"$work/read" 2>&1 ||
			fail "seed $seed: $(cat "$work/what" "$work/read")"
		[ ! -e "$work/timeline" ] || python3 -m json.tool "$work/timeline" /dev/null ||
			fail "seed $seed: the timeline is no JSON"
	fi
	seed=$((seed + 1))
done
done_testing
