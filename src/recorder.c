/*
 * recorder.c - the constructor of libmew_record: starts the captures in a program that knows nothing of mew.
 * Layer L6. Runs before main, and in forked children; whatever fails here, the program must run as if mew were not
 * there.
 *
 * The captures' variables are put into the shared file too, by mapping it over the library's own writable pages: no
 * event pays for being readable from outside. A forked child gets private pages before anything else runs in it.
 */
#include "config.h"

#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "allocator.h"
#include "dead.h"
#include "hooks_link.h"
#include "kept.h"
#include "memory_own.h"
#include "model.h"
#include "modules.h"
#include "os.h"
#include "recorder_exec.h"
#include "recorder_left.h"
#include "recorder_limits.h"
#include "recorder_window.h"
#include "unwinder.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define SPARE_FILES 8 /* more descriptors than are open at once while a recording begins */

extern const struct mew_backend mew_backend_memory, mew_backend_cpu;

/* What must survive when the variables of the captures are put back: lies outside them, in memory of its own. */
struct place {
	struct mew_record_orders orders;
	struct mew_record_root *root; /* NULL: nothing is recorded */
	char *data, *pristine;        /* the library's variables, and a copy from before the first capture */
	size_t data_bytes;
	int pid;
	struct mew_window *window; /* NULL: it is not bounded by functions */
};
static struct place *here;

/* --- the library's own variables ---------------------------------------------------------------------------------- */

static int find_data(struct dl_phdr_info *info, size_t size, void *data)
{
	uintptr_t self = (uintptr_t)&here, page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1, relro = 0;
	struct place *p = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
			relro = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t lo = info->dlpi_addr + ph->p_vaddr, hi = lo + ph->p_memsz;

		if (ph->p_type != PT_LOAD || self < lo || self >= hi)
			continue;
		lo = (relro > lo && relro < hi ? relro : lo) & ~page; /* what is read-only by now stays */
		p->data = (char *)lo;
		p->data_bytes = ((hi + page) & ~page) - lo;
		return 1;
	}
	return 0;
}

/* --- copies of the variables -------------------------------------------------------------------------------------- */

/* Most pages are tables that nothing was put into yet: each that is left out is one less to fill in every process. */
static bool has_values(const char *page, size_t bytes)
{
	return page[0] != '\0' || memcmp(page, page + 1, bytes - 1) != 0;
}

/* Into memory that has only zeros. Context: also a forked child, before anything else. */
static void copy_data(char *to, const char *from, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < bytes; at += page)
		if (has_values(from + at, page))
			memcpy(to + at, from + at, page);
}

/* Into an empty file, of which the rest reads as zeros. */
static bool write_data(int file, const char *from, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < bytes; at += page)
		if (has_values(from + at, page) &&
		    pwrite(file, from + at, page, (off_t)(MEW_RECORD_BYTES + at)) != (ssize_t)page)
			return false;
	return true;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static void *map_at_a_place(unsigned first, int file)
{
	for (unsigned i = 0; i < MEW_RECORD_PLACES; i++) {
		uint64_t place = MEW_RECORD_PLACE + (first + i) % MEW_RECORD_PLACES * MEW_RECORD_BYTES;
		void *wanted = (void *)(uintptr_t)place, *got;

		got = mmap(wanted, MEW_RECORD_BYTES, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0);
		if (got == wanted)
			return got;
		if (got != MAP_FAILED)
			(void)munmap(got, MEW_RECORD_BYTES);
	}
	return NULL;
}

/* A file beyond the limit would bring SIGXFSZ to a program that never wrote it. */
static bool may_be_large(size_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

/* Returns NULL, or what stands in the way; *file is then -1. */
static const char *make_file(struct place *p, int *file)
{
	size_t bytes = MEW_RECORD_BYTES + p->data_bytes;
	const char *why = "what is recorded cannot be kept in a memory file: is memory at its limit?";

	*file = -1;
	if (!may_be_large(bytes))
		return "the size of files is limited: raise `ulimit -f`";
	*file = memfd_create("mew-record", MFD_CLOEXEC);
	if (*file < 0)
		return errno == EMFILE || errno == ENFILE ?
			       "no memory file can be made: the number of open files is at its limit, raise `ulimit -n`" :
			       "no memory file can be made: memfd_create() is not allowed here (a sandbox?)";
	if (ftruncate(*file, (off_t)bytes) == 0 && write_data(*file, p->data, p->data_bytes)) {
		p->root = map_at_a_place(p->orders.place, *file);
		why = "no address space for what is recorded: raise `ulimit -v`";
	}
	if (p->root != NULL) {
		/* not in a core file: the kernel would bring in every page of it, 16 GiB, to write it */
		(void)madvise(p->root, MEW_RECORD_BYTES, MADV_DONTDUMP);
		return NULL;
	}
	(void)close(*file);
	*file = -1;
	return why;
}

/* From here on the variables of the captures are seen from outside. */
static bool share_data(const struct place *p, int file)
{
	return mmap(p->data, p->data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
		    (off_t)MEW_RECORD_BYTES) != MAP_FAILED;
}

static void note_command(struct mew_record_root *root)
{
	ssize_t n = readlink("/proc/self/exe", root->program, sizeof root->program - 1);
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

	root->program[n > 0 ? n : 0] = '\0';
	mew_modules_cut_deleted(root->program);
	n = fd >= 0 ? read(fd, root->command, sizeof root->command - 1) : 0;
	for (ssize_t i = 0; i + 1 < n; i++)
		if (root->command[i] == '\0')
			root->command[i] = ' ';
	if (fd >= 0)
		(void)close(fd);
}

static void fill_root(const struct place *p)
{
	struct mew_kept_static statics[MEW_DEAD_STATICS];
	struct mew_record_root *root = p->root;

	root->magic = MEW_RECORD_MAGIC;
	(void)snprintf(root->version, sizeof root->version, "%s", PACKAGE_VERSION);
	root->root_bytes = sizeof *root;
	root->model_bytes = sizeof(struct mew_case);
	root->base = (uintptr_t)root;
	root->data_lo = (uintptr_t)p->data;
	root->data_bytes = p->data_bytes;
	root->pid = (int)getpid();
	root->kinds = p->orders.kinds;
	root->memory.status = root->cpu.status = MEW_E_LOST;
	mew_dead_statics(statics);
	for (size_t i = 0; i < MEW_DEAD_STATICS; i++) {
		root->statics[i].at = (uintptr_t)statics[i].at;
		root->statics[i].bytes = statics[i].bytes;
	}
	note_command(root);
}

/* --- the captures ------------------------------------------------------------------------------------------------- */

/* Open everything of one backend but its window. */
static struct mew_capture *prepare(const struct mew_backend *b, const struct mew_capture_config *config,
				   struct mew_record_part *part)
{
	struct mew_capture *c = NULL;
	struct mew_error err;

	part->status = b->probe(&err);
	if (part->status == MEW_OK)
		part->status = b->open(&c, config, &err);
	if (part->status == MEW_OK)
		part->status = b->thread_begin(c, 0, &err);
	if (part->status == MEW_OK)
		return c;
	(void)snprintf(part->why, sizeof part->why, "%s", err.text);
	if (c != NULL)
		b->close(c);
	return NULL;
}

static bool begin(const struct mew_backend *b, struct mew_capture *c, struct mew_record_part *part)
{
	struct mew_error err;

	if (c == NULL)
		return false;
	part->status = b->begin(c, &err);
	if (part->status == MEW_OK)
		return true;
	(void)snprintf(part->why, sizeof part->why, "%s", err.text);
	b->close(c);
	return false;
}

static bool is_open(const struct mew_record_orders *o)
{
	return o->start_on[0] == '\0' && mew_os_now_ns() >= o->from_ns;
}

/* The command opens the window of each process that it knew of at that moment: it may just have done so. */
static void wait_for_window(const struct mew_record_orders *o)
{
	mew_memory_shut_window();
	if (is_open(o))
		mew_memory_open_window();
}

/* Memory last: what the other one allocates to begin is none of the program's. */
static void start_captures(struct place *p)
{
	struct mew_capture_config config = { .pass = MEW_PASS_MEMORY, .threads = 1, .stacks = 1, .whole = 1,
					     .interval_ns = p->orders.interval_ns, .clock = p->orders.clock };
	struct mew_capture *memory = NULL, *cpu = NULL;
	struct mew_record_root *root = p->root;
	const struct mew_hooks_api *api = mew_hooks_link();
	const char *operators;

	if ((root->kinds & MEW_RECORD_MEMORY) != 0)
		memory = prepare(&mew_backend_memory, &config, &root->memory);
	if (memory != NULL && api != NULL) {
		root->thread_lo = api->thread_lo;
		root->thread_hi = api->thread_hi;
		operators = mew_allocator_own_operators(api);
		(void)snprintf(root->operators, sizeof root->operators, "%s", operators != NULL ? operators : "");
	}
	config.pass = MEW_PASS_CPU;
	if ((root->kinds & MEW_RECORD_CPU) != 0)
		cpu = prepare(&mew_backend_cpu, &config, &root->cpu);
	root->cpu_capture = (uintptr_t)cpu;
	if (mew_unwinder_note() != NULL)
		(void)snprintf(root->unwinder, sizeof root->unwinder, "%s", mew_unwinder_note());
	root->opened_cpu_ns = mew_os_process_cpu_ns();
	root->opened_ns = mew_os_now_ns();
	(void)begin(&mew_backend_cpu, cpu, &root->cpu);
	if (!begin(&mew_backend_memory, memory, &root->memory))
		memory = NULL;
	if (memory != NULL && !is_open(&p->orders))
		wait_for_window(&p->orders);
	p->window = mew_window_begin(p->window, &p->orders, root, memory != NULL);
}

/* --- starting and forking ----------------------------------------------------------------------------------------- */

/* Make the file and hand it over; false: the command was told why there is none, where it could be. */
static bool hand_over(struct place *p)
{
	int file;
	const char *why = make_file(p, &file);
	bool is_taken;

	if (why != NULL) {
		(void)mew_recorder_tell(p->orders.socket, -1, why, false);
		return false;
	}
	fill_root(p);
	is_taken = mew_recorder_tell(p->orders.socket, file, "", false) && share_data(p, file);
	(void)close(file);
	if (!is_taken) {
		(void)munmap(p->root, MEW_RECORD_BYTES);
		p->root = NULL;
	}
	return is_taken;
}

static void hand_over_and_start(struct place *p)
{
	if (!hand_over(p))
		return;
	mew_recorder_exec_note(p->root);
	mew_recorder_limits_note(p->root);
	mew_kept_place((char *)p->root + MEW_RECORD_ROOT_BYTES, MEW_RECORD_BYTES - MEW_RECORD_ROOT_BYTES);
	start_captures(p);
	mew_recorder_signals_guard();
}

/*
 * For a moment it takes descriptors, of which the child of a program that has used up its own has none left. Where their
 * limit may be raised it is: nobody else runs yet who could open more.
 */
static void record(struct place *p)
{
	struct rlimit was, wider;
	bool is_raised = getrlimit(RLIMIT_NOFILE, &was) == 0 && was.rlim_cur < was.rlim_max;

	p->pid = (int)getpid();
	if (is_raised) {
		wider = was;
		wider.rlim_cur += was.rlim_max - was.rlim_cur > SPARE_FILES ? SPARE_FILES : was.rlim_max - was.rlim_cur;
		is_raised = setrlimit(RLIMIT_NOFILE, &wider) == 0;
	}
	hand_over_and_start(p);
	if (is_raised)
		(void)setrlimit(RLIMIT_NOFILE, &was);
}

/*
 * Private pages over what is shared with the parent, before anything is written. Maps only: malloc may not work yet. Raw
 * calls: a wrapper would enter the maps in variables that are the parent's still, or have addresses that it has got since.
 */
static void leave_the_parents_pages(struct place *p)
{
	void *copy = mew_os_map(p->data_bytes);

	if (copy != NULL) {
		copy_data(copy, p->data, p->data_bytes);
		(void)syscall(SYS_mremap, copy, p->data_bytes, p->data_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, p->data);
	}
	(void)syscall(SYS_mmap, p->root, MEW_RECORD_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0L);
}

static void child_of_fork(void)
{
	if (here != NULL && here->root != NULL)
		leave_the_parents_pages(here);
}

/* Everybody else has put the child in order. With --follow it is recorded as if it had just been loaded. */
static void child_starts(void)
{
	struct place *p = here;

	if (p == NULL || p->root == NULL || p->pid == (int)getpid())
		return;
	if (!p->orders.follow) {
		here = NULL;
		return;
	}
	(void)munmap(p->root, MEW_RECORD_BYTES);
	p->root = NULL;
	memcpy(p->data, p->pristine, p->data_bytes);
	here = p;
	mew_heap_forget_thread();
	record(p);
}

/* Children that are not recorded run as if started without mew. */
static void clean_environment(const struct mew_record_orders *o)
{
	const char *rest = getenv("LD_PRELOAD");

	for (unsigned i = 0; rest != NULL && i < o->preloaded; i++) {
		rest = strchr(rest, ':');
		rest = rest != NULL ? rest + 1 : NULL;
	}
	if (rest != NULL && *rest != '\0')
		(void)setenv("LD_PRELOAD", rest, 1);
	else
		(void)unsetenv("LD_PRELOAD");
	(void)unsetenv(MEW_RECORD_ENV);
}

/*
 * The handlers of forked children: ours first, then those of the captures and of the hooks, and ours again at the end.
 */
static bool prepare_place(struct place *p)
{
	if (dl_iterate_phdr(find_data, p) == 0 || pthread_atfork(NULL, NULL, child_of_fork) != 0 ||
	    !mew_dead_watch_fork())
		return false;
	p->pristine = mew_os_map(p->data_bytes);
	if (p->pristine == NULL)
		return false;
	copy_data(p->pristine, p->data, p->data_bytes);
	return true;
}

__attribute__((constructor)) static void start(void)
{
	const char *text = secure_getenv(MEW_RECORD_ENV);
	struct place *p;
	int saved = errno;

	mew_recorder_exec_init();
	if (text == NULL)
		return;
	p = mew_os_map(sizeof *p);
	if (p == NULL || !mew_record_get_orders(&p->orders, text))
		return;
	if (p->orders.follow)
		mew_recorder_left_init(&p->orders);
	else
		clean_environment(&p->orders);
	if (prepare_place(p)) {
		here = p;
		record(p);
		(void)pthread_atfork(NULL, NULL, child_starts);
	} else {
		(void)mew_recorder_tell(p->orders.socket, -1, "no memory to begin", false);
	}
	errno = saved;
}

/* Only what cannot be known from outside; an end without it is as good. */
__attribute__((destructor)) static void end(void)
{
	struct mew_record_root *root = here != NULL ? here->root : NULL;
	const struct mew_threads_api *threads;
	const struct mew_hooks_api *hooks;
	unsigned char was;

	if (root == NULL || here->pid != (int)getpid())
		return;
	was = mew_heap_own_begin();
	(void)mew_modules_renew();
	threads = mew_threads_link();
	root->unannounced = threads != NULL ? threads->modules_unannounced() : 0;
	hooks = mew_hooks_link();
	root->deepbind = hooks != NULL ? hooks->deepbind_dropped() : 0;
	root->ended_cpu_ns = mew_os_process_cpu_ns();
	root->ended_ns = mew_os_now_ns();
	mew_heap_own_end(was);
}
