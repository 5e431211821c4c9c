#!/bin/sh
# SPDX-License-Identifier: MIT
# The first C program of the README, and that of docs/cache.md, compile without a warning
# against the library just built, run, and print what they say they print.
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

# prints FILE LINE - the first C program of FILE does
prints() {
	sed -n '/^```c$/,/^```$/p' "${top_srcdir:-.}/$1" | sed -e 1d -e '/^```$/,$d' \
		>"$work/program.c"
	if [ ! -s "$work/program.c" ]; then
		echo "$1 has no block that begins with \`\`\`c"
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
	if ! grep -qx "$2" "$work/output"; then
		echo "$1 should print \"$2\"; it printed:"
		cat "$work/output"
		exit 1
	fi
}

prints README.md 'read back 20 tokens'
# 17 * 8 = 136 = 1.0625 * 2^7: exponent 127 + 7, mantissa 0001000
prints docs/cache.md 'token 17 begins with bf16 0x4308'
prints docs/cache.md '4 dimensions, 4 tokens'
