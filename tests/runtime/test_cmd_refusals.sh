#!/bin/sh
# SPDX-License-Identifier: MIT
# Bad input and bad usage: exit status 2, one line that names file, line and field,
# nothing written over.
. "$(dirname -- "$0")/cmd.sh"

# bad FILE TEXT - replay refuses it, with TEXT; the file is named, once.
bad() {
	run 2 replay "$1"
	says "$1"
	says "$2"
	[ "$(grep -oF -- "$1" "$work/err" | wc -l)" -eq 1 ] || fail "$1 is named twice"
}

head -n 4 "$sample" >"$work/head"
# spoil NAME SCRIPT - the sample's head after a sed script.
spoil() {
	sed "$2" "$work/head" >"$work/$1"
}

# ---------------------------------------------------------------- files
bad "$work/none" "quire: cannot open \"$work/none\": No such file"
mkdir "$work/folder"
bad "$work/folder" "Is a directory"
: >"$work/empty"
bad "$work/empty" "empty"
run 2 info "$work/empty"
says "$work/empty: "
run 2 import "$work/empty" -o "$work/x"
says "$work/empty: "
echo hello >"$work/text"
bad "$work/text" "$work/text:1: not a plan trace"
run 2 info "$work/text"
says "$work/text:1: neither a plan trace nor a request trace"
run 2 import "$work/text" -o "$work/x"
says "$work/text:1: not a request trace"
run 2 replay "$requests"
says "$requests:1: not a plan trace"
run 2 import "$sample" -o "$work/x"
says "$sample:1: a plan trace, not a request trace"
(echo '{"quire":"plan-trace","version":7}' && cat "$work/head") >"$work/later"
run 2 info "$work/later"
says "$work/later:1: version must be"

# What is found late in a request trace, when a part of the plan trace is written.
for fault in '{"timestamp":2,"input_length":513,"output_length":1,"hash_ids":[7]}' 'no'; do
	(for _ in 1 2 3; do
		echo '{"timestamp":1,"input_length":512,"output_length":1,"hash_ids":[7]}'
	done && echo "$fault") >"$work/late"
	run 2 import "$work/late" -o "$work/x"
	says "$work/late:4: "
	run 2 info "$work/late"
	says "$work/late:4: "
	run 0 import -q --first 3 "$work/late" -o "$work/first"
	rm "$work/first"
done

# Two sessions in one file.
turn='{"block_size":4,"requests":[{"t":0,"type":"n","in":4,"out":1,"hash_ids":[1]}]}'
printf '%s\n%s\n' "$turn" "$turn" >"$work/sessions"
run 2 import "$work/sessions" -o "$work/x"
says "$work/sessions:2: must be blank: a session is one line"
run 2 info "$work/sessions"
says "$work/sessions:2: "
[ ! -e "$work/x" ] || fail "a plan trace of two sessions"
echo '{"quiet":1,"block_size":4,"requests":[{"type":"no"}]}' >"$work/sessions"
run 2 info "$work/sessions"
says "$work/sessions:1: requests[0].type must be"

# Requests none of which can be served.
cat >"$work/none.csv" <<'END'
TIMESTAMP,ContextTokens,GeneratedTokens
2023-01-01 00:00:00,0,0
2023-01-01 00:00:01,1000,1
END
run 2 import "$work/none.csv" --pages 32 -o "$work/x"
says "$work/none.csv: no request can be served: each of the 2 has no tokens, more than 496 tokens or more than the 31 pages of 16"
run 0 import -q "$work/none.csv" --pages 64 -o "$work/one.plan"
run 2 import -q "$work/none.csv" --seq-tokens 1000 -o "$work/one.plan"
says "more than 1000 tokens"
grep -q '"request":1' "$work/one.plan" || fail "a trace was replaced by one without steps"

cp "$requests" "$work/only.csv"
run 2 import "$work/only.csv" -o "$work/only.csv"
says "$work/only.csv: is the request trace itself"
cmp -s "$requests" "$work/only.csv" || fail "the request trace was written over"
if [ "$(id -u)" -ne 0 ]; then
	cp "$work/head" "$work/locked"
	chmod 0 "$work/locked"
	bad "$work/locked" "Permission denied"
else
	echo "run as root: an unreadable file was not tested"
fi

# ---------------------------------------------------------------- lines and fields
(cat "$work/head" && echo 'not json') >"$work/notjson"
bad "$work/notjson" "$work/notjson:5: must be one JSON object"
(cat "$work/head" && echo '{"do":"dance"}') >"$work/unknown"
bad "$work/unknown" "$work/unknown:5: do must be open, close, submit, reset, rewind, release_front"
(cat "$work/head" && echo '{"do":"offload"}') >"$work/reserved"
bad "$work/reserved" "$work/reserved:5: do: \"offload\" is reserved"
(cat "$work/head" && echo '{"do":"promote"}') >"$work/promote"
bad "$work/promote" "$work/promote:5: ticket must be an integer 1.."
(cat "$work/head" && echo '{"do":"rewind","request":0,"tokens":-1}') >"$work/rewind"
bad "$work/rewind" "$work/rewind:5: tokens must be an integer 0.."
(cat "$work/head" && echo '{"do":"submit","segments":[[0,"x",1,0]],"speculative":true}') \
	>"$work/nameless"
bad "$work/nameless" "$work/nameless:5: id must be there"
run 2 info "$work/nameless"
says "$work/nameless:5: id must be there"
(cat "$work/head" && echo '{"do":"submit","segments":[[0,"x",99999999,0]]}') >"$work/span"
bad "$work/span" "$work/span:5: segments[0]: span must be"
(cat "$work/head" && echo '{"do":"open","request":-5}') >"$work/id"
bad "$work/id" "$work/id:5: request must be"
(cat "$work/head" && printf '{"do":"open"') >"$work/cut"
bad "$work/cut" "$work/cut:5: truncated"
run 2 info --json "$work/cut"
says "$work/cut:5: truncated"
is commands 3 # three lines behind the header are whole
run 2 info --quiet "$work/cut"
says "$work/cut:5: truncated"
[ ! -s "$work/out" ] || fail "info --quiet of a damaged trace printed numbers"
run 2 replay --check "$work/cut"
says "$work/cut:5: truncated"
spoil zero '1s/"page_size":16/"page_size":0/'
bad "$work/zero" "$work/zero:1: cache.page_size must be an integer 1.."
spoil wide '1s/"page_size":16/"page_size":3000000000/'
bad "$work/wide" "$work/wide:1: cache.page_size must be an integer 1.."
spoil pages '1s/"num_pages":512/"num_pages":16777216/; 1s/"head_dim":8/"head_dim":999999/'
bad "$work/pages" "$work/pages:1: pool.num_pages 16777216 takes"
spoil pages '1s/"head_dim":8/"head_dim":999999/'
run 2 replay --pages 16777216 "$work/pages"
says "quire: $work/pages: --pages 16777216 takes"
run 2 replay --pages 16777216 --jobs 2 "$work/pages"
says "quire: $work/pages: --pages 16777216 takes 1073740750258176 bytes in each of 2 jobs"
spoil huge '1s/"head_dim":8/"head_dim":2147483647/
	1s/"num_kv_heads":1/"num_kv_heads":2147483647/'
bad "$work/huge" "$work/huge:1: "
spoil requests '1s/"requests":32/"requests":2000000/'
bad "$work/requests" "$work/requests:1: limits.requests must be an integer 1..1048576"

# ---------------------------------------------------------------- usage
run 2
says "a command is wanted"
run 2 fly
says '"fly" is no command'
run 2 --foo
says '"--foo": not an option here'
for command in replay import info; do
	run 2 "$command"
	says "is wanted; see \"quire $command --help\""
	run 2 "$command" --foo "$sample"
	says '"--foo": not an option here'
	run 2 "$command" a b
	says '"b" is one too many'
done
run 2 replay "$sample" --depth
for value in 0 65 -1 abc 2x '' 99999999999999999999; do
	run 2 replay "--depth=$value" "$sample"
	says "--depth must be an integer 1..64, got \"$value\""
done
run 2 replay --device gpu "$sample"
says 'device: none of cpu, cpu:inline, cpu:N, cuda, cuda:N'
run 2 replay --threads mine "$sample"
run 2 replay --pages 0 "$sample"
run 2 replay --pages 1 "$sample"
says "quire: $sample: --pages must be at least 2, got 1: the first page is the sink"
run 2 replay --seed-delays 0 "$sample"
run 2 import "$requests"
says "-o TRACE is wanted"
for value in 0 3000000000; do
	run 2 import --page-size "$value" "$requests" -o "$work/x"
	says "--page-size must be an integer 1..1048576, got \"$value\""
	run 2 info --page-size "$value" "$requests"
done
run 2 import --rows 10 --tokens 9 "$requests" -o "$work/x"
run 2 import --dtype f64 "$requests" -o "$work/x"
run 2 import --layout XYZ "$requests" -o "$work/x"
[ ! -e "$work/x" ] || fail "a refused import wrote a file"

# ---------------------------------------------------------------- output
run 2 import "$requests" -o "$work/no/such/folder"
for option in --outcomes --record --timeline; do
	run 2 replay $option "$work/no/such/folder" "$sample"
	says "quire: cannot create a file beside \"$work/no/such/folder\": No such file"
done
# Every output has a file of its own, and what is written from the start is not the input.
run 2 replay --outcomes "$work/x" --record "$work/x" "$sample"
says "$work/x: cannot be both --outcomes and --record"
run 2 replay --outcomes "$work/x" --timeline "$work/x" "$sample"
says "$work/x: cannot be both --outcomes and --timeline"
run 2 replay --record "$work/x" --timeline "$work/x" "$sample"
says "$work/x: cannot be both --record and --timeline"
[ ! -e "$work/x" ] || fail "a file was made of two outputs"
cp "$sample" "$work/own"
ln "$work/own" "$work/other"
ln -s own "$work/link"
for name in own other link; do
	for option in --record --timeline; do
		run 2 replay $option "$work/$name" "$work/own"
		says "$work/$name: is the trace itself"
	done
done
same "$sample" "$work/own"
run 0 replay --quiet --outcomes "$work/own" "$work/own" # whole before it is replaced
run 0 replay --quiet "$work/own"
# Numbers and a timeline do not mix.
"$quire" replay --json --timeline - "$sample" >"$work/json" 2>"$work/err" || fail "--timeline -"
[ "$(tail -n 1 "$work/json")" = "]" ] || fail "numbers behind a timeline"
grep -q '"status": "ok"' "$work/err" || fail "no numbers beside a timeline"
echo keep >"$work/keep"
cp "$work/keep" "$work/kept"
run 2 import "$work/text" -o "$work/kept"
same "$work/keep" "$work/kept"
run 2 replay --outcomes "$work/kept" "$work/notjson"
same "$work/keep" "$work/kept"
ls "$work"/*.tmp >/dev/null 2>&1 && fail "temporary files are left"

# What is read is not written over, nor what is written; the outcomes are the trace again.
cp "$sample" "$work/read"
ln "$work/read" "$work/linked"
for option in --record --timeline; do
	for name in "$work/read" "$work/./read" "$work/linked"; do
		run 2 replay -q $option "$name" "$work/read"
		says "$name: is the trace itself; name another file for $option"
	done
	got=0
	"$quire" replay -q $option "$work/read" - <"$work/read" 2>"$work/err" || got=$?
	[ "$got" -eq 2 ] || fail "$option over standard input: exit $got"
	says "is the trace itself"
done
same "$sample" "$work/read"
for two in "--outcomes --record" "--outcomes --timeline" "--record --timeline"; do
	# shellcheck disable=SC2086
	set -- $two
	run 2 replay "$1" "$work/both" "$2" "$work/both" "$sample"
	says "$work/both: cannot be both $1 and $2; name another file"
	run 2 replay "$1" "$work/both" "$2" "$work/./both" "$sample"
	says "$work/./both: cannot be both $1 and $2"
	[ ! -e "$work/both" ] || fail "$two: one file for both was written"
	run 2 replay "$1" "$work/read" "$2" "$work/linked" "$sample"
	says "$work/linked: cannot be both $1 and $2"
done
run 2 replay --outcomes - --record - "$sample"
says "-: cannot be both --outcomes and --record"
for output in pipe file; do
	run_both="$quire replay --record - --timeline /dev/stdout $sample"
	if [ $output = pipe ]; then
		$run_both 2>"$work/err" | cat >"$work/out"
	else
		$run_both >"$work/out" 2>"$work/err"
	fi
	says "/dev/stdout: cannot be both --record and --timeline"
	[ ! -s "$work/out" ] || fail "two outputs in one $output"
done
(cd "$work" && "$quire" replay -q --record - --timeline ./- "$sample" >out) ||
	fail "./- is a file, - is none"
tail -n 1 "$work/-" | grep -q '^\]$' || fail "no timeline in ./-"
run 0 replay -q --outcomes "$work/read" "$work/read"
cp "$requests" "$work/read"
got=0
"$quire" import -q - -o "$work/read" <"$work/read" 2>"$work/err" || got=$?
[ "$got" -eq 2 ] || fail "import over standard input: exit $got"
says "$work/read: is the request trace itself; name another file"
same "$requests" "$work/read"

# unwritten TARGET... - what cannot be written to standard output is a fault.
unwritten() {
	for target in "$@"; do
		for command in "info $sample" "replay $sample" "replay --json $sample" \
			"import -q $requests -o -" --help "replay --help" --version; do
			got=0
			# shellcheck disable=SC2086
			if [ "$target" = closed ]; then
				"$quire" $command >&- 2>"$work/err" || got=$?
			elif [ "$target" = unread ]; then
				"$quire" $command >&4 2>"$work/err" || got=$?
			else
				"$quire" $command >"$target" 2>"$work/err" || got=$?
			fi
			[ "$got" -eq 2 ] || fail "quire $command into $target: exit $got"
			[ "$(wc -l <"$work/err")" -eq 1 ] ||
				fail "quire $command into $target"
		done
	done
}
unwritten closed
mkfifo "$work/fifo"
exec 3<>"$work/fifo" 4>"$work/fifo" 3>&- # descriptor 4: a pipe that nobody reads
unwritten unread
exec 4>&-
if [ -c /dev/full ]; then
	unwritten /dev/full
else
	echo "no /dev/full here: a full disk was not tested"
fi

# A file that may not grow is a write that fails, and leaves nothing.
got=0
(
	ulimit -f 1
	exec "$quire" import -q "$requests" -o "$work/limited"
) 2>"$work/err" || got=$?
[ "$got" -eq 2 ] || fail "import into a file that may not grow: exit $got"
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "import into a file that may not grow"
for left in "$work"/limited*; do
	[ ! -e "$left" ] || fail "$left was left behind"
done

# More pages than anybody has: refused at once, not worked on for hours.
{
	echo TIMESTAMP,ContextTokens,GeneratedTokens
	for _ in 1 2 3; do
		echo '2023-01-01 00:00:00.0000000,1,2147483647'
	done
} >"$work/endless"
run 2 info --page-size 1 "$work/endless"
says "$work/endless: the requests up to here need more than 2^32 pages"

# ---------------------------------------------------------------- help
for command in '' replay import info; do
	# shellcheck disable=SC2086
	run 0 $command --help
	grep -q '^Usage: quire' "$work/out" || fail "no usage in the help of \"$command\""
	grep -q '^  quire ' "$work/out" || fail "no example in the help of \"$command\""
done
# Other ways to ask for it.
for command in '' replay import info diff shrink stress; do
	# shellcheck disable=SC2086
	run 0 $command --help
	mv "$work/out" "$work/help"
	for way in "$command -h" "$command -?" "help $command"; do
		# shellcheck disable=SC2086
		run 0 $way
		same "$work/help" "$work/out"
	done
done
run 2 help fly
says '"fly" is no command'
run 0 --version
done_testing
