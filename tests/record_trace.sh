#!/bin/sh
# record_trace.sh - `mew record --trace`: processes, threads, window and counters of an unmodified program on a sound
# timeline; and operator new of an allocator that has its own. Prints TAP.
set -u
# shellcheck disable=SC2154 # make sets them
case $srcdir in /*) top=$srcdir ;; *) top=$(pwd)/$srcdir ;; esac
case $builddir in /*) ;; *) builddir=$(pwd)/$builddir ;; esac
mew=$builddir/mew
. "$top/tests/tap.sh"

needs_hooks "mew record --trace" "libmew_record is not built with a sanitizer"
TMPDIR=$work/tmp
export TMPDIR
mkdir "$TMPDIR"

cat >family.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static void *helper(void *unused)
{
	prctl(PR_SET_NAME, "helper");
	usleep(200000);
	return unused;
}
int main(void)
{
	void *volatile block = malloc(1000000);
	pthread_t t;

	pthread_create(&t, NULL, helper, NULL);
	if (fork() == 0) {
		usleep(100000);
		_exit(0);
	}
	wait(NULL);
	pthread_join(t, NULL);
	(void)block;
	return 3;
}
C
${CC:-gcc} -O1 -o family family.c -lpthread || exit 99
has() { # NAME PATTERN [COUNT]: so many lines, or at least one
	found=$(grep -c -- "$2" t.json)
	[ "$found" -ge 1 ] && { [ -z "${3-}" ] || [ "$found" = "$3" ]; }
	result "$1" $? "$found lines with $2"
}
run "$mew" record --follow --trace=t.json -- ./family
check "a traced run keeps the exit code" 3 "" "trace: wrote t.json"
run "$mew" trace-check t.json
check "its trace is sound" 0
has "each process has a name" '"process_name","args":{"name":"family"}' 2
has "each process has its slice" '"cat":"process","name":"family"' 2
has "and its window" '"cat":"window"' 2
has "the thread is there by its name" '"cat":"thread","name":"helper"'
has "the heap is drawn" '"name":"live heap".*"bytes":10[0-9]\{5\}'
has "samples kept" '"name":"samples"'
has "samples lost" '"name":"samples lost"'
[ -z "$(ls -A "$TMPDIR")" ] && [ ! -e t.json.partial ]
result "no fragment is left" $?
if grep -q family t.json && grep -q -- '--follow' t.json; then false; fi
result "the command line is not shown unasked" $?
run "$mew" record --follow --trace=w.json -- sh -c 'sleep 3 >/dev/null 2>&1 & sleep 0.3; kill -9 $$'
check "a traced command that leaves a process behind" 137
# its process ended by a signal, so that both are the moment in which mew saw it
awk -F'"(ts|dur)":' '/"cat":"process"/ && !first { first = $2 + $3 }
	/"ph":"e".*"cat":"command"/ { last = $2 + 0 }
	END { exit !first || last - first > 1 || first - last > 1 }' w.json
result "... ends on the timeline when its process does" $? "$(grep -E '"cat":"(process|command)"' w.json)"
run "$mew" record --trace=u.json --redact secret -- ./family secret
check "--redact" 3
grep -q 'family \*\*\*' u.json
result "shows the command line without what matches" $?
mkdir outer
MEW_TRACE_DIR=$work/outer run "$mew" record --memory --trace=v.json -- ./family
check "within another traced run it leaves fragments there" 3 "" "part of a traced one"
[ ! -e v.json ] && [ -n "$(find outer -name 'record-*.json')" ]
result "and no file of its own" $?
run "$mew" record --trace=/proc/none/t.json -- true
check "a file that cannot be written" 2

# --- operator new -----------------------------------------------------------------------------------------------------------
cat >operators.cc <<'C'
static int *volatile sink;
int main()
{
	for (int i = 0; i < 321; i++)
		sink = new int[1234];
}
C
allocator() { # NAME LIBRARY: exactly 321 allocations of 4936 bytes
	library=$(find /usr/lib /usr/local/lib -name "$2" 2>/dev/null | head -n 1)
	if [ -z "$library" ] || ! ${CXX:-g++} -O1 -o "operators_$1" operators.cc -Wl,--no-as-needed "$library" 2>/dev/null; then
		skip "operator new of $1" "$1 is not installed"
		return
	fi
	run "$mew" record --memory --start-on main --json r.json -- "./operators_$1"
	! grep -q 'is not counted' err && tr -d '\n ' <r.json | grep -q '"total_allocations":321,'
	result "operator new of $1 is counted" $?
}
allocator jemalloc 'libjemalloc.so.2'
allocator tcmalloc 'libtcmalloc_minimal.so.4'
allocator mimalloc 'libmimalloc.so.2*'
finish
