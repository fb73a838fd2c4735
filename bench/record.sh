#!/bin/sh
# record.sh - what `mew record` adds to an unmodified program, beside heaptrack and perf record in the same run: CPU time
# of the program with all that it starts, and of the command beside it, which for mew reads and names what was seen once
# the program has ended. heaptrack resolves names beside the program; its raw form leaves that for later. It does not
# follow children: under gcc it sees the driver alone, not the compiler.
#
#   record.sh ROUNDS SRCDIR     run in the build directory
set -eu
rounds=$1 srcdir=$2
mew=$(pwd)/mew
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/load.sql" <<'SQL'
create table t(a, b text);
with recursive n(x) as (select 1 union all select x + 1 from n where x < 300000) insert into t select x, hex(x) from n;
select count(*) from t where b like '%3%';
SQL
echo 'print(sum(len(str(i)) for i in range(1000000)))' >"$scratch/load.py"
cp "$srcdir/src/model.c" "$scratch/input.c"
cat "$mew" "$mew" >"$scratch/input"

cat >"$scratch/beside.py" <<'PY'
"""Run each tool around one program, by turns in an order that moves on; medians over the rounds."""
import os, shutil, statistics, subprocess, sys

TICK = 1000 / os.sysconf("SC_CLK_TCK")

def cost(words, wraps):
    """CPU milliseconds of the program, with what it starts, and of the tool around it."""
    p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
    with open(f"/proc/{p.pid}/stat") as f: # of a zombie: its own ticks, and those of the children it waited for
        own, below = (lambda t: (int(t[11]) + int(t[12]), int(t[13]) + int(t[14])))(f.read().rpartition(")")[2].split())
    p.wait()
    return (below * TICK, own * TICK) if wraps else ((own + below) * TICK, 0.0)

rounds, mew, scratch, name, *program = sys.argv[1:]
tools = {"native": program,
         "mew_memory": [mew, "record", "--follow", "--memory", "--", *program],
         "mew_cpu": [mew, "record", "--follow", "--cpu=0.001", "--", *program]}
if shutil.which("heaptrack"):
    tools["heaptrack"] = ["heaptrack", "-o", scratch + "/heaptrack", *program]
    tools["heaptrack_raw"] = ["heaptrack", "--raw", "-o", scratch + "/heaptrack_raw", *program]
if shutil.which("perf"):
    tools["perf"] = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "1000", "-g", "-o", scratch + "/perf.data", *program]
seen = {t: [] for t in tools}
for r in range(int(rounds)):
    for i in range(len(tools)):
        t = list(tools)[(i + r) % len(tools)]
        # heaptrack is a script: all below it, its interpreter of traces too, counts as the program's
        seen[t].append(cost(tools[t], t.startswith("mew") or t == "perf"))
native = [a for a, _ in seen["native"]]
peer = {"mew_memory": ("heaptrack", "heaptrack_raw"), "mew_cpu": ("perf",)}
print(f"{name}: {' '.join(program)[:90]}\n  load {open('/proc/loadavg').read().split()[0]}, rounds {rounds}")
print(f"  {'':14} {'program ms':>11} {'command ms':>11} {'ratio to native, least .. greatest':>36}")
for t, costs in seen.items():
    ratios = [(a + b) / n for (a, b), n in zip(costs, native)]
    print(f"  {t:14} {statistics.median(a for a, _ in costs):11.0f} {statistics.median(b for _, b in costs):11.0f}"
          f" {statistics.median(ratios):16.3f}  {min(ratios):7.3f} .. {max(ratios):7.3f}")
for t, others in peer.items():
    for other in (o for o in others if o in seen):
        added = statistics.median((a + b - n) / max(x + y - n, TICK)
                                  for (a, b), (x, y), n in zip(seen[t], seen[other], native))
        inside = statistics.median((a - n) / max(x + y - n, TICK) for (a, b), (x, y), n in zip(seen[t], seen[other], native))
        whole = statistics.median((a + b) / (x + y) for (a, b), (x, y) in zip(seen[t], seen[other]))
        print(f"  {t} beside {other}: {added:.2f} of the time it adds, {inside:.2f} in the program; {whole:.2f} of the whole")
PY

# what each reads and writes lies in the scratch folder
while read -r name program; do
	command -v "${program%% *}" >/dev/null 2>&1 || { echo "$name is missing"; continue; }
	# shellcheck disable=SC2086 # a command
	python3 "$scratch/beside.py" "$rounds" "$mew" "$scratch" "$name" $program </dev/null
done <<LIST
sqlite3 sqlite3 -init $scratch/load.sql :memory: .quit
gcc gcc -O1 -w -S -I$srcdir/include -I$srcdir/src -I. -D_GNU_SOURCE -o $scratch/output.s $scratch/input.c
python3 /usr/bin/python3 $scratch/load.py
xz xz -T2 -1 -k -c $scratch/input
LIST
