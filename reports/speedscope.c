/*
 * speedscope.c - speedscope's own file format: one file, a profile for each case and each figure of its stacks.
 * Layer L5. Reads a sealed model; the same model gives the same bytes.
 *
 * https://www.speedscope.app/file-format-schema.json. Frames are shared by all profiles: a function each, inlined ones
 * too, with the file and line of its definition, or with its module where the file is not known. Every profile is
 * "sampled": rows of frame numbers, outermost first, and a weight for each.
 *
 *   "CASE · wall time"  nanoseconds; a row for each sample in the order of their times, in which those of several
 *                       threads interleave; "cpu time" under --clock cpu
 *   "CASE · memory at the peak (no time order)" and so on: bytes, or a count; a row for each stack that has any
 *
 * The reader refuses a file without a profile, rows without a weight of their own, and negative weights.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "error.h"
#include "mew/report.h"
#include "stacks.h"
#include "symbolise.h"
#include "textual.h"

#define PRETTY 3u /* members of a profile and frames on a line each */

struct row {
	uint32_t stack;
	uint64_t weight;
};

struct rows {
	struct row *all;
	size_t n;
	uint64_t sum;
};

struct file {
	struct mew_json j;
	const struct mew_model *m;
	struct mew_shown_functions shown;
};

/* --- frames ----------------------------------------------------------------------------------------------------- */

static void put_frames(struct file *f)
{
	mew_json_key(&f->j, "frames");
	mew_json_array(&f->j);
	for (size_t i = 0; i < f->shown.n; i++) {
		const struct mew_shown_function *function = &f->shown.all[i];
		const char *file = function->file[0] != '\0'		   ? function->file :
				   function->module < f->m->nmodules ? f->m->modules[function->module].path :
								       "";

		mew_json_object(&f->j);
		mew_json_key(&f->j, "name");
		mew_json_string(&f->j, function->name);
		if (file[0] != '\0') {
			mew_json_key(&f->j, "file");
			mew_json_string(&f->j, file);
		}
		if (function->line != 0) {
			mew_json_key(&f->j, "line");
			mew_json_u64(&f->j, function->line);
		}
		mew_json_object_end(&f->j);
	}
	mew_json_array_end(&f->j);
}

static void put_stack(struct file *f, uint32_t stack)
{
	struct mew_stack_walk walk = mew_stack_begin(f->m, stack);
	struct mew_stack_frame frame;

	mew_json_array(&f->j);
	if (!mew_stack_known(f->m, stack))
		mew_json_u64(&f->j, f->shown.missing);
	while (mew_stack_next(&walk, &frame))
		mew_json_u64(&f->j, mew_stack_function(&f->shown, &frame));
	mew_json_array_end(&f->j);
}

/* --- profiles --------------------------------------------------------------------------------------------------- */

static void add_row(struct rows *rows, uint32_t stack, uint64_t weight)
{
	if (weight > INT64_MAX - rows->sum) /* what can be added up is kept: the end must be the sum */
		weight = INT64_MAX - rows->sum;
	if (weight == 0)
		return;
	rows->all[rows->n++] = (struct row){ stack, weight };
	rows->sum += weight;
}

static void put_name(struct file *f, const struct mew_case *c, const char *what, const char *note)
{
	char *title = mew_case_title(f->m, c), *name = NULL;

	if (title == NULL || asprintf(&name, "%s \xc2\xb7 %s%s", title, what, note) < 0)
		name = NULL;
	mew_json_key(&f->j, "name");
	mew_json_string(&f->j, name != NULL ? name : c->key);
	free(name);
	free(title);
}

/* A profile without rows is left out: it would show as an empty page. */
static void put_profile(struct file *f, const struct mew_case *c, const char *what, const char *note, const char *unit,
			const struct rows *rows)
{
	if (rows->n == 0)
		return;
	mew_json_object(&f->j);
	mew_json_key(&f->j, "type");
	mew_json_string(&f->j, "sampled");
	put_name(f, c, what, note);
	mew_json_key(&f->j, "unit");
	mew_json_string(&f->j, unit);
	mew_json_key(&f->j, "startValue");
	mew_json_u64(&f->j, 0);
	mew_json_key(&f->j, "endValue");
	mew_json_u64(&f->j, rows->sum);
	mew_json_key(&f->j, "samples");
	mew_json_array(&f->j);
	for (size_t i = 0; i < rows->n; i++)
		put_stack(f, rows->all[i].stack);
	mew_json_array_end(&f->j);
	mew_json_key(&f->j, "weights");
	mew_json_array(&f->j);
	for (size_t i = 0; i < rows->n; i++)
		mew_json_u64(&f->j, rows->all[i].weight);
	mew_json_array_end(&f->j);
	mew_json_object_end(&f->j);
}

static const char *thread_note(const struct mew_case *c)
{
	for (size_t i = 1; i < c->nsamples; i++)
		if (c->samples[i].thread != c->samples[0].thread)
			return " time (all threads)";
	return " time";
}

static int put_cpu(struct file *f, const struct mew_case *c)
{
	const struct mew_cpu_sample **order = mew_stack_timeline(c, false);
	struct rows rows = { .all = calloc(c->nsamples + 1, sizeof *rows.all) };

	for (size_t i = 0; order != NULL && rows.all != NULL && i < c->nsamples; i++)
		add_row(&rows, order[i]->stack, order[i]->weight_ns);
	if (order != NULL && rows.all != NULL)
		put_profile(f, c, mew_stack_clock(c), thread_note(c), "nanoseconds", &rows);
	else
		rows.n = SIZE_MAX;
	free(rows.all);
	free(order);
	return rows.n == SIZE_MAX ? -1 : 0;
}

static int put_memory(struct file *f, const struct mew_case *c)
{
	size_t n;
	struct mew_stack_sum *sums = mew_stack_sums(f->m, c, MEW_KIND_MEMORY, false, &n);
	struct rows rows = { .all = sums == NULL ? NULL : calloc(n + 1, sizeof *rows.all) };
	int failed = rows.all == NULL ? -1 : 0;

	for (size_t k = 0; failed == 0 && k < MEW_MEMORY_METRICS; k++) {
		const struct mew_stack_metric *metric = &mew_memory_metrics[k];

		rows.n = 0;
		rows.sum = 0;
		for (size_t i = 0; i < n; i++)
			add_row(&rows, sums[i].stack, sums[i].values[metric->value]);
		put_profile(f, c, metric->what, " (no time order)", metric->bytes ? "bytes" : "none", &rows);
	}
	free(rows.all);
	free(sums);
	return failed;
}

/* --- the file --------------------------------------------------------------------------------------------------- */

static int put_file(struct file *f)
{
	int failed = 0;

	mew_json_object(&f->j);
	mew_json_key(&f->j, "$schema");
	mew_json_string(&f->j, "https://www.speedscope.app/file-format-schema.json");
	mew_json_key(&f->j, "exporter");
	mew_json_string(&f->j, "mew@" MEW_VERSION);
	mew_json_key(&f->j, "name");
	mew_json_string(&f->j, "mew");
	mew_json_key(&f->j, "activeProfileIndex");
	mew_json_u64(&f->j, 0);
	mew_json_key(&f->j, "shared");
	mew_json_object(&f->j);
	put_frames(f);
	mew_json_object_end(&f->j);
	mew_json_key(&f->j, "profiles");
	mew_json_array(&f->j);
	for (size_t i = 0; failed == 0 && i < f->m->ncases; i++) {
		failed = put_cpu(f, &f->m->cases[i]);
		if (failed == 0)
			failed = put_memory(f, &f->m->cases[i]);
	}
	mew_json_array_end(&f->j);
	mew_json_object_end(&f->j);
	mew_write_char(f->j.w, '\n');
	return failed;
}

static int write_speedscope(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	struct file f = { .m = in->model };
	int failed;

	if (!mew_stack_any(in->model))
		return mew_error_set(err, MEW_E_INVALID,
				     "--speedscope: there are no stacks to write; add --memory or --cpu");
	mew_json_init(&f.j, w, PRETTY);
	failed = mew_shown_functions_init(&f.shown, in->model, NULL);
	if (failed == 0)
		failed = put_file(&f);
	mew_shown_functions_fini(&f.shown);
	return failed == 0 ? MEW_OK :
			     mew_error_set(err, MEW_E_NOMEM, "the speedscope file could not be written: out of memory");
}

const struct mew_report mew_report_speedscope = {
	.abi = MEW_REPORT_ABI,
	.name = "speedscope",
	.help = "stacks of all cases for www.speedscope.app, one file",
	.suffix = ".speedscope.json",
	.shape = MEW_REPORT_FILE,
	.needs_symbols = 1,
	.write = write_speedscope,
};
