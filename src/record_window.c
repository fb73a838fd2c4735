/*
 * record_window.c - see record_window.h.
 * Layer L4. The command's thread, when the process is gone.
 */
#include "config.h"

#include "record_window.h"

#include <stdio.h>
#include <string.h>

#include "elf_names.h"
#include "modules.h"

static bool became_another(const struct mew_record_root *root)
{
	return root->ended_ns == 0 && root->became_ns != 0;
}

uint64_t mew_record_window_ended(const struct mew_record_root *root, uint64_t gone_ns)
{
	if (became_another(root))
		return root->became_ns;
	return root->ended_ns != 0 ? root->ended_ns : gone_ns;
}

void mew_record_window_of(const struct mew_record_root *root, uint64_t from_ns, uint64_t ended_ns,
			  struct mew_record_window *out)
{
	*out = (struct mew_record_window){ root->opened_ns, ended_ns, root->opened_cpu_ns, root->ended_cpu_ns, false, false };
	if (became_another(root))
		out->closed_cpu_ns = root->became_cpu_ns;
	if (from_ns > out->opened_ns) {
		out->opened_ns = from_ns;
		out->opened_cpu_ns = 0;
		out->is_late = true;
	}
	if (root->start.at_ns != 0) {
		out->opened_ns = root->start.at_ns;
		out->opened_cpu_ns = root->start.at_cpu_ns;
		out->is_late = root->start.at_ns > root->opened_ns;
	}
	if (root->stop.at_ns != 0) {
		out->closed_ns = root->stop.at_ns;
		out->closed_cpu_ns = root->stop.at_cpu_ns;
		out->is_early = true;
	}
	if (out->closed_ns < out->opened_ns)
		out->closed_ns = out->opened_ns;
}

bool mew_record_window_opened(const struct mew_record_root *root, const struct mew_record_orders *o)
{
	return o->start_on[0] == '\0' || root->start.at_ns != 0;
}

/* --- the closest name --------------------------------------------------------------------------------------------- */

struct closest {
	const char *wanted;
	unsigned distance; /* more than this is none */
	char name[MEW_NAME_BYTES], file[64];
	const char *path;
};

static bool compare(void *data, const struct mew_elf_function *f)
{
	struct closest *c = data;
	unsigned distance = mew_name_distance(c->wanted, f->name, c->distance - 1);
	const char *slash = strrchr(c->path, '/');

	if (distance >= c->distance)
		return true;
	c->distance = distance;
	(void)snprintf(c->name, sizeof c->name, "%.*s", (int)strcspn(f->name, "@"), f->name);
	(void)snprintf(c->file, sizeof c->file, "%s", slash != NULL ? slash + 1 : c->path);
	return distance > 1;
}

/* At most a third of the name may differ. */
static void find_closest(struct closest *c)
{
	const struct mew_modules *m = mew_modules_current();

	c->distance = (unsigned)strlen(c->wanted) / 3 + 1;
	for (size_t i = 0; m != NULL && i < m->n && c->distance > 1; i++) {
		c->path = m->map[i].path;
		if (strstr(c->path, "/libmew_") == NULL)
			(void)mew_elf_functions(c->path, m->map[i].build_id, compare, c);
	}
}

/* --- sentences ---------------------------------------------------------------------------------------------------- */

/* "--start-on f: ...": why the function was not met. */
static int say_missed(char *text, size_t size, const char *flag, const char *function,
		      const struct mew_record_edge *edge)
{
	struct closest c = { .wanted = function };

	if (edge->watched > 0)
		return snprintf(text, size, "%s %.80s: it was not entered", flag, function);
	if (edge->why[0] != '\0')
		return snprintf(text, size, "%s %.80s cannot be watched (%.150s)", flag, function, edge->why);
	find_closest(&c);
	if (c.name[0] != '\0')
		return snprintf(text, size,
				"%s %.80s: no file of the program has that function; the closest is %.80s of %s (one "
				"that is inlined everywhere has no code of its own)", flag, function, c.name, c.file);
	return snprintf(text, size,
			"%s %.80s: no file of the program has that function; one that is inlined everywhere, or whose "
			"name was stripped, cannot be found", flag, function);
}

void mew_record_window_why(const struct mew_record_root *root, const struct mew_record_orders *o, char *text,
			   size_t size)
{
	int n;

	text[0] = '\0';
	if (!mew_record_window_opened(root, o)) {
		n = say_missed(text, size, "--start-on", o->start_on, &root->start);
		if (n > 0 && (size_t)n < size)
			(void)snprintf(text + n, size - (size_t)n, ", so the window never opened");
	} else if (o->stop_on[0] != '\0' && root->stop.at_ns == 0) {
		n = say_missed(text, size, "--stop-on", o->stop_on, &root->stop);
		if (n > 0 && (size_t)n < size)
			(void)snprintf(text + n, size - (size_t)n, ", so the window lasts to the end");
	}
}
