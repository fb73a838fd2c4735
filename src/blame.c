/*
 * blame.c - one function out of many places: equal ones are added up, and get a label that people can find.
 * Layer L3. One thread, after symbolising.
 */
#include "config.h"

#include "blame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolise.h"

struct mew_blame mew_blame_at(const struct mew_model *m, size_t location, uint32_t line)
{
	struct mew_blame b = { .name = "unknown", .file = "", .module = MEW_NO_MODULE };
	const struct mew_location *l;
	const struct mew_function *f;

	if (location >= m->nlocations)
		return b;
	l = &m->locations[location];
	b.module = l->module;
	if (line >= l->nlines) {
		b.start = l->start;
		return b;
	}
	f = &m->functions[m->lines[l->first_line + line].function];
	return (struct mew_blame){ .name = f->name, .file = f->file, .module = f->module, .line = f->line };
}

int mew_blame_order(const void *a, const void *b)
{
	const struct mew_blame *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order == 0)
		order = strcmp(x->file, y->file);
	if (order == 0 && x->file[0] == '\0' && x->module != y->module)
		order = x->module < y->module ? -1 : 1;
	if (order == 0 && x->start != y->start)
		order = x->start < y->start ? -1 : 1;
	return order;
}

static int by_definition(const void *a, const void *b)
{
	const struct mew_blame *x = a, *y = b;
	int order = mew_blame_order(a, b);

	return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

/* Merge what is equal in `order`, which it is sorted by; the heaviest of the equal ones lends its line. */
static size_t merge(struct mew_blame *all, size_t n, int (*order)(const void *, const void *))
{
	size_t kept = 0;

	for (size_t i = 0, end; i < n; i = end) {
		struct mew_blame best = all[i];
		uint64_t sums[MEW_BLAME_SUMS] = { 0 };

		for (end = i; end < n && order(&all[i], &all[end]) == 0; end++) {
			for (size_t k = 0; k < MEW_BLAME_SUMS; k++)
				sums[k] += all[end].sums[k];
			if (all[end].sums[0] > best.sums[0])
				best = all[end];
		}
		memcpy(best.sums, sums, sizeof sums);
		all[kept++] = best;
	}
	return kept;
}

size_t mew_blame_merge(struct mew_blame *all, size_t n)
{
	if (n == 0)
		return 0;
	qsort(all, n, sizeof *all, by_definition);
	return merge(all, merge(all, n, by_definition), mew_blame_order);
}

char *mew_blame_label(const struct mew_model *m, const struct mew_blame *b, int longest)
{
	const char *place = b->file[0] != '\0' ? mew_base_name(b->file) : mew_module_name(m, b->module);
	char *text;
	int n;

	if (b->start != 0)
		n = asprintf(&text, "%s+0x%llx", place, (unsigned long long)b->start);
	else if (b->file[0] != '\0' && b->line != 0)
		n = asprintf(&text, "%.*s (%s:%u)", longest, b->name, place, b->line);
	else if (place[0] != '\0')
		n = asprintf(&text, "%.*s (%s)", longest, b->name, place);
	else
		n = asprintf(&text, "%.*s", longest, b->name);
	return n < 0 ? NULL : text;
}
