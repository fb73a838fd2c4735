#!/bin/sh
# command.sh - the command as a user meets it: tables, exit codes, lost cases, bad input. Prints TAP.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/command.sh
set -u
# shellcheck disable=SC2154 # make sets them
mew=$builddir/mew
bench=$builddir/tests/fx_bench
# shellcheck source=tests/tap.sh disable=SC2154 # make sets srcdir
. "$srcdir/tests/tap.sh"
sanitized=no
grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile" && sanitized=yes

fast="--max-time 0.02 --min-warmup-time 0.001"

run "$mew" run $fast -k '^good/(fine|family)' "$bench"
check "a run prints a table with three cases" 0 'good/family \[large\]'
run "$mew" run $fast -k '^good/(fine|family)' --json r.json --csv r.csv "$bench"
check "files are written and named" 0 'good/fine' 'wrote r.json'
run "$mew" report r.json
check "report shows the saved table" 0 'good/family \[small\]'
run "$mew" report r.json --dump
check "report --dump lists every run with its phase" 0 'measurement/value'
run grep -c . r.csv
check "the CSV has a head and a row per case" 0 '^4$'
run "$mew" run $fast -F 'good/fine' --csv - "$bench"
check "a report on standard output comes without the table" 0 '^key,'

if [ $sanitized = no ]; then
	run "$mew" run $fast -k 'bad/crash|good/fine' "$bench"
	check "a crash loses its case alone, with exit code 1" 1 'last words'
	run "$mew" run $fast -k 'bad/crash' "$bench"
	check "... and names the signal on its row" 1 'signal 11'
else
	skip "a crash loses its case alone, with exit code 1" "the sanitizer turns it into an exit"
fi
run "$mew" run $fast -k 'bad/exit|good/fine' "$bench"
check "an exit in a body loses its case alone" 1 'exited with code 0'
run env MEW_TEST_RUN="$work" "$mew" run $fast --timeout 1 -k 'bad/(endless|child)|good/fine' "$bench"
check "an endless loop ends with --timeout" 1 'timeout'
ended "... and leaves no process behind, grandchildren included" "MEW_TEST_RUN=$work"
run "$mew" run $fast -k 'bad/early|good/fine' "$bench"
check "a loop left early is a failed row" 1 'early'
run "$mew" run $fast -k 'bad/setup|good/fine' "$bench"
check "a set-up that ends the process shows what it said" 1 'cannot open data.bin'
run "$mew" run $fast -k 'bad/teardown|good/fine' "$bench"
check "a teardown that ends the process is a failed row" 1 'teardown: .*exited with code 3'
check "... and shows what it said" 1 'cannot flush data.bin'
run "$mew" run $fast -k 'bad/half' --json half.json "$bench"
check "a case that is lost at once has its label in the table" 1 'bad/half \[large\] *failed'
run jq -e '.cases[1] | .time.status == "MEW_E_BODY" and .label == "large" and .tags == "halves" and .threads == 2' half.json
check "... and label, tags and threads in the result" 0
run env FX_BENCH_LAST=cpu/warmup "$mew" run $fast --cpu --hook counting -k odd/late --json late.json "$bench"
check "a case that is lost in a later pass than timing" 1 'late talks'
run jq -e '.cases[0] | .time.status == "MEW_OK" and .cpu.status == "MEW_E_BODY" and .threads == 2' late.json
check "... keeps its time, on two threads" 0
run env FX_BENCH_LAST=measurement/value "$mew" run $fast --interleave --hook counting -k 'good/talks|odd/late' "$bench"
check "an interleaved case that is lost shows what it said" 1 'late talks'
if grep -q 'set-up talks' out; then status=1; else status=0; fi
result "... and not what another case said before it" $status
cat >gone <<END
#!/bin/sh
echo >>runs
[ "\$(wc -l <runs)" -lt 4 ] || rm -f "\$0"
exec "$bench" "\$@"
END
chmod +x gone
run "$mew" run $fast --processes 20 -k 'good/(fine|talks)' --json gone.json ./gone
check "a program that goes away between processes, and a note that says so" 1 'good/fine: only [1-4] of 20 processes'
run jq -e '[.cases[].time | select(.median_ns > 0 and .processes < 20 and (.reason | test("gone cannot be run")))] | length == 2' \
	gone.json
check "... with the figures of those that had run" 0
memory=--memory=10 # which a sanitized program cannot have
[ $sanitized = no ] || memory=--interleave
run "$mew" run $fast $memory -k 'odd/counts' --json counts.json "$bench"
check "what another thread than the first counts is shown" 0 'of the second'
run jq -e '.cases[0] | .time.iterations / 2 <= .counters.turns * 2 and .counters.turns > 10' counts.json
check "... as it was where time was taken" 0
run "$mew" run $fast -k 'skip/' "$bench"
check "a skipped case is not a failure" 0 'skipped: no such device'
run "$mew" run $fast -v -k 'odd/' "$bench"
check "a thread left behind is noticed" 0 'left threads'

run "$mew" run $fast -k talks "$bench"
status=0
[ "$code" = 0 ] || status=1
if grep -q 'set-up talks' out err; then status=1; fi
result "what bodies print is kept apart" $status
run "$mew" run $fast -k talks --capture no "$bench"
check "... and let through by --capture no" 0 'good/talks' 'set-up talks on stdout'

run "$mew" run $fast --processes 3 --repetitions 2 --interleave -t plain --json p.json "$bench"
check "processes, repetitions and interleaving" 0 'good/fine'
run sh -c 'grep -o "\"process\":2" p.json | head -n 1; grep -o "\"repetition\":1" p.json | head -n 1'
check "... are told apart in the saved runs" 0 'process":2'
run "$mew" run --min-time 1000x -k fine --json n.json "$bench"
check "--min-time Nx runs exactly N iterations" 0
run sh -c 'tr -d " \t" <n.json | grep -o "\"iterations\":[0-9]*" | head -n 1'
check "... as the result says" 0 '^"iterations":1000$'
run "$mew" run --latency --max-time 0.05 -k fine -v "$bench"
check "--latency times single calls" 0 'latency'
run "$mew" run --dry-run -k 'good/' "$bench"
check "--dry-run runs every case once" 0 'good/threads *it ran once'
run "$mew" run --dry-run -k 'good/fine' --csv - "$bench"
check "... and has no figures" 0 '^good/fine,[^,]*,[^,]*,1,MEW_OK,"*it ran once[^,]*,[^,]*,,,,,,'
run "$mew" run $fast --hook counting -k 'good/fine' --json h.json "$bench"
check "--hook runs the program's hook" 0
run grep -c '"blocks"' h.json
check "... and its data is in the result" 0
run "$mew" run $fast --hook nothing -k fine "$bench"
complains "an unknown hook is named with the known ones" 2 "counting"

run "$mew" list "$bench"
check "list shows keys and labels" 0 'good/family/case:1'
run "$mew" list -v -t quick "$bench"
check "list -v says what works here" 0 'backends'
run "$bench" -k fine $fast
check "the program takes the flags itself" 0 'good/fine'

if [ $sanitized = no ]; then
	run "$mew" run --all $fast --cpu --inner-iterations 2000 --memory=50 -k 'good/heap' --json a.json "$bench"
	check "all passes of a case" 0 'good/heap'
	run sh -c 'tr -d " \t\n" <a.json | grep -o "\"total_allocations\":[0-9]*"'
	check "... count exactly: 3 allocations in 50 iterations" 0 ':150$'
	run "$mew" report a.json --pprof profiles --speedscope a.speedscope.json --firefox a.firefox.json
	check "stacks are written for other viewers" 0 '' 'wrote a.firefox.json'
	run ls profiles
	check "... by case and kind where the viewer takes one at a time" 0 '^good-heap.memory.pb.gz$'
	run "$mew" report a.json --firefox again.json
	run cmp a.firefox.json again.json
	check "... with the same bytes each time" 0
	run "$mew" report r.json --speedscope none.json
	complains "... and not without stacks" 2 'add --memory or --cpu'
	run ls none.json
	check "... when no file is left" 2
else
	skip "all passes of a case" "the malloc hooks are not in a sanitized build"
fi

run "$mew" run $fast --cpu --clock cpu -k 'good/fine' -v --json c.json "$bench"
check "--clock cpu spreads the samples over CPU time" 0 'clock *cpu'
run sh -c 'tr -d " \t" <c.json | grep -o "\"clock\":\"[a-z]*\""'
check "... as the result says" 0 '^"clock":"cpu"$'
run "$mew" run --clock sun "$bench"
complains "an unknown clock" 2 'wall or cpu'

run "$mew" run
complains "no program" 2 'name a benchmark program'
run "$mew" bogus
complains "an unknown command" 2 'bogus'
run "$mew" run --bogus "$bench"
complains "an unknown flag" 2 'bogus'
run "$mew" run --c 0.001 "$bench"
complains "the begin of several flags" 2 '^mew: --c could be one of --cpu, --clock, --capture, --color, --csv: write it out$'
run "$mew" run --c=0.001 "$bench"
complains "also with a value" 2 '^mew: --c could be one of'
run "$mew" run --interl=3 "$bench"
complains "but that of one flag is that flag" 2 '--interl takes no value'
run "$mew" gate --he x
complains "a gate's too" 2 'could be one of --head, .*--help'
run "$mew" run --all -xq "$bench"
complains "an unknown letter in front of others" 2 'there is no flag -x;'
run "$mew" run -é "$bench"
complains "an unknown letter of two bytes" 2 'there is no flag -é;'
run "$mew" run --interleave=3 "$bench"
complains "a value for a flag that takes none" 2 '--interleave takes no value'
run "$mew" run "$bench" -vk
complains "a letter without its value" 2 '-k needs a value'
run "$mew" run --min-time 1 --min-time 5x "$bench"
complains "seconds and iterations" 2 'give one of them'
run "$mew" list --json x.json "$bench"
complains "list takes no flag of run" 2 'there is no flag --json'
run "$mew" report -k fine r.json
complains "nor does report" 2 'there is no flag -k'
run "$mew" run --json - --csv - "$bench"
complains "two reports on standard output" 2 'both write to standard output'
run "$mew" run --json same.json --trace=same.json "$bench"
complains "a report and the timeline in one file" 2 'both write to same.json: name two files'
run "$mew" report --dump --csv - r.json
complains "runs or a report" 2 '--dump does not go with --csv'
for command in run list report; do
	run "$mew" $command --version
	check "$command --version" 0 '^mew [0-9]'
	run "$mew" $command --help
	check "$command --help" 0 'Exit code'
done
for command in '' run list report record compare gate calibrate trace-check; do
	"$mew" $command --help
done >out 2>err
code=$?
awk 'length > 80 { print; wide = 1 } END { exit wide || NR < 150 }' out >log
result "--help fits into 80 columns" $?
run "$mew" list --help
if grep -q -- --json out; then status=1; else status=0; fi
result "... shows what the command takes" $status
run "$mew" run --min-time abc "$bench"
complains "a bad number" 2 'abc'
run "$mew" run --repetitions 0 "$bench"
complains "a count of zero" 2 '1 or more'
run "$mew" run --jobs some "$bench"
complains "no number of processes" 2 'from 0 to 256'
run "$mew" run --memory 50 "$bench"
complains "a number that is not joined to its flag" 2 '--memory=50$'
run "$mew" run $fast -k fine --html none/r.html "$bench"
complains "a file that cannot be written, before anything is measured" 2 '--html: .*none/r.html'
run "$mew" run $fast -k fine --memory --csv r.csv --folded stacks --pprof r.csv "$bench"
complains "... nor a directory" 2 '--pprof: .*r.csv'
result "... and nothing is left of those that could" "$([ ! -e stacks ]; echo $?)"
run "$mew" run $fast -k fine --folded stacks "$bench"
complains "stacks without a pass that has them" 2 'add --memory or --cpu'
if [ $sanitized = no ]; then
	run "$mew" run $fast -k heap --memory --folded stacks --csv stacks/r.csv "$bench"
	check "a file may lie in a directory that the run makes" 0 '' 'wrote stacks/r.csv'
else
	skip "a file may lie in a directory that the run makes" "the malloc hooks are not in a sanitized build"
fi
run "$mew" run --csv= "$bench"
complains "a file without a name" 2 'not the name of a file'
run "$mew" run --color sometimes "$bench"
complains "a bad choice" 2 'auto, always or never'
run "$mew" run -k '(' "$bench"
complains "a bad expression" 2 'regular expression'
run "$mew" run -k 'matches nothing' "$bench"
complains "a filter that matches nothing" 4 'matches'
run "$mew" run not-there
complains "a name that is no file here" 2 'not-there.*not looked for in PATH: name it by its path'
run "$mew" run ./not-there
complains "a program that is not there" 2 'not-there cannot be run: No such file or directory$'
run "$mew" run .
complains "a directory" 2 'name the program in it'
: >plain
run "$mew" run ./plain
complains "a file that is no program" 2 'make it executable'
if [ $sanitized = no ]; then
	run "$mew" run --gbench-program "$bench"
	complains "a program of mew as one of Google Benchmark" 2 'leave out --gbench-program'
else
	skip "a program of mew as one of Google Benchmark" "a sanitizer lets no library be loaded before itself"
fi
run "$mew" run /bin/true
complains "a program that is not a benchmark" 2 'not a mew program'
run "$mew" run "$builddir/tests/fx_invalid"
complains "entries that are not valid" 2 '"same" is there twice'
run "$mew" run $fast -k fine --json /dev/full "$bench"
check "an output that cannot be written: the table is kept" 2 'good/fine' '/dev/full'
run "$mew" report ./not-there.json
complains "a result that is not there" 2 'not-there.json'
echo '{"a":1}' >foreign.json
run "$mew" report foreign.json
complains "a foreign JSON" 2 'not a mew result'
sed 's/"schema" *: *1/"schema": 99/' r.json >newer.json
run "$mew" report newer.json
complains "a newer schema" 2 'newer'
head -c 500 r.json >cut.json
run "$mew" report cut.json
complains "a cut file" 2 'cut.json'

for format in csv gbench bmf gha markdown otlp html json; do
	run "$mew" report r.json --$format /dev/full
	complains "a full disk ends --$format" 2 "/dev/full.*space"
	run sh -c "trap '' XFSZ; ulimit -f 1; exec \"\$0\" report r.json --$format limit.$format" "$mew"
	status=0
	for left in *limit.$format* .*limit.$format*; do [ ! -e "$left" ] || status=1; done
	[ "$code" = 2 ] && grep -q "limit.$format" err || status=1
	result "... and a file that may not grow leaves nothing behind" $status
done

run env FX_BENCH_INTERRUPT=0 "$mew" run $fast --hook interrupting -k 'good/(fine|heap)' "$bench"
check "an interrupt ends the run with what was measured" 4 '' 'interrupted'
run env FX_BENCH_INTERRUPT=2 "$mew" run $fast --repetitions 10 --hook interrupting -k 'odd/late' --json stopped.json "$bench"
check "... and repetitions that had ended are figures" 4 'odd/late .*[0-9] x [0-9]' 'interrupted'
run jq -e '.cases[0].time.repetitions == 2' stopped.json
check "... and their number says how many" 0
run jq -e '.cases[0] | .threads == 2 and .time.iterations == .time.samples * .time.loops * 2' stopped.json
check "... of all threads, though the body printed" 0

finish
