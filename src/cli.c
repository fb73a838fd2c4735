/*
 * cli.c - what the flags of cli_flags.c mean: their values, and what goes together.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cli.h"
#include "cli_flags.h"
#include "cli_trace.h"
#include "elf_names.h"
#include "lanes.h"
#include "os.h"
#include "probe.h"
#include "textual.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALLOCATOR_PROCESSES 8u /* all on one side tell each two of four allocators apart at 95 % */

/* Names come from files and programs: none may move the cursor of the terminal or forge a line. */
void mew_cli_complain(const char *format, ...)
{
	char *text = NULL, *clean;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	clean = text == NULL ? NULL : mew_text_clean(text);
	(void)fflush(stdout);
	(void)fprintf(stderr, "mew: %s\n", clean != NULL ? clean : "out of memory");
	free(clean);
	free(text);
}

/* --- values ----------------------------------------------------------------------------------------------------- */

int mew_cli_bad(const char *shown, const char *value, const char *want)
{
	mew_cli_complain("%s: \"%s\" is not %s; see --help", shown, value, want);
	return MEW_EXIT_USAGE;
}

int mew_cli_seconds(const char *shown, const char *text, double least, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end == text || *end != '\0' || !isfinite(*out) || *out < least)
		return mew_cli_bad(shown, text, least >= 1 ? "a number of seconds, 1 or more" :
				   least > 0  ? "a number of seconds above 0" : "a number of seconds, 0 or more");
	return MEW_EXIT_FINE;
}

int mew_cli_count(const char *shown, const char *text, uint64_t *out)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value == 0)
		return mew_cli_bad(shown, text, "a whole number, 1 or more");
	*out = value;
	return MEW_EXIT_FINE;
}

static int small_count(const char *shown, const char *text, unsigned *out)
{
	uint64_t value;

	if (mew_cli_count(shown, text, &value) != MEW_EXIT_FINE)
		return MEW_EXIT_USAGE;
	if (value > 100000)
		return mew_cli_bad(shown, text, "at most 100000");
	*out = (unsigned)value;
	return MEW_EXIT_FINE;
}

/*
 * `--memory 50`: the number would be a program. No program that can be run is named like one, since its path has a
 * slash. `mew record` looks in PATH, where 2048 may be a game, though not 0.001.
 */
static int stray_number(const struct mew_cli *c, const char *shown)
{
	const char *next = optind < c->trace.argc ? c->trace.argv[optind] : "";

	if (c->record && strchr(next, '.') == NULL)
		return MEW_EXIT_FINE;
	if (*next == '\0' || next[strspn(next, "0123456789.")] != '\0' || strpbrk(next, "0123456789") == NULL)
		return MEW_EXIT_FINE;
	mew_cli_complain("%s: its number follows a '=': %s=%s", shown, shown, next);
	return MEW_EXIT_USAGE;
}

static int min_time(struct mew_cli *c, const char *text)
{
	size_t n = strlen(text);
	char number[32];

	if (n < 2 || text[n - 1] != 'x')
		return mew_cli_seconds("--min-time", text, 0, &c->plan.min_time);
	(void)snprintf(number, sizeof number, "%.*s", (int)(n - 1), text);
	return mew_cli_count("--min-time", number, &c->plan.iterations);
}

static int cpu(struct mew_cli *c, const char *text)
{
	char *end;

	c->passes[MEW_PASS_CPU] = true;
	if (text == NULL)
		return stray_number(c, "--cpu");
	c->plan.interval = strtod(text, &end);
	if (end == text || *end != '\0' || !(c->plan.interval >= 0.00002 && c->plan.interval <= 1))
		return mew_cli_bad("--cpu", text, "a number of seconds from 0.00002 to 1");
	return MEW_EXIT_FINE;
}

static int clock_of(struct mew_cli *c, const char *text)
{
	if (strcmp(text, "wall") != 0 && strcmp(text, "cpu") != 0)
		return mew_cli_bad("--clock", text, "wall or cpu");
	c->plan.clock = text[0] == 'w' ? MEW_CLOCK_WALL : MEW_CLOCK_CPU;
	return MEW_EXIT_FINE;
}

static int append(const char **list, size_t *n, const char *shown, const char *text)
{
	if (*n == MEW_CLI_LIST_MAX)
		return mew_cli_bad(shown, text, "one of at most 32");
	list[(*n)++] = text;
	return MEW_EXIT_FINE;
}

static int output(struct mew_cli *c, const struct mew_report *report, const char *path)
{
	if (c->noutputs == MEW_CLI_LIST_MAX)
		return mew_cli_bad(report->name, path, "one of at most 32 reports");
	if (path[0] == '\0') {
		mew_cli_complain("--%s: \"\" is not the name of a file; name one", report->name);
		return MEW_EXIT_USAGE;
	}
	c->outputs[c->noutputs++] = (struct mew_cli_output){ report, path };
	return MEW_EXIT_FINE;
}

static int when(const char *shown, const char *text, enum mew_when *out)
{
	return mew_when_parse(text, out) ? MEW_EXIT_FINE : mew_cli_bad(shown, text, "auto, always or never");
}

static int function_name(const char *shown, const char *text, const char **out)
{
	struct mew_wanted_name name;

	if (!mew_name_prepare(&name, text) || strchr(text, '\n') != NULL)
		return mew_cli_bad(shown, text, "the name of a function");
	if (!mew_probe_is_known()) {
		mew_cli_complain("%s: functions cannot be watched on this machine's processor", shown);
		return MEW_EXIT_USAGE;
	}
	*out = text;
	return MEW_EXIT_FINE;
}

static int capture(struct mew_cli *c, const char *text)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return mew_cli_bad("--capture", text, "yes or no");
	c->host.capture = text[0] == 'y';
	return MEW_EXIT_FINE;
}

static int jobs(struct mew_cli *c, const char *text)
{
	unsigned processors = mew_os_processors();
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)text[0]) || *end != '\0' || value > MEW_LANES_MAX)
		return mew_cli_bad("--jobs", text, "a whole number from 0 to 256");
	c->jobs = value > 0 ? (unsigned)value : processors < MEW_LANES_MAX ? processors : MEW_LANES_MAX;
	return MEW_EXIT_FINE;
}

static int allocators(struct mew_cli *c, const char *text)
{
	if (text[0] == '\0')
		return mew_cli_bad("--allocator", text, "a list of allocators");
	c->allocators = text;
	c->passes[MEW_PASS_MEMORY] = true;
	return MEW_EXIT_FINE;
}

static int apply_timing(struct mew_cli *c, int id, const char *value)
{
	switch (id) {
	case F_MIN_TIME:
		return min_time(c, value);
	case F_MAX_TIME:
		return mew_cli_seconds("--max-time", value, 1e-9, &c->plan.max_time);
	case F_MIN_WARMUP:
		return mew_cli_seconds("--min-warmup-time", value, 0, &c->plan.min_warmup_time);
	case F_REPETITIONS:
		return small_count("--repetitions", value, &c->plan.repetitions);
	case F_PROCESSES:
		c->processes_given = true;
		return small_count("--processes", value, &c->plan.processes);
	case F_INTERLEAVE:
		c->plan.interleave = true;
		return MEW_EXIT_FINE;
	case F_LATENCY:
		c->plan.latency = true;
		return MEW_EXIT_FINE;
	default:
		return -1;
	}
}

static int apply_passes(struct mew_cli *c, int id, const char *value)
{
	switch (id) {
	case F_MEMORY:
		c->passes[MEW_PASS_MEMORY] = true;
		if (value != NULL)
			return mew_cli_count("--memory", value, &c->plan.memory_iterations);
		return c->record ? MEW_EXIT_FINE : stray_number(c, "--memory");
	case F_CPU:
		return cpu(c, value);
	case F_CLOCK:
		return clock_of(c, value);
	case F_INNER:
		return mew_cli_count("--inner-iterations", value, &c->plan.inner_iterations);
	case F_ALL:
		c->passes[MEW_PASS_MEMORY] = c->passes[MEW_PASS_CPU] = true;
		return MEW_EXIT_FINE;
	case F_ALLOCATOR:
		return allocators(c, value);
	case F_HOOK:
		return append(c->hooks, &c->host.nhooks, "--hook", value);
	case F_JOBS:
		return jobs(c, value);
	case F_TIMEOUT:
		return mew_cli_seconds("--timeout", value, 1e-9, &c->host.timeout);
	case F_CAPTURE:
		return capture(c, value);
	case F_DRY_RUN:
		c->plan.dry_run = true;
		return MEW_EXIT_FINE;
	default:
		return -1;
	}
}

/* The second key is the next word, which getopt would take for a program. */
static int versus(struct mew_cli *c, const char *value)
{
	if (optind >= c->trace.argc)
		return mew_cli_bad("--versus", value, "followed by the key of a second case");
	c->versus[0] = value;
	c->versus[1] = c->trace.argv[optind++];
	return MEW_EXIT_FINE;
}

static int seed(struct mew_cli *c, const char *text)
{
	char *end;

	errno = 0;
	c->seed = strtoull(text, &end, 10);
	c->seed_given = true;
	return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 ? MEW_EXIT_FINE :
	       mew_cli_bad("--seed", text, "a whole number");
}

static int apply(struct mew_cli *c, int id, const char *value)
{
	switch (id) {
	case 'k':
		c->pattern = value;
		return MEW_EXIT_FINE;
	case 'F':
		c->literal = value;
		return MEW_EXIT_FINE;
	case 't':
		return append(c->tags, &c->ntags, "-t", value);
	case 'q':
		c->quiet = true;
		return MEW_EXIT_FINE;
	case 'v':
		c->verbose = true;
		return MEW_EXIT_FINE;
	case F_VERSUS:
		return versus(c, value);
	case F_SEED:
		return seed(c, value);
	case F_EMBED_SOURCE:
		c->embed_source = true;
		return MEW_EXIT_FINE;
	case F_DEBUGINFOD:
		c->servers = MEW_SERVERS_SECONDS;
		return value == NULL ? MEW_EXIT_FINE : mew_cli_seconds("--debuginfod", value, 1, &c->servers);
	case F_GBENCH:
		c->gbench = true;
		return MEW_EXIT_FINE;
	case F_COLOR:
		return when("--color", value, &c->color);
	case F_TRACE:
		return mew_cli_trace_file(&c->trace, value);
	case F_REDACT:
		return mew_cli_trace_redact(value);
	case F_PROGRESS:
		return when("--progress", value, &c->progress);
	case F_DUMP:
		c->dump = true;
		return MEW_EXIT_FINE;
	case F_VERSION:
		c->version = true;
		return MEW_EXIT_FINE;
	case F_HELP:
		c->help = true;
		return MEW_EXIT_FINE;
	case F_FOLLOW:
		c->follow = true;
		return MEW_EXIT_FINE;
	case F_START_AFTER:
		return mew_cli_seconds("--start-after", value, 1e-9, &c->start_after);
	case F_START_ON:
		return function_name("--start-on", value, &c->start_on);
	case F_STOP_ON:
		return function_name("--stop-on", value, &c->stop_on);
	default:
		return -1;
	}
}

static void tell_download(void *data, const char *line)
{
	(void)data;
	mew_cli_complain("debuginfod: %s", line);
}

struct mew_symbolise_servers *mew_cli_servers(const struct mew_cli *c, struct mew_symbolise_servers *s)
{
	*s = (struct mew_symbolise_servers){ mew_os_now_ns() + (uint64_t)(fmin(c->servers, 1e6) * 1e9), tell_download, NULL, false };
	return c->servers > 0 ? s : NULL;
}

int mew_cli_check_servers(const struct mew_cli *c)
{
	struct mew_error err;

	if (c->servers <= 0 || mew_symbolise_check_servers(&err) == MEW_OK)
		return MEW_EXIT_FINE;
	mew_cli_complain("--debuginfod: %s", err.text);
	return MEW_EXIT_USAGE;
}

/* --- the parser ------------------------------------------------------------------------------------------------- */

static int one_flag(struct mew_cli *c, int id, const char *value)
{
	int code;

	if (id >= F_REPORT)
		return output(c, mew_reports[id - F_REPORT], value);
	code = apply(c, id, value);
	if (code == -1)
		code = apply_timing(c, id, value);
	return code == -1 ? apply_passes(c, id, value) : code;
}

static int parse(struct mew_cli *c, enum mew_cli_command command, int argc, char **argv)
{
	struct option options[MEW_CLI_OPTIONS];
	char letters[MEW_CLI_LETTERS];
	int id;

	mew_cli_options(command, letters, options);
	optind = 0;
	opterr = 0;
	while ((id = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		int code = id == '?' || id == ':' ? mew_cli_unknown(argv, id, options) : one_flag(c, id, optarg);

		if (code != MEW_EXIT_FINE)
			return code;
	}
	c->programs = argv + optind;
	c->nprograms = argc - optind;
	return MEW_EXIT_FINE;
}

/* Two reports in one file: the second would take the first one's place, or stand behind it. So would the timeline. */
static int check_outputs(const struct mew_cli *c)
{
	for (size_t i = 0; i < c->noutputs; i++) {
		const struct mew_cli_output *o = &c->outputs[i];
		const char *other = NULL;

		if (o->report->shape != MEW_REPORT_FILE)
			continue;
		if (c->trace.file != NULL && strcmp(o->path, c->trace.file) == 0)
			other = "trace";
		for (size_t k = 0; k < i && other == NULL; k++)
			if (strcmp(o->path, c->outputs[k].path) == 0)
				other = c->outputs[k].report->name;
		if (other == NULL)
			continue;
		mew_cli_complain("--%s and --%s both write to %s: name two files", other, o->report->name,
				 strcmp(o->path, "-") == 0 ? "standard output" : o->path);
		return MEW_EXIT_USAGE;
	}
	return MEW_EXIT_FINE;
}

static int complete_record(struct mew_cli *c)
{
	if (!c->passes[MEW_PASS_MEMORY] && !c->passes[MEW_PASS_CPU])
		c->passes[MEW_PASS_MEMORY] = c->passes[MEW_PASS_CPU] = true;
	if (c->start_after <= 0 || (c->start_on == NULL && c->stop_on == NULL))
		return mew_cli_trace_check(&c->trace, c->programs, c->nprograms > 0);
	mew_cli_complain("--start-after goes neither with --start-on nor with --stop-on: give seconds or functions");
	return MEW_EXIT_USAGE;
}

static int complete_run(struct mew_cli *c)
{
	if (c->plan.iterations > 0 && c->plan.min_time > 0) {
		mew_cli_complain("--min-time was given in seconds and in iterations: give one of them");
		return MEW_EXIT_USAGE;
	}
	if (c->seed_given && c->versus[0] == NULL) {
		mew_cli_complain("--seed is for --versus KEY KEY: give both, or neither");
		return MEW_EXIT_USAGE;
	}
	if (c->allocators != NULL) {
		c->plan.interleave = false; /* they take turns themselves */
		c->plan.cold_resident = true;
		if (!c->processes_given)
			c->plan.processes = ALLOCATOR_PROCESSES;
	}
	/* the tables show no stacks: without a file, and without the figure that comes of them, counting is enough */
	c->plan.stacks = c->verbose || c->noutputs > 0;
	return mew_cli_trace_check(&c->trace, c->programs, c->nprograms);
}

int mew_cli_parse(struct mew_cli *c, enum mew_cli_command command, int argc, char **argv)
{
	bool record = command == MEW_CLI_RECORD;
	int code;

	*c = (struct mew_cli){ .passes = { !record, false, false }, .host = { .capture = true, .say = mew_cli_say }, .record = record };
	mew_plan_defaults(&c->plan);
	if (record) {
		c->plan.interval = 0.001;
		c->plan.clock = MEW_CLOCK_CPU;
	}
	c->host.hooks = c->hooks;
	c->trace.argc = argc;
	c->trace.argv = argv;
	code = parse(c, command, argc, argv);
	if (code == MEW_EXIT_FINE)
		code = check_outputs(c);
	if (code != MEW_EXIT_FINE)
		return code;
	return record ? complete_record(c) : complete_run(c);
}

bool mew_cli_told(const struct mew_cli *c, enum mew_cli_command command, const char *usage)
{
	if (c->help)
		mew_cli_help(stdout, command, usage);
	else if (c->version)
		(void)printf("mew %s\n", mew_version());
	return c->help || c->version;
}
