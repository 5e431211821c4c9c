#!/bin/sh
# SPDX-License-Identifier: MIT
# The tests' own model against an executable specification of the runtime, where there is
# one: QUIRE_MODEL names the folder of its quire_model.py.
set -eu
model=${QUIRE_MODEL:-$top_srcdir/../shared/model}

if [ ! -e "$model/quire_model.py" ]; then
	echo "no quire_model.py in $model: set QUIRE_MODEL to its folder"
	exit 77
fi
if ! command -v python3 >/dev/null 2>&1; then
	echo "no python3"
	exit 77
fi
"$top_builddir/tests/runtime/print_model" "${1:-1}" "${2:-400}" "${3:-60}" |
	python3 "$top_srcdir/tests/runtime/compare_model.py" "$model" "${2:-400}"
