#!/bin/sh
# trace.sh - `--trace` and `mew trace-check` as a user meets them, and what hostile fragments do to them. Prints TAP.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/trace.sh
set -u
# shellcheck disable=SC2154 # make sets them
mew=$builddir/mew
bench=$builddir/tests/fx_trace
# shellcheck disable=SC2154 # make sets it
examples=$(cd "$srcdir/examples" && pwd)
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"
unset MEW_TRACE_DIR
mkdir tmp
TMPDIR=$work/tmp
export TMPDIR

sound() { # FILE NAME: no faults, and nothing is left behind
	run "$mew" trace-check "$1"
	check "$2" 0 ', 0 faults$'
	run sh -c 'ls -A tmp; ls -A | grep partial'
	status=0
	[ -s out ] && status=1
	result "... and leaves nothing behind" $status
}

fast="--max-time 0.02 --min-warmup-time 0.001 --memory=20"

run "$mew" run $fast -k 'first|second' --trace "$bench"
check "a traced run says where its trace is" 0 'first' 'trace: wrote mew-trace.json'
sound mew-trace.json "it is sound"
status=0
for name in first run 'time pass' 'memory pass' calibration/loops measurement/value memory/value 'repetition 0' set-up outer inner \
	overlaps pause 'live heap' 'resident memory' after; do
	grep -q "\"name\":\"$name\"" mew-trace.json || { status=1; echo "# no $name"; }
done
result "... shows runs, passes, cases, phases, records of the program, counters and arrows" $status
run tail -n 2 mew-trace.json
check "... and last its own cost" 0 '"name":"trace: write"'
run grep -c '"cat":"requests".*"ph":"b"\|"ph":"b".*"cat":"requests"' mew-trace.json
status=0
[ "$(cat out)" -ge 2 ] || status=1
result "... with spans of streams that overlap" $status
run "$mew" run $fast -k 'fails' --trace=deep/er/f.json "$bench"
check "a failed case is on the timeline, in directories that were made" 1 '' 'wrote deep/er/f.json'
run grep '"half"' deep/er/f.json
check "... with the section that was left early" 0
run grep '"state":"MEW_E_LOOP"\|"state":"MEW_E_BODY"' deep/er/f.json
check "... and its state" 0
run "$mew" run $fast -k jumps --trace=jumps.json "$bench"
check "a body that a longjmp left fails alone" 1 '' 'wrote jumps.json'
for name in 'jumped over' 'jumped out of'; do
	run grep -c "\"cat\":\"section\",\"name\":\"$name\",.*\"unfinished\":true" jumps.json
	check "... its section \"$name\" ends with the body and says so" 0 '^2$'
done
run grep -c '"name":"after the jump","ts":[0-9.]*,"dur":[0-9.]*}' jumps.json
check "... and what came after it is whole" 0 '^2$'
sound jumps.json "... and the trace is sound"

run "$mew" run $fast -k first --processes 3 --trace=three.json "$bench"
run grep -c '"ph":"f".*"cat":"flow","name":"calibration"' three.json
check "an arrow leads from the calibration to the measurement of each process" 0 '^3$'
sound three.json "... and the trace is sound"

# the samples of the CPU pass
run "$mew" run --max-time 0.005 --min-warmup-time 0.001 --cpu -k second --json c.mew.json --trace=cpu.json "$bench"
check "a traced CPU pass" 0 second
kept=$(sed -n 's/.*"sample_count": *\([0-9]*\).*/\1/p' c.mew.json | head -n 1)
shown=$(sed -n 's/.*"samples":\[\([0-9,]*\)\].*/\1/p' cpu.json | tr ',' '\n' | grep -c '[0-9]')
status=0
[ "$kept" -gt 0 ] && [ "$kept" = "$shown" ] || status=1
result "... has all its samples on the timeline" $status
run grep -c '"functionName":"mew_body_second"' cpu.json
check "... with names, for each thread" 0 '^2$'
run grep -c '"name":"thread_name","args":{"name":"benchmark thread [01]"}' cpu.json
check "... which have theirs" 0 '^[2-4]$'
run grep -c '"tid":838860[89],"cat":"body","name":"second"' cpu.json
check "... and show the body on them in each block" 0 '^[1-9][0-9]*$'
sound cpu.json "... and the trace is sound"

if run gzip --version; then
	run "$mew" run $fast -k first --trace=z.json.gz "$bench"
	gzip -dc z.json.gz >z.json
	sound z.json "a name that ends in .gz is compressed"
	run "$mew" trace-check z.json.gz
	check "... and trace-check reads it as it is" 0 ', 0 faults$'
	head -c 100 z.json.gz >torn.json.gz
	run "$mew" trace-check torn.json.gz
	check "... but not half of it" 2 '' 'torn.json.gz: .*breaks off'
fi

# files that are none
mkdir folder
for file in folder folder/ new/folder/; do
	run "$mew" run $fast -k first --trace=$file "$bench"
	complains "a trace called $file is refused before anything is measured" 2 'is a directory; name a file in it'
done
run "$mew" run $fast -k first --trace=- "$bench"
complains "... and so is one for standard output, which has the tables" 2 'standard output is taken'
run "$mew" run $fast -k first --trace=/dev/stdout "$bench"
check "what is standard output is written to" 0 '^{"traceEvents":\[$' 'wrote /dev/stdout'
check "... behind the tables" 0 '^first '
mkfifo pipe
cat pipe >piped.json &
run "$mew" run $fast -k first --trace=pipe "$bench"
: <>pipe # a mew that never opened it leaves the reader waiting
wait
check "... and a pipe" 0 '' 'wrote pipe'
sound piped.json "... with a sound trace"
run "$mew" run $fast -k first --trace=/dev/full "$bench"
check "a full disk takes the file, not the run" 2 first "cannot write '/dev/full'.*what was recorded stays in"
run sh -c 'for f in tmp/mew-trace.*/.partial tmp/mew-trace.*/*.json; do "$1" trace-check "$f" || exit 1; done' sh "$mew"
check "... and what it recorded is sound" 0 'ends early'
rm -rf tmp/* pipe folder new
if shm=$(mktemp -d /dev/shm/mew-trace.XXXXXX 2>err); then
	FX_TRACE_CHILD="ls $shm >$work/seen" "$mew" run $fast -k second --trace="$shm/t.json" "$bench" >out 2>err </dev/null
	code=$?
	check "a file in /dev/shm is no device" 0 second "wrote $shm/t.json"
	run grep -x 't.json.partial' seen
	check "... and is written beside itself" 0
	rm -rf "$shm" seen
else
	skip "a file in /dev/shm is no device" "there is no /dev/shm"
fi

# two at once
cat >twice.sh <<'END'
unset FX_TRACE_CHILD MEW_TRACE_DIR
"$1" run --max-time 0.01 -k first --trace=both.json "$2" >twice.out 2>twice.err
echo $? >>twice.err
END
FX_TRACE_CHILD="sh $work/twice.sh '$mew' '$bench'" "$mew" run $fast -k second --trace=both.json "$bench" >out 2>err </dev/null
code=$?
check "two runs into one file: the first has it" 0 second 'wrote both.json'
cp twice.err err
code=$(tail -n 1 err)
check "... and the second is told at once" 2 '' "another run writes its trace to 'both.json.partial' now: choose another file"
sound both.json "... and takes nothing from the first"

run "$mew" run $fast --trace=x.json -k nothing "$bench"
check "a refused run has no trace" 4
run sh -c 'ls -A tmp; ls -A | grep "x.json"'
status=0
[ -s out ] && status=1
result "... and leaves nothing behind" $status
run "$mew" run $fast -k first --trace=r.json --redact 'fir..' "$bench"
run grep -c '"command":"[^"]*-k \*\*\* ' r.json
check "--redact hides what matches in the command line" 0 '^1$'
run grep -c '"command":' mew-trace.json
check "... and without it there is none" 1 '^0$'
run "$mew" run $fast -k first --memory --jobs 2 --trace=r.json --redact 'x_tra' "$bench"
run grep -c 'x_tra' r.json
check "... and in the names of programs, wherever they stand" 1 '^0$'
run grep -c '"name":"f\*\*\*ce' r.json
check "... which are there without it" 0 '^[1-9]'
mkdir inherited
run env MEW_TRACE_DIR="$work/inherited" "$mew" run $fast -k first --trace=i.json "$bench"
check "a run inside a traced one only adds fragments" 0 '' 'part of a traced one'
run sh -c 'ls inherited | grep -c "^mew-.*json$"; test ! -e i.json'
check "... and sweeps nothing" 0 '[2-9]'
ln -s inherited link
run env MEW_TRACE_DIR="$work/link" "$bench" $fast -k first
run ls inherited/link
ls inherited | wc -l >before
run env MEW_TRACE_DIR="$work/link" "$bench" $fast -k first
ls inherited | wc -l >after
run cmp before after
check "a directory that is a link is refused" 0

run env MEW_TRACE_DIR="$work/missing" "$bench" $fast -k first
check "a directory that is missing costs the fragment alone" 0
run env MEW_TRACE_DIR="$work/missing" "$mew" run $fast -k first --trace=i.json "$bench"
check "... but not when a trace is asked for" 2 '' 'missing", no directory of this user'
run "$mew" run $fast -k first --trace i.json "$bench"
check "a file behind a blank is no program" 2 '' "follows a '=': --trace=i.json"
run "$mew" run $fast -k first --trace= "$bench"
check "... and a file needs a name" 2 '' 'not a file name'
run "$mew" run $fast -k first --trace=0 "$bench"
check "... which may be 0" 0 '' 'wrote 0 '
FX_TRACE_CHILD="'$mew' run -q $fast --cpu -k first --trace '$bench'" \
	"$mew" run $fast -k second --cpu --trace=nested.json "$bench" >out 2>err </dev/null
code=$?
check "a traced run inside a traced run" 0 second 'wrote nested.json'
run sh -c 'grep -o "\"pid\":[0-9]*,\"tid\":[0-9]*,.*\"name\":\"Profile\"" nested.json | cut -d, -f1 | sort -u | while read -r pid; do
	grep -c "$pid,.*\"args\":{\"name\":\"fx_trace (CPU pass)\"" nested.json; done | sort | uniq -c | tr -s " "'
check "... shows the samples of both, each in its process" 0 '^ [34] 1$'
sound nested.json "... and is sound"

# what children leave: $MEW_TRACE_DIR is theirs to write
cat >hostile.sh <<'END'
cd "$MEW_TRACE_DIR" || exit 1
now=$(date +%s)000000
echo '[{"ph":tru}]' >bad.json
printf '[{"ph":"X","pid":1,"name":"cut","ts":%s,"dur":5},\n{"ph":"X","pi' "$now" >cut.json
printf '[{"ph":"X","pid":77,"name":"x","ts":"soon","dur":1},{"ph":"X","pid":77,"name":7,"ts":1,"dur":1},5,{"ph":"C","pid":77,"name":"c","ts":%s,"args":{"a":"1"}},{"ph":"X","pid":77,"tid":1,"name":"good","ts":%s,"dur":null},{"ph":"i","pid":77,"name":"kept","ts":"%s.123"}]' "$now" "$now" "$now" >types.json
echo '[]' >empty.json
printf '{"traceEvents":[{"ph":"M","pid":77,"name":"process_name","args":{"name":"other"}},{"ph":"X","pid":77,"name":"same pid","ts":%s,"dur":9}]}' "$now" >same.json
printf '[{"ph":"M","pid":77,"name":"process_name","args":{"name":"third"}},{"ph":"B","pid":77,"tid":1,"name":"open","ts":%s},{"ph":"E","pid":77,"tid":2,"ts":%s},{"ph":"s","pid":77,"cat":"f","name":"lone","id":1,"ts":%s},{"ph":"i","pid":77,"name":"far","ts":5}]' "$now" "$now" "$now" >third.json
head -c 209715200 /dev/zero >huge.json
ln -s /etc/passwd link.json
exit 0
END
export FX_TRACE_CHILD="sh $work/hostile.sh"
run "$mew" run $fast -k second --trace=h.json "$bench"
check "hostile fragments: the run ends well" 0 'second' 'bad.json.*malformed JSON at byte 10.*passed over'
for pattern in '; left out: 1 at times outside the run' 'huge.json: 200 MiB' 'link.json: a link' 'types.json: 5 events left out'; do
	check "... $pattern" 0 '' "$pattern"
done
for name in '"cut"' '"kept"' '"same pid"' '"unfinished":true'; do
	run grep -c -- "$name" h.json
	check "... $name is on the timeline" 0
done
run sh -c 'grep -o "\"pid\":[0-9]*,[^}]*\"name\":\"process_name\",\"args\":{\"name\":\"\(other\|third\)\"" h.json | cut -d, -f1 | sort -u | wc -l'
check "... one number for two processes becomes two" 0 '^2$'
sound h.json "... and the trace is sound"
# each is small enough, and all of them are too many; the program's own come first, whatever they are called
cat >many.sh <<'END'
cd "$MEW_TRACE_DIR" || exit 1
{ echo '['; head -c 62914560 /dev/zero | tr '\0' ' '; echo ']'; } >a.json
for name in b c d e; do ln a.json $name.json; done
printf '[{"ph":"i","pid":88,"name":"fits in","ts":%s000000}]' "$(date +%s)" >z.json
END
export FX_TRACE_CHILD="sh $work/many.sh"
run "$mew" run $fast -k second --trace=many.json "$bench"
check "fragments that are too much together: the run ends well" 0 second 'e.json: 60 MiB are too much, at most 1[0-9] are read; it is passed over'
status=0
[ "$(grep -c 'passed over' err)" = 1 ] || status=1
grep -q '"name":"fits in"' many.json && grep -q '"name":"memory/value"' many.json || status=1
result "... and the others are on the timeline" $status
sound many.json "... which is sound"
rm -f many.json
# shellcheck disable=SC2089,SC2090 # a command line for sh -c
export FX_TRACE_CHILD='rm -rf "$MEW_TRACE_DIR"'
run "$mew" run $fast -k second --trace=gone.json "$bench"
check "a directory that vanished costs the fragments alone" 0 second 'wrote gone.json'
run "$mew" trace-check gone.json
check "... and the trace is sound" 0
mkdir precious && echo '[]' >precious/a.json
# shellcheck disable=SC2089,SC2090 # a command line for sh -c
export FX_TRACE_CHILD='rm -rf "$MEW_TRACE_DIR" && ln -s '"$work"'/precious "$MEW_TRACE_DIR"'
run "$mew" run $fast -k second --trace=swap.json "$bench"
check "a directory swapped for a link is not followed" 0 second 'left alone'
run ls precious/a.json
check "... and what it leads to stays" 0
rm -rf tmp/*
unset FX_TRACE_CHILD

# other people's programs
# shellcheck disable=SC2089,SC2090 # a command line for sh -c
export FX_TRACE_CHILD="sh $examples/trace_fragment.sh"
run "$mew" run $fast -k second --trace=s.json "$bench"
run grep -c '"from a shell script"' s.json
check "the shell's fragment is on the timeline" 0
if command -v python3 >/dev/null 2>&1; then
	export FX_TRACE_CHILD="python3 $examples/trace_fragment.py"
	run "$mew" run $fast -k second --trace=p.json "$bench"
	run grep -c '"from Python"' p.json
	check "Python's fragment is on the timeline" 0
	run python3 -c 'import json; [json.load(open(f)) for f in ("mew-trace.json", "h.json", "s.json", "p.json")]'
	check "a strict reader takes them" 0
fi
export FX_TRACE_CHILD="$builddir/examples/trace_fragment"
run "$mew" run $fast -k second --trace=c.json "$bench"
run grep -c '"from a C program"' c.json
check "a C program's fragment is on the timeline" 0
sound c.json "... and the trace is sound"
unset FX_TRACE_CHILD

# the library in a program of its own
export FX_TRACE_CHILD="'$builddir/examples/direct' >'$work/direct' 2>&1"
run "$mew" run $fast -k second --trace=own.json "$bench"
check "a program that measures itself under a traced run" 0 second 'wrote own.json'
run sh -c 'pid=$(sed -n "s/.*\"pid\":\([0-9]*\),.*\"process_name\",\"args\":{\"name\":\"direct\"}.*/\1/p" own.json) &&
	grep "\"pid\":$pid," own.json | grep -c "\"name\":\"Profile\""'
check "... has the samples of its CPU profiles there" 0 '^[1-9]'
run grep -c '"functionName":"compare_words"' own.json
check "... with names" 0 '^[1-9]'
sound own.json "... and the trace is sound"
unset FX_TRACE_CHILD

# bodies with little respect
run "$mew" run $fast -k 'forks|closes|elsewhere' --trace=wild.json "$bench"
check "bodies that fork, close all descriptors, and end sections on other threads" 0 'closes' 'wrote wild.json'
run grep -c '"name":"in the child"' wild.json
check "... the child's section is there" 0 '^[1-9]'
run grep -c '"name":"fx_trace (forked)"' wild.json
check "... in a process of its own" 0 '^[1-9]'
run sh -c 'grep "\"name\":\"before the fork\"" wild.json | sed "s/.*\"ts\":\([0-9.]*\).*/\1/" | sort | uniq -d | wc -l'
check "... and what was before the fork is there once" 0 '^0$'
run grep -c '"name":"after they were closed"' wild.json
check "... what came after the descriptors were closed is not lost" 0 '^[1-9]'
run wc -c <innocent
check "... and went into no file of the program's" 0 '^0$'
run grep -c '"ph":"b".*"name":"ended elsewhere"' wild.json
check "... a section that another thread ended is on a line of its own" 0 '^[1-9]'
sound wild.json "... and the trace is sound"

# children that leave without a word, and a benchmark process that does
run "$mew" run --max-time 0.001 --min-warmup-time 0.001 -k silent --trace=silent.json "$bench"
check "children that leave by _exit(), a signal or exec" 0 'silent' 'wrote silent.json ([0-9]* events)$'
for how in _exit 'a signal' exec; do
	run sh -c 'grep -c "\"ph\":\"i\".*\"name\":\"$1\"" silent.json' sh "$how"
	cp out marks
	check "... what one recorded before $how is there" 0 '^[1-9]'
	run sh -c 'grep -c "\"ph\":\"X\".*\"name\":\"open when it ended by $1\".*\"unfinished\":true" silent.json' sh "$how"
	cp out sections
	check "... and so is the section that was open" 0 '^[1-9]'
	run cmp marks sections
	check "... each time" 0
done
run sh -c 'grep "\"name\":\"ended in time\"" silent.json | grep -c unfinished'
check "... a section that ended in time is whole" 1 '^0$'
grep -q '"lost_records":0,.*"unended_fragments":0' silent.json
result "... and nothing is counted as lost" $?
sound silent.json "... and the trace is sound"
run "$mew" run $fast -k 'first|dies' --trace=dies.json "$bench"
check "a benchmark process that is killed" 1 'first' 'mew-[0-9]*-.*\.json: its process was killed, or left by _exit() or exec, .* may be missing'
run grep -c '"unended_fragments":[1-9]' dies.json
check "... is counted in the trace" 0 '^1$'
sound dies.json "... which is sound"

# killed in the middle
FX_TRACE_KILL=1 "$mew" run $fast -k 'first|killer' --trace=k.json "$bench" >out 2>err </dev/null
code=$?
check "killed in the middle" 137
run "$mew" trace-check k.json.partial
check "... the partial file is sound" 0 'ends early'
run sh -c 'for f in tmp/mew-trace.*/mew-*.json; do "$1" trace-check "$f" || exit 1; done' sh "$mew"
check "... and so are the fragments" 0 'ends early'
rm -rf tmp/* k.json.partial

# the validator
bad() { # NAME PATTERN EVENTS
	echo "{\"traceEvents\":[{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"p\"}},{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"t\"}},$3]}" >bad.json
	run "$mew" trace-check bad.json
	check "trace-check: $1" 1 "$2"
}
x='"ph":"X","pid":1,"tid":1,"name":"x"'
bad "slices that overlap" 'ends after' "{$x,\"ts\":0,\"dur\":5},{$x,\"ts\":3,\"dur\":5}"
bad "an end without a begin" 'end without a begin' '{"ph":"E","pid":1,"tid":1,"ts":1}'
bad "a begin without an end" 'without an end' '{"ph":"B","pid":1,"tid":1,"name":"b","ts":1}'
bad "an arrow without an end" 'arrow without an end' '{"ph":"s","pid":1,"tid":1,"name":"b","cat":"c","id":1,"ts":1}'
bad "an arrow with one end" 'arrow with one end' "{$x,\"ts\":0,\"dur\":5,\"bind_id\":\"0x1\",\"flow_out\":true}"
bad "a span without an end" 'span without an end' '{"ph":"b","pid":1,"tid":1,"name":"b","cat":"c","id":1,"ts":1}'
p='"ph":"P","pid":1,"tid":1,"cat":"c"'
begin="{$p,\"name\":\"Profile\",\"id\":\"0x1\",\"ts\":1,\"args\":{\"data\":{\"startTime\":1}}}"
chunk() { # NODES SAMPLES DELTAS
	echo "{$p,\"name\":\"ProfileChunk\",\"id\":\"0x1\",\"ts\":2,\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":[$1],\"samples\":[$2]},\"timeDeltas\":[$3]}}}"
}
root='{"id":1,"callFrame":{"functionName":"f"}}'
bad "a chunk of no profile" 'did not begin' "$(chunk "$root" 1 1)"
bad "two profiles of one id" 'second profile' "$begin,$begin"
bad "a node on nothing" 'hangs on one' "$begin,$(chunk '{"id":2,"parent":1,"callFrame":{"functionName":"f"}}' '' '')"
bad "two nodes of one id" 'have one id' "$begin,$(chunk "$root,$root" '' '')"
bad "a sample of no node" 'node that is not there' "$begin,$(chunk "$root" 2 1)"
bad "a sample before zero" 'before zero' "$begin,$(chunk "$root" 1 -5)"
bad "more samples than times" 'as many of the one' "$begin,$(chunk "$root" 1,1 1)"
bad "an unknown phase" 'ph is none' '{"ph":"Z","pid":1,"tid":1,"name":"b","ts":1}'
bad "times that go back" 'later time' "{$x,\"ts\":10,\"dur\":1},{$x,\"ts\":3,\"dur\":1}"
bad "a time below zero" 'before zero' "{$x,\"ts\":-1,\"dur\":5}"
bad "a thread without a name" 'no name' '{"ph":"X","pid":1,"tid":2,"name":"x","ts":0,"dur":5}'
run "$mew" trace-check missing.json
check "trace-check: a file that is not there" 2 '' 'missing.json'
echo '{"a":1}' >other.json
run "$mew" trace-check other.json
check "trace-check: a file that is no trace" 2 '' 'neither an array'
echo '[]' >none.json
run "$mew" trace-check none.json
check "trace-check: nothing to check" 4

finish
