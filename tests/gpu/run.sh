#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh [--build | --run] [DIR] - check Quire on a real GPU, in under ten minutes.
#
#   --build   only build what is to run, into DIR (build-gpu): needs nvcc, and the packages
#             that ./bootstrap installs; no GPU
#   --run     only run what was built there, on this machine or another: needs a driver
#
# Prints a summary and writes DIR/gpu.json.  Exits 0 when all checks pass, 1 when one
# fails, 2 when it cannot be built, 77 when there is no GPU.  A missed bar is no failure.
set -u
source=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
build=yes
run=yes
case ${1:-} in
--build) run=no; shift ;;
--run) build=no; shift ;;
esac
folder=${1:-$source/build-gpu}

# Libraries that a machine with a GPU may lack are linked in.
build_programs() {
	(cd "$source" && { [ -x configure ] || autoreconf -fi; }) || return 1
	mkdir -p "$folder/obj" || return 1
	cd "$folder/obj" || return 1
	"$source/configure" -q --with-cuda --disable-shared \
		CHECK_LIBS='-l:libcheck.a -l:libsubunit.a -lm' \
		CK_LIBS='-l:libck.a' JANSSON_LIBS='-l:libjansson.a' \
		URCU_LIBS='-l:liburcu-bp.a -l:liburcu-common.a' &&
		make -s -j "$(nproc)" gpu-programs &&
		cp quire tests/gpu/bench_gpu tests/gpu/gpu_cache tests/gpu/gpu_cache_refused \
			"$folder"
}

if [ $build = yes ]; then
	build_programs >&2 || exit 2
fi
[ $run = yes ] || exit 0
cd "$folder" && [ -x bench_gpu ] || {
	echo "run.sh: nothing is built in $folder: run it with --build first" >&2
	exit 2
}
plan=$source/plans/sample.plan
failures=0
: >checks

note() { # NAME STATUS
	printf '%-44s %s\n' "$1" "$2"
	echo "$1|$2" >>checks
}

# check NAME COMMAND... - runs it; its output is shown if it fails
check() {
	name=$1
	shift
	began=$(date +%s)
	if "$@" >log 2>&1; then
		note "$name" "ok, $(($(date +%s) - began)) s"
		return
	fi
	note "$name" FAILED
	tail -n 20 log
	failures=$((failures + 1))
}

digest() { # COMMAND... - of a replay's JSON
	"$@" | tr -d ' ' | sed -n 's/^"digest":"\([0-9a-f]*\)".*/\1/p'
}

same_digest() {
	one=$(digest ./quire replay --json --check --device "$1" "$plan")
	[ -n "$one" ] && [ "$one" = "$(digest ./quire replay --json "$plan")" ]
}

./quire replay -q --device cuda "$plan" >log 2>&1
case $(cat log) in
*'built without CUDA'* | *'no NVIDIA driver'* | *'too old'* | *'no CUDA device'* | *stub*)
	cat log
	exit 77
	;;
esac
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>log | head -n 1)
echo "GPU: ${gpu:-unknown}"

check 'operations against their definition' env CK_FORK=no ./gpu_cache
check 'bad input' env CK_FORK=no ./gpu_cache_refused
check 'replay --check, one digest' same_digest cuda
check 'replay --check with checks on the device' same_digest cuda+checks
for layout in NHD HND MLA; do
	for dtype in f32 e4m3; do
		./quire import -q --first 12 --pages 512 --tokens 256 --layers 2 --dims 24 \
			--layout $layout --dtype $dtype -o any.plan \
			"$source/plans/sample_requests.csv"
		check "replay --check, $layout $dtype" \
			./quire replay -q --check --device cuda any.plan
	done
done
if command -v compute-sanitizer >/dev/null 2>&1; then
	check 'compute-sanitizer' compute-sanitizer --error-exitcode 9 \
		./quire replay -q --check --device cuda any.plan
else
	note 'compute-sanitizer' 'skipped: not found'
fi
./bench_gpu >bench 2>&1
[ $? -le 1 ] || {
	note 'bandwidth' FAILED
	failures=$((failures + 1))
}
cat bench

# The lines of checks and bench as JSON.
awk -v gpu="${gpu:-unknown}" '
	BEGIN { printf "{\"gpu\":\"%s\",\"checks\":[", gpu; FS = "|" }
	FILENAME == "checks" {
		printf "%s{\"name\":\"%s\",\"status\":\"%s\"}", (n++ ? "," : ""), $1, $2
	}
	FILENAME == "bench" && /^gpu_/ {
		if (!lines++) printf "],\"bandwidth\":["
		split($0, word, " ")
		printf "%s{\"name\":\"%s\",\"gb_per_s\":%s,\"ratio\":%s}",
			(lines > 1 ? "," : ""), word[1], word[2], word[4]
	}
	END { print "]}" }' checks bench >gpu.json
echo "written: $folder/gpu.json"
[ $failures -eq 0 ]
