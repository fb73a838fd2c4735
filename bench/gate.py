#!/usr/bin/env python3
"""gate.py - how often each way to compare two builds is wrong, how often it finds a known change, how long it takes.

All cells (method, kernel, change) are shuffled in time, so that what the machine does falls on all. One program under
names that end in the percentage of extra work it does: layouts are equal, but for `gate, other link`, whose head is the
same source linked in another place, and `versus, other place`, whose second case has its own copy of the loop.

usage: gate.py TRIALS MEW DIRECTORY [WORD]   (DIRECTORY has gate_mew, gate_mew_other and, where it was built, gate_gbench;
                                             with WORD only the methods whose name holds it)
"""
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

KERNELS = {"arith": (0, 1, 3), "alloc": (0, 1, 3)}
PAIRS = 12  # of the fixed-count sign test: at 5 %, ten on one side reject
REPETITIONS = 20


def call(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


class Programs:
    def __init__(self, mew, source, folder):
        self.mew, self.folder = mew, folder
        self.has_gbench = os.path.exists(os.path.join(source, "gate_gbench"))
        for name in ["gate_mew", "gate_mew_other"] + ["gate_gbench"] * self.has_gbench:
            for percent in (0, 1, 3):
                shutil.copy(os.path.join(source, name), self.path(name, percent))

    def path(self, name, percent):
        return os.path.join(self.folder, f"{name}-{percent}")


def gate(p, kernel, percent, head="gate_mew"):
    said = call(p.mew, "gate", "--base", p.path("gate_mew", 0), "--head", p.path(head, percent), "--limit", "time=0%",
                "--memory", "0", "--samples", "40", "-k", f"^{kernel}$", "--calibration", "none")
    if said.returncode not in (0, 1, 3):
        sys.exit(f"gate.py: {said.stderr}{said.stdout}")
    return said.returncode == 1 or "improve" in said.stdout


def gate_other_link(p, kernel, percent):
    return gate(p, kernel, percent, "gate_mew_other")


def versus(p, kernel, percent):
    return versus_of(p, f"{kernel}_a", f"{kernel}_{percent}")


def versus_other_place(p, kernel, _):
    return versus_of(p, f"{kernel}_a", f"{kernel}_elsewhere")


def versus_of(p, base, head):
    said = call(p.mew, "run", "--versus", base, head, p.path("gate_mew", 0), "--max-time", "0.1")
    if said.returncode not in (0, 3):
        sys.exit(f"gate.py: {said.stderr}{said.stdout}")
    return said.returncode == 0


def gbench_times(p, kernel, percent, repetitions, min_time):
    said = call(p.path("gate_gbench", percent), f"--benchmark_filter=^{kernel}$", "--benchmark_format=json",
                f"--benchmark_repetitions={repetitions}", f"--benchmark_min_time={min_time}")
    rows = json.loads(said.stdout)["benchmarks"]
    return [row["cpu_time"] for row in rows if row["run_type"] == "iteration"]


def mann_whitney(a, b):
    """Two-sided p of the U test, normal with the correction for ties and continuity: what compare.py asks for."""
    ranks, ordered, n = {}, sorted(a + b), len(a) + len(b)
    ties, i = 0, 0
    while i < n:
        k = i
        while k < n and ordered[k] == ordered[i]:
            k += 1
        ranks[ordered[i]] = (i + k + 1) / 2
        ties += (k - i) ** 3 - (k - i)
        i = k
    u = sum(ranks[x] for x in a) - len(a) * (len(a) + 1) / 2
    spread = math.sqrt(len(a) * len(b) / 12 * (n + 1 - ties / (n * (n - 1))))
    if spread == 0:
        return 1.0
    z = max(0.0, abs(u - len(a) * len(b) / 2) - 0.5) / spread
    return math.erfc(z / math.sqrt(2))


def gbench_ranks(p, kernel, percent):
    a = gbench_times(p, kernel, 0, REPETITIONS, 0.01)
    b = gbench_times(p, kernel, percent, REPETITIONS, 0.01)
    return mann_whitney(a, b) < 0.05


def gbench_signs(p, kernel, percent):
    slower = 0
    for i in range(PAIRS):
        order = (0, 1) if i % 2 == 0 else (1, 0)
        t = [0.0, 0.0]
        for side in order:
            t[side] = gbench_times(p, kernel, percent if side else 0, 1, 0.01)[0]
        slower += t[1] > t[0]
    return slower >= 10 or slower <= 2


METHODS = {
    "mew gate, fresh processes": gate,
    "mew gate, other link": gate_other_link,
    "mew run --versus": versus,
    "mew run --versus, other place": versus_other_place,
    "Google Benchmark, two runs, U test": gbench_ranks,
    "Google Benchmark, 12 pairs, sign test": gbench_signs,
}


def wilson(hits, n):
    z, p = 1.959964, hits / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return 100 * (middle - half) / (1 + z * z / n), 100 * (middle + half) / (1 + z * z / n)


def quantile(x, q):
    x = sorted(x)
    return x[min(len(x) - 1, int(q * len(x)))]


def main():
    if len(sys.argv) not in (4, 5) or not sys.argv[1].isdigit() or int(sys.argv[1]) < 1:
        sys.exit("usage: gate.py TRIALS MEW DIRECTORY [WORD]")
    trials, cells, loads, word = int(sys.argv[1]), {}, [], (sys.argv[4:] or [""])[0]
    with tempfile.TemporaryDirectory() as folder:
        p = Programs(sys.argv[2], sys.argv[3], folder)
        if not p.has_gbench:
            print("Google Benchmark is missing (libbenchmark-dev): mew alone")
        for method in METHODS:
            if word not in method or (method.startswith("Google") and not p.has_gbench):
                continue
            for kernel, percents in KERNELS.items():
                for percent in (0,) if method.endswith(("other link", "other place")) else percents:
                    cells[method, kernel, percent] = []
        order = list(cells) * trials
        random.shuffle(order)
        try:
            for method, kernel, percent in order:
                start = time.monotonic()
                found = METHODS[method](p, kernel, percent)
                cells[method, kernel, percent].append((found, time.monotonic() - start))
                loads.append(os.getloadavg()[0])
        except KeyboardInterrupt:
            print("interrupted: what was measured until then")
    report(trials, cells, loads)


def report(trials, cells, loads):
    if not loads:
        return
    print(f"{trials} trials a cell, shuffled; margin 0; load {min(loads):.1f} to {max(loads):.1f}, median {quantile(loads, .5):.1f}")
    print(f"{'method':38} {'kernel':6} {'change':>6} {'n':>4} {'found':>6} {'95 % of it':>12} {'seconds, median (p10-p90)':>26}")
    for (method, kernel, percent), results in cells.items():
        n, hits, seconds = len(results), sum(found for found, _ in results), [s for _, s in results]
        if n == 0:
            continue
        low, high = wilson(hits, n)
        change = "A/A" if percent == 0 else f"+{percent} %"
        print(f"{method:38} {kernel:6} {change:>6} {n:4} {100 * hits / n:5.0f}% {low:5.0f}-{high:3.0f} % "
              f"{quantile(seconds, .5):12.3f} ({quantile(seconds, .1):.3f}-{quantile(seconds, .9):.3f})")


main()
