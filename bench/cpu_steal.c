/*
 * cpu_steal.c - what one sample steals from the program, what a walk takes of it, and whether the samples add up to the
 * time.
 * Gaps seen by a loop that reads the time-stamp counter, under a timer with an empty handler and under the CPU backend,
 * 24 frames deep. Run: cpu_steal [interval in us]. Prints ratios; absolute times depend on the machine.
 */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "cpu_timer.h"
#include "model.h"
#include "modules.h"
#include "mew/backend.h"
#include "os.h"
#include "sink.h"
#include "stackset.h"
#include "unwind.h"
#include "unwind_recent.h"

#define GAPS ((size_t)1 << 18)
#define GAP_TICKS 800u    /* one turn of the loop takes 30 to 60 */
#define LONGEST_NS 200000 /* longer gaps are process switches */
#define RUN_NS 500000000u
#define DEPTH 24
#define COMPETITORS 4
#define ROUNDS 5
#define WALKS 16 /* between two looks at the counter, whose steps are coarse */

extern const struct mew_backend mew_backend_cpu;

static uint64_t gaps[GAPS];
static size_t ngaps;
static double ticks_per_ns;

static inline uint64_t ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void calibrate(void)
{
	uint64_t start = mew_os_now_ns(), from = ticks(), now;

	do
		now = mew_os_now_ns();
	while (now - start < 100000000);
	ticks_per_ns = (double)(ticks() - from) / (double)(now - start);
}

/* Median of the gaps in nanoseconds; 0 when there was none. */
static double median_gap(void)
{
	qsort(gaps, ngaps, sizeof gaps[0], compare);
	return ngaps == 0 ? 0 : (double)gaps[ngaps / 2] / ticks_per_ns;
}

/* Keeps the gaps in which *signals moved on. */
static MEW_NOINLINE uint64_t watch(uint64_t for_ns, const volatile uint64_t *signals)
{
	uint64_t from = ticks(), last = from, now, length = (uint64_t)((double)for_ns * ticks_per_ns);
	uint64_t longest = (uint64_t)(LONGEST_NS * ticks_per_ns), seen = *signals;

	do {
		now = ticks();
		if (now - last > GAP_TICKS) {
			if (*signals != seen && now - last < longest && ngaps < GAPS)
				gaps[ngaps++] = now - last;
			seen = *signals;
			now = ticks();
		}
		last = now;
	} while (now - from < length);
	return now - from;
}

/* The asm after the call keeps the frame. */
static MEW_NOINLINE uint64_t watch_below(int depth, uint64_t for_ns, const volatile uint64_t *signals)
{
	uint64_t spent = depth <= 1 ? watch(for_ns, signals) : watch_below(depth - 1, for_ns, signals);

	__asm__ volatile("" : "+r"(spent));
	return spent;
}

static void check(int status, const struct mew_error *err)
{
	if (status == MEW_OK)
		return;
	fprintf(stderr, "cpu_steal: %s\n", err->text);
	exit(1);
}

static void check_timer(int failed)
{
	if (!failed)
		return;
	perror("cpu_steal: timer");
	exit(1);
}

/* --- stolen by one sample ---------------------------------------------------------------------------------------- */

static volatile uint64_t empty_signals;

static void do_nothing(int number)
{
	(void)number;
	empty_signals++;
}

static double measure_empty(uint64_t interval_ns)
{
	struct itimerspec spec = { { 0, (long)interval_ns }, { 0, (long)interval_ns } };
	struct sigaction action = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	timer_t timer;

	check_timer(sigaction(SIGUSR1, &action, NULL) != 0);
	check_timer(timer_create(CLOCK_MONOTONIC, &event, &timer) != 0);
	check_timer(timer_settime(timer, 0, &spec, NULL) != 0);
	ngaps = 0;
	(void)watch_below(DEPTH, RUN_NS, &empty_signals);
	(void)timer_delete(timer);
	return median_gap();
}

struct sampled {
	struct mew_cpu_window window;
	struct mew_cpu_thread *thread;
};

static void open_sampled(struct sampled *s, uint64_t interval_ns)
{
	struct mew_error err;

	s->window = (struct mew_cpu_window){ .period_ns = interval_ns, .stacks = mew_stackset_new(1024, 65536) };
	check(mew_cpu_signal_take(&err), &err);
	check(mew_cpu_thread_new(&s->thread, &s->window, &err), &err);
	s->window.opened_ns = mew_os_now_ns();
	check_timer(mew_cpu_thread_arm(s->thread, s->window.opened_ns) != 0);
}

static void close_sampled(struct sampled *s)
{
	mew_cpu_thread_disarm(s->thread);
	mew_cpu_thread_detach(s->thread);
	mew_cpu_thread_free(s->thread);
	mew_stackset_free(s->window.stacks);
}

static double measure_ours(uint64_t interval_ns)
{
	struct sampled s;

	open_sampled(&s, interval_ns);
	ngaps = 0;
	(void)watch_below(DEPTH, RUN_NS, &s.thread->ring.head);
	close_sampled(&s);
	return median_gap();
}

/* --- totals ------------------------------------------------------------------------------------------------------ */

struct outcome {
	double weight_s, wall_s, due;
	uint64_t samples, truncated, deepest;
};

static void read_row(struct outcome *o, const struct mew_model *m, uint64_t interval_ns)
{
	const struct mew_cpu_case *row = &m->cases[0].cpu;

	o->weight_s = row->sample_weight;
	o->wall_s = row->wall_time;
	o->samples = row->sample_count;
	o->truncated = row->truncated;
	o->due = o->wall_s * 1e9 / (double)interval_ns;
	for (size_t i = 0; i < m->nstacks; i++)
		if (m->stacks[i].depth > o->deepest)
			o->deepest = m->stacks[i].depth;
}

static struct outcome measure_backend(uint64_t interval_ns)
{
	struct mew_capture_config config = { .pass = MEW_PASS_CPU, .threads = 1, .interval_ns = interval_ns };
	struct mew_model *model = mew_model_new();
	struct mew_case *row = mew_model_case(model, "steal", NULL);
	struct mew_sink sink = { .model = model, .row = row, .kind = MEW_KIND_CPU, .iterations = 1 };
	struct outcome o = { 0 };
	struct mew_capture *c;
	struct mew_error err;
	uint64_t start;

	(void)mew_model_row(model, row, MEW_KIND_CPU);
	check(mew_backend_cpu.open(&c, &config, &err), &err);
	check(mew_backend_cpu.thread_begin(c, 0, &err), &err);
	check(mew_backend_cpu.begin(c, &err), &err);
	start = mew_os_now_ns();
	(void)watch_below(DEPTH, RUN_NS, &empty_signals);
	sink.window_ns = mew_os_now_ns() - start;
	mew_backend_cpu.end(c);
	mew_backend_cpu.thread_end(c, 0);
	check(mew_backend_cpu.drain(c, &sink, &err), &err);
	mew_backend_cpu.close(c);
	read_row(&o, model, interval_ns);
	mew_model_free(model);
	return o;
}

/* --- the handler's body ------------------------------------------------------------------------------------------ */

/* Median time of a tick called as a function, DEPTH calls deep; its timer is set far ahead. */
static MEW_NOINLINE double measure_tick(struct mew_cpu_thread *t, int depth)
{
	ucontext_t context;
	double median;

	if (depth > 1) {
		median = measure_tick(t, depth - 1);
		__asm__ volatile("" : "+x"(median));
		return median;
	}
	(void)getcontext(&context);
	for (ngaps = 0; ngaps < 20000; ngaps++) {
		uint64_t from = ticks();

		mew_cpu_thread_tick(t, &context);
		gaps[ngaps] = ticks() - from;
	}
	return median_gap();
}

/* Median time of setting a timer far ahead: the system call in every tick. */
static double measure_set(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	struct itimerspec spec = { .it_value = { .tv_sec = 100 } };
	timer_t timer;

	check_timer(timer_create(CLOCK_MONOTONIC, &event, &timer) != 0);
	for (ngaps = 0; ngaps < 20000; ngaps++) {
		uint64_t from = ticks();

		(void)timer_settime(timer, 0, &spec, NULL);
		gaps[ngaps] = ticks() - from;
	}
	(void)timer_delete(timer);
	return median_gap();
}

static double measure_body(void)
{
	struct sampled s;
	double median;

	open_sampled(&s, (uint64_t)100 * 1000000000);
	median = measure_tick(s.thread, DEPTH);
	close_sampled(&s);
	return median;
}

/* --- the walk ---------------------------------------------------------------------------------------------------- */

/* Median time of a walk, for each of its frames; DEPTH calls deep. */
static MEW_NOINLINE double measure_walk(struct mew_unwind_thread *t, int depth)
{
	uintptr_t pcs[MEW_CPU_FRAMES_MAX];
	struct mew_unwind_regs regs;
	enum mew_unwind_stop stop;
	size_t n = 1;

	if (depth > 1) {
		double median = measure_walk(t, depth - 1);

		__asm__ volatile("" : "+x"(median));
		return median;
	}
	mew_unwind_here(&regs);
	for (ngaps = 0; ngaps < 2000; ngaps++) {
		uint64_t from = ticks();

		for (int i = 0; i < WALKS; i++)
			n = mew_unwind_walk(t, &regs, 0, 0, pcs, MEW_COUNTOF(pcs), &stop);
		gaps[ngaps] = ticks() - from;
	}
	return median_gap() / WALKS / (double)n;
}

static void print_walk(void)
{
	static struct mew_unwind_thread walker;
	static struct mew_unwind_recent recent;
	double by_table, taken_over;

	check_timer(mew_unwind_thread_init(&walker) != 0 || mew_modules_renew() != 0);
	by_table = measure_walk(&walker, DEPTH);
	walker.recent = &recent;
	taken_over = measure_walk(&walker, DEPTH);
	printf("a walk, warm         p50 %.1f ns a frame by the table, %.1f taken over from the last one\n", by_table,
	       taken_over);
}

/* --- competitors ------------------------------------------------------------------------------------------------- */

static pid_t competitors[COMPETITORS];

static void compete(void)
{
	for (int i = 0; i < COMPETITORS; i++) {
		competitors[i] = fork();
		if (competitors[i] != 0)
			continue;
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			__asm__ volatile("");
	}
}

static void stop_competing(void)
{
	for (int i = 0; i < COMPETITORS; i++) {
		(void)kill(competitors[i], SIGKILL);
		(void)waitpid(competitors[i], NULL, 0);
	}
}

static void print_outcome(const char *when, const struct outcome *o)
{
	printf("%-20s weights/wall %.4f, samples/due %.4f, %llu samples, %llu truncated, deepest stack %llu\n", when,
	       o->weight_s / o->wall_s, (double)o->samples / o->due, (unsigned long long)o->samples,
	       (unsigned long long)o->truncated, (unsigned long long)o->deepest);
}

int main(int argc, char **argv)
{
	uint64_t interval_ns = (argc > 1 ? strtoull(argv[1], NULL, 10) : 100) * 1000;
	struct outcome idle, busy;
	double empty = INFINITY, ours = INFINITY;

	if (interval_ns == 0 || interval_ns >= 1000000000) {
		fprintf(stderr, "cpu_steal: the interval must be 1 to 999999 us\n");
		return 2;
	}
	calibrate();
	for (int round = 0; round < ROUNDS; round++) { /* in turn; the quietest round of each counts */
		empty = fmin(empty, measure_empty(interval_ns));
		ours = fmin(ours, measure_ours(interval_ns));
	}
	idle = measure_backend(interval_ns);
	printf("stolen per sample    p50 empty handler %.0f ns, mew %.0f ns: ratio %.3f (every %llu us, %d frames)\n",
	       empty, ours, ours / empty, (unsigned long long)(interval_ns / 1000), DEPTH);
	printf("a tick's body        p50 %.0f ns, of which one timer_settime %.0f ns\n", measure_body(), measure_set());
	print_walk();
	print_outcome("idle", &idle);
	compete();
	busy = measure_backend(interval_ns);
	stop_competing();
	print_outcome("four competitors", &busy);
	return 0;
}
