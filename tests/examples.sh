#!/bin/sh
# shellcheck disable=SC2154 # make sets srcdir and builddir
#
# examples.sh - every example runs every pass; two memory passes give the same counts, and so does another allocator.
# Prints TAP. builddir comes from make.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0

result() { # NAME STATUS FILE
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		sed 's/^/# /' "$3" | tail -n 30
		failed=1
	fi
}

skip() {
	number=$((number + 1))
	echo "ok $number - $1 # SKIP $2"
}

# the exact figures of all cases, one a line
counts() { # FILE.csv
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
		{ print $column["key"], $column["memory_peak_bytes"], $column["memory_total_allocations"],
		  $column["memory_cumulative_bytes"], $column["memory_frees"], $column["memory_net_bytes"] }' "$1"
}

hooks=$builddir/.libs/libmew_hooks.so.0
jemalloc=$(ls /usr/lib/*/libjemalloc.so.2 2>/dev/null | head -n 1)
for example in hello zlib sqlite jansson; do
	program=$builddir/examples/$example
	if [ ! -x "$program" ]; then
		skip "$example" "it was not built: its library is missing"
		continue
	fi
	"$builddir/mew" run --all --max-time 0.05 --inner-iterations 100 --csv "$work/1.csv" --html "$work/r.html" \
		"$program" >"$work/out" 2>&1
	result "$example: time, memory, CPU and a report" $? "$work/out"
	if [ ! -e "$hooks" ]; then
		skip "$example: exact counts" "the hooks are not in this build"
		continue
	fi
	"$builddir/mew" run --memory --max-time 0.01 --csv "$work/2.csv" "$program" >"$work/out" 2>&1
	counts "$work/1.csv" >"$work/1"
	counts "$work/2.csv" >"$work/2"
	diff "$work/1" "$work/2" >"$work/out" 2>&1
	result "$example: two runs count the same to the byte" $? "$work/out"
	if [ -z "$jemalloc" ]; then
		skip "$example: the same counts on jemalloc" "libjemalloc2 is not installed"
		continue
	fi
	LD_PRELOAD=$hooks:$jemalloc "$builddir/mew" run --memory --max-time 0.01 --csv "$work/3.csv" "$program" >"$work/out" 2>&1
	counts "$work/3.csv" >"$work/3"
	diff "$work/1" "$work/3" >"$work/out" 2>&1
	result "$example: the same counts on jemalloc" $? "$work/out"
done
if [ -e "$hooks" ]; then
	"$builddir/mew" run --memory --max-time 0.01 --json "$work/arena.json" "$builddir/examples/arena" >"$work/out" 2>&1 &&
		tr -d ' \t\n' <"$work/arena.json" >>"$work/out" && grep -q '"name":"arena","peak_bytes":840,' "$work/out"
	result "arena: the pool is shown, and the heap without it" $? "$work/out"
else
	skip "arena: a pool" "the hooks are not in this build"
fi
"$builddir/examples/direct" >"$work/out" 2>&1
result "direct: the library without MEW_MAIN" $? "$work/out"
echo "1..$number"
exit $failed
