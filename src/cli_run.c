/*
 * cli_run.c - `mew run`: one host per program, a pass over all programs at a time, then tables, then files.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "allocator_list.h"
#include "cli.h"
#include "cli_trace.h"
#include "cli_versus.h"
#include "cpu_ladder.h"
#include "environment.h"
#include "error.h"
#include "os.h"
#include "output.h"
#include "select.h"
#include "session.h"
#include "unwinder.h"
#include "worker.h"
#include "writer.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run {
	struct mew_cli *cli;
	struct mew_allocators allocators;
	struct mew_host_options options[MEW_ALLOCATORS_MAX]; /* of the hosts under each */
	struct mew_host *hosts; /* per program, and of it per allocator */
	size_t nhosts;
	struct mew_plan_case **cases; /* per host */
	size_t *ncases;
	struct mew_model *model;
	struct mew_progress progress;
	size_t steps_before;          /* progress: passes and programs behind */
	size_t steps;
	bool measured;                /* there is a run to show */
};

static const char *const pass_names[MEW_PASSES] = { "time", "memory", "CPU" };
static volatile int interrupted;

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

const volatile int *mew_cli_catch_interrupts(void)
{
	struct sigaction sa = { .sa_handler = on_interrupt }; /* no SA_RESTART: the wait for a worker must end */

	(void)sigemptyset(&sa.sa_mask);
	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	interrupted = 0;
	return &interrupted;
}

static bool show_progress(void *data, const struct mew_plan_case *c, enum mew_pass pass, size_t done, size_t total)
{
	struct run *r = data;

	(void)total;
	mew_cli_trace_tick();
	mew_progress_show(&r->progress, c, c->key, (int)pass, pass_names[pass], r->steps_before + done, r->steps);
	return interrupted == 0;
}

/* --- programs and cases ----------------------------------------------------------------------------------------- */

/* What a host of the program uses, so that a result can be judged later. */
static void add_facts(struct run *r, const struct mew_host *h, const struct mew_named_allocator *allocator)
{
	const char *version = mew_model_fact(h->facts, "malloc_version");
	char name[128], text[1200];

	for (size_t k = 0; k < h->facts->nfacts; k++)
		if (allocator == NULL || strncmp(h->facts->facts[k].name, "malloc", 6) != 0)
			(void)mew_model_add_fact(r->model, h->facts->facts[k].name, h->facts->facts[k].value);
	if (allocator == NULL)
		return;
	(void)snprintf(name, sizeof name, "allocator_%s", allocator->name);
	(void)snprintf(text, sizeof text, "%s%s%s", version != NULL ? version : "", version != NULL ? ", " : "", allocator->path);
	(void)mew_model_add_fact(r->model, name, text);
}

static size_t allocators_of(const struct run *r)
{
	return r->allocators.n > 0 ? r->allocators.n : 1;
}

static const struct mew_named_allocator *allocator_of(const struct run *r, size_t host)
{
	return r->allocators.n > 0 ? &r->allocators.list[host % r->allocators.n] : NULL;
}

static int open_programs(struct run *r)
{
	size_t n = (size_t)r->cli->nprograms * allocators_of(r);
	struct mew_error err;

	for (size_t i = 0; i < n; i++) {
		const struct mew_named_allocator *allocator = allocator_of(r, i);
		struct mew_host_options *options = &r->options[i % allocators_of(r)];

		*options = r->cli->host;
		options->allocator = allocator != NULL ? allocator->path : NULL;
		options->apart = allocator != NULL;
		r->nhosts++;
		if (mew_host_open(&r->hosts[i], r->cli->programs[i / allocators_of(r)], options, &err) != MEW_OK) {
			mew_cli_complain("%s", err.text);
			return MEW_EXIT_USAGE;
		}
		add_facts(r, &r->hosts[i], allocator);
	}
	return MEW_EXIT_FINE;
}

static void choose_of(struct run *r, size_t i, const struct mew_select *select)
{
	const struct mew_host *h = &r->hosts[i];

	for (size_t k = 0; k < h->ncases; k++) {
		const struct mew_host_case *c = &h->cases[k];

		if (!mew_select_matches(select, c->key, c->label, c->tags))
			continue;
		r->cases[i][r->ncases[i]++] = (struct mew_plan_case){
			.item = (uint32_t)k,
			.key = c->key,
			.label = c->label,
			.tags = c->tags,
			.after = c->after,
			.program = h->program,
			.allocator = allocator_of(r, i) != NULL ? allocator_of(r, i)->name : NULL,
			.threads = c->threads,
			.min_time = c->min_time,
			.iterations = c->iterations,
			.repetitions = c->repetitions,
		};
	}
}

static int choose_cases(struct run *r)
{
	struct mew_select select;
	struct mew_error err;
	size_t all = 0, chosen = 0;

	if (mew_select_init(&select, r->cli->pattern, r->cli->literal, r->cli->tags, r->cli->ntags, &err) != MEW_OK) {
		mew_cli_complain("-k: %s", err.text);
		return MEW_EXIT_USAGE;
	}
	for (size_t i = 0; i < r->nhosts; i++) {
		r->cases[i] = calloc(r->hosts[i].ncases + 1, sizeof **r->cases);
		if (r->cases[i] != NULL)
			choose_of(r, i, &select);
		all += r->hosts[i].ncases;
		chosen += r->ncases[i];
	}
	mew_select_fini(&select);
	if (chosen > 0)
		return MEW_EXIT_FINE;
	mew_cli_complain("none of the %zu cases matches -k, -F and -t; `mew list` shows them", all);
	return MEW_EXIT_INVALID;
}

static size_t steps_of(const struct run *r, size_t i, enum mew_pass pass)
{
	return r->ncases[i] * (pass == MEW_PASS_TIME ? (size_t)r->cli->plan.repetitions * r->cli->plan.processes : 1);
}

/* --- passes ----------------------------------------------------------------------------------------------------- */

/* A pass that cannot start fails its cases, with the reason, and not the run. */
static void fail_pass(struct run *r, size_t i, enum mew_pass pass, const struct mew_error *err)
{
	enum mew_kind kind = mew_pass_kind(pass);

	for (size_t k = 0; k < r->ncases[i]; k++) {
		struct mew_case *row = mew_model_case_under(r->model, r->cases[i][k].key, r->cases[i][k].program,
							    r->cases[i][k].allocator);

		if (row != NULL && (row->kinds >> kind & 1) == 0)
			mew_model_fail(r->model, row, kind, err->status, err->text);
	}
}

/* One program's part of a pass. */
static void run_program(struct run *r, size_t i, enum mew_pass pass)
{
	struct mew_driver driver = mew_host_driver(&r->hosts[i]);
	uint64_t start = mew_os_now_ns();
	const char *name = strrchr(r->hosts[i].program, '/');
	struct mew_error err;
	int status = mew_host_begin_pass(&r->hosts[i], pass, &err);

	if (status == MEW_OK)
		status = mew_plan_run(&driver, r->cases[i], r->ncases[i], pass, &r->cli->plan, r->model, &err);
	if (status != MEW_OK && !interrupted)
		fail_pass(r, i, pass, &err);
	mew_cli_trace_since(start, "benchmark", name != NULL ? name + 1 : r->hosts[i].program, NULL);
	r->steps_before += steps_of(r, i, pass);
}

/* A block of one case under one allocator: of timing, one process of several. */
static void run_under(struct run *r, size_t host, size_t item, enum mew_pass pass, unsigned process)
{
	struct mew_driver driver = mew_host_driver(&r->hosts[host]);
	struct mew_plan_options plan = r->cli->plan;
	struct mew_error err;
	int status = mew_host_begin_pass(&r->hosts[host], pass, &err);

	plan.one_process = pass == MEW_PASS_TIME;
	plan.process = process;
	if (status == MEW_OK)
		status = mew_plan_run(&driver, &r->cases[host][item], 1, pass, &plan, r->model, &err);
	if (status != MEW_OK && !interrupted)
		fail_pass(r, host, pass, &err);
	r->steps_before += pass == MEW_PASS_TIME ? plan.repetitions : 1;
}

/*
 * The allocators take turns in every case, each in a process of its own and each time another one first, so that what
 * disturbs the machine disturbs all of them.
 */
static void run_allocators(struct run *r, size_t program, enum mew_pass pass)
{
	size_t n = r->allocators.n, first = program * n;
	unsigned processes = pass == MEW_PASS_TIME && !r->cli->plan.dry_run ? r->cli->plan.processes : 1;

	for (size_t item = 0; item < r->ncases[first]; item++)
		for (unsigned process = 0; process < processes; process++)
			for (size_t k = 0; k < n && !interrupted; k++)
				run_under(r, first + (k + process) % n, item, pass, process);
}

static void run_pass(struct run *r, enum mew_pass pass)
{
	for (size_t i = 0; i < r->nhosts && !interrupted; i += allocators_of(r)) {
		if (r->allocators.n > 0)
			run_allocators(r, i / r->allocators.n, pass);
		else if (r->ncases[i] > 0)
			run_program(r, i, pass);
	}
}

static void run_passes(struct run *r)
{
	for (int pass = 0; pass < MEW_PASSES; pass++) {
		uint64_t start = mew_os_now_ns();
		char name[24];

		if (!r->cli->passes[pass])
			continue;
		run_pass(r, (enum mew_pass)pass);
		(void)snprintf(name, sizeof name, "%s pass", pass_names[pass]);
		mew_cli_trace_since(start, "pass", name, NULL);
	}
	mew_progress_clear(&r->progress);
}

/* --- afterwards ------------------------------------------------------------------------------------------------- */

int mew_cli_tables(const struct mew_cli *c, const struct mew_model *m, struct mew_error *err)
{
	int fd = c->record ? STDERR_FILENO : STDOUT_FILENO;
	struct mew_report_input in = {
		.model = m,
		.width = mew_terminal_width(fd),
		.color = mew_terminal_color(c->color, fd),
		.utf8 = mew_terminal_utf8(),
		.verbose = c->verbose,
	};
	struct mew_writer w;
	int status;

	mew_writer_fd(&w, fd);
	status = mew_report_find("table")->write(&in, &w, err);
	if (mew_writer_finish(&w) != 0 && status == MEW_OK)
		status = mew_error_set(err, MEW_E_IO, "standard %s: %s", c->record ? "error" : "output", strerror(w.error));
	return status;
}

int mew_cli_outputs(const struct mew_cli *c, const struct mew_model *m, const struct mew_model *base)
{
	const struct mew_report_input in = { .model = m, .base = base, .embed_source = c->embed_source };
	int code = MEW_EXIT_FINE;

	for (size_t i = 0; i < c->noutputs; i++) {
		const struct mew_cli_output *o = &c->outputs[i];
		uint64_t start = mew_os_now_ns();
		struct mew_error err;

		if (mew_output_report(o->report, &in, o->path, &err) != MEW_OK) {
			mew_cli_complain("%s", err.text);
			code = MEW_EXIT_USAGE;
		} else if (!c->quiet && strcmp(o->path, "-") != 0) {
			(void)fprintf(stderr, "wrote %s\n", o->path);
		}
		mew_cli_trace_since(start, "report", o->report->name, NULL);
	}
	return code;
}

static bool is_skip(const struct mew_row_head *row)
{
	return row->status == MEW_E_UNSUPPORTED && row->reason != NULL && strncmp(row->reason, "skipped: ", 9) == 0;
}

/* The exit code that the rows deserve. */
static int verdict(struct mew_model *m)
{
	size_t good = 0, failed = 0, unable = 0, lost = 0, skipped = 0;

	for (size_t i = 0; i < m->ncases; i++) {
		for (int kind = 0; kind < MEW_KINDS; kind++) {
			const struct mew_row_head *row = mew_case_row(&m->cases[i], (enum mew_kind)kind);

			if ((m->cases[i].kinds >> kind & 1) == 0)
				continue;
			if (row->status == MEW_OK)
				good++;
			else if (is_skip(row))
				skipped++;
			else if (row->status == MEW_E_LOST)
				lost++;
			else if (row->status == MEW_E_UNSUPPORTED || row->status == MEW_E_DENIED)
				unable++;
			else
				failed++;
		}
	}
	if (failed > 0)
		return MEW_EXIT_FAILED;
	if (lost > 0)
		return MEW_EXIT_INVALID;
	if (unable > 0)
		return MEW_EXIT_USAGE;
	return good > 0 || skipped > 0 ? MEW_EXIT_FINE : MEW_EXIT_INVALID;
}

static bool table_wanted(const struct mew_cli *c)
{
	for (size_t i = 0; i < c->noutputs; i++)
		if (strcmp(c->outputs[i].path, "-") == 0)
			return false;
	return true;
}

static int finish(struct run *r)
{
	struct mew_error err;
	int status, code, files;
	uint64_t start;

	start = mew_os_now_ns();
	status = mew_session_finish(r->model, &err);
	mew_cli_trace_since(start, "report", "names and figures", NULL);
	if (status != MEW_OK) {
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	code = verdict(r->model);
	if (table_wanted(r->cli) && mew_cli_tables(r->cli, r->model, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	files = mew_cli_outputs(r->cli, r->model, NULL);
	if (interrupted) {
		mew_cli_complain("interrupted: what was measured until then is shown");
		return MEW_EXIT_INVALID;
	}
	return code != MEW_EXIT_FINE ? code : files;
}

/* The workers would each say so in each row. */
static int check_environment(const struct mew_cli *c)
{
	struct mew_error err;
	int status = MEW_OK;

	if (c->passes[MEW_PASS_MEMORY] || c->passes[MEW_PASS_CPU])
		status = mew_unwinder_check(getenv("MEW_UNWINDER"), &err);
	if (c->passes[MEW_PASS_CPU] && status == MEW_OK)
		status = mew_cpu_sampler_check(getenv("MEW_SAMPLER"), &err);
	if (status == MEW_OK)
		return MEW_EXIT_FINE;
	mew_cli_complain("%s", err.text);
	return MEW_EXIT_USAGE;
}

static int run_gbench(struct run *r)
{
	bool ended_badly = false;
	int code = mew_cli_gbench(r->cli, r->model, &r->progress, &ended_badly);

	if (code != MEW_EXIT_FINE)
		return code;
	code = finish(r);
	return code == MEW_EXIT_FINE && ended_badly ? MEW_EXIT_FAILED : code;
}

static int run_all(struct run *r)
{
	int code = check_environment(r->cli);

	if (code == MEW_EXIT_FINE && r->cli->gbench)
		return run_gbench(r);
	if (code == MEW_EXIT_FINE)
		code = open_programs(r);
	if (code == MEW_EXIT_FINE)
		code = choose_cases(r);
	if (code != MEW_EXIT_FINE)
		return code;
	for (int pass = 0; pass < MEW_PASSES; pass++)
		for (size_t i = 0; r->cli->passes[pass] && i < r->nhosts; i++)
			r->steps += steps_of(r, i, (enum mew_pass)pass);
	r->measured = true;
	run_passes(r);
	return finish(r);
}

static int find_allocators(struct run *r)
{
	struct mew_error err;

	if (r->cli->allocators == NULL || mew_allocators_find(&r->allocators, r->cli->allocators, &err) == MEW_OK)
		return MEW_EXIT_FINE;
	mew_cli_complain("--allocator: %s", err.text);
	return MEW_EXIT_USAGE;
}

static int begin(struct run *r)
{
	struct mew_cli *c = r->cli;
	size_t n = (size_t)c->nprograms * allocators_of(r) + 1;
	int code;

	r->hosts = calloc(n, sizeof *r->hosts);
	r->cases = calloc(n, sizeof *r->cases);
	r->ncases = calloc(n, sizeof *r->ncases);
	r->model = mew_model_new();
	if (r->hosts == NULL || r->cases == NULL || r->ncases == NULL || r->model == NULL) {
		mew_cli_complain("no memory for %d programs", c->nprograms);
		return MEW_EXIT_USAGE;
	}
	c->host.cancelled = mew_cli_catch_interrupts();
	c->plan.progress = show_progress;
	c->plan.progress_data = r;
	mew_progress_init(&r->progress, c->progress);
	mew_environment_machine(r->model);
	code = mew_cli_trace_begin(&c->trace);
	if (code == MEW_EXIT_FINE)
		code = run_all(r);
	mew_progress_clear(&r->progress);
	return code;
}

int mew_cli_run(struct mew_cli *c)
{
	struct run r = { .cli = c };
	int code;

	if (c->versus[0] != NULL) {
		c->host.cancelled = mew_cli_catch_interrupts();
		return mew_cli_versus(c);
	}
	code = find_allocators(&r);
	if (code == MEW_EXIT_FINE)
		code = begin(&r);
	for (size_t i = 0; i < r.nhosts; i++) {
		mew_host_close(&r.hosts[i]);
		free(r.cases[i]);
	}
	free(r.hosts);
	free(r.cases);
	free(r.ncases);
	mew_model_free(r.model);
	mew_allocators_fini(&r.allocators);
	return mew_cli_trace_end(&c->trace, r.measured, code); /* the workers have left, and their fragments are whole */
}

int mew_main(int argc, char **argv)
{
	struct mew_cli cli;
	char self[] = "/proc/self/exe";
	char *programs[] = { argc > 0 && strchr(argv[0], '/') != NULL ? argv[0] : self, NULL };
	int code;

	if (argc == 2 && strncmp(argv[1], MEW_WORKER_FLAG, strlen(MEW_WORKER_FLAG)) == 0)
		return mew_worker_main(atoi(argv[1] + strlen(MEW_WORKER_FLAG)));
	(void)setlocale(LC_CTYPE, "");
	code = mew_cli_parse(&cli, argc, argv);
	if (code != MEW_EXIT_FINE)
		return code;
	if (cli.help) {
		mew_cli_help(stdout, "PROGRAM [flags]   (the flags of `mew run`)");
		return MEW_EXIT_FINE;
	}
	if (cli.version) {
		(void)printf("mew %s\n", mew_version());
		return MEW_EXIT_FINE;
	}
	if (cli.gbench) {
		mew_cli_complain("--gbench-program: this program is of mew; it is for `mew run`");
		return MEW_EXIT_USAGE;
	}
	if (cli.nprograms > 0) {
		mew_cli_complain("\"%s\": this program measures itself alone; use `mew run` for several", cli.programs[0]);
		return MEW_EXIT_USAGE;
	}
	cli.programs = programs;
	cli.nprograms = 1;
	return mew_cli_run(&cli);
}
