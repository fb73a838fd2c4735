#!/bin/sh
# oracle.sh - builds the workload of oracle.c in many ways and compares mew's stacks with libunwind's at every
# instruction. TAP: one line a build. A build fails when a stack differs, or when more than 0.01 % are cut short; under
# musl, where the C library cannot be walked, when one is cut for another reason than that.

root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT HUP INT TERM
cc=${CC:-cc}
include="-I$work -I$root/include -I$root/src -I$root/tests"
base="-std=c11 -g $include"

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

# shellcheck disable=SC2086 # the compiler and its flags are lists
build_parts() { # COMPILER FLAGS
	for part in modules image ehframe ehframe_entry cfi cfi_read unwind unwind_code_x86_64 unwind_registers_x86_64 \
		unwind_recent unwind_stacks unwind_libunwind unwind_x86_64 arena kept os_linux os_maps; do
		$1 $base -O2 $2 -c -o "$work/$part.o" "$root/src/$part.c" || return 1
	done
	$1 $base -O2 $2 -c -o "$work/oracle.o" "$root/tests/oracle.c"
}

# run_one NAME COMPILER COMPILE-FLAGS LINK-FLAGS LIBRARIES
# shellcheck disable=SC2086 # the flags are lists
run_one() {
	number=$((number + 1))
	if ! $2 $base $3 -c -o "$work/fx.work" "$root/tests/fx_work.c" 2>"$work/log" ||
		! $2 $4 -Wl,--wrap=mew_recent_holds -o "$work/oracle" "$work"/*.o "$work/fx.work" $5 -lm \
			2>"$work/log"; then
		sed 's/^/# /' "$work/log"
		if echo 'int main(void) { return 0; }' | $2 $3 $4 -x c -o "$work/nothing" - $5 -lm 2>/dev/null; then
			echo "not ok $number - $1: it does not build, though the compiler and the libraries are here"
			failed=1
		else
			echo "ok $number - $1 # SKIP a program of nothing does not build here in this way"
		fi
		return
	fi
	verdict="not ok"
	timeout 300 "$work/oracle" "$1" >"$work/log" && verdict=ok
	cat "$work/log"
	echo "$verdict $number - $1"
	[ "$verdict" = ok ] || failed=1
}

[ "$(uname -m)" = x86_64 ] || skip_all "the tables are those of x86-64"
echo '#define _GNU_SOURCE 1' >"$work/config.h"
echo '#include <libunwind.h>
int main(void) { unw_context_t c; return unw_getcontext(&c); }' >"$work/probe.c"
$cc -o "$work/probe" "$work/probe.c" -lunwind 2>/dev/null || skip_all "libunwind is not installed"
build_parts "$cc" "" || {
	echo "Bail out! mew does not build with $cc"
	exit 1
}

number=0
failed=0
echo "1..22"
for compiler in gcc clang; do
	for level in -O0 -O2 -O3; do
		for frame in -fomit-frame-pointer -fno-omit-frame-pointer; do
			run_one "$compiler $level $frame" "$compiler" "$level $frame" "-Wl,-z,now" "-lunwind"
		done
	done
done
for compiler in gcc clang; do
	run_one "$compiler -Os" "$compiler" "-Os" "-Wl,-z,now" "-lunwind"
	linker=$([ "$compiler" = clang ] && echo lld || echo bfd)
	run_one "$compiler -O3, whole program at link time" "$compiler" "-O3 -flto" "-O3 -flto -fuse-ld=$linker" \
		"-lunwind"
done
run_one "bound lazily, with branch tracking" gcc "-O2 -fcf-protection" "-Wl,-z,lazy -Wl,-z,ibtplt" "-lunwind"
run_one "linked by lld, whose stubs have no rules" clang "-O2" "-fuse-ld=lld -Wl,-z,lazy" "-lunwind"
run_one "static, without a search table" gcc "-O2" "-static" "-lunwind -llzma"

# no libunwind can be linked into it: by calls alone
if build_parts "$cc" "-fPIE -DCALLS_ALONE" 2>"$work/log"; then
	run_one "static, position-independent" "$cc" "-O2 -fPIE -DCALLS_ALONE" "-static-pie" ""
else
	sed 's/^/# /' "$work/log"
	number=$((number + 1))
	echo "not ok $number - static, position-independent: mew does not build"
	failed=1
fi

# musl has no unwind information: there a stack may be cut, and must not be wrong. Without libunwind, by calls alone
for link in "" -static; do
	name="musl, dynamic"
	[ -z "$link" ] || name="musl, static"
	# shellcheck disable=SC2086 # no word where it is empty
	if ! echo 'int main(void) { return 0; }' | musl-gcc $link -x c -o "$work/nothing" - 2>/dev/null; then
		number=$((number + 1))
		echo "ok $number - $name # SKIP musl-gcc is not installed, or builds no program of nothing"
	elif build_parts musl-gcc "-DCALLS_ALONE -DNO_TABLES" 2>"$work/log"; then
		run_one "$name" musl-gcc "-O2 -fno-omit-frame-pointer -DCALLS_ALONE" "$link" ""
	else
		sed 's/^/# /' "$work/log"
		number=$((number + 1))
		echo "not ok $number - $name: mew does not build with musl-gcc"
		failed=1
	fi
done
exit "$failed"
