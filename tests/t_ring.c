/*
 * t_ring.c - order, bounds and counted drops of the per-thread ring; one producer and one consumer at once.
 * Test program. Also run under the thread sanitizer.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "ring.h"

struct record {
	uint64_t number;
	unsigned char rest[21]; /* a size that is no power of two */
};

static struct record record_of(uint64_t number)
{
	struct record r;

	memset(&r, (int)(number & 0xff), sizeof r);
	r.number = number;
	return r;
}

static bool intact(const struct record *r)
{
	for (size_t i = 0; i < sizeof r->rest; i++) {
		if (r->rest[i] != (unsigned char)(r->number & 0xff))
			return false;
	}
	return true;
}

static void keeps_order_over_many_laps(void **unused)
{
	struct mew_ring ring;
	struct record r;
	uint64_t next = 0;

	(void)unused;
	assert_int_equal(mew_ring_init(&ring, sizeof r, 8), 0);
	for (uint64_t i = 0; i < 1000; i++) {
		r = record_of(i);
		assert_true(mew_ring_push(&ring, &r));
		if (i % 3 != 0) /* lag behind, then catch up */
			continue;
		while (mew_ring_pop(&ring, &r)) {
			assert_int_equal(r.number, next++);
			assert_true(intact(&r));
		}
	}
	assert_int_equal(mew_ring_dropped(&ring), 0);
	mew_ring_fini(&ring);
}

static void drops_the_newest_when_full_and_counts_them(void **unused)
{
	struct mew_ring ring;
	struct record r;

	(void)unused;
	assert_int_equal(mew_ring_init(&ring, sizeof r, 4), 0);
	for (uint64_t i = 0; i < 7; i++) {
		r = record_of(i);
		assert_int_equal(mew_ring_push(&ring, &r), i < 4);
	}
	assert_int_equal(mew_ring_dropped(&ring), 3);
	for (uint64_t i = 0; i < 4; i++) {
		assert_true(mew_ring_pop(&ring, &r));
		assert_int_equal(r.number, i);
	}
	assert_false(mew_ring_pop(&ring, &r));
	r = record_of(9);
	assert_true(mew_ring_push(&ring, &r)); /* there is room again */
	assert_int_equal(mew_ring_dropped(&ring), 3);
	mew_ring_fini(&ring);
}

static void rounds_capacity_up(void **unused)
{
	struct mew_ring ring;
	uint64_t r = 0;

	(void)unused;
	assert_int_equal(mew_ring_init(&ring, sizeof r, 5), 0);
	for (size_t i = 0; i < 8; i++)
		assert_true(mew_ring_push(&ring, &r));
	assert_false(mew_ring_push(&ring, &r));
	mew_ring_fini(&ring);
	mew_ring_fini(&ring); /* once more does no harm */
}

static void refuses_sizes_that_do_not_exist(void **unused)
{
	struct mew_ring ring;

	(void)unused;
	assert_int_equal(mew_ring_init(&ring, 0, 8), -1);
	assert_int_equal(mew_ring_init(&ring, 16, SIZE_MAX), -1);
	assert_int_equal(mew_ring_init(&ring, SIZE_MAX / 8 + 3, 8), -1); /* 16 bytes, were it not checked */
	mew_ring_fini(&ring);
}

enum { PUSHES = 200000 };

static void *produce(void *arg)
{
	struct mew_ring *ring = arg;

	for (uint64_t i = 0; i < PUSHES; i++) {
		struct record r = record_of(i);

		(void)mew_ring_push(ring, &r);
	}
	return NULL;
}

static void two_threads_lose_nothing_but_what_is_counted(void **unused)
{
	struct mew_ring ring;
	struct record r;
	pthread_t producer;
	uint64_t popped = 0, last = 0;

	(void)unused;
	assert_int_equal(mew_ring_init(&ring, sizeof r, 64), 0);
	assert_int_equal(pthread_create(&producer, NULL, produce, &ring), 0);
	while (popped + mew_ring_dropped(&ring) < PUSHES) {
		if (!mew_ring_pop(&ring, &r))
			continue;
		assert_true(intact(&r));
		assert_true(popped == 0 || r.number > last);
		last = r.number;
		popped++;
	}
	assert_int_equal(pthread_join(producer, NULL), 0);
	assert_false(mew_ring_pop(&ring, &r));
	assert_int_equal(popped + mew_ring_dropped(&ring), PUSHES);
	mew_ring_fini(&ring);
}

static struct mew_ring signal_ring;
static volatile uint64_t signals;

static void on_alarm(int number)
{
	struct record r = record_of(signals);

	(void)number;
	if (mew_ring_push(&signal_ring, &r))
		signals = signals + 1;
}

static void a_signal_handler_feeds_its_own_thread(void **unused)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	struct record r;
	uint64_t popped = 0;

	(void)unused;
	assert_int_equal(mew_ring_init(&signal_ring, sizeof r, 1024), 0);
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	while (popped < 300) {
		if (!mew_ring_pop(&signal_ring, &r))
			continue;
		assert_int_equal(r.number, popped++);
		assert_true(intact(&r));
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	action.sa_handler = SIG_IGN;
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	mew_ring_fini(&signal_ring);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_order_over_many_laps),
		cmocka_unit_test(drops_the_newest_when_full_and_counts_them),
		cmocka_unit_test(rounds_capacity_up),
		cmocka_unit_test(refuses_sizes_that_do_not_exist),
		cmocka_unit_test(two_threads_lose_nothing_but_what_is_counted),
		cmocka_unit_test(a_signal_handler_feeds_its_own_thread),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
