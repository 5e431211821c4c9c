#!/bin/sh
# SPDX-License-Identifier: MIT
# The whole runtime on the CUDA device, which runs on a stand-in for CUDA: the sample's
# digest in all ways, every token written and read back, every layout.
QUIRE=${top_builddir:-.}/tests/runtime/quire_cuda
if [ ! -x "$QUIRE" ]; then
	echo "skipped: no C++ compiler for the kernels"
	exit 77
fi
. "$(dirname -- "$0")/cmd.sh"

run 0 replay --json "$sample"
digest=$(value digest)
[ -n "$digest" ] || fail "no digest on cpu"
for way in "--depth 1" "--depth 2" "--depth 16 --threads caller" \
	"--depth 3 --seed-delays 7"; do
	for device in cuda cuda+checks; do
		# shellcheck disable=SC2086
		run 0 replay --json --check --device $device $way "$sample"
		is status ok
		is digest "$digest"
	done
done

for layout in NHD HND MLA; do
	for dtype in f32 bf16 e5m2; do
		run 0 import -q "$requests" --first 6 --pages 512 --tokens 256 --rows 32 \
			--layout $layout --dtype $dtype --layers 2 --dims 5 \
			-o "$work/any.plan"
		run 0 replay -q --check --device cuda+checks "$work/any.plan"
	done
done
run 2 replay --device cuda:1 "$sample"
run 2 replay --device cuda:x "$sample"
done_testing
