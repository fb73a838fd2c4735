/*
 * cmd_report.c - `mew report`: every report from a saved result, without the program; --dump lists all runs by phase.
 * Layer L6.
 */
#include "config.h"

#include "cmd.h"

#include "cli.h"
#include "read_json.h"
#include "writer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void dump_run(struct mew_writer *w, const struct mew_run *r)
{
	mew_writef(w, "  %-20s process %u repetition %u loops %llu samples %zu ns", mew_phase_name(r->phase), r->process,
		   r->repetition, (unsigned long long)r->loops, r->nsamples);
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
			mew_writef(&w, "  %-20s %s = %s\n", mew_phase_name(c->phase_data[k].phase), c->phase_data[k].key,
				   c->phase_data[k].value);
	}
	if (mew_writer_finish(&w) == 0)
		return MEW_EXIT_FINE;
	mew_cli_complain("standard output: %s", strerror(w.error));
	return MEW_EXIT_USAGE;
}

/* Take --dump out of the arguments: it is the one flag that `mew run` does not have. */
static bool take_dump(int *argc, char **argv)
{
	bool found = false;
	int n = 0;

	for (int i = 0; i < *argc; i++) {
		if (strcmp(argv[i], "--dump") == 0)
			found = true;
		else
			argv[n++] = argv[i];
	}
	argv[n] = NULL;
	*argc = n;
	return found;
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

/* With two files the first is the base and the second is what it became. */
static int report_files(const struct mew_cli *cli, bool dumping)
{
	struct mew_model *models[2] = { NULL, NULL };
	int code = MEW_EXIT_FINE;

	for (int i = 0; i < cli->nprograms && code == MEW_EXIT_FINE; i++) {
		struct mew_error err;

		models[i] = mew_read_json(cli->programs[i], &err);
		if (models[i] == NULL) {
			mew_cli_complain("%s", err.text);
			code = MEW_EXIT_USAGE;
		}
	}
	if (code == MEW_EXIT_FINE && dumping)
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
	bool dumping = take_dump(&argc, argv);
	struct mew_cli cli;
	int code = mew_cli_parse(&cli, argc, argv);

	if (code != MEW_EXIT_FINE)
		return code;
	if (cli.help) {
		mew_cli_help(stdout, "mew report [BASE.mew.json] FILE.mew.json [--dump] [reports] [-q] [-v] [--color WHEN]");
		return MEW_EXIT_FINE;
	}
	if (cli.nprograms < 1 || cli.nprograms > (dumping ? 1 : 2)) {
		mew_cli_complain("report: name one file that `--json FILE` wrote%s",
				 dumping ? "" : ", or two to compare them with --html");
		return MEW_EXIT_USAGE;
	}
	return report_files(&cli, dumping);
}
