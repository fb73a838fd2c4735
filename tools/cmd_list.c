/*
 * cmd_list.c - `mew list`: the cases of programs; -v also what can be measured here, and what disturbs.
 * Layer L6.
 */
#include "config.h"

#include "cmd.h"

#include "cli.h"
#include "environment.h"
#include "guest_host.h"
#include "hooks_link.h"
#include "select.h"

#include <stdio.h>
#include <string.h>

static void print_case(const struct mew_host_case *c)
{
	(void)printf("%s", c->key);
	if (c->label != NULL)
		(void)printf("\t[%s]", c->label);
	if (c->threads > 1)
		(void)printf("\tthreads=%u", c->threads);
	if (c->tags != NULL)
		(void)printf("\ttags: %s", c->tags);
	(void)putchar('\n');
}

/* The same for a program of Google Benchmark. */
static int list_guest(const struct mew_cli *cli, const char *program, const struct mew_select *select,
		      struct mew_model *facts)
{
	struct mew_guest_host host;
	struct mew_error err;
	int shown = 0;

	if (mew_guest_open(&host, program, &cli->host, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		shown = -1;
	}
	for (size_t i = 0; shown >= 0 && i < host.nnames; i++)
		if (mew_select_matches(select, host.names[i], NULL, NULL)) {
			(void)printf("%s\n", host.names[i]);
			shown++;
		}
	if (shown >= 0)
		mew_model_take_facts(facts, host.facts);
	mew_guest_close(&host);
	return shown;
}

/* Returns the number of cases shown, or -1 after a complaint. */
static int list_program(const struct mew_cli *cli, const char *program, const struct mew_select *select,
			struct mew_model *facts)
{
	struct mew_host host;
	struct mew_error err;
	int shown = 0;

	if (mew_host_open(&host, program, &cli->host, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		mew_host_close(&host);
		return -1;
	}
	for (size_t i = 0; i < host.ncases; i++) {
		const struct mew_host_case *c = &host.cases[i];

		if (!mew_select_matches(select, c->key, c->label, c->tags))
			continue;
		print_case(c);
		shown++;
	}
	if (cli->verbose && host.hook_names != NULL && host.hook_names[0] != '\0')
		(void)printf("hooks of %s: %s\n", program, host.hook_names);
	mew_model_take_facts(facts, host.facts);
	mew_host_close(&host);
	return shown;
}

static void print_backends(void)
{
	(void)printf("\nbackends\n");
	for (size_t i = 0; mew_backends[i] != NULL; i++) {
		const struct mew_backend *b = mew_backends[i];
		struct mew_error err = { 0 };
		bool loads_later = b->pass == MEW_PASS_MEMORY && mew_hooks_link() == NULL;
		int status = loads_later ? MEW_OK : b->probe(&err);

		(void)printf("  %-8s %-4s %s\n", b->name, status == MEW_OK ? "yes" : "no",
			     status == MEW_OK ? b->help : err.text);
	}
}

static void print_environment(struct mew_model *m)
{
	struct mew_advice advice[8];
	size_t n;

	(void)printf("\nthis machine\n");
	for (size_t i = 0; i < m->nfacts; i++)
		(void)printf("  %-16s %s\n", m->facts[i].name, m->facts[i].value);
	mew_environment_grade(m);
	n = mew_environment_advice(m, advice, MEW_COUNTOF(advice));
	(void)printf("\ngrade %c%s\n", m->grade,
		     n == 0 ? ": nothing known disturbs measurements here" : "; what disturbs, and what would end it");
	for (size_t i = 0; i < n; i++)
		(void)printf("  - %s: %s\n", advice[i].what, advice[i].remedy);
}

static int list_all(const struct mew_cli *cli, const struct mew_select *select, struct mew_model *facts)
{
	int total = 0;

	for (int i = 0; i < cli->nprograms; i++) {
		int shown = (cli->gbench ? list_guest : list_program)(cli, cli->programs[i], select, facts);

		if (shown < 0)
			return MEW_EXIT_USAGE;
		total += shown;
	}
	if (cli->verbose) {
		print_backends();
		print_environment(facts);
	}
	if (total > 0 || cli->nprograms == 0)
		return MEW_EXIT_FINE;
	mew_cli_complain("no case matches -k, -F and -t");
	return MEW_EXIT_INVALID;
}

int mew_cmd_list(int argc, char **argv)
{
	struct mew_cli cli;
	struct mew_select select;
	struct mew_model *facts;
	struct mew_error err;
	int code = mew_cli_parse(&cli, MEW_CLI_LIST, argc, argv);

	if (code != MEW_EXIT_FINE)
		return code;
	if (mew_cli_told(&cli, MEW_CLI_LIST, "mew list [flags] BENCH..."))
		return MEW_EXIT_FINE;
	if (cli.nprograms == 0 && !cli.verbose) {
		mew_cli_complain("list: name a benchmark program, or give -v to see what works on this machine");
		return MEW_EXIT_USAGE;
	}
	if (mew_select_init(&select, cli.pattern, cli.literal, cli.tags, cli.ntags, &err) != MEW_OK) {
		mew_cli_complain("-k: %s", err.text);
		return MEW_EXIT_USAGE;
	}
	facts = mew_model_new();
	if (facts != NULL) {
		mew_environment_machine(facts);
		code = list_all(&cli, &select, facts);
	}
	mew_model_free(facts);
	mew_select_fini(&select);
	return code;
}
