/*
 * t_memory_mapped.c - what the program maps itself, through the real hooks: every rule of the series.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fx_map.h"

/* --- nothing ------------------------------------------------------------------------------------------------------ */

static void unmap_older(struct alloc_rig *rig, unsigned thread)
{
	(void)thread;
	(void)unmap(rig->data, 4);
}

static void test_zero(void **state)
{
	(void)state;
	expect_peak(map_nothing, NULL, false, 0);
	expect_peak(map_nothing, NULL, true, 0);
	expect_peak(unmap_older, map(4), false, 0);
}

/* --- map and unmap ------------------------------------------------------------------------------------------------ */

static void test_whole_pages_alive_at_once(void **state)
{
	(void)state;
	expect_peak(map_and_unmap, NULL, false, 7);
	expect_peak(map_and_unmap, NULL, true, 7);
}

static void unmap_parts(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(20);

	(void)rig;
	(void)thread;
	(void)unmap(p + 4 * PAGE, 3);
	(void)unmap(p + 5 * PAGE, 3); /* two of these are gone */
	(void)unmap(p, 1);
	(void)unmap(p + 19 * PAGE, 1);
	probe();
}

static void unmap_over_everything(struct alloc_rig *rig, unsigned thread)
{
	char *around = rig->data;

	(void)thread;
	for (size_t i = 0; i < 40; i += 2)
		(void)map_at(around + i * PAGE, 1, MAP_FIXED);
	(void)unmap(around + PAGE, 30);
	probe();
	(void)unmap(around, 40);
}

static void test_parts_leave(void **state)
{
	(void)state;
	expect_left(unmap_parts, NULL, 14);
	expect_left(unmap_over_everything, map(40), 5);
}

static void replace(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(10);

	(void)rig;
	(void)thread;
	(void)map_at(p + 2 * PAGE, 3, MAP_FIXED); /* within */
	(void)map_at(p + 8 * PAGE, 2, MAP_FIXED_NOREPLACE); /* refused */
	(void)unmap(p + 9 * PAGE, 1);
	(void)map_at(p + 7 * PAGE, 3, MAP_FIXED); /* two of three are there */
	probe();
	(void)unmap(p, 10);
}

static void test_fixed_mappings_replace(void **state)
{
	(void)state;
	expect_left(replace, NULL, 10);
}

static void provoke_failures(struct alloc_rig *rig, unsigned thread)
{
	bool *right = rig->data;
	char *p = map(2);

	(void)thread;
	errno = 0;
	*right = mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL;
	*right &= mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF;
	*right &= munmap(p + 1, PAGE) == -1 && errno == EINVAL;
	*right &= munmap(p, 0) == -1 && errno == EINVAL;
	*right &= mremap(p, PAGE, 0, 0) == MAP_FAILED && errno == EINVAL;
	errno = 77;
	*right &= unmap(p + PAGE, 1) == 0 && errno == 77;
	probe();
	*right &= errno == 77;
	(void)unmap(p, 1);
}

static void test_failures_are_passed_on_and_change_nothing(void **state)
{
	bool right = false;

	(void)state;
	expect_left(provoke_failures, &right, 1);
	assert_true(right);
}

/* --- remap -------------------------------------------------------------------------------------------------------- */

static void shrink(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(10);

	(void)rig;
	(void)thread;
	p = remap(p, 10, 4, 0, NULL);
	probe();
	(void)unmap(p, 4);
}

static void grow(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(5), *wall = p + 4 * PAGE; /* nothing to grow into: it moves */

	(void)rig;
	(void)thread;
	p = remap(p, 4, 30, MREMAP_MAYMOVE, NULL);
	p = remap(p, 30, 25, MREMAP_MAYMOVE, NULL);
	p = remap(p, 25, 28, MREMAP_MAYMOVE, NULL); /* in place */
	probe();
	(void)unmap(p, 28);
	(void)unmap(wall, 1);
}

static void test_shrinking_and_growing(void **state)
{
	(void)state;
	expect_left(shrink, NULL, 4);
	expect_left(grow, NULL, 29);
}

/* A peak is of one moment: never old and new size at once. */
static void grow_alone(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(1);

	(void)rig;
	(void)thread;
	for (size_t pages = 1; pages < 1024; pages *= 2)
		p = remap(p, pages, 2 * pages, MREMAP_MAYMOVE, NULL);
	(void)unmap(p, 1024);
}

static void test_growth_is_one_step(void **state)
{
	(void)state;
	expect_peak(grow_alone, NULL, false, 1024);
}

static void move_over(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(8), *target = map(20);

	(void)rig;
	(void)thread;
	(void)remap(p, 8, 6, MREMAP_MAYMOVE | MREMAP_FIXED, target + 2 * PAGE);
	probe(); /* 8 are gone, and 6 of the 20 are now those */
	(void)unmap(target, 20);
}

static void leave_behind(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(8), *copy = remap(p, 8, 8, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

	(void)thread;
	*(bool *)rig->data = copy != MAP_FAILED;
	probe();
	(void)unmap(p, 8);
	if (copy != MAP_FAILED)
		(void)unmap(copy, 8);
}

static void map_twice(struct alloc_rig *rig, unsigned thread)
{
	char *p = mmap(NULL, 8 * PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *again = remap(p, 0, 6, MREMAP_MAYMOVE, NULL);

	(void)rig;
	(void)thread;
	probe();
	(void)unmap(p, 8);
	(void)unmap(again, 6);
}

static void test_moves(void **state)
{
	bool known = false;

	(void)state;
	expect_left(move_over, NULL, 20);
	expect_left(map_twice, NULL, 14);
	expect_peak(leave_behind, &known, false, PROBE + 16);
	assert_true(known);
}

static void grow_into_a_wall(struct alloc_rig *rig, unsigned thread)
{
	char *p = rig->data;

	(void)thread;
	(void)map_at(p, 4, MAP_FIXED);
	if (remap(p, 4, 6, 0, NULL) != MAP_FAILED) /* the rest of the older mapping is in the way */
		abort();
	probe();
	(void)unmap(p, 10);
}

static void test_a_failed_remap_keeps_what_was(void **state)
{
	(void)state;
	expect_left(grow_into_a_wall, map(10), 4);
}

static void remap_older(struct alloc_rig *rig, unsigned thread)
{
	char **older = rig->data;

	(void)thread;
	older[0] = remap(older[0], 10, 8, 0, NULL);                    /* nothing joins */
	older[1] = remap(older[1], 10, 16, MREMAP_MAYMOVE, NULL);      /* all of it does */
	probe();
}

static void test_older_mappings_join_when_they_grow(void **state)
{
	char *older[2] = { map(10), map(10) };

	(void)state;
	expect_left(remap_older, older, 16);
	(void)unmap(older[0], 8);
	(void)unmap(older[1], 16);
}

/* --- pauses ------------------------------------------------------------------------------------------------------- */

static void pause_around(struct alloc_rig *rig, unsigned thread)
{
	char *tracked = map(10), *replaced = map(10), *moved = map(10), *in_pause;

	alloc_rig_pause(rig, thread);
	in_pause = map(50);
	(void)unmap(tracked, 4);
	(void)map_at(replaced, 3, MAP_FIXED);
	moved = remap(moved, 10, 30, MREMAP_MAYMOVE, NULL);
	moved = remap(moved, 30, 8, 0, NULL);
	alloc_rig_resume(rig, thread);
	probe(); /* 6 + 7 + 8 */
	(void)unmap(in_pause, 50);
	(void)unmap(replaced, 10);
	(void)unmap(moved, 8);
	(void)unmap(tracked + 4 * PAGE, 6);
}

static void test_a_pause_stops_admission_alone(void **state)
{
	(void)state;
	expect_left(pause_around, NULL, 21);
}

/* --- against a slow model ----------------------------------------------------------------------------------------- */

#define CELLS 48u

struct model {
	char *base; /* an older mapping of 2 * CELLS pages */
	bool tracked[2 * CELLS];
	size_t peak;
};

static void model_step(struct model *m)
{
	size_t live = 0;

	for (size_t i = 0; i < 2 * CELLS; i++)
		live += m->tracked[i];
	m->peak = live > m->peak ? live : m->peak;
}

static void model_remap(struct model *m, size_t from, size_t n, size_t to, size_t target, bool paused)
{
	bool moved[CELLS];

	if (remap(m->base + from * PAGE, n, to, MREMAP_MAYMOVE | MREMAP_FIXED, m->base + target * PAGE) == MAP_FAILED)
		return; /* across mappings, or a hole: nothing changes */
	for (size_t i = 0; i < to; i++)
		moved[i] = i < n && m->tracked[from + i];
	for (size_t i = 0; i < n; i++)
		m->tracked[from + i] = false;
	for (size_t i = 0; i < to; i++)
		m->tracked[target + i] = to > n && !paused ? true : moved[i];
}

static void random_steps(struct alloc_rig *rig, unsigned thread)
{
	struct model *m = rig->data;
	unsigned seed = 12345;

	(void)unmap(map(1), 1); /* the set has its memory before there are holes which that could lie in */
	for (unsigned step = 0; step < 20000; step++) {
		size_t from = next_random(&seed) % (CELLS - 8), n = 1 + next_random(&seed) % 8;
		size_t to = 1 + next_random(&seed) % 8;
		bool paused = next_random(&seed) % 4 == 0;

		if (paused)
			alloc_rig_pause(rig, thread);
		switch (next_random(&seed) % 3) {
		case 0:
			(void)map_at(m->base + from * PAGE, n, MAP_FIXED);
			memset(m->tracked + from, !paused, n);
			break;
		case 1:
			(void)unmap(m->base + from * PAGE, n);
			memset(m->tracked + from, false, n);
			break;
		default:
			model_remap(m, from, n, to, CELLS + next_random(&seed) % (CELLS - 8), paused);
			break;
		}
		model_step(m);
		if (paused)
			alloc_rig_resume(rig, thread);
	}
	(void)unmap(m->base, 2 * CELLS);
}

static void test_random_steps(void **state)
{
	struct model m = { .base = map(2 * CELLS) };
	struct alloc_rig rig = { .body = random_steps, .data = &m };

	(void)state;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_true(m.peak > CELLS / 2);
	assert_int_equal(rig.figures->mapped_peak_bytes, m.peak * PAGE);
	alloc_rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zero),
		cmocka_unit_test(test_whole_pages_alive_at_once),
		cmocka_unit_test(test_parts_leave),
		cmocka_unit_test(test_fixed_mappings_replace),
		cmocka_unit_test(test_failures_are_passed_on_and_change_nothing),
		cmocka_unit_test(test_shrinking_and_growing),
		cmocka_unit_test(test_growth_is_one_step),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_a_failed_remap_keeps_what_was),
		cmocka_unit_test(test_older_mappings_join_when_they_grow),
		cmocka_unit_test(test_a_pause_stops_admission_alone),
		cmocka_unit_test(test_random_steps),
	};

	return cmocka_run_group_tests_name("memory_mapped", tests, NULL, NULL);
}
