#!/bin/sh
# SPDX-License-Identifier: MIT
# quire shrink, with programs made up for it: what is left, and that nothing else is.
. "$(dirname -- "$0")/cmd.sh"

# All that the command and its programs leave behind would be here.
mkdir "$work/tmp"
TMPDIR=$work/tmp
export TMPDIR

header() {
	echo '{"quire":"plan-trace","version":1,' \
		'"cache":{"layout":"NHD","dtype":"bf16",' \
		'"num_layers":1,"num_kv_heads":1,"head_dim":8,"page_size":4},' \
		'"pool":{"num_pages":'"${1:-64}"',"sink":true},' \
		'"limits":{"rows":8,"tokens":256,"requests":8,"seq_tokens":512,' \
		'"labels":4,"tables":4,"table_pages":64}}'
}

# program NAME - an executable shell script from standard input
program() {
	{
		echo '#!/bin/sh'
		cat
	} >"$work/$1"
	chmod +x "$work/$1"
}

# shrink TRACE NAME [ARGUMENTS...] - with a program, into $work/small
shrink() {
	trace=$1
	name=$2
	shift 2
	run 0 shrink --json -o "$work/small" "$@" "$trace" -- "$work/$name"
	ls "$TMPDIR"/* >/dev/null 2>&1 && fail "$name: $(ls "$TMPDIR") stays behind"
}

# left - the commands of $work/small are those of standard input, and a reader takes them
left() {
	cat >"$work/wanted"
	sed 1d "$work/small" >"$work/got"
	cmp -s "$work/wanted" "$work/got" ||
		fail "expected $(cat "$work/wanted"), got $(cat "$work/got")"
	"$quire" info -q "$work/small" || fail "what is left is no trace"
}

# ---------------------------------------------------------------- two requests
program pair <<'END'
grep -q '"segments".*\[3,.*\[7,' "$1" && exit 3
exit 0
END
shrink "$sample" pair
left <<'END'
{"do":"open","request":3}
{"do":"open","request":7}
{"do":"submit","segments":[[3,"main",1,0],[7,"main",1,0]]}
END
is status done
is failure "exit status 3"
is method reduced
is commands_before "$(($(wc -l <"$sample") - 1))"
is commands_after 3
is segments_after 2
is requests_before "$(grep -c '"open"' "$sample")"
is requests_after 2
is pages_before 512
is pages_after 2
runs=$(value runs)
[ "$runs" -lt 200 ] || fail "$runs runs for two requests"
cp "$work/small" "$work/once"
shrink "$sample" pair # the same every time
same "$work/small" "$work/once"
is runs "$runs"
shrink "$work/once" pair # and no smaller
same "$work/small" "$work/once"
run 0 shrink -o "$work/small" "$sample" -- "$work/pair"
grep -q "^commands  *3 of $(($(wc -l <"$sample") - 1))$" "$work/out" || fail "shrink does not print the commands"
run 0 shrink -q -o "$work/small" "$sample" -- "$work/pair"
[ ! -s "$work/out" ] || fail "--quiet prints"

# The file stands where the braces are, however often, or behind all arguments.
program braces <<'END'
[ "$1" = -f ] && [ "$2" = "file=$3=" ] || exit 0
exec "$(dirname "$0")/pair" "$3"
END
run 0 shrink -o "$work/small" "$sample" -- "$work/braces" -f 'file={}=' '{}'
same "$work/small" "$work/once"
program behind <<'END'
[ "$1" = -q ] && exec "$(dirname "$0")/pair" "$2"
END
run 0 shrink -o "$work/small" "$sample" -- "$work/behind" -q
same "$work/small" "$work/once"
run 0 shrink -o "$work/small" "$sample" -- sh -c '"$0" "$1"' "$work/pair" '{}'
same "$work/small" "$work/once"

# Standard streams, and the name of the output when none is given.
"$quire" shrink -o - - -- "$work/pair" <"$sample" >"$work/small" 2>"$work/err" ||
	fail "shrink of a pipe into a pipe"
same "$work/small" "$work/once"
grep -q '^status  *done$' "$work/err" || fail "the numbers of a pipe are lost"
cp "$sample" "$work/named.plan"
run 0 shrink "$work/named.plan" -- "$work/pair"
same "$work/named.plan.small" "$work/once"
same "$work/named.plan" "$sample"

# What fails whatever it is given is left with nothing.
program always <<'END'
exit 1
END
shrink "$sample" always
left </dev/null

# ---------------------------------------------------------------- the same failure
# Another status, or none, is another failure: ten lines at least, for a status of 3.
program other <<'END'
[ "$(wc -l <"$1")" -ge 10 ] || exit 4
exec "$(dirname "$0")/pair" "$1"
END
shrink "$sample" other
is commands_after 9
"$work/pair" "$work/small"
[ $? -eq 3 ] || fail "a smaller trace does not fail"
program crash <<'END'
"$(dirname "$0")/pair" "$1" || kill -SEGV $$
[ "$(wc -l <"$1")" -ge 10 ] || exit 139
END
shrink "$sample" crash
is commands_after 3
echo "$(value failure)" | grep -q '^signal 11 ' || fail "a crash is $(value failure)"
# A hang is one only if the whole trace hangs.
program hang <<'END'
"$(dirname "$0")/pair" "$1" || exec sleep 100
END
head -n 70 "$sample" >"$work/short"
program crowd <<'END'
[ "$(grep -c open "$1")" -ge 18 ] || exec sleep 100
exit 5
END
shrink "$work/short" crowd --timeout 1 --runs 5
is failure "exit status 5"
[ "$(grep -c '"open"' "$work/small")" -ge 18 ] || fail "a run that does not end is a failure"
{
	header
	echo '{"do":"open","request":3}'
	echo '{"do":"open","request":7}'
	echo '{"do":"submit","segments":[[3,"main",1,0],[7,"main",1,0]]}'
} >"$work/three"
shrink "$work/three" hang --timeout 1 --runs 4
is failure "no end within 1 s"
sed 1d "$work/three" >"$work/commands"
left <"$work/commands"

# ---------------------------------------------------------------- out of pages
# 63 pages of four tokens: a step that does not fit, and only what is in its way.
{
	header
	for r in 0 1 2 3 4 5 6 7; do
		echo '{"do":"open","request":'$r'}'
		echo '{"do":"submit","segments":[['$r',"main",20,0]]}'
	done
	echo '{"do":"close","request":2}'
	echo '{"do":"submit","segments":[[1,"main",4,20],[3,"main",120,20]]}'
	echo '{"do":"submit","segments":[[1,"main",4,20]]}'
} >"$work/full"
program shortage <<END
'$quire' replay --json "\$1" | grep -q '"NO_PAGES": ' && exit 1
exit 0
END
shrink "$work/full" shortage
run 0 replay --json "$work/small"
is NO_PAGES 1
is STALE ""
is NO_REQUEST ""
# One line less, and it fits, or is none that a runtime takes.
lines=$(wc -l <"$work/small")
line=1
while [ $line -lt "$lines" ]; do
	line=$((line + 1))
	sed "${line}d" "$work/small" >"$work/less"
	if "$work/shortage" "$work/less"; then
		continue
	fi
	"$quire" replay --json "$work/less" >"$work/out"
	[ -n "$(value NO_REQUEST)$(value STALE)" ] || fail "line $line can go"
done

# Where no outcomes are recorded the lengths tell that a step was refused: the retry of
# request 1 names its length from before.
program last <<'END'
tail -n 1 "$1" | grep -q '^{"do":"submit","segments":\[\[1,"main",.,20\]\]}' && exit 1
exit 0
END
shrink "$work/full" last
left <<'END'
{"do":"open","request":1}
{"do":"submit","segments":[[1,"main",20,0]]}
{"do":"submit","segments":[[1,"main",1,20]]}
END

# ---------------------------------------------------------------- parts of steps
{
	header
	cat <<'END'
{"do":"open","request":1,"prefix":{"tokens":4,"keys":[1]},"times":[1,2]}
{"do":"open","request":2}
{"do":"submit","id":1,"segments":[[1,"main",9,0],[2,"main",9,0],[1,"x",5,0]],"bucket":[64,8],"combined":{"one":["main"],"two":["x"]},"post_forks":[["main","a"],["x","b"]]}
{"do":"submit","id":2,"segments":[[1,"a",0,9],[1,"b",4,5]],"commit":false,"copy":true,"no_wait":true,"pre_forks":[["a","main"]]}
{"do":"reset","request":1,"keep":true}
{"do":"submit","id":3,"segments":[[1,"main",8,0]],"speculative":true,"base":null}
{"do":"submit","id":4,"segments":[[1,"main",8,8]],"speculative":true,"base":3}
{"do":"submit","id":5,"segments":[[1,"main",8,16]],"speculative":true,"base":4}
{"do":"promote","ticket":3}
{"do":"abandon","ticket":4}
{"do":"release_front","request":1,"tokens":7}
{"do":"rewind","request":1,"tokens":1}
{"do":"submit","id":9,"segments":[[1,"main",1,3]]}
{"do":"close","request":1}
END
} >"$work/parts"
# keeps PATTERN - with a program that fails where a line has it; left is standard input
keeps() {
	printf 'grep -q %s "$1" && exit 1\nexit 0\n' "'$1'" | program pattern
	shrink "$work/parts" pattern
	left
}
keeps 'post_forks.*\["x","b"\]' <<'END'
{"do":"open","request":1}
{"do":"submit","segments":[[1,"main",1,0]],"post_forks":[["x","b"]]}
END
keeps 'combined.*"two"' <<'END'
{"do":"open","request":1}
{"do":"submit","segments":[[1,"x",1,0]],"combined":{"two":["x"]}}
END
keeps '"bucket"' <<'END'
{"do":"open","request":1}
{"do":"submit","segments":[[1,"main",1,0]],"bucket":[64,8]}
END
keeps '"commit":false' <<'END'
{"do":"open","request":1}
{"do":"submit","segments":[[1,"b",1,0]],"commit":false}
END
keeps '"copy":true' <<'END'
{"do":"open","request":1}
{"do":"submit","segments":[[1,"b",1,0]],"copy":true}
END
keeps '"no_wait":true' <<'END'
{"do":"open","request":1}
{"do":"submit","segments":[[1,"b",1,0]],"no_wait":true}
END
keeps '"keep":true' <<'END'
{"do":"open","request":1}
{"do":"reset","request":1,"label":"main","keep":true}
END
keeps '"prefix"' <<'END'
{"do":"open","request":1,"prefix":{"tokens":4,"keys":[1]}}
END
keeps '"times"' <<'END'
{"do":"open","request":1,"times":[1,2]}
END
keeps '"id":9' <<'END'
{"do":"open","request":1}
{"do":"submit","id":9,"segments":[[1,"main",1,0]]}
END
# A draft on top of drafts, without them; its fate is gone with what it was of.
keeps '"id":5.*"speculative"' <<'END'
{"do":"open","request":1}
{"do":"submit","id":5,"segments":[[1,"main",1,0]],"speculative":true,"base":null}
END
keeps '"base":4' <<'END'
{"do":"open","request":1}
{"do":"submit","id":4,"segments":[[1,"main",1,0]],"speculative":true,"base":null}
{"do":"submit","id":5,"segments":[[1,"main",1,1]],"speculative":true,"base":4}
END
keeps '"base":3' <<'END'
{"do":"open","request":1}
{"do":"submit","id":3,"segments":[[1,"main",1,0]],"speculative":true,"base":null}
{"do":"submit","id":4,"segments":[[1,"main",1,1]],"speculative":true,"base":3}
END
keeps '"abandon"' <<'END'
{"do":"open","request":1}
{"do":"submit","id":4,"segments":[[1,"main",1,0]],"speculative":true,"base":null}
{"do":"abandon","ticket":4}
END
# A step behind a draft that is abandoned and one that is not.
printf '%s\n' 'grep -q abandon "$1" && grep -q promote "$1" && tail -n 1 "$1" |' \
	'grep -q "1,\"main\",1," && exit 1' 'exit 0' | program pattern
sed '12,13d;15d;s/\[1,"main",1,3\]/[1,"main",1,8]/' "$work/parts" >"$work/drafts"
shrink "$work/drafts" pattern
left <<'END'
{"do":"open","request":1}
{"do":"submit","id":3,"segments":[[1,"main",1,0]],"speculative":true,"base":null}
{"do":"submit","id":4,"segments":[[1,"main",1,1]],"speculative":true,"base":3}
{"do":"promote","ticket":3}
{"do":"abandon","ticket":4}
{"do":"submit","segments":[[1,"main",1,1]]}
END

# ---------------------------------------------------------------- outcomes
# What was recorded is kept as long as the program needs it, and then only the end goes.
program recorded <<'END'
grep -q '"id":3.*"outcome"' "$1" && exit 1
exit 0
END
{
	header
	cat <<'END'
{"do":"open","request":1,"outcome":{"status":"OK","detail":0}}
{"do":"submit","id":3,"segments":[[1,"main",8,0]],"speculative":true,"base":null,"outcome":{"status":"OK","detail":0}}
{"do":"submit","id":4,"segments":[[1,"main",8,8]],"speculative":true,"base":3,"outcome":{"status":"ABANDONED","detail":0}}
{"do":"promote","ticket":3,"outcome":{"status":"OK","detail":0}}
{"do":"open","request":2,"outcome":{"status":"OK","detail":0}}
{"do":"close","request":2,"outcome":{"status":"OK","detail":0}}
END
} >"$work/told"
shrink "$work/told" recorded
is method "end cut off: without outcomes it does not fail"
sed -n '2,3p' "$work/told" >"$work/commands" # 3 was promoted behind the end
left <"$work/commands"
run 0 replay -q "$work/small"
# Without them a command that time had refused is none: request 5 is still 1 long.
program waited <<'END'
grep -q '"tokens":1' "$1" && exit 1
exit 0
END
{
	header
	cat <<'END'
{"do":"open","request":5,"outcome":{"status":"OK"}}
{"do":"submit","segments":[[5,"main",1,0]],"outcome":{"status":"OK"}}
{"do":"submit","id":7,"segments":[[5,"main",9,1]],"speculative":true,"outcome":{"status":"AGAIN"}}
{"do":"submit","id":8,"segments":[[5,"main",9,10]],"speculative":true,"base":7,"outcome":{"status":"ABANDONED"}}
{"do":"abandon","ticket":7}
{"do":"submit","segments":[[5,"main",9,1]],"outcome":{"status":"INVALID","outside":true}}
{"do":"rewind","request":5,"tokens":1,"outcome":{"status":"OK"}}
{"do":"close","request":5,"outcome":{"status":"OK"}}
END
} >"$work/told"
shrink "$work/told" waited --runs 2
sed 1d "$work/small" >"$work/got"
cat >"$work/wanted" <<'END'
{"do":"open","request":5}
{"do":"submit","segments":[[5,"main",1,0]]}
{"do":"rewind","request":5,"label":"main","tokens":1}
{"do":"close","request":5}
END
same "$work/got" "$work/wanted"
is status "runs used up"
is runs 2

# ---------------------------------------------------------------- programs that will not do
# One that fails every second time comes to an end, and what is left failed once.
program whim <<'END'
echo >>"$(dirname "$0")/count"
[ $(($(wc -l <"$(dirname "$0")/count") % 2)) -eq 1 ] && exit 6
exit 0
END
shrink "$sample" whim
is failure "exit status 6"
# One that leaves things: beside its trace, instead of it, and running.
program mess <<'END'
"$(dirname "$0")/pair" "$1" && exit 0
mkdir "$1.d.$$"
echo >"$1.d.$$/file"
chmod 0 "$1"
sleep 1000 &
echo $! >"$(dirname "$0")/pid"
exit 3
END
shrink "$sample" mess
is commands_after 3
if kill -0 "$(cat "$work/pid")" 2>/dev/null; then
	sleep 1 # it was killed, and has to be waited for by somebody else
	case $(ps -o stat= -p "$(cat "$work/pid")" 2>/dev/null) in
	'' | Z*) ;;
	*) fail "what a program left running runs on" ;;
	esac
fi

# One after which no candidate can be written any more: what was found by then is not lost.
program blocks <<'END'
"$(dirname "$0")/pair" "$1" && exit 0
[ "$(wc -l <"$1")" -gt 100 ] || { rm "$1" && mkdir "$1"; }
exit 3
END
rm -f "$work/small"
run 2 shrink -o "$work/small" "$sample" -- "$work/blocks"
says "candidate.plan: a candidate cannot be written"
[ "$(wc -l <"$work/small")" -le 100 ] || fail "a candidate that failed was not kept"
"$work/pair" "$work/small"
[ $? -eq 3 ] || fail "what was written beside a fault does not fail"
ls "$TMPDIR"/* >/dev/null 2>&1 && fail "a fault: $(ls "$TMPDIR") stays behind"

# Somebody asks for an end: the best so far is written, nothing stays behind.
program slow <<'END'
sleep 0.05
echo >>"$(dirname "$0")/runs"
exec "$(dirname "$0")/pair" "$1"
END
"$quire" shrink --json -o "$work/small" "$sample" -- "$work/slow" >"$work/out" \
	2>"$work/err" &
pid=$!
i=0
while [ "$(cat "$work/runs" 2>/dev/null | wc -l)" -lt 8 ] && [ $i -lt 600 ]; do
	sleep 0.05
	i=$((i + 1))
done
kill -TERM $pid
got=0
wait $pid || got=$?
[ "$got" -eq 0 ] || fail "interrupted: exit $got"
is status interrupted
[ "$(value commands_after)" -lt "$(value commands_before)" ] || fail "nothing was written"
"$work/pair" "$work/small"
[ $? -eq 3 ] || fail "what was written in the end does not fail"
ls "$TMPDIR"/* >/dev/null 2>&1 && fail "interrupted: $(ls "$TMPDIR") stays behind"
program at_once <<'END'
kill -TERM $PPID
exec sleep 100
END
run 1 shrink -o "$work/none" "$sample" -- "$work/at_once"
says "interrupted before it was known whether $work/at_once fails on it"
[ ! -e "$work/none" ] || fail "something was written of which nobody knew"

# ---------------------------------------------------------------- refusals
echo keep >"$work/keep"
cp "$work/keep" "$work/kept"
run 1 shrink -o "$work/kept" "$sample" -- true
says "$sample: true does not fail on it"
same "$work/keep" "$work/kept"
run 2 shrink -o "$work/kept" "$sample" -- "$work/no-such-program"
says "$work/no-such-program: cannot be run: No such file or directory"
same "$work/keep" "$work/kept"
run 2 shrink
says 'a plan trace is wanted, and a program to run behind "--"'
run 2 shrink "$sample"
says 'a plan trace is wanted, and a program to run behind "--"'
run 2 shrink -- false # the one word that stands there is the trace
says 'a plan trace is wanted, and a program to run behind "--"'
run 2 shrink "$sample" --
says 'a plan trace is wanted, and a program to run behind "--"'
run 2 shrink "$sample" false
says "\"false\" is one too many"
run 2 shrink - -- false
says "-o FILE is wanted"
run 2 shrink --runs 0 "$sample" -- false
says "--runs must be an integer 1..1000000"
run 2 shrink --timeout 0 "$sample" -- false
says "--timeout must be an integer 1..86400"
cp "$sample" "$work/own"
run 2 shrink -o "$work/own" "$work/own" -- false
says "$work/own: is the trace itself"
same "$work/own" "$sample"
run 2 shrink -o "$work/kept" "$work/none.plan" -- false
says "No such file"
sed '5s/"open"/"dance"/' "$sample" >"$work/wrong"
run 2 shrink -o "$work/kept" "$work/wrong" -- false
says "$work/wrong:5: do must be"
program notes <<'END'
echo >>"$(dirname "$0")/noted"
exit 3
END
run 2 shrink -o "$work/no/where" "$sample" -- "$work/notes"
says "no/where"
[ ! -e "$work/noted" ] || fail "a program ran for an output that cannot be made"
mkfifo "$work/pipe"
cat "$work/pipe" >"$work/piped" &
run 0 shrink --quiet -o "$work/pipe" "$sample" -- "$work/notes"
wait $!
"$quire" info "$work/piped" >/dev/null || fail "an output that is a pipe"
same "$work/keep" "$work/kept"
TMPDIR=$work/nowhere
run 2 shrink -o "$work/kept" "$sample" -- false
says "a folder for candidates cannot be made"
TMPDIR=$work/tmp
if command -v python3 >/dev/null 2>&1; then
	"$quire" shrink --json -o "$work/small" "$sample" -- false |
		python3 -m json.tool >/dev/null || fail "shrink --json is no JSON"
fi

done_testing
