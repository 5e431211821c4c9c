#!/bin/sh
# SPDX-License-Identifier: MIT
# replay --check in every layout and element type: what is written is read back, and the
# digest, which is of tables alone, is the same in all.
. "$(dirname -- "$0")/cmd.sh"

digest=
for layout in NHD HND MLA; do
	heads=3
	[ $layout != MLA ] || heads=1
	for dtype in f32 f16 bf16 e4m3 e5m2; do
		run 0 import -q "$requests" --first 8 --pages 512 --tokens 256 --rows 32 \
			--layout $layout --dtype $dtype --layers 2 --heads $heads --dims 5 \
			-o "$work/any.plan"
		run 0 info --json "$work/any.plan"
		is layout $layout
		is dtype $dtype
		for device in cpu cpu:inline cpu:3; do
			run 0 replay --json --check --device $device "$work/any.plan"
			is status ok
			[ -z "$digest" ] || is digest "$digest"
			digest=$(value digest)
		done
	done
done

run 2 import -q "$requests" --layout MLA --heads 2 -o "$work/any.plan"
says 'cache.num_kv_heads must be 1 where cache.layout is MLA, got 2'
sed '1s/"layout":"NHD"/"layout":"MLA"/; 1s/"num_kv_heads":[0-9]*/"num_kv_heads":2/' \
	"$sample" >"$work/mla.plan"
run 2 replay "$work/mla.plan"
says 'cache.num_kv_heads must be 1 where cache.layout is MLA, got 2'
done_testing
