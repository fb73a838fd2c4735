/*
 * cli_run.c - `mew run`: one host per program, their cases, and the order of what is done with them.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cli_private.h"

#include "cli_trace.h"
#include "cli_versus.h"
#include "cpu_ladder.h"
#include "environment.h"
#include "error.h"
#include "guest_channel.h"
#include "select.h"
#include "unwinder.h"
#include "worker.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static volatile int interrupted;

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* Where the ends of children are ignored they leave no status. A program's own handler stays: mew_main() is in many. */
static void keep_ends(void)
{
	struct sigaction sa;

	if (sigaction(SIGCHLD, NULL, &sa) != 0 || (sa.sa_handler != SIG_IGN && (sa.sa_flags & SA_NOCLDWAIT) == 0))
		return;
	if (sa.sa_handler == SIG_IGN)
		sa.sa_handler = SIG_DFL;
	sa.sa_flags &= ~SA_NOCLDWAIT;
	(void)sigaction(SIGCHLD, &sa, NULL);
}

const volatile int *mew_cli_catch_interrupts(void)
{
	struct sigaction before, sa = { .sa_handler = on_interrupt }; /* no SA_RESTART: the wait for a worker must end */

	(void)sigemptyset(&sa.sa_mask);
	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup */
		(void)sigaction(SIGHUP, &sa, NULL);
	keep_ends();
	interrupted = 0;
	return &interrupted;
}

void mew_cli_say(const char *text)
{
	mew_cli_complain("%s", text);
}

bool mew_cli_interrupted(void)
{
	return interrupted != 0;
}

/* --- programs and cases ----------------------------------------------------------------------------------------- */

/* What a host of the program uses, so that a result can be judged later. */
static void add_facts(struct mew_cli_run *r, const struct mew_host *h, const struct mew_named_allocator *allocator)
{
	const char *version = mew_model_fact(h->facts, "malloc_version");
	char name[128], text[1200];

	for (size_t k = 0; k < h->facts->nfacts; k++)
		if (allocator == NULL || strncmp(h->facts->facts[k].name, "malloc", 6) != 0)
			(void)mew_model_add_fact(r->model, h->facts->facts[k].name, h->facts->facts[k].value);
	if (allocator == NULL)
		return;
	(void)snprintf(name, sizeof name, "allocator_%s", allocator->name);
	(void)snprintf(text, sizeof text, "%s%s%s", version != NULL ? version : "", version != NULL ? ", " : "",
		       allocator->path);
	(void)mew_model_add_fact(r->model, name, text);
}

static int open_programs(struct mew_cli_run *r)
{
	size_t n = (size_t)r->cli->nprograms * mew_cli_allocators(r);
	struct mew_error err;

	for (size_t i = 0; i < n; i++) {
		const struct mew_named_allocator *allocator = mew_cli_allocator(r, i);
		struct mew_host_options *options = &r->options[i % mew_cli_allocators(r)];

		*options = r->cli->host;
		options->allocator = allocator != NULL ? allocator->path : NULL;
		options->apart = allocator != NULL;
		r->nhosts++;
		if (mew_host_open(&r->hosts[i], r->cli->programs[i / mew_cli_allocators(r)], options, &err) != MEW_OK) {
			mew_cli_complain("%s", err.text);
			return MEW_EXIT_USAGE;
		}
		add_facts(r, &r->hosts[i], allocator);
	}
	return MEW_EXIT_FINE;
}

static void choose_of(struct mew_cli_run *r, size_t i, const struct mew_select *select)
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
			.allocator = mew_cli_allocator(r, i) != NULL ? mew_cli_allocator(r, i)->name : NULL,
			.threads = c->threads,
			.min_time = c->min_time,
			.iterations = c->iterations,
			.repetitions = c->repetitions,
		};
	}
}

static int choose_cases(struct mew_cli_run *r)
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

/* The workers would each say so in each row. */
static int check_environment(const struct mew_cli *c)
{
	struct mew_error err;
	int status = MEW_OK;

	if (c->passes[MEW_PASS_MEMORY] || c->passes[MEW_PASS_CPU])
		status = mew_unwinder_check(getenv("MEW_UNWINDER"), &err);
	if (c->passes[MEW_PASS_CPU] && status == MEW_OK)
		status = mew_cpu_sampler_check(getenv("MEW_SAMPLER"), &err);
	if (status != MEW_OK) {
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	return mew_cli_check_outputs(c) == MEW_EXIT_FINE ? mew_cli_check_servers(c) : MEW_EXIT_USAGE;
}

static int run_gbench(struct mew_cli_run *r)
{
	bool ended_badly = false;
	int code = mew_cli_gbench(r->cli, r->model, &r->progress, &ended_badly);

	r->measured = code == MEW_EXIT_FINE;
	if (code != MEW_EXIT_FINE)
		return code;
	code = mew_cli_finish(r);
	return code == MEW_EXIT_FINE && ended_badly ? MEW_EXIT_FAILED : code;
}

static int run_all(struct mew_cli_run *r)
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
			r->steps += mew_cli_steps(r, i, (enum mew_pass)pass);
	r->measured = true;
	mew_cli_passes(r);
	return mew_cli_finish(r);
}

static int find_allocators(struct mew_cli_run *r)
{
	struct mew_error err;

	if (r->cli->allocators == NULL || mew_allocators_find(&r->allocators, r->cli->allocators, &err) == MEW_OK)
		return MEW_EXIT_FINE;
	mew_cli_complain("--allocator: %s", err.text);
	return MEW_EXIT_USAGE;
}

static int begin(struct mew_cli_run *r)
{
	struct mew_cli *c = r->cli;
	size_t n = (size_t)c->nprograms * mew_cli_allocators(r) + 1;
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
	c->plan.progress = mew_cli_progress;
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
	struct mew_cli_run r = { .cli = c };
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

/* `mew run --gbench-program` started this program, whose cases would run without end where a list is wanted. */
static bool is_taken_for_guest(void)
{
	const char *text = getenv(MEW_GUEST_ENVIRONMENT);
	struct stat st;

	return text != NULL && fstat(atoi(text), &st) == 0 && (uint64_t)st.st_size == MEW_GUEST_BYTES;
}

int mew_main(int argc, char **argv)
{
	struct mew_cli cli;
	char self[] = "/proc/self/exe";
	char *programs[] = { argc > 0 && strchr(argv[0], '/') != NULL ? argv[0] : self, NULL };
	int code;

	if (argc == 2 && strncmp(argv[1], MEW_WORKER_FLAG, strlen(MEW_WORKER_FLAG)) == 0)
		return mew_worker_main(atoi(argv[1] + strlen(MEW_WORKER_FLAG)),
				       strstr(argv[1], MEW_WORKER_KNOWN) != NULL);
	(void)setlocale(LC_CTYPE, "");
	if (is_taken_for_guest()) {
		mew_cli_complain("this program is of mew and not of Google Benchmark: leave out --gbench-program");
		return MEW_EXIT_USAGE;
	}
	code = mew_cli_parse(&cli, MEW_CLI_RUN, argc, argv);
	if (code != MEW_EXIT_FINE)
		return code;
	if (mew_cli_told(&cli, MEW_CLI_RUN, "PROGRAM [flags]   (the flags of `mew run`)"))
		return MEW_EXIT_FINE;
	if (cli.gbench) {
		mew_cli_complain("--gbench-program: this program is of mew; it is for `mew run`");
		return MEW_EXIT_USAGE;
	}
	if (cli.nprograms > 0) {
		mew_cli_complain("\"%s\": this program measures itself alone; use `mew run` for several",
				 cli.programs[0]);
		return MEW_EXIT_USAGE;
	}
	cli.programs = programs;
	cli.nprograms = 1;
	return mew_cli_run(&cli);
}
