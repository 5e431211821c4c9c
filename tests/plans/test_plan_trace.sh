#!/bin/sh
# SPDX-License-Identifier: MIT
# plan_trace.py, a reader of plan traces written from docs/trace-format.md alone: what quire
# records it finds right, and what was tampered with or damaged it finds.
if ! command -v python3 >/dev/null 2>&1; then
	echo "no python3"
	exit 77
fi
. "$(dirname -- "$0")/../runtime/cmd.sh"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
here=$top_srcdir/tests/plans

# reads CODE FILE [TEXT] - the reader ends with CODE, and what it prints has TEXT in it; a
# fault is one line on standard error.
reads() {
	got=0
	python3 "$here/plan_trace.py" "$2" >"$work/out" 2>"$work/err" || got=$?
	[ "$got" -eq "$1" ] || fail "reading $2: exit $got, expected $1: $(cat "$work/err")"
	lines=$(wc -l <"$work/err")
	[ "$lines" -eq $((got > 0)) ] || fail "reading $2: $lines lines on standard error"
	[ -z "${3:-}" ] || grep -qF -- "$3" "$work/out" "$work/err" ||
		fail "reading $2: expected \"$3\", got \"$(cat "$work/out" "$work/err")\""
}

# ---------------------------------------------------------------- what quire records
run 0 replay --json --outcomes "$work/sample.plan" "$sample"
reads 0 "$work/sample.plan" "digest $(value digest)"
reads 0 "$work/sample.plan" "commands $(value commands)"
reads 0 "$work/sample.plan" "steps $(value steps)"
reads 0 "$work/sample.plan" "takes $(value pages_taken)"
# ... in a pool that is too small.
sed 's/,"outcome":.*}$/}/' "$sample" >"$work/bare.plan"
run 0 replay --json --pages 100 --outcomes "$work/small.plan" "$work/bare.plan"
[ "$(value NO_PAGES)" -gt 0 ] || fail "a pool of 100 pages refuses nothing"
reads 0 "$work/small.plan" "digest $(value digest)"

# ---------------------------------------------------------------- pages, by hand
# Seven pages of four tokens beside the sink.  In the end all of them are somebody's.
cat >"$work/hand.plan" <<'END'
{"quire":"plan-trace","version":1,"cache":{"layout":"NHD","dtype":"bf16","num_layers":1,"num_kv_heads":1,"head_dim":8,"page_size":4},"pool":{"num_pages":8,"sink":true},"limits":{"rows":4,"tokens":64,"requests":1,"seq_tokens":64,"labels":3,"tables":4,"table_pages":64,"row_pages":4}}
{"do":"open","request":1,"outcome":{"status":"OK"}}
{"do":"submit","segments":[[1,"main",6,0]],"outcome":{"status":"OK","pages":[1,2]}}
{"do":"submit","segments":[[1,"main",0,6]],"post_forks":[["main","a"]],"outcome":{"status":"OK","pages":[3]}}
{"do":"rewind","request":1,"label":"a","tokens":4,"outcome":{"status":"OK"}}
{"do":"submit","segments":[[1,"a",3,2]],"outcome":{"status":"OK","pages":[4]}}
{"do":"submit","id":1,"segments":[[1,"main",3,6]],"speculative":true,"base":null,"outcome":{"status":"ABANDONED"}}
{"do":"submit","id":2,"segments":[[1,"a",4,5]],"speculative":true,"base":1,"outcome":{"status":"ABANDONED"}}
{"do":"abandon","ticket":1,"outcome":{"status":"OK"}}
{"do":"promote","ticket":2,"outcome":{"status":"INVALID"}}
{"do":"submit","id":3,"segments":[[1,"a",8,5]],"speculative":true,"base":null,"outcome":{"status":"OK","pages":[5,6]}}
{"do":"promote","ticket":3,"outcome":{"status":"OK"}}
{"do":"reset","request":1,"outcome":{"status":"OK"}}
{"do":"release_front","request":1,"label":"a","tokens":11,"outcome":{"status":"OK"}}
{"do":"submit","segments":[[1,"main",9,0]],"outcome":{"status":"OK","pages":[7,1,2]}}
{"do":"submit","segments":[[1,"b",9,0]],"outcome":{"status":"NO_PAGES","detail":1}}
{"do":"submit","segments":[[1,"a",1,4]],"outcome":{"status":"STALE","detail":5}}
{"do":"submit","segments":[[1,"b",1,0]],"commit":false,"outcome":{"status":"OK","pages":[4]}}
{"do":"submit","segments":[[1,"b",5,0]],"bucket":[8,2],"outcome":{"status":"OK","pages":[3]}}
{"do":"submit","segments":[[1,"b",1,5]],"bucket":[8,5],"outcome":{"status":"LIMIT"}}
{"do":"submit","segments":[[1,"b",1,5],[1,"main",0,9]],"bucket":[8,1],"combined":{"c":["b","main"]},"outcome":{"status":"INVALID"}}
{"do":"submit","segments":[[1,"b",0,5]],"post_forks":[["b","c"]],"outcome":{"status":"LIMIT"}}
{"do":"submit","segments":[[1,"c",0,0]],"outcome":{"status":"NO_LABEL"}}
{"do":"close","request":2,"outcome":{"status":"NO_REQUEST"}}
{"do":"open","request":2,"outcome":{"status":"LIMIT"}}
{"do":"submit","segments":[[1,"main",1,9]],"outcome":{"status":"DEVICE"}}
{"do":"submit","segments":[[1,"main",1,9]],"outcome":{"status":"INVALID","outside":true}}
{"do":"close","request":1,"outcome":{"status":"OK"}}
END
reads 0 "$work/hand.plan" "takes 11"

# both FILE - the reader and quire find it as recorded.
both() {
	run 0 replay --json "$1"
	reads 0 "$1" "digest $(value digest)"
}

# An abandon of 1 that was heard before 2, 3 and 4 were: they rested on it when they were
# given.  The promote of 4 was given later than the abandon.  7 waits for the rewind, which
# waits for the fate of 6.  8 is refused: nothing can rest on it.
{
	head -1 "$work/hand.plan"
	cat <<'END'
{"do":"open","request":1}
{"do":"submit","id":1,"segments":[[1,"main",1,0]],"speculative":true,"base":null,"outcome":{"status":"ABANDONED"}}
{"do":"abandon","ticket":1,"outcome":{"status":"OK"}}
{"do":"submit","id":2,"segments":[[1,"main",1,1]],"speculative":true,"base":1,"outcome":{"status":"ABANDONED"}}
{"do":"promote","ticket":2,"outcome":{"status":"OK"}}
{"do":"promote","ticket":2,"outcome":{"status":"INVALID"}}
{"do":"submit","id":3,"segments":[[1,"main",1,1]],"speculative":true,"base":2,"outcome":{"status":"ABANDONED"}}
{"do":"abandon","ticket":3,"outcome":{"status":"OK"}}
{"do":"submit","id":4,"segments":[[1,"main",1,1]],"speculative":true,"base":1,"outcome":{"status":"ABANDONED"}}
{"do":"promote","ticket":4,"outcome":{"status":"INVALID"}}
{"do":"submit","id":6,"segments":[[1,"main",5,0]],"speculative":true,"base":null,"outcome":{"status":"OK","pages":[1,2]}}
{"do":"rewind","request":1,"tokens":3,"outcome":{"status":"OK"}}
{"do":"submit","id":7,"segments":[[1,"main",7,2]],"speculative":true,"base":null,"outcome":{"status":"OK","pages":[3]}}
{"do":"promote","ticket":7,"outcome":{"status":"OK"}}
{"do":"promote","ticket":6,"outcome":{"status":"OK"}}
{"do":"submit","id":8,"segments":[[1,"main",1,8]],"speculative":true,"base":7,"outcome":{"status":"STALE","detail":9}}
{"do":"submit","id":9,"segments":[[1,"main",1,9]],"speculative":true,"base":8,"outcome":{"status":"ABANDONED"}}
{"do":"promote","ticket":9,"outcome":{"status":"OK"}}
{"do":"promote","ticket":8,"outcome":{"status":"OK"}}
{"do":"submit","segments":[[1,"main",1,9]],"outcome":{"status":"OK","pages":[]}}
END
} >"$work/fates.plan"
both "$work/fates.plan"

# The same, cut: what is OK on record was promoted behind the end, what is ABANDONED was not.
sed '$d' "$work/fates.plan" >"$work/cut.plan"
{
	echo '{"do":"submit","id":10,"segments":[[1,"main",3,9]],"speculative":true,"base":null,"outcome":{"status":"OK","pages":[]}}'
	echo '{"do":"submit","id":11,"segments":[[1,"main",1,12]],"speculative":true,"base":10,"outcome":{"status":"STALE","detail":12}}' | sed 's/1,12\]/1,13]/'
	echo '{"do":"submit","id":12,"segments":[[1,"main",5,12]],"speculative":true,"base":11,"outcome":{"status":"ABANDONED"}}'
} >>"$work/cut.plan"
both "$work/cut.plan"

# A runtime that is shut down ends what it holds; a fate that was given by then is not heard,
# so what came behind it rests on nothing.
{
	sed '$d' "$work/fates.plan"
	echo '{"do":"submit","id":10,"segments":[[1,"main",3,9]],"speculative":true,"base":null,"outcome":{"status":"CANCELLED"}}'
	echo '{"do":"submit","id":11,"segments":[[1,"main",3,9]],"speculative":true,"base":null,"outcome":{"status":"ABANDONED"}}'
	echo '{"do":"abandon","ticket":11,"outcome":{"status":"OK"}}'
	echo '{"do":"submit","id":12,"segments":[[1,"main",1,1]],"speculative":true,"base":null,"outcome":{"status":"STALE","detail":9}}'
	echo '{"do":"submit","id":13,"segments":[[1,"main",3,9]],"speculative":true,"base":12,"outcome":{"status":"CANCELLED"}}'
} >"$work/ended.plan"
both "$work/ended.plan"

both "$work/hand.plan"

# A runtime that fails, or is shut down, ends all that it holds alike, whatever rests on what,
# a refused step too; what had been abandoned before is ABANDONED.  7 rests on nothing: 4 had
# been promoted or abandoned, though nobody heard that.
{
	head -1 "$work/hand.plan"
	cat <<'END'
{"do":"open","request":1}
{"do":"submit","id":1,"segments":[[1,"main",40,0]],"speculative":true,"base":null,"outcome":{"status":"NO_PAGES","detail":3}}
{"do":"promote","ticket":1,"outcome":{"status":"OK"}}
{"do":"submit","id":2,"segments":[[1,"main",9,0]],"speculative":true,"base":1,"outcome":{"status":"CALLBACK"}}
{"do":"submit","id":3,"segments":[[0,"main",0]],"speculative":true,"base":2,"outcome":{"status":"CALLBACK","outside":true}}
{"do":"submit","id":4,"segments":[[1,"main",9,0]],"speculative":true,"base":3,"outcome":{"status":"CANCELLED"}}
{"do":"submit","id":5,"segments":[[1,"main",9,0]],"speculative":true,"base":4,"outcome":{"status":"ABANDONED"}}
{"do":"abandon","ticket":5,"outcome":{"status":"OK"}}
{"do":"submit","id":6,"segments":[[1,"main",9,0]],"speculative":true,"base":5,"outcome":{"status":"ABANDONED"}}
{"do":"submit","id":7,"segments":[[1,"main",9,0]],"speculative":true,"base":null,"outcome":{"status":"DEVICE"}}
{"do":"submit","id":8,"segments":[[1,"main",9,0]],"speculative":true,"base":7,"outcome":{"status":"CALLBACK"}}
{"do":"submit","segments":[[1,"main",9,0]],"outcome":{"status":"DEVICE"}}
END
} >"$work/failed.plan"
both "$work/failed.plan"

# 64 labels, main among them: the next one is LIMIT, now and later.
{
	head -1 "$work/hand.plan"
	echo '{"do":"open","request":1}'
	n=1
	while [ $n -le 66 ]; do
		status=$([ $n -lt 64 ] && echo NO_LABEL || echo LIMIT)
		echo '{"do":"reset","request":1,"label":"l'$n'","outcome":{"status":"'"$status"'"}}'
		n=$((n + 1))
	done
	echo '{"do":"reset","request":1,"label":"l64","outcome":{"status":"LIMIT"}}'
	echo '{"do":"reset","request":1,"label":"l63","outcome":{"status":"NO_LABEL"}}'
	echo '{"do":"submit","segments":[[1,"main",1]],"combined":{"c":["main"]},"outcome":{"status":"LIMIT"}}'
} >"$work/labels.plan"
both "$work/labels.plan"

# ---------------------------------------------------------------- tampered with
# tampered LINE FIELD EXPRESSION FILE - sed changes a recorded outcome.
tampered() {
	sed "$3" "$4" >"$work/tampered.plan"
	! cmp -s "$4" "$work/tampered.plan" || fail "$3 changes nothing"
	reads 1 "$work/tampered.plan" "$work/tampered.plan:$1: outcome.$2: "
}
tampered 3 pages '3s/\[1,2\]}/[2,1]}/' "$work/hand.plan"
tampered 3 pages '3s/\[1,2\]}/[1]}/' "$work/hand.plan"
tampered 6 pages '6s/\[4\]/[3]/' "$work/hand.plan"
tampered 7 status '7s/"ABANDONED"/"OK"/' "$work/hand.plan"
tampered 16 detail '16s/"detail":1/"detail":2/' "$work/hand.plan"
tampered 16 detail '16s/,"detail":1//' "$work/hand.plan"
tampered 20 status '20s/LIMIT/INVALID/' "$work/hand.plan"
tampered 15 pages '13{h;d;};14G' "$work/hand.plan"
tampered 14 status 13d "$work/hand.plan"
first=$(sed -n '/"digest"/{=;q;}' "$work/sample.plan")
tampered "$first" digest "$first"'s/"digest":"\(.\{15\}\)[0-7]/"digest":"\18/
	t
	'"$first"'s/"digest":"\(.\{15\}\)[89a-f]/"digest":"\10/' "$work/sample.plan"
tampered "$first" digest 's/"page_size":16/"page_size":15/' "$work/sample.plan"

# ---------------------------------------------------------------- damaged
head -c 2000 "$work/hand.plan" >"$work/cut.plan"
cut=$(($(wc -l <"$work/cut.plan") + 1))
reads 2 "$work/cut.plan" "$work/cut.plan:$cut: truncated"
sed '5s/rewind/rewnd/' "$work/hand.plan" >"$work/name.plan"
reads 2 "$work/name.plan" "$work/name.plan:5: do: "
# ... behind something else that is wrong, which comes first.
sed '5s/rewind/rewnd/;3s/\[1,2\]/[1,3]/' "$work/hand.plan" >"$work/both.plan"
reads 1 "$work/both.plan" "$work/both.plan:3: outcome.pages: "
# ... before the promote of a step that is OK on record.
sed '11s/"pages":\[5,6\]/"pages":[6,5]/;12s/"ticket":3/"ticket":0/' "$work/hand.plan" \
	>"$work/fate.plan"
reads 1 "$work/fate.plan" "$work/fate.plan:11: outcome.pages: "
sed '8s/"base":1/"base":null/' "$work/hand.plan" >"$work/base.plan"
reads 2 "$work/base.plan" "$work/base.plan:8: base: "
sed '11s/"base":null/"base":2/' "$work/hand.plan" >"$work/base.plan"
reads 1 "$work/base.plan" "$work/base.plan:11: outcome.status: "
printf '' >"$work/empty.plan"
reads 2 "$work/empty.plan" "$work/empty.plan:1: "
reads 2 "$work/none.plan" "No such file"
# The last line counts without its line feed.
printf '%s' "$(cat "$work/hand.plan")" >"$work/open.plan"
reads 0 "$work/open.plan" "takes 11"

# ---------------------------------------------------------------- compressed
if command -v zstd >/dev/null 2>&1; then
	zstd -q "$work/sample.plan" -o "$work/sample.zst"
	reads 0 "$work/sample.zst" "$(python3 "$here/plan_trace.py" "$work/sample.plan" | tail -1)"
	{
		printf '\120\52\115\30\3\0\0\0xyz'
		head -5 "$work/hand.plan" | zstd -qc
		printf '\137\52\115\30\0\0\0\0'
		sed 1,5d "$work/hand.plan" | zstd -qc
	} >"$work/frames.plan"
	reads 0 "$work/frames.plan" "takes 11"
	{
		head -5 "$work/hand.plan" | zstd -qc
		sed 1,5d "$work/hand.plan" | zstd -qc | head -c 60
	} >"$work/frames.plan"
	reads 2 "$work/frames.plan" "$work/frames.plan:6: truncated"
fi

# ---------------------------------------------------------------- beside quire
model=${QUIRE_MODEL:-$top_srcdir/../shared/model}
[ -e "$model/quire_model.py" ] || model=
mkdir "$work/cases"
# shellcheck disable=SC2086
python3 "$here/check_plan_trace.py" "$quire" "$work/cases" \
	"$top_srcdir/tests/runtime/specification.py" ${model:+"$model"} ||
	fail "check_plan_trace.py"
done_testing
