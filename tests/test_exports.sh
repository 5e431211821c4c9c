#!/bin/sh
# SPDX-License-Identifier: MIT
# The shared library exports the functions that installed headers declare QUIRE_API, and
# nothing else; and it lacks none of its own.
set -eu
public_headers=${public_headers?run it with make check}
library=${top_builddir:-.}/.libs/libquire.so
if [ ! -e "$library" ]; then
	echo "skipped: the shared library is not built"
	exit 77
fi
if ! command -v nm >/dev/null; then
	echo "skipped: nm is not installed"
	exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Declarations end with a semicolon; the first quire_name( of one is its function.
cd "${top_srcdir:-.}"
for header in $public_headers; do
	sed -e '/^[[:space:]]*#/d' "$header" | tr '\n' ' ' |
		sed -e 's,/\*[^*]*\*\**\([^/*][^*]*\*\**\)*/,,g' | tr ';' '\n' |
		sed -n 's/.*QUIRE_API[^(]*[^a-z0-9_]\(quire_[a-z0-9_]*\)(.*/\1/p'
done | sort >"$work/declared"
nm -D --defined-only "$library" | awk '{ print $NF }' | sort >"$work/exported"

if [ ! -s "$work/declared" ]; then
	echo "no QUIRE_API function found in: $public_headers"
	exit 1
fi
comm -23 "$work/declared" "$work/exported" >"$work/lacking"
comm -13 "$work/declared" "$work/exported" >"$work/surplus"
nm -D --undefined-only "$library" | awk '$NF ~ /^quire_/ { print $NF }' >"$work/undefined"

sed 's/^/declared, not exported: /' "$work/lacking"
sed 's/^/exported, not declared: /' "$work/surplus"
sed 's/^/used, not there: /' "$work/undefined"
[ ! -s "$work/lacking" ] && [ ! -s "$work/surplus" ] && [ ! -s "$work/undefined" ]
