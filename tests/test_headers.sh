#!/bin/sh
# SPDX-License-Identifier: MIT
# Every public header compiles by itself, without a warning, as C11 and (where there is a
# C++ compiler) as C++11; DLPack's also behind another copy of what it declares.
set -eu
public_headers=${public_headers?run it with make check}
include=${top_builddir?run it with make check}/include
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# compiles FILE COMPILER... - does it, without a warning?
compiles() {
	file=$1
	shift
	"$@" -I"$include" -Wall -Wextra -Werror -fsyntax-only "$file"
}

# a header that leans on its includer must be found
echo 'int f(size_t n);' >"$work/wrong.c"
# The compilers are commands with their options.
# shellcheck disable=SC2086
if compiles "$work/wrong.c" $CC -std=c11 2>/dev/null; then
	echo "a wrong header compiles"
	exit 1
fi
wrong=0
for header in $public_headers; do
	case $header in
	runtime/quire.h) name=quire.h ;;
	*) name=quire/$header ;;
	esac
	for suffix in c cpp; do
		printf '#include <%s>\nextern int one;\n' "$name" >"$work/one.$suffix"
	done
	# shellcheck disable=SC2086
	compiles "$work/one.c" $CC -std=c11 -Wpedantic || wrong=1
	# shellcheck disable=SC2086
	[ -z "$test_cxx" ] || compiles "$work/one.cpp" $test_cxx -std=c++11 || wrong=1
done

# DLPack's declarations may have come from another copy of its header, which has its guard.
{
	sed -n '/^typedef/,/^}/p; /^#define DLPACK/p' "$include/quire/kernels/dlpack.h"
	echo '#include <quire/kernels/cache.h>'
	echo 'extern DLManagedTensor *one;'
} | sed '1i #include <stdint.h>' >"$work/copy.c"
grep -q '^typedef struct DLManagedTensor' "$work/copy.c" || wrong=1
# shellcheck disable=SC2086
compiles "$work/copy.c" $CC -std=c11 || wrong=1
exit "$wrong"
