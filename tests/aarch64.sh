#!/bin/sh
# aarch64.sh - builds the walk of aarch64 and what it needs, and compares it on an emulated processor with the
# compiler's own unwinder, at places where a timer interrupts. Prints TAP.
set -u
# shellcheck disable=SC2154 # make sets it
case $srcdir in /*) top=$srcdir ;; *) top=$(pwd)/$srcdir ;; esac
. "$top/tests/tap.sh"

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

cross=aarch64-linux-gnu
command -v $cross-gcc >/dev/null 2>&1 || skip_all "there is no $cross-gcc (Debian: gcc-$cross)"
command -v qemu-aarch64 >/dev/null 2>&1 || skip_all "there is no qemu-aarch64 (Debian: qemu-user)"
echo 'int main(void) { return 0; }' >nothing.c
$cross-gcc -o nothing nothing.c 2>err && qemu-aarch64 -L /usr/$cross nothing ||
	skip_all "a program of nothing does not run by qemu-aarch64 -L /usr/$cross"

echo '#define _GNU_SOURCE 1' >config.h
code=0
flags="-std=gnu11 -g -funwind-tables -Wall -Wextra -Werror -I. -I$top/include -I$top/src"
for part in modules image ehframe ehframe_entry cfi cfi_read unwind unwind_aarch64 unwind_fp unwind_libunwind \
	unwind_stacks arena kept os_linux os_maps; do
	# shellcheck disable=SC2086 # the flags are lists
	$cross-gcc $flags -O2 -c -o $part.o "$top/src/$part.c" 2>err || { code=1; break; }
done
result "the unwinder builds for aarch64" $code
[ $code = 0 ] || finish

for options in "-O2" "-O2 -fomit-frame-pointer -mbranch-protection=pac-ret+leaf"; do
	name="stacks at 500 interrupts are those of the compiler's unwinder: $options"
	rm -f async out
	# shellcheck disable=SC2086 # the flags are lists
	if ! $cross-gcc $flags $options -o async "$top/tests/fx_async.c" ./*.o -lpthread -ldl -lm 2>err; then
		result "$name" 1 "it does not build"
		continue
	fi
	run timeout 300 qemu-aarch64 -L /usr/$cross ./async 500
	check "$name" 0 '^walks .* different 0$'
	sed 's/^/# /' out
done
finish
