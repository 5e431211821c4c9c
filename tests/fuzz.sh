#!/bin/sh
# SPDX-License-Identifier: MIT
# fuzz.sh [NAME...] - runs the fuzzers (all: trace requests) for FUZZ_SECONDS each (60),
# built with clang in fuzz/ of the current folder.  What they find lies there, too, in
# fuzz/NAME.found/, and the exit status is 1.
set -eu
seconds=${FUZZ_SECONDS:-60}
source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
if ! command -v clang >/dev/null; then
	echo "fuzz.sh: clang is not installed" >&2
	exit 2
fi
if [ ! -x "$source/configure" ]; then
	echo "fuzz.sh: no configure in $source: run ./bootstrap build first" >&2
	exit 2
fi
[ $# -gt 0 ] || set -- trace requests
jobs=$(nproc 2>/dev/null || echo 2)
mkdir -p fuzz
cd fuzz
if [ ! -e Makefile ] || [ -n "$(find "$source/configure" -newer config.status)" ]; then
	# liburcu's list ends step over a null pointer by an offset.
	flags='-O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined'
	flags="$flags -fno-sanitize=pointer-overflow -fno-sanitize-recover=undefined"
	"$source/configure" -q --disable-shared --without-cuda CC=clang CXX=clang++ \
		CFLAGS="$flags" CXXFLAGS="$flags"
fi
make -s -j "$jobs" quire
for name; do
	make -s -j "$jobs" "tests/plans/fuzz_$name"
done

# Inputs: those of the tree, and traces made of the sample; compressed ones, too.
rm -rf made
mkdir -p made/trace made/requests
requests=$source/plans/sample_requests.csv
head -n 20 "$requests" >made/requests/azure
head -n 12 "$source/plans/sample.plan" >made/trace/sample
./quire import -q --first 3 "$requests" -o made/trace/imported.zst
./quire import -q --first 3 "$requests" -o made/trace/imported
./quire replay -q --record made/trace/recorded made/trace/imported
./quire replay -q --record made/trace/recorded.zst made/trace/imported

status=0
for name; do
	mkdir -p "$name.corpus" "$name.found"
	"./tests/plans/fuzz_$name" -max_total_time="$seconds" -max_len=16384 \
		-rss_limit_mb=1024 -malloc_limit_mb=192 -timeout=20 \
		-dict="$source/tests/plans/fuzz.dict" -artifact_prefix="$name.found/" \
		-verbosity=0 -print_final_stats=1 \
		"$name.corpus" "made/$name" "$source/tests/plans/seeds/$name" || status=1
done
exit $status
