#!/bin/sh
# jobs.sh - `mew run --jobs`: the memory pass beside itself says the same as one by one, keeps the order, loses one case
# at a time, ends when it is told to, and shows on the timeline. Prints TAP.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/jobs.sh
set -u
# shellcheck disable=SC2154 # make sets them
here=$(cd "$srcdir/tests" && pwd) || exit 99
# shellcheck disable=SC2154 # make sets it
mew=$builddir/mew
bench=$builddir/tests/fx_jobs
# shellcheck source=tests/tap.sh
. "$here/tap.sh"
unset MEW_TRACE_DIR FX_JOBS_LOG FX_JOBS_PATIENCE
mkdir tmp
TMPDIR=$work/tmp
export TMPDIR
fast="--max-time 0.01 --min-warmup-time 0.0001 --memory=20"
still="--min-time 20x --min-warmup-time 0 --memory=20" # equal runs in the timing pass
if grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile"; then
	echo "1..0 # SKIP the malloc hooks are not in a sanitized build"
	exit 0
fi

# --- flags

run "$mew" run --jobs x "$bench"
complains "a count that is none" 2 '--jobs: "x" is not a whole number'
run "$mew" run --jobs 257 "$bench"
complains "more than there may be" 2 'from 0 to 256'
run "$mew" run --gbench-program --memory --jobs 2 "$bench"
complains "not with programs of Google Benchmark" 2 'leave it out'
run "$mew" run $fast --jobs 0 -t order "$bench"
check "0 is as many as there are processors" 0 'order/last'
run "$bench" $fast --jobs 2 -t order
check "a program takes it itself" 0 'order/last'

# --- the same results

cat >same.py <<'END'
import json, sys

# times, what the kernel counts, and the memory of mew's own tables, which stay for the next case of a process
loose = {"time", "real_ns", "cpu_ns", "context_switches", "migrations", "page_faults", "rss_peak_delta_bytes",
         "bookkeeping_bytes", "date", "load_1min",
         "peak_usable_bytes"}  # which free blocks the allocator has depends on the cases that ran before in the process

def same(a, b, path, bad):
    if type(a) is not type(b):
        bad.append(path)
    elif isinstance(a, dict):
        if list(a) != list(b):
            bad.append(path + ": keys")
        for k in a:
            if k not in loose and k in b:
                same(a[k], b[k], path + "/" + k, bad)
    elif isinstance(a, list):
        if len(a) != len(b):
            bad.append(path + ": length")
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, "%s[%d]" % (path, i), bad)
    elif a != b:
        bad.append("%s: %r, %r" % (path, a, b))

a, b = (json.load(open(f)) for f in sys.argv[1:])
bad = []
same(a, b, "", bad)
print("\n".join(bad[:20]))
print(len(bad), "differences")
sys.exit(bool(bad))
END
# not the case with threads: how many of their blocks live at once is chance
exactly='counts|order|talks|skipped|crash'
run "$mew" run $still -k "$exactly" --json one.json "$bench"
check "one by one" 1 'these are the words of c'
run "$mew" run $still -k "$exactly" --json three.json --jobs 3 "$bench"
check "three at once" 1 'these are the words of c'
for word in a b c d; do
	grep -q "these are the words of $word" out || code=99
done
check "... with the words of each case" 1 'last words'
if command -v python3 >/dev/null 2>&1; then
	run python3 same.py one.json three.json
	check "the results are the same, in the same order" 0 '^0 differences'
else
	skip "the results are the same, in the same order" "python3 is missing"
fi

# --- beside each other, and in order

FX_JOBS_LOG=$work/log FX_JOBS_PATIENCE=60
export FX_JOBS_LOG FX_JOBS_PATIENCE
run "$mew" run $fast -k '^meet' --hook log --jobs 2 "$bench"
check "two cases that wait for each other" 0 'meet \[other\]'
meetings() { # begins of the memory pass that come while the other case is open
	awk '$3 == "memory/warmup" { if ($1 == "end") open[$4] = 0; else { for (k in open) n += open[k] && k != $4; open[$4] = 1 } }
		END { print n + 0 }' log
}
run meetings
check "... meet" 0 '^[1-9]'
rm -f log
FX_JOBS_PATIENCE=1
run "$mew" run $fast -k '^meet' --hook log "$bench"
run meetings
check "... and without --jobs they do not" 0 '^0$'
unset FX_JOBS_PATIENCE
rm -f log
run "$mew" run --all $fast --inner-iterations 20 -t exact --hook log --jobs 4 "$bench"
check "all passes, four at once" 0 'order/last'
run awk '
	$1 == "begin" { open[$2] = $3; n = 0; for (p in open) n++; if (n > most) most = n }
	$1 == "begin" && n > 1 { for (p in open) if (open[p] !~ /^memory/) overlaps++ }
	$1 == "end" { delete open[$2] }
	END { print most, overlaps + 0; exit !(most <= 4 && overlaps == 0 && NR > 100) }' log
check "... at most four, and timing and sampling alone" 0
run awk '
	$3 !~ /^memory/ { next }
	$1 == "begin" && $4 == "order/middle" { if (counts != 72) bad++ }
	$1 == "begin" && $4 == "order/last" { if (middle != 6) bad++ }
	$4 ~ /^counts/ { counts++ }
	$4 == "order/middle" { middle++ }
	END { print counts, middle, bad + 0; exit !(counts == 72 && middle == 6 && bad == 0) }' log
check "... and each case behind those that it comes after" 0
unset FX_JOBS_LOG

# --- failures

run "$mew" run --max-time 0.01 --dry-run --memory=20 --timeout 1 -k 'endless|crash|counts' --jobs 3 --json lost.json "$bench"
check "cases that hang or are killed are lost alone" 1 'counts \[11\]'
run sh -c 'tr -d " \t\n" <lost.json | grep -o "\"total_allocations\":[0-9]*" | wc -l'
check "... and the others have their figures" 0 '^12$'

# interrupted while a case waits in the memory pass for one that never comes
FX_JOBS_LOG=$work/log FX_JOBS_PATIENCE=100
export FX_JOBS_LOG FX_JOBS_PATIENCE
rm -f log
"$mew" run $fast -k 'meet/case:0|counts' --hook log --jobs 2 --trace=stopped.json --json stopped.json.mew "$bench" >out 2>err </dev/null &
pid=$!
tries=0
both_are_busy() { # with the last case that counts, and with the one that waits
	grep -q 'memory/value counts/case:11' log && grep -q 'memory/[a-z]* meet/case:0' log
}
while ! both_are_busy 2>/dev/null && [ $tries -lt 1200 ]; do
	sleep 0.05
	tries=$((tries + 1))
done
kill -INT $pid
wait $pid
code=$?
check "an interrupt ends all lanes, with what was measured" 4 'counts' 'interrupted'
run sh -c 'tr -d " \t\n" <stopped.json.mew | grep -o "\"total_allocations\":[0-9]*" | wc -l'
check "... the cases that had ended" 0 '^1[12]$'
unset FX_JOBS_PATIENCE FX_JOBS_LOG
ended "... and no process stays behind" "FX_JOBS_LOG=$work/log"
run "$mew" trace-check stopped.json
check "... with a sound trace" 0 ', 0 faults$'

# --- the timeline

run "$mew" run --all $fast --inner-iterations 20 -t exact --jobs 2 --trace=t.json "$bench"
check "a trace of lanes" 0 'order/last' 'wrote t.json'
run "$mew" trace-check t.json
check "... is sound" 0 ', 0 faults$'
for lane in 1 2; do
	run grep -c "\"thread_name\",\"args\":{\"name\":\"memory lane $lane\"" t.json
	check "... has a line for lane $lane" 0 '^1$'
done
run sh -c 'grep "\"cat\":\"case\"" t.json | grep -c "\"queue_ms\":[0-9]*\.[0-9][0-9][0-9][,}]"'
check "... says how long cases waited" 0 '^[1-9]'
run sh -c 'grep "\"wait for the exclusive lane\"" t.json | grep -c "\"cat\":\"lane\""'
check "... and the pass behind them, once" 0 '^1$'
run sh -c 'sed -n "s/.*\"pid\":\([0-9]*\).*\"process_name\",\"args\":{\"name\":\"[^\"]*(memory pass)\".*/\1/p" t.json | sort -u | wc -l'
check "... with the processes apart" 0 '^[2-9]'
run awk '
	!/"cat":"flow","name":"after"/ { next }
	{ match($0, /"tid":[0-9]+/); tid = substr($0, RSTART, RLENGTH); match($0, /"id":"[^"]*"/); id = substr($0, RSTART, RLENGTH) }
	/"ph":"s"/ { from[id] = tid }
	/"ph":"f"/ && id in from && from[id] != tid { n++ }
	END { print n + 0; exit n == 0 }' t.json
check "... and arrows from lane to lane" 0
run "$mew" run $fast -t exact --trace=alone.json "$bench"
run grep -c 'exclusive lane' alone.json
check "without lanes no case waits once it has begun" 1 '^0$'
cat >queue.py <<'END'
import json, sys

# A visit of a case is ready when its pass begins, its visit before has ended, and so has what it comes after; from then
# on it waits, if another one ran since. One that is next without a pause did not.
after = {"order/last": ["order/middle"], "order/middle": ["counts"]}
events = json.load(open(sys.argv[1]))["traceEvents"]
slices = lambda cat: sorted((e for e in events if e.get("cat") == cat and e["ph"] == "X"), key=lambda e: e["ts"])
holds = lambda outer, e: outer["ts"] <= e["ts"] < outer["ts"] + outer["dur"]
end = lambda e: e["ts"] + e["dur"]
run = {e["pid"] for e in slices("run")}
cases = [e for e in slices("case") if e["pid"] in run]
bad, waited = [], 0
for p in slices("pass"):
    inside = [e for e in cases if holds(p, e)]
    last = {}
    for i, e in enumerate(inside):
        program = [holds(b, e) for b in slices("benchmark")]
        got, ready = e["args"].get("queue_ms"), 0
        for visit in inside[:i]:
            other = visit["name"]
            if [holds(b, visit) for b in slices("benchmark")] == program and (
                    other == e["name"] or any(other.startswith(a) for a in after.get(e["name"], []))):
                ready = max(ready, end(visit))
        if ready: # known to the nanosecond
            low = high = (e["ts"] - ready) / 1000
        else:     # since the pass began: behind its slice's start, before its first case
            low, high = (e["ts"] - inside[0]["ts"]) / 1000, (e["ts"] - p["ts"]) / 1000
        next_in_line = i == 0 or abs(end(inside[i - 1]) - ready) < 0.0015
        waited += got is not None
        if next_in_line and got is not None or not next_in_line and not (got is not None and low - 0.0015 <= got <= high + 0.0015):
            bad.append("%s in the %s: %s ms, wanted %s to %s" % (e["name"], p["name"], got, low, high))
print("\n".join(bad[:20]))
print(len(cases), "visits,", waited, "waited,", len(bad), "wrong")
sys.exit(bool(bad) or waited * 2 < len(cases))
END
if command -v python3 >/dev/null 2>&1; then
	run python3 queue.py alone.json
	check "... but says how long it waited for the others before that" 0 ', 0 wrong$'
	run "$mew" run --max-time 0.01 --min-warmup-time 0.0001 -t exact --processes 2 --trace=two.json "$bench" "$bench"
	check "two programs, two processes of each" 0 'order/last'
	run python3 queue.py two.json
	check "... wait for each other too" 0 ', 0 wrong$'
	run "$mew" run --max-time 0.01 --min-warmup-time 0.0001 -k order/last --processes 3 --allocator system \
		--trace=own.json "$bench"
	check "one case in three processes, each a call of the plan" 0 order/last
	run sh -c 'grep "\"cat\":\"case\"" own.json | grep -c queue_ms'
	check "... waits for no other" 1 '^0$'
else
	skip "how long cases waited" "python3 is missing"
fi
# what the harness left open counts too
run sh -c 'exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 24 && exec "$@"' sh "$mew" run $still -k "$exactly" --jobs 12 --json few.json "$bench"
check "fewer processes where few files may be open, and a word about it" 1 'counts \[11\]' '24 open files are allowed, too few for 12 processes at once: [2-4] run; raise it with .ulimit -n'
run python3 same.py one.json few.json
check "... with the same results" 0
run sh -c 'ls -A tmp'
status=0
[ -s out ] && status=1
result "nothing is left behind" $status
finish
