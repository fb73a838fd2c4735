#!/bin/sh
# frameworks.sh - the examples for cmocka, GoogleTest and Catch2: budgets hold, and one that is exceeded fails its test
# and prints its stacks. Prints TAP.
#
# builddir, srcdir, CC and CXX come from make; run by hand: builddir=BUILD srcdir=. CC=gcc CXX=g++ sh tests/frameworks.sh
set -u
# shellcheck disable=SC2154 # make sets them
if grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile"; then
	echo "1..0 # SKIP the malloc hooks are not in a sanitized build"
	exit 0
fi
# shellcheck disable=SC2154 # make sets it
source=$(cd "$srcdir" && pwd)
# shellcheck source=tests/tap.sh
. "$source/tests/tap.sh"
libs=$builddir/.libs

framework() { # NAME FILE FUNCTION SWITCH COMPILER: with SWITCH the program runs the test that exceeds its budget
	# shellcheck disable=SC2086 # the compiler and the flags are words
	if ! $5 -O0 -g "-I$source/include" "$source/examples/$2" -o ./program "-L$libs" "-Wl,-rpath,$libs" \
		-Wl,--no-as-needed -lmew_hooks -lmew $flags -lpthread >out 2>err; then
		result "$1: the example is built" 1
		return
	fi
	run ./program
	check "$1: budgets that hold" 0
	run ./program "$4"
	cat out err | tr -s ' \n' ' ' >both # a framework may break lines anywhere
	[ "$code" != 0 ] && grep -q 'allocations* where .* allowed' both && grep -q 'allocation [0-9]*, [0-9]* bytes:' both &&
		{ [ ! -f "$libs/libmew_symbols.so" ] || grep -q "$3" both; }
	result "$1: one that is exceeded fails its test, with stacks" $?
}

has() { # COMPILER HEADER...
	compiler=$1
	shift
	printf '#include <%s>\n' "$@" >probe.cc
	$compiler -fsyntax-only -x "$language" probe.cc >/dev/null 2>&1
}

language=c
if has "$CC" stdarg.h stddef.h setjmp.h stdint.h cmocka.h; then
	flags=-lcmocka
	framework cmocka budget_cmocka.c 'join (budget_cmocka.c' --exceed "$CC"
else
	skip cmocka "libcmocka-dev is not installed"
fi
language=c++
if ! command -v "${CXX%% *}" >/dev/null 2>&1; then
	skip "GoogleTest and Catch2" "there is no C++ compiler"
	finish
fi
if has "$CXX" gtest/gtest.h; then
	flags=-lgtest
	framework GoogleTest budget_gtest.cc 'GrowsByItself.*budget_gtest.cc:' --gtest_also_run_disabled_tests "$CXX -std=c++14"
else
	skip GoogleTest "libgtest-dev is not installed"
fi
if has "$CXX" catch2/catch_all.hpp; then
	flags=-lCatch2
	framework Catch2 budget_catch2.cc 'budget_catch2.cc:' '[exceeding]' "$CXX -std=c++17"
elif has "$CXX" catch2/catch.hpp; then
	flags=
	framework Catch2 budget_catch2.cc 'budget_catch2.cc:' '[exceeding]' "$CXX -std=c++14"
else
	skip Catch2 "catch2 is not installed"
fi
finish
