#!/bin/sh
# shellcheck disable=SC2154 # make sets srcdir and builddir
#
# cxx.sh - the headers from C++11 to C++20 and C11 to C17, by gcc and clang, without a warning; and the C++ program itself.
# Prints TAP. builddir and srcdir come from make.
set -u
source=$(cd "$srcdir" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0
flags="-O2 -Wall -Wextra -Wpedantic -Wshadow -Werror -I$source/include -fsyntax-only"

compile() { # NAME COMPILER FLAGS... FILE
	name=$1 compiler=$2
	shift 2
	number=$((number + 1))
	if ! command -v "$compiler" >/dev/null 2>&1; then
		echo "ok $number - $name # SKIP $compiler is not installed"
	elif "$compiler" "$@" >"$work/log" 2>&1; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		head -n 20 "$work/log" | sed 's/^/# /'
		failed=1
	fi
}

# the public headers alone, under what strict projects ask for
cat >"$work/headers.c" <<'END'
#include <mew.h>
#include <mew/guest.h>
#include <mew/pool.h>
#include <mew/trace.h>
MEW_BENCHMARK(strict)
{
	MEW_LOOP(st) {
		MEW_PAUSED(st) {
			mew_clobber();
		}
		mew_section("section")
			mew_mark("mark");
		mew_assert_no_alloc {
			mew_keep(mew_iterations(st));
		}
	}
}
MEW_MAIN()
END
cp "$work/headers.c" "$work/headers.cc"
strict="$flags -Wconversion -Wsign-conversion -Wcast-qual -Wundef"

# shellcheck disable=SC2086 # flags are words
{
	for compiler in g++ clang++; do
		compile "$compiler, headers alone and strict" $compiler -std=c++11 $strict -Wold-style-cast \
			-Wzero-as-null-pointer-constant "$work/headers.cc"
	done
	for compiler in gcc clang; do
		compile "$compiler, headers alone and strict" $compiler -std=c11 $strict -Wstrict-prototypes "$work/headers.c"
	done
	for compiler in g++ clang++; do
		for standard in c++11 c++14 c++17 c++20; do
			compile "$compiler $standard" $compiler -std=$standard $flags "$source/tests/cxx_header.cc"
			compile "$compiler $standard, pool.h" $compiler -std=$standard $flags "$source/tests/cxx_pool.cc"
		done
		compile "$compiler without exceptions" $compiler -std=c++11 -fno-exceptions $flags "$source/tests/cxx_noexceptions.cc"
	done
	for compiler in gcc clang; do
		for standard in c11 c17; do
			for example in hello direct arena budget; do
				compile "$compiler $standard $example" $compiler -std=$standard $flags "$source/examples/$example.c"
			done
		done
	done
}
number=$((number + 1))
if "$builddir/tests/cxx_header" >"$work/log" 2>&1; then
	echo "ok $number - the C++ program"
else
	echo "not ok $number - the C++ program"
	tail -n 20 "$work/log" | sed 's/^/# /'
	failed=1
fi
# pool.h without any library: it links, runs, and leaves nothing behind but the test of a constant
for compiler in "${CC-cc} -x c" "${CXX-c++} -x c++"; do
	number=$((number + 1))
	# shellcheck disable=SC2086 # words
	if $compiler -O2 -I"$source/include" "$source/tests/cxx_pool.cc" -o "$work/pool" >"$work/log" 2>&1 &&
		"$work/pool" >>"$work/log" 2>&1; then
		echo "ok $number - pool.h alone, $compiler"
	else
		echo "not ok $number - pool.h alone, $compiler"
		head -n 20 "$work/log" | sed 's/^/# /'
		failed=1
	fi
done
echo "1..$number"
exit $failed
