#!/bin/sh
# shellcheck disable=SC2154 # make sets srcdir and builddir
#
# installed.sh - what `make install` leaves works for a stranger's program: pkg-config, shared and static, C and C++,
# also under a linker that drops unneeded libraries. Prints TAP.
#
# builddir, srcdir, CC, CXX and MAKE come from make.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$(sed -n 's/^prefix = //p' "$builddir/Makefile")
source=$(cd "$srcdir" && pwd)
number=0
failed=0

result() { # NAME STATUS LOG
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		sed 's/^/# /' "$3" | tail -n 20
		failed=1
	fi
}

try() { # NAME COMMAND...
	name=$1
	shift
	"$@" >"$work/log" 2>&1
	result "$name" $? "$work/log"
}

case ${CFLAGS-} in *-fsanitize*) echo "1..0 # SKIP a sanitized tree is not installed"; exit 0 ;; esac
if ! command -v pkg-config >/dev/null 2>&1; then
	echo "1..0 # SKIP pkg-config is missing"
	exit 0
fi
# a recursive make must not see the flags of the one that runs the tests
try "make install" env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "${MAKE-make}" -s -C "$builddir" install DESTDIR="$work/root"
root=$work/root$prefix
share=$root/share
try "completion of bash, zsh and fish is where they look" ls "$share/bash-completion/completions/mew" \
	"$share/zsh/site-functions/_mew" "$share/fish/vendor_completions.d/mew.fish"
export PKG_CONFIG_PATH="$root/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$work/root"
export LD_LIBRARY_PATH="$root/lib"
flags=$(pkg-config --cflags --libs mew)
cp "$source/examples/hello.c" "$work/hello.c"
cd "$work" || exit 99

counts() { # PROGRAM: one allocation per iteration must be seen by the memory pass of the program itself
	"./$1" --memory --max-time 0.02 --json "$1.json" >/dev/null && tr -d ' \t\n' <"$1.json" | grep -q '"allocations_per_iteration":1[,}]'
}

# shellcheck disable=SC2086 # flags are words
{
	try "cc bench.c \$(pkg-config --cflags --libs mew)" $CC -O2 hello.c -o hello $flags
	try "... measures time and memory" counts hello
	try "a linker that drops unneeded libraries" $CC -O2 hello.c -o needed -Wl,--as-needed $flags
	try "... measures time and memory" counts needed
	try "libraries named by hand without the hooks" $CC -O2 hello.c -o bare -I"$root/include" -L"$root/lib" -lmew
	try "... gets them from the command" sh -c "'$root/bin/mew' run --memory --max-time 0.02 ./bare | grep -q hello\\\\\\|1"
	if [ -e "$root/lib/libmew.a" ]; then
		try "static archives" $CC -O2 hello.c -o archived -I"$root/include" "$root/lib/libmew_hooks.a" "$root/lib/libmew.a" -lpthread -ldl -lm
		try "... measures time and memory" counts archived
		try "static archives in the other order" $CC -O2 hello.c -o turned -I"$root/include" "$root/lib/libmew.a" "$root/lib/libmew_hooks.a" -lpthread -ldl -lm
		try "... measures time" ./turned --max-time 0.02
	else
		number=$((number + 1))
		echo "ok $number - static archives # SKIP this build has none: configure it without --disable-static"
	fi
}

project() { # README's project for cmake
	mkdir -p cmake && cp hello.c cmake/bench.c && echo 'int foo(void); int foo(void) { return 0; }' >cmake/foo.c || return 1
	{
		printf 'cmake_minimum_required(VERSION 3.13)\nproject(bench C)\nadd_library(foo STATIC foo.c)\n'
		sed -n '/^```cmake/,/^```$/p' "$source/README.md" | grep -v '^```'
	} >cmake/CMakeLists.txt
	CC=${CC##* } cmake -S cmake -B cmake/build -DCMAKE_BUILD_TYPE=Release && cmake --build cmake/build
}
if command -v cmake >/dev/null 2>&1; then
	try "README's project for cmake" project
	try "... measures time and memory" counts cmake/build/bench
else
	number=$((number + 1))
	echo "ok $number - README's project for cmake # SKIP cmake is not installed"
fi
try "mew list -v" "$root/bin/mew" list -v ./hello
try "the man pages are there" test -s "$root/share/man/man1/mew.1" -a -s "$root/share/man/man3/mew.3"
try "libmew needs libc alone" sh -c "! readelf -d '$root/lib/libmew.so' | grep NEEDED | grep -v 'libc.so\\|libm.so\\|libpthread\\|libdl\\|ld-linux'"
try "operator new over the hooks is a library of its own" sh -c "nm -D '$root/lib/libmew_hooks_cxx.so' | grep -q ' T _ZdlPv\$'"
try "libmew_threads is beside the command's libmew" test -e "$root/lib/libmew_threads.so.0"
try "libmew does not need its hooks" sh -c "! readelf -d '$root/lib/libmew.so' | grep -q libmew_hooks"
try "make uninstall" env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "${MAKE-make}" -s -C "$builddir" uninstall DESTDIR="$work/root"
find "$work/root" ! -type d >"$work/left"
try "... leaves nothing" sh -c "cat '$work/left'; ! test -s '$work/left'"

echo "1..$number"
exit $failed
