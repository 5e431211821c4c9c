#!/bin/sh
# SPDX-License-Identifier: MIT
# quire stress on the pool as it is: what it counts, what it prints, what it refuses.
. "$(dirname -- "$0")/cmd.sh"

# at_least KEY N - a number of the last run's JSON.
at_least() {
	[ "$(value "$1")" -ge "$2" ] || fail "$1 is $(value "$1"), expected $2 at least"
}

# sound - the last run found nothing, and its numbers agree.
sound() {
	is status ok
	is violation null
	is pages_given "$(value pages_taken)"
	# All pages are taken once more at the end; that is not in the time.
	awk -v speed="$(value pages_per_second)" -v ns="$(value wall_ns)" \
		-v taken="$(value pages_taken)" -v pages="$(value pages)" 'BEGIN {
			expected = taken - pages
			got = speed * ns / 1e9
			exit !(got > expected - 1 && got < expected + 1)
		}' || fail "the speed is not that of the pages taken"
	is operations $(($(value takes) + $(value frees) + $(value no_pages) + \
		$(value timeouts) + $(value bad_batches) + $(value retries)))
	[ "$(value take_median_ns)" -le "$(value take_p99_ns)" ] || fail "p99 < median"
	[ "$(value take_p99_ns)" -le "$(value take_p999_ns)" ] || fail "p99.9 < p99"
	[ "$(value take_p999_ns)" -le "$(value take_p9999_ns)" ] || fail "p99.99 < p99.9"
	[ "$(value take_p9999_ns)" -le "$(value take_max_ns)" ] || fail "longest < p99.99"
}

fifo=fifo
"$quire" stress -q --allocator fifo --pages 1 --ops 1 2>"$work/err" || {
	says "--allocator fifo is not in this build"
	echo "no lock-free FIFO in this build: it was not tested"
	fifo=mutex
}

# ---------------------------------------------------------------- counts
# 10^6 takes and as many frees, by four threads that hold more than there is.
run 0 stress --json --threads 4 --ops 250000 --pages 64 --hold 64 --seed 1
sound
is allocator "$fifo"
is giver any
is threads 4
is pages 64
is seed 1
at_least takes 1000000
at_least frees 1000000
at_least no_pages 1
at_least bad_batches 10000
at_least timeouts 1

for allocator in "$fifo" mutex; do
	for giver in any single; do
		run 0 stress --json --threads 3 --ops 2000 --pages 300 \
			--allocator "$allocator" --giver "$giver"
		sound
		is allocator "$allocator"
		is giver "$giver"
		at_least bad_batches 1
	done
done

# One thread makes the same choices again: a seed says everything.
run 0 stress --json --threads 1 --ops 20000 --pages 100 --seed 5
counts=$(grep -e takes -e frees -e pages_ -e bad_ "$work/out" | grep -v per_second)
run 0 stress --json --threads 1 --ops 20000 --pages 100 --seed 5
again=$(grep -e takes -e frees -e pages_ -e bad_ "$work/out" | grep -v per_second)
[ "$counts" = "$again" ] || fail "a seed gave $counts and then $again"
run 0 stress --json --threads 1 --ops 20000 --pages 100 --seed 6
again=$(grep -e takes -e frees -e pages_ -e bad_ "$work/out" | grep -v per_second)
[ "$counts" != "$again" ] || fail "two seeds gave $counts"

# The limits: one page, many threads, everything in one hand.
run 0 stress -q --pages 1 --threads 16 --ops 20
[ ! -s "$work/out" ] || fail "--quiet prints"
run 0 stress -q --threads 256 --ops 1 --batch-max 1 --hold 1
run 0 stress --json --threads 2 --ops 50 --pages 3000 --batch-max 3000 --hold 3000
sound

# ---------------------------------------------------------------- print
run 0 stress --seconds 1 --threads 1
for label in allocator giver threads pages seed operations takes frees \
	'takes, too few free' 'takes, waited in vain' 'bad batches refused' \
	'pages taken per second' 'take, median' 'take, p99' 'take, p99.9' 'take, p99.99' \
	'take, longest'; do
	grep -q "^$label  *[^ ]" "$work/out" || fail "stress prints no \"$label\""
done
grep -q '^ownership table  *no violation$' "$work/out" || fail "no verdict is printed"
run 0 stress --json --ops 100
if command -v python3 >/dev/null 2>&1; then
	python3 -m json.tool <"$work/out" >/dev/null || fail "stress --json is no JSON"
fi
[ "$(value seed)" -ge 1 ] || fail "no seed was chosen"
run 0 stress --help
grep -q '^Usage: quire stress' "$work/out" || fail "no usage in the help"
grep -q '^  quire stress' "$work/out" || fail "no example in the help"
if [ -c /dev/full ]; then
	got=0
	"$quire" stress --ops 1 >/dev/full 2>"$work/err" || got=$?
	[ "$got" -eq 2 ] || fail "stress into a full disk: exit $got"
	[ "$(wc -l <"$work/err")" -eq 1 ] || fail "stress into a full disk"
fi

# ---------------------------------------------------------------- usage
# range OPTION MAX - integers 1..MAX and nothing else.
range() {
	for bad in 0 -1 $(($2 + 1)) 99999999999999999999 1x '' x; do
		run 2 stress "--$1=$bad"
		says "--$1 must be an integer 1..$2, got \"$bad\"; see \"quire stress"
	done
}
range threads 1024
range seconds 1000000
range pages 16777216
range batch-max 16777216
range hold 16777216
for option in ops seed; do
	for bad in 0 -1 99999999999999999999 x; do
		run 2 stress "--$option=$bad"
		says "--$option must be an integer 1..9223372036854775807, got \"$bad\""
	done
done
run 2 stress --allocator slab
says '--allocator must be fifo or mutex, got "slab"'
run 2 stress --giver none
says '--giver must be any or single, got "none"'
run 2 stress --ops 1 --seconds 1
says '--ops and --seconds: one of the two'
run 2 stress --pages 10 --batch-max 11
says '--batch-max must be at most --pages 10, got 11'
run 2 stress --batch-max 10 --hold 9
says '--hold must be at least --batch-max 10, got 9'
run 2 stress file
says 'no file is wanted, got "file"'
run 2 stress --fast
says '"--fast": not an option here'
done_testing
