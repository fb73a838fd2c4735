#!/bin/sh
# gate_command.sh - a gate of whole commands as a user meets it: phases, counts, what is invalid, contention, merge, resume.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/gate_command.sh
# shellcheck disable=SC2016 # the commands of phases expand their variables themselves
set -u
# shellcheck disable=SC2154 # make sets them
mew=$builddir/mew
case $srcdir in /*) ;; *) srcdir=$PWD/$srcdir ;; esac
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"
command -v jq >/dev/null || {
	skip "a gate of commands" "jq is not installed"
	finish
}
# shellcheck disable=SC2154 # of tap.sh
TMPDIR=$work
export TMPDIR

# The tool: sleeps, and counts what it is told to. Two files, so that either can be replaced.
for side in base head; do
	cat >tool-$side <<-'TOOL'
		#!/bin/sh
		sleep "${1-0.01}"
		echo "{\"hits\": ${HITS-5}, \"misses\": ${MISSES-3}, \"errors\": ${ERRORS-0}}" >"$MEW_COUNTS"
		echo "did $MEW_PHASE for $MEW_ARM"
		echo "$MEW_ARM" >"$MEW_SCRATCH/artefact"
	TOOL
	chmod +x tool-$side
done
base=$work/tool-base head=$work/tool-head
loose="--limit time=900% --samples 3 --inconclusive pass"

phases() { # FILE PHASE...: a phases file
	file=$1
	shift
	echo "{\"phases\": [$*]}" >"$file"
}
gate() { # PHASES-FILE FLAG...
	phases_file=$1
	shift
	# shellcheck disable=SC2086 # words
	run "$mew" gate --command "$phases_file" --base "$base" --head "$head" $loose "$@"
}
is() { # NAME GOT WANTED
	status=0
	[ "$2" = "$3" ] || status=1
	result "$1" $status "got '$2', wanted '$3'"
}
member() { # FILE JQ-EXPRESSION
	jq -r "$2" "$1"
}
counts='"counts": {"hits": "more", "misses": "less"}'

# what is measured
phases plain.json '{"name": "cold", "cold": true, "prepare": "echo prepared", "artefacts": ["artefact"], '"$counts"'},
	{"name": "warm", "run": "$MEW_COMMAND 0.02", "require": {"hits": ">0", "errors": "==0"}}'
gate plain.json --output plain --head-rev '@team'
check "commands that do the same pass" 0 'verdict: PASS\|INCONCLUSIVE'
is "each phase is a case" "$(member plain/summary.json '[.cases[].key] | join(" ")')" "cold warm"
is "nobody whose name is in a text is told" "$(grep -o '@.*team' plain/mew-gate.md | sort -u)" '@<!-- -->team'
is "each sample is a pair" "$(member plain/samples.json '[.cases[].observations | length] | join(" ")')" "3 3"
is "counts are exact metrics" "$(member plain/summary.json '[.cases[0].verdicts[] | .metric + "=" + .outcome] | .[1:] | join(" ")')" \
	"hits=pass misses=pass"
is "the logs have the output" "$(cat plain/logs/02-head/cold.log)" "$(printf 'prepared\ndid cold for head')"
is "and the artefacts" "$(cat plain/logs/00-base/cold-artefact)" base
is "the scratch folder is gone" "$(find "$work" -maxdepth 1 -name 'mew-gate-*' | wc -l)" 0
phases untimed.json '{"name": "a", "prepare": "sleep 1.5", "restore": "sleep 1.5"}'
gate untimed.json --samples 1 --output untimed
is "preparing and restoring are not timed" "$(member untimed/samples.json '.cases[0].observations[0].base_ns < 1500000000')" true
phases timed.json '{"name": "a", "restore": {"command": "sleep 0.5", "timed": true}}'
gate timed.json --samples 1 --output timed
is "but what is marked so is" "$(member timed/samples.json '.cases[0].observations[0].base_ns >= 500000000')" true
is "the identity is in the files" "$(member plain/summary.json .head.file)" "$(realpath tool-head)"
gate plain.json --output order --seed 11 --samples 8
is "in every two samples each side is first once" \
	"$(member order/samples.json '.cases[1].observations | [range(0; length - 1; 2) as $i | (.[$i:$i + 2] | map(.head_first == true) | unique | length)] | unique | join(" ")')" 2
gate plain.json --output reuse --cold-every 3 --samples 7
is "a cold state that is used again is not paired" \
	"$(member reuse/samples.json '[.cases[] | (.observations | length), .reused] | join(" ")')" "3 4 7 0"
phases slow.json '{"name": "slow", "run": "$MEW_COMMAND $PAUSE", "env_base": {"PAUSE": "0.01"}, "env_head": {"PAUSE": "0.5"}}'
gate slow.json --limit time=10% --samples 24 --output slow
check "a slower head is a regression, found twice" 1 'slow *time *regression'
gate slow.json --limit time=10% --rule bootstrap --samples 4 --inconclusive fail
check "four pairs are no verdict" 1 INCONCLUSIVE
gate slow.json --limit time=10% --rule bootstrap --samples 5
check "five are one under the bootstrap rule" 1 REGRESSION

# counts
phases fell.json '{"name": "a", "env_head": {"HITS": "4"}, '"$counts"'}'
gate fell.json
check "a count that fell fails where more is better" 1 'hits *regression'
gate fell.json --limit hits=1
check "unless its limit allows it" 0 'PASS\|INCONCLUSIVE'
phases rose.json '{"name": "a", "env_head": {"MISSES": "4"}, '"$counts"'}'
gate rose.json
check "a count that rose fails where less is better" 1 'misses *regression'
phases less.json '{"name": "a", "env_head": {"MISSES": "2"}, '"$counts"'}'
gate less.json
check "one that fell there is an improvement" 0 'misses *improvement'

# what is invalid
phases unmet.json '{"name": "a", "env_head": {"HITS": "0"}, "require": {"hits": ">0"}}'
gate unmet.json --output unmet
check "an unmet require is invalid" 4 'did not do its job: "hits" is 0 and must be >0'
phases missing.json '{"name": "a", "run": "$MEW_COMMAND", "counts": {"restored": "more"}}'
gate missing.json
check "a missing count is invalid, not zero" 4 'no count "restored"'
phases none.json '{"name": "a", "run": "sleep 0.01", '"$counts"'}'
gate none.json
check "so is a run that left none" 4 'left no counts'
phases fails.json '{"name": "a", "run": "echo spoken; echo kept >\"$MEW_SCRATCH/artefact\"; exit 3", "artefacts": ["artefact"]}'
gate fails.json --output fails
check "a run that fails is invalid, with its status" 4 'exited with code 3'
is "its output and artefacts are kept" "$(cat fails/logs/00-*/a.log fails/logs/00-*/a-artefact | tr '\n' ' ')" "spoken kept "
phases twins.json '{"name": "a", "run": "cd $MEW_SCRATCH && mkdir -p x y && echo of x >x/out && echo of y >y/out && echo log >y/log",
	"artefacts": ["x/out", "y/out", "y/log"]}'
gate twins.json --samples 1 --output twins
is "two artefacts of one name are both kept" "$(cd twins/logs/00-base && grep . a-* | tr '\n' ' ')" \
	"a-log:log a-x-out:of x a-y-out:of y "
phases folder.json '{"name": "a", "run": "mkdir -p $MEW_SCRATCH/kept; sleep 0.01", "artefacts": ["kept"]}'
gate folder.json
check "an artefact that is no file is named" 4 'kept is no regular file'
cp tool-head tool-kept
phases swap.json '{"name": "a", "run": "[ $MEW_SAMPLE != 1 ] || echo \"# new\" >>'"$head"'; $MEW_COMMAND"}'
gate swap.json --output swap
check "a side that is replaced meanwhile is invalid" 4 'head: .*was replaced'
is "the pairs before it are kept" "$(member swap/samples.json '.cases[0].observations | length')" 1
mv tool-kept tool-head
ln -s tool-base link
printf '#!/bin/sh\nexec "%s/link" "$@"\n' "$work" >shim
chmod +x shim
base=$work/shim gate plain.json --samples 1 --output shims
is "links and shims are followed to the real file" "$(member shims/samples.json .base.file)" "$(realpath tool-base)"
nap=77.$$ # a time of ours alone
phases deep.json '{"name": "a", "run": "(setsid sleep '$nap' & sleep '$nap') & sleep '$nap'"}'
gate deep.json --timeout 0.2
check "a run that takes too long is invalid" 4 'took longer than --timeout'
is "nothing that it started is left" "$(pgrep -c -f "^sleep $nap\$")" 0
# shellcheck disable=SC2086 # words
"$mew" gate --command deep.json --base "$base" --head "$head" $loose --output deep >out 2>err </dev/null &
gate=$!
while [ "$(pgrep -c -f "^sleep $nap\$")" = 0 ] && kill -0 $gate 2>/dev/null; do sleep 0.02; done
kill -INT $gate
wait $gate
code=$?
check "an interrupt ends a run" 4 INVALID interrupted
is "and all that it started" "$(pgrep -c -f "^sleep $nap\$")" 0
nap=78.$$
phases server.json '{"name": "a", "prepare": "sleep '$nap' & echo $! >$MEW_SCRATCH/pid", "run": "kill -0 $(cat $MEW_SCRATCH/pid)"}'
gate server.json
check "what preparing starts lives while the run needs it" 0
is "and not longer" "$(pgrep -c -f "^sleep $nap\$")" 0

# the phases file
bad() { # NAME FILE-TEXT PATTERN
	echo "$2" >bad.json
	gate bad.json
	complains "$1" 2 "$3"
}
bad "a broken phases file is named with its line" '{' 'bad.json is not sound JSON: line'
bad "no phases" '{"phases": []}' 'bad.json: top level: "phases" must be a list'
bad "an unknown member" '{"phases": [{"name": "a", "runs": "x"}]}' 'phase a: "runs" must be one of name'
bad "preparing is never timed" '{"phases": [{"name": "a", "prepare": {"command": "x", "timed": true}}]}' 'preparing is never timed'
bad "a condition that is none" '{"phases": [{"name": "a", "require": {"hits": "many"}}]}' 'phase a: "hits" must be a condition'
bad "too many variables" "$(jq -n '{phases: [{name: "a", env: ([range(49) | {"V\(.)": "x"}] | add)}]}')" 'at most 48 variables'
bad "two phases of a name" '{"phases": [{"name": "a"}, {"name": "a"}]}' 'there is such a phase'
run "$mew" gate --command absent.json --base "$base" --head "$head"
complains "a phases file that is not there" 2 'absent.json'
base=$work/absent gate plain.json
complains "a tool that is not there" 2 'absent is no program'
run "$mew" gate --base "$base" --head "$head" --contention 2
complains "contention needs phases" 2 '--contention is for commands'
run "$mew" gate --base "$base" --head "$head" --contention-samples 2
complains "so do its samples" 2 '--contention-samples is for commands'

# contention
echo '{"phases": [{"name": "a", "cold": true}], "contention": [{"name": "both", "jobs": ["$MEW_COMMAND 0.01", "$MEW_COMMAND 0.02"],
	"counts": {"misses": "less"}, "require": {"errors": "==0"}}]}' >jobs.json
gate jobs.json --contention 4 --contention-samples 2 --output jobs
check "contention is a phase of its own" 0 'contention/both'
is "the counts of its jobs are added up" "$(member jobs/samples.json '.cases[1].counts.misses | tostring')" '[[12,12],[12,12]]'
gate plain.json --contention 3 --contention-samples 1 --samples 1 --output again
is "without a list the phases run side by side" "$(member again/summary.json '[.cases[].key] | join(" ")')" \
	"cold warm contention/cold contention/warm"
phases record.json '{"name": "a", "run": "$MEW_COMMAND; if [ $MEW_ARM$MEW_PHASE$MEW_JOB = headcontention/a1 ]; then rm $MEW_COUNTS; fi", '"$counts"'}'
gate record.json --contention 2 --contention-samples 1
check "a record that lacks is invalid" 4 'records of counts are missing'

phases slowed.json '{"name": "a", "run": "$MEW_COMMAND $PAUSE", "env_base": {"PAUSE": "0.01"}, "env_head": {"PAUSE": "0.4"}}'
gate slowed.json --limit time=10% --contention 2
check "a slower head is a regression there too, without further flags" 1 'contention/a *time *regression'
gate slowed.json --limit time=10% --contention 2 --contention-samples 10 --output seldom
is "with too few pairs the reason says what to raise" \
	"$(member seldom/summary.json '.cases[1].verdicts[0].note' | grep -c 'raise --contention-samples$')" 1

phases quick.json '{"name": "a", "run": "sleep 0.3"}'
gate quick.json --contention 2 --budget 0.2 --inconclusive fail
check "what the budget did not let begin has not passed" 1 'contention/a *time *inconclusive'

# merge
gate slow.json --limit time=20% --samples 6 --output one
gate slow.json --limit time=20% --samples 6 --output two
run "$mew" gate --merge one two --limit time=10% --output joined
check "two machines make one verdict" 1 'slow *time *regression'
check "which took no time of its own" 1 '^verdict: .*(1 case, 12 pairs)$'
is "the comment does not describe the one that joins" "$(grep -c '^- kernel: ' one/mew-gate.md joined/mew-gate.md | tr '\n' ' ')" \
	"one/mew-gate.md:1 joined/mew-gate.md:0 "
# cases that are each certain enough alone (p of about 0.01) are not, where there are ten
for n in 1 10; do
	mkdir "cases$n" && cp two/summary.json "cases$n"
	jq --argjson n "$n" '.cases[0] as $c | .cases = [range($n) as $i | $c | .key = "case\($i)" | .observations = [range(16) as $k |
		{log_ratio: (if $k < 3 then -0.2 else 0.01 * $k end), base_ns: 100, head_ns: 110, loops: 1, rounds: 1, disturbed: 0,
		ties: 0}]]' two/samples.json >"cases$n/samples.json"
done
run "$mew" gate --merge cases1 --limit time=0% --seed 1
check "a merged case that is certain enough alone" 1 'case0 *time *regression'
run "$mew" gate --merge cases10 --limit time=0% --seed 1
check "is not among ten" 3 'case9 *time *inconclusive'
# two calibrated machines, the second to 5 %: what each of them calls noise is noise together
for machine in 1 2; do
	mkdir "calm$machine"
	jq --argjson m "$machine" '.cases[0].noise_floor = 0.03 * $m - 0.01' two/summary.json >"calm$machine/summary.json"
	jq --argjson m "$machine" '.cases[0].observations = [range(16) as $k | {log_ratio: (0.03 + 0.0001 * ($k + $m)), base_ns: 100,
		head_ns: 103, loops: 1, rounds: 1, disturbed: 0, ties: 0}]' two/samples.json >"calm$machine/samples.json"
done
run "$mew" gate --merge calm1 calm2
check "merged cases are held against their largest noise floor" 0 'slow *time *pass'
run "$mew" gate --merge calm1 calm2 --limit time=4%
complains "a margin below it is refused" 2 'slow: the margin asked for is below the noise floor'
run "$mew" gate --merge calm1
check "the smaller one of a machine is its own" 1 'slow *time *regression'
run "$mew" gate --merge one one
complains "a run counts once" 4 'of another directory'
for machine in 1 2; do
	gate rose.json --limit misses=1 --output "rose$machine"
done
run "$mew" gate --merge rose1 rose2 --limit misses=1 --limit time=900% --inconclusive pass
check "limits of joined runs may name their counts" 0 '^ *misses *pass'
run "$mew" gate --merge rose1 rose2 --limit time=900% --inconclusive pass
check "... and must, where they are wanted" 1 'misses *regression'
run "$mew" gate --merge rose1 rose2 --limit misprints=1
complains "... and no others" 2 'no metric "misprints"'
jq '.head.hash = "0"' two/samples.json >other.json && mkdir other && cp other.json other/samples.json && cp two/summary.json other
run "$mew" gate --merge one other
check "another head is invalid" 4 'compared another head'
jq '.workload_revision = "w2"' two/samples.json >other/samples.json
run "$mew" gate --merge one other
check "another workload is invalid" 4 'workload_revision differs'
jq '.phases_hash = "0"' two/samples.json >other/samples.json
run "$mew" gate --merge one other
check "other phases are other work" 4 'other ran other commands: its phases file'
# 300 cases with long names and as many rules: the comment still fits
mkdir many && cp two/summary.json many
jq --arg long "$(printf '%0280d' 0 | tr 0 k)" '.cases[0] as $c | .cases = [range(300) as $i | $c | .key = "\($i)\($long)" |
	.observations = [range(5) as $k | {log_ratio: (0.4 + 0.01 * $k), base_ns: 100, head_ns: 150, loops: 1, rounds: 1, disturbed: 0,
	ties: 0}]]' two/samples.json >many/samples.json
jq -n '[range(300) | {cases: "\(.)*", metric: "time", limit: "1%", reason: ("because " * 30)}]' >rules.json
run "$mew" gate --merge many --seed 1 --allow rules.json --output comment
check "many cases need more than five pairs each" 3 INCONCLUSIVE
mkdir more && cp two/summary.json more
jq '.cases[].observations |= . + . + . + .' many/samples.json >more/samples.json
run "$mew" gate --merge more --seed 1
check "twenty are enough" 1 REGRESSION
is "the comment for them is not too long" "$([ "$(wc -c <comment/mew-gate.md)" -le 65000 ] && echo yes)" yes
is "it uses the room" "$([ "$(wc -c <comment/mew-gate.md)" -gt 60000 ] && echo yes)" yes
is "it counts the rows that it leaves out" "$(grep -c '^[0-9]* more rows, none of them worse' comment/mew-gate.md)" 1
is "and the rules" "$(grep -c '^- [0-9]* more$' comment/mew-gate.md)" 1
is "and ends as it should" "$(tail -n 1 comment/mew-gate.md)" '</details>'
mkdir torn && jq 'del(.cases[0].observations[1].head_ns)' two/samples.json >torn/samples.json && cp two/summary.json torn
run "$mew" gate --merge one torn
complains "incomplete pairs are refused" 4 'complete pairs'
mkdir zero && jq '.cases = []' one/samples.json >zero/samples.json && cp one/summary.json zero
run "$mew" gate --merge zero
complains "zero compared is an error" 4 'no case'

# resume
phases long.json '{"name": "a", "run": "$MEW_COMMAND 0.05", '"$counts"'}'
# shellcheck disable=SC2086 # words
"$mew" gate --command long.json --base "$base" --head "$head" $loose --samples 5 --seed 5 --context third=./tool-base --output cut >out 2>err </dev/null &
gate=$!
while ! [ -s cut/samples.json ] && kill -0 $gate 2>/dev/null; do sleep 0.02; done
kill -INT $gate
wait $gate
code=$?
check "an interrupt leaves what was measured" 4 INVALID interrupted
before=$(member cut/samples.json '.cases[0].observations[0].base_ns')
cp -r cut changed
jq '.seconds = 1000' changed/samples.json >cut/samples.json
(cd / && exec "$mew" gate --resume "$work/cut") >out 2>err </dev/null
code=$?
check "a resumed run goes on to its end" 0 'PASS\|INCONCLUSIVE'
is "with all pairs that were asked for" "$(member cut/samples.json '.cases[0].observations | length')" 5
is "the first one is that of the first run" "$(member cut/samples.json '.cases[0].observations[0].base_ns')" "$before"
is "also beside its context" "$(member cut/samples.json '.cases[0].contexts.third[0].base_ns')" "$before"
is "and its counts" "$(member cut/samples.json '.cases[0].counts.hits | length')" 5
is "the time of both parts is added up" "$(member cut/samples.json '.seconds > 1000')" true
phases mended.json '{"name": "a", "run": "HITS=$(cat hits-$MEW_ARM) $MEW_COMMAND", "require": {"hits": ">0"}}'
echo 5 >hits-base
echo 0 >hits-head
gate mended.json --output mended
echo 5 >hits-head
run "$mew" gate --resume mended
check "a run that was invalid cannot be resumed until it passes" 4 'did not do its job: "hits" is 0'
run "$mew" gate --resume cut --samples 9
complains "its flags are those of the run" 2 'give it alone'
cp long.json kept.json
phases long.json '{"name": "a", "run": "sleep 0.05; $MEW_COMMAND 0.05", '"$counts"'}'
run "$mew" gate --resume changed
complains "other phases cannot go on" 4 'long.json has changed'
mv kept.json long.json
echo '# new' >>tool-head
run "$mew" gate --resume changed
complains "a changed side cannot go on" 4 'head has changed'

# full disk: no file of the run can grow
{
	(
		ulimit -f 0
		trap '' XFSZ
		exec "$mew" gate --command plain.json --base "$base" --head "$head" --samples 1 --output full
	)
	echo "code $?"
} 2>&1 </dev/null | cat >said
run cat said
check "a full disk is an error" 0 'code 2'
run cat said
check "that is said" 0 'samples.json.*File too large'
finish
