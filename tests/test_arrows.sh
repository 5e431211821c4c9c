#!/bin/sh
# SPDX-License-Identifier: MIT
# Includes point one way: alloc, kernels and plans know only themselves and the leaf
# headers, leaf headers know no header of the project, and neither public headers nor .cu
# files know ck or liburcu.  Names file and line of every wrong arrow.
set -eu

# wrong_arrows DIR - prints the wrong arrows of the tree in DIR
# shellcheck disable=SC2016
wrong_arrows() {
	(cd "$1" && find alloc kernels plans runtime tests \
		\( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cpp' \) -print |
		sort | xargs awk '
		function wrong(why) {
			printf "%s:%d: %s %s\n", FILENAME, FNR, target, why
		}
		BEGIN {
			leaf = "^runtime/(status|assert|limits|sanitize|refuse_impl|wake_impl)\\.h$"
			ours = "^(alloc|kernels|plans|runtime|tests)/|^quire\\.h$"
		}
		FNR == 1 {
			room = FILENAME
			sub("/.*", "", room)
			is_public = room != "tests" &&
				FILENAME ~ /\.h$/ && FILENAME !~ /_impl\.h$/
		}
		/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
			target = $0
			gsub("^[^<\"]*[<\"]|[>\"].*$", "", target)
			if (target ~ "^(ck_|ck/|urcu)" &&
			    (is_public || FILENAME ~ /\.cu$/))
				wrong("belongs in a .c file or a private header")
			path = target
			sub("^quire/", "", path)
			if (path !~ ours) {
				if ($0 ~ "\"" && path != "config.h" && room != "tests")
					wrong("is not named by its folder")
				next
			}
			if (FILENAME ~ leaf && !(FILENAME ~ /refuse_impl/ &&
			                         path == "runtime/status.h"))
				wrong("in a leaf header")
			else if (path ~ "^tests/" && room != "tests")
				wrong("outside tests/")
			else if (room ~ "^(alloc|kernels|plans)$" && path !~ leaf &&
			         path !~ "^" room "/")
				wrong("is not for " room "/")
		}')
}

# must_find FILE LINE - a tree with that line alone has exactly one wrong arrow
must_find() {
	mkdir -p "$made_up/alloc" "$made_up/kernels" "$made_up/plans" "$made_up/runtime" \
		"$made_up/tests"
	echo "$2" >"$made_up/$1"
	found=$(wrong_arrows "$made_up")
	rm "$made_up/$1"
	case $found in
	"$1:1: "*) ;;
	*)
		echo "made-up $1 with $2: not found"
		exit 1
		;;
	esac
}

# must_pass FILE LINE - a tree with that line alone has no wrong arrow
must_pass() {
	echo "$2" >"$made_up/$1"
	found=$(wrong_arrows "$made_up")
	rm "$made_up/$1"
	if [ -n "$found" ]; then
		echo "made-up $1 with $2: $found"
		exit 1
	fi
}

made_up=$(mktemp -d)
trap 'rm -rf "$made_up"' EXIT
must_find alloc/pool.c '#include <quire/plans/plan.h>'
must_find alloc/pool.c '#include "kernels/cache_impl.h"'
must_find kernels/cache.h '#include <quire/runtime/runtime.h>'
must_find kernels/move.cu '# include <quire.h>'
must_find plans/plan.c '#include "runtime/registry_impl.h"'
must_find plans/plan.c '#include "plan_impl.h"'
must_find runtime/limits.h '#include <quire/runtime/status.h>'
must_find runtime/refuse_impl.h '#include <quire/runtime/limits.h>'
must_find runtime/runtime.h '#include <urcu/list.h>'
must_find kernels/move.cu '#include <ck_pr.h>'
must_find runtime/runtime.c '#include "tests/alloc/model.h"'
must_pass alloc/pool.c '#include <quire/runtime/status.h>'
must_pass plans/plan.c '#include "plans/plan_impl.h"'
must_pass runtime/refuse_impl.h '#include <quire/runtime/status.h>'
must_pass runtime/planner_impl.h '#include <urcu/rculfhash.h>'
must_pass runtime/planner.c '#include <quire/plans/plan.h>'
must_pass kernels/cache.c '#include "config.h"'
must_pass tests/test_pool.c '#include "random.h"'

found=$(wrong_arrows "${top_srcdir:-.}")
if [ -n "$found" ]; then
	echo "$found"
	exit 1
fi
