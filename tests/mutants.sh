#!/bin/sh
# SPDX-License-Identifier: MIT
# mutants.sh [--thread] [NAME...] - plants each fault of tests/mutants (or those named) in a
# copy of the tree, one at a time, and demands that every test named with it fails.  With
# --thread the faults are those of tests/mutants_thread, and the tests run under
# ThreadSanitizer.  Exits 1 on a survivor, 2 when the list itself is wrong.
set -eu
source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
seconds=300
list=mutants
flags='-O1 -g'
if [ "${1:-}" = --thread ]; then
	shift
	list=mutants_thread
	flags='-O1 -g -fsanitize=thread'
	TSAN_OPTIONS=halt_on_error=1
	CK_TIMEOUT_MULTIPLIER=20
	export TSAN_OPTIONS CK_TIMEOUT_MULTIPLIER
fi
QUIRE_NO_SHRINK=1 # a failing list need not be made smaller
export QUIRE_NO_SHRINK
jobs=$(nproc 2>/dev/null || echo 2)

fail() {
	echo "mutants.sh: $*" >&2
	exit 2
}

fail_with_log() {
	cat "$work/log" >&2
	fail "$@"
}

copy_and_configure() {
	mkdir "$tree" "$build"
	(cd "$source" && tar -cf - --exclude=.git --exclude=./build \
		--exclude=./config.status --exclude='*.l[ao]' --exclude='*.o' .) |
		(cd "$tree" && tar -xf -)
	[ -x "$tree/configure" ] || fail "no configure: run ./bootstrap build first"
	(cd "$build" && "$tree/configure" -q --disable-shared --without-cuda \
		CFLAGS="$flags" CXXFLAGS="$flags") >"$work/log" 2>&1 ||
		fail_with_log "configure failed"
}

# build_tests TESTS - builds those that are programs
build_tests() {
	programs=
	for test in $1; do
		case $test in
		*/test_cuda_*.sh) programs="$programs tests/runtime/quire_cuda" ;;
		*/test_record_random.sh)
			programs="$programs quire tests/runtime/random_recording"
			;;
		*/test_record_timeline.sh)
			programs="$programs tests/runtime/print_timeline"
			;;
		*.sh) programs="$programs quire" ;;
		*) programs="$programs $test" ;;
		esac
	done
	# shellcheck disable=SC2086
	make -C "$build" -j "$jobs" $programs >"$work/log" 2>&1
}

run_test() {
	case $1 in
	*.sh) set -- sh "$tree/$1" ;;
	*) set -- "./$1" ;;
	esac
	(cd "$build" && srcdir=$tree top_srcdir=$tree top_builddir=$build \
		timeout -k 5 "$seconds" "$@") >"$work/log" 2>&1
}

# split LINE - name|file|sed expression|tests; the expression may hold more bars
split() {
	name=${1%%|*}
	rest=${1#*|}
	file=${rest%%|*}
	rest=${rest#*|}
	tests=${rest##*|}
	expression=${rest%|*}
	[ "$rest" != "$expression" ] || fail "not name|file|expression|tests: $1"
	[ -f "$tree/$file" ] || fail "$name: no file $file"
}

# selected NAME - was it asked for?
selected() {
	case " $wanted " in
	'  ' | *" $1 "*) return 0 ;;
	esac
	return 1
}

# Every test passes while nothing is wrong; otherwise it would kill anything.
check_baseline() {
	all=$(printf '%s\n' "$lines" | sed 's/.*|//' | tr ' ' '\n' | sort -u)
	build_tests "$all" || fail_with_log "the tree does not build"
	for test in $all; do
		run_test "$test" || fail_with_log "$test fails without a fault"
	done
}

# try_mutant LINE - plants it, runs its tests, takes it out; adds to the table
try_mutant() {
	split "$1"
	cp -p "$tree/$file" "$work/original"
	sed -e "$expression" "$work/original" >"$tree/$file"
	! cmp -s "$work/original" "$tree/$file" || fail "$name: changes nothing"
	build_tests "$tests" || fail_with_log "$name: does not build"
	for test in $tests; do
		if run_test "$test" 2>/dev/null; then
			verdict=survived
			survivors=$((survivors + 1))
		else
			verdict=killed
		fi
		printf '%-8s  %-32s  %s\n' "$verdict" "$name" "$test"
	done
	cat "$work/original" >"$tree/$file"
}

wanted=$*
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
tree=$work/tree
build=$work/build
survivors=0
lines=$(grep -v -e '^#' -e '^$' "$source/tests/$list" |
	while IFS= read -r line; do
		! selected "${line%%|*}" || printf '%s\n' "$line"
	done)
[ -n "$lines" ] || fail "no such mutant: $wanted"
copy_and_configure
check_baseline
while IFS= read -r line; do
	try_mutant "$line" </dev/null
done <<END
$lines
END
echo "$survivors survived"
[ "$survivors" -eq 0 ]
