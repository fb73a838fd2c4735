#!/bin/sh
# gbench_gate.sh - mew gate, mew calibrate, mew list and --trace for programs of Google Benchmark. Prints TAP.
set -u
# shellcheck disable=SC2154 # make sets them
srcdir=$(cd "$srcdir" && pwd)
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"
# shellcheck disable=SC2154 # make sets it
mew=${GBENCH_COMMAND:-$builddir/mew} # of gbench_other.sh
for why in "$([ -e "$builddir/.libs/libmew_gbench.so" ] || echo 'libmew_gbench was not built: install libbenchmark-dev')" \
	"$([ -e "$builddir/.libs/libmew_hooks.so" ] || echo 'a sanitizer replaces malloc itself')"; do
	[ -n "$why" ] || continue
	skip "gates of Google Benchmark programs" "$why"
	finish
done

cat >both.cc <<'END'
#include <benchmark/benchmark.h>
#include <cstdlib>
#ifndef WORK
#define WORK 100
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
static void spins(benchmark::State &state)
{
	for (auto _ : state)
		for (int i = 0; i < WORK; i++)
			benchmark::DoNotOptimize(i);
}
BENCHMARK(spins);
static void allocates(benchmark::State &state)
{
	static void *cache; // asked for once: no part of a warm iteration
	if (cache == nullptr)
		cache = malloc(100);
	for (auto _ : state)
		for (int i = 0; i < BLOCKS; i++) {
			void *block = malloc(32);
			benchmark::DoNotOptimize(block);
			free(block);
		}
}
BENCHMARK(allocates);
#ifdef MORE
static void added(benchmark::State &state)
{
	for (auto _ : state)
		benchmark::ClobberMemory();
}
BENCHMARK(added);
#endif
#ifdef SKIPS
static void skipped(benchmark::State &state)
{
	state.SkipWithMessage("no such machine");
	for (auto _ : state)
		benchmark::ClobberMemory();
}
BENCHMARK(skipped);
static void one_skips(benchmark::State &state)
{
#ifdef FAILS
	state.SkipWithMessage("not in this build");
#endif
	for (auto _ : state)
		benchmark::ClobberMemory();
}
BENCHMARK(one_skips);
#endif
#ifdef FAILS
static void fails(benchmark::State &state)
{
	state.SkipWithError("no such input");
	for (auto _ : state)
		benchmark::ClobberMemory();
}
BENCHMARK(fails);
#endif
#ifdef CRASHES
static void fails(benchmark::State &state)
{
	for (auto _ : state)
		abort();
}
BENCHMARK(fails);
#endif
BENCHMARK_MAIN();
END
build() { # PROGRAM FLAG...
	program=$1
	shift
	# shellcheck disable=SC2086 # flags are words
	${CXX:-g++} -g -O1 both.cc -o "$program" "$@" ${GBENCH_FLAGS:--std=c++11} -lbenchmark -lpthread >out 2>err && return
	code=$?
	result "$program compiles" 1
	finish
}
build ./base -DMORE -DFAILS
build ./slow -DWORK=200 -DBLOCKS=2 -DCRASHES

run "$mew" list --gbench-program -k '^spins|^a' ./base
check "list" 0 '^spins$'
check "list: chosen by name" 0 '^added$'
[ "$(wc -l <out)" = 3 ]
result "list: and no more" $?
run "$mew" list --gbench-program /bin/true
complains "list: no Google Benchmark" 2 'no benchmarks of the shared Google Benchmark'

# what is twice as slow is found whatever else the machine does
gate="gate --gbench-program --calibration none --progress never"
# shellcheck disable=SC2086 # flags are words
run "$mew" $gate --base ./base --head ./slow -k '^spins$' --memory 0 --rounds 5 --output found
check "gate: slower" 1 '^spins .*time .*regression'
jq -e '.cases[0].observations | length >= 12 and all(.base_ns > 0 and .head_ns > 0 and .loops > 0 and .rounds == 5)' found/samples.json \
	>/dev/null 2>&1
result "gate: each pair of processes is an observation of its rounds" $?
grep -q 'the gate profiles no programs of Google Benchmark' found/mew-gate.md && [ ! -e found/mew-gate.html ]
result "gate: the report says why it has no flame graphs" $?
# shellcheck disable=SC2086
run "$mew" $gate --base ./base --head ./slow --html page.html
complains "gate: and a page of them is refused" 2 '--html does not go with --gbench-program'
# shellcheck disable=SC2086
run "$mew" $gate --base ./base --head ./slow -k '^allocates$' --rounds 2 --samples 1
check "gate: one more allocation" 1 '^ *allocs *regress.* 1 *2$'
# shellcheck disable=SC2086
run "$mew" $gate --base ./base --head ./base -k '^allocates$' --rounds 2 --samples 1 -v
check "gate: a program is as good as itself in allocations" 3 '^ *allocs *pass .* 1 *1$'
# shellcheck disable=SC2086
run "$mew" $gate --base ./base --head ./slow -k '^added$' --rounds 2 --samples 1
check "gate: a case of one side" 4 'only base has it'
# shellcheck disable=SC2086
run "$mew" $gate --base ./base --head ./slow -k '^fails$' --memory 0 --rounds 2 --samples 1
check "gate: a case that fails" 4 'INVALID'
grep -q 'base: no such input\|head: .*signal 6' out
result "gate: and why" $?
case ${GBENCH_FLAGS-} in
*-DSKIPS*)
	# shellcheck disable=SC2086
	run "$mew" $gate --base ./base --head ./slow -k '^(skipped|allocates)$' --rounds 2 --samples 1 --output skips
	check "gate: what both sides skip does not hide what got worse" 1 '^ *allocs *regress.* 1 *2$'
	jq -e '[.cases[] | select(.key == "skipped") | .skipped | contains("no such machine")] == [true]' skips/samples.json >/dev/null 2>&1
	result "gate: what both sides skip, and why" $?
	# shellcheck disable=SC2086
	run "$mew" $gate --base ./base --head ./slow -k '^one_skips$' --memory 0 --rounds 2 --samples 1
	check "gate: one side skips" 4 'base: skipped: not in this build'
	run "$mew" calibrate --gbench-program --trials 1 --samples 16 --rounds 2 -k '^s(pins|kipped)$' --output s.json --progress never ./base
	check "calibrate: without what is skipped" 0 'spins'
	;;
*) skip "gate: what is skipped with a message" "this release has none" ;;
esac
# shellcheck disable=SC2086
run "$mew" $gate --base ./base --head ./slow --context c=./base
complains "gate: what does not go with it" 2 'context does not go with --gbench-program'
# shellcheck disable=SC2086
run "$mew" $gate --base ./base --head /bin/true
complains "gate: no Google Benchmark" 2 'head: .*no benchmarks'
# shellcheck disable=SC2086
run "$mew" $gate --base ./base --head ./slow -k nothing
complains "gate: no match" 4 'none of the benchmarks matches'

run "$mew" calibrate --gbench-program --trials 1 --samples 16 --rounds 2 -k '^spins$' --output c.json --progress never ./base
check "calibrate" 0 'spins'
jq -e '.cases | length == 1 and .[0].key == "spins" and .[0].noise_floor >= 0' c.json >/dev/null 2>&1
result "calibrate: what it keeps" $?

run "$mew" run --gbench-program --memory --min-time 0.001 -k '^spins' --trace=t.json ./base
check "a trace" 0
run "$mew" trace-check t.json
check "a trace that is sound" 0 ' 0 faults'
jq -e '[(if type == "array" then . else .traceEvents end)[] | select(.name == "loop" and .cat == "phase")] | length >= 2' t.json >/dev/null 2>&1
result "its loops" $?
jq -e '[(if type == "array" then . else .traceEvents end)[] | select(.name == "spins" and .cat == "case")] | length == 2' t.json >/dev/null 2>&1
result "its case, in both passes" $?
finish
