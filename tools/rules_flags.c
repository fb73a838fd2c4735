/*
 * rules_flags.c - see rules_flags.h.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "rules_flags.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"

#define SEED_MOST ((UINT64_C(1) << 53) - 1) /* it must come back out of JSON's numbers, which may be doubles */

enum flag_id { F_LIMIT = 512, F_STRICT, F_ALLOW, F_RULE, F_LEAST, F_SEED, F_INCONCLUSIVE };

static const struct mew_flag table[] = {
	{ 'k', NULL, required_argument, "-k RE", "cases whose name or label matches the extended regular expression" },
	{ 'F', NULL, required_argument, "-F TEXT", "cases whose name or label contains the text" },
	{ 't', NULL, required_argument, "-t TAG", "cases with the tag; given twice: with either" },
	{ F_LIMIT, "limit", required_argument, "--limit METRIC=LIMIT",
	  "how much worse it may become: time=3%, allocs=0|5%, peak=10%" },
	{ F_STRICT, "strict", no_argument, "--strict", "exact metrics must be equal: a fall fails too" },
	{ F_ALLOW, "allow", required_argument, "--allow FILE", "other limits for some cases, each with a reason" },
	{ F_RULE, "rule", required_argument, "--rule signs|bootstrap", "how time is judged (signs)" },
	{ F_LEAST, "least-difference", required_argument, "--least-difference S",
	  "bootstrap: a smaller difference in seconds decides nothing (0)" },
	{ F_SEED, "seed", required_argument, "--seed N", "of all that is random, so that it can be repeated" },
	{ F_INCONCLUSIVE, "inconclusive", required_argument, "--inconclusive pass|fail",
	  "exit 0 or 1 instead of 3 where nothing is resolved" },
};

const struct mew_flag *mew_rules_flags(size_t *count)
{
	*count = MEW_COUNTOF(table);
	return table;
}

void mew_flags_help(const struct mew_flag *flags, size_t n, int width)
{
	for (size_t i = 0; i < n; i++)
		mew_cli_help_entry(stdout, width, flags[i].shown, flags[i].help);
}

size_t mew_flags_options(const struct mew_flag *flags, size_t n, struct option *out, size_t used)
{
	for (size_t i = 0; i < n && used < MEW_FLAGS_MAX; i++)
		if (flags[i].name != NULL)
			out[used++] = (struct option){ flags[i].name, flags[i].argument, NULL, flags[i].id };
	return used;
}

/* --- values ----------------------------------------------------------------------------------------------------- */

static int limit(struct mew_rules_flags *f, char *text)
{
	char *equals = strchr(text, '=');

	if (f->rules.nlimits == MEW_RULES_LIST_MAX)
		return mew_cli_bad("--limit", text, "one of at most 32");
	if (equals == NULL || equals == text || !mew_limit_parse(equals + 1, &f->limits[f->rules.nlimits].limit))
		return mew_cli_bad("--limit", text, "METRIC=LIMIT, such as time=3%, allocs=0|5% or peak=10%");
	*equals = '\0';
	f->limits[f->rules.nlimits++].metric = text;
	return MEW_EXIT_FINE;
}

static int tag(struct mew_rules_flags *f, const char *text)
{
	if (f->ntags == MEW_RULES_LIST_MAX)
		return mew_cli_bad("-t", text, "one of at most 32");
	f->tags[f->ntags++] = text;
	return MEW_EXIT_FINE;
}

static int rule(struct mew_rules_flags *f, const char *text)
{
	if (strcmp(text, "signs") != 0 && strcmp(text, "bootstrap") != 0)
		return mew_cli_bad("--rule", text, "signs or bootstrap");
	f->rules.time_rule = text[0] == 's' ? MEW_TIME_SIGNS : MEW_TIME_BOOTSTRAP;
	return MEW_EXIT_FINE;
}

static int unsure(struct mew_rules_flags *f, const char *text)
{
	if (strcmp(text, "pass") != 0 && strcmp(text, "fail") != 0)
		return mew_cli_bad("--inconclusive", text, "pass or fail");
	f->rules.unsure = text[0] == 'p' ? MEW_UNSURE_PASS : MEW_UNSURE_FAIL;
	return MEW_EXIT_FINE;
}

static int seed(struct mew_rules_flags *f, const char *text)
{
	char *end;

	errno = 0;
	f->rules.resampling.seed = strtoull(text, &end, 10);
	f->seed_given = true;
	if (isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 && f->rules.resampling.seed <= SEED_MOST)
		return MEW_EXIT_FINE;
	return mew_cli_bad("--seed", text, "a whole number up to 9007199254740991");
}

static int least(struct mew_rules_flags *f, const char *text)
{
	double seconds;
	int code = mew_cli_seconds("--least-difference", text, 0, &seconds);

	f->rules.least_difference_ns = seconds * 1e9;
	return code;
}

int mew_rules_flags_apply(struct mew_rules_flags *f, int id, char *value)
{
	switch (id) {
	case 'k':
		f->pattern = value;
		return MEW_EXIT_FINE;
	case 'F':
		f->literal = value;
		return MEW_EXIT_FINE;
	case 't':
		return tag(f, value);
	case F_LIMIT:
		return limit(f, value);
	case F_STRICT:
		f->rules.strict = true;
		return MEW_EXIT_FINE;
	case F_ALLOW:
		f->allow_path = value;
		return MEW_EXIT_FINE;
	case F_RULE:
		return rule(f, value);
	case F_LEAST:
		return least(f, value);
	case F_SEED:
		return seed(f, value);
	case F_INCONCLUSIVE:
		return unsure(f, value);
	default:
		return -1;
	}
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

/* Which day it is decides whether an allow rule has expired; in UTC, so that it is the same in every place. */
static void find_today(struct mew_rules_flags *f)
{
	time_t now = time(NULL);
	struct tm utc;

	if (gmtime_r(&now, &utc) != NULL && strftime(f->today, sizeof f->today, "%Y-%m-%d", &utc) != 0)
		f->rules.today = f->today;
}

int mew_rules_flags_complete(struct mew_rules_flags *f)
{
	struct mew_error err;

	f->rules.limits = f->limits;
	find_today(f);
	if (f->rules.least_difference_ns > 0 && f->rules.time_rule != MEW_TIME_BOOTSTRAP) {
		mew_cli_complain("--least-difference means nothing to the rule of signs: give --rule bootstrap too");
		return MEW_EXIT_USAGE;
	}
	if (f->allow_path != NULL && mew_allow_read(f->allow_path, &f->allows, &err) != MEW_OK) {
		mew_cli_complain("--allow: %s", err.text);
		return MEW_EXIT_USAGE;
	}
	f->rules.allows = f->allows.list;
	f->rules.nallows = f->allows.n;
	if (mew_rules_check(&f->rules, &err) != MEW_OK) {
		mew_cli_complain("%s%s", f->allow_path == NULL ? "--limit: " : "--limit or --allow: ", err.text);
		return MEW_EXIT_USAGE;
	}
	if (mew_select_init(&f->select, f->pattern, f->literal, f->tags, f->ntags, &err) != MEW_OK) {
		mew_cli_complain("-k: %s", err.text);
		return MEW_EXIT_USAGE;
	}
	f->selects = true;
	return MEW_EXIT_FINE;
}

void mew_rules_flags_fini(struct mew_rules_flags *f)
{
	if (f->selects)
		mew_select_fini(&f->select);
	f->selects = false;
	mew_allow_free(&f->allows);
	f->allows = (struct mew_allow_list){ 0 };
}
