#!/bin/sh
# gate.sh - the gate as a user meets it: verdicts, exit codes, files, bad input. Prints TAP.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/gate.sh
set -u
# shellcheck disable=SC2154 # make sets them
mew=$builddir/mew
if grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile"; then
	echo "1..0 # SKIP a sanitized build has no malloc hooks, and its time says nothing"
	exit 0
fi
program=$builddir/tests/fx_gate
other=$builddir/tests/fx_gate_other
case $srcdir in /*) ;; *) srcdir=$PWD/$srcdir ;; esac
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"
XDG_STATE_HOME=$work/state # no calibration but ours
export XDG_STATE_HOME

for copy in base head slow allocs fewer leak crash idle; do
	cp "$program" "./fx-$copy" || exit 99
done
for copy in other other-head other-slow other-five; do
	cp "$other" "./fx-$copy" || exit 99
done
member() { # FILE JQ-EXPRESSION
	jq -r "$2" "$1"
}
is() { # NAME GOT WANTED
	status=0
	[ "$2" = "$3" ] || status=1
	result "$1" $status "got '$2', wanted '$3'"
}

# time: limits far from what noise does, so that the verdict is the same on a busy machine
run "$mew" gate --base ./fx-base --head ./fx-head --limit time=60% -k spin --output same
check "the same program passes" 0 'verdict: PASS' ''
is "its files say so" "$(member same/summary.json .verdict)" pass
is "the exact metrics are in the summary" "$(member same/summary.json '[.cases[0].verdicts[].metric] | join(" ")')" \
	"time allocs bytes peak leak"
is "at least eight observations decide" "$(member same/samples.json '.cases[0].observations | length >= 8')" true
is "both sides did the same iterations in every sample" \
	"$(member same/samples.json '[.cases[0].observations[].loops] | unique | length')" 1
run head -n 2 same/mew-gate.md
check "the comment for a change begins with its marker and the verdict" 0 '^## mew gate: PASS'
run xmllint --noout same/junit.xml
[ "$code" = 127 ] && skip "junit.xml is well formed" "xmllint is not installed (libxml2-utils)" ||
	check "junit.xml is well formed" 0
run jq -e '.resourceMetrics[0].scopeMetrics[0].metrics | length > 0' same/metrics.otlp.json
check "metrics.otlp.json has metrics" 0 true
is "with case, phase, arm and result" \
	"$(member same/metrics.otlp.json '[.resourceMetrics[0].scopeMetrics[0].metrics[] | select(.name == "mew.gate.time" or
	.name == "mew.gate.allocs") | .gauge.dataPoints[0].attributes | map(.value.stringValue) | join(" ")] | join(", ")')" \
	"spin measurement/value base pass, spin memory/value base pass"
is "and units" "$(member same/metrics.otlp.json '[.resourceMetrics[0].scopeMetrics[0].metrics[] | .name + "=" + .unit |
	select(test("time|peak|allocs"))] | join(" ")')" \
	"mew.gate.time=ns mew.gate.time.ratio=1 mew.gate.allocs=1 mew.gate.allocs.ratio=1 mew.gate.peak=By mew.gate.peak.ratio=1"

run "$mew" gate --base ./fx-base --head ./fx-slow --limit time=20% -k spin --output slow
check "twice the work is a regression" 1 'regression'
is "the ratio is about two" "$(member slow/summary.json '.cases[0].verdicts[0].ratio | . > 1.6 and . < 2.5')" true
is "a regression is found by two sets of processes" \
	"$(member slow/summary.json '.cases[0].verdicts[0].observations >= 15')" true
# what got slower is shown where names can be had
if [ -e "$builddir/.libs/libmew_symbols.so" ]; then
	MEW_SYMBOLS=$builddir/.libs/libmew_symbols.so
	export MEW_SYMBOLS
	run grep -c '(mew-gate.html)' slow/mew-gate.md
	check "the comment leads to the flame graphs of the difference" 0 '^1$'
	is "which are beside it" "$([ -s slow/mew-gate.html ] && echo yes)" yes
	run grep '| spin | work (fx' slow/mew-gate.md
	check "and names the function that takes the time" 0 'ns/iteration'
else
	skip "the comment leads to the flame graphs of the difference" "built without libdw"
fi
is "the summary says where they are" "$(member slow/summary.json .flame_graphs)" slow/mew-gate.html
is "without a regression there are none" "$(ls same/mew-gate.html 2>/dev/null)" ""
run grep -c '<failure' slow/junit.xml
check "it is one failure in junit.xml" 0 '^1$'
run "$mew" gate --base ./fx-slow --head ./fx-base --limit time=20% -k spin
check "half the work is an improvement, and passes" 0 'improvement'
run "$mew" gate --base ./fx-base --head ./fx-slow --limit time=20% -k spin --memory 0 --samples 9 --output short
check "nine observations find it once" 3 'inconclusive'
is "and the reason says what to raise" "$(member short/summary.json '.cases[0].verdicts[0].note' | grep -c 'raise --samples$')" 1
run "$mew" gate --base ./fx-base --head ./fx-slow --limit time=20% -k spin --rule bootstrap --samples 6 --memory 0
check "the bootstrap rule finds it too" 1 'regression'
run "$mew" gate --base ./fx-base --head ./fx-slow --limit time=20% -k spin --rule bootstrap --samples 4 --memory 0
check "four pairs are no verdict" 3 'inconclusive'
run "$mew" gate --base ./fx-base --head ./fx-head --limit time=0% -k spin --samples 6 --memory 0
check "six observations are no verdict for evidence that is looked at" 3 'inconclusive'
run "$mew" gate --base ./fx-base --head ./fx-head --limit time=0% -k spin --samples 6 --memory 0 --inconclusive pass
check "--inconclusive pass" 0 'INCONCLUSIVE'
run "$mew" gate --base ./fx-base --head ./fx-head --limit time=0% -k spin --samples 6 --memory 0 --inconclusive fail
check "--inconclusive fail" 1 'INCONCLUSIVE'

# turns of several iterations
run "$mew" gate --base ./fx-other --head ./fx-other-head --limit time=60% -k batch --memory 0 --output turns
check "a case in batches is compared" 0 'verdict: PASS'
is "by whole turns" "$(member turns/samples.json '[.cases[0].observations[].loops | . > 0 and . % 7 == 0] | all')" true
run "$mew" gate --base ./fx-other --head ./fx-other-slow --limit time=20% -k batch --memory 0 --output turned
check "... and twice the work is found" 1 'regression'
is "... as twice an iteration" "$(member turned/summary.json '.cases[0].verdicts[0].ratio | . > 1.6 and . < 2.5')" true
run "$mew" gate --base ./fx-other --head ./fx-other-five --limit time=60% -k batch --memory 0
check "batches that differ are named" 4 'head.*"batch" did [0-9]* iterations in a sample and not [0-9]*'

# exact metrics: no statistics, whatever the time says
loose="--limit time=900%"
# shellcheck disable=SC2086 # two words
{
run "$mew" gate --base ./fx-base --head ./fx-allocs $loose -k blocks
check "one more allocation is a regression" 1 'allocs *regression'
run "$mew" gate --base ./fx-base --head ./fx-allocs $loose --limit 'allocs=1|5%' --limit bytes=64 --limit peak=64 -k blocks
check "unless its limits allow it" 0 'PASS'
run "$mew" gate --base ./fx-base --head ./fx-fewer $loose -k blocks
check "one less is an improvement" 0 'allocs *improvement'
run "$mew" gate --base ./fx-base --head ./fx-fewer $loose -k blocks --strict
check "unless they must be equal" 1 'regression'
echo '[{"cases":"bl*","metric":"allocs","limit":"1","reason":"a second index"},
 {"cases":"*","metric":"peak","limit":"64","reason":"a second index"},
 {"cases":"*","metric":"bytes","limit":"64","reason":"a second index","expires":"2001-01-31"}]' >allow.json
run "$mew" gate --base ./fx-base --head ./fx-allocs $loose -k blocks --allow allow.json --output allowed
check "allow rules loosen it, an expired one does not" 1 'bytes *regression'
is "the report has their reasons" "$(grep -c 'a second index' allowed/mew-gate.md)" 3
is "the summary says by which rule a figure passed" \
	"$(member allowed/summary.json '.cases[0].verdicts[] | select(.metric == "allocs") | .outcome + " " + .allowed_because')" \
	"pass a second index"
run "$mew" gate --base ./fx-base --head ./fx-leak $loose -k blocks
check "a leak is a regression" 1 'leak *regression'

# what cannot be judged
run "$mew" gate --base ./fx-base --head ./fx-crash $loose -k spin --output crash
check "a head that dies is invalid" 4 'INVALID MEASUREMENT'
is "the reason names the side, the signal and the last line that it printed" \
	"$(member crash/summary.json '.cases[0].verdicts[0].words' | grep -c '^head.*killed by signal 9.*; it printed: last words$')" 1
run "$mew" gate --base ./fx-base --head ./fx-idle $loose -k spin
check "a head that did not do its work is invalid" 4 'nothing was decoded'
run "$mew" gate --base ./fx-base --head ./fx-other $loose
check "a case of one side alone is invalid" 4 'only head has it'
}
run "$mew" gate --base ./fx-base --head ./fx-other -k nothing
complains "nothing to compare is an error" 4 'none of the 6 cases'
run "$mew" gate --base ./fx-base --head /bin/true
complains "a head that is no mew program is named" 2 'head: /bin/true is not a mew program'
run "$mew" gate --base ./fx-base
complains "one side alone is no comparison" 2 'name both programs'
run "$mew" gate --base ./fx-base --head ./fx-head --limit speed=5%
complains "an unknown metric is refused" 2 'there is no metric "speed"'
run "$mew" gate --base ./fx-base --head ./fx-head --limit time=5
complains "a margin without percent is refused" 2 'percent'
run "$mew" gate --base ./fx-base --head ./fx-head --output same
complains "a directory with a run is not overwritten" 2 'already holds a run'

# the timeline
run "$mew" gate --base ./fx-base --head ./fx-head --limit time=900% -k 'spin|blocks' --memory 0 --trace=two.json
check "a gate on a timeline" 0 PASS 'wrote two.json'
is "where a case says how long it waited for others" \
	"$(member two.json '[.traceEvents[] | select(.cat == "case" and .args.observations) | .args.queue_ms] |
	.[0] == null and .[1] > 0 and .[2] > 0')" true
run "$mew" gate --base ./fx-base --head ./fx-head --limit time=900% -k spin --memory 0 --trace=one.json
is "and one that is alone waits for none" "$(grep -c queue_ms one.json)" 0

# bounds
run "$mew" gate --base ./fx-base --head ./fx-head --limit time=0% -k spin --budget 0.3 --memory 0 --samples 100000
check "a budget ends it, and what is left is said" 3 'budget.*ended'
run "$mew" gate --base ./fx-base --head ./fx-head --limit time=60% -k spin --memory 0 --budget 600 --html page.html
check "--html gives a page also where nothing got worse" 0 PASS 'wrote page.html'
run "$mew" gate --base ./fx-base --head ./fx-idle --limit time=900% -k 'spin|blocks' --memory 0 --html others.html
check "... also where a case is invalid, of the others" 4 INVALID 'wrote others.html'
run "$mew" gate --base ./fx-base --head ./fx-head -k spin --html none/page.html
complains "... and is refused at once where it cannot be written" 2 'none/page.html'
run "$mew" gate --base ./fx-base --head ./fx-head --limit time=60% -k spin --memory 0 --html -
complains "a page is no table" 2 'a file'
run "$mew" gate --base ./fx-base --head ./fx-head --context third=./fx-slow --limit time=60% -k spin --memory 0
check "a context is shown and does not decide" 0 'third +'
"$mew" gate --base ./fx-base --head ./fx-head --rule bootstrap -k spin --memory 0 --samples 100000 --output cut >out 2>err &
gate=$!
while [ ! -s cut/samples.json ] && kill -0 $gate 2>/dev/null; do sleep 0.05; done
kill -INT $gate
wait $gate
code=$?
check "an interrupt leaves what was measured" 4 'INVALID' 'interrupted'
is "and says so in its files" "$(member cut/samples.json '.interrupted')" true
is "also in junit.xml" "$(grep -c '<error message="it was interrupted"' cut/junit.xml)" 1
finish
