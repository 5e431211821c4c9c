#!/bin/sh
# SPDX-License-Identifier: MIT
# sanitize.sh thread|address [CONFIGURE ARGUMENTS...] - make check under a sanitizer, in a
# build of its own, sanitize-thread/ or sanitize-address/ in the current folder.
set -eu
usage='usage: sanitize.sh thread|address [configure arguments...]'
kind=${1:?$usage}
shift
case $kind in
thread)
	flags=-fsanitize=thread
	;;
address)
	# liburcu's list ends step over a null pointer by an offset.
	flags='-fsanitize=address,undefined -fno-sanitize=pointer-overflow'
	flags="$flags -fno-sanitize-recover=undefined"
	;;
*)
	echo "$usage" >&2
	exit 2
	;;
esac

source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
if [ ! -x "$source/configure" ]; then
	echo "sanitize.sh: no configure in $source: run ./bootstrap build first" >&2
	exit 1
fi
jobs=$(nproc 2>/dev/null || echo 2)
mkdir -p "sanitize-$kind"
cd "sanitize-$kind"
if [ ! -e Makefile ] || [ -n "$(find "$source/configure" -newer config.status)" ]; then
	flags="-O1 -g -fno-omit-frame-pointer $flags"
	"$source/configure" -q --disable-shared --without-cuda CFLAGS="$flags" \
		CXXFLAGS="$flags" "$@"
fi
TSAN_OPTIONS=halt_on_error=1 \
	ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 \
	UBSAN_OPTIONS=print_stacktrace=1 CK_TIMEOUT_MULTIPLIER=20 \
	make -j "$jobs" V=0 VERBOSE=1 check
