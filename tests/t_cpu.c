/*
 * t_cpu.c - does the CPU backend say where the time really went: shares, totals, threads, pauses.
 * Test program. What is timed is compared with what the functions measured; a noisy machine gets more tries.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fx_cpu_rig.h"

#define PERIOD_NS 400000 /* of the loop in step: delivering a sample takes 5 to 50 us and must fit into a half */

/* --- shares ------------------------------------------------------------------------------------------------------ */

struct truth {
	double one, two, seven;
	bool pauses;
};

/* Phases of random length, one after the other; with pauses a hog runs in between for longer than all of them. */
FX_IN(fx_body) static void ratio_body(struct rig *r, unsigned thread, void *arg)
{
	uint64_t until = fx_tsc() + fx_us(1500000), random = fx_tsc() | 1, spent[3] = { 0 };
	struct truth *truth = arg;

	while (fx_tsc() < until) {
		uint64_t unit = fx_us(500 + rig_pick(&random, 4000)) / 1000;

		spent[0] += fx_one(unit);
		spent[1] += fx_two(2 * unit);
		spent[2] += fx_seven(7 * unit);
		if (!truth->pauses)
			continue;
		rig_pause(r, thread);
		(void)fx_hog(5 * unit);
		rig_resume(r, thread);
	}
	truth->one = (double)spent[0];
	truth->two = (double)spent[1];
	truth->seven = (double)spent[2];
}

static bool share_is(const struct rig *r, struct fx_range f, const char *name, double ticks, double all)
{
	double truth = ticks / all, got = rig_self(r, f) / r->row->cpu.sample_weight, n = (double)r->row->nsamples;
	double tolerance = 4 * sqrt(truth * (1 - truth) / n) + 0.005;

	if (fabs(got - truth) <= tolerance)
		return true;
	printf("# %s: %.4f of the weight, %.4f of the time, tolerance %.4f\n", name, got, truth, tolerance);
	return false;
}

static bool shares_are(struct truth *truth)
{
	struct rig r = { .body = ratio_body, .arg = truth };
	double all;
	bool ok;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	all = truth->one + truth->two + truth->seven;
	ok = share_is(&r, FX_RANGE(fx_one), "one", truth->one, all);
	ok = share_is(&r, FX_RANGE(fx_two), "two", truth->two, all) && ok;
	ok = share_is(&r, FX_RANGE(fx_seven), "seven", truth->seven, all) && ok;
	ok = rig_adds_up(&r) && ok;
	assert_int_equal(rig_hits(&r, FX_RANGE(fx_hog)), 0);
	assert_true(r.row->nsamples > 100);
	rig_fini(&r);
	return ok;
}

static bool try_shares(void)
{
	return shares_are(&(struct truth){ .pauses = false });
}

static bool try_shares_with_pauses(void)
{
	return shares_are(&(struct truth){ .pauses = true });
}

static void t_shares(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_shares());
}

static void t_shares_with_pauses(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_shares_with_pauses());
}

/* --- a loop in step with the sampler ----------------------------------------------------------------------------- */

struct halves {
	volatile int current;
	double first, second;
};

/* Two halves of half a period each, by a common deadline that never drifts; what another process took is skipped. */
static void run_halves(struct halves *h, uint64_t us)
{
	double at = (double)fx_tsc(), half = (double)fx_us(1000000) * PERIOD_NS / 2e9;
	uint64_t until = fx_tsc() + fx_us(us);

	at -= half / 2; /* a fixed period that starts with the loop then falls into the middle of a half */
	while (fx_tsc() < until) {
		while ((double)fx_tsc() > at + 2 * half)
			at += 2 * half;
		h->current = 1;
		h->first += (double)fx_one_until((uint64_t)(at += half));
		h->current = 2;
		h->second += (double)fx_two_until((uint64_t)(at += half));
	}
}

FX_IN(fx_body) static void lockstep_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	run_halves(arg, 2000000);
	__asm__ volatile("" : : : "memory");
}

static bool try_lockstep(void)
{
	struct halves h = { 0 };
	struct rig r = { .body = lockstep_body, .arg = &h, .interval_ns = PERIOD_NS };
	double got, truth;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	got = rig_self(&r, FX_RANGE(fx_one)) / r.row->cpu.sample_weight;
	truth = h.first / (h.first + h.second);
	rig_fini(&r);
	printf("# first half: %.3f of the weight, %.3f of the time\n", got, truth);
	return fabs(got - truth) <= 0.03; /* the time is half and half but for other processes */
}

static void t_lockstep(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_lockstep());
}

static struct halves periodic;
static volatile uint64_t seen[3];

static void on_period(int number)
{
	(void)number;
	seen[periodic.current]++;
}

/* Why the grid is random: the same loop under a timer with a fixed period. Returns the larger half's share. */
static double share_under_fixed_period(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec spec = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	struct sigaction action = { .sa_handler = on_period, .sa_flags = SA_RESTART }, former;
	timer_t timer;
	uint64_t more;

	seen[1] = seen[2] = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, &former), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &spec, NULL), 0);
	run_halves(&periodic, 800000);
	assert_int_equal(timer_delete(timer), 0);
	assert_int_equal(sigaction(SIGUSR1, &former, NULL), 0);
	more = seen[1] > seen[2] ? seen[1] : seen[2];
	return (double)more / (double)(seen[1] + seen[2]);
}

static void t_fixed_period_misreports(void **state)
{
	double share = 0;

	(void)state;
	for (int i = 0; i < RIG_TRIES && share < 0.8; i++)
		share = share_under_fixed_period();
	printf("# a fixed period gives one of two equal halves %.1f %%\n", 100 * share);
	if (share < 0.8) {
		printf("# the machine is too busy to keep the loop in step with a timer: nothing to show\n");
		skip();
	}
}

/* --- totals ------------------------------------------------------------------------------------------------------ */

FX_IN(fx_body) static void spin_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)fx_one(fx_us(*(const uint64_t *)arg));
	__asm__ volatile("" : : : "memory");
}

/*
 * 10 us of running between pauses of 60 to 120 us: nearly every point falls into a pause. On an idle machine only: a
 * process switch between a pause's flag and the clock read beside it costs more than the tolerance, and so many
 * pauses find one.
 */
FX_IN(fx_body) static void mostly_paused_body(struct rig *r, unsigned thread, void *arg)
{
	uint64_t random = fx_tsc() | 1;

	(void)arg;
	for (int i = 0; i < 6000; i++) {
		(void)fx_one(fx_us(10));
		rig_pause(r, thread);
		(void)fx_hog(fx_us(60 + rig_pick(&random, 60)));
		rig_resume(r, thread);
	}
}

FX_IN(fx_body) static void half_paused_body(struct rig *r, unsigned thread, void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++) {
		(void)fx_one(fx_us(300));
		rig_pause(r, thread);
		(void)fx_hog(fx_us(300));
		rig_resume(r, thread);
	}
}

static bool adds_up(rig_fn *body)
{
	uint64_t us = 1000000;
	struct rig r = { .body = body, .arg = &us };
	bool ok;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_int_equal(r.row->cpu.lost, 0);
	assert_int_equal(rig_hits(&r, FX_RANGE(fx_hog)), 0);
	ok = rig_adds_up(&r);
	rig_fini(&r);
	return ok;
}

static bool try_total(void)
{
	return adds_up(spin_body);
}

static bool try_total_mostly_paused(void)
{
	return adds_up(mostly_paused_body);
}

static bool try_total_half_paused(void)
{
	return adds_up(half_paused_body);
}

static void t_total(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_total());
	RIG_ASSERT_IN_TRIES(try_total_mostly_paused());
}

static void t_total_under_load(void **state)
{
	(void)state;
	rig_compete(2);
	RIG_ASSERT_IN_TRIES(try_total());
	RIG_ASSERT_IN_TRIES(try_total_half_paused());
	rig_compete_end();
}

/* The rows that need no analysis. How long the thread waited between the opening and the loop's start is not known. */
static bool figures_are_right(void)
{
	uint64_t us = 200000;
	struct rig r = { .body = spin_body, .arg = &us, .interval_ns = 250000 };
	const struct mew_cpu_case *cpu;
	bool inside;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	cpu = &r.row->cpu;
	assert_int_equal(cpu->sample_count, r.row->nsamples);
	assert_int_equal(cpu->iterations, 1);
	assert_true(fabs(cpu->interval - 0.00025) < 1e-12);
	assert_true(fabs(cpu->wall_time - (double)r.window_ns * 1e-9) < 1e-12);
	assert_true(fabs(cpu->effective_interval * (double)cpu->sample_count - cpu->wall_time) < 1e-9);
	assert_true(cpu->effective_interval >= 0.00024); /* never more often than asked */
	for (size_t i = 1; i < r.row->nsamples; i++)
		assert_true(r.row->samples[i].time_ns > r.row->samples[i - 1].time_ns);
	inside = r.row->samples[r.row->nsamples - 1].time_ns <= r.window_ns + 20000000;
	if (!inside)
		printf("# the last sample is of %.4f s, the window of %.4f s\n",
		       (double)r.row->samples[r.row->nsamples - 1].time_ns * 1e-9, (double)r.window_ns * 1e-9);
	rig_fini(&r);
	return inside;
}

static void t_figures(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(figures_are_right());
}

FX_IN(fx_body) static void empty_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)arg;
}

static void t_nothing_sampled(void **state)
{
	struct rig r = { .body = empty_body, .interval_ns = 1000000000 };

	(void)state;
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_int_equal(r.row->cpu.sample_count, 0);
	assert_non_null(rig_why(&r, MEW_FIG_EFFECTIVE_INTERVAL));
	assert_non_null(strstr(rig_why(&r, MEW_FIG_EFFECTIVE_INTERVAL), "nothing was sampled"));
	assert_null(rig_why(&r, MEW_FIG_WALL_TIME));
	rig_fini(&r);
}

/*
 * A window shorter than the period gets its fair share of samples: half a period holds half a sample. Where others take
 * the processor between the opening and the loop's start, that is not to be judged.
 */
static bool try_first_expiry(void)
{
	uint64_t us = 500, window_ns = 0, weight_ns = 0;

	for (int i = 0; i < 400; i++) {
		struct rig r = { .body = spin_body, .arg = &us, .interval_ns = 1000000 };

		rig_run(&r);
		assert_int_equal(r.status, MEW_OK);
		window_ns += r.window_ns;
		for (size_t s = 0; s < r.row->nsamples; s++)
			weight_ns += r.row->samples[s].weight_ns;
		rig_fini(&r);
	}
	if (fabs((double)weight_ns - (double)window_ns) <= 4 * 0.5 * 1e6 * sqrt(400))
		return true;
	rig_was_judged = rig_was_judged || window_ns < (uint64_t)400 * 700000;
	printf("# 400 windows of half a period or more: %.1f periods of weight, %.1f of time\n",
	       (double)weight_ns / 1e6, (double)window_ns / 1e6);
	return false;
}

static void t_first_expiry(void **state)
{
	(void)state;
	RIG_ASSERT_IF_JUDGED(try_first_expiry(), "windows of 0.5 ms took far longer");
}

/* --- CPU time ---------------------------------------------------------------------------------------------------- */

/* Leaves the CPU seconds outside of the pause in *arg; the loop ends while paused. */
FX_IN(fx_body) static void paused_cpu_body(struct rig *r, unsigned thread, void *arg)
{
	uint64_t from = rig_thread_cpu_ns(), out;

	(void)fx_one(fx_us(20000));
	out = rig_thread_cpu_ns();
	rig_pause(r, thread);
	(void)fx_hog(fx_us(40000));
	out = rig_thread_cpu_ns() - out;
	rig_resume(r, thread);
	(void)fx_one(fx_us(20000));
	*(double *)arg = (double)(rig_thread_cpu_ns() - from - out) * 1e-9;
	rig_pause(r, thread);
	(void)fx_hog(fx_us(10000));
	rig_resume(r, thread);
	rig_pause(r, thread);
	(void)fx_hog(fx_us(10000));
}

static void t_cpu_time(void **state)
{
	uint64_t us = 50000;
	double truth;
	struct rig plain = { .body = spin_body, .arg = &us };
	struct rig refused = { .body = paused_cpu_body, .arg = &truth };
	struct rig asked = { .body = paused_cpu_body, .arg = &truth, .pause_cpu = 1 };

	(void)state;
	rig_run(&plain);
	assert_null(rig_why(&plain, MEW_FIG_CPU_TIME));
	assert_true(plain.row->cpu.cpu_time > 0 && plain.row->cpu.cpu_time <= plain.row->cpu.wall_time * 1.01);
	rig_fini(&plain);

	rig_run(&refused);
	assert_non_null(strstr(rig_why(&refused, MEW_FIG_CPU_TIME), "pause_cpu"));
	rig_fini(&refused);

	rig_run(&asked);
	assert_null(rig_why(&asked, MEW_FIG_CPU_TIME));
	assert_true(fabs(asked.row->cpu.cpu_time - truth) <= 0.02 * truth);
	rig_fini(&asked);
}

/* --- threads ----------------------------------------------------------------------------------------------------- */

/* Thread 0 runs a quarter of the time, thread 1 three quarters; arg has the seconds that each really ran. */
FX_IN(fx_body) static void quarter_body(struct rig *r, unsigned thread, void *arg)
{
	uint64_t run = fx_us(thread == 0 ? 10000 : 30000), rest = fx_us(thread == 0 ? 30000 : 10000), spent = 0;

	for (int i = 0; i < 40; i++) {
		spent += thread == 0 ? fx_one(run) : fx_two(run);
		rig_pause(r, thread);
		(void)fx_hog(rest);
		rig_resume(r, thread);
	}
	((double *)arg)[thread] = (double)spent / (double)fx_us(1000000);
}

static bool try_two_threads(void)
{
	double truth[2] = { 0, 0 };
	struct rig r = { .threads = 2, .body = quarter_body, .arg = truth };
	bool ok = true;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_int_equal(rig_hits(&r, FX_RANGE(fx_hog)), 0);
	for (unsigned i = 0; i < 2; i++) {
		double got = rig_thread(&r, i);

		if (fabs(got - truth[i]) > 0.01 * truth[i] + 0.002) {
			printf("# thread %u: %.4f s of weight, %.4f s of time\n", i, got, truth[i]);
			ok = false;
		}
	}
	ok = rig_adds_up(&r) && ok;
	rig_fini(&r);
	return ok;
}

static void t_two_threads(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_two_threads());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_shares),
		cmocka_unit_test(t_shares_with_pauses),
		cmocka_unit_test(t_lockstep),
		cmocka_unit_test(t_fixed_period_misreports),
		cmocka_unit_test(t_total),
		cmocka_unit_test(t_total_under_load),
		cmocka_unit_test(t_figures),
		cmocka_unit_test(t_nothing_sampled),
		cmocka_unit_test(t_first_expiry),
		cmocka_unit_test(t_cpu_time),
		cmocka_unit_test(t_two_threads),
	};

	(void)fx_us(1); /* measured before any window */
	return cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}
