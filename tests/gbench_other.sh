#!/bin/sh
# gbench_other.sh - gbench.sh, gbench_rude.sh and gbench_gate.sh once more, with the release of Google Benchmark that
# MEW_GBENCH_TREE names: a folder of its sources, which is built, or one it was installed into. Prints TAP.
set -u
if [ -z "${MEW_GBENCH_TREE-}" ]; then
	echo "1..0 # SKIP MEW_GBENCH_TREE names no folder of another Google Benchmark (its sources, or what it was installed into)"
	exit 0
fi
# shellcheck disable=SC2154 # make sets them
if [ ! -e "$builddir/.libs/libmew_hooks.so" ]; then
	echo "1..0 # SKIP a sanitizer replaces malloc itself"
	exit 0
fi
srcdir=$(cd "$srcdir" && pwd)
tree=$(cd "$MEW_GBENCH_TREE" && pwd) || exit 99
if [ -e "$tree/tools/compare.py" ]; then
	GBENCH_COMPARE=$tree/tools/compare.py
	export GBENCH_COMPARE
fi
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"

install_tree() { # shared and as an archive, in $work/installed
	command -v cmake >/dev/null || {
		echo "1..0 # SKIP cmake, which builds Google Benchmark, is missing"
		exit 0
	}
	for shared in ON OFF; do
		(unset CC CXX MAKEFLAGS MFLAGS
		cmake -S "$tree" -B built$shared -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=$shared -DBENCHMARK_ENABLE_TESTING=OFF \
			-DBENCHMARK_ENABLE_WERROR=OFF -DBENCHMARK_INSTALL_DOCS=OFF -DCMAKE_INSTALL_LIBDIR=lib \
			-DCMAKE_INSTALL_PREFIX="$work/installed" && cmake --build built$shared --target install -j 2) >out 2>&1 || {
			tail -n 20 out >&2
			exit 99
		}
	done
	tree=$work/installed
}

[ ! -e "$tree/CMakeLists.txt" ] || install_tree
library=$(ls "$tree"/lib*/libbenchmark.so 2>/dev/null) || {
	echo "Bail out! $tree has neither CMakeLists.txt nor lib/libbenchmark.so"
	exit 99
}
folder=$(dirname "$library")
version=$(basename "$(readlink -f "$library")")
version=${version#libbenchmark.so.}
flags="-std=c++17 -I$tree/include -L$folder -Wl,-rpath,$folder"
! grep -rq MaybeReenterWithoutASLR "$tree/include" || flags="$flags -DREENTERS"
! grep -rq SkipWithMessage "$tree/include" || flags="$flags -DSKIPS"

# a command beside a libmew_gbench for it
mkdir -p other/.libs
cp "$builddir/mew" other/mew
ln -s "$builddir"/.libs/libmew_[ghrst]*.so* other/.libs/
rm -f other/.libs/libmew_gbench.so*
# shellcheck disable=SC2086 # flags are words
${CXX:-g++} -shared -fPIC -O2 -Wall -Wextra $flags "-DMEW_GBENCH_VERSION=\"$version\"" -I"$builddir" -I"$srcdir/include" \
	"$srcdir/gbench/interpose.cc" -o other/.libs/libmew_gbench.so.0 -L"$builddir/.libs" -lmew_guest -lbenchmark -ldl >out 2>&1
code=$?
if [ $code != 0 ] || [ -s out ]; then
	cat out >&2
	echo "Bail out! libmew_gbench does not compile with Google Benchmark $version"
	exit 99
fi
ln -s libmew_gbench.so.0 other/.libs/libmew_gbench.so
archive=
[ ! -e "$folder/libbenchmark.a" ] || archive="-DBENCHMARK_STATIC_DEFINE -l:libbenchmark.a"
GBENCH_COMMAND=$work/other/mew GBENCH_FLAGS=$flags GBENCH_ARCHIVE=$archive
export GBENCH_COMMAND GBENCH_FLAGS GBENCH_ARCHIVE
echo "# Google Benchmark $version"
for script in gbench gbench_rude gbench_gate; do
	sh "$srcdir/tests/$script.sh"
done | awk '/^1\.\./ { next } /^(not )?ok/ { n++; sub(/ok [0-9]+/, "ok " n) } { print } /^not ok/ { bad = 1 }
	END { print "1.." n; exit bad }'
