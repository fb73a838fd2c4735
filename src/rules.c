/*
 * rules.c - metrics, limits and allow rules: which limit a figure of a case has, and whether the rules are sound.
 * Layer L2. Any thread; no state.
 */
#include "config.h"

#include "verdict.h"
#include "verdict_private.h"

#include <ctype.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

static const struct mew_metric metrics[] = {
	{ "time", "median_ns", MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, MEW_LESS_IS_BETTER, false },
	{ "allocs", "allocations_per_iteration", MEW_KIND_MEMORY, MEW_FIG_ALLOCATIONS_PER_ITERATION, MEW_LESS_IS_BETTER,
	  true },
	{ "bytes", "bytes_per_iteration", MEW_KIND_MEMORY, MEW_FIG_BYTES_PER_ITERATION, MEW_LESS_IS_BETTER, true },
	{ "peak", "peak_bytes", MEW_KIND_MEMORY, MEW_FIG_PEAK_BYTES, MEW_LESS_IS_BETTER, true },
	{ "leak", "leak_bytes_per_iteration", MEW_KIND_MEMORY, MEW_FIG_LEAK_BYTES_PER_ITERATION, MEW_LESS_IS_BETTER,
	  true },
};

const struct mew_metric *mew_metrics(size_t *count)
{
	*count = MEW_COUNTOF(metrics);
	return metrics;
}

const struct mew_metric *mew_metric_find(const char *name)
{
	for (size_t i = 0; i < MEW_COUNTOF(metrics); i++)
		if (strcmp(metrics[i].name, name) == 0)
			return &metrics[i];
	return NULL;
}

/* --- limits ----------------------------------------------------------------------------------------------------- */

/* One part of a limit; returns what follows it, or NULL. A digit must come first: strtod also reads "inf" and "0x". */
static const char *parse_part(const char *text, struct mew_limit *out)
{
	char *end;
	double value;

	if (!isdigit((unsigned char)text[0]) || strspn(text, "0123456789.") != strcspn(text, "%|"))
		return NULL;
	value = strtod(text, &end);
	if (!isfinite(value) || end != text + strcspn(text, "%|"))
		return NULL;
	if (*end == '%') {
		if (out->has_percent)
			return NULL;
		out->percent = value;
		out->has_percent = true;
		return end + 1;
	}
	if (out->has_units)
		return NULL;
	out->units = value;
	out->has_units = true;
	return end;
}

bool mew_limit_parse(const char *text, struct mew_limit *out)
{
	const char *rest;

	*out = (struct mew_limit){ .has_units = false };
	rest = parse_part(text, out);
	if (rest != NULL && *rest == '|')
		rest = parse_part(rest + 1, out);
	if (rest != NULL && *rest == '\0')
		return true;
	*out = (struct mew_limit){ .has_units = false };
	return false;
}

bool mew_allow_is_live(const struct mew_allow *allow, const char *today)
{
	return allow->expires == NULL || today == NULL || strcmp(today, allow->expires) <= 0;
}

bool mew_allow_matches(const struct mew_allow *allow, const char *key)
{
	return fnmatch(allow->cases, key, 0) == 0;
}

struct mew_limit mew_rules_limit(const struct mew_rules *rules, const char *key, const char *metric,
				 const struct mew_allow **allow)
{
	struct mew_limit limit = { .has_units = false };

	*allow = NULL;
	for (size_t i = 0; i < rules->nlimits; i++)
		if (strcmp(rules->limits[i].metric, metric) == 0)
			limit = rules->limits[i].limit;
	for (size_t i = 0; i < rules->nallows; i++) {
		const struct mew_allow *a = &rules->allows[i];

		if (strcmp(a->metric, metric) != 0 || !mew_allow_is_live(a, rules->today) || !mew_allow_matches(a, key))
			continue;
		*allow = a;
		limit = a->limit;
	}
	return limit;
}

/* --- are they sound? -------------------------------------------------------------------------------------------- */

/* "2027-01-31": compared as text, so it must be written in full. */
static bool is_day(const char *text)
{
	static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int month, day;

	if (strlen(text) != 10 || text[4] != '-' || text[7] != '-')
		return false;
	for (int i = 0; i < 10; i++)
		if (i != 4 && i != 7 && !isdigit((unsigned char)text[i]))
			return false;
	month = (text[5] - '0') * 10 + text[6] - '0';
	day = (text[8] - '0') * 10 + text[9] - '0';
	return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1];
}

static bool is_blank(const char *text)
{
	return text == NULL || text[strspn(text, " \t\r\n")] == '\0';
}

static bool is_number(double value)
{
	return isfinite(value) && value >= 0;
}

static const struct mew_metric *find(const struct mew_rules *rules, const char *name)
{
	for (size_t i = 0; name != NULL && i < rules->ncounts; i++)
		if (strcmp(rules->counts[i].name, name) == 0)
			return &rules->counts[i];
	return name == NULL ? NULL : mew_metric_find(name);
}

static int check_limit(const struct mew_rules *rules, const char *metric, const struct mew_limit *limit,
		       struct mew_error *err)
{
	const struct mew_metric *known = find(rules, metric);

	if (known == NULL)
		return mew_error_set(err, MEW_E_INVALID, "there is no metric \"%.40s\" to limit: it is one of time, "
				     "allocs, bytes, peak and leak%s", metric == NULL ? "" : metric,
				     rules->ncounts > 0 ? ", or a count that the phases name" : "");
	if (!limit->has_units && !limit->has_percent)
		return mew_error_set(err, MEW_E_INVALID, "the limit of %s is empty; write 0, 5%% or 1|5%%", metric);
	if (!is_number(limit->units) || !is_number(limit->percent))
		return mew_error_set(err, MEW_E_INVALID, "the limit of %s is not a finite number of 0 or more", metric);
	if (limit->has_units && !known->exact)
		return mew_error_set(err, MEW_E_INVALID, "the limit of time is a margin in percent, such as 3%%");
	return MEW_OK;
}

static int check_allow(const struct mew_rules *rules, const struct mew_allow *a, struct mew_error *err)
{
	if (is_blank(a->cases))
		return mew_error_set(err, MEW_E_INVALID, "an allow rule names no case; give a pattern of keys");
	if (is_blank(a->reason))
		return mew_error_set(err, MEW_E_INVALID, "the allow rule for \"%.80s\" has no reason; write down why",
				     a->cases);
	if (a->expires != NULL && !is_day(a->expires))
		return mew_error_set(err, MEW_E_INVALID,
				     "the allow rule for \"%.80s\" expires on \"%.40s\", which is no day; write it "
				     "like 2027-01-31", a->cases, a->expires);
	return check_limit(rules, a->metric, &a->limit, err);
}

int mew_rules_check(const struct mew_rules *rules, struct mew_error *err)
{
	int status = MEW_OK;

	if (rules->alpha != 0 && !(rules->alpha > 0 && rules->alpha < 1))
		return mew_error_set(err, MEW_E_INVALID,
				     "the chance of a false alarm lies between 0 and 1, such as 0.05");
	if (!is_number(rules->least_difference_ns))
		return mew_error_set(err, MEW_E_INVALID,
				     "the least difference is a finite number of nanoseconds, 0 or more");
	if (rules->today != NULL && !is_day(rules->today))
		return mew_error_set(err, MEW_E_INVALID, "today is \"%.40s\", which is no day", rules->today);
	for (size_t i = 0; status == MEW_OK && i < rules->nlimits; i++)
		status = check_limit(rules, rules->limits[i].metric, &rules->limits[i].limit, err);
	for (size_t i = 0; status == MEW_OK && i < rules->nallows; i++)
		status = check_allow(rules, &rules->allows[i], err);
	return status;
}
