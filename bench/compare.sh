#!/bin/sh
# compare.sh - run programs that print "row value" lines in turn, and print each row's ratio to the first program.
#
#   compare.sh ROUNDS NAME=COMMAND NAME=COMMAND...
#
# One round runs every command once, in an order that turns round by round, so that a drift of the machine meets all alike.
# The ratio is taken within each round; shown are the medians, with the least and the greatest.
set -eu
rounds=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
round=0
while [ $round -lt "$rounds" ]; do
	turn=0
	while [ $turn -lt $# ]; do
		index=$(((turn + round) % $# + 1))
		eval "pair=\${$index}"
		# shellcheck disable=SC2154 # set by the line above
		name=${pair%%=*}
		sh -c "${pair#*=}" 2>/dev/null | sed "s|^|$round $name |" >>"$work/all"
		turn=$((turn + 1))
	done
	round=$((round + 1))
done
printf 'load %s\n' "$(cut -d' ' -f1-3 /proc/loadavg)"
awk -v first="${1%%=*}" '
function sorted(list, n,    i, k, t) {
	for (i = 2; i <= n; i++) for (k = i; k > 1 && list[k - 1] > list[k]; k--) { t = list[k]; list[k] = list[k - 1]; list[k - 1] = t }
}
function middle(list, n) { return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2 }
NF == 4 {
	value[$1, $2, $3] = $4
	if (!($3 in rows)) { rows[$3] = 1; order[++nrows] = $3 }
	if (!($2 in names)) { names[$2] = 1; name[++nnames] = $2 }
	if ($1 + 1 > rounds) rounds = $1 + 1
}
END {
	printf "%-26s %-22s %12s %22s   %s\n", "row", "of", "median", "least .. greatest", "ratio to " first " (least .. greatest)"
	for (r = 1; r <= nrows; r++) for (p = 1; p <= nnames; p++) {
		n = m = 0
		for (k = 0; k < rounds; k++) if ((k, name[p], order[r]) in value) {
			v[++n] = value[k, name[p], order[r]]
			if ((k, first, order[r]) in value && value[k, first, order[r]] > 0) q[++m] = v[n] / value[k, first, order[r]]
		}
		if (n == 0) continue
		sorted(v, n); sorted(q, m)
		ratio = name[p] != first && m > 0 ? sprintf("%.3f (%.3f .. %.3f)", middle(q, m), q[1], q[m]) : ""
		printf "%-26s %-22s %12.4f %10.4f .. %8.4f   %s\n", order[r], name[p], middle(v, n), v[1], v[n], ratio
	}
}' "$work/all"
