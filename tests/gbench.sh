#!/bin/sh
# gbench.sh - programs of Google Benchmark: figures of the usual shapes, what fails, what is no such program, and the
# three ways in (preloaded, linked, included). Prints TAP.
#
# gbench_other.sh runs it for another release than the installed one, and says by variables where that is:
# GBENCH_COMMAND (mew beside a libmew_gbench for it), GBENCH_FLAGS (to compile), GBENCH_ARCHIVE (flags to link an archive).
set -u
# shellcheck disable=SC2154 # make sets them
srcdir=$(cd "$srcdir" && pwd)
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"
# shellcheck disable=SC2154 # make sets it
mew=${GBENCH_COMMAND:-$builddir/mew}
libraries=$(dirname "$mew")/.libs
flags=${GBENCH_FLAGS:--std=c++11}
benchmark=-lbenchmark
shapes=$srcdir/tests/gbench_shapes.cc

for why in "$([ -e "$libraries/libmew_gbench.so" ] || echo 'libmew_gbench was not built: install libbenchmark-dev')" \
	"$([ -e "$libraries/libmew_hooks.so" ] || echo 'a sanitizer replaces malloc itself')"; do
	[ -n "$why" ] || continue
	skip "programs of Google Benchmark" "$why"
	finish
done

build() { # PROGRAM FLAG...
	program=$1
	shift
	# shellcheck disable=SC2086 # flags are words
	${CXX:-g++} -g -O1 -fno-omit-frame-pointer -o "$program" "$shapes" "$@" $flags $benchmark -lpthread >out 2>err && return
	code=$?
	result "$program compiles" 1
	finish
}

field() { # FILE KEY COLUMN
	awk -F, -v key="$2" -v column="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i }
		NR > 1 && $1 == key { print $at }' "$1"
}

has() { # NAME FILE KEY COLUMN VALUE
	got=$(field "$2" "$3" "$4")
	[ "$got" = "$5" ]
	result "$1" $? "$3: $4 is '$got', not '$5'"
}

rows() { # FILE COLUMN < KEY VALUE...
	while read -r key value; do
		has "$key: $2" "$1" "$key" "$2" "$value"
	done
}

# --- preloaded: nothing of the program is changed

build ./shapes -DENDS_WITH=0
run "$mew" run --gbench-program --memory --min-time 0.001 --csv figures ./shapes
check "all shapes, preloaded" 0 'memory: heap blocks'
rows figures memory_allocations_per_iteration <<'END'
one_malloc 1
keep_running 1
batch/iterations:100 1
no_malloc 0
sized/100/28 2
sized/1000/24 2
sized/first:3/second:5 2
paused/iterations:500 1
leaks/iterations:50 1
threads/iterations:200/real_time/threads:2 1
four/iterations:50/threads:4 1
prepared/iterations:30 1
Box/use/iterations:64 1
several<3>/iterations:40 3
manual/iterations:30/manual_time 1
repeated/iterations:30/repeats:3 1
aggregated/iterations:30/repeats:3 1
grows/1 1
grows/4 4
after/iterations:20 1
END
rows figures memory_peak_bytes <<'END'
one_malloc 24
sized/100/28 128
sized/1000/24 1024
sized/first:3/second:5 8
prepared/iterations:30 20
Box/use/iterations:64 40
paused/iterations:500 10
leaks/iterations:50 1600
END
has "what is left counts as growth" figures leaks/iterations:50 memory_net_bytes 1600
has "iterations of all threads" figures threads/iterations:200/real_time/threads:2 memory_iterations 400
has "a batch that goes further" figures batch/iterations:100 memory_iterations 105
has "manual time" figures manual/iterations:30/manual_time time_median_ns 1000000
has "each repetition is a sample" figures repeated/iterations:30/repeats:3 time_samples 3
has "iterations of four threads" figures four/iterations:50/threads:4 memory_iterations 200
! grep -q 'grows_' figures
result "a complexity is no case" $?
has "threads" figures threads/iterations:200/real_time/threads:2 threads 2
has "one process did not look at pages" figures one_malloc time_page_faults ''
rm -f figures

run "$mew" run --gbench-program --memory --repetitions 3 --interleave --min-time 0.001 -k '^(one_malloc|sized)' --csv figures ./shapes
check "random interleaving" 0
has "its samples" figures sized/100/28 time_samples 3
has "and the memory pass, which does without" figures sized/1000/24 memory_bytes_per_iteration 1024
case $flags in
*-DSKIPS*)
	run "$mew" run --gbench-program --memory --min-time 0.001 -k '^(skipped|one_malloc)$' --csv figures ./shapes
	check "one that is skipped with a message is no failure" 0 'skipped  *skipped: no such machine'
	has "... and has no figures" figures skipped time_median_ns ''
	has "... unlike the others" figures one_malloc memory_allocations_per_iteration 1
	;;
*) skip "one that is skipped with a message" "this release has none" ;;
esac
run "$mew" run --gbench-program --processes 2 --min-time 0.001 -F one_malloc --csv figures ./shapes
has "fresh processes" figures one_malloc time_processes 2
[ "$(wc -l <figures)" = 2 ]
result "only what was chosen" $?

run "$mew" run --gbench-program --memory --cpu --min-time 0.2 -k '^(one_malloc|Box)' --folded stacks --json results.json ./shapes
check "samples and stacks" 0 'cpu: the function'
grep -q '^one_malloc;one_malloc.*;take_block.* 24$' stacks/one_malloc.memory.folded
result "a memory stack begins with the body and has its bytes" $?
grep -q '^one_malloc;one_malloc.*take_block' stacks/one_malloc.cpu.folded
result "a CPU stack begins with the body" $?
run "$mew" report results.json
check "saved results" 0 'one_malloc'

# --- what fails, and what is in the way

build ./failing -DENDS_WITH=0 -DFAILING
run "$mew" run --gbench-program --memory --timeout 5 --min-time 0.001 -k '^(fails|crashes|leaves|after)' ./failing
check "failing bodies" 1 'fails_inside *failed: no such input'
check "one that fails before its loop" 1 'fails_before *failed: nothing to do'
check "one that fails on a thread" 1 'failed: thread 1 is late'
check "one that crashes" 1 'crashes *failed: .*signal 6'
check "its last words" 1 'last words'
check "one that ends the program" 1 'leaves *failed: .*code 0'
check "those behind it are measured" 1 '^after/iterations:20 .* 1 .*20$'
run "$mew" run --gbench-program --timeout 1 --min-time 0.001 -k '^(lasts|after)' ./failing
check "one that does not end" 1 'lasts *failed: .*--timeout 1 s'
check "and the one behind it" 1 '^after/iterations:20 *[0-9]'

build ./rude -DENDS_WITH=3 -DRUDE
run "$mew" run --gbench-program --memory --min-time 0.001 -k '^(rude|after)' --csv figures ./rude
check "a program that fails behind its benchmarks" 1 '' 'exited with code 3 behind its last benchmark'
has "descriptors closed, directory changed" figures rude/iterations:10 memory_allocations_per_iteration 1
has "and the benchmark behind that" figures after/iterations:20 memory_allocations_per_iteration 1
[ "$(wc -l <figures)" = 3 ]
result "what a program prints is no benchmark" $?

run "$mew" run --gbench-program /bin/true
complains "no Google Benchmark" 2 'no benchmarks of the shared Google Benchmark'
run "$mew" run --gbench-program ./no_such_program
complains "no program" 2 'cannot be run: No such file'
run "$mew" run --gbench-program -F no_such_benchmark ./shapes
complains "no match" 4 'none of the benchmarks matches'
run "$mew" run --gbench-program --latency ./shapes
complains "a flag that does not go with it" 2 'latency does not go with --gbench-program'
run "$mew" run --gbench-program --versus one_malloc no_malloc ./shapes
complains "two cases inside one process" 2 'versus is for programs of mew'
run "$mew" run --gbench-program --dry-run --memory -F one_malloc --csv figures ./shapes
check "a dry run" 0 'one_malloc .*--dry-run measures nothing'
grep -q '^one_malloc,.*measures nothing",,*MEW_OK,,24,24,1,1,' figures
result "... has no time, and the pass that was added to it" $?
echo 'int missing(void); int missing(void) { return 0; }' >missing.c
${CC:-cc} -shared -fPIC -o libmissing.so missing.c
build ./incomplete -DENDS_WITH=0 -Wl,--no-as-needed -L. -lmissing
run "$mew" run --gbench-program ./incomplete
complains "a missing library" 2 'libmissing.so'

# --- without the command: Google Benchmark's own console and JSON

own_output() { # NAME COMMAND...
	name=$1
	shift
	run "$@" --benchmark_min_time=0.001 --benchmark_out=own.json
	check "$name: the console" 0 '^one_malloc .*allocs/iter=1 .*bytes/iter=24 .*peak_bytes=24'
	check "$name: a batch" 0 '^batch.* allocs/iter=1 '
	check "$name: what is around a body" 0 '^prepared.* allocs/iter=1 bytes/iter=20 .*peak_bytes=20$'
	check "$name: a complexity" 0 '^grows_BigO '
	sed -n '/"name": "leaks/,/}/p' own.json >leaks.json
	grep -q '"allocs_per_iter": 1.0000000000000000e+00' leaks.json && grep -q '"total_allocated_bytes": 512' leaks.json &&
		grep -q '"net_heap_growth": 512' leaks.json
	result "$name: the JSON" $?
	case $flags in
	*-DSKIPS*)
		check "$name: one that is skipped" 0 '^skipped .*no such machine'
		sed -n '/"name": "skipped"/,/}/p' own.json >skipped.json
		grep -q '"skip_message": "no such machine"' skipped.json && ! grep -q allocs_per_iter skipped.json
		result "$name: the JSON of one that is skipped" $?
		;;
	esac
	sed -n '/"name": "repeated.*3",/,/}/p' own.json | grep '"max_bytes_used"' | sort | uniq -c | grep -q ' 3 .*: 12,'
	result "$name: the JSON of repetitions" $?
}

compares() { # NAME: Google Benchmark's own comparison reads what the program wrote
	if [ ! -e "$compare" ]; then
		skip "$1: compare.py" "libbenchmark-tools is not installed"
	elif ! "$python" -c 'import scipy' 2>/dev/null; then
		skip "$1: compare.py" "python3-scipy is not installed"
	else
		run "$python" "$compare" --no-color benchmarks own.json own.json
		check "$1: compare.py" 0 '^one_malloc  *+*0\.0000'
		check "$1: compare.py, repetitions" 0 '^repeated.*_median'
	fi
}
compare=${GBENCH_COMPARE:-/usr/share/benchmark/compare.py}
python=${PYTHON:-/usr/bin/python3} # where Debian's scipy is
[ -x "$python" ] || python=python3

preload=$libraries/libmew_hooks.so.0:$libraries/libmew_guest.so.0:$libraries/libmew_gbench.so.0
own_output "preloaded by hand" env LD_PRELOAD="$preload" ./shapes
compares "preloaded by hand"
run env LD_PRELOAD="$preload" ./shapes --benchmark_min_time=0.001 --benchmark_filter='^(sized|leaks|repeated)' \
	--benchmark_repetitions=5 --benchmark_enable_random_interleaving
code="$code $(grep -c '^sized/100/28  .*bytes/iter=128 .*peak_bytes=128' out) \
$(grep -c '^sized/1000/24  .*bytes/iter=1\.*024k* .*peak_bytes=1\.*024' out) $(grep -c '^leaks.* net_bytes=512 peak_bytes=512' out) \
$(grep -c '^repeated.* peak_bytes=12' out)"
check "preloaded by hand: each repetition of interleaved benchmarks has its own figures" '0 5 5 5 3'
if ./shapes --help 2>&1 | grep -q benchmark_dry_run; then
	run env LD_PRELOAD="$preload" ./shapes --benchmark_dry_run --benchmark_filter='^(one_malloc|leaks)'
	check "preloaded by hand: a dry run of Google Benchmark's" 0 '^one_malloc .* 1 allocs/iter=1 .*peak_bytes=24'
	run env BENCHMARK_DRY_RUN=true "$mew" run --gbench-program --memory -k '^(one_malloc|repeated)' --csv figures ./shapes
	has "... and one that the command runs" figures one_malloc memory_iterations 1
else
	skip "a dry run of Google Benchmark's" "this release has none"
fi
build ./linked -DENDS_WITH=0 -L"$libraries" -Wl,-rpath,"$libraries" -Wl,--no-as-needed -lmew_hooks -lmew_gbench -lmew_guest
own_output "linked" ./linked
run "$mew" run --gbench-program --memory --min-time 0.001 -F sized --csv figures ./linked
has "linked, and run by the command" figures sized/100/28 memory_allocations_per_iteration 2

wrap=$(sed -n '/^edges=/,/^runs=/p' "$builddir/mew-gbench.pc" >pc &&
	printf '\nName: x\nDescription: x\nVersion: 0\n' >>pc && mv pc x.pc &&
	PKG_CONFIG_PATH=. pkg-config --variable=edges x && PKG_CONFIG_PATH=. pkg-config --variable=runs x) || wrap=
included() { # NAME: the header compiled in, and the linker's help
	name=$1
	# shellcheck disable=SC2086 # flags
	build ./wrapped -DENDS_WITH=0 -include mew/gbench.hpp -I"$srcdir/include" -L"$libraries" -Wl,-rpath,"$libraries" \
		-Wl,--no-as-needed -lmew_hooks -lmew_guest $wrap
	own_output "$name" ./wrapped
	run alone/mew run --gbench-program --memory --min-time 0.001 -k 'one_malloc|threads|batch|paused' --csv figures ./wrapped
	has "$name, and run by the command" figures one_malloc memory_allocations_per_iteration 1
	has "$name: its threads" figures threads/iterations:200/real_time/threads:2 memory_iterations 400
	has "$name: its pauses" figures paused/iterations:500 memory_allocations_per_iteration 1
	has "$name: its batches" figures batch/iterations:100 memory_iterations 105
	# the loop's edges inlined away, as with -flto
	runs=$(echo "$wrap" | tr ' ' '\n' | grep RunSpecified)
	# shellcheck disable=SC2086 # flags
	build ./blind -DENDS_WITH=0 -include mew/gbench.hpp -I"$srcdir/include" -L"$libraries" -Wl,-rpath,"$libraries" \
		-Wl,--no-as-needed -lmew_hooks -lmew_guest $runs
	run alone/mew run --gbench-program --memory --min-time 0.001 -k 'leaks' ./blind
	check "$name, no edges: the row says whose figures these are" 0 "Google Benchmark's memory pass"
	check "$name, no edges: 16 iterations of the memory pass" 0 '^leaks/iterations:50 .* 512 .* 16$'
	run alone/mew run --gbench-program --cpu --min-time 0.001 -k 'leaks' ./blind
	check "$name, no edges: no samples, and why" 2 'its loop was not seen'
}

if [ -n "$wrap" ]; then
	# a command that has no libmew_gbench to preload
	mkdir -p alone/.libs
	cp "$mew" alone/mew
	ln -s "$libraries"/libmew_guest.so.0 "$libraries"/libmew_hooks.so.0 alone/.libs/
	included "included"
	run alone/mew run --gbench-program ./shapes
	complains "nothing to preload, nothing included" 2 'libmew_gbench.so.0 is neither'
	if [ -n "${GBENCH_ARCHIVE-}" ]; then
		benchmark=$GBENCH_ARCHIVE
		included "an archive"
		run "$mew" run --gbench-program -F one_malloc ./wrapped
		check "an archive, with a libmew_gbench to preload too" 0 '^one_malloc'
	fi
else
	skip "included" "pkg-config is missing"
fi
finish
