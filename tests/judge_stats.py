# judge_stats.py - random questions to tests/fx_stats and to scipy or plain numpy; prints TAP. Run by tests/judge_stats.sh.
import math
import subprocess
import sys

import numpy
from scipy import special, stats

SEED = 20261130
random = numpy.random.default_rng(SEED)
questions = []  # (group, line, judge: list of numbers or None -> text of the fault or None)


def near(want, relative=1e-9, absolute=1e-12):
    want = numpy.atleast_1d(want)

    def judge(got):
        if got is None or len(got) != len(want):
            return f"got {got}, want {want}"
        if not numpy.allclose(got, want, rtol=relative, atol=absolute):
            return f"got {got}, want {list(want)}"
        return None
    return judge


def none(got):
    return None if got is None else f"got {got}, want none"


def ask(group, name, numbers, judge):
    questions.append((group, name + " " + " ".join(repr(float(x)) for x in numbers), judge))


def sample(n):
    """Values of one of several kinds: skewed, with ties, constant, large and far apart."""
    kind = random.integers(5)
    if kind == 0:
        return random.lognormal(0, 1, n)
    if kind == 1:
        return random.integers(0, 5, n).astype(float)
    if kind == 2:
        return numpy.full(n, 3.25)
    if kind == 3:
        return 1e9 + random.normal(0, 1, n)
    return random.normal(0, 1, n)


def sign_interval(x):
    x = numpy.sort(x)
    n = len(x)
    ks = [k for k in range(1, n // 2 + 1) if stats.binom.cdf(k - 1, n, 0.5) <= 0.025]
    return (x[max(ks) - 1], x[n - max(ks)]) if ks else None


def within_resamples(x):
    """The ends must stand at 2.5 % of the medians of resamples that numpy draws, give or take its own noise."""
    x = numpy.asarray(x)
    drawn = numpy.median(x[random.integers(0, len(x), (20000, len(x)))], axis=1)

    def judge(got):
        if got is None:
            return "got none"
        scale = max(abs(drawn).max(), 1e-9) * 1e-12
        for end, tail in ((got[0], 0.025), (got[1], 0.975)):
            if not (numpy.mean(drawn < end - scale) <= tail + 0.007 and numpy.mean(drawn <= end + scale) >= tail - 0.007):
                return f"{end} is not the {tail} point of the resamples"
        return None
    return judge


for _ in range(150):
    x = sample(random.integers(1, 60))
    ask("median and MAD", "location", x, near([numpy.median(x), stats.median_abs_deviation(x)], 1e-12, 1e-9))
    want = sign_interval(x)
    ask("sign interval", "interval", x, none if want is None else near(want, 0, 0))

for _ in range(150):
    a, b = random.normal(0, 1, random.integers(1, 21)), random.normal(random.normal(), 1, random.integers(1, 21))
    u, p = stats.mannwhitneyu(a, b, method="exact")
    ask("Mann-Whitney, exact", "ranks", [len(a), *a, *b], near([u, p], 1e-9))
for _ in range(150):
    a, b = sample(random.integers(21, 60)), sample(random.integers(1, 60))
    if len(set(a) | set(b)) == 1:
        ask("Mann-Whitney, all values equal", "ranks", [len(a), *a, *b], near([len(a) * len(b) / 2, 1]))
        continue
    u, p = stats.mannwhitneyu(a, b, method="asymptotic")
    ask("Mann-Whitney, normal with ties", "ranks", [len(a), *a, *b], near([u, p], 1e-9))
for _ in range(20):
    a, b = random.integers(0, 4, 5).astype(float), random.integers(0, 4, 4).astype(float)
    test = stats.permutation_test((a, b), lambda p, q: stats.mannwhitneyu(p, q, method="asymptotic").statistic
                                  if len(set(p) | set(q)) > 1 else len(p) * len(q) / 2, n_resamples=numpy.inf)
    ask("Mann-Whitney, exact with ties", "ranks", [5, *a, *b], near([test.statistic, test.pvalue], 1e-9))

for _ in range(50):
    p = random.uniform(0, 0.2, random.integers(1, 12))
    order = numpy.argsort(p, kind="stable")
    steps = numpy.minimum(1, numpy.maximum.accumulate((len(p) - numpy.arange(len(p))) * p[order]))
    ask("Holm", "holm", p, near(steps[numpy.argsort(order, kind="stable")]))

for _ in range(40):
    x = sample(random.integers(5, 40))
    ask("bootstrap of the median", "bootstrap", x, within_resamples(x))

for _ in range(80):
    n = random.integers(8, 40)
    x = numpy.sort(random.choice(1000, n, replace=False)).astype(float)
    y = random.normal(0, 1) * x + random.normal(0, 50, n)
    want = stats.theilslopes(y, x, 0.95)
    ask("Theil-Sen", "trend", [*x, *y], near([want.slope, want.low_slope, want.high_slope], 1e-9))

for _ in range(200):
    n = int(10 ** random.uniform(0, 4))
    k = int(random.integers(0, n + 1))
    ask("binomial tail", "tail", [n, k], near([stats.binom.sf(k - 1, n, 0.5)], 1e-8, 0))
    log_m = n * math.log(2) + special.betaln(k + 1, n - k + 1)
    upper = special.betainc(n - k + 1, k + 1, 0.5)  # the mixture's part above 1/2
    one_sided = log_m + math.log(2) + math.log(upper) if upper > 0 else None
    if one_sided is not None:
        ask("e-processes", "evidence", [k, n - k], near([log_m, one_sided], 1e-7, 1e-7))
    ci = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
    ask("Wilson", "wilson", [k, n], near([ci.low, ci.high], 1e-9))

nan = float("nan")
for name, numbers, judge in (("interval", [1, 2, nan, 4, 5, 6, 7], none), ("ranks", [2, 1, nan, 3, 4], none),
                             ("ranks", [2, 1, 2], none), ("bootstrap", [1, nan, 2], none), ("bootstrap", [5], none),
                             ("trend", [1, 2, 3, 4, 5, nan, 1, 2, 3, 4, 5, 6], none)):
    ask("NaN and too few values", name, numbers, judge)

run = subprocess.run([sys.argv[1]], input="\n".join(q[1] for q in questions) + "\n", capture_output=True, text=True)
answers = run.stdout.splitlines()
groups = {}
for i, (group, line, judge) in enumerate(questions):
    faults = groups.setdefault(group, [])
    if i >= len(answers):
        faults.append(f"no answer to: {line[:200]}")
        continue
    fault = judge(None if answers[i] == "none" else [float(w) for w in answers[i].split()])
    if fault:
        faults.append(f"{line[:200]}: {fault}")
for number, (group, faults) in enumerate(groups.items(), 1):
    count = sum(q[0] == group for q in questions)
    print(f"{'not ok' if faults else 'ok'} {number} - {group}: {count} questions")
    for fault in faults[:3]:
        print("# " + fault)
print(f"1..{len(groups)}")
sys.exit(any(groups.values()) or run.returncode != 0)
