#!/bin/sh
# memory.sh - what the hooks and the memory backend add to allocation-heavy programs, beside the tools that record heaps.
# CPU time of the program's own threads; a peer that is not installed is left out with a line.
#
#   memory.sh ROUNDS SRCDIR     run in the build directory
set -eu
rounds=$1 srcdir=$2
hooks=$(pwd)/.libs/libmew_hooks.so.0
window=$(pwd)/bench/memory_window.so
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# "hot 7.1 batch 11.6" as one row a line
# shellcheck disable=SC2016 # awk expands them
rows="awk '{ for (i = 1; i < NF; i += 2) print \"pair_\" \$i, \$(i + 1) }'"
count="LD_PRELOAD=$hooks:$window MEW_BENCH_MODE=count"
capture="LD_PRELOAD=$hooks:$window MEW_BENCH_MODE=capture"

find_library() {
	for found in /usr/lib/*/"$1" /usr/lib/"$1" /usr/local/lib/"$1" /lib/*/"$1"; do
		if [ -e "$found" ]; then
			echo "$found"
			return
		fi
	done
	echo "$2 is not installed: left out" >&2
}
memusage=$(find_library libmemusage.so "glibc's memusage")
gperftools=$(find_library libtcmalloc.so.4 "the heap profiler of gperftools")
jemalloc=$(find_library libjemalloc.so.2 jemalloc)
command -v heaptrack >/dev/null 2>&1 || echo "heaptrack is not installed: left out" >&2
command -v valgrind >/dev/null 2>&1 || echo "valgrind is not installed: left out" >&2

echo "== pair: 64 bytes, one thread"
sh "$srcdir/bench/compare.sh" "$rounds" "native=bench/memory_pair 2000000 | $rows" \
	"disarmed=LD_PRELOAD=$hooks bench/memory_pair 2000000 | $rows" \
	"count=$count bench/memory_pair 2000000 | $rows" \
	"capture=$capture bench/memory_pair 1000000 | $rows"

echo "== pair: two threads"
sh "$srcdir/bench/compare.sh" "$rounds" "native=bench/memory_pair 1000000 2 | $rows" \
	"count=$count bench/memory_pair 1000000 2 | $rows" "capture=$capture bench/memory_pair 200000 2 | $rows"

# deep and work, with the peers: $1 program and arguments, $2 operations, $3 the same for the slow ones
with_peers() {
	set -- "native=bench/$1 $2 1 $4" "disarmed=LD_PRELOAD=$hooks bench/$1 $2 1 $4" \
		"count=$count bench/$1 $2 1 $4" "capture=$capture bench/$1 $2 1 $4" "$1" "$3" "$4"
	program=$5 few=$6 work=$7
	set -- "$1" "$2" "$3" "$4"
	if command -v heaptrack >/dev/null 2>&1; then
		set -- "$@" "heaptrack=heaptrack --raw -o $scratch/heaptrack bench/$program $few 1 $work | grep '^deep '"
	fi
	if [ -n "$memusage" ]; then
		set -- "$@" "memusage=LD_PRELOAD=$memusage bench/$program $few 1 $work"
	fi
	if [ -n "$gperftools" ]; then
		set -- "$@" "gperftools=LD_PRELOAD=$gperftools HEAPPROFILE=$scratch/gperftools bench/$program $few 1 $work"
		set -- "$@" "gperftools_fp=LD_PRELOAD=$gperftools HEAPPROFILE=$scratch/gperftools TCMALLOC_STACKTRACE_METHOD=generic_fp bench/$program $few 1 $work"
	fi
	if [ -n "$jemalloc" ]; then
		set -- "$@" "jemalloc_prof=LD_PRELOAD=$jemalloc MALLOC_CONF=prof:true,lg_prof_sample:0,prof_final:false bench/$program $few 1 $work"
	fi
	if command -v valgrind >/dev/null 2>&1; then
		set -- "$@" "dhat=valgrind --tool=dhat --dhat-out-file=$scratch/dhat bench/$program $few 1 $work"
	fi
	sh "$srcdir/bench/compare.sh" "$rounds" "$@"
}
echo "== deep: 12 frames without frame pointers"
with_peers memory_deep 2000000 200000 0
echo "== deep: 12 frames with frame pointers"
with_peers memory_deep_fp 2000000 200000 0
echo "== work: the same with 500 rounds of arithmetic an operation"
with_peers memory_deep 500000 100000 500

echo "== live: ten million blocks alive"
sh "$srcdir/bench/compare.sh" "$rounds" "native=bench/memory_live" "count=$count bench/memory_live" \
	"capture=$capture bench/memory_live"
