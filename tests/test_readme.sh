#!/bin/sh
# SPDX-License-Identifier: MIT
# The C program of the README, and those of docs/cache.md and docs/runtime.md, compile without
# a warning against the library just built, run, and print what they say they print.
set -eu
build=${top_builddir?run it with make check}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# configured NAME - the value that configure gave to a variable
configured() {
	echo "@$1@" | "$build/config.status" -q --file=-
}

# libtool cannot link by a path that has a space.
ln -s "$build" "$work/build"
cflags=$(configured CFLAGS)

# prints FILE LINE... - the C program that FILE's blocks make does
prints() {
	file=$1
	shift
	sed -n '/^```c$/,/^```$/p' "${top_srcdir:-.}/$file" | grep -v '^```' \
		>"$work/program.c" || true
	if [ ! -s "$work/program.c" ]; then
		echo "$file has no block that begins with \`\`\`c"
		exit 1
	fi
	# Compiler and flags are words, several perhaps.
	# shellcheck disable=SC2086
	{
		$CC $cflags -std=c11 -Wall -Wextra -Werror -I"$build/include" \
			-c -o "$work/program.o" "$work/program.c"
		"$work/build/libtool" --silent --tag=CC --mode=link $CC $cflags \
			-no-install -o "$work/program" "$work/program.o" \
			"$work/build/libquire.la"
	}
	"$work/program" >"$work/output"
	for line in "$@"; do
		if ! grep -qx "$line" "$work/output"; then
			echo "$file should print \"$line\"; it printed:"
			cat "$work/output"
			exit 1
		fi
	done
}

prints README.md 'read back 20 tokens'
# 17 * 8 = 136 = 1.0625 * 2^7: exponent 127 + 7, mantissa 0001000
prints docs/cache.md 'token 17 begins with bf16 0x4308' '4 dimensions, 4 tokens'
# Each token is the sum of those before: 1 + 2 + 3 + 4 = 10, then every step doubles it, but
# where 1 is written: 1280 + 1.  Last 7 of 15: 160 + 320 + 640 + 1280 + 1 + 1 + 1.  32 pages
# less 2 + 3 of request 1 hold 6 spans of 16; the seventh lacks 1 of its 4.  On record are 2
# opens, 23 submits of which 2 are drafts, a promote, an abandon, a rewind, a release, a reset.
prints docs/runtime.md '10, doubled 6 times: 640' 'main 2560, cfg_text 1281' \
	'1 right, then 10240' 'over the last 7 tokens: 2403' 'NO_PAGES at 96: 1 short' \
	'30 commands on record'
