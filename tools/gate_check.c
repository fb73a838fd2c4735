/*
 * gate_check.c - see gate_check.h.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate_check.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const struct mew_flag *find(const struct mew_flag *flags, size_t n, int id)
{
	for (size_t i = 0; i < n; i++)
		if (flags[i].id == id)
			return &flags[i];
	return NULL;
}

void mew_gate_given(struct mew_gate_given *given, const struct mew_flag *flags, size_t n, int id)
{
	size_t nshared;
	const struct mew_flag *shared = mew_rules_flags(&nshared), *flag = find(flags, n, id);

	if (flag == NULL)
		flag = find(shared, nshared, id);
	for (size_t i = 0; i < given->n; i++)
		if (given->list[i] == flag)
			return;
	if (flag != NULL && given->n < MEW_COUNTOF(given->list))
		given->list[given->n++] = flag;
}

/* "--trace[=FILE]" is --trace. */
static bool is_named(const struct mew_flag *flag, const char *name)
{
	size_t n = strcspn(flag->shown, " [");

	return strlen(name) == n && memcmp(flag->shown, name, n) == 0;
}

bool mew_gate_is_given(const struct mew_gate_given *given, const char *name)
{
	for (size_t i = 0; i < given->n; i++)
		if (is_named(given->list[i], name))
			return true;
	return false;
}

#define MOST 24

static const struct rule {
	const char *with, *why;      /* why: behind the names */
	const char *refused[MOST];
} rules[] = {
	{ "--merge", "the machines have measured, and the median is resampled over them",
	  { "--base", "--head", "--context", "--budget", "--samples", "--rounds", "--memory", "--base-rev",
	    "--head-rev", "--workload-rev", "--calibration", "--html", "--timeout", "--gbench-program", "--cold-every",
	    "--contention", "--contention-samples", "--rule",
	    "--least-difference", "--command", "-k", "-F", "-t", NULL } },
	{ "--command", "it is for benchmark programs",
	  { "--rounds", "--memory", "--calibration", "--html", "--gbench-program", "-k", "-F", "-t", NULL } },
	{ "--gbench-program", "it is for programs of mew", { "--context", "--html", "-t", NULL } },
};

static const char *const of_commands[] = { "--cold-every", "--contention", "--contention-samples" };

int mew_gate_check_given(const struct mew_gate_given *given)
{
	for (size_t i = 0; i < MEW_COUNTOF(rules); i++)
		for (size_t k = 0; mew_gate_is_given(given, rules[i].with) && rules[i].refused[k] != NULL; k++)
			if (mew_gate_is_given(given, rules[i].refused[k])) {
				mew_cli_complain("gate: %s does not go with %s: %s", rules[i].refused[k], rules[i].with,
						 rules[i].why);
				return MEW_EXIT_USAGE;
			}
	for (size_t i = 0; i < MEW_COUNTOF(of_commands); i++)
		if (mew_gate_is_given(given, of_commands[i]) && !mew_gate_is_given(given, "--command")) {
			mew_cli_complain("gate: %s is for commands: give their phases by --command FILE",
					 of_commands[i]);
			return MEW_EXIT_USAGE;
		}
	if (mew_gate_is_given(given, "--contention-samples") && !mew_gate_is_given(given, "--contention")) {
		mew_cli_complain("gate: --contention-samples says how often --contention N is measured: give that too");
		return MEW_EXIT_USAGE;
	}
	/* a timeline that was begun outside hides it too */
	if (mew_gate_is_given(given, "--redact") && !mew_gate_is_given(given, "--trace") &&
	    getenv("MEW_TRACE_DIR") == NULL) {
		mew_cli_complain("gate: --redact says what --trace does not show: give that too");
		return MEW_EXIT_USAGE;
	}
	return MEW_EXIT_FINE;
}
