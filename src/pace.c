/*
 * pace.c - see pace.h. A turn is handed over by a futex, so it works on one processor too, where spinning would not.
 * Layer L1. Loop threads between samples: no heap, no locks.
 */
#include "config.h"

#include "pace.h"

#include "os.h"
#include "splitmix.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct mew_pace *mew_pace_map(int fd)
{
	void *page = mmap(NULL, sizeof(struct mew_pace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

struct mew_pace *mew_pace_create(int *fd)
{
	struct mew_pace *p = NULL;
	int failure;

	*fd = memfd_create("mew-pace", MFD_CLOEXEC);
	if (*fd >= 0 && ftruncate(*fd, sizeof *p) == 0)
		p = mew_pace_map(*fd);
	if (p == NULL && *fd >= 0) {
		failure = errno;
		(void)close(*fd);
		errno = failure;
	}
	return p;
}

void mew_pace_unmap(struct mew_pace *p)
{
	if (p != NULL)
		(void)munmap(p, sizeof *p);
}

bool mew_pace_coin(uint64_t *seed)
{
	return mew_random_split(seed) >> 63 != 0;
}

void mew_pace_plan(struct mew_pace *p, unsigned rounds, uint64_t *seed)
{
	unsigned char first = MEW_BASE;

	p->turn = p->arrived = p->ended = 0;
	p->total = 2 * rounds;
	for (unsigned i = 0; i < rounds; i++) {
		if (i % 2 == 0)
			first = mew_pace_coin(seed) ? MEW_HEAD : MEW_BASE;
		else
			first = !first;
		p->owner[2 * i] = first;
		p->owner[2 * i + 1] = !first;
		p->disturbed[2 * i] = p->disturbed[2 * i + 1] = 0;
	}
}

static void sleep_while(uint32_t *word, uint32_t value)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void wake_all(uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool has_ended(struct mew_pace *p)
{
	return __atomic_load_n(&p->ended, __ATOMIC_ACQUIRE) != 0;
}

/* Let the other side change the word from the value that was seen. */
static void rest(struct mew_pace *p, struct mew_duo *duo, uint32_t *word, uint32_t value)
{
	if (duo == NULL)
		sleep_while(word, value);
	else if (!mew_duo_yield(duo))
		mew_pace_leave(p); /* it is gone, and nobody else changes it */
}

bool mew_pace_wait(struct mew_pace *p, enum mew_side side, bool first, struct mew_duo *duo)
{
	uint32_t seen;

	if (first) {
		(void)__atomic_fetch_add(&p->arrived, 1, __ATOMIC_ACQ_REL);
		wake_all(&p->arrived);
		while (!has_ended(p) && (seen = __atomic_load_n(&p->arrived, __ATOMIC_ACQUIRE)) < MEW_SIDES)
			rest(p, duo, &p->arrived, seen);
	}
	for (;;) {
		seen = __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE);
		if (has_ended(p) || seen >= p->total || seen >= MEW_PACE_TURNS)
			return false;
		if (p->owner[seen] == side)
			return true;
		rest(p, duo, &p->turn, seen);
	}
}

void mew_pace_await_end(struct mew_pace *p, struct mew_duo *duo)
{
	uint32_t seen;

	while (!has_ended(p) && (seen = __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE)) < p->total)
		rest(p, duo, &p->turn, seen);
}

void mew_pace_pass(struct mew_pace *p, bool disturbed)
{
	uint32_t turn = __atomic_load_n(&p->turn, __ATOMIC_RELAXED);

	if (turn < MEW_PACE_TURNS)
		p->disturbed[turn] = disturbed;
	__atomic_store_n(&p->turn, turn + 1, __ATOMIC_RELEASE);
	wake_all(&p->turn);
}

void mew_pace_leave(struct mew_pace *p)
{
	__atomic_store_n(&p->ended, 1, __ATOMIC_RELEASE);
	/* a sleeper that read the words before must find them changed, or it would sleep on */
	(void)__atomic_fetch_add(&p->arrived, MEW_SIDES, __ATOMIC_ACQ_REL);
	(void)__atomic_fetch_add(&p->turn, MEW_PACE_TURNS, __ATOMIC_ACQ_REL);
	wake_all(&p->arrived);
	wake_all(&p->turn);
}
