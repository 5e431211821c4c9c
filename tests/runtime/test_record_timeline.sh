#!/bin/sh
# SPDX-License-Identifier: MIT
# A timeline is what Perfetto and chrome://tracing read, and says what its trace says.
set -u
srcdir=${top_srcdir:-$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)}
program=${top_builddir:-.}/tests/runtime/print_timeline
if ! command -v python3 >/dev/null; then
	echo "skipped: no python3 to read JSON with"
	exit 77
fi
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
"$program" "$work/trace" "$work/timeline" || exit 1
python3 "$srcdir/tests/runtime/check_timeline.py" "$work/trace" "$work/timeline" ||
	exit 1
# Killed, it is the beginning of one: an array without its end.
"$program" "$work/trace" "$work/timeline" killed 2>/dev/null && exit 1
python3 "$srcdir/tests/runtime/check_timeline.py" "$work/trace" "$work/timeline" killed
