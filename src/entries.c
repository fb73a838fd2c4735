/*
 * entries.c - registration, validation of names, and the order of cases.
 * Layer L4. Registration runs in constructors; the rest on the caller's thread.
 */
#include "config.h"

#include "entries.h"

#include "error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mew_registration_ *registered, **registered_end = &registered;
static struct mew_hook_registration_ *hooks, **hooks_end = &hooks;

void mew_register_(struct mew_registration_ *node)
{
	*registered_end = node;
	registered_end = &node->next;
}

void mew_register_hook_(struct mew_hook_registration_ *node)
{
	*hooks_end = node;
	hooks_end = &node->next;
}

const struct mew_registration_ *mew_registrations(void)
{
	return registered;
}

const struct mew_entry *mew_entries(void)
{
	static struct mew_entry *all;
	struct mew_entry *fresh;
	size_t n = 0;

	for (struct mew_registration_ *r = registered; r != NULL; r = r->next)
		n++;
	fresh = calloc(n + 1, sizeof *fresh);
	if (fresh == NULL) {
		(void)mew_error_set(mew_error_thread(), MEW_E_NOMEM, "no memory for the list of %zu entries", n);
		return NULL;
	}
	n = 0;
	for (struct mew_registration_ *r = registered; r != NULL; r = r->next)
		fresh[n++] = *r->entry;
	free(all);
	all = fresh;
	return all;
}

const struct mew_hook *mew_hook_find(const char *name)
{
	for (struct mew_hook_registration_ *r = hooks; r != NULL; r = r->next)
		if (r->hook->name != NULL && strcmp(r->hook->name, name) == 0)
			return r->hook;
	return NULL;
}

void mew_hook_names(char *buffer, size_t size)
{
	size_t used = 0;

	buffer[0] = '\0';
	for (struct mew_hook_registration_ *r = hooks; r != NULL; r = r->next) {
		int n = snprintf(buffer + used, size - used, "%s%s", used == 0 ? "" : ", ", r->hook->name);

		if (n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
}

/* --- validation ------------------------------------------------------------------------------------------------- */

/* NULL, or what is wrong with a name or label. */
static const char *name_fault(const char *name)
{
	bool blank = true;

	for (const char *p = name; *p != '\0'; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return "has a control character in it";
		if (*p != ' ')
			blank = false;
	}
	if (blank)
		return "is blank";
	if (strstr(name, "/case:") != NULL)
		return "has \"/case:\" in it, which is how mew writes the cases of a family";
	return NULL;
}

struct named {
	const char *name;
	size_t number;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

/* The first of two that have the same name, side by side, or NULL. Sorts. */
static const struct named *find_twins(struct named *list, size_t n)
{
	qsort(list, n, sizeof *list, by_name);
	for (size_t i = 0; i + 1 < n; i++)
		if (strcmp(list[i].name, list[i + 1].name) == 0)
			return &list[i];
	return NULL;
}

static int check_labels(const struct mew_entry *e, size_t n, struct mew_error *err)
{
	struct named *labels = calloc(n, sizeof *labels);
	const struct named *twins;
	int status = MEW_OK;

	if (labels == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the cases of \"%s\"", e->name);
	for (size_t i = 0; i < n; i++)
		labels[i] = (struct named){ e->cases[i], i };
	twins = find_twins(labels, n);
	if (twins != NULL)
		status = mew_error_set(err, MEW_E_INVALID, "entry \"%s\": label \"%s\" stands twice; rename one",
				       e->name, twins->name);
	free(labels);
	return status;
}

static int check_cases(const struct mew_entry *e, struct mew_error *err)
{
	size_t n = 0;

	if (e->cases == NULL)
		return MEW_OK;
	if (e->cases[0] == NULL)
		return mew_error_set(err, MEW_E_INVALID,
				     "entry \"%s\": its family has no cases; give labels or no .cases", e->name);
	for (; e->cases[n] != NULL; n++) {
		const char *fault = name_fault(e->cases[n]);

		if (fault != NULL)
			return mew_error_set(err, MEW_E_INVALID, "entry \"%s\": label %zu %s; rename it", e->name, n,
					     fault);
	}
	return check_labels(e, n, err);
}

static int check_numbers(const struct mew_entry *e, struct mew_error *err)
{
	if (!isfinite(e->min_time) || e->min_time < 0)
		return mew_error_set(err, MEW_E_INVALID, "entry \"%s\": min_time must be 0 or more seconds", e->name);
	if (e->min_time > 0 && e->iterations > 0)
		return mew_error_set(err, MEW_E_INVALID, "entry \"%s\": give min_time or iterations, not both",
				     e->name);
	if (e->threads > 1024)
		return mew_error_set(err, MEW_E_INVALID, "entry \"%s\": %u threads are too many; at most 1024", e->name,
				     e->threads);
	for (size_t i = 0; i < MEW_COUNTOF(e->reserved_); i++)
		if (e->reserved_[i] != 0)
			return mew_error_set(err, MEW_E_INVALID,
					     "entry \"%s\" uses a member this library does not know: use a newer libmew", e->name);
	return MEW_OK;
}

static int check_entry(const struct mew_entry *all, size_t i, struct mew_error *err)
{
	const struct mew_entry *e = &all[i];
	const char *fault;
	int status;

	if (e->name == NULL)
		return mew_error_set(err, MEW_E_INVALID, "entry %zu has no name; give one, or end the array with {0}",
				     i);
	fault = name_fault(e->name);
	if (fault != NULL)
		return mew_error_set(err, MEW_E_INVALID, "entry %zu: its name \"%.80s\" %s; rename it", i,
				     strcmp(fault, "has a control character in it") == 0 ? "?" : e->name, fault);
	if (e->run == NULL)
		return mew_error_set(err, MEW_E_INVALID, "entry \"%s\" has no body; set .run", e->name);
	status = check_cases(e, err);
	return status != MEW_OK ? status : check_numbers(e, err);
}

static int check_names(const struct mew_entry *all, size_t n, struct mew_error *err)
{
	struct named *names = calloc(n, sizeof *names);
	const struct named *twins;
	int status = MEW_OK;

	if (names == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for %zu entries", n);
	for (size_t i = 0; i < n; i++)
		names[i] = (struct named){ all[i].name, i };
	twins = find_twins(names, n);
	if (twins != NULL)
		status = mew_error_set(err, MEW_E_INVALID,
				       "entry \"%s\" is there twice (numbers %zu and %zu); rename one",
				       twins->name, twins[0].number, twins[1].number);
	free(names);
	return status;
}

/* --- cases and their order -------------------------------------------------------------------------------------- */

static bool is_end(const struct mew_entry *e)
{
	return e->name == NULL && e->run == NULL && e->cases == NULL && e->arg == NULL;
}

static size_t count_cases(const struct mew_entry *e)
{
	size_t n = 0;

	if (e->cases == NULL)
		return 1;
	while (e->cases[n] != NULL)
		n++;
	return n;
}

/* The key of a case, to be freed; NULL without memory. */
static char *key_of(const struct mew_entry *e, size_t i)
{
	char *key;
	int made = e->cases != NULL ? asprintf(&key, "%s/case:%zu", e->name, i) : asprintf(&key, "%s", e->name);

	return made < 0 ? NULL : key;
}

static int add_cases(struct mew_catalogue *c, const struct mew_entry *e, struct mew_error *err)
{
	size_t n = count_cases(e);

	for (size_t i = 0; i < n; i++) {
		struct mew_item *item = &c->items[c->n];

		*item = (struct mew_item){ .entry = e, .key = key_of(e, i), .case_index = i,
					   .label = e->cases != NULL ? e->cases[i] : NULL };
		if (item->key == NULL)
			return mew_error_set(err, MEW_E_NOMEM, "no memory for the cases of \"%s\"", e->name);
		c->n++;
	}
	return MEW_OK;
}

/* Is `key` that of one of the family's cases? */
static bool has_key(const struct mew_entry *e, const char *key)
{
	size_t n = strncmp(key, e->name, strlen(e->name)) == 0 ? count_cases(e) : 0;
	bool found = false;

	for (size_t i = 0; i < n && !found; i++) {
		char *own = key_of(e, i);

		found = own != NULL && strcmp(own, key) == 0;
		free(own);
	}
	return found;
}

/* The entry that `after` names, by its name or by the key of one of its cases. */
static const struct mew_entry *find_after(const struct mew_entry *all, size_t n, const char *after)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].name, after) == 0 || has_key(&all[i], after))
			return &all[i];
	return NULL;
}

enum visit { UNSEEN, OPEN, DONE };

struct order {
	const struct mew_entry *all;
	size_t n;
	unsigned char *visits;
	struct mew_catalogue *out;
};

/* Depth first along `after`; each entry names at most one other, so the depth is bounded by n. */
static int place(struct order *o, size_t i, struct mew_error *err)
{
	const struct mew_entry *e = &o->all[i], *before;

	if (o->visits[i] == DONE)
		return MEW_OK;
	if (o->visits[i] == OPEN)
		return mew_error_set(err, MEW_E_INVALID,
				     "entry \"%s\": `after` runs in a circle through \"%s\"; break it",
				     e->name, e->after);
	o->visits[i] = OPEN;
	if (e->after != NULL) {
		int status;

		before = find_after(o->all, o->n, e->after);
		if (before == NULL)
			return mew_error_set(err, MEW_E_INVALID,
					     "entry \"%s\": `after` names \"%s\", which is not there",
					     e->name, e->after);
		status = place(o, (size_t)(before - o->all), err);
		if (status != MEW_OK)
			return status;
	}
	o->visits[i] = DONE;
	return add_cases(o->out, e, err);
}

int mew_catalogue_init(struct mew_catalogue *out, const struct mew_entry *entries, struct mew_error *err)
{
	struct order o = { .all = entries, .out = out };
	size_t cases = 0;
	int status = MEW_OK;

	*out = (struct mew_catalogue){ NULL, 0 };
	if (entries == NULL)
		return mew_error_set(err, MEW_E_INVALID, "no entries: the array is NULL");
	for (; !is_end(&entries[o.n]); o.n++) {
		status = check_entry(entries, o.n, err);
		if (status != MEW_OK)
			return status;
		cases += count_cases(&entries[o.n]);
	}
	if (o.n == 0)
		return mew_error_set(err, MEW_E_INVALID,
				     "no entries: register a case with MEW_BENCHMARK or fill the array");
	status = check_names(entries, o.n, err);
	if (status != MEW_OK)
		return status;
	out->items = calloc(cases + 1, sizeof *out->items);
	o.visits = calloc(o.n, 1);
	if (out->items == NULL || o.visits == NULL) {
		free(o.visits);
		free(out->items);
		*out = (struct mew_catalogue){ NULL, 0 };
		return mew_error_set(err, MEW_E_NOMEM, "no memory for %zu cases", cases);
	}
	for (size_t i = 0; i < o.n && status == MEW_OK; i++)
		status = place(&o, i, err);
	free(o.visits);
	if (status != MEW_OK)
		mew_catalogue_fini(out);
	return status;
}

void mew_catalogue_fini(struct mew_catalogue *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->items[i].key);
	free(c->items);
	*c = (struct mew_catalogue){ NULL, 0 };
}
