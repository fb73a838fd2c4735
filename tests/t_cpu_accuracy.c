/*
 * t_cpu_accuracy.c - further questions to the CPU backend: its own cost, recursion, causality, the moment after a pause.
 * Test program. What is timed is compared with what the functions measured; a noisy machine gets five tries.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu_cost.h"
#include "fx_cpu_rig.h"

/* --- what sampling costs ----------------------------------------------------------------------------------------- */

FX_IN(fx_body) static void spin_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)fx_one(fx_us(*(const uint64_t *)arg));
	__asm__ volatile("" : : : "memory");
}

/*
 * A fixed amount of work, of which the ticks at every 50 us steal a tenth. What the CPU clock shows beyond the work is
 * what was stolen: an independent measure of the calibrated cost.
 */
enum { AGREES, DIFFERS, ABSENT, BROKEN }; /* exit codes of measure_cost() */

static int measure_cost(void)
{
	uint64_t us = 200000;
	struct rig r = { .body = spin_body, .arg = &us, .interval_ns = 50000 };
	const struct mew_cpu_case *row;
	double stolen;

	rig_run(&r);
	if (r.status != MEW_OK)
		return BROKEN;
	row = &r.row->cpu;
	if (rig_why(&r, MEW_FIG_SAMPLER_COST) != NULL)
		return rig_why(&r, MEW_FIG_WALL_TIME_CORRECTED) != NULL ? ABSENT : BROKEN;
	stolen = row->cpu_time - (double)us * 1e-6;
	printf("# %llu samples: %.4f s by the calibration, %.4f s beyond the work\n",
	       (unsigned long long)row->sample_count, row->sampler_cost, stolen);
	(void)fflush(stdout);
	if (row->sampler_cost <= 0 || fabs(row->wall_time - row->sampler_cost - row->wall_time_corrected) > 1e-9)
		return BROKEN;
	return fabs(row->sampler_cost - stolen) <= 0.25 * stolen ? AGREES : DIFFERS;
}

/* In a process of its own: each calibrates anew, once. */
static bool try_cost(void)
{
	int status = 0;
	pid_t child;

	(void)fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(measure_cost());
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_not_equal(WEXITSTATUS(status), BROKEN);
	if (WEXITSTATUS(status) == ABSENT)
		printf("# too busy to calibrate\n");
	return WEXITSTATUS(status) == AGREES;
}

static void t_cost(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_cost());
}

/* One number for the process: every row multiplies it by its own samples. Threads share the wall time. */
static void t_cost_per_sample(void **state)
{
	uint64_t us = 20000;
	struct rig one = { .body = spin_body, .arg = &us }, two = { .body = spin_body, .arg = &us, .threads = 2 };
	const char *why;
	double each = (double)mew_cpu_cost_ns(&why) * 1e-9;

	(void)state;
	if (why != NULL) {
		printf("# %s\n", why);
		skip();
	}
	rig_run(&one);
	rig_run(&two);
	assert_true(fabs(one.row->cpu.sampler_cost - each * (double)one.row->cpu.sample_count) < 1e-9);
	assert_true(fabs(two.row->cpu.sampler_cost - each * (double)two.row->cpu.sample_count) < 1e-9);
	assert_true(fabs(two.row->cpu.wall_time - two.row->cpu.sampler_cost / 2 - two.row->cpu.wall_time_corrected) <
		    1e-9);
	rig_fini(&one);
	rig_fini(&two);
}

/* Where sampling takes more than a fifth of the loop the row says so, and only there. */
static void t_cost_is_noted(void **state)
{
	uint64_t us = 50000;
	struct rig often = { .body = spin_body, .arg = &us, .interval_ns = 20000 };
	struct rig seldom = { .body = spin_body, .arg = &us, .interval_ns = 400000 };
	const struct mew_cpu_case *row;
	bool is_noted;

	(void)state;
	rig_run(&often);
	row = &often.row->cpu;
	is_noted = row->reason != NULL && strstr(row->reason, "sampling took") != NULL;
	if (rig_why(&often, MEW_FIG_SAMPLER_COST) == NULL)
		assert_int_equal(is_noted, row->sample_count >= 100 && row->sampler_cost > 0.2 * row->wall_time);
	else
		assert_false(is_noted);
	rig_fini(&often);
	rig_run(&seldom);
	row = &seldom.row->cpu;
	assert_true(row->reason == NULL || strstr(row->reason, "sampling took") == NULL);
	rig_fini(&seldom);
}

static void t_cost_is_judged(void **state)
{
	double stolen[200];

	(void)state;
	for (int i = 0; i < 200; i++)
		stolen[i] = 4000 + i % 10;
	assert_int_equal(mew_cpu_cost_median(stolen, 200), 4004);
	for (int i = 0; i < 200; i++) /* a tenth of them met something else: no harm to a median */
		stolen[i] = i % 10 == 0 ? 150000 : 4000;
	assert_int_equal(mew_cpu_cost_median(stolen, 200), 4000);
	assert_int_equal(mew_cpu_cost_median(stolen, 49), 0);
	for (int i = 0; i < 200; i++)
		stolen[i] = i % 2 == 0 ? 4000 : 90000;
	assert_int_equal(mew_cpu_cost_median(stolen, 200), 0);
}

/* --- the moment after a pause ------------------------------------------------------------------------------------ */

/* 10 us of running between pauses of 60 to 120 us; fx_two has the first 2 of them. */
FX_IN(fx_body) static void after_pause_body(struct rig *r, unsigned thread, void *arg)
{
	uint64_t random = fx_tsc() | 1, *spent = arg;

	for (int i = 0; i < 15000; i++) {
		spent[0] += fx_two(fx_us(2));
		spent[1] += fx_one(fx_us(8));
		rig_pause(r, thread);
		(void)fx_hog(fx_us(60 + rig_pick(&random, 60)));
		rig_resume(r, thread);
	}
}

/* A tick held back by a pause would come right after it, and charge those 2 us for the whole pause. */
static bool try_after_pause(void)
{
	uint64_t spent[2] = { 0, 0 };
	struct rig r = { .body = after_pause_body, .arg = spent, .interval_ns = 20000 };
	double truth, share, n, charged;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_int_equal(rig_hits(&r, FX_RANGE(fx_hog)), 0);
	truth = (double)spent[0] / (double)(spent[0] + spent[1]);
	n = (double)r.row->nsamples;
	share = (double)rig_hits(&r, FX_RANGE(fx_two)) / n;
	charged = r.row->cpu.sample_weight / ((double)r.window_ns * 1e-9);
	printf("# %.0f samples; first 2 us of 10: %.3f of the samples, %.3f of the time; charged/true %.3f\n", n, share,
	       truth, charged);
	rig_fini(&r);
	return share <= truth + 4 * sqrt(truth * (1 - truth) / n) + 0.005 && charged >= 0.90 && charged <= 1.10;
}

static void t_after_pause(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_after_pause());
}

/* --- recursion --------------------------------------------------------------------------------------------------- */

FX_BOUNDS(fx_self);
FX_BOUNDS(fx_ping);
FX_BOUNDS(fx_pong);
FX_BOUNDS(fx_three_a);
FX_BOUNDS(fx_three_b);
FX_BOUNDS(fx_three_c);

static uint64_t turn_ticks;

/* The asm behind each call keeps the frame. */
#define RECURSIVE(name, next)                                                                                          \
	FX_IN(name) static uint64_t name(int depth)                                                                    \
	{                                                                                                              \
		uint64_t from = fx_tsc();                                                                              \
                                                                                                                       \
		while (fx_tsc() - from < turn_ticks)                                                                     \
			;                                                                                              \
		from = depth > 0 ? next(depth - 1) + 1 : 1;                                                            \
		__asm__ volatile("# " #name : "+r"(from));                                                             \
		return from;                                                                                           \
	}

RECURSIVE(fx_self, fx_self)
FX_IN(fx_pong) static uint64_t fx_pong(int depth);
RECURSIVE(fx_ping, fx_pong)
RECURSIVE(fx_pong, fx_ping)
FX_IN(fx_three_b) static uint64_t fx_three_b(int depth);
FX_IN(fx_three_c) static uint64_t fx_three_c(int depth);
RECURSIVE(fx_three_a, fx_three_b)
RECURSIVE(fx_three_b, fx_three_c)
RECURSIVE(fx_three_c, fx_three_a)

FX_IN(fx_body) static void recursion_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)arg;
	turn_ticks = fx_us(20);
	for (int i = 0; i < 100; i++) {
		(void)fx_self(30);
		(void)fx_ping(30);
		(void)fx_three_a(30);
	}
}

/*
 * Self times add up to the total, and the total of a function that is on the stack 30 times counts each sample once. A
 * sample that came late, in the body itself, stands for long.
 */
static bool recursion_adds_up(void)
{
	struct rig r = { .body = recursion_body };
	const struct fx_range all[] = { FX_RANGE(fx_self), FX_RANGE(fx_ping), FX_RANGE(fx_pong), FX_RANGE(fx_three_a),
					FX_RANGE(fx_three_b), FX_RANGE(fx_three_c) };
	double self = 0, weight;
	bool ok = true;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	weight = r.row->cpu.sample_weight;
	for (size_t i = 0; i < 6; i++) {
		double total = rig_total(&r, all[i]);

		self += rig_self(&r, all[i]);
		assert_true(total >= rig_self(&r, all[i]) && total <= weight);
		ok = ok && total > 0.25 * weight; /* each third of the run is all in one family */
	}
	ok = ok && self >= 0.99 * weight; /* the rest is the body itself */
	assert_true(self <= weight * (1 + 1e-9));
	assert_true(fabs(rig_total(&r, FX_RANGE(fx_self)) - rig_self(&r, FX_RANGE(fx_self))) < 1e-9);
	assert_int_equal(r.row->cpu.truncated, 0);
	printf("# %.4f of %.4f s of weight in the functions themselves\n", self, weight);
	rig_fini(&r);
	return ok;
}

static void t_recursion(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(recursion_adds_up());
}

/* --- causality --------------------------------------------------------------------------------------------------- */

/* Rounds of 1 : 2 : 7 in which fx_two works longer by arg[0] percent of the round; what each took comes back behind. */
struct change {
	uint64_t percent;
	double spent[3], self[3];
	size_t n;
};

FX_IN(fx_body) static void changed_body(struct rig *r, unsigned thread, void *arg)
{
	struct change *c = arg;
	uint64_t random = fx_tsc() | 1;

	(void)r;
	(void)thread;
	for (int i = 0; i < 25000; i++) {
		uint64_t unit = fx_us(2000 + rig_pick(&random, 4000)) / 1000; /* 4 us on the average */

		c->spent[0] += (double)fx_one(unit);
		c->spent[1] += (double)fx_two(2 * unit + unit * c->percent / 10);
		c->spent[2] += (double)fx_seven(7 * unit);
	}
	for (int i = 0; i < 3; i++)
		c->spent[i] /= (double)fx_us(1000000);
}

static void measure_change(struct change *c)
{
	struct rig r = { .body = changed_body, .arg = c };

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	c->self[0] = rig_self(&r, FX_RANGE(fx_one));
	c->self[1] = rig_self(&r, FX_RANGE(fx_two));
	c->self[2] = rig_self(&r, FX_RANGE(fx_seven));
	c->n = r.row->nsamples;
	rig_fini(&r);
}

/* 4 sigma of a function's self time: a binomial share of n samples. */
static double four_sigma(const struct change *c, int which)
{
	double all = c->self[0] + c->self[1] + c->self[2], share = c->self[which] / all;

	return 4 * all * sqrt(share * (1 - share) / (double)c->n);
}

/* fx_two got slower by d: its self time grows by d within a tenth and chance, that of the others by what they took. */
static bool follows(const struct change *base, const struct change *slow)
{
	bool ok = true;

	for (int i = 0; i < 3; i++) {
		double d = slow->spent[i] - base->spent[i], got = slow->self[i] - base->self[i];
		double chance = sqrt(pow(four_sigma(base, i), 2) + pow(four_sigma(slow, i), 2));

		if (fabs(got - d) <= (i == 1 ? 0.1 * fabs(d) : 0.0) + chance)
			continue;
		printf("# %llu %% slower: function %d took %.4f s more, profile says %.4f s, chance %.4f s\n",
		       (unsigned long long)slow->percent, i, d, got, chance);
		ok = false;
	}
	return ok;
}

static bool try_causality(void)
{
	struct change base = { .percent = 0 };
	bool ok = true;

	measure_change(&base);
	for (uint64_t percent = 5; percent <= 20; percent *= 2) {
		struct change slow = { .percent = percent };

		measure_change(&slow);
		ok = follows(&base, &slow) && ok;
	}
	return ok;
}

static void t_causality(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_causality());
}

/* --- the first sample -------------------------------------------------------------------------------------------- */

/*
 * 1,000 windows of half a period: half a sample each, whatever the window's length has to do with the period. Windows
 * that a process switch made longer than a period are passed over: their samples stand for more than a cell.
 */
static bool try_first_expiry(void)
{
	uint64_t us = 5000, start = rig_now_ns();
	double samples = 0, due = 0;
	int n = 0;

	while (n < 1000 && rig_now_ns() - start < 12000000000) {
		struct rig r = { .body = spin_body, .arg = &us, .interval_ns = 10000000 };

		rig_run(&r);
		assert_int_equal(r.status, MEW_OK);
		if (r.window_ns < 10000000) {
			due += (double)r.window_ns / 1e7;
			samples += (double)r.row->nsamples;
			n++;
		}
		rig_fini(&r);
	}
	if (n < 100)
		return false;
	rig_was_judged = true;
	printf("# %.3f samples a window of %.3f periods, %d windows\n", samples / n, due / n, n);
	return fabs(samples / n - due / n) <= 0.05;
}

static void t_first_expiry(void **state)
{
	(void)state;
	RIG_ASSERT_IF_JUDGED(try_first_expiry(), "hardly any window of 5 ms took less than 10 ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_cost),
		cmocka_unit_test(t_cost_per_sample),
		cmocka_unit_test(t_cost_is_noted),
		cmocka_unit_test(t_cost_is_judged),
		cmocka_unit_test(t_after_pause),
		cmocka_unit_test(t_recursion),
		cmocka_unit_test(t_causality),
		cmocka_unit_test(t_first_expiry),
	};

	if (rig_skips_all())
		return 0;
	(void)fx_us(1); /* measured before any window */
	return cmocka_run_group_tests_name("cpu_accuracy", tests, NULL, NULL);
}
