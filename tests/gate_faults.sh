#!/bin/sh
# gate_faults.sh - the gate of programs where something is not as it should be: other work, a side that is replaced, programs
# that misbehave, a full disk, flags and rules that mean nothing. Prints TAP.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/gate_faults.sh
set -u
# shellcheck disable=SC2154 # make sets them
mew=$builddir/mew
if grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile"; then
	echo "1..0 # SKIP a sanitized build has no malloc hooks, and its time says nothing"
	exit 0
fi
case $srcdir in /*) ;; *) srcdir=$PWD/$srcdir ;; esac
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"
XDG_STATE_HOME=$work/state # no calibration but ours
export XDG_STATE_HOME
for copy in base head half fickle-base fickle-head rude loose stuck linger allocs unable unable-too late late-too; do
	cp "$builddir/tests/fx_gate" "./fx-$copy" || exit 99
done
is() { # NAME GOT WANTED
	status=0
	[ "$2" = "$3" ] || status=1
	result "$1" $status "got '$2', wanted '$3'"
}
nap=79.$$ # seconds that a process left behind sleeps: ours alone
gate() { # HEAD FLAG...: far from what noise does
	head=$1
	shift
	run env FX_NAP="$nap" "$mew" gate --base ./fx-base --head "./fx-$head" --limit time=900% --calibration none "$@"
}

# what was not measured has not passed
gate head -k spin --budget 1e-9 --output never
check "a case that was never timed is inconclusive" 3 'spin *time *inconclusive'
is "and the reason is in the summary" "$(jq -r '.cases[0].verdicts[0].why' never/summary.json)" "the time ran out before its first pair"
gate head -k spin --budget 1e-9 --inconclusive fail
check "which can fail" 1 'INCONCLUSIVE'

# the same work
gate half -k blocks
check "a head that declares other work is invalid" 4 'is other work on each side: an iteration is 256 bytes in the base, 128 in the head'
gate base -k spin --memory 0 --output itself
check "a file that is compared with itself is named" 0 'one and the same file'
is "also in the comment" "$(grep -c 'one and the same file' itself/mew-gate.md)" 1
gate head -k spin --memory 0
check "so is a copy" 0 'the same contents'
gate allocs -k spin --memory 0 --base-rev v1 --head-rev v2 --workload-rev w1 --output named
is "mew and both programs are recorded with their build ids" \
	"$(jq -r '[.mew_build_id, .base.build_id, .head.build_id] | map(test("^[0-9a-f]{16,}$")) | all' named/summary.json)" true
is "and so are the revisions" "$(jq -r '[.base.revision, .head.revision, .workload_revision] | join(" ")' named/summary.json)" "v1 v2 w1"

# what a side cannot run
gate unable
check "a case that one side skips is invalid" 4 'head: skipped: no such processor'
run "$mew" gate --base ./fx-unable --head ./fx-unable-too --limit time=900% --calibration none --output skipped
check "one that both skip is not compared, and the rest is" 0 'spin: skipped on both sides, so not compared: no such processor'
is "its verdict is none" "$(jq -r '[.cases[] | .verdicts[0].outcome] | join(" ")' skipped/summary.json)" "absent pass"
run "$mew" gate --merge skipped --limit time=900% --output skipped-joined
check "nor is it where runs are joined" 0 'spin: skipped on both sides, so not compared: no such processor'
is "junit.xml says why" "$(grep -c '<skipped message="skipped on both sides' skipped/junit.xml)" 1
is "the comment counts it" "$(grep -c '; 1 skipped on both sides' skipped/mew-gate.md)" 1
run "$mew" gate --base ./fx-unable --head ./fx-unable-too --calibration none -k spin --memory 0 --output nothing
check "where all are skipped, nothing was compared" 4 'INVALID'
is "junit.xml has it as an error" "$(grep -c 'errors="1"\|<error message="nothing was compared"' nothing/junit.xml)" 2
run "$mew" gate --merge nothing
complains "and nothing can be joined" 4 'holds an invalid measurement'

run "$mew" gate --base ./fx-late --head ./fx-late-too --limit time=0% --calibration none -k spin --memory 0 --samples 16 --output late
check "one that skips after it ran is invalid" 4 'skipped: no such file any more'
is "and its pairs are kept" "$(jq '.cases[0].observations | length > 0' late/samples.json)" true

# figures that are not exact
rm -f processes
run "$mew" gate --base ./fx-fickle-base --head ./fx-fickle-head --limit time=900% --calibration none -k blocks --output fickle-out
check "a count that changes from run to run is inconclusive" 3 'allocs *inconclusive'
is "and the summary says why" "$(jq -r '.cases[0].verdicts[] | select(.metric == "allocs") | .why' fickle-out/summary.json |
	grep -c 'changes from run to run')" 1
run "$mew" gate --merge fickle-out --limit time=900% --output fickle-joined
check "joined with others it stays so" 3 'allocs *inconclusive'
is "for the same reason" "$(jq -r '.cases[0].verdicts[] | select(.metric == "allocs") | .why' fickle-joined/summary.json |
	grep -c 'changes from run to run')" 1
printf xx >processes # the base has 5 blocks, then 4
run "$mew" gate --base ./fx-fickle-base --head ./fx-head --limit time=900% --calibration none -k blocks --output fickle-fell
check "one that may have fallen by itself is no improvement" 0 'allocs *pass'
run "$mew" gate --merge fickle-fell --limit time=900% --output fell-joined
check "joined with others neither" 0 'allocs *pass'
is "it is of the memory pass there too" "$(jq -r '[.resourceMetrics[0].scopeMetrics[0].metrics[] | select(.name == "mew.gate.allocs") |
	.gauge.dataPoints[0].attributes[] | select(.key == "mew.phase").value.stringValue] | join(" ")' fell-joined/metrics.otlp.json)" memory/value
printf xx >processes
run "$mew" gate --base ./fx-fickle-base --head ./fx-head --limit time=900% --calibration none -k blocks --strict
check "and inconclusive where it must be equal" 3 'allocs *inconclusive'
gate allocs -k blocks
check "one that comes again is a regression" 1 'allocs *regression'

# a side that is replaced
"$mew" gate --base ./fx-base --head ./fx-head --rule bootstrap --calibration none -k spin --memory 0 --samples 100000 \
	--output swapped >out 2>err </dev/null &
pid=$!
while [ ! -s swapped/samples.json ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
cp ./fx-allocs ./fx-new && mv ./fx-new ./fx-head
wait $pid
code=$?
check "a head that is replaced meanwhile is invalid" 4 'head was replaced while it was measured'
is "its pairs are kept" "$(jq '.cases[0].observations | length > 0' swapped/samples.json)" true
is "junit.xml has it as an error" "$(grep -c '<error message="head was replaced' swapped/junit.xml)" 1
cp ./fx-base ./fx-head

# programs that misbehave
gate rude -k spin --output rude-out
check "one that prints, reads and changes its directory is measured" 0 'verdict: PASS'
is "and the files are where they were asked for" "$([ -s rude-out/mew-gate.md ] && echo yes)" yes
gate loose -k spin --memory 0
check "one that leaves a process in its own session is measured" 0 'verdict: PASS'
ended "and nothing is left of it" "FX_NAP=$nap"
gate linger -k spin --memory 0
check "one that hangs at its exit is measured" 0 'verdict: PASS' 'fx-linger: its process hangs at its exit'
is "which is said once" "$(grep -c 'hangs at its exit' err)" 1
gate stuck -k spin --memory 0 --timeout 0.5
check "one that never ends is invalid after --timeout" 4 'did not end within --timeout'
ended "and nothing is left of that, nor of the program" "FX_NAP=$nap"

# full disk: a file cannot grow beyond 20 KiB, and samples.json does
{
	(
		ulimit -f 40
		trap '' XFSZ
		exec "$mew" gate --base ./fx-base --head ./fx-head --rule bootstrap --calibration none -k spin --memory 0 \
			--samples 100000 --output full
	)
	echo "code $?"
} >said 2>&1 </dev/null
run cat said
check "a disk that becomes full is an error" 0 'code 2'
check "that is said" 0 'samples.json.*File too large'
is "what was written before is whole" "$(jq '.cases[0].observations | length > 8' full/samples.json)" true

# contexts
gate head -k spin --memory 0 --context third=./fx-head --output context
check "a context is shown" 0 'third [+-]'
is "also in the comment" "$(grep -c '^- spin: third [+-]' context/mew-gate.md)" 1
is "its observations are under its name" "$(jq '.cases[0].contexts.third | length' context/samples.json)" 8
gate head -k spin --memory 0 --budget 1e-9 --context third=./fx-head --output spent
check "a budget ends it too, and says so" 3 '' 'context third: the --budget ended'
is "before its first pair" "$(jq '.cases[0].contexts.third | length' spent/samples.json)" 0
gate head --context base=./fx-head
complains "a context is no side" 2 'a name of its own'
gate head --context a/b=./fx-head
complains "nor a path" 2 'a name of its own'
gate head --context a=./fx-head --context a=./fx-head
complains "nor another context" 2 'a name of its own'

# rules that mean nothing
echo '[{"cases":"spni","metric":"time","limit":"1%","reason":"hot"},
 {"cases":"spin","metric":"time","limit":"900%","reason":"old","expires":"2001-01-31"}]' >allow.json
gate head -k spin --memory 0 --allow allow.json --output ruled
check "a rule for no case is named" 0 'rule for time of spni, no case has such a key: hot'
check "and an expired one" 0 'rule for time of spin, expired after 2001-01-31: old'
is "also in the comment" "$(grep -c 'hot (no case has such a key)\|old (until 2001-01-31, expired: not applied)' ruled/mew-gate.md)" 2

# flags that mean nothing
echo '{"phases": [{"name": "a"}]}' >phases.json
for flag in '--rounds 3' '--memory 3' '--calibration x' '--html x' '--gbench-program' '-k x'; do
	# shellcheck disable=SC2086 # words
	run "$mew" gate --command phases.json --base true --head true $flag
	complains "${flag%% *} is nothing to commands" 2 "${flag%% *} does not go with --command"
done
for flag in '--base x' '--samples 3' '--budget 3' '--rule signs' '--command phases.json' '-t x'; do
	# shellcheck disable=SC2086 # words
	run "$mew" gate --merge one $flag
	complains "${flag%% *} is nothing to joined runs" 2 "${flag%% *} does not go with --merge"
done
run "$mew" gate --command phases.json --base true --head true --least-difference 1
complains "--least-difference needs --rule bootstrap" 2 'give --rule bootstrap too'
run "$mew" gate --command phases.json --base true --head true --redact x
complains "--redact needs --trace" 2 'give that too'
run "$mew" gate --command phases.json --base true --head true --contention-samples 3
complains "--contention-samples needs --contention" 2 'give that too'
gate head --seed 9007199254740992
complains "a seed that JSON would not keep is refused" 2 'up to 9007199254740991'
finish
