#!/bin/sh
# gate_ci.sh - the examples for the machines of forges, run on one machine: a matrix, GNU parallel; and a resumed gate of
# programs. Prints TAP.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/gate_ci.sh
set -u
# shellcheck disable=SC2154 # make sets them
MEW=$builddir/mew
MEW_GATE_FLAGS="--samples 6 --memory 20 --limit time=60% -k spin"
MEW_JOIN_FLAGS="--limit time=60%"
export MEW MEW_GATE_FLAGS MEW_JOIN_FLAGS
if grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile"; then
	echo "1..0 # SKIP a sanitized build has no malloc hooks, and its time says nothing"
	exit 0
fi
case $srcdir in /*) ;; *) srcdir=$PWD/$srcdir ;; esac
ci=$srcdir/examples/ci
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"

cp "$builddir/tests/fx_gate" base
cp base head

# the lines that the matrix runs, with its shards
shards=$(sed -n 's/.*shard: \[\(.*\)\]/\1/p' "$ci/github-matrix.yml" | tr -d ,)
for shard in $shards; do
	run sh "$ci/shard.sh" measure "$shard" base head
	check "machine $shard of the matrix measures" 0
done
run sh "$ci/shard.sh" join
check "its samples make one verdict" 0 'verdict: PASS'
run grep -c '"metric": *"allocs"' verdict/summary.json
check "with the exact figures of all machines" 0 '^1$'
rm -rf gate-* verdict

if command -v parallel >/dev/null && parallel --version 2>/dev/null | grep -q '^GNU'; then
	mkdir home
	echo '1/:' >logins
	echo '1/:' >>logins
	HOME=$PWD/home run sh "$ci/parallel.sh" logins base head
	check "GNU parallel distributes it" 0 'verdict: PASS'
else
	skip "GNU parallel distributes it" "GNU parallel is not installed (parallel)"
fi

run "$MEW" gate --base ./base --head ./head --limit time=0% --memory 0 --samples 100000 --budget 1 --output part
before=$(grep -o '"log_ratio"' part/samples.json | wc -l)
run "$MEW" gate --resume part
check "a gate of programs goes on" 3 'INCONCLUSIVE'
after=$(grep -o '"log_ratio"' part/samples.json | wc -l)
status=0
[ "$after" -gt "$before" ] || status=1
result "with the pairs that it had" $status "$before pairs, then $after"
needs jq "a pair of processes counts once for all cases"
# either run may have ended with a pair that no case had time for
run jq '([.cases[].observations | length] | max) as $n | .processes >= $n and .processes <= $n + 2' part/samples.json
check "a pair of processes counts once for all cases" 0 true
finish
