#!/bin/sh
# fx_sym_addresses.sh - random addresses inside the functions of a file, ascending, one hexadecimal number a line. A
# fixture of symbols.sh of tests/ and of bench/.
#
#   fx_sym_addresses.sh FILE WHICH COUNT SEED     WHICH is an expression that the symbols match; FILE has a .symtab
set -eu
nm -S --defined-only "$1" | awk -v which="$2" -v count="$3" -v seed="$4" '
function number(hex,    i, value) {
	for (i = 1; i <= length(hex); i++) value = value * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
	return value
}
BEGIN { srand(seed); n = 0 }
NF == 4 && $3 ~ /[tTwWi]/ && $4 ~ which && !($1 in seen) { seen[$1] = 1; lo[n] = number($1); bytes[n++] = number($2); all += number($2) }
END {
	if (count > all / 2) count = int(all / 2)
	while (k < count) {
		i = int(rand() * n); at = lo[i] + int(rand() * bytes[i])
		if (at in taken || bytes[i] == 0) continue
		taken[at] = 1; k++
		printf "0x%012x\n", at
	}
}' | sort
