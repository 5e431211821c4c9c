#!/bin/sh
# SPDX-License-Identifier: MIT
# Search every interleaving of model_pool.pml, and see that each mutant of it is found.
#   model_pool.sh        small pools: seconds
#   model_pool.sh full   larger ones: minutes, 4 GB of memory
set -eu
if ! command -v spin >/dev/null; then
	echo "model_pool.sh: spin is not installed"
	exit 77
fi
model=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)/model_pool.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Most of a small search is the compiler's time.
optimise=-O0
table_bits=20
lawful='-DPAGES=3 -DOPS=3'
any='-DANY -DPAGES=2 -DOUT=2 -DOPS=2'
alone='-DALONE -DPAGES=2 -DOUT=2 -DOPS=2'

# build_and_run FLAGS
build_and_run() {
	# shellcheck disable=SC2086
	spin -a $1 "$model" &&
		${CC:-cc} $optimise -w -DSAFETY -DCOLLAPSE -DVECTORSZ=1024 -DMEMLIM=6000 \
			-o pan pan.c &&
		./pan -m10000 -w$table_bits
}

# search WANTED FLAGS - is the whole space right, or some of it wrong, as wanted?
search() (
	run=$(mktemp -d "$work/XXXXXX")
	cd "$run"
	verdict=unfinished
	build_and_run "$2" >log 2>&1 || true
	if grep -q 'errors: [1-9]' log; then
		verdict=wrong
	elif grep -q 'errors: 0$' log && ! grep -q -e 'not completed' -e 'too small' log; then
		verdict=right
	fi
	echo "$verdict: $2: $(awk '/states, stored/ { print $1 }' log) states"
	if [ "$verdict" != "$1" ]; then
		cat log
		echo "model_pool.sh: not $1: $2" >>"$work/failures"
	fi
	rm -rf "$run"
)

# beside WANTED FLAGS - the same, two at a time
pending=0
beside() {
	search "$@" &
	pending=$((1 - pending))
	[ $pending -eq 1 ] || wait
}

echo "What must be right:"
if [ "${1-}" = full ]; then
	optimise=-O2
	table_bits=24
	while IFS= read -r flags; do
		search right "$flags"
	done <<END
-DPAGES=4 -DOPS=4
-DPAGES=5 -DOPS=3 -DTAKE_MAX=3 -DHELD_MAX=5
-DPAGES=5 -DOPS=4 -DGROUP=2
-DPROCS=3 -DPAGES=4 -DOPS=2
-DANY -DPAGES=3 -DOPS=3
-DANY -DPAGES=3 -DOUT=3 -DOPS=2 -DGIVE_MAX=3
-DANY -DPROCS=3 -DPAGES=2 -DOUT=2 -DOPS=2 -DTAKE_MAX=1 -DGIVE_MAX=1
-DALONE -DPAGES=4 -DOUT=3 -DOPS=3
-DALONE -DPROCS=3 -DPAGES=3 -DOUT=2 -DOPS=2 -DTAKE_MAX=1
END
else
	for flags in "$lawful" "$any" "$alone"; do
		beside right "$flags"
	done
	wait
	pending=0
fi
echo "What must be wrong:"
for mutant in HIGH_FIRST NO_TAKES NO_GEN EARLY_GEN STALE_GEN NO_NEWER NEWER_OR_SAME \
	ANY_WORD NO_RECHECK BLIND_LINK TAKE_NO_HELP FREE_NO_HELP LATE_REST KEEP_WALK \
	HEAD_ONCE SKIP_KEPT SKIP_STUCK HEAD_KEPT RECORD_KEPT LATE_RECORD; do
	beside wrong "$lawful -D$mutant"
done
for mutant in PLAIN_CLAIM NO_UNDO; do
	beside wrong "$any -D$mutant"
done
wait
if [ -e "$work/failures" ]; then
	cat "$work/failures"
	exit 1
fi
