#!/bin/sh
# record_window.sh - `mew record` from one function to another: exact counts, on any thread, in libraries that are opened
# late; and what is said where a function is not there or not entered. Prints TAP.
set -u
# shellcheck disable=SC2154 # make sets them
case $srcdir in /*) top=$srcdir ;; *) top=$(pwd)/$srcdir ;; esac
case $builddir in /*) ;; *) builddir=$(pwd)/$builddir ;; esac
mew=$builddir/mew
. "$top/tests/tap.sh"

needs_hooks "mew record from a function on" "libmew_record is not built with a sanitizer"
if [ "$(uname -m)" != x86_64 ]; then
	run "$mew" record --start-on main -- true
	complains "other machines say that they cannot" 2 "cannot be watched on this machine"
	finish
fi

# --- the code that is moved is read as a disassembler reads it ------------------------------------------------------------
library=$(ldd "$builddir/mew" | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')
if command -v objdump >/dev/null 2>&1 && [ -n "$library" ]; then
	objdump -d -w "$library" | "$builddir/tests/fx_code" >out 2>err
	result "each instruction of the C library has the length and target that objdump shows" $?
else
	skip "instructions as objdump reads them" "there is no objdump"
fi

${CC:-gcc} -O2 -g -o window "$top/tests/fx_window.c" -lpthread -ldl || exit 99
echo 'int late(int a); int late(int a) { return a * 10; }' >late.c
${CC:-gcc} -O2 -shared -fPIC -o late.so late.c || exit 99

counts() { # NAME KEY ALLOCATIONS
	tr -d '\n ' <r.json >flat
	grep -q "\"$2\".*\"total_allocations\":$3," flat
	result "$1" $? "wanted $3 allocations: $(grep -o '"total_allocations":[0-9]*' flat | tr '\n' ' ')"
}
window() { # NAME ALLOCATIONS FLAGS... -- ARGUMENTS...: the output stays, and the count is exact
	name=$1 wanted=$2 flags=
	shift 2
	while [ "$1" != -- ]; do flags="$flags $1"; shift; done
	shift
	./window "$@" >alone
	alone=$?
	rm -f r.json
	# shellcheck disable=SC2086 # flags without blanks
	run "$mew" record --json r.json $flags -- ./window "$@"
	[ $code = $alone ] && cmp -s alone out
	result "$name: the same output and code" $?
	counts "$name" window "$wanted"
}
window "from one function to another" 12 --memory --start-on begins --stop-on ends -- plain
window "with samples beside" 12 --start-on begins --stop-on ends -- plain
window "from a function to the end" 62 --memory --start-on begins -- plain
window "from the start to a function" 112 --memory --stop-on ends -- plain
window "from one entry of a function to its next" 3 --memory --start-on checks --stop-on checks -- plain
window "on a thread that blocks every signal" 12 --memory --start-on begins --stop-on ends -- thread
window "in a library that is opened later" 5 --memory --start-on late --stop-on ends -- plugin ./late.so
window "before the program becomes another" 12 --memory --start-on begins --stop-on ends -- becomes
! grep -q 'it became' err
result "... which is none of the window's" $?
window "in the C library" 55 --memory --start-on fork -- fork
run "$mew" record --memory --start-on passes -- ./window plain
check "a call that would return to another place is not moved" 0 '^3 4$' 'passes: its first instructions cannot be moved'
./window many >alone
run "$mew" record --json r.json --start-on checks --stop-on ends -- ./window many
cmp -s alone out && grep -q '"status": *"MEW_OK"' r.json
result "entered by four threads at once: the same output" $?
run "$mew" record --memory --follow --json r.json --start-on begins --stop-on ends -- ./window fork
counts "a child that is forked in the window is in its own" window/2 11

# --- a window that opens after some time: also that of whoever starts later ------------------------------------------------
run "$mew" record --memory --follow --json r.json --start-after 0.2 -- sh -c 'sleep 0.4; ./window fork'
counts "a program that starts when the window is open" window 162
counts "... and the child that it forks" window/2 11

# --- C++: all overloads of a name --------------------------------------------------------------------------------------------
cat >names.cc <<'C'
#include <cstdlib>
static void *volatile sink;
#define CODE __attribute__((noinline, noclone))
namespace { struct hidden { CODE void run() { sink = malloc(1); } }; }
namespace shop {
template <class T> CODE void pay(T) { sink = malloc(2); }
struct till { CODE void open(int) const { sink = malloc(3); } };
}
CODE static void alone(int) { sink = malloc(4); }
int main()
{
	hidden().run();
	shop::pay(1);
	shop::till().open(1);
	alone(1);
}
C
if ${CXX:-g++} -O1 -o names names.cc 2>/dev/null; then
	for pair in hidden::run:4 shop::pay:3 shop::till::open:2 alone:1; do
		run "$mew" record --memory --json r.json --start-on "${pair%:*}" -- ./names
		counts "a function of C++: ${pair%:*}" names "${pair##*:}"
	done
else
	skip "functions of C++" "there is no C++ compiler"
fi

# --- what is not there -----------------------------------------------------------------------------------------------------
run "$mew" record --memory --start-on begins -- ./window never
check "a function that is not entered: the command's code, and the reason" 9 "" "was not entered, so the window never"
run "$mew" record --memory --start-on begin -- ./window plain
check "a function that is not there: the closest" 0 "" "the closest is begins of"
run "$mew" record --memory --stop-on nowhere_at_all -- ./window plain
check "an end that is not there" 0 "" "so the window lasts to the end"
run "$mew" record --memory --start-on strcasecmp -- ./window plain
check "an ifunc" 0 "" "ifunc"
run "$mew" record --memory --start-after 1 --start-on begins -- ./window plain
complains "seconds and functions" 2 "give seconds or functions"
run "$mew" record --memory --start-on "" -- ./window plain
complains "an empty name" 2 "the name of a function"

# --- real programs -----------------------------------------------------------------------------------------------------------
real() { # NAME FUNCTION COMMAND...
	name=$1 function=$2
	shift 2
	if ! command -v "$1" >/dev/null 2>&1; then
		skip "$name from $function on" "$1 is not installed"
		return
	fi
	"$@" >alone 2>/dev/null </dev/null
	run "$mew" record --json r.json --start-on "$function" -- "$@"
	cmp -s alone out && tr -d '\n ' <r.json | grep -q '"total_allocations":[1-9]'
	result "$name from $function on" $?
}
real sqlite3 sqlite3_prepare_v2 sqlite3 :memory: 'create table t(a); insert into t values (1), (2); select sum(a) from t;'
real python3 PyEval_EvalCode /usr/bin/python3 -c 'print(sum(len(str(i)) for i in range(5000)))'
finish
