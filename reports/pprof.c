/*
 * pprof.c - profile.proto in gzip, one file per case and kind: what `go tool pprof` and the services around it read.
 * Layer L5. Reads a sealed model; the same model gives the same bytes.
 *
 * The message is Profile of github.com/google/pprof, proto/profile.proto; numbers of fields stand in the enums below.
 *
 *   cpu      samples/count and wall/nanoseconds (cpu/nanoseconds under --clock cpu), which is shown first; a sample for
 *            each stack, thread and state of the thread, with the labels case, thread and, where it was not on a
 *            processor, state=blocked
 *   memory   alloc_objects/count, alloc_space/bytes, inuse_space/bytes (alive at the end) and peak_space/bytes (alive at
 *            the high-water mark), which is shown first; label case. How many blocks of a stack were alive is not in
 *            the model, so there is no inuse_objects.
 *
 * Values are whole and exact as far as mew is: nothing is left to scale. A location is one place of the model, with its
 * inlined functions, innermost first; so readers keep them apart from their callers. Addresses of a process mean
 * nothing to another: the modules are laid out one behind the other, at each a place has the offset it has in its
 * module. Names are whole in the file, so mappings say that nothing is left to look up.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deflate.h"
#include "error.h"
#include "mew/report.h"
#include "pack.h"
#include "stacks.h"
#include "strings.h"
#include "textual.h"

#define FIRST_ADDRESS ((uint64_t)1 << 28)
#define PAGE ((uint64_t)4096)
#define THREAD_BYTES 12
#define LARGEST ((uint64_t)1 << 44) /* of a module; what claims more is no address space of this machine */

enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION, PROFILE_FUNCTION,
       PROFILE_STRING, PROFILE_DURATION = 10, PROFILE_PERIOD_TYPE, PROFILE_PERIOD, PROFILE_COMMENT, PROFILE_DEFAULT };
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT };
enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_BUILD_ID, MAPPING_FUNCTIONS,
       MAPPING_FILES, MAPPING_LINES, MAPPING_INLINES };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, FUNCTION_LINE };

struct sample_type {
	const char *name, *unit;
	unsigned value; /* enum mew_stack_value */
};

static const struct sample_type memory_types[] = {
	{ "alloc_objects", "count", MEW_STACK_ALLOCATIONS },
	{ "alloc_space", "bytes", MEW_STACK_CUMULATIVE },
	{ "inuse_space", "bytes", MEW_STACK_NET },
	{ "peak_space", "bytes", MEW_STACK_PEAK },
};

struct ids { /* of messages, from 1 in the order of first use; by number in the model, 0: not in the file */
	uint32_t *of, *used; /* and back: used[id - 1] */
	uint32_t n;
};

struct profile {
	const struct mew_model *m;
	const struct mew_case *c;
	enum mew_kind kind;
	const char *title;
	struct sample_type types[MEW_STACK_VALUES];
	size_t ntypes;
	struct mew_shown_functions shown;
	struct mew_strings strings;
	struct ids modules, locations, functions;
	uint64_t *starts, *limits; /* of modules, by number in the model; a limit of 0: not laid out */
	char (*threads)[THREAD_BYTES]; /* names, one for each sum */
	char **facts;                  /* texts, one for each fact of the model */
	struct mew_pack out, message, part;
};

/* --- messages --------------------------------------------------------------------------------------------------- */

/* Zero is what a field has that is not there. */
static void put_number(struct mew_pack *p, unsigned field, uint64_t value)
{
	if (value == 0)
		return;
	mew_pack_number(p, (uint64_t)field << 3);
	mew_pack_number(p, value);
}

static void put_bytes(struct mew_pack *p, unsigned field, const void *data, size_t bytes)
{
	mew_pack_number(p, (uint64_t)field << 3 | 2);
	mew_pack_number(p, bytes);
	mew_pack_bytes(p, data, bytes);
}

/* Append a message to the one it is part of, and empty it for the next. */
static void put_message(struct mew_pack *p, unsigned field, struct mew_pack *message)
{
	put_bytes(p, field, message->data, message->used);
	p->failed = p->failed || message->failed;
	message->used = 0;
}

static void put_text(struct profile *p, struct mew_pack *to, unsigned field, const char *text)
{
	put_number(to, field, mew_strings_add(&p->strings, text));
}

static uint32_t id_of(struct ids *ids, uint32_t number)
{
	if (ids->of[number] == 0) {
		ids->used[ids->n++] = number;
		ids->of[number] = ids->n;
	}
	return ids->of[number];
}

static bool make_ids(struct ids *ids, size_t n)
{
	ids->of = calloc(n + 1, sizeof *ids->of);
	ids->used = calloc(n + 1, sizeof *ids->used);
	return ids->of != NULL && ids->used != NULL;
}

/* --- samples ---------------------------------------------------------------------------------------------------- */

static void put_type(struct profile *p, unsigned field, const char *name, const char *unit)
{
	put_text(p, &p->message, TYPE_TYPE, name);
	put_text(p, &p->message, TYPE_UNIT, unit);
	put_message(&p->out, field, &p->message);
}

static void put_label(struct profile *p, const char *key, const char *text)
{
	put_text(p, &p->part, LABEL_KEY, key);
	put_text(p, &p->part, LABEL_TEXT, text);
	put_message(&p->message, SAMPLE_LABEL, &p->part);
}

/* The location after those of the model stands for the stack that is missing. */
static void put_sample(struct profile *p, const struct mew_stack_sum *sum, const char *thread)
{
	const struct mew_model *m = p->m;

	if (sum->stack == MEW_NO_STACK)
		mew_pack_number(&p->part, id_of(&p->locations, (uint32_t)m->nlocations));
	else
		for (uint32_t i = 0; i < m->stacks[sum->stack].depth; i++)
			mew_pack_number(&p->part,
					id_of(&p->locations, m->frames[m->stacks[sum->stack].first + i]));
	put_message(&p->message, SAMPLE_LOCATION, &p->part);
	for (size_t i = 0; i < p->ntypes; i++)
		mew_pack_number(&p->part, sum->values[p->types[i].value]);
	put_message(&p->message, SAMPLE_VALUE, &p->part);
	put_label(p, "case", p->title);
	if (thread != NULL)
		put_label(p, "thread", thread);
	if (sum->blocked)
		put_label(p, "state", "blocked");
	put_message(&p->out, PROFILE_SAMPLE, &p->message);
}

static bool counts_nothing(const struct profile *p, const struct mew_stack_sum *sum)
{
	for (size_t i = 0; i < p->ntypes; i++)
		if (sum->values[p->types[i].value] != 0)
			return false;
	return true;
}

/* The table of strings borrows the names of threads, which the caller frees when the file is done. */
static void put_samples(struct profile *p)
{
	size_t n = 0;
	struct mew_stack_sum *sums = mew_stack_sums(p->m, p->c, p->kind, true, &n);

	p->threads = calloc(n + 1, sizeof *p->threads);
	if (sums == NULL || p->threads == NULL)
		p->out.failed = true;
	for (size_t i = 0; !p->out.failed && i < n; i++) {
		if (counts_nothing(p, &sums[i]))
			continue;
		(void)snprintf(p->threads[i], sizeof p->threads[i], "%u", sums[i].thread);
		put_sample(p, &sums[i], p->kind == MEW_KIND_CPU ? p->threads[i] : NULL);
	}
	free(sums);
}

/* --- places ----------------------------------------------------------------------------------------------------- */

static void note_place(struct profile *p, uint32_t location)
{
	const struct mew_location *l = &p->m->locations[location];

	if (l->module >= p->m->nmodules)
		return;
	(void)id_of(&p->modules, l->module);
	if (l->offset < LARGEST && l->offset >= p->limits[l->module])
		p->limits[l->module] = l->offset + 1;
}

/* Lay out the modules that the locations are in, the program first: readers take the first for it. */
static void lay_out(struct profile *p)
{
	const struct mew_model *m = p->m;
	uint32_t program = mew_stack_program(m, p->c);
	uint64_t at = FIRST_ADDRESS;

	if (program < m->nmodules)
		(void)id_of(&p->modules, program);
	for (uint32_t i = 0; i < p->locations.n; i++)
		if (p->locations.used[i] < m->nlocations)
			note_place(p, p->locations.used[i]);
	for (uint32_t i = 0; i < p->modules.n; i++) {
		uint32_t module = p->modules.used[i];
		uint64_t span = p->limits[module];

		if (m->modules[module].size > span && m->modules[module].size < LARGEST)
			span = m->modules[module].size;
		if (span == 0 || at > UINT64_MAX - 2 * LARGEST) {
			p->limits[module] = 0;
			continue;
		}
		p->starts[module] = at;
		p->limits[module] = at + span;
		at = (at + span + PAGE) / PAGE * PAGE;
	}
}

static void put_mappings(struct profile *p)
{
	for (uint32_t i = 0; i < p->modules.n; i++) {
		const struct mew_module *module = &p->m->modules[p->modules.used[i]];

		put_number(&p->message, MAPPING_ID, i + 1);
		put_number(&p->message, MAPPING_START, p->starts[p->modules.used[i]]);
		put_number(&p->message, MAPPING_LIMIT, p->limits[p->modules.used[i]]);
		put_text(p, &p->message, MAPPING_FILE, module->path);
		put_text(p, &p->message, MAPPING_BUILD_ID, module->build_id);
		for (unsigned field = MAPPING_FUNCTIONS; field <= MAPPING_INLINES; field++)
			put_number(&p->message, field, 1);
		put_message(&p->out, PROFILE_MAPPING, &p->message);
	}
}

static void put_line(struct profile *p, uint32_t function, uint32_t line)
{
	put_number(&p->part, LINE_FUNCTION, id_of(&p->functions, function));
	put_number(&p->part, LINE_LINE, line);
	put_message(&p->message, LOCATION_LINE, &p->part);
}

static void put_place(struct profile *p, const struct mew_location *l)
{
	bool laid_out = l->module < p->m->nmodules && p->limits[l->module] != 0 && l->offset < LARGEST;

	if (laid_out)
		put_number(&p->message, LOCATION_MAPPING, p->modules.of[l->module]);
	put_number(&p->message, LOCATION_ADDRESS, laid_out ? p->starts[l->module] + l->offset : l->offset);
}

static void put_locations(struct profile *p)
{
	const struct mew_model *m = p->m;

	for (uint32_t i = 0; i < p->locations.n; i++) {
		uint32_t number = p->locations.used[i];
		const struct mew_location *l = number < m->nlocations ? &m->locations[number] : NULL;

		put_number(&p->message, LOCATION_ID, i + 1);
		if (l != NULL)
			put_place(p, l);
		if (l == NULL || l->nlines == 0)
			put_line(p, l == NULL ? p->shown.missing : p->shown.of_location[number], 0);
		for (uint32_t k = 0; l != NULL && k < l->nlines; k++)
			put_line(p, p->shown.of_function[m->lines[l->first_line + k].function],
				 m->lines[l->first_line + k].line);
		put_message(&p->out, PROFILE_LOCATION, &p->message);
	}
}

static void put_functions(struct profile *p)
{
	for (uint32_t i = 0; i < p->functions.n; i++) {
		const struct mew_shown_function *f = &p->shown.all[p->functions.used[i]];

		put_number(&p->message, FUNCTION_ID, i + 1);
		put_text(p, &p->message, FUNCTION_NAME, f->name);
		put_text(p, &p->message, FUNCTION_SYSTEM_NAME, f->name);
		put_text(p, &p->message, FUNCTION_FILE, f->file);
		put_number(&p->message, FUNCTION_LINE, f->line);
		put_message(&p->out, PROFILE_FUNCTION, &p->message);
	}
}

/* --- the file --------------------------------------------------------------------------------------------------- */

static void choose_types(struct profile *p)
{
	if (p->kind == MEW_KIND_MEMORY) {
		memcpy(p->types, memory_types, sizeof memory_types);
		p->ntypes = MEW_COUNTOF(memory_types);
		return;
	}
	p->types[0] = (struct sample_type){ "samples", "count", MEW_STACK_SAMPLES };
	p->types[1] = (struct sample_type){ mew_stack_clock(p->c), "nanoseconds", MEW_STACK_WEIGHT };
	p->ntypes = 2;
}

/* What one sample stands for: the interval that was delivered; each byte where all of them are counted. */
static void put_period(struct profile *p)
{
	const struct mew_cpu_case *cpu = &p->c->cpu;
	const struct mew_row_head *row = (const struct mew_row_head *)cpu;
	uint64_t period = 1;

	if (p->kind == MEW_KIND_CPU) {
		period = mew_stack_interval_ns(p->c);
		if (mew_row_has(row, MEW_FIG_WALL_TIME))
			put_number(&p->out, PROFILE_DURATION, mew_seconds_ns(cpu->wall_time));
		put_type(p, PROFILE_PERIOD_TYPE, p->types[1].name, "nanoseconds");
	} else {
		put_type(p, PROFILE_PERIOD_TYPE, "space", "bytes");
	}
	put_number(&p->out, PROFILE_PERIOD, period);
}

static void put_comment(struct profile *p, const char *text)
{
	mew_pack_number(&p->part, mew_strings_add(&p->strings, text));
}

/* The texts stay in p->facts for as long as the table of strings borrows them. */
static void put_comments(struct profile *p)
{
	put_comment(p, "mew " MEW_VERSION);
	put_comment(p, p->title);
	put_comment(p, p->kind == MEW_KIND_CPU ?
			       "values are the time that samples stand for; a late one stands for all that it missed" :
			       "values are counts of all blocks that the timing loop (or a recorded program) "
			       "allocated, not samples");
	put_comment(p, "modules are laid out one behind the other; addresses are not those of the process");
	for (size_t i = 0; p->facts != NULL && i < p->m->nfacts; i++)
		if (asprintf(&p->facts[i], "%s: %s", p->m->facts[i].name, p->m->facts[i].value) >= 0)
			put_comment(p, p->facts[i]);
		else
			p->facts[i] = NULL;
	put_message(&p->out, PROFILE_COMMENT, &p->part);
}

/* Valid UTF-8 in one line each; the first one is empty. */
static void put_strings(struct profile *p)
{
	struct mew_writer *w = malloc(sizeof *w);

	for (uint32_t i = 0; w != NULL && i < p->strings.n; i++) {
		size_t bytes = 0;
		char *text;

		mew_writer_memory(w);
		mew_write_name(w, p->strings.all[i], '\0', '\0');
		text = mew_writer_take(w, &bytes);
		if (text == NULL)
			p->out.failed = true;
		put_bytes(&p->out, PROFILE_STRING, text, bytes);
		free(text);
	}
	if (w == NULL)
		p->out.failed = true;
	free(w);
}

static void put_profile(struct profile *p)
{
	(void)mew_strings_add(&p->strings, "");
	choose_types(p);
	for (size_t i = 0; i < p->ntypes; i++)
		put_type(p, PROFILE_SAMPLE_TYPE, p->types[i].name, p->types[i].unit);
	put_samples(p);
	if (p->out.failed)
		return;
	lay_out(p);
	put_mappings(p);
	put_locations(p);
	put_functions(p);
	put_period(p);
	put_comments(p);
	put_text(p, &p->out, PROFILE_DEFAULT, p->types[p->ntypes - 1].name);
	put_strings(p);
	p->out.failed = p->out.failed || p->strings.failed;
}

static bool open_profile(struct profile *p)
{
	const struct mew_model *m = p->m;
	bool made = mew_shown_functions_init(&p->shown, m, p->c) == 0;

	made = made && make_ids(&p->modules, m->nmodules) && make_ids(&p->locations, m->nlocations + 1) &&
	       make_ids(&p->functions, p->shown.n);
	p->starts = calloc(m->nmodules + 1, sizeof *p->starts);
	p->limits = calloc(m->nmodules + 1, sizeof *p->limits);
	p->facts = calloc(m->nfacts + 1, sizeof *p->facts);
	return made && p->starts != NULL && p->limits != NULL && p->facts != NULL;
}

static void close_profile(struct profile *p)
{
	struct ids *const all[] = { &p->modules, &p->locations, &p->functions };

	for (size_t i = 0; i < MEW_COUNTOF(all); i++) {
		free(all[i]->of);
		free(all[i]->used);
	}
	for (size_t i = 0; p->facts != NULL && i < p->m->nfacts; i++)
		free(p->facts[i]);
	free(p->facts);
	free(p->threads);
	free(p->starts);
	free(p->limits);
	mew_pack_fini(&p->out);
	mew_pack_fini(&p->message);
	mew_pack_fini(&p->part);
	mew_strings_fini(&p->strings);
	mew_shown_functions_fini(&p->shown);
}

static int pack_profile(struct profile *p, struct mew_writer *w)
{
	size_t bytes;
	unsigned char *gzip;

	if (!open_profile(p))
		return -1;
	put_profile(p);
	gzip = p->out.failed ? NULL : mew_gzip(p->out.data, p->out.used, &bytes);
	if (gzip == NULL)
		return -1;
	mew_write_bytes(w, gzip, bytes);
	free(gzip);
	return 0;
}

static int write_pprof(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	struct profile *p;
	char *title;
	int failed = -1;

	if (in->only_case >= in->model->ncases ||
	    (in->only_kind != MEW_KIND_MEMORY && in->only_kind != MEW_KIND_CPU))
		return mew_error_set(err, MEW_E_INVALID,
				     "pprof profiles exist for the memory and cpu rows of a case; run with --memory or "
				     "--cpu");
	title = mew_case_title(in->model, &in->model->cases[in->only_case]);
	p = calloc(1, sizeof *p);
	if (p != NULL && title != NULL) {
		p->m = in->model;
		p->c = &in->model->cases[in->only_case];
		p->kind = (enum mew_kind)in->only_kind;
		p->title = title;
		failed = pack_profile(p, w);
		close_profile(p);
	}
	free(p);
	free(title);
	return failed == 0 ? MEW_OK :
			     mew_error_set(err, MEW_E_NOMEM, "the profile of %s could not be written: out of memory",
					   in->model->cases[in->only_case].key);
}

const struct mew_report mew_report_pprof = {
	.abi = MEW_REPORT_ABI,
	.name = "pprof",
	.help = "profiles for go tool pprof, a file per case and kind",
	.suffix = ".pb.gz",
	.shape = MEW_REPORT_DIRECTORY,
	.needs_symbols = 1,
	.write = write_pprof,
};
