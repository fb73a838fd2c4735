#!/bin/sh
# symbols.sh - names 2,000 addresses of ten units of a C++ library with 60 MB of debug information, inlined functions and
# lines included, beside `llvm-symbolizer -i`: time and peak memory of the whole process.
#
#   symbols.sh ROUNDS SRCDIR     run in the build directory; needs binutils and the C++ compiler in CXX
#
# Compiling 50 different units would take minutes, so one is compiled, and the units of the library are copies of it under
# other symbol names: debug information is not shared between copies, and is read like any other.
set -eu
rounds=$1 srcdir=$2
cxx=${CXX:-c++}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

echo "building a library of 50 units..."
# shellcheck disable=SC2086 # the compiler may be several words
$cxx -std=c++17 -g -O2 -fPIC -DFX_REGEX -c -o "$scratch/one.o" "$srcdir/tests/fx_sym_large.cc"
unit=0
while [ $unit -lt 50 ]; do
	objcopy --prefix-symbols=u${unit}_ "$scratch/one.o" "$scratch/unit$unit.o"
	unit=$((unit + 1))
done
# shellcheck disable=SC2086
$cxx -shared -Wl,--build-id -o "$scratch/large.so" "$scratch"/unit*.o
size -A "$scratch/large.so" | awk '$1 == ".debug_info" { printf "debug information: %.1f MB\n", $2 / 1e6 }'
sh "$srcdir/tests/fx_sym_addresses.sh" "$scratch/large.so" '^u[0-9]_' 2000 1 >"$scratch/addresses"

set -- "mew=bench/symbols mew .libs/libmew_symbols.so $scratch/large.so $scratch/addresses"
if command -v llvm-symbolizer >/dev/null; then
	set -- "llvm-symbolizer=bench/symbols command $scratch/addresses llvm-symbolizer -i --obj=$scratch/large.so" "$@"
else
	echo "llvm-symbolizer is not installed (llvm): mew alone"
fi
sh "$srcdir/bench/compare.sh" "$rounds" "$@"
