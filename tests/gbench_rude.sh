#!/bin/sh
# gbench_rude.sh - programs of Google Benchmark that drop privileges, close, move, print, leave, crash, execute themselves,
# or have no room for a preload: the right figures, or a sentence that says what is in the way. Prints TAP.
#
# gbench_other.sh runs it for another release, by the variables that gbench.sh names.
set -u
# shellcheck disable=SC2154 # make sets them
srcdir=$(cd "$srcdir" && pwd)
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"
# shellcheck disable=SC2154 # make sets it
mew=${GBENCH_COMMAND:-$builddir/mew}
flags=${GBENCH_FLAGS:--std=c++11}
library=-lbenchmark

for why in "$([ -e "$(dirname "$mew")/.libs/libmew_gbench.so" ] || echo 'libmew_gbench was not built: install libbenchmark-dev')" \
	"$([ -e "$builddir/.libs/libmew_hooks.so" ] || echo 'a sanitizer replaces malloc itself')"; do
	[ -n "$why" ] || continue
	skip "programs of Google Benchmark with bad manners" "$why"
	finish
done
chmod 755 . # a program that drops its privileges executes itself again

build() { # PROGRAM FLAG...
	program=$1
	shift
	# shellcheck disable=SC2086 # flags are words
	${CXX:-g++} -g -O1 -fno-omit-frame-pointer -o "$program" "$srcdir/tests/gbench_rude.cc" "$@" $flags $library -lpthread >out 2>err &&
		return
	code=$?
	result "$program compiles" 1
	finish
}

measure() { # FLAG... PROGRAM
	rm -f figures
	run "$mew" run --gbench-program --memory --min-time 0.001 --csv figures "$@"
}

counts() { # CASE: what one iteration allocates; nothing where it has no figure
	awk -F, -v key="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "memory_allocations_per_iteration") at = i }
		NR > 1 && $1 == key { print $at }' figures 2>/dev/null
}

counted() { # NAME CODE FIRST SECOND THIRD FOURTH: what the four cases allocate
	got="$(counts first),$(counts second),$(counts third),$(counts fourth)"
	[ "$code" = "$2" ] && [ "$got" = "$3,$4,$5,$6" ] && [ "$(wc -l <figures)" = 5 ]
	result "$1" $? "code $code, not $2, or allocations $got, not $3,$4,$5,$6"
}

traced() { # NAME PROGRAM: its loops are on the timeline
	run "$mew" run --gbench-program --min-time 0.001 -F first --trace=trace.json "$2"
	check "$1" 0
	jq -e '[(if type == "array" then . else .traceEvents end)[] | select(.name == "loop" and .cat == "phase")] | length > 0' \
		trace.json >/dev/null 2>&1
	result "$1: its loops" $?
}

# --- what it does before its benchmarks

build ./closes -DCLOSES
measure ./closes
counted "all descriptors closed" 0 1 2 1 0
traced "all descriptors closed, and a trace" ./closes
build ./moves -DMOVES
measure --folded stacks ./moves
counted "another directory" 0 1 2 1 0
grep -q '^second;.*take_block' stacks/second.memory.folded
result "another directory: the functions of a program that was named by a relative path" $?
build ./prints -DPRINTS
measure ./prints
counted "what it prints is no benchmark" 0 1 2 1 0
run "$mew" list --gbench-program ./prints
[ "$(cat out)" = "first
second
third
fourth" ]
result "... nor in the list" $?
if [ "$(id -u)" = 0 ]; then
	build ./drops -DDROPS
	measure --cpu ./drops
	counted "without privileges" 0 1 2 1 0
	run "$mew" run --gbench-program --memory --min-time 0.001 -F first --trace=trace.json ./drops
	check "... and a trace that it cannot write to" 0 '^first' './drops cannot write its part (did it drop its privileges?)'
	[ "$(grep -c 'drop its privileges' err)" = 1 ]
	result "... which is said once" $?
	case $flags in
	*REENTERS*) skip "with privileges of its file" "this release executes such a program again without end, with or without mew" ;;
	*)
		chown 65534 ./drops && chmod 4755 ./drops
		measure ./drops
		complains "with privileges of its file" 2 './drops runs with the privileges of its file'
		;;
	esac
else
	skip "without privileges" "needs root, to drop it"
fi

# --- what ends it

build ./exits -DEXITS
measure ./exits
counted "one that exits" 1 1 '' 1 0
check "... and the code it had" 1 'second *failed: .*exited with code 3'
build ./crashes -DCRASHES
measure ./crashes
counted "one that crashes" 1 1 2 '' 0
check "... and the signal" 1 'third *failed: .*signal 6'
sed -n '/its body printed/,/^[^ ]/p' out >said
grep -q '| last words of' said && ! grep -q '| fourth' said
result "... and what its own process printed" $?

build ./many -DMANY
run "$mew" run --gbench-program --min-time 0.001 --json many.json ./many
check "one that crashes among more than one filter names" 1
run jq -e '[.cases[] | select(.time.status != "MEW_OK")]
	| length == 1 and (.[0].time.reason | test("signal 6"))' many.json
check "... has its signal" 0
run jq -e '[.cases[].time | select(.status == "MEW_OK" and .median_ns != null)] | length == 1503' many.json
check "... and all others are measured" 0
build ./interrupts -DINTERRUPTS
run "$mew" run --gbench-program --processes 20 --min-time 0.001 --json interrupts.json ./interrupts
check "an interrupt between processes" 4 '' 'interrupted'
run jq -e '[.cases[].time | select(.median_ns > 0).processes] == [3, 3, 2, 2]' interrupts.json
check "... leaves the figures of those that had run" 0
rm starts
build ./vanishes -DVANISHES
run "$mew" run --gbench-program --processes 20 --min-time 0.001 --json vanishes.json ./vanishes
check "a program that goes away between processes, and a note that says so" 1 'first: only 3 of 20 processes'
run jq -e '[.cases[].time | select(.median_ns > 0 and .processes == 3)] | length == 4' vanishes.json
check "... with the figures of those that had run" 0

# --- what keeps mew's libraries out

for way in FORGETS REPLACES CLEARS; do
	build ./again -D$way
	measure ./again
	complains "one that executes itself, $way" 2 "executed itself.*without mew's LD_PRELOAD"
done
build ./usage -DLEAVES
measure ./usage
complains "one that prints its usage and leaves by _exit" 2 './usage ended by _exit, or executed itself.*printed: usage: measure'
build ./again -DADDS
measure ./again
counted "one that executes itself and adds to LD_PRELOAD" 0 1 2 1 0
echo 'int main(void) { return 0; }' >empty.c
refused() { # PROGRAM: one without a loader
	measure "$1"
	complains "$1" 2 "$1 is linked statically, so nothing can be loaded into it"
}
for way in static static-pie; do
	if ${CC:-cc} -$way -o ./$way empty.c >/dev/null 2>&1; then
		refused ./$way
	else
		skip "$way" "the compiler makes no such program"
	fi
done
build ./stripped -s
measure ./stripped
counted "stripped" 0 1 2 1 0
build ./optimised -flto -O2
measure ./optimised
counted "optimised at link time" 0 1 2 1 0

# --- an archive of Google Benchmark

if [ -n "${GBENCH_ARCHIVE-}" ]; then
	library=$GBENCH_ARCHIVE
	for way in static static-pie; do
		build ./of_archive -$way
		refused ./of_archive
	done
	build ./of_archive
	measure ./of_archive
	complains "an archive, and no header" 2 'has an archive of it, include <mew/gbench.hpp>'
fi
finish
