#!/bin/sh
# trace_others.sh - who else comes onto the timeline: tests of cmocka by mew/cmocka.h, `mew gate`, and runs that are
# stopped in the middle. Prints TAP.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/trace_others.sh
set -u
# shellcheck disable=SC2154 # make sets them
here=$(cd "$srcdir/tests" && pwd) || exit 99
# shellcheck disable=SC2154 # make sets it
mew=$builddir/mew
bench=$builddir/tests/fx_trace
# shellcheck source=tests/tap.sh
. "$here/tap.sh"
unset MEW_TRACE_DIR FX_GROUP_STATE
mkdir tmp
TMPDIR=$work/tmp
export TMPDIR
fast="--max-time 0.02 --min-warmup-time 0.001"

shows() { # FILE WHAT PATTERN
	run grep -c -- "$3" "$1"
	check "$2" 0
}

clean() { # NAME: no directory of fragments, no file half written
	run sh -c 'ls -A tmp; ls -A | grep -- "-trace\|partial"'
	status=0
	[ -s out ] && status=1
	result "$1" $status "left behind"
}

# --- cmocka

cmocka=$builddir/tests/fx_cmocka
if [ -x "$cmocka" ]; then
	for group in '' 1; do
		export FX_GROUP_STATE=$group
		[ -n "$group" ] || unset FX_GROUP_STATE
		"$cmocka" plain >plain 2>&1
		plain=$?
		"$cmocka" with >untraced 2>&1
		untraced=$?
		rm -rf fragments
		mkdir fragments
		MEW_TRACE_DIR=$work/fragments "$cmocka" with >traced 2>&1
		code=$?
		status=0
		cmp -s plain untraced && cmp -s plain traced && [ $plain = $untraced ] && [ $plain = $code ] && [ $plain = 2 ] || status=1
		result "cmocka's group ${group:+with a state }says and returns the same, traced or not" $status
	done
	unset FX_GROUP_STATE
	run sh -c 'ls fragments | wc -l; cat fragments/*.json | grep -c "\"ph\":\"X\""'
	check "... and each set-up, test and teardown is a slice" 0 '^11$'
	MEW_TRACE_DIR=$work/missing "$cmocka" with >traced 2>&1
	code=$?
	status=0
	cmp -s plain traced && [ $code = 2 ] || status=1
	result "... and nowhere to write fails no test" $status
	MEW_TRACE_DIR=$work/fragments "$cmocka" with 'is_*' >traced 2>&1
	"$cmocka" plain 'is_*' >plain 2>&1
	run cmp plain traced
	check "... nor does a filter mix the tests up" 0
	export FX_TRACE_CHILD="$cmocka with >'$work/said' 2>&1 || true"
	run "$mew" run $fast -k second --trace=cmocka.json "$bench"
	check "a group under a traced run ends well" 0 second 'wrote cmocka.json'
	unset FX_TRACE_CHILD
	shows cmocka.json "... is a process of its own on the timeline" '"name":"process_name","args":{"name":"cmocka: tests"}'
	shows cmocka.json "... with the tests" '"cat":"teardown","name":"uses_what_was_made"'
	shows cmocka.json "... and those that never returned" '"name":"fails".*"state":"failed or skipped"'
	shows cmocka.json "... and names that need care" '"name":"a \\"quoted\\" name"'
	run "$mew" trace-check cmocka.json
	check "... and the trace is sound" 0 ', 0 faults$'
	rm -f cmocka.json
else
	skip "tests of cmocka on the timeline" "cmocka was not found"
fi

# --- gate

gate="$mew gate --base $builddir/tests/fx_gate --head $builddir/tests/fx_gate -k spin --samples 8 --rounds 5 --memory 20"
run $gate --trace=gate.json --inconclusive pass
check "a gate says where its trace is" 0 '' 'trace: wrote gate.json'
for pattern in '"cat":"case","name":"spin".*"observations":' '"name":"pair of processes"' \
	'"cat":"command","name":"fx_gate".*"state":"done","exit_code":0' '"name":"measurement/value"' '"name":"run".*"exit_code":0'; do
	shows gate.json "... with $pattern" "$pattern"
done
run grep -c '"command":"' gate.json
check "... and no command line unless it may be shown" 1
run "$mew" trace-check gate.json
check "... and the trace is sound" 0 ', 0 faults$'
run $gate --trace=deep/gate.json --redact "$builddir" --inconclusive pass
check "--redact shows command lines" 0
shows deep/gate.json "... of each command, without what it hides" '"cat":"command",.*"command":"\*\*\*/tests/fx_gate"'
run grep -c -- "$builddir/" deep/gate.json
check "... nowhere" 1
rm -rf gate.json deep
echo '{"phases": [{"name": "w", "prepare": "SECRET=abc", "run": "SECRET=abc sleep 0.01"}]}' >phases.json
run "$mew" gate --command phases.json --base /bin/true --head /bin/true --limit time=900% --samples 2 --inconclusive pass --trace=lines.json
run grep -c '"cat":"command","name":"sleep"' lines.json
check "a command's name is its program" 0 '^[1-9]'
run grep -c 'SECRET\|abc' lines.json
check "... and never what its line sets" 1 '^0$'
rm -f lines.json
echo '{"phases": [{"name": "w"}], "contention": [{"name": "both", "jobs": ["true", "sleep 1"]}]}' >phases.json
run "$mew" gate --command phases.json --base true --head true --samples 1 --contention 2 --contention-samples 1 --trace=jobs.json
last_end() { # PROGRAM: microseconds
	sed -n 's/.*"ph":"e".*"cat":"command","name":"'"$1"'","ts":\([0-9]*\)[.,].*/\1/p' jobs.json | sort -n | tail -n 1
}
status=0
[ $(($(last_end true) + 300000)) -lt "$(last_end sleep)" ] || status=1
result "each of several jobs ends when it did" $status "true at $(last_end true) us, sleep 1 at $(last_end sleep)"
rm -f jobs.json
run $gate --trace=refused.json -k nothing-has-this-name
check "a gate that is refused has no trace" 4
clean "... and leaves nothing behind"

# --- stopped in the middle

stop() { # SIGNAL PHASE COMMAND...: once its fragments tell of the phase; before one was measured there is no run to show
	signal=$1
	phase=$2
	shift 2
	"$@" >out 2>err </dev/null &
	pid=$!
	tries=0
	while ! grep -qs "$phase" tmp/mew-trace.*/mew-*.json && [ $tries -lt 600 ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
	kill -"$signal" $pid
	wait $pid
	code=$?
}
for signal in TERM INT HUP; do
	if [ $signal = HUP ] && grep -q '^SigIgn:.*[13579bdf]$' /proc/self/status; then # as nohup wants it, and mew keeps it so
		skip "a run that gets SIGHUP" "it is ignored here"
		continue
	fi
	stop $signal calibration/loops "$mew" run --min-time 20 --max-time 20 -k first --trace=stopped.json "$bench"
	check "a run that gets SIG$signal" 4 '' 'wrote stopped.json'
	run "$mew" trace-check stopped.json
	check "... has a sound trace" 0 ', 0 faults$'
	shows stopped.json "... that tells how it ended" '"cat":"run","name":"run".*"exit_code":4'
	rm -f stopped.json
	clean "... and leaves nothing else behind"
done
{
	"$mew" run $fast -k first --trace=piped.json "$bench" 2>err
	echo $? >code
} | true
code=$(cat code)
check "a run whose reader has gone" 2 '' 'wrote piped.json'
run "$mew" trace-check piped.json
check "... has a sound trace" 0 ', 0 faults$'
rm -f piped.json
clean "... and leaves nothing else behind"
# shellcheck disable=SC2086 # a list of words
stop INT measurement/value $gate --rounds 1000 --samples 200 --trace=stopped.json
check "a gate that is interrupted" 4 '' 'wrote stopped.json'
run "$mew" trace-check stopped.json
check "... has a sound trace" 0 ', 0 faults$'
rm -f stopped.json
clean "... and leaves nothing else behind"
finish
