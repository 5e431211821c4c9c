#!/bin/sh
# SPDX-License-Identifier: MIT
# replay --record and --timeline: what is in them, where they may go, what they leave alone.
# shellcheck disable=SC2154
. "${top_srcdir:-.}/tests/runtime/cmd.sh"

# ---------------------------------------------------------------- what is recorded
commands=$(($(wc -l <"$sample") - 1))
steps=$(grep -c '"do":"submit".*"status":"OK"' "$sample")
run 0 replay -q --record "$work/plain" "$sample"
run 0 replay -q --record "$work/packed.zst" --timeline "$work/timeline" "$sample"
[ "$(head -c 4 "$work/packed.zst" | od -An -tx1 | tr -d ' ')" = 28b52ffd ] ||
	fail "a name that ends in .zst makes no zstd frame"
for file in plain packed.zst; do
	# The sample has outcomes and digests, but neither pages nor times.
	run 0 diff --json "$sample" "$work/$file"
	is aligned "$commands"
	is same_outcome "$commands"
	is pages_in_one "$steps"
	is other_digest 0
	run 0 replay --json "$work/$file"
	is compared "$commands"
	is pages_compared "$steps"
	run 0 replay -q --timing recorded "$work/$file"
done
[ "$(grep -c '"times":\[' "$work/plain")" -eq "$commands" ] || fail "a line without times"
# What ran stays on record, whatever the replay came to.
sed '1,100s/"status":"OK"/"status":"STALE"/' "$sample" >"$work/wrong"
run 1 replay -q --record "$work/short" "$work/wrong"
run 0 info --json "$work/short"
[ "$(value commands)" -ge 1 ] || fail "a replay that diverged has nothing on record"

# lanes FILE - the names in a timeline, sorted; every command is in it once
lanes() {
	python3 - "$1" "$commands" <<'END' || fail "the timeline $1"
import json, sys
events = json.load(open(sys.argv[1]))
lanes = sorted(e["args"]["name"] for e in events if e["name"] == "thread_name")
assert lanes == ["client 1", "device", "executor", "planner"], lanes
asked = sum(e.get("cat") == "client" for e in events)
assert asked == int(sys.argv[2]), asked
END
}
if command -v python3 >/dev/null; then
	lanes "$work/timeline"
else
	echo "no python3 here: the timeline was not read"
fi

# ---------------------------------------------------------------- standard output
for option in --record --outcomes --timeline; do
	for numbers in "" --json; do
		# shellcheck disable=SC2086
		"$quire" replay $numbers $option - "$sample" >"$work/out" 2>"$work/err" ||
			fail "replay $option -"
		[ -s "$work/err" ] || fail "replay $option -: no numbers"
		case $option in
		--timeline) first='[{"ph":"M",' last=']' ;;
		*) first='{"quire":"plan-trace",' last='{"do":"close",' ;;
		esac
		head -n 1 "$work/out" | grep -qF "$first" || fail "$option -: its first line"
		tail -n 1 "$work/out" | grep -qF "$last" || fail "$option -: its last line"
	done
done
[ ! -e ./- ] || fail "a file that is named -"

# ---------------------------------------------------------------- nothing is lost
cp "$sample" "$work/own"
ln -s own "$work/link"
for option in --record --timeline; do
	for name in own link; do
		run 2 replay $option "$work/$name" "$work/own"
		says "$work/$name: is the trace itself; name another file for $option"
	done
done
same "$sample" "$work/own"
run 0 replay -q --outcomes "$work/own" "$work/own" # it takes its place when it is whole
same "$sample" "$work/own"
echo keep >"$work/keep"
for name in new -; do
	for pair in "outcomes record" "outcomes timeline" "record timeline"; do
		run 2 replay "--${pair% *}" "$name" "--${pair#* }" "$name" "$sample"
		says "$name: cannot be both --${pair% *} and --${pair#* }; name another file"
	done
done
[ ! -e new ] || fail "a refused replay made a file"
cp "$work/keep" "$work/kept"
ln -s kept "$work/kept.link"
run 2 replay --record "$work/kept" --timeline "$work/kept.link" "$sample"
says "$work/kept.link: cannot be both --record"
same "$work/keep" "$work/kept"
cp "$work/keep" "$work/kept"
run 2 replay --record "$work/kept" --timeline "$work/no/such/folder" "$sample"
says 'cannot create a file beside "'"$work/no/such/folder"'"'
same "$work/keep" "$work/kept"
run 2 replay --record "$work/no/such/folder" --timeline "$work/kept" "$sample"
same "$work/keep" "$work/kept"
run 2 replay --record /dev/full "$sample"
says 'cannot write to "/dev/full"'

done_testing
