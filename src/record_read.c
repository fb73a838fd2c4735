/*
 * record_read.c - see record_read.h.
 * Layer L4. The command's thread. The file is mapped privately at the address it had in the process, so that pointers
 * in it hold; the variables of the captures are copied over this process's own, which records nothing.
 */
#include "config.h"

#include "record_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "dead.h"
#include "error.h"
#include "memory.h"
#include "modules.h"
#include "os.h"
#include "record_window.h"
#include "sink.h"
#include "symbolise.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* --- collecting --------------------------------------------------------------------------------------------------- */

/* A mew that is recorded itself has a recorder of its own at one of them. */
static unsigned free_place(void)
{
	unsigned i = 0;

	for (; i + 1 < MEW_RECORD_PLACES; i++) {
		void *wanted = (void *)(uintptr_t)(MEW_RECORD_PLACE + i * MEW_RECORD_BYTES);
		void *got = mmap(wanted, MEW_RECORD_BYTES, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

		if (got != MAP_FAILED)
			(void)munmap(got, MEW_RECORD_BYTES);
		if (got == wanted || (got == MAP_FAILED && errno != EEXIST))
			break;
	}
	return i;
}

int mew_recorder_init(struct mew_recorder *r, struct mew_record_orders *o, struct mew_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	uint64_t secret = 0;
	int n;

	*r = (struct mew_recorder){ .listener = -1 };
	o->place = free_place();
	if (getrandom(&secret, sizeof secret, 0) != (ssize_t)sizeof secret)
		secret = mew_os_now_ns();
	n = snprintf(o->socket, sizeof o->socket, "mew-record-%d-%016llx", (int)getpid(), (unsigned long long)secret);
	memcpy(address.sun_path + 1, o->socket, (size_t)n);
	r->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->listener < 0 ||
	    bind(r->listener, (struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) != 0 ||
	    listen(r->listener, SOMAXCONN) != 0)
		return mew_error_errno(err, MEW_E_IO, "no socket for the recorded program to answer on");
	return MEW_OK;
}

void mew_recording_close(struct mew_recording *g)
{
	if (g->file >= 0)
		(void)close(g->file);
	if (g->end >= 0)
		(void)close(g->end);
	g->file = g->end = -1;
}

void mew_recorder_fini(struct mew_recorder *r)
{
	for (size_t i = 0; i < r->n; i++)
		mew_recording_close(&r->list[i]);
	free(r->list);
	free(r->left);
	if (r->listener >= 0)
		(void)close(r->listener);
	*r = (struct mew_recorder){ .listener = -1 };
}

/* What is mapped at fixed addresses and followed must come from ourselves. */
static bool is_our_user(int fd, int *pid)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid())
		return false;
	*pid = (int)peer.pid;
	return true;
}

/*
 * One message; false for none. Descriptors that come without one are closed. Neither file nor reason: it found no
 * descriptor.
 */
static bool receive(int fd, struct mew_recording *g)
{
	struct mew_record_hello hello;
	struct iovec part = { &hello, sizeof hello };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
				  .msg_controllen = sizeof control.bytes };
	ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	g->file = -1;
	if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof g->file))
		memcpy(&g->file, CMSG_DATA(head), sizeof g->file);
	if (got > 0 && (message.msg_flags & MSG_CTRUNC) != 0) {
		g->why[0] = '\0';
		return true;
	}
	if (got != (ssize_t)sizeof hello || hello.magic != MEW_RECORD_MAGIC) {
		if (g->file >= 0)
			(void)close(g->file);
		g->file = -1;
		return false;
	}
	hello.why[sizeof hello.why - 1] = '\0';
	memcpy(g->why, hello.why, sizeof g->why);
	g->is_left_out = hello.is_left_out != 0;
	return true;
}

int mew_recorder_leave_out(struct mew_recorder *r, const char *why, struct mew_error *err)
{
	struct mew_recorder_left *list;

	for (size_t i = 0; i < r->nleft; i++)
		if (strcmp(r->left[i].why, why) == 0) {
			r->left[i].times++;
			return MEW_OK;
		}
	list = realloc(r->left, (r->nleft + 1) * sizeof *list);
	if (list == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the list of programs that are left out");
	r->left = list;
	r->left[r->nleft].times = 1;
	(void)snprintf(r->left[r->nleft++].why, sizeof list->why, "%s", why);
	return MEW_OK;
}

/* Takes the file. */
static int add(struct mew_recorder *r, struct mew_recording *g, struct mew_error *err)
{
	struct mew_recording *list = realloc(r->list, (r->n + 1) * sizeof *list);

	if (list == NULL) {
		mew_recording_close(g);
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the list of processes");
	}
	r->list = list;
	r->list[r->n++] = *g;
	return MEW_OK;
}

int mew_recorder_accept(struct mew_recorder *r, struct mew_error *err)
{
	int status = MEW_OK;

	while (status == MEW_OK) {
		int fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
		struct mew_recording g = { .file = -1, .end = -1 };

		if (fd < 0) {
			r->is_full = r->is_full || errno == EMFILE || errno == ENFILE;
			return MEW_OK;
		}
		if (!is_our_user(fd, &g.pid))
			r->refused++;
		else if (receive(fd, &g) && g.file < 0 && g.why[0] == '\0')
			r->is_full = true;
		else if (g.is_left_out && g.file < 0)
			status = mew_recorder_leave_out(r, g.why, err);
		else if (g.file >= 0 || g.why[0] != '\0')
			status = add(r, &g, err);
		(void)close(fd);
	}
	return status;
}

/* --- the file of one process -------------------------------------------------------------------------------------- */

struct image {
	struct mew_record_root *root; /* MEW_RECORD_BYTES at root->base */
	char *data;
	size_t data_bytes;
};

static void close_image(struct image *i)
{
	if (i->root != NULL)
		(void)munmap(i->root, MEW_RECORD_BYTES);
	if (i->data != NULL)
		(void)munmap(i->data, i->data_bytes);
	*i = (struct image){ 0 };
}

int mew_recording_root(int file, struct mew_record_root *root, struct mew_error *err)
{
	struct stat st;

	if (pread(file, root, sizeof *root, 0) != (ssize_t)sizeof *root || fstat(file, &st) != 0)
		return mew_error_errno(err, MEW_E_IO, "what a process recorded cannot be read");
	root->version[sizeof root->version - 1] = '\0';
	root->program[sizeof root->program - 1] = '\0';
	root->command[sizeof root->command - 1] = '\0';
	root->operators[sizeof root->operators - 1] = '\0';
	root->became[sizeof root->became - 1] = '\0';
	root->unwinder[sizeof root->unwinder - 1] = '\0';
	root->start.why[sizeof root->start.why - 1] = '\0';
	root->stop.why[sizeof root->stop.why - 1] = '\0';
	root->memory.why[sizeof root->memory.why - 1] = '\0';
	root->cpu.why[sizeof root->cpu.why - 1] = '\0';
	if (root->magic != MEW_RECORD_MAGIC || strcmp(root->version, PACKAGE_VERSION) != 0 ||
	    root->root_bytes != sizeof *root || root->model_bytes != sizeof(struct mew_case) ||
	    (uint64_t)st.st_size != MEW_RECORD_BYTES + root->data_bytes)
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "libmew_record is of another build than this mew (%.20s): install both from one "
				     "build",
				     PACKAGE_VERSION);
	return MEW_OK;
}

static int open_image(struct image *i, int file, struct mew_error *err)
{
	struct mew_record_root root;
	int status = mew_recording_root(file, &root, err);
	void *wanted = (void *)(uintptr_t)root.base, *got;

	*i = (struct image){ 0 };
	if (status != MEW_OK)
		return status;
	got = mmap(wanted, MEW_RECORD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
		   file, 0);
	if (got != MAP_FAILED)
		i->root = got;
	got = got == wanted ? mmap(NULL, root.data_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file,
				   (off_t)MEW_RECORD_BYTES)
			    : MAP_FAILED;
	if (got != MAP_FAILED && i->root != NULL) {
		i->data = got;
		i->data_bytes = root.data_bytes;
		*i->root = root; /* its texts end */
		return MEW_OK;
	}
	close_image(i);
	return mew_error_errno(err, MEW_E_NOMEM, "no address space to read what a process recorded: raise `ulimit -v`");
}

/* Do the captures' variables lie where it says, as in this build? The program may have written over it. */
static bool has_our_statics(const struct mew_record_root *root, const struct mew_kept_static own[MEW_DEAD_STATICS])
{
	for (size_t k = 0; k < MEW_DEAD_STATICS; k++) {
		uint64_t at = root->statics[k].at - root->data_lo;

		if (root->statics[k].bytes != own[k].bytes || at > root->data_bytes ||
		    own[k].bytes > root->data_bytes - at)
			return false;
	}
	return true;
}

/* The captures' variables here become those of the process. */
static int take_statics(const struct image *i, struct mew_error *err)
{
	struct mew_kept_static own[MEW_DEAD_STATICS];

	mew_dead_statics(own);
	if (!has_our_statics(i->root, own))
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "libmew_record is of another build than this mew: install both from one build");
	for (size_t k = 0; k < MEW_DEAD_STATICS; k++)
		memcpy(own[k].at, i->data + (i->root->statics[k].at - i->root->data_lo), own[k].bytes);
	mew_modules_freeze();
	return MEW_OK;
}

void mew_recorder_open_windows(const struct mew_recorder *r)
{
	struct mew_kept_static own[MEW_DEAD_STATICS];

	mew_dead_statics(own);
	for (size_t k = 0; k < r->n; k++) {
		struct mew_record_root root;
		struct mew_error ignored;
		char *data;

		if (r->list[k].file < 0 || mew_recording_root(r->list[k].file, &root, &ignored) != MEW_OK ||
		    !has_our_statics(&root, own))
			continue;
		data = mmap(NULL, root.data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->list[k].file,
			    (off_t)MEW_RECORD_BYTES);
		if (data == MAP_FAILED)
			continue;
		mew_heap_open_from_outside((struct mew_heap *)(void *)(data + (root.statics[0].at - root.data_lo)));
		mew_heap_mapped_gate(data + (root.statics[2].at - root.data_lo), true);
		mew_heap_pools_gate(data + (root.statics[3].at - root.data_lo), true);
		(void)munmap(data, root.data_bytes);
	}
}

/* --- the rows ----------------------------------------------------------------------------------------------------- */

/* "cc1", or "cc1/2" for the second process of that name. */
static struct mew_case *add_case(struct mew_model *m, const struct mew_record_root *root)
{
	const char *name = mew_base_name(root->program);
	char key[300];
	struct mew_case *c;

	(void)snprintf(key, sizeof key, "%.250s", name[0] != '\0' ? name : "program");
	for (unsigned i = 2; mew_model_find(m, key) != NULL; i++)
		(void)snprintf(key, sizeof key, "%.250s/%u", name[0] != '\0' ? name : "program", i);
	c = mew_model_case(m, key, NULL);
	if (c != NULL) {
		c->label = mew_model_string(m, root->command);
		c->threads = 1;
	}
	return c;
}

/* Nothing is said of the program's end where the window had closed before. */
static void note_ending(struct mew_sink *sink, const struct mew_record_root *root, const struct mew_record_window *w,
			bool follow)
{
	bool is_cut = root->ended_ns == 0 && !w->is_early;
	char text[400];

	if (is_cut && root->became[0] != '\0') {
		(void)snprintf(text, sizeof text, "it became %.250s (exec): the figures are those until then%s",
			       root->became, follow ? "" : "; --follow records what it became too");
		mew_sink_note(sink, text);
	} else if (is_cut) {
		mew_sink_note(sink, "it ended without its exit handlers (_exit, a signal), or became another program "
				    "(exec): the figures are those until then");
	}
	mew_sink_note_libraries(sink, root->unannounced, root->deepbind);
}

static int memory_row(struct mew_sink *sink, const struct mew_record_root *root, struct mew_error *err)
{
	char text[320];
	int status = mew_memory_drain_dead(sink, root->thread_lo, root->thread_hi, err);

	if (status == MEW_OK && root->operators[0] != '\0') {
		(void)snprintf(text, sizeof text, "operator new is that of %.100s and is not counted", root->operators);
		mew_sink_note(sink, text);
	}
	return status;
}

/* A program that closes all descriptors also closes the one that its samples come by. */
static void note_unsampled(struct mew_sink *sink, double cpu)
{
	double weight = sink->row->cpu.sample_weight;
	char text[220];

	if (cpu < 0.05 || weight > 0.7 * cpu)
		return;
	(void)snprintf(text, sizeof text,
		       "the samples stand for %d %% of its CPU time: it may have closed descriptors that are not its "
		       "own, or blocked the signal; try --clock wall", (int)(100 * weight / cpu));
	mew_sink_note(sink, text);
}

static int cpu_row(struct mew_sink *sink, const struct mew_record_root *root, const struct mew_record_window *w,
		   uint64_t ended_ns, struct mew_error *err)
{
	struct mew_capture *c = (struct mew_capture *)(uintptr_t)root->cpu_capture;
	uint64_t from = w->is_late ? w->opened_ns - root->opened_ns : 0;
	uint64_t until = w->is_early ? w->closed_ns - root->opened_ns : 0;
	int status = mew_cpu_drain_dead(c, from, until, ended_ns, sink, err);
	double cpu = (double)(w->closed_cpu_ns - w->opened_cpu_ns) * 1e-9;

	if (w->opened_cpu_ns == 0) {
		mew_sink_absent(sink, MEW_FIG_CPU_TIME, "it was not read when the window opened");
	} else if (w->closed_cpu_ns == 0) {
		mew_sink_absent(sink, MEW_FIG_CPU_TIME,
				"the process ended without its exit handlers, and its CPU clock with it");
	} else {
		mew_sink_f64(sink, MEW_FIG_CPU_TIME, cpu);
		note_unsampled(sink, cpu);
	}
	mew_sink_absent(sink, MEW_FIG_OFF_CPU_TIME, "the threads of a whole program come and go: see by_thread");
	return status;
}

struct process {
	const struct mew_record_root *root;
	struct mew_record_window window;
	uint64_t ended_ns;
	bool opened, follow;
	char why[400]; /* the window never opened; else a remark on its end, or "" */
};

static int add_row(struct mew_model *m, struct mew_case *c, enum mew_kind kind, const struct process *p,
		   struct mew_error *err)
{
	const struct mew_record_part *part = kind == MEW_KIND_MEMORY ? &p->root->memory : &p->root->cpu;
	uint64_t wall_ns = p->window.closed_ns - p->window.opened_ns;
	struct mew_sink sink = { .model = m, .row = c, .kind = kind, .iterations = 1, .window_ns = wall_ns,
				 .thread_ns = &wall_ns };
	struct mew_row_head *row = mew_model_row(m, c, kind);
	struct mew_error failed;
	int status = part->status;

	if (row == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the result");
	row->profiler = kind == MEW_KIND_MEMORY ? "hooks" : "wall";
	(void)mew_error_set(&failed, status, "%s",
			    status == MEW_E_LOST ? "the process was gone before its recording had begun" : part->why);
	if (status == MEW_OK && !p->opened)
		status = mew_error_set(&failed, MEW_E_LOOP, "%s", p->why);
	if (status == MEW_OK)
		status = kind == MEW_KIND_MEMORY ? memory_row(&sink, p->root, &failed)
						 : cpu_row(&sink, p->root, &p->window, p->ended_ns, &failed);
	if (status != MEW_OK) {
		mew_model_fail(m, c, kind, status, failed.text);
		return MEW_OK;
	}
	if (p->root->unwinder[0] != '\0')
		mew_sink_note(&sink, p->root->unwinder);
	if (p->why[0] != '\0')
		mew_sink_note(&sink, p->why);
	note_ending(&sink, p->root, &p->window, p->follow);
	return MEW_OK;
}

bool mew_recording_opened(const struct mew_recording *g, const struct mew_record_orders *o)
{
	struct mew_record_root root;
	struct mew_error ignored;

	return g->file < 0 || mew_recording_root(g->file, &root, &ignored) != MEW_OK ||
	       mew_record_window_opened(&root, o);
}

int mew_recording_read(const struct mew_recording *g, const struct mew_record_orders *o, struct mew_model *m,
		       struct mew_error *err)
{
	struct image image;
	struct process p;
	struct mew_case *c;
	int status;

	if (g->file < 0)
		return mew_error_set(err, MEW_E_UNSUPPORTED, "process %d is not recorded: %s", g->pid, g->why);
	status = open_image(&image, g->file, err);
	if (status == MEW_OK && image.root != NULL)
		status = take_statics(&image, err);
	if (status == MEW_OK && image.root != NULL) {
		p = (struct process){ .root = image.root, .opened = mew_record_window_opened(image.root, o),
				      .follow = o->follow };
		p.ended_ns = mew_record_window_ended(image.root, g->ended_ns);
		mew_record_window_of(image.root, o->from_ns, p.ended_ns, &p.window);
		mew_record_window_why(image.root, o, p.why, sizeof p.why);
		c = add_case(m, image.root);
		if (c == NULL)
			status = mew_error_set(err, MEW_E_NOMEM, "no memory for the result");
		if (status == MEW_OK && (image.root->kinds & MEW_RECORD_MEMORY) != 0)
			status = add_row(m, c, MEW_KIND_MEMORY, &p, err);
		if (status == MEW_OK && (image.root->kinds & MEW_RECORD_CPU) != 0)
			status = add_row(m, c, MEW_KIND_CPU, &p, err);
	}
	close_image(&image);
	return status;
}
