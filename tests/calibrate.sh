#!/bin/sh
# calibrate.sh - what calibrating measures, keeps and refuses, and what the gate makes of it. Prints TAP.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/calibrate.sh
set -u
# shellcheck disable=SC2154 # make sets them
mew=$builddir/mew
if grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile"; then
	echo "1..0 # SKIP the time of a sanitized build says nothing"
	exit 0
fi
program=$builddir/tests/fx_gate
case $srcdir in /*) ;; *) srcdir=$PWD/$srcdir ;; esac
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"
needs jq "mew calibrate"

for copy in base head crash unable; do
	cp "$program" "./fx-$copy" || exit 99
done
XDG_STATE_HOME=$work/state
export XDG_STATE_HOME
is() { # NAME GOT WANTED
	status=0
	[ "$2" = "$3" ] || status=1
	result "$1" $status "got '$2', wanted '$3'"
}

run "$mew" calibrate ./fx-base -k spin --trials 2 --samples 16
check "a program is calibrated" 0 'of 2 A/A runs found a difference' 'wrote .*/state/mew/fx-base-[0-9a-f]*\.json'
set -- "$work"/state/mew/fx-base-*.json
kept=$1
is "each case has a floor, what it can find, and its controls" \
	"$(jq -r '.cases[] | "\(.key) \(.trials) \(.noise_floor >= 0) \(.smallest_effect > 0) \([.controls[].extra] | join(" "))"' "$kept")" \
	"spin 2 true true 0.01 0.02 0.05"
is "it says of which machine it is" "$(jq -r '[.identity.cpu_count, .identity.libc, .identity.compiler] | all(. != null)' "$kept")" true

# what the gate makes of it: numbers that no machine has show which ones it went by
floor() { # FRACTION FILE
	jq ".cases[0].noise_floor = $1 | .trials = 40 | .false_positives = 1" "$kept" >"$2.new" && mv "$2.new" "$2"
}
floor 0.7 seven.json
run "$mew" gate --base ./fx-base --head ./fx-head -k spin --memory 0 --calibration seven.json --output gated
check "the margin is the floor, and the report says both" 0 'noise floor 70.00 %'
is "the rate of false alarms is in the table" "$(grep -c '^calibrated: 1 of 40 A/A runs' out)" 1
is "the summary has the floor and the margin" \
	"$(jq -r '.cases[0] | "\(.noise_floor) \(.verdicts[0].limit_percent)"' gated/summary.json)" "0.7 70"
is "the comment for a change has them too" "$(grep -c '1 of 40 A/A runs.*noise floor 70.00 % for spin' gated/mew-gate.md)" 1
run "$mew" gate --base ./fx-base --head ./fx-head -k spin --memory 0 --calibration seven.json --limit time=60%
complains "a margin below the floor is refused" 2 'spin: the margin asked for is below the noise floor'
floor 0.6 "$kept"
run "$mew" gate --base ./fx-base --head ./fx-head -k spin --memory 0
check "the one kept for this machine is found by itself" 0 'noise floor 60.00 %'
run "$mew" gate --base ./fx-base --head ./fx-head -k spin --memory 0 --calibration none --limit time=55%
check "and can be left out" 0 'verdict: PASS'
jq '.identity.kernel = "Linux 0.99"' "$kept" >other.json
run "$mew" gate --base ./fx-base --head ./fx-head -k spin --memory 0 --calibration other.json
complains "one of another machine is refused" 2 'of another kernel'
jq '.program = "other" | .cases[0].key = "decode"' "$kept" >foreign.json
run "$mew" gate --base ./fx-base --head ./fx-head -k spin --memory 0 --calibration foreign.json
complains "one of another program is refused" 2 'is of other and has none of these cases'
head -c 200 "$kept" >cut.json
run "$mew" gate --base ./fx-base --head ./fx-head --calibration cut.json
complains "one that is cut is refused" 2 'cut.json cannot be used'
jq '.cases[0].noise_floor = -1' "$kept" >negative.json
run "$mew" gate --base ./fx-base --head ./fx-head --calibration negative.json
complains "a floor that is none is refused" 2 'not sound'
run "$mew" gate --base ./fx-base --head ./fx-head --calibration absent.json
complains "one that is not there is named" 2 'absent.json'

# bad input
run "$mew" calibrate
complains "a program is needed" 2 'name one benchmark program'
run "$mew" calibrate ./fx-base --samples 15
complains "gates that never decide are refused" 2 'between 16 and 1000'
run "$mew" calibrate ./fx-base -k nothing
complains "nothing to calibrate is an error" 4 'none of the'
run "$mew" calibrate ./fx-crash -k spin --trials 1 --samples 16 --output crash.json
complains "a case that fails ends it" 4 'killed by signal 9'
is "and nothing is kept" "$(ls crash.json 2>/dev/null)" ""
run "$mew" calibrate ./fx-unable --trials 1 --samples 16 --output unable.json
check "a case that is skipped is left out" 0 '^blocks ' 'wrote unable.json'
is "and the rest is there, to be read again" "$(jq -r '[.cases[] | "\(.key) \(.noise_floor >= 0)"] | join(" ")' unable.json)" "blocks true"
run "$mew" calibrate ./fx-unable -k spin --trials 1 --samples 16 --output skipped.json
complains "where all are skipped, nothing is known" 4 'no such processor'

# two cases inside one process
run "$mew" run --versus spin blocks ./fx-base
check "one of two cases is certainly faster" 0 'blocks is faster than spin by' ''
run "$mew" run ./fx-base --versus blocks spin
check "and the other slower, wherever the flag stands" 0 'spin is slower than blocks by'
check "it says that this holds for one build" 0 'this build alone'
awk 'length($0) > 80 { exit 1 }' out
result "no line is wider than a terminal" $?
run ./fx-base --versus blocks spin
check "a program takes the flag itself" 0 'spin is slower than blocks by'
run "$mew" run --versus spin none ./fx-base
complains "a case that does not exist is named" 2 'no case "none"'
run "$mew" run --versus spin spin ./fx-base
complains "a case is not compared with itself" 2 'not compared with itself'
run "$mew" run --versus spin blocks ./fx-crash
complains "a case that dies fails" 1 'killed by signal 9.*; it printed: last words'
run "$mew" run --versus spin blocks --memory ./fx-base
complains "other passes are refused" 2 'time alone'
run "$mew" run --versus spin blocks ./fx-base --csv versus.csv
complains "and so are reports of other figures" 2 'reports but --json'
run "$mew" run --versus spin blocks ./fx-base --json none/x.json --max-time 600
complains "a file that cannot be written is refused before anything is measured" 2 'none/x.json'
run "$mew" run --versus spin blocks ./fx-base --seed 7 --json one.json -q
check "all pairs are written" 0 'blocks is faster'
run "$mew" run --versus spin blocks ./fx-base --seed 7 --json two.json -q
order='[.pairs[:8][] | .head_first] | map(tostring) | join(" ")'
is "one seed gives one order" "$(jq -r "$order" one.json)" "$(jq -r "$order" two.json)"
is "which is in the file" "$(jq -r '"\(.kind) \(.seed) \(.verdict)"' one.json)" "versus 7 improvement"
is "each pair has both times, and those left out are marked" \
	"$(jq '([.pairs[] | select(.base_ns > 0 and .head_ns > 0)] | length) == (.pairs | length) and
	([.pairs as $p | range(0; $p | length; 2) | select(($p[.].disturbed or $p[. + 1].disturbed) | not)] | length) == .observations' one.json)" true
for seed in 8 9 10 11 12; do
	"$mew" run --versus spin blocks ./fx-base --seed $seed --json - 2>/dev/null | jq -r "$order"
done >orders
is "another seed gives another order" "$([ "$(sort -u orders | wc -l)" -gt 1 ] && echo yes)" yes
run "$mew" run ./fx-base --seed 7
complains "a seed for nothing is refused" 2 'for --versus'
run "$mew" run --versus spin
complains "one key is not enough" 2 'second case'

for command in calibrate gate; do
	"$mew" $command --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p' | while read -r flag; do
		grep -q -- "Fl ${flag#-}\( \|$\)" "$srcdir/man/mew.1" || echo "$flag" >>undocumented
	done
done
[ ! -e undocumented ]
result "every flag is in the manual" $?
finish
