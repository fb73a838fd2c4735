/*
 * cmd_calibrate.c - `mew calibrate`: what the gate can see on this machine, measured by A/A runs and kept for it.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cmd.h"

#include "calibrate.h"
#include "cli.h"
#include "grid.h"
#include "rules_flags.h"
#include "stats.h"
#include "writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum flag_id { F_TRIALS = 256, F_SAMPLES, F_ROUNDS, F_SEED, F_OUTPUT, F_TIMEOUT, F_GBENCH, F_PROGRESS, F_HELP };

static const struct mew_flag flags[] = {
	{ 'k', NULL, required_argument, "-k RE", "cases whose name or label matches the extended regular expression" },
	{ 'F', NULL, required_argument, "-F TEXT", "cases whose name or label contains the text" },
	{ 't', NULL, required_argument, "-t TAG", "cases with the tag; given twice: with either" },
	{ F_TRIALS, "trials", required_argument, "--trials N",
	  "gates of the program against itself, and of each control (20)" },
	{ F_SAMPLES, "samples", required_argument, "--samples N", "pairs of processes in each (40)" },
	{ F_ROUNDS, "rounds", required_argument, "--rounds N", "samples of each side in a pair of processes (15)" },
	{ F_SEED, "seed", required_argument, "--seed N", "of the order of samples (random, recorded)" },
	{ F_OUTPUT, "output", required_argument, "--output FILE", "instead of ~/.local/state/mew/NAME-MACHINE.json" },
	{ F_TIMEOUT, "timeout", required_argument, "--timeout S",
	  "give up when a case takes longer than S seconds in a process" },
	{ F_GBENCH, "gbench-program", no_argument, "--gbench-program", "BENCH is a program of Google Benchmark" },
	{ 'q', NULL, no_argument, "-q", "no table" },
	{ F_PROGRESS, "progress", required_argument, "--progress WHEN", "auto, always or never, on standard error" },
	{ F_HELP, "help", no_argument, "--help", "print this" },
};

struct asked {
	struct mew_calibrate_options o;
	struct mew_rules_flags by; /* the cases alone */
	const char *output;
	bool help, quiet, seed_given;
};

static void help(void)
{
	(void)printf("usage: mew calibrate BENCH [flags]\n\n");
	mew_flags_help(flags, MEW_COUNTOF(flags), 20);
	(void)printf("\nExit code: 0 fine; 2 usage or environment; 4 a case failed, nothing matched,\n"
		     "or interrupted.\n");
}

static int bounded(const char *flag, const char *text, unsigned least, unsigned most, unsigned *out)
{
	uint64_t value;
	char want[64];

	if (mew_cli_count(flag, text, &value) != MEW_EXIT_FINE)
		return MEW_EXIT_USAGE;
	(void)snprintf(want, sizeof want, "between %u and %u", least, most);
	if (value < least || value > most)
		return mew_cli_bad(flag, text, want);
	*out = (unsigned)value;
	return MEW_EXIT_FINE;
}

static int apply(struct asked *a, int id, char *value)
{
	switch (id) {
	case F_TRIALS:
		return bounded("--trials", value, 1, 10000, &a->o.trials);
	case F_SAMPLES: /* fewer never decide */
		return bounded("--samples", value, 16, 1000, &a->o.samples);
	case F_ROUNDS:
		return bounded("--rounds", value, 1, MEW_PAIR_ROUNDS, &a->o.rounds);
	case F_SEED:
		a->seed_given = true;
		return mew_cli_count("--seed", value, &a->o.seed);
	case F_OUTPUT:
		a->output = value;
		return MEW_EXIT_FINE;
	case F_TIMEOUT:
		return mew_cli_seconds("--timeout", value, 1e-9, &a->o.host.timeout);
	case F_GBENCH:
		a->o.gbench = true;
		return MEW_EXIT_FINE;
	case 'q':
		a->quiet = true;
		return MEW_EXIT_FINE;
	case F_PROGRESS:
		return mew_when_parse(value, &a->o.progress) ? MEW_EXIT_FINE :
		       mew_cli_bad("--progress", value, "auto, always or never");
	case F_HELP:
		a->help = true;
		return MEW_EXIT_FINE;
	default:
		return mew_rules_flags_apply(&a->by, id, value);
	}
}

static int parse(struct asked *a, int argc, char **argv)
{
	struct option options[MEW_FLAGS_MAX + 1] = { { NULL, 0, NULL, 0 } };
	int id;

	(void)mew_flags_options(flags, MEW_COUNTOF(flags), options, 0);
	optind = 0;
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":k:F:t:q", options, NULL)) != -1) {
		int code = id == '?' || id == ':' ? mew_cli_unknown(argv, id, options) : apply(a, id, optarg);

		if (code != MEW_EXIT_FINE)
			return code;
	}
	if (a->help)
		return MEW_EXIT_FINE;
	if (argc - optind != 1) {
		mew_cli_complain("calibrate: name one benchmark program, such as `mew calibrate ./bench`");
		return MEW_EXIT_USAGE;
	}
	a->o.program = argv[optind];
	if (!a->seed_given && getrandom(&a->o.seed, sizeof a->o.seed, 0) != sizeof a->o.seed)
		a->o.seed = (uint64_t)time(NULL);
	if (!a->seed_given)
		a->o.seed >>= 11; /* what it is drawn to must pass through JSON's numbers, which may be doubles */
	return mew_rules_flags_complete(&a->by);
}

/* --- the table -------------------------------------------------------------------------------------------------- */

static void put_power(struct mew_grid *t, const struct mew_control *c)
{
	char text[64] = "";
	struct mew_interval in;

	if (c->trials > 0 && mew_stats_wilson(c->found, c->trials, 1.959964, &in))
		(void)snprintf(text, sizeof text, "%.0f (%.0f-%.0f)", 100.0 * c->found / c->trials, in.low * 100,
			       in.high * 100);
	mew_grid_cell(t, MEW_STYLE_PLAIN, text);
}

static int print(const struct mew_calibration *c)
{
	struct mew_view view = { .width = (size_t)mew_terminal_width(STDOUT_FILENO), .utf8 = mew_terminal_utf8() };
	char text[160];
	struct mew_writer w;
	struct mew_grid t;
	int status;

	mew_writer_fd(&w, STDOUT_FILENO);
	mew_calibration_words(c, text, sizeof text);
	mew_writef(&w, "%s at margin 0, %u pairs of processes each\n", text, c->samples);
	mew_grid_init(&t);
	mew_grid_column(&t, "case", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(&t, "noise floor", "%", MEW_ALIGN_NUMBER, false);
	mew_grid_column(&t, "finds from", "%", MEW_ALIGN_NUMBER, false);
	for (size_t i = 0; i < MEW_CALIBRATION_CONTROLS; i++)
		mew_grid_column(&t, mew_control_names[i], "%", MEW_ALIGN_RIGHT, false);
	for (size_t i = 0; i < c->ncases; i++) {
		mew_grid_row(&t);
		mew_grid_cell(&t, MEW_STYLE_PLAIN, c->cases[i].key);
		(void)snprintf(text, sizeof text, "%.2f", c->cases[i].noise_floor * 100);
		mew_grid_cell(&t, MEW_STYLE_PLAIN, text);
		(void)snprintf(text, sizeof text, "%.2f", c->cases[i].smallest_effect * 100);
		mew_grid_cell(&t, MEW_STYLE_PLAIN, text);
		for (size_t n = 0; n < MEW_CALIBRATION_CONTROLS; n++)
			put_power(&t, &c->cases[i].controls[n]);
	}
	status = mew_grid_write(&t, &w, &view);
	mew_grid_fini(&t);
	if (mew_writer_finish(&w) == 0 && status == MEW_OK)
		return MEW_EXIT_FINE;
	mew_cli_complain("standard output: %s", status == MEW_OK ? strerror(w.error) : "no memory for the table");
	return MEW_EXIT_USAGE;
}

/* --- from the start to the file --------------------------------------------------------------------------------- */

static int keep(const struct asked *a, const struct mew_calibration *c)
{
	char *usual = a->output == NULL ? mew_calibration_path(c) : NULL;
	const char *path = a->output != NULL ? a->output : usual;
	struct mew_error err;
	int code = MEW_EXIT_FINE;

	if (path == NULL) {
		mew_cli_complain("calibrate: there is no HOME to keep it in: name a file by --output");
		code = MEW_EXIT_USAGE;
	} else if (mew_calibration_write(c, path, &err) != MEW_OK) {
		mew_cli_complain("calibrate: %s", err.text);
		code = MEW_EXIT_USAGE;
	} else if (!a->quiet && strcmp(path, "-") != 0) {
		(void)fprintf(stderr, "wrote %s\n", path);
	}
	free(usual);
	return code;
}

static int run(struct asked *a)
{
	struct mew_calibration *c = calloc(1, sizeof *c);
	double load[1];
	int code;

	if (c == NULL) {
		mew_cli_complain("calibrate: no memory");
		return MEW_EXIT_USAGE;
	}
	a->o.select = &a->by.select;
	c->started_s = (uint64_t)time(NULL);
	c->seed = a->o.seed;
	c->samples = a->o.samples;
	c->rounds = a->o.rounds;
	c->load = getloadavg(load, 1) == 1 ? load[0] : (double)NAN;
	code = mew_calibrate(&a->o, c);
	if (code == MEW_EXIT_FINE && *a->o.host.cancelled) { /* half of it would claim more than it saw */
		mew_cli_complain("calibrate: interrupted: nothing was kept");
		code = MEW_EXIT_INVALID;
	}
	if (code == MEW_EXIT_FINE && !a->quiet)
		code = print(c);
	if (code == MEW_EXIT_FINE)
		code = keep(a, c);
	mew_calibration_free(c);
	return code;
}

int mew_cmd_calibrate(int argc, char **argv)
{
	struct asked a = { .o = { .trials = 20, .samples = 40, .rounds = 15, .host = { .capture = true } } };
	int code = parse(&a, argc, argv);

	if (code == MEW_EXIT_FINE && a.help) {
		help();
	} else if (code == MEW_EXIT_FINE) {
		a.o.host.cancelled = mew_cli_catch_interrupts();
		a.o.host.say = mew_cli_say;
		code = run(&a);
	}
	mew_rules_flags_fini(&a.by);
	return code;
}
