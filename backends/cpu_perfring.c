/*
 * cpu_perfring.c - see cpu_perfring.h.
 * Layer L3. Any thread but no handler. One lock orders all that read or make rings; the sampled thread never takes it
 * between the ends of its window.
 */
#include "config.h"

#include "cpu_perfring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "os.h"
#include "stackset.h"
#include "unwind_machine.h"

#define RING_BYTES ((size_t)4 << 20)   /* of a benchmark thread */
#define RING_CREW_BYTES ((size_t)1 << 20)
#define RING_LEAST_BYTES ((size_t)64 << 10)
#define SAME_PERIOD 16u                /* samples; a new period starts over, so drawing it often makes samples rarer */
#define PERIOD_LEAST_NS ((uint64_t)10000) /* the kernel's own limit for this clock */
#define SCALED_PERIODS 100u
#define LOST_PERIODS 20u               /* without a sample at the end: far more than chance does */
#define LOG_TIMES ((uint64_t)1 << 16)  /* pauses and resumes between two looks */

enum { PAUSED = 1, AWAY = 2, LOG_BITS = 2 };

struct mew_cpu_perfring {
	int event;
	struct perf_event_mmap_page *page; /* and behind it the ring */
	size_t ring_bytes;
	bool running;
	uint64_t count_ns;       /* of the task clock at the last sample */
	uint64_t start_count_ns, start_cpu_ns; /* the task clock and the thread's CPU clock when it started */
	uint64_t paused;         /* PAUSED | AWAY at the last sample */
	unsigned left;           /* samples until the next period */
	_Atomic uint64_t head, tail; /* of the log; head is the sampled thread's */
	uint64_t record[(sizeof(struct perf_event_header) + 512 + MEW_CPU_COPY_BYTES) / 8]; /* one that wraps */
	uint64_t log[LOG_TIMES]; /* CLOCK_MONOTONIC << LOG_BITS | what held from then on */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void after_fork_in_child(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void watch_fork(void)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* --- the log of pauses -------------------------------------------------------------------------------------------- */

/*
 * Room is made at the end of a pause, where waiting is outside all figures: the next pause then finds it. The moment of
 * a resume is read behind that.
 */
void mew_cpu_perfring_note(struct mew_cpu_thread *t)
{
	static const struct timespec a_moment = { 0, 100000 };
	struct mew_cpu_perfring *p = t->perfring;
	uint64_t head = atomic_load_explicit(&p->head, memory_order_relaxed), bits;

	bits = (atomic_load_explicit(&t->paused, memory_order_relaxed) != 0 ? (uint64_t)PAUSED : 0) |
	       (atomic_load_explicit(&t->away, memory_order_relaxed) != 0 ? (uint64_t)AWAY : 0);
	while (bits == 0 && head - atomic_load_explicit(&p->tail, memory_order_acquire) > LOG_TIMES - 8)
		(void)nanosleep(&a_moment, NULL);
	p->log[head % LOG_TIMES] = mew_os_now_ns() << LOG_BITS | bits;
	atomic_store_explicit(&p->head, head + 1, memory_order_release);
}

/* Was the thread paused then? Moments come in their order. */
static bool was_paused(struct mew_cpu_perfring *p, uint64_t at_ns, uint64_t head)
{
	uint64_t tail = atomic_load_explicit(&p->tail, memory_order_relaxed);

	while (tail != head && p->log[tail % LOG_TIMES] >> LOG_BITS <= at_ns)
		p->paused = p->log[tail++ % LOG_TIMES] & (PAUSED | AWAY);
	atomic_store_explicit(&p->tail, tail, memory_order_release);
	return p->paused != 0;
}

/* --- one sample --------------------------------------------------------------------------------------------------- */

struct sample { /* as the kernel writes it for the sample_type of open_event() */
	struct perf_event_header header;
	uint64_t time_ns, count_ns;
	uint64_t abi; /* 0: no registers, and nothing behind but a size of 0 */
	uint64_t values[];
};

/* The stack of a sample into t->pcs. */
static size_t walk(struct mew_cpu_thread *t, const struct sample *s, enum mew_unwind_stop *stop)
{
	uint64_t mask;
	const uint64_t *size = s->values + mew_unwind_perf_registers(&mask), *words = size + 1;
	struct mew_unwind_regs regs;
	struct mew_unwind_copy copy;
	ucontext_t context;
	uint64_t bytes = 0;
	size_t n;

	if (*size != 0)
		bytes = words[*size / 8] & ~(uint64_t)7; /* what could be copied */
	memset(&context, 0, sizeof context);
	mew_unwind_from_perf(&context, s->values);
	mew_unwind_from_ucontext(&regs, &context);
	copy = (struct mew_unwind_copy){ .lo = regs.sp, .hi = regs.sp + bytes, .words = words };
	regs.copy = &copy;
	n = mew_unwind_walk(&t->unwind, &regs, t->entry_lo, t->entry_hi, t->pcs, MEW_CPU_FRAMES_MAX, stop);
	if (*stop == MEW_STOP_BAD_STACK && bytes >= MEW_CPU_COPY_BYTES)
		*stop = MEW_STOP_SHORT_COPY;
	return n;
}

static void draw_period(struct mew_cpu_thread *t)
{
	uint64_t period = t->period_ns / 2 + mew_cpu_thread_random(t) % t->period_ns;

	if (period < PERIOD_LEAST_NS)
		period = PERIOD_LEAST_NS;
	(void)ioctl(t->perfring->event, PERF_EVENT_IOC_PERIOD, &period);
	t->perfring->left = SAME_PERIOD;
}

static void take_sample(struct mew_cpu_thread *t, const struct sample *s, uint64_t log_head)
{
	struct mew_cpu_perfring *p = t->perfring;
	struct mew_cpu_record record = { .weight_ns = s->count_ns - p->count_ns };
	enum mew_unwind_stop stop = MEW_STOP_BAD_STACK;
	size_t n;

	p->count_ns = s->count_ns;
	p->left -= p->left > 0;
	if (was_paused(p, s->time_ns, log_head))
		return; /* and stands for nothing */
	if (s->time_ns > t->window->opened_ns)
		record.time_ns = s->time_ns - t->window->opened_ns;
	if (s->abi != PERF_SAMPLE_REGS_ABI_NONE) {
		n = walk(t, s, &stop);
		record.stack = mew_stackset_intern(t->window->stacks, t->pcs, n);
	}
	record.stop = (uint16_t)stop;
	mew_cpu_thread_keep(t, &record);
}

/* --- the ring ----------------------------------------------------------------------------------------------------- */

/* The record at `at`, in one piece. */
static const struct perf_event_header *record_at(struct mew_cpu_perfring *p, uint64_t at)
{
	const unsigned char *ring = (const unsigned char *)p->page + p->page->data_offset;
	size_t from = at % p->ring_bytes, first = p->ring_bytes - from;
	const struct perf_event_header *header = (const void *)(ring + from); /* of 8 bytes, and so aligned */

	if (header->size <= first || header->size > sizeof p->record)
		return header;
	memcpy(p->record, ring + from, first);
	memcpy((unsigned char *)p->record + first, ring, header->size - first);
	return (const void *)p->record;
}

static void take_record(struct mew_cpu_thread *t, const struct perf_event_header *header, uint64_t log_head)
{
	const uint64_t *words = (const void *)header;

	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		take_sample(t, (const void *)header, log_head);
		break;
	case PERF_RECORD_LOST: /* an id, and how many */
		t->ring.dropped += words[2];
		break;
	case PERF_RECORD_THROTTLE: /* the clock stands still until the kernel's next tick: that time is lost */
		t->ring.dropped++;
		break;
	default:
		break;
	}
}

/*
 * With the lock. A pause that was noted when the ring is read was noted before any later sample was written, so the log
 * is looked at last; what it had before that needs no sample to be passed by.
 */
static void drain(struct mew_cpu_thread *t)
{
	struct mew_cpu_perfring *p = t->perfring;
	uint64_t log_before = atomic_load_explicit(&p->head, memory_order_acquire), log_head, head, at, tail;

	head = __atomic_load_n(&p->page->data_head, __ATOMIC_ACQUIRE);
	log_head = atomic_load_explicit(&p->head, memory_order_acquire);
	for (at = p->page->data_tail; at != head;) {
		const struct perf_event_header *header = record_at(p, at);

		take_record(t, header, log_head);
		at += header->size;
		__atomic_store_n(&p->page->data_tail, at, __ATOMIC_RELEASE);
	}
	tail = atomic_load_explicit(&p->tail, memory_order_relaxed);
	if ((int64_t)(log_before - tail) > 0) {
		p->paused = p->log[(log_before - 1) % LOG_TIMES] & (PAUSED | AWAY);
		atomic_store_explicit(&p->tail, log_before, memory_order_release);
	}
	if (p->running && p->left == 0)
		draw_period(t);
}

static int open_event(int tid)
{
	struct perf_event_attr attr;
	uint64_t mask;

	if (mew_unwind_perf_registers(&mask) == 0) {
		errno = EOPNOTSUPP;
		return -1;
	}
	memset(&attr, 0, sizeof attr);
	attr.size = sizeof attr;
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.sample_period = 1000000000;
	attr.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr.sample_regs_user = mask;
	attr.sample_stack_user = MEW_CPU_COPY_BYTES;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.disabled = 1;
	attr.watermark = 1;
	attr.wakeup_watermark = UINT32_MAX; /* nobody waits for it */
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The largest ring that may be locked in memory. */
static bool map_ring(struct mew_cpu_perfring *p, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = MAP_FAILED;

	for (; bytes >= RING_LEAST_BYTES && memory == MAP_FAILED; bytes /= 2) {
		memory = mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->event, 0);
		p->ring_bytes = bytes;
	}
	if (memory == MAP_FAILED)
		return false;
	p->page = memory;
	return true;
}

int mew_cpu_perfring_open(struct mew_cpu_thread *t)
{
	struct mew_cpu_perfring *p;

	(void)pthread_once(&once, watch_fork);
	p = mew_os_reserve(sizeof *p);
	if (p == NULL)
		return -1;
	p->event = open_event(t->tid);
	if (p->event >= 0 && map_ring(p, atomic_load(&t->helper) != 0 ? RING_CREW_BYTES : RING_BYTES)) {
		t->perfring = p;
		return 0;
	}
	if (p->event >= 0) {
		(void)close(p->event);
		errno = ENOBUFS;
	}
	mew_os_unmap(p, sizeof *p);
	return -1;
}

void mew_cpu_perfring_close(struct mew_cpu_thread *t)
{
	struct mew_cpu_perfring *p;

	if (t->perfring == NULL)
		return;
	(void)pthread_mutex_lock(&lock);
	p = t->perfring;
	t->perfring = NULL;
	(void)pthread_mutex_unlock(&lock);
	(void)munmap(p->page, (size_t)sysconf(_SC_PAGESIZE) + p->ring_bytes);
	(void)close(p->event);
	mew_os_unmap(p, sizeof *p);
}

void mew_cpu_perfring_forget(struct mew_cpu_thread *t)
{
	struct mew_cpu_perfring *p = t->perfring;

	t->perfring = NULL;
	if (p != NULL)
		(void)close(p->event);
}

/* Both clocks of the thread at nearly one moment; false when one cannot be read, as for a thread that is gone. */
static bool read_clocks(const struct mew_cpu_thread *t, uint64_t *count_ns, uint64_t *cpu_ns)
{
	struct timespec now;

	if (clock_gettime(t->cpu_clock, &now) != 0)
		return false;
	*cpu_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return read(t->perfring->event, count_ns, sizeof *count_ns) == (ssize_t)sizeof *count_ns;
}

/*
 * Perf's task clock and the CPU clock of the scheduler differ by up to 1 %, as they take process switches and stolen
 * time differently. The figures are of the latter, so the samples are scaled to add up to it. Over a few periods, or
 * where the clocks are far from each other, something came between the two readings: then not.
 *
 * Samples that were lost at the end have no later one that stands for them.
 */
static void settle(struct mew_cpu_thread *t)
{
	struct mew_cpu_perfring *p = t->perfring;
	struct mew_cpu_record *records = (void *)t->ring.records;
	uint64_t count_ns, cpu_ns, millionths;

	if (p->start_cpu_ns == 0 || !read_clocks(t, &count_ns, &cpu_ns))
		return;
	if (p->paused == 0 && count_ns - p->count_ns > LOST_PERIODS * t->period_ns) /* the ring was full at the end */
		t->ring.dropped += (count_ns - p->count_ns) / t->period_ns;
	count_ns -= p->start_count_ns;
	cpu_ns -= p->start_cpu_ns;
	if (count_ns < SCALED_PERIODS * t->window->period_ns || cpu_ns > UINT64_MAX / 1000000 ||
	    cpu_ns < count_ns / 20 * 19 || cpu_ns > count_ns / 20 * 21)
		return;
	millionths = cpu_ns * 1000000 / count_ns;
	for (uint64_t i = t->ring.tail; i != t->ring.head; i++) {
		struct mew_cpu_record *record = &records[i & (t->ring.capacity - 1)];

		record->weight_ns = record->weight_ns * millionths / 1000000;
	}
}

int mew_cpu_perfring_start(struct mew_cpu_thread *t)
{
	struct mew_cpu_perfring *p = t->perfring;
	int failed;

	(void)pthread_mutex_lock(&lock);
	if (!read_clocks(t, &p->start_count_ns, &p->start_cpu_ns))
		p->start_count_ns = p->start_cpu_ns = 0; /* it never ran before: the count is 0 */
	p->count_ns = p->start_count_ns;
	draw_period(t);
	p->running = true;
	failed = ioctl(p->event, PERF_EVENT_IOC_ENABLE, 0);
	p->running = failed == 0;
	(void)pthread_mutex_unlock(&lock);
	return failed;
}

void mew_cpu_perfring_stop(struct mew_cpu_thread *t)
{
	if (t->perfring == NULL)
		return;
	(void)pthread_mutex_lock(&lock);
	(void)ioctl(t->perfring->event, PERF_EVENT_IOC_DISABLE, 0);
	if (t->perfring->running) {
		drain(t);
		settle(t);
	}
	t->perfring->running = false;
	(void)pthread_mutex_unlock(&lock);
}

bool mew_cpu_perfring_came(const struct mew_cpu_thread *t)
{
	return __atomic_load_n(&t->perfring->page->data_head, __ATOMIC_ACQUIRE) != 0;
}

void mew_cpu_perfring_drain_all(void)
{
	(void)pthread_mutex_lock(&lock);
	for (struct mew_cpu_thread *t = mew_cpu_slot_next(NULL); t != NULL; t = mew_cpu_slot_next(t))
		if (t->perfring != NULL && t->perfring->running)
			drain(t);
	(void)pthread_mutex_unlock(&lock);
}
