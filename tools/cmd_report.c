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

int mew_cmd_report(int argc, char **argv)
{
	bool dumping = take_dump(&argc, argv);
	struct mew_model *m;
	struct mew_error err;
	struct mew_cli cli;
	int code = mew_cli_parse(&cli, argc, argv);

	if (code != MEW_EXIT_FINE)
		return code;
	if (cli.help) {
		mew_cli_help(stdout, "mew report FILE.mew.json [--dump] [reports] [-q] [-v] [--color WHEN]");
		return MEW_EXIT_FINE;
	}
	if (cli.nprograms != 1) {
		mew_cli_complain("report: name one file that `--json FILE` wrote");
		return MEW_EXIT_USAGE;
	}
	m = mew_read_json(cli.programs[0], &err);
	if (m == NULL) {
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	if (dumping)
		code = dump(m);
	else if (cli.noutputs > 0)
		code = mew_cli_outputs(&cli, m);
	else if (mew_cli_tables(&cli, m, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		code = MEW_EXIT_USAGE;
	}
	mew_model_free(m);
	return code;
}
