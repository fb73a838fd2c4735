/*
 * gate_growth.c - which functions of a case that got worse take more time, or allocate more, than they did in the base.
 * Layer L6. Reads the two sealed profiles.
 */
#include "config.h"

#include "gate_explain.h"

#include "analyse.h"
#include "gate_files.h"
#include "textual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CASES 10u
#define MOST_FUNCTIONS 5u /* of a case and kind */

struct growth {
	const char *function;
	double base, head; /* of one iteration */
	bool at_most;      /* the base has more functions than it lists: this is no more than one of the others can take */
};

/* "name (file.c:12)" up to its last blank and bracket; C++ names have such before it. */
static size_t name_length(const char *function)
{
	size_t n = 0;

	for (const char *at = strstr(function, " ("); at != NULL; at = strstr(at + 1, " ("))
		n = (size_t)(at - function);
	return n > 0 ? n : strlen(function);
}

/* The same up to the line, which edits move. */
static size_t place_length(const char *function)
{
	const char *colon = strrchr(function + name_length(function), ':');

	return colon != NULL ? (size_t)(colon - function) : strlen(function);
}

enum likeness { ANOTHER, SAME_NAME, SAME_PLACE };

/* A static function may have namesakes in other files: by its name alone it is found only where its file has none. */
static enum likeness likeness(const char *a, const char *b)
{
	size_t name = name_length(a), place = place_length(a);

	if (name != name_length(b) || memcmp(a, b, name) != 0)
		return ANOTHER;
	return place == place_length(b) && memcmp(a, b, place) == 0 ? SAME_PLACE : SAME_NAME;
}

/* The figure of the entry of a list that is most like the wanted function; of equal ones the first. */
struct found {
	enum likeness like;
	double value;
};

static void offer(struct found *f, const char *wanted, const char *function, double value)
{
	enum likeness like = likeness(function, wanted);

	if (like > f->like)
		*f = (struct found){ like, value };
}

static int by_growth(const void *a, const void *b)
{
	double x = ((const struct growth *)a)->head - ((const struct growth *)a)->base;
	double y = ((const struct growth *)b)->head - ((const struct growth *)b)->base;

	return x > y ? -1 : x < y;
}

/* --- time ------------------------------------------------------------------------------------------------------- */

static double share_in(const struct mew_cpu_case *row, const char *function, bool *at_most)
{
	struct found found = { .like = ANOTHER };

	for (size_t i = 0; i < row->nby_function; i++)
		offer(&found, function, row->by_function[i].function, row->by_function[i].share);
	if (found.like > ANOTHER)
		return found.value;
	*at_most = row->nby_function >= MEW_MOST_BY_FUNCTION;
	return *at_most ? row->by_function[row->nby_function - 1].share : 0;
}

static bool has_times(const struct mew_cpu_case *base, const struct mew_cpu_case *head, const struct mew_verdict *time)
{
	return base->status == MEW_OK && head->status == MEW_OK && base->sample_count > 0 && head->sample_count > 0 &&
	       time != NULL && isfinite(time->base) && isfinite(time->head);
}

/*
 * Shares of samples, of the time that the pairs measured: a profiler's own time has what it costs and, by the wall
 * clock, what other programs took. What two standard errors of sampling explain is no growth.
 */
static size_t time_growth(const struct mew_cpu_case *base, const struct mew_cpu_case *head,
			  const struct mew_verdict *time, struct growth *out, size_t most)
{
	size_t n = 0;

	for (size_t i = 0; i < head->nby_function && n < most; i++) {
		const struct mew_cpu_function *f = &head->by_function[i];
		struct growth g = { .function = f->function, .head = f->share * time->head };
		double before = share_in(base, f->function, &g.at_most);
		double error = hypot(time->base * sqrt(before * (1 - before) / (double)base->sample_count),
				     time->head * sqrt(f->share * (1 - f->share) / (double)head->sample_count));

		g.base = before * time->base;
		if (g.head - g.base > 2 * error)
			out[n++] = g;
	}
	return n;
}

/* --- allocations ------------------------------------------------------------------------------------------------ */

/* The list has the largest peaks, so what it leaves out can have all bytes that its own functions do not. */
static double bytes_in(const struct mew_memory_case *row, const char *function, bool *at_most)
{
	double others = (double)row->cumulative_bytes;
	struct found found = { .like = ANOTHER };

	for (size_t i = 0; i < row->nby_function; i++) {
		double bytes = (double)row->by_function[i].cumulative_bytes;

		others -= bytes;
		offer(&found, function, row->by_function[i].function, bytes);
	}
	if (found.like > ANOTHER)
		return found.value;
	*at_most = row->nby_function >= MEW_MOST_BY_FUNCTION;
	return *at_most ? fmax(others, 0) : 0;
}

static bool has_bytes(const struct mew_memory_case *base, const struct mew_memory_case *head)
{
	return base->status == MEW_OK && head->status == MEW_OK && base->iterations > 0 && head->iterations > 0;
}

static size_t bytes_growth(const struct mew_memory_case *base, const struct mew_memory_case *head, struct growth *out,
			   size_t most)
{
	size_t n = 0;

	for (size_t i = 0; i < head->nby_function && n < most; i++) {
		const struct mew_memory_function *f = &head->by_function[i];
		struct growth g = { .function = f->function,
				    .head = (double)f->cumulative_bytes / (double)head->iterations };

		g.base = bytes_in(base, f->function, &g.at_most) / (double)base->iterations;
		if (g.head > g.base)
			out[n++] = g;
	}
	return n;
}

/* --- Markdown --------------------------------------------------------------------------------------------------- */

static void put_number(struct mew_writer *w, double value)
{
	char text[MEW_NUMBER_BYTES];

	mew_text_number(text, value, 4, true);
	mew_write_text(w, text);
}

struct table { /* as far as it has room */
	struct mew_writer *w;
	uint64_t most; /* bytes of w */
	bool begun, full;
	size_t compared; /* figures of cases that both sides have */
};

static void put_row(struct table *t, const char *key, const char *what, const struct growth *g)
{
	struct mew_writer row;

	mew_writer_memory(&row);
	if (!t->begun)
		mew_write_text(&row, "Functions that take more by themselves than they did (of time their share of the "
				     "samples):\n\n"
				     "| case | function | | base | head | more |\n|---|---|---|---:|---:|---:|\n");
	mew_write_text(&row, "| ");
	mew_gate_put_escaped(&row, key);
	mew_write_text(&row, " | ");
	mew_gate_put_escaped(&row, g->function);
	mew_writef(&row, " | %s | %s", what, g->at_most ? "at most " : "");
	put_number(&row, g->base);
	mew_write_text(&row, " | ");
	put_number(&row, g->head);
	mew_writef(&row, " | %s+", g->at_most ? "at least " : "");
	put_number(&row, g->head - g->base);
	mew_write_text(&row, " |\n");
	t->full = !mew_gate_put_piece(t->w, &row, t->most);
	t->begun |= !t->full;
}

static void put_rows(struct table *t, const char *key, const char *what, struct growth *list, size_t n)
{
	qsort(list, n, sizeof *list, by_growth);
	for (size_t i = 0; i < n && i < MOST_FUNCTIONS && !t->full; i++)
		put_row(t, key, what, &list[i]);
}

static bool has_kind(const struct mew_case *a, const struct mew_case *b, enum mew_kind kind)
{
	return mew_case_has(a, kind) && mew_case_has(b, kind);
}

/* The same case of both profiles. False: it has none. */
static bool find_profiles(const struct mew_gate *g, const struct mew_gate_case *c,
			  const struct mew_case *found[MEW_SIDES])
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		found[side] = mew_model_find(g->profiles[side], c->key);
	return found[MEW_BASE] != NULL && found[MEW_HEAD] != NULL;
}

static void put_case(struct table *t, const struct mew_gate_case *c, const struct mew_case *base,
		     const struct mew_case *head)
{
	const struct mew_verdict *time = mew_gate_time(c);
	struct growth list[64] = { { .function = NULL } };

	if (has_kind(base, head, MEW_KIND_CPU) && has_times(&base->cpu, &head->cpu, time)) {
		t->compared++;
		put_rows(t, c->key, "ns/iteration", list,
			 time_growth(&base->cpu, &head->cpu, time, list, MEW_COUNTOF(list)));
	}
	if (has_kind(base, head, MEW_KIND_MEMORY) && has_bytes(&base->memory, &head->memory)) {
		t->compared++;
		put_rows(t, c->key, "bytes/iteration", list,
			 bytes_growth(&base->memory, &head->memory, list, MEW_COUNTOF(list)));
	}
}

/* Returns how many of the profiled cases were left out. */
static size_t put_cases(struct table *t, const struct mew_gate *g)
{
	size_t shown = 0, more = 0;

	for (size_t i = 0; i < g->ncases; i++) {
		const struct mew_case *found[MEW_SIDES];

		if (!find_profiles(g, &g->cases[i], found))
			continue;
		if (shown == MOST_CASES || t->full) {
			more++;
			continue;
		}
		put_case(t, &g->cases[i], found[MEW_BASE], found[MEW_HEAD]);
		shown++;
	}
	return more;
}

static void put_page(struct mew_writer *w, const struct mew_gate *g)
{
	if (g->options->html == NULL) {
		mew_write_text(w, "\n[Flame graphs of the difference](" MEW_GATE_PAGE "), among the files of this run");
	} else {
		mew_write_text(w, "\nFlame graphs of the difference: ");
		mew_gate_put_escaped(w, g->html);
	}
	if (g->unexplained[0] != '\0') {
		mew_write_text(w, "; ");
		mew_gate_put_escaped(w, g->unexplained);
	}
	mew_write_text(w, ". ");
}

void mew_gate_put_growth(struct mew_writer *w, const struct mew_gate *g, uint64_t most)
{
	struct table t = { .w = w, .most = w->total + most };
	size_t more;

	if (g->html[0] == '\0') {
		if (g->unexplained[0] != '\0') {
			mew_write_text(w, "\nNo flame graphs: ");
			mew_gate_put_escaped(w, g->unexplained);
			mew_write_text(w, ".\n");
		}
		return;
	}
	put_page(w, g);
	more = put_cases(&t, g);
	if (t.full && !t.begun)
		mew_write_text(w, "The functions that take more have no room here.\n");
	else if (!t.begun)
		mew_write_text(w, t.compared > 0 ? "No single function takes more than chance explains.\n" :
						   "The functions could not be compared.\n");
	if (more > 0)
		mew_writef(w, "\n%zu more case%s in the page alone.\n", more, more == 1 ? " is" : "s are");
}
