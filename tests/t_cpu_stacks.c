/*
 * t_cpu_stacks.c - who is charged: the caller of a library, the one who waits, a thread at the end of its stack.
 * Test program of the CPU backend and the unwinder together.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "fx_cpu_rig.h"
#include "os.h"
#include "unwinder.h"

FX_BOUNDS(fx_sleep);

FX_IN(fx_sleep) static uint64_t sleep_ms(long ms)
{
	struct timespec left = { 0, ms * 1000000 };
	uint64_t from = rig_now_ns();

	while (nanosleep(&left, &left) != 0)
		assert_int_equal(errno, EINTR);
	return rig_now_ns() - from;
}

FX_IN(fx_body) static void sleepy_body(struct rig *r, unsigned thread, void *arg)
{
	double *truth = arg;

	(void)r;
	(void)thread;
	for (int i = 0; i < 10; i++) {
		(void)fx_one(fx_us(35000));
		*truth += (double)sleep_ms(15) * 1e-9;
	}
}

/* Wall time: what waits is charged to the one who waits. */
static bool try_sleep(void)
{
	double truth = 0, got;
	struct rig r = { .body = sleepy_body, .arg = &truth };

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	got = rig_total(&r, FX_RANGE(fx_sleep));
	rig_fini(&r);
	if (fabs(got - truth) <= 0.03 * truth)
		return true;
	printf("# asleep %.4f s, weight there %.4f s\n", truth, got);
	return false;
}

static void t_sleep(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_sleep());
}

FX_IN(fx_body) static void sort_body(struct rig *r, unsigned thread, void *arg)
{
	static int numbers[1000];

	(void)r;
	(void)thread;
	(void)arg;
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < 1000; i++)
			numbers[i] = (int)(i * 7919 % 1000);
		fx_sort(numbers, 1000, fx_us(1));
	}
}

/* libc has no frame pointers: the comparison is called through it and must still lead to the sorter and the body. */
static void t_stack_through_libc(void **state)
{
	struct rig r = { .body = sort_body };
	size_t compares = 0, whole = 0;

	(void)state;
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	for (size_t i = 0; i < r.row->nsamples; i++) {
		const struct mew_cpu_sample *s = &r.row->samples[i];

		if (!rig_frame_in(&r, s, 0, FX_RANGE(fx_compare)))
			continue;
		compares++;
		whole += rig_passes(&r, s, FX_RANGE(fx_sort)) && rig_frame_in(&r, s, -1, FX_RANGE(fx_body));
	}
	assert_true(compares > 100);
	assert_int_equal(whole, compares);
	assert_true(r.row->cpu.truncated * 1000 <= r.row->nsamples);
	rig_fini(&r);
}

FX_IN(fx_body) static void deep_body(struct rig *r, unsigned thread, void *arg)
{
	uintptr_t lo, hi;

	(void)r;
	(void)thread;
	(void)arg;
	assert_int_equal(mew_os_stack_bounds(&lo, &hi), 0);
	(void)fx_deep(lo, 12288, fx_us(30000));
	__asm__ volatile("" : : : "memory");
}

static void *run_deep(void *arg)
{
	return rig_run_until_it_adds_up(arg) ? arg : NULL;
}

/* Close to the end of its stack a thread is not walked; the leaf is known, and the row says that the stack was cut. */
static void t_end_of_stack(void **state)
{
	struct rig r = { .body = deep_body };
	pthread_attr_t attr;
	pthread_t thread;
	void *added_up;

	(void)state;
	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstacksize(&attr, 131072), 0);
	assert_int_equal(pthread_create(&thread, &attr, run_deep, &r), 0);
	assert_int_equal(pthread_join(thread, &added_up), 0);
	assert_int_equal(pthread_attr_destroy(&attr), 0);
	assert_non_null(added_up);
	assert_true(rig_hits(&r, FX_RANGE(fx_one)) > 20);
	assert_true(r.row->cpu.truncated >= rig_hits(&r, FX_RANGE(fx_one)));
	for (size_t i = 0; i < r.row->nsamples; i++)
		if (rig_frame_in(&r, &r.row->samples[i], 0, FX_RANGE(fx_one)))
			assert_true(rig_frame_in(&r, &r.row->samples[i], -1, FX_RANGE(fx_one)));
	rig_fini(&r);
}

static char fiber_stack[131072] __attribute__((aligned(16)));
static ucontext_t outside, on_fiber;

FX_IN(fx_body) static void fiber(void)
{
	(void)fx_one(fx_us(30000));
	__asm__ volatile("" : : : "memory");
}

static void fiber_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)arg;
	assert_int_equal(getcontext(&on_fiber), 0);
	on_fiber.uc_stack.ss_sp = fiber_stack;
	on_fiber.uc_stack.ss_size = sizeof fiber_stack;
	on_fiber.uc_link = &outside;
	makecontext(&on_fiber, fiber, 0);
	assert_int_equal(swapcontext(&outside, &on_fiber), 0);
}

static void run_fiber(size_t *samples, size_t *with_caller, size_t *truncated)
{
	struct rig r = { .body = fiber_body };

	*with_caller = 0;
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	*samples = rig_hits(&r, FX_RANGE(fx_one));
	for (size_t i = 0; i < r.row->nsamples; i++)
		*with_caller += rig_frame_in(&r, &r.row->samples[i], 0, FX_RANGE(fx_one)) &&
				rig_passes(&r, &r.row->samples[i], FX_RANGE(fx_body));
	*truncated = r.row->cpu.truncated;
	rig_fini(&r);
}

static void t_fibers(void **state)
{
	size_t samples, with_caller, truncated;

	(void)state;
	run_fiber(&samples, &with_caller, &truncated);
	assert_true(samples > 20);
	assert_int_equal(with_caller, 0);
	assert_true(truncated >= samples);

	assert_int_equal(mew_stack_register(fiber_stack, fiber_stack + sizeof fiber_stack), MEW_OK);
	run_fiber(&samples, &with_caller, &truncated);
	assert_int_equal(mew_stack_unregister(fiber_stack), MEW_OK);
	assert_true(samples > 20);
	assert_int_equal(with_caller, samples);
	assert_true(truncated < samples / 10);
}

/* The row says whose stacks these are. */
static void t_another_unwinder_is_named(void **state)
{
	struct rig r = { .body = sort_body };
	struct mew_error err;

	(void)state;
	assert_int_equal(mew_unwinder_use("fp", &err), MEW_OK);
	rig_run(&r);
	assert_int_equal(mew_unwinder_use("table", &err), MEW_OK);
	assert_int_equal(r.status, MEW_OK);
	assert_non_null(r.row->cpu.reason);
	assert_non_null(strstr(r.row->cpu.reason, "MEW_UNWINDER=fp"));
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_sleep),
		cmocka_unit_test(t_stack_through_libc),
		cmocka_unit_test(t_end_of_stack),
		cmocka_unit_test(t_fibers),
		cmocka_unit_test(t_another_unwinder_is_named),
	};

	(void)fx_us(1); /* measured before any window */
	return cmocka_run_group_tests_name("cpu_stacks", tests, NULL, NULL);
}
