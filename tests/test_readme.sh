#!/bin/sh
# SPDX-License-Identifier: MIT
# The first C program of the README compiles without a warning against the library just
# built, runs, and prints what it says it prints.
set -eu
readme=${top_srcdir:-.}/README.md
build=${top_builddir?run it with make check}
said='read back 20 tokens'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# configured NAME - the value that configure gave to a variable
configured() {
	echo "@$1@" | "$build/config.status" -q --file=-
}

sed -n '/^```c$/,/^```$/p' "$readme" | sed -e 1d -e '/^```$/,$d' >"$work/program.c"
if [ ! -s "$work/program.c" ]; then
	echo "README.md has no block that begins with \`\`\`c"
	exit 1
fi
cflags=$(configured CFLAGS)
# libtool cannot link by a path that has a space.
ln -s "$build" "$work/build"
# Compiler and flags are words, several perhaps.
# shellcheck disable=SC2086
{
	$CC $cflags -std=c11 -Wall -Wextra -Werror -I"$build/include" \
		-c -o "$work/program.o" "$work/program.c"
	"$work/build/libtool" --silent --tag=CC --mode=link $CC $cflags -no-install \
		-o "$work/program" "$work/program.o" "$work/build/libquire.la"
}
"$work/program" >"$work/output"
if ! grep -qx "$said" "$work/output"; then
	echo "it should print \"$said\"; it printed:"
	cat "$work/output"
	exit 1
fi
