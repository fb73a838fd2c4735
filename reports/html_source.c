/*
 * html_source.c - which source lines are hot, and their text.
 * Layer L5. Reads a sealed model and source files; the same model and files give the same bytes.
 */
#include "config.h"

#include "html_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "emit.h"

#define FILE_BYTES_MAX (8u << 20) /* a larger file is generated, nobody reads it */

struct hot { /* a line that stacks go through */
	const char *file;
	uint32_t line;
	double weight; /* sum over cases and kinds of its share in them */
};

struct text { /* a file, cut into lines */
	const char *name;
	char *bytes;
	char **lines;
	bool *wanted; /* by line, from 0 */
	size_t nlines;
};

struct sources {
	struct hot *hot;
	size_t nhot;
	struct text *texts;
	size_t ntexts;
	size_t room;
};

/* --- weights ---------------------------------------------------------------------------------------------------- */

static void add_stack(double *weights, const struct mew_model *m, uint32_t stack, double share)
{
	if (stack >= m->nstacks)
		return;
	for (uint32_t i = 0; i < m->stacks[stack].depth; i++)
		weights[m->frames[m->stacks[stack].first + i]] += share;
}

static void add_case(double *weights, const struct mew_model *m, const struct mew_case *c)
{
	double all = 0;

	for (size_t i = 0; i < c->nsamples; i++)
		all += (double)c->samples[i].weight_ns;
	for (size_t i = 0; i < c->nsamples && all > 0; i++)
		add_stack(weights, m, c->samples[i].stack, (double)c->samples[i].weight_ns / all);
	all = 0;
	for (size_t i = 0; i < c->nheap_stacks; i++)
		all += (double)c->heap_stacks[i].cumulative_bytes;
	for (size_t i = 0; i < c->nheap_stacks && all > 0; i++)
		add_stack(weights, m, c->heap_stacks[i].stack, (double)c->heap_stacks[i].cumulative_bytes / all);
}

static int by_weight(const void *a, const void *b)
{
	const struct hot *x = a, *y = b;
	int order = (x->weight < y->weight) - (x->weight > y->weight);

	if (order == 0)
		order = strcmp(x->file, y->file);
	return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static bool find_hot(struct sources *s, const struct mew_model *m)
{
	double *weights = calloc(m->nlocations + 1, sizeof *weights);

	s->hot = calloc(m->nlines + 1, sizeof *s->hot);
	if (weights == NULL || s->hot == NULL) {
		free(weights);
		return false;
	}
	for (size_t i = 0; i < m->ncases; i++)
		add_case(weights, m, &m->cases[i]);
	for (size_t i = 0; i < m->nlocations; i++) {
		const struct mew_location *l = &m->locations[i];

		for (uint32_t k = 0; k < l->nlines && weights[i] > 0; k++) {
			const struct mew_line *line = &m->lines[l->first_line + k];

			if (line->line != 0 && *m->functions[line->function].file != '\0')
				s->hot[s->nhot++] =
					(struct hot){ m->functions[line->function].file, line->line, weights[i] };
		}
	}
	free(weights);
	qsort(s->hot, s->nhot, sizeof *s->hot, by_weight);
	return true;
}

/* --- files ------------------------------------------------------------------------------------------------------ */

/* The bytes of a regular file of a sensible size, ended by a NUL; NULL when there is none. Taken by the caller. */
static char *bytes_of(const char *name, size_t *size)
{
	FILE *file = fopen(name, "re");
	struct stat st;
	char *bytes = NULL;

	if (file == NULL)
		return NULL;
	if (fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    st.st_size < (off_t)FILE_BYTES_MAX)
		bytes = malloc((size_t)st.st_size + 1);
	if (bytes != NULL) {
		*size = fread(bytes, 1, (size_t)st.st_size, file);
		bytes[*size] = '\0';
	}
	(void)fclose(file);
	return bytes;
}

static bool cut_lines(struct text *t, size_t size)
{
	size_t n = 1, at = 0;

	for (size_t i = 0; i < size; i++)
		n += t->bytes[i] == '\n';
	t->lines = calloc(n, sizeof *t->lines);
	t->wanted = calloc(n, sizeof *t->wanted);
	if (t->lines == NULL || t->wanted == NULL)
		return false;
	for (size_t i = 0; i <= size; i++) {
		if (i < size && t->bytes[i] != '\n' && t->bytes[i] != '\0')
			continue;
		t->bytes[i] = '\0';
		if (t->nlines < n)
			t->lines[t->nlines++] = t->bytes + at;
		at = i + 1;
	}
	return true;
}

/* The file of this name; one that cannot be read has no lines. NULL without memory. */
static struct text *text_of(struct sources *s, const char *name)
{
	struct text *t;
	size_t size = 0;

	for (size_t i = 0; i < s->ntexts; i++)
		if (strcmp(s->texts[i].name, name) == 0)
			return &s->texts[i];
	t = realloc(s->texts, (s->ntexts + 1) * sizeof *t);
	if (t == NULL)
		return NULL;
	s->texts = t;
	t = &s->texts[s->ntexts++];
	*t = (struct text){ .name = name, .bytes = bytes_of(name, &size) };
	return t->bytes == NULL || cut_lines(t, size) ? t : NULL;
}

/* Want a line and those around it; what is wanted already costs nothing. */
static bool want(struct sources *s, const struct hot *hot)
{
	struct text *t = text_of(s, hot->file);
	size_t first, end, bytes = 0;

	if (t == NULL)
		return false;
	if (hot->line > t->nlines)
		return true;
	first = hot->line > MEW_HTML_SOURCE_AROUND ? hot->line - MEW_HTML_SOURCE_AROUND - 1 : 0;
	end = hot->line + MEW_HTML_SOURCE_AROUND < t->nlines ? hot->line + MEW_HTML_SOURCE_AROUND : t->nlines;
	for (size_t i = first; i < end; i++)
		bytes += t->wanted[i] ? 0 : strlen(t->lines[i]) + 1;
	if (bytes > s->room)
		return true;
	s->room -= bytes;
	for (size_t i = first; i < end; i++)
		t->wanted[i] = true;
	return true;
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

static void put_text(struct mew_json *j, const struct text *t)
{
	mew_json_key(j, t->name);
	mew_json_array(j);
	for (size_t i = 0; i < t->nlines; i++) {
		if (!t->wanted[i])
			continue;
		mew_json_array(j);
		mew_json_u64(j, i + 1);
		mew_json_array(j);
		for (; i < t->nlines && t->wanted[i]; i++)
			mew_json_string(j, t->lines[i]);
		mew_json_array_end(j);
		mew_json_array_end(j);
	}
	mew_json_array_end(j);
}

static void fini(struct sources *s)
{
	for (size_t i = 0; i < s->ntexts; i++) {
		free(s->texts[i].bytes);
		free(s->texts[i].lines);
		free(s->texts[i].wanted);
	}
	free(s->texts);
	free(s->hot);
}

int mew_html_source(struct mew_writer *w, const struct mew_model *m)
{
	struct sources s = { .room = MEW_HTML_SOURCE_BYTES };
	struct mew_json j;
	bool done = find_hot(&s, m);

	for (size_t i = 0; i < s.nhot && done; i++)
		done = want(&s, &s.hot[i]);
	if (done) {
		mew_json_init(&j, w, 0);
		mew_json_object(&j);
		for (size_t i = 0; i < s.ntexts; i++)
			if (s.texts[i].nlines > 0)
				put_text(&j, &s.texts[i]);
		mew_json_object_end(&j);
	}
	fini(&s);
	return done ? 0 : -1;
}
