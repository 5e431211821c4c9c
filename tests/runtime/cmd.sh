# SPDX-License-Identifier: MIT
# cmd.sh - what the tests of the quire command share; sourced, not run.
# QUIRE in the environment is the command to test; otherwise the one that was built.
set -u
top_srcdir=${top_srcdir:-$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)}
quire=${QUIRE:-${top_builddir:-.}/quire}
if [ ! -x "$quire" ]; then
	echo "no command $quire to test"
	exit 99
fi
requests=$top_srcdir/plans/sample_requests.csv
sample=$top_srcdir/plans/sample.plan
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
	echo "FAIL: $*"
	failures=$((failures + 1))
}

# run CODE ARGUMENTS... - the command ends with CODE; out and err hold what it printed.
# A fault is one line on standard error, success is none.
run() {
	wanted=$1
	shift
	got=0
	"$quire" "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
	[ "$got" -eq "$wanted" ] ||
		fail "quire $*: exit $got, expected $wanted: $(cat "$work/err")"
	lines=$(wc -l <"$work/err")
	if [ "$wanted" -eq 0 ]; then
		[ "$lines" -eq 0 ] || fail "quire $*: $lines lines on standard error"
	else
		[ "$lines" -eq 1 ] || fail "quire $*: $lines lines on standard error"
	fi
}

# says TEXT - the fault of the last run holds TEXT.
says() {
	grep -qF -- "$1" "$work/err" || fail "expected \"$1\", got \"$(cat "$work/err")\""
}

# value KEY - a number or text of the last run's JSON.
value() {
	sed -n 's/^ *"'"$1"'": "\{0,1\}\([^",]*\)"\{0,1\},\{0,1\}$/\1/p' "$work/out"
}

# is KEY VALUE - the last run's JSON has it.
is() {
	[ "$(value "$1")" = "$2" ] || fail "$1 is \"$(value "$1")\", expected \"$2\""
}

# same FILE FILE - the two hold the same.
same() {
	cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

done_testing() {
	[ "$failures" -eq 0 ] || exit 1
	exit 0
}
