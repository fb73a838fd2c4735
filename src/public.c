/*
 * public.c - the calls of mew.h that run a session in this process: arguments checked, model built, rows handed out.
 * Layer L6. Caller thread.
 */
#include "config.h"

#include "environment.h"
#include "error.h"
#include "hooks_link.h"
#include "output.h"
#include "plan.h"
#include "registry.h"
#include "select.h"
#include "session.h"
#include "summarise.h"
#include "terminal.h"
#include "trace_log.h"
#include "trace_samples.h"
#include "writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The three result types are one thing: a sealed model, seen through the rows of one kind. */
struct rows {
	struct mew_model *model;
	enum mew_kind kind;
	size_t *index; /* of the cases that have such a row */
	size_t n;
};
struct mew_results {
	struct rows rows;
};
struct mew_memory_profiles {
	struct rows rows;
};
struct mew_cpu_profiles {
	struct rows rows;
};

const char *mew_version(void)
{
	return MEW_VERSION;
}

/* --- options ---------------------------------------------------------------------------------------------------- */

/* Copy what the caller gave over zeroes; what this library does not know must be zero. */
static int take_options(void *out, size_t known, const void *given, size_t size, struct mew_error *err)
{
	const unsigned char *bytes = given;

	memset(out, 0, known);
	if (given == NULL)
		return MEW_OK;
	if (size < sizeof(size_t))
		return mew_error_set(err, MEW_E_INVALID,
				     "the options have no size: use the macro, or set .size to sizeof");
	for (size_t i = known; i < size; i++)
		if (bytes[i] != 0)
			return mew_error_set(err, MEW_E_INVALID,
					     "the options set something this library does not know: use a newer libmew");
	memcpy(out, given, size < known ? size : known);
	return MEW_OK;
}

static int check_seconds(const char *name, double value, struct mew_error *err)
{
	if (isfinite(value) && value >= 0)
		return MEW_OK;
	return mew_error_set(err, MEW_E_INVALID, "option %s must be a finite number, 0 or more", name);
}

/* --- a session -------------------------------------------------------------------------------------------------- */

struct job {
	const struct mew_entry *entries;
	enum mew_pass pass;
	struct mew_plan_options options;
	const char *filter;
	const struct mew_hook *hooks;
	size_t nhooks;
	const char *html;
};

static size_t choose(const struct mew_catalogue *c, const struct mew_select *s, struct mew_plan_case *out)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct mew_item *it = &c->items[i];

		if (!mew_select_matches(s, it->key, it->label, it->entry->tags))
			continue;
		out[n++] = (struct mew_plan_case){
			.item = (uint32_t)i,
			.key = it->key,
			.label = it->label,
			.tags = it->entry->tags,
			.after = it->entry->after,
			.threads = it->entry->threads != 0 ? it->entry->threads : 1,
			.min_time = it->entry->min_time,
			.iterations = it->entry->iterations,
			.repetitions = it->entry->repetitions,
		};
	}
	return n;
}

static void note_hooks(struct mew_model *m)
{
	const struct mew_hooks_api *hooks = mew_hooks_link();

	if (hooks == NULL || hooks->selftest() == 0)
		return;
	for (size_t i = 0; i < m->ncases; i++)
		if (mew_case_has(&m->cases[i], MEW_KIND_TIME) && m->cases[i].time.status == MEW_OK)
			mew_summarise_note(m, &m->cases[i], MEW_KIND_TIME,
					   "malloc went through the disarmed hooks (about 11 % of a hot pair); `mew "
					   "run` times without them");
}

static int run_chosen(const struct job *job, const struct mew_catalogue *catalogue, struct mew_plan_case *cases,
		      const struct mew_hook **hooks, struct mew_model *m, struct mew_error *err)
{
	struct mew_select select = { 0 };
	struct mew_runner runner;
	struct mew_driver driver;
	int status = mew_select_init(&select, job->filter, NULL, NULL, 0, err);
	size_t n;

	if (status != MEW_OK)
		return status;
	n = choose(catalogue, &select, cases);
	mew_select_fini(&select);
	if (n == 0)
		return mew_error_set(err, MEW_E_INVALID, "no case matches the filter \"%.80s\"", job->filter);
	for (size_t i = 0; i < job->nhooks; i++)
		hooks[i] = &job->hooks[i];
	mew_runner_init(&runner, catalogue, hooks, job->nhooks);
	driver = mew_driver_direct(&runner);
	status = mew_plan_run(&driver, cases, n, job->pass, &job->options, m, err);
	mew_runner_fini(&runner);
	return status;
}

static int run_cases(const struct job *job, const struct mew_catalogue *catalogue, struct mew_model *m,
		     struct mew_error *err)
{
	const struct mew_hook **hooks = calloc(job->nhooks + 1, sizeof *hooks);
	struct mew_plan_case *cases = calloc(catalogue->n + 1, sizeof *cases);
	int status;

	if (hooks != NULL && cases != NULL)
		status = run_chosen(job, catalogue, cases, hooks, m, err);
	else
		status = mew_error_set(err, MEW_E_NOMEM, "no memory for %zu cases", catalogue->n);
	free(hooks);
	free(cases);
	return status;
}

static int run_job(const struct job *job, struct mew_model *m, struct mew_error *err)
{
	struct mew_catalogue catalogue;
	struct mew_error untold;
	int status = mew_catalogue_init(&catalogue, job->entries, err);

	if (status != MEW_OK)
		return status;
	mew_environment_machine(m);
	mew_environment_process(m);
	status = run_cases(job, &catalogue, m, err);
	if (status == MEW_OK && job->pass == MEW_PASS_TIME)
		note_hooks(m);
	if (status == MEW_OK)
		status = mew_session_finish(m, NULL, err);
	/* where this process is part of a traced run; what cannot be written there fails no profile */
	if (status == MEW_OK && job->pass == MEW_PASS_CPU)
		(void)mew_trace_samples_show(m, mew_trace_log_directory(), &untold);
	mew_catalogue_fini(&catalogue);
	return status;
}

static int write_report(const struct mew_model *m, const char *format, const char *path, struct mew_error *err);

static int index_rows(struct rows *r, struct mew_error *err)
{
	r->index = calloc(r->model->ncases + 1, sizeof *r->index);
	if (r->index == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for %zu rows", r->model->ncases);
	for (size_t i = 0; i < r->model->ncases; i++)
		if (mew_case_has(&r->model->cases[i], r->kind))
			r->index[r->n++] = i;
	return MEW_OK;
}

/* frame is the public function's: its address tells a session that was jumped out of. */
static bool make_rows(struct rows *r, const struct job *job, enum mew_kind kind, const void *frame)
{
	struct mew_error *err = mew_error_thread();
	int status;

	*r = (struct rows){ .kind = kind };
	mew_error_clear(err);
	status = mew_session_begin(frame, err);
	if (status != MEW_OK)
		return false;
	r->model = mew_model_new();
	if (r->model == NULL) {
		(void)mew_error_set(err, MEW_E_NOMEM, "no memory for results");
		mew_session_end();
		return false;
	}
	status = run_job(job, r->model, err);
	if (status == MEW_OK)
		status = index_rows(r, err);
	if (status == MEW_OK && job->html != NULL)
		status = write_report(r->model, "html", job->html, err);
	mew_session_end();
	if (status == MEW_OK)
		return true;
	mew_model_free(r->model);
	free(r->index);
	return false;
}

static void *new_rows(size_t bytes)
{
	void *rows = calloc(1, bytes);

	if (rows == NULL)
		(void)mew_error_set(mew_error_thread(), MEW_E_NOMEM, "no memory for results");
	return rows;
}

struct mew_results *mew_run_with(const struct mew_entry *entries, const struct mew_run_options *options)
{
	struct job job = { .entries = entries, .pass = MEW_PASS_TIME };
	struct mew_error *err = mew_error_thread();
	struct mew_run_options o;
	struct mew_results *r;

	if (take_options(&o, sizeof o, options, options != NULL ? options->size : 0, err) != MEW_OK ||
	    check_seconds("min_time", o.min_time, err) != MEW_OK ||
	    check_seconds("max_time", o.max_time, err) != MEW_OK ||
	    check_seconds("min_warmup_time", o.min_warmup_time, err) != MEW_OK ||
	    check_seconds("precision", o.precision, err) != MEW_OK)
		return NULL;
	if (o.iterations > 0 && o.min_time > 0) {
		(void)mew_error_set(err, MEW_E_INVALID, "give min_time or iterations, not both");
		return NULL;
	}
	mew_plan_defaults(&job.options);
	job.options.min_time = o.min_time;
	if (o.max_time > 0)
		job.options.max_time = o.max_time;
	if (o.min_warmup_time > 0)
		job.options.min_warmup_time = o.min_warmup_time;
	if (o.precision > 0)
		job.options.precision = o.precision;
	if (o.repetitions > 0)
		job.options.repetitions = o.repetitions;
	job.options.iterations = o.iterations;
	job.options.latency = o.latency != 0;
	job.options.interleave = o.interleave != 0;
	job.filter = o.filter;
	job.hooks = o.hooks;
	job.nhooks = o.nhooks;
	r = new_rows(sizeof *r);
	if (r != NULL && make_rows(&r->rows, &job, MEW_KIND_TIME, __builtin_frame_address(0)))
		return r;
	free(r);
	return NULL;
}

struct mew_memory_profiles *mew_memory_profile_with(const struct mew_entry *entries,
						    const struct mew_memory_options *options)
{
	struct job job = { .entries = entries, .pass = MEW_PASS_MEMORY };
	struct mew_error *err = mew_error_thread();
	struct mew_memory_profiles *m;
	struct mew_memory_options o;

	if (take_options(&o, sizeof o, options, options != NULL ? options->size : 0, err) != MEW_OK)
		return NULL;
	mew_plan_defaults(&job.options);
	if (o.iterations > 0)
		job.options.memory_iterations = o.iterations;
	job.options.stacks = o.flamegraph != NULL;
	job.filter = o.filter;
	job.hooks = o.hooks;
	job.nhooks = o.nhooks;
	job.html = o.flamegraph;
	m = new_rows(sizeof *m);
	if (m != NULL && make_rows(&m->rows, &job, MEW_KIND_MEMORY, __builtin_frame_address(0)))
		return m;
	free(m);
	return NULL;
}

struct mew_cpu_profiles *mew_cpu_profile_with(const struct mew_entry *entries, const struct mew_cpu_options *options)
{
	struct job job = { .entries = entries, .pass = MEW_PASS_CPU };
	struct mew_error *err = mew_error_thread();
	struct mew_cpu_profiles *c;
	struct mew_cpu_options o;

	if (take_options(&o, sizeof o, options, options != NULL ? options->size : 0, err) != MEW_OK ||
	    check_seconds("interval", o.interval, err) != MEW_OK)
		return NULL;
	if (o.interval != 0 && (o.interval < 0.00002 || o.interval > 1)) {
		(void)mew_error_set(err, MEW_E_INVALID, "option interval must lie between 0.00002 and 1 second");
		return NULL;
	}
	if (o.clock > MEW_CLOCK_CPU) {
		(void)mew_error_set(err, MEW_E_INVALID, "option clock must be MEW_CLOCK_WALL or MEW_CLOCK_CPU");
		return NULL;
	}
	mew_plan_defaults(&job.options);
	job.options.clock = (enum mew_clock)o.clock;
	if (o.interval > 0)
		job.options.interval = o.interval;
	job.options.inner_iterations = o.inner_iterations;
	job.options.pause_cpu = o.pause_cpu != 0;
	job.filter = o.filter;
	job.hooks = o.hooks;
	job.nhooks = o.nhooks;
	job.html = o.output;
	c = new_rows(sizeof *c);
	if (c != NULL && make_rows(&c->rows, &job, MEW_KIND_CPU, __builtin_frame_address(0)))
		return c;
	free(c);
	return NULL;
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

static struct mew_case *case_at(const struct rows *r, size_t i)
{
	return i < r->n ? &r->model->cases[r->index[i]] : NULL;
}

static struct mew_case *case_find(const struct rows *r, const char *key)
{
	for (size_t i = 0; key != NULL && i < r->n; i++)
		if (strcmp(case_at(r, i)->key, key) == 0)
			return case_at(r, i);
	return NULL;
}

static void free_rows(struct rows *r)
{
	mew_model_free(r->model);
	free(r->index);
}

#define ROWS(type, row, member, prefix)                                                                                \
	size_t prefix##_count(const struct type *r)                                                                    \
	{                                                                                                              \
		return r != NULL ? r->rows.n : 0;                                                                      \
	}                                                                                                              \
	const struct row *prefix##_at(const struct type *r, size_t i)                                                  \
	{                                                                                                              \
		struct mew_case *c = r != NULL ? case_at(&r->rows, i) : NULL;                                          \
                                                                                                                       \
		return c != NULL ? &c->member : NULL;                                                                  \
	}                                                                                                              \
	const struct row *prefix##_find(const struct type *r, const char *key)                                         \
	{                                                                                                              \
		struct mew_case *c = r != NULL ? case_find(&r->rows, key) : NULL;                                      \
                                                                                                                       \
		return c != NULL ? &c->member : NULL;                                                                  \
	}                                                                                                              \
	void prefix##_free(struct type *r)                                                                             \
	{                                                                                                              \
		if (r != NULL)                                                                                         \
			free_rows(&r->rows);                                                                           \
		free(r);                                                                                               \
	}

ROWS(mew_results, mew_result, time, mew_results)
ROWS(mew_memory_profiles, mew_memory_case, memory, mew_memory)
ROWS(mew_cpu_profiles, mew_cpu_case, cpu, mew_cpu)

static const char *why(const void *row, int figure)
{
	return row != NULL ? mew_row_why(row, figure) : "there is no such row";
}

const char *mew_result_why(const struct mew_result *row, enum mew_time_figure figure)
{
	return why(row, (int)figure);
}

const char *mew_memory_why(const struct mew_memory_case *row, enum mew_memory_figure figure)
{
	return why(row, (int)figure);
}

const char *mew_cpu_why(const struct mew_cpu_case *row, enum mew_cpu_figure figure)
{
	return why(row, (int)figure);
}

/* --- reports ---------------------------------------------------------------------------------------------------- */

static int print_rows(const struct rows *r, FILE *to)
{
	struct mew_error *err = mew_error_thread();
	struct mew_report_input in = {
		.model = r->model,
		.kinds = 1u << r->kind,
		.width = mew_terminal_width(fileno(to)),
		.color = mew_terminal_color(MEW_AUTO, fileno(to)),
		.utf8 = mew_terminal_utf8(),
	};
	struct mew_writer w;
	int status;

	mew_writer_file(&w, to);
	status = mew_report_find("table")->write(&in, &w, err);
	if (mew_writer_finish(&w) != 0 && status == MEW_OK)
		status = mew_error_set(err, MEW_E_IO, "the table could not be written: %s", strerror(w.error));
	return status;
}

static int no_rows(void)
{
	return mew_error_set(mew_error_thread(), MEW_E_INVALID, "nothing to print: the results or the stream are NULL");
}

int mew_results_print(const struct mew_results *r, FILE *to)
{
	return r != NULL && to != NULL ? print_rows(&r->rows, to) : no_rows();
}

int mew_memory_print(const struct mew_memory_profiles *m, FILE *to)
{
	return m != NULL && to != NULL ? print_rows(&m->rows, to) : no_rows();
}

int mew_cpu_print(const struct mew_cpu_profiles *c, FILE *to)
{
	return c != NULL && to != NULL ? print_rows(&c->rows, to) : no_rows();
}

static int write_report(const struct mew_model *m, const char *format, const char *path, struct mew_error *err)
{
	const struct mew_report *report = mew_report_find(format);
	char names[160] = "";

	if (report != NULL && report->shape == MEW_REPORT_FILE)
		return mew_output_report(report, &(struct mew_report_input){ .model = m }, path, err);
	for (size_t i = 0; mew_reports[i] != NULL; i++)
		if (mew_reports[i]->shape == MEW_REPORT_FILE &&
		    strlen(names) + strlen(mew_reports[i]->name) + 2 < sizeof names) {
			strcat(names, " ");
			strcat(names, mew_reports[i]->name);
		}
	return mew_error_set(err, MEW_E_INVALID, "there is no report format \"%.40s\"; known:%s", format, names);
}

int mew_write(const struct mew_results *r, const char *format, const char *path)
{
	struct mew_error *err = mew_error_thread();

	if (r == NULL || format == NULL || path == NULL)
		return mew_error_set(err, MEW_E_INVALID, "mew_write needs results, a format and a path");
	return write_report(r->rows.model, format, path, err);
}
