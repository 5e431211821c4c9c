#!/bin/sh
# SPDX-License-Identifier: MIT
# Search all interleavings of the pool's model, then see that every mutant of it is found.
#   model_pool.sh [PROCS OPS]
set -e
if ! command -v spin >/dev/null; then
	echo "model_pool.sh: spin is not installed"
	exit 77
fi
model=$(cd "$(dirname "$0")" && pwd)/model_pool.pml
procs=${1:-2}
ops=${2:-4}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# search NAME OPS FLAGS: writes NAME.log; whether the whole space holds without an error
search() {
	if ! spin -a -DPROCS="$procs" -DOPS="$2" $3 "$model" >"$1.spin" 2>&1; then
		cat "$1.spin"
		exit 1
	fi
	${CC:-cc} -O2 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -o pan pan.c
	./pan -m100000 -w22 >"$1.log"
	grep -q 'errors: 0$' "$1.log" && ! grep -q 'not completed' "$1.log"
}

if ! search pool "$ops" ''; then
	cat pool.log
	echo "model_pool.sh: the model is wrong"
	exit 1
fi
echo "model_pool.sh: $procs threads of $ops operations:" \
	"$(awk '/states, stored/ { print $1 }' pool.log) states, none wrong"
for mutant in NO_TAKES NO_GEN NO_EXPECT NO_RECHECK NO_HELP; do
	if search $mutant 4 -D$mutant; then
		echo "model_pool.sh: the mutant $mutant was not found"
		exit 1
	fi
	echo "model_pool.sh: $mutant found"
done
