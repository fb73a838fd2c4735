#!/bin/sh
# cpu.sh - what a sampler adds to the CPU time of a program that only computes, 24 frames deep without frame pointers,
# beside an empty signal handler, gperftools and perf. A peer that is not installed is left out with a line.
#
#   cpu.sh ROUNDS SRCDIR     run in the build directory
#
# cpu_s is CPU time of the program's thread alone: what perf itself uses beside it is not in it. received is samples of a
# CPU second over those asked for: below 1 where the clock is capped, or where signals wait while another process runs.
# gperftools takes 4,000 a second at most; all clocks it offers are shown. The stacks that perf takes by frame pointers
# are cut in this program: its row is about time.
set -eu
rounds=$1 srcdir=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
hog=bench/cpu_hog

for found in /usr/lib/*/libprofiler.so.0 /usr/lib/libprofiler.so.0 /usr/local/lib/libprofiler.so.0; do
	[ ! -e "$found" ] || gperftools=$found
done
[ -n "${gperftools-}" ] || echo "gperftools is not installed (libgoogle-perftools4): left out"

# rows of the program, and "received" from what the profiler says at its end; $1 its frequency
# shellcheck disable=SC2016 # awk expands them
counting() {
	echo "awk -v hz=$1"' '"'"'/^cpu_s / { cpu = $2; print }
		/^PROFILE: interrupt/ { split($4, n, "/"); split($0, h, "= "); split(h[2], n, "/"); got = n[1] }
		match($0, /\([0-9]+ samples\)/) { got = substr($0, RSTART + 1) + 0 }
		END { if (cpu > 0 && got != "") print "received", got / (cpu * hz) }'"'"
}

set -- "native=$hog"
for us in 100 250 1000; do
	set -- "$@" "empty_${us}us=MEW_BENCH_MODE=empty MEW_BENCH_US=$us $hog"
done
for us in 100 250 1000; do
	set -- "$@" "mew_${us}us=MEW_BENCH_MODE=mew MEW_BENCH_US=$us $hog"
done
set -- "$@" "mew_cpu_100us=MEW_BENCH_MODE=mew-cpu MEW_BENCH_US=100 $hog" \
	"mew_ring_100us=MEW_SAMPLER=ring MEW_BENCH_MODE=mew-cpu MEW_BENCH_US=100 $hog"
if [ -n "${gperftools-}" ]; then
	env="LD_PRELOAD=$gperftools CPUPROFILE=$scratch/gperftools"
	count=$(counting 4000)
	set -- "$@" \
		"gperf_4k_prof=$env CPUPROFILE_FREQUENCY=4000 $hog 2>&1 | $count" \
		"gperf_4k_real=$env CPUPROFILE_FREQUENCY=4000 CPUPROFILE_REALTIME=1 $hog 2>&1 | $count" \
		"gperf_4k_threads=$env CPUPROFILE_FREQUENCY=4000 CPUPROFILE_PER_THREAD_TIMERS=1 $hog 2>&1 | $count" \
		"gperf_4k_threads_real=$env CPUPROFILE_FREQUENCY=4000 CPUPROFILE_PER_THREAD_TIMERS=1 CPUPROFILE_REALTIME=1 $hog 2>&1 | $count"
fi
if perf record -q -o "$scratch/perf" -- true >/dev/null 2>&1; then
	for way in fp dwarf; do
		set -- "$@" "perf_4k_$way=perf record -F 4000 --call-graph $way -o $scratch/perf -- $hog 2>&1 | $(counting 4000)"
	done
else
	echo "perf is not installed, or not allowed (kernel.perf_event_paranoid): left out"
fi
sh "$srcdir/bench/compare.sh" "$rounds" "$@"
