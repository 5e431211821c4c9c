#!/bin/sh
# SPDX-License-Identifier: MIT
# A trace names at most 64 labels, "main" among them, counted from the first line that names
# them, whatever comes of it: also where the line is not given to the runtime.
. "$(dirname -- "$0")/cmd.sh"

header() {
	echo '{"quire":"plan-trace","version":1,' \
		'"cache":{"layout":"NHD","dtype":"bf16",' \
		'"num_layers":1,"num_kv_heads":1,"head_dim":8,"page_size":4},' \
		'"pool":{"num_pages":20,"sink":true},' \
		'"limits":{"rows":8,"tokens":256,"requests":4,"seq_tokens":512,' \
		'"labels":4,"tables":1,"table_pages":4096}}'
	echo '{"do":"open","request":1}'
	echo '{"do":"submit","segments":[[1,"main",4,0]]}'
}

# submit LABEL [MORE] - one that makes the label
submit() { echo '{"do":"submit","segments":[[1,"'"$1"'",1,0]]'"${2:-}"'}'; }
# rewinds NUMBER - each names another label, which is not there
rewinds() {
	n=1
	while [ $n -le "$1" ]; do
		echo '{"do":"rewind","request":1,"label":"l'$n'","tokens":0}'
		n=$((n + 1))
	done
}
guess=',"id":1,"speculative":true,"base":null'
above=',"id":2,"speculative":true,"base":1'
promote='{"do":"promote","ticket":1}'
abandon='{"do":"abandon","ticket":1}'
nl='
'
two=',"combined":{"all":["x"],"none":[]}' # tables: one more than the limit

# counts LABELS LINES - so many are named by then, and 64 is all.
counts() {
	{ header && printf '%s' "$2" && rewinds $((65 - $1)); } >"$work/labels.plan"
	for way in "" --check "--threads caller"; do
		# shellcheck disable=SC2086
		run 0 replay --json $way --outcomes "$work/labels.out" "$work/labels.plan"
		tail -n 2 "$work/labels.out" | head -n 1 | grep -q '"NO_LABEL"' ||
			fail "label 64 is one too many: $way $(sed -n 4,5p "$work/labels.plan")"
		tail -n 1 "$work/labels.out" | grep -q '"LIMIT"' ||
			fail "label 65 is none too many: $way $(sed -n 4,5p "$work/labels.plan")"
		# shellcheck disable=SC2086
		run 0 replay -q $way "$work/labels.out"
	done
}
counts 1 ""
counts 2 "$(submit x)$nl"
counts 2 "$(submit x ',"outcome":{"status":"AGAIN"}')$nl"
counts 2 "$(submit x ',"outcome":{"status":"CANCELLED"}'"$guess")$nl$promote$nl"
counts 2 '{"do":"reset","request":1,"label":"x","outcome":{"status":"DEVICE"}}'"$nl"
counts 4 "$(submit main "$guess")$nl$abandon$nl$(submit x "$above"',"post_forks":[["y","z"]]')$nl"
counts 4 "$(submit x "$two")$nl"
counts 4 "$(submit x "$two$guess")$nl"

# What names one too many is refused, and has no effect; what it rests on comes first.
{
	header
	submit x ',"outcome":{"status":"AGAIN"}'
	rewinds 62
	submit y "$guess"
	echo '{"do":"submit","segments":[[1,"main",1,4]]'"$above"'}'
	echo "$promote"
	echo '{"do":"submit","segments":[[1,"main",1,4]]}'
} >"$work/over.plan"
run 0 replay --json --check "$work/over.plan"
is LIMIT 1
is ABANDONED 1
is steps 2
is checked_rows 1

# A step that is refused at the call rests on one that is refused for want of pages.
for many in "$two" ',"post_forks":[["main","l63"]]'; do
	{
		header
		rewinds 62
		echo '{"do":"submit","segments":[[1,"main",100,4]]'"$guess"'}'
		echo '{"do":"submit","segments":[[1,"x",1,0]]'"$above$many"'}'
		echo "$promote"
		echo '{"do":"promote","ticket":2}'
	} >"$work/on.plan"
	run 0 replay --json "$work/on.plan"
	is NO_PAGES 1
	is ABANDONED 1
	[ -z "$(value LIMIT)" ] || fail "a step that rests on a refused one has another fault"
done
done_testing
