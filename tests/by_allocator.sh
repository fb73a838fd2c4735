#!/bin/sh
# by_allocator.sh - mew run --allocator: each allocator is really used, figures by allocator in all files, bad names.
# Prints TAP.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/by_allocator.sh
set -u
# shellcheck disable=SC2154 # make sets them
mew=$builddir/mew
if grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile"; then
	echo "1..0 # SKIP the malloc hooks are not in a sanitized build"
	exit 0
fi
case $srcdir in /*) ;; *) srcdir=$PWD/$srcdir ;; esac
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"
needs jq "mew run --allocator"
unset LD_PRELOAD
program=$builddir/examples/hello
short="--max-time 0.02 --min-warmup-time 0 --memory=10 --processes 2"

# bad input first: nothing is measured
run "$mew" run --allocator jemaloc "$program"
complains "an unknown name" 2 'none of system, jemalloc'
run "$mew" run --allocator system,system "$program"
complains "a name given twice" 2 'named twice'
run "$mew" run --allocator system,,system "$program"
complains "an empty name" 2 'a name is empty'
run "$mew" run --allocator ./absent.so "$program"
complains "a file that is not there" 2 'absent.so is not a file'
libm=$(ldd "$mew" | awk '$1 ~ /^libm[.]/ { print $3 }')
if [ -n "$libm" ]; then
	run "$mew" run --allocator "$libm" "$program"
	complains "a library without malloc" 2 'allocates from .* and not from .*libm'
else
	skip "a library without malloc" "the command is linked without libm"
fi

list=system
for pair in jemalloc:libjemalloc.so.2 tcmalloc:libtcmalloc_minimal.so.4 mimalloc:libmimalloc.so.2; do
	if ls /usr/lib/*/"${pair#*:}" >/dev/null 2>&1; then
		list=$list,${pair%:*}
	else
		run "$mew" run --allocator "${pair%:*}" "$program"
		complains "${pair%:*} is not installed" 2 "install Debian's package lib"
	fi
done
# shellcheck disable=SC2086 # the flags are words
run "$mew" run $short --allocator "$list" --json r.json --csv r.csv --html r.html "$program"
check "the run under $list" 0 '^allocators: '
rows=$(jq '.cases | length' r.json)
[ "$rows" = $(($(echo "$list" | tr , '\n' | wc -l) * $(jq '[.cases[].key] | unique | length' r.json))) ]
result "a row for each case and allocator" $? "$rows rows"
for name in $(echo "$list" | tr , ' '); do
	grep -q " on $name  *[0-9]" out && grep -q "^$name: [a-z0-9. ]*, /" out
	result "$name: its rows and its version in the table" $?
	jq -e --arg of "$name" '[.cases[] | select(.allocator == $of) | .time.status == "MEW_OK" and .memory.status == "MEW_OK" and
		([.time.runs[]?.process] | length >= 0)] | length > 0 and all' r.json >/dev/null
	result "$name: time and memory" $?
	# counted by the hooks, whatever lies behind them
	jq -e --arg of "$name" '(.cases | map(select(.allocator == "system")) | map({(.key): .memory.total_allocations}) | add) ==
		(.cases | map(select(.allocator == $of)) | map({(.key): .memory.total_allocations}) | add)' r.json >/dev/null
	result "$name: the same allocations as under the C library" $?
done

# --- one that is plainly slower, in real processes
cat >slow.c <<'C'
#include <stddef.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
void __libc_free(void *);
static void wait_a_little(void)
{
	for (volatile int i = 0; i < 200000; i++)
		;
}
void *malloc(size_t n) { wait_a_little(); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { return __libc_memalign(a, n); }
void free(void *p) { __libc_free(p); }
C
if ${CC:-cc} -shared -fPIC -O1 -fno-builtin -w -o slow.so slow.c 2>log; then
	run "$mew" run --max-time 0.4 --min-warmup-time 0 --memory=10 --allocator ./slow.so,system "$program"
	check "one that waits in each malloc: the other one is marked" 0 '^[a-z]* on system .*fastest$'
	[ "$(grep -c 'fastest$' out)" = 1 ]
	result "... and it is not" $?
	# whatever is preloaded already comes behind the one that is asked for
	LD_PRELOAD=$work/slow.so run "$mew" run $short --json two.json --allocator "system,$work/slow.so" "$program"
	check "two preloaded: the one that is asked for is used" 0
	jq -e '.cases | map({(.allocator): .time.median_ns}) | add | ."slow.so" > 2 * .system' two.json >/dev/null
	result "... in each process" $? "$(jq -c '.cases | map({(.allocator): .time.median_ns})' two.json)"
else
	skip "one that waits in each malloc" "the C library does not offer its malloc by another name"
fi
head -n 1 r.csv | grep -q ',threads,allocator,' && [ "$(wc -l <r.csv)" = $((rows + 1)) ]
result "the column of CSV" $?
run "$mew" report r.json
check "a saved result gives the same table" 0 '^allocators: '
run "$mew" compare r.json r.json
check "compare pairs each with its own" 0 'system'
run "$mew" run --max-time 0.01 --csv plain.csv "$program"
head -n 1 plain.csv | grep -q allocator
[ $? = 1 ]
result "without the flag there is no such column" $?

cat >gone <<END
#!/bin/sh
echo >>runs
[ "\$(wc -l <runs)" -lt 5 ] || rm -f "\$0"
exec "$program" "\$@"
END
chmod +x gone
run "$mew" run --max-time 0.01 --processes 20 --allocator system --json gone.json ./gone
check "a program that goes away between processes" 1 'on system: only [1-4] of 20 processes'
jq -e '.cases[0].time | .median_ns > 0 and .processes < 5 and (.reason | split("only") | length == 2)' gone.json >/dev/null
result "... keeps the figures of those that had run, and says so once" $? "$(jq -c '.cases[0].time' gone.json)"
finish
