#!/bin/sh
# record.sh - what `mew record` adds to an unmodified program, beside heaptrack and perf record in the same run: CPU time
# of the program and, with its children, of what records it. heaptrack does not follow children: under gcc it sees the
# driver alone, not the compiler.
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
cat >"$scratch/cost.py" <<'PY'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("cpu_ms", round(1000 * (used.ru_utime + used.ru_stime), 1))
PY
cost="python3 $scratch/cost.py"
echo 'print(sum(len(str(i)) for i in range(1000000)))' >"$scratch/load.py"
cp "$srcdir/src/model.c" "$scratch/input.c"
cat "$mew" "$mew" >"$scratch/input"
# what each reads and writes lies in the scratch folder
while read -r name program; do
	command -v "${program%% *}" >/dev/null 2>&1 || { echo "$name is missing"; continue; }
	echo "# $name"
	set -- "native=$cost $program" "mew_memory=$cost $mew record --follow --memory -- $program" \
		"mew_cpu=$cost $mew record --follow --cpu=0.001 -- $program"
	if command -v heaptrack >/dev/null 2>&1; then
		set -- "$@" "heaptrack=$cost heaptrack --raw -o $scratch/heaptrack $program"
	fi
	if command -v perf >/dev/null 2>&1; then
		set -- "$@" "perf=$cost perf record -q -e cpu-clock -F 1000 -g -o $scratch/perf.data $program"
	fi
	sh "$srcdir/bench/compare.sh" "$rounds" "$@" </dev/null
done <<LIST
sqlite3 sqlite3 -init $scratch/load.sql :memory: .quit
gcc gcc -O1 -w -S -I$srcdir/include -I$srcdir/src -I. -D_GNU_SOURCE -o $scratch/output.s $scratch/input.c
python3 /usr/bin/python3 $scratch/load.py
xz xz -T2 -1 -k -c $scratch/input
LIST
