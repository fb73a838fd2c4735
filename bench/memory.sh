#!/bin/sh
# memory.sh - what the hooks and the memory backend add to allocation-heavy programs, beside heaptrack where it is there.
#
#   memory.sh ROUNDS SRCDIR     run in the build directory
set -eu
rounds=$1 srcdir=$2
hooks=$(pwd)/.libs/libmew_hooks.so.0
window=$(pwd)/bench/memory_window.so

# "hot 7.1 batch 11.6" as one row a line
# shellcheck disable=SC2016 # awk expands them
rows="awk '{ for (i = 1; i < NF; i += 2) print \"pair_\" \$i, \$(i + 1) }'"

set -- "native=bench/memory_pair 2000000 | $rows" \
	"disarmed=LD_PRELOAD=$hooks bench/memory_pair 2000000 | $rows" \
	"count=LD_PRELOAD=$hooks:$window MEW_BENCH_MODE=count bench/memory_pair 2000000 | $rows" \
	"capture=LD_PRELOAD=$hooks:$window MEW_BENCH_MODE=capture bench/memory_pair 500000 | $rows"
sh "$srcdir/bench/compare.sh" "$rounds" "$@"

set -- "native=bench/memory_deep 500000" \
	"disarmed=LD_PRELOAD=$hooks bench/memory_deep 500000" \
	"count=LD_PRELOAD=$hooks:$window MEW_BENCH_MODE=count bench/memory_deep 500000" \
	"capture=LD_PRELOAD=$hooks:$window MEW_BENCH_MODE=capture bench/memory_deep 500000"
if command -v heaptrack >/dev/null 2>&1; then
	trace=$(mktemp -u)
	trap 'rm -f "$trace"*' EXIT
	set -- "$@" "heaptrack=heaptrack --raw -o $trace bench/memory_deep 200000 | grep '^deep '"
else
	echo "heaptrack is not installed: left out"
fi
sh "$srcdir/bench/compare.sh" "$rounds" "$@"
