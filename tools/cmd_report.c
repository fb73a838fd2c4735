/*
 * cmd_report.c - `mew report`: every report from a saved result, without the program; --dump lists all runs by phase.
 * Layer L6.
 */
#include "config.h"

#include "cmd.h"

#include "analyse.h"
#include "cli.h"
#include "read_json.h"
#include "symbolise.h"
#include "writer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void dump_run(struct mew_writer *w, const struct mew_run *r)
{
	mew_writef(w, "  %-20s process %u repetition %u loops %llu samples %zu ns", mew_phase_name(r->phase),
		   r->process, r->repetition, (unsigned long long)r->loops, r->nsamples);
	for (size_t i = 0; i < r->nsamples; i++) {
		mew_write_char(w, ' ');
		mew_write_u64(w, r->real_ns[i]);
	}
	mew_write_char(w, '\n');
}

static int dump(const struct mew_model *m)
{
	struct mew_writer w;

	mew_writer_fd(&w, STDOUT_FILENO);
	for (size_t i = 0; i < m->ncases; i++) {
		const struct mew_case *c = &m->cases[i];

		mew_writef(&w, "%s%s%s%s\n", c->key, c->label != NULL ? " [" : "", c->label != NULL ? c->label : "",
			   c->label != NULL ? "]" : "");
		for (size_t k = 0; k < c->nruns; k++)
			dump_run(&w, &c->runs[k]);
		for (size_t k = 0; k < c->nphase_data; k++)
			mew_writef(&w, "  %-20s %s = %s\n", mew_phase_name(c->phase_data[k].phase),
				   c->phase_data[k].key, c->phase_data[k].value);
	}
	if (mew_writer_finish(&w) == 0)
		return MEW_EXIT_FINE;
	mew_cli_complain("standard output: %s", strerror(w.error));
	return MEW_EXIT_USAGE;
}

/* The tables speak of one result. */
static int show(const struct mew_cli *cli, const struct mew_model *m, const struct mew_model *base)
{
	struct mew_error err;

	if (cli->noutputs > 0)
		return mew_cli_outputs(cli, m, base);
	if (base != NULL) {
		mew_cli_complain("report: two files are shown side by side by --html FILE; name one file for the tables");
		return MEW_EXIT_USAGE;
	}
	if (mew_cli_tables(cli, m, &err) == MEW_OK)
		return MEW_EXIT_FINE;
	mew_cli_complain("%s", err.text);
	return MEW_EXIT_USAGE;
}

/* The same result with names for what had none when it was saved. Takes `saved`; NULL after a line. */
static struct mew_model *name_again(struct mew_model *saved, struct mew_symbolise_servers *servers)
{
	struct mew_model *m = mew_model_new();
	struct mew_error err = { .status = MEW_E_NOMEM, .text = "no memory to name the functions of a saved result" };
	int status = MEW_E_NOMEM;

	servers->again = true;
	if (m != NULL && mew_model_merge(m, saved) == 0) /* a sealed one takes no names */
		status = mew_symbolise(m, servers, &err);
	if (status == MEW_E_UNSUPPORTED) /* what was saved can be shown all the same */
		mew_cli_complain("%s", err.text);
	if (status == MEW_OK || status == MEW_E_UNSUPPORTED)
		status = mew_analyse(m, &err);
	mew_model_free(saved);
	if (status == MEW_OK) {
		mew_model_seal(m);
		return m;
	}
	mew_cli_complain("%s", err.text);
	mew_model_free(m);
	return NULL;
}

static struct mew_model *read_file(const char *path, struct mew_symbolise_servers *servers)
{
	struct mew_error err;
	struct mew_model *m = mew_read_json(path, &err);

	if (m == NULL)
		mew_cli_complain("%s", err.text);
	return m == NULL || servers == NULL ? m : name_again(m, servers);
}

/* With two files the first is the base and the second is what it became. */
static int report_files(const struct mew_cli *cli)
{
	struct mew_model *models[2] = { NULL, NULL };
	int code = mew_cli_check_servers(cli);
	struct mew_symbolise_servers room, *servers = mew_cli_servers(cli, &room);

	for (int i = 0; i < cli->nprograms && code == MEW_EXIT_FINE; i++) {
		models[i] = read_file(cli->programs[i], servers);
		if (models[i] == NULL)
			code = MEW_EXIT_USAGE;
	}
	if (code == MEW_EXIT_FINE && models[0] != NULL && cli->dump)
		code = dump(models[0]);
	else if (code == MEW_EXIT_FINE && models[1] != NULL)
		code = show(cli, models[1], models[0]);
	else if (code == MEW_EXIT_FINE)
		code = show(cli, models[0], NULL);
	mew_model_free(models[0]);
	mew_model_free(models[1]);
	return code;
}

int mew_cmd_report(int argc, char **argv)
{
	struct mew_cli cli;
	int code = mew_cli_parse(&cli, MEW_CLI_REPORT, argc, argv);

	if (code != MEW_EXIT_FINE)
		return code;
	if (mew_cli_told(&cli, MEW_CLI_REPORT, "mew report [flags] [BASE.mew.json] FILE.mew.json"))
		return MEW_EXIT_FINE;
	if (cli.dump && cli.noutputs > 0) {
		mew_cli_complain("report: --dump does not go with --%s: ask for one of them",
				 cli.outputs[0].report->name);
		return MEW_EXIT_USAGE;
	}
	if (cli.nprograms < 1 || cli.nprograms > (cli.dump ? 1 : 2)) {
		mew_cli_complain("report: name one file that `--json FILE` wrote%s",
				 cli.dump ? "" : ", or two to compare them with --html");
		return MEW_EXIT_USAGE;
	}
	return report_files(&cli);
}
