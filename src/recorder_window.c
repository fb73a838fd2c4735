/*
 * recorder_window.c - see recorder_window.h: finds the functions in the files that are loaded, and puts the probes.
 * Layer L6. Constructor, and whoever calls dlopen; without malloc.
 */
#include "config.h"

#include "recorder_window.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "memory_own.h"
#include "modules.h"
#include "os.h"

static struct mew_window *window; /* one per process */

/* --- one file ----------------------------------------------------------------------------------------------------- */

struct search {
	struct mew_window *w;
	const struct mew_module_map *module;
};

static struct mew_probe *probe_at(const struct mew_window *w, uintptr_t entry)
{
	for (unsigned i = 0; i < w->nprobes; i++)
		if (w->probes[i]->entry == entry)
			return w->probes[i];
	return NULL;
}

static void say_why(struct mew_window *w, unsigned roles, const struct mew_elf_function *f, const char *why)
{
	for (unsigned role = MEW_WINDOW_STARTS; role <= MEW_WINDOW_STOPS; role *= 2) {
		struct mew_record_edge *edge = role == MEW_WINDOW_STARTS ? &w->root->start : &w->root->stop;

		if ((roles & role) != 0 && edge->why[0] == '\0')
			(void)snprintf(edge->why, sizeof edge->why, "%.80s: %s", f->name, why);
	}
}

static void count(struct mew_window *w, unsigned roles)
{
	w->root->start.watched += (roles & MEW_WINDOW_STARTS) != 0;
	w->root->stop.watched += (roles & MEW_WINDOW_STOPS) != 0;
}

static void keep(struct mew_window *w, struct mew_probe *p, unsigned roles)
{
	p->roles = roles;
	w->probes[w->nprobes] = p;
	__atomic_store_n(&w->nprobes, w->nprobes + 1, __ATOMIC_SEQ_CST);
	count(w, roles);
	mew_window_arm(w, w->nprobes - 1);
}

static bool look_at(void *data, const struct mew_elf_function *f)
{
	struct search *s = data;
	struct mew_window *w = s->w;
	unsigned roles = ((w->roles & MEW_WINDOW_STARTS) != 0 && mew_name_is(&w->start, f->name) ? MEW_WINDOW_STARTS :
			  0u) |
			 ((w->roles & MEW_WINDOW_STOPS) != 0 && mew_name_is(&w->stop, f->name) ? MEW_WINDOW_STOPS : 0u);
	uintptr_t entry = (uintptr_t)f->address + s->module->bias;
	const char *why = "the processor chooses one of several codes for it (ifunc)";
	struct mew_probe *p;

	if (roles == 0 || entry < s->module->lo || entry >= s->module->hi || f->bytes > s->module->hi - entry)
		return true;
	p = probe_at(w, entry);
	if (p != NULL) { /* another name of it */
		count(w, roles & ~p->roles);
		p->roles |= roles;
		return true;
	}
	if (w->nprobes == MEW_WINDOW_PROBES)
		why = "there are too many functions of that name";
	else if (!f->is_chosen)
		p = mew_probe_place(entry, (size_t)f->bytes, mew_window_hit, w, &why);
	if (p != NULL)
		keep(w, p, roles);
	else
		say_why(w, roles, f, why);
	return true;
}

/* --- all files ---------------------------------------------------------------------------------------------------- */

static bool is_own(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL || strncmp(slash, "/libmew_hooks", 13) == 0 ||
	       strncmp(slash, "/libmew_threads", 15) == 0 ||
	       strncmp(slash, "/libmew_record", 14) == 0;
}

/* A file that was closed takes its probes with it. */
static void forget_closed(struct mew_window *w, const struct mew_modules *m)
{
	size_t n = 0, keeps = 0;

	for (size_t i = 0; i < w->nseen; i++) {
		const struct mew_module_map *map = mew_modules_find(m, w->seen[i].lo);

		if (map != NULL && !map->gone && map->lo == w->seen[i].lo)
			w->seen[n++] = w->seen[i];
	}
	w->nseen = n;
	for (unsigned i = 0; i < w->nprobes; i++) {
		const struct mew_module_map *map = mew_modules_find(m, w->probes[i]->entry);

		if (map != NULL && !map->gone)
			w->probes[keeps++] = w->probes[i];
	}
	if (keeps == w->nprobes)
		return;
	__atomic_store_n(&w->nprobes, (unsigned)keeps, __ATOMIC_SEQ_CST);
	mew_window_arm(w, 0); /* who was arming at this moment may have missed one that moved down */
}

static bool was_seen(const struct mew_window *w, uintptr_t lo)
{
	for (size_t i = 0; i < w->nseen; i++)
		if (w->seen[i].lo == lo)
			return true;
	return false;
}

static void search(void)
{
	const struct mew_modules *m = mew_modules_current();
	struct mew_window *w = window;

	if (w == NULL || m == NULL || w->pid != (int)getpid() ||
	    __atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == MEW_WINDOW_CLOSED)
		return;
	while (__atomic_exchange_n(&w->lock, 1u, __ATOMIC_ACQUIRE))
		(void)sched_yield();
	m = mew_modules_current();
	forget_closed(w, m);
	for (size_t i = 0; i < m->n && w->nseen < MEW_WINDOW_SEEN; i++) {
		struct search s = { w, &m->map[i] };

		if (m->map[i].gone || was_seen(w, m->map[i].lo))
			continue;
		w->seen[w->nseen++].lo = m->map[i].lo;
		if (!is_own(m->map[i].path))
			(void)mew_elf_functions(m->map[i].path, m->map[i].build_id, look_at, &s);
	}
	__atomic_store_n(&w->lock, 0u, __ATOMIC_RELEASE);
}

/* --- beginning ---------------------------------------------------------------------------------------------------- */

static struct mew_window *make(const struct mew_record_orders *o)
{
	bool starts = o->start_on[0] != '\0', stops = o->stop_on[0] != '\0';
	struct mew_window *w = starts || stops ? mew_os_map(sizeof *w) : NULL;

	if (w == NULL)
		return NULL;
	if ((starts && !mew_name_prepare(&w->start, o->start_on)) ||
	    (stops && !mew_name_prepare(&w->stop, o->stop_on))) {
		mew_os_unmap(w, sizeof *w);
		return NULL;
	}
	w->roles = (starts ? MEW_WINDOW_STARTS : 0u) | (stops ? MEW_WINDOW_STOPS : 0u);
	w->state = starts ? MEW_WINDOW_WAITS : MEW_WINDOW_OPEN;
	return w;
}

/* Code that was changed in the parent is changed here too. */
static void take_over(struct mew_window *w)
{
	bool was_open = w->state == MEW_WINDOW_OPEN && (w->roles & MEW_WINDOW_STARTS) != 0;

	w->lock = 0;
	if (w->state == MEW_WINDOW_CLOSED)
		w->state = (w->roles & MEW_WINDOW_STARTS) != 0 ? MEW_WINDOW_WAITS : MEW_WINDOW_OPEN;
	if (was_open) {
		w->root->start.at_ns = w->root->opened_ns;
		w->root->start.at_cpu_ns = w->root->opened_cpu_ns;
		if (w->has_memory)
			mew_memory_open_window();
	}
	for (unsigned i = 0; i < w->nprobes; i++)
		count(w, w->probes[i]->roles);
	mew_window_arm(w, 0);
}

struct mew_window *mew_window_begin(struct mew_window *w, const struct mew_record_orders *o,
				    struct mew_record_root *root, bool has_memory)
{
	bool first = w == NULL;

	if (first)
		w = make(o);
	if (w == NULL)
		return NULL;
	w->root = root;
	w->pid = (int)getpid();
	w->has_memory = has_memory;
	if (!first)
		take_over(w);
	window = w;
	mew_modules_on_change(search);
	(void)mew_modules_renew(); /* without memory for a snapshot there is nothing to search */
	search();
	return w;
}
