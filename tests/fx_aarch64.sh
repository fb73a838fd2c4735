#!/bin/sh
# fx_aarch64.sh - makes tests/fx_aarch64.inc anew: stacks of aarch64, recorded under qemu, which t_unwind_aarch64.c walks
# on any machine. Needs aarch64-linux-gnu-gcc and qemu-aarch64 (Debian: gcc-aarch64-linux-gnu qemu-user); make check does not.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT HUP INT TERM
flags="-ffreestanding -fno-builtin -fno-stack-protector -fasynchronous-unwind-tables -fno-pic -nostdlib -static"

section() { # NAME COLUMN of readelf -SW: 1 address, 3 size
	aarch64-linux-gnu-readelf -SW "$work/program" |
		awk -v name="$1" -v column="$2" '{ for (i = 1; i <= NF; i++) if ($i == name) print "0x" $(i + 1 + column) }'
}

{
	echo "/* fx_aarch64.inc - made by fx_aarch64.sh: do not edit. */"
	number=0
	while read -r options; do
		# shellcheck disable=SC2086 # the flags are lists
		aarch64-linux-gnu-gcc -std=gnu11 $flags $options -o "$work/program" fx_aarch64.c
		aarch64-linux-gnu-objcopy -O binary -j .eh_frame "$work/program" "$work/frames"
		qemu-aarch64 -s 65536 "$work/program" >"$work/records"
		number=$((number + 1))
		echo "static const uint8_t frames_${number}[] = {"
		od -An -v -tx1 "$work/frames" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g; s/^/	/'
		echo "};"
		echo "static const struct record records_${number}[] = {"
		cat "$work/records"
		echo "};"
		printf '#define PROGRAM_%s { "%s", %s, %s, %s, frames_%s, sizeof frames_%s, records_%s, MEW_COUNTOF(records_%s) }\n' \
			"$number" "$options" "$(section .text 1)" "$(section .text 3)" "$(section .eh_frame 1)" \
			"$number" "$number" "$number" "$number"
	done <<-LIST
		-O0
		-O2
		-O2 -fomit-frame-pointer
		-O2 -mbranch-protection=pac-ret+leaf
	LIST
	echo "static const struct program programs[] = { PROGRAM_1, PROGRAM_2, PROGRAM_3, PROGRAM_4 };"
} >"$work/inc"
cp "$work/inc" fx_aarch64.inc
