# fx_sym_agree.awk - how far two answers to the same addresses agree; a fixture of symbols.sh.
#
#   awk -v nm=FILE -f fx_sym_agree.awk REFERENCE OURS
#
# Both are in the format of llvm-symbolizer: the address, two lines for each function (name, place), an empty line. FILE
# holds "address name" lines: names of one address are one function (aliases, and functions that the compiler folded).
# Addresses that the reference cannot name are left out.
# Prints: addresses, then per cent of them with equal names of all functions, equal innermost line, equal depth.
function plain(name) {
	gsub(/ \[clone [^]]*\]/, "", name)
	while (sub(/\.(cold|part|isra|constprop|lto_priv|llvm)(\.[0-9]+)*$/, "", name)) continue
	sub(/@.*/, "", name)
	sub(/^__GI_/, "", name) # the C library calls itself by such aliases
	return name
}
function is_same(a, b,    i, k, all) {
	a = plain(a); b = plain(b)
	if (a == b) return 1
	k = split(at[a], all, " ")
	for (i = 1; i <= k; i++) if ((b, all[i]) in is_at) return 1
	return 0
}
function end_answer(    i, good) {
	if (address == "") return
	address = number(address)
	if (closing && was[address, 1] == "??") {
		depth = 0
	} else if (closing) {
		n++
		good = depth == was_depth[address]
		worst = 1
		for (i = 1; i <= depth; i++) if (!is_same(names[i], was[address, i])) { good = 0; worst = i }
		names_good += good; depth_good += depth == was_depth[address]; lines_good += line[1] == was_line[address]
		if (!good || line[1] != was_line[address])
			if (shown++ < 10) print "# " address ": function " worst " of " depth ": " names[worst] ", line " line[1] "; expected of " was_depth[address] ": " was[address, worst] ", line " was_line[address] >"/dev/stderr"
	} else {
		was_depth[address] = depth; was_line[address] = line[1]
		for (i = 1; i <= depth; i++) was[address, i] = names[i]
	}
	address = ""; depth = half = 0
}
function number(text) { sub(/^0x0*/, "", text); return text }
BEGIN {
	while ((getline row <nm) > 0) {
		where = row; sub(/ .*/, "", where); sub(/^[^ ]* /, "", row); row = plain(row)
		at[row] = at[row] " " where; is_at[row, where] = 1
	}
}
FNR == 1 { end_answer(); closing = FILENAME != ARGV[1] }
$0 == "" { end_answer(); next }
address == "" { address = $0; next }
!half { names[depth + 1] = $0; half = 1; next }
{ depth++; half = 0; k = split($0, part, ":"); line[depth] = part[k - 1] }
END {
	end_answer()
	if (n > 0) printf "%d %.2f %.2f %.2f\n", n, 100 * names_good / n, 100 * lines_good / n, 100 * depth_good / n
}
