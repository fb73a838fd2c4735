/*
 * t_cpu_counters.c - counters over a window: whose counts they are, what is scaled and what is said of it. Processors
 * of virtual machines often count nothing, so software events stand in, and readings made by hand.
 * Test program.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "cpu_counters.h"
#include "fx_cpu_rig.h"
#include "sink.h"

/* Software events count everywhere: page faults are known exactly; the second does not exist. */
static const struct mew_cpu_event countable[MEW_CPU_COUNTERS] = {
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, MEW_FIG_CYCLES },
	{ PERF_TYPE_HARDWARE, 9999, MEW_FIG_INSTRUCTIONS },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, MEW_FIG_CACHE_MISSES },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, MEW_FIG_BRANCH_MISSES },
};

struct counted { /* a row, and threads that count */
	struct mew_model *m;
	struct mew_case *row;
	struct mew_sink sink;
	struct mew_cpu_counters each[2];
	const struct mew_cpu_counters *all[2];
};

static void counted_init(struct counted *c)
{
	memset(c, 0, sizeof *c);
	c->m = mew_model_new();
	c->row = mew_model_case(c->m, "case", NULL);
	(void)mew_model_row(c->m, c->row, MEW_KIND_CPU);
	c->sink = (struct mew_sink){ .model = c->m, .row = c->row, .kind = MEW_KIND_CPU };
	c->all[0] = &c->each[0];
	c->all[1] = &c->each[1];
}

static const char *why_absent(const struct counted *c, int figure)
{
	return mew_row_why((const void *)&c->row->cpu, figure);
}

static bool notes(const struct counted *c, const char *text)
{
	return c->row->cpu.reason != NULL && strstr(c->row->cpu.reason, text) != NULL;
}

static void touch_pages(size_t n)
{
	char *memory = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	(void)madvise(memory, n * 4096, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n; i++)
		((volatile char *)memory)[i * 4096] = 1;
	(void)munmap(memory, n * 4096);
}

/* In the window: 200 pages, 5 naps, 5 ms of work, and what the thread's own clock says of it. Around it more of all. */
static double count_known_work(struct mew_cpu_counters *c)
{
	const struct timespec nap = { 0, 100000 };
	uint64_t from;

	touch_pages(50);
	(void)fx_one(fx_us(2000));
	mew_cpu_counters_begin(c);
	from = rig_thread_cpu_ns();
	touch_pages(200);
	for (int i = 0; i < 5; i++)
		(void)nanosleep(&nap, NULL);
	(void)fx_one(fx_us(5000));
	from = rig_thread_cpu_ns() - from;
	mew_cpu_counters_end(c);
	touch_pages(50);
	return (double)from;
}

static void counted_fini(struct counted *c)
{
	for (int i = 0; i < 2; i++)
		mew_cpu_counters_close(&c->each[i]);
	mew_model_free(c->m);
}

/* A skip never returns: what it would leave behind is a leak to the address sanitizer, and a failure. */
static void need_event(struct counted *c, int which)
{
	int failed = c->each[0].failed[which];

	if (c->each[0].fds[which] >= 0)
		return;
	counted_fini(c);
	printf("# perf_event_open does not work here: %s\n", strerror(failed));
	skip();
}

/* Each figure has its own event's count, though the second of the group is missing. Two clocks may differ. */
static bool counts_are_those_of_the_window(void)
{
	struct counted c;
	double cpu_ns;
	bool agrees;

	counted_init(&c);
	mew_cpu_counters_open(&c.each[0], countable);
	need_event(&c, 0);
	assert_true(c.each[0].fds[1] < 0);
	cpu_ns = count_known_work(&c.each[0]);
	mew_cpu_counters_put(c.all, 1, false, &c.sink);
	assert_true(c.row->cpu.cycles >= 200 && c.row->cpu.cycles < 240);
	assert_non_null(why_absent(&c, MEW_FIG_INSTRUCTIONS));
	assert_true(c.row->cpu.branch_misses >= 5);
	assert_false(notes(&c, "scaled"));
	agrees = fabs(c.row->cpu.cache_misses - cpu_ns) <= 0.05 * cpu_ns;
	printf("# %.0f ns of the task clock, %.0f of the thread's clock\n", c.row->cpu.cache_misses, cpu_ns);
	mew_cpu_counters_put(c.all, 1, true, &c.sink);
	assert_non_null(strstr(why_absent(&c, MEW_FIG_CYCLES), "pauses"));
	counted_fini(&c);
	return agrees;
}

static void t_counters(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(counts_are_those_of_the_window());
}

/* The same errno tells of an event that is none, and of a group that is too large. */
static void t_reasons_go_by_the_group(void **state)
{
	static const struct mew_cpu_event events[MEW_CPU_COUNTERS] = {
		{ PERF_TYPE_BREAKPOINT, 0, MEW_FIG_CYCLES }, /* of nothing: EINVAL everywhere */
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, MEW_FIG_INSTRUCTIONS },
		{ PERF_TYPE_BREAKPOINT, 0, MEW_FIG_CACHE_MISSES },
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, MEW_FIG_BRANCH_MISSES },
	};
	struct counted c;

	(void)state;
	counted_init(&c);
	mew_cpu_counters_open(&c.each[0], events);
	need_event(&c, 1);
	(void)count_known_work(&c.each[0]);
	mew_cpu_counters_put(c.all, 1, false, &c.sink);
	assert_non_null(strstr(why_absent(&c, MEW_FIG_CYCLES), "no such counter"));
	assert_non_null(strstr(why_absent(&c, MEW_FIG_CACHE_MISSES), "too few counters to count all four at once"));
	counted_fini(&c);
}

/* The threads of a case together; one that could not count leaves no sum of the others. */
static void t_counters_of_threads(void **state)
{
	struct counted c;

	(void)state;
	counted_init(&c);
	for (int i = 0; i < 2; i++)
		mew_cpu_counters_open(&c.each[i], countable);
	need_event(&c, 0);
	for (int i = 0; i < 2; i++)
		(void)count_known_work(&c.each[i]);
	mew_cpu_counters_put(c.all, 2, false, &c.sink);
	assert_true(c.row->cpu.cycles >= 400 && c.row->cpu.cycles < 480);
	assert_true(c.row->cpu.branch_misses >= 10);
	c.each[1].is_read = false;
	mew_cpu_counters_put(c.all, 2, false, &c.sink);
	assert_non_null(strstr(why_absent(&c, MEW_FIG_CYCLES), "in use by others"));
	counted_fini(&c);
}

/* Of a group of cycles, instructions and branch misses that could count for a quarter of 20 ms. */
static const struct mew_cpu_reading opened = { 3, 10000000, 4000000, { 1000, 5000, 70 } };
static const struct mew_cpu_reading closed = { 3, 30000000, 9000000, { 9001000, 18005000, 820 } };

static void t_shared_counters_are_scaled(void **state)
{
	struct mew_cpu_reading to = closed;
	double counts[MEW_CPU_COUNTERS], share;

	(void)state;
	assert_true(mew_cpu_counters_between(&opened, &closed, counts, &share));
	assert_true(share == 0.25);
	assert_true(counts[0] == 36000000 && counts[1] == 72000000 && counts[2] == 3000);
	to.running_ns = 24000000; /* all the time: what was counted, unchanged */
	assert_true(mew_cpu_counters_between(&opened, &to, counts, &share));
	assert_true(share == 1);
	assert_true(counts[0] == 9000000 && counts[1] == 18000000 && counts[2] == 750);
	to.running_ns = opened.running_ns; /* never */
	assert_false(mew_cpu_counters_between(&opened, &to, counts, &share));
	to = closed;
	to.n = 2; /* another group */
	assert_false(mew_cpu_counters_between(&opened, &to, counts, &share));
	to.n = MEW_CPU_COUNTERS + 1;
	assert_false(mew_cpu_counters_between(&to, &to, counts, &share));
}

/* The row says that its figures are estimates, and from how much. */
static void t_scaled_counters_are_noted(void **state)
{
	struct counted c;

	(void)state;
	counted_init(&c);
	for (int i = 0; i < 2; i++) {
		struct mew_cpu_counters *one = &c.each[i];

		*one = (struct mew_cpu_counters){ .events = mew_cpu_hardware, .fds = { 0, 0, -1, 0 },
						  .failed = { [2] = ENOENT }, .is_read = true, .share = 1 };
		assert_true(mew_cpu_counters_between(&opened, &closed, one->counts,
						     i == 0 ? &one->share : &(double){ 0 }));
	}
	mew_cpu_counters_put(c.all, 2, false, &c.sink);
	assert_true(c.row->cpu.cycles == 72000000 && c.row->cpu.instructions == 144000000);
	assert_non_null(strstr(why_absent(&c, MEW_FIG_CACHE_MISSES), "no such counter"));
	assert_true(c.row->cpu.branch_misses == 6000);
	assert_true(notes(&c, "for 25 % of the time and scaled"));
	c.each[1].share = 0.004;
	mew_cpu_counters_put(c.all, 2, false, &c.sink);
	assert_true(notes(&c, "for less than 1 % of the time and scaled"));
	mew_model_free(c.m);
}

/* Each is there, or says why not. */
static void t_hardware_counters(void **state)
{
	struct rig r = { .body = rig_short_body };
	const char *why;

	(void)state;
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	why = rig_why(&r, MEW_FIG_INSTRUCTIONS);
	if (why == NULL)
		assert_true(r.row->cpu.instructions > 1e6);
	else
		printf("# no count of instructions: %s\n", why);
	for (int i = MEW_FIG_CYCLES; i <= MEW_FIG_BRANCH_MISSES; i++)
		assert_true((r.row->cpu.present >> i & 1) != 0 || rig_why(&r, (enum mew_cpu_figure)i)[0] != '\0');
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_counters),
		cmocka_unit_test(t_reasons_go_by_the_group),
		cmocka_unit_test(t_counters_of_threads),
		cmocka_unit_test(t_shared_counters_are_scaled),
		cmocka_unit_test(t_scaled_counters_are_noted),
		cmocka_unit_test(t_hardware_counters),
	};

	(void)fx_us(1); /* measured before any window */
	return cmocka_run_group_tests_name("cpu_counters", tests, NULL, NULL);
}
