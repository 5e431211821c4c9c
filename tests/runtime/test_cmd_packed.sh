#!/bin/sh
# SPDX-License-Identifier: MIT
# Traces compressed with zstd, whatever the command does with them: written where the name
# says so, found by content.
. "$(dirname -- "$0")/cmd.sh"

# piped COMMAND... - the command on standard input; out holds what it printed.
piped() {
	"$quire" "$@" >"$work/out" 2>"$work/err" || fail "quire $*: $(cat "$work/err")"
}

run 0 import -q "$requests" -o "$work/plain"
run 0 import -q "$requests" -o "$work/packed.zst"
[ "$(head -c 4 "$work/packed.zst" | od -An -tx1 | tr -d ' \n')" = 28b52ffd ] ||
	fail "packed.zst does not begin as zstd does"
[ $(($(wc -c <"$work/packed.zst") * 4)) -lt "$(wc -c <"$work/plain")" ] ||
	fail "packed.zst is not a quarter of what it holds"

run 0 info --json "$work/plain"
cp "$work/out" "$work/about"
run 0 info --json "$work/packed.zst"
same "$work/out" "$work/about"
piped info --json - <"$work/packed.zst"
same "$work/out" "$work/about"
# The name does not count.
cp "$work/packed.zst" "$work/other"
run 0 info --json "$work/other"
same "$work/out" "$work/about"

run 0 replay --json --check "$work/plain"
digest=$(value digest)
[ -n "$digest" ] || fail "no digest"
run 0 replay --json --check "$work/packed.zst"
is digest "$digest"
piped replay --json --check - <"$work/packed.zst"
is digest "$digest"
piped replay --json --check - <"$work/plain"
is digest "$digest"

run 0 replay -q --outcomes "$work/recorded.zst" "$work/packed.zst"
run 0 replay -q --outcomes "$work/recorded" "$work/plain"
run 0 info --json "$work/recorded"
cp "$work/out" "$work/about"
run 0 info --json "$work/recorded.zst"
same "$work/out" "$work/about"
run 0 replay --json "$work/recorded.zst"
is digest "$digest"

head -c 3000 "$work/packed.zst" >"$work/cut"
for command in info replay; do
	run 2 "$command" "$work/cut"
	says "truncated: the file ends in the middle of a zstd frame"
done
done_testing
