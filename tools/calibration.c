/*
 * calibration.c - see calibration.h: identity, place, and what the gate takes from one.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "calibration.h"

#include "cli.h"
#include "error.h"
#include "fnv.h"
#include "gate.h"
#include "stats.h"
#include "symbolise.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a time depends on and a user can tell apart; load and clock frequency change from minute to minute. */
const char *const mew_calibration_facts[MEW_CALIBRATION_IDENTITY] = {
	"cpu_model", "cpu_count", "machine", "kernel", "libc", "compiler", "optimized",
};

void mew_calibration_free(struct mew_calibration *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < c->ncases; i++)
		free(c->cases[i].key);
	for (size_t i = 0; i < MEW_CALIBRATION_IDENTITY; i++)
		free(c->identity[i]);
	free(c->cases);
	free(c->program);
	free(c);
}

struct mew_calibration_case *mew_calibration_find(const struct mew_calibration *c, const char *key)
{
	for (size_t i = 0; i < c->ncases; i++)
		if (strcmp(c->cases[i].key, key) == 0)
			return &c->cases[i];
	return NULL;
}

struct mew_calibration_case *mew_calibration_case(struct mew_calibration *c, const char *key)
{
	struct mew_calibration_case *found = mew_calibration_find(c, key), *grown;

	if (found != NULL)
		return found;
	grown = realloc(c->cases, (c->ncases + 1) * sizeof *grown);
	if (grown == NULL)
		return NULL;
	c->cases = grown;
	grown[c->ncases] = (struct mew_calibration_case){ .key = strdup(key) };
	return grown[c->ncases].key != NULL ? &grown[c->ncases++] : NULL;
}

/* --- identity --------------------------------------------------------------------------------------------------- */

int mew_calibration_identify(struct mew_calibration *c, const char *program, const struct mew_model *facts)
{
	free(c->program);
	c->program = strdup(mew_base_name(program));
	if (c->program == NULL)
		return -1;
	for (size_t i = 0; i < MEW_CALIBRATION_IDENTITY; i++) {
		const char *value = mew_model_fact(facts, mew_calibration_facts[i]);

		free(c->identity[i]);
		c->identity[i] = value != NULL ? strdup(value) : NULL;
		if (value != NULL && c->identity[i] == NULL)
			return -1;
	}
	return 0;
}

const char *mew_calibration_misfit(const struct mew_calibration *c, const struct mew_model *facts)
{
	for (size_t i = 0; i < MEW_CALIBRATION_IDENTITY; i++) {
		const char *value = mew_model_fact(facts, mew_calibration_facts[i]);

		if (strcmp(value != NULL ? value : "", c->identity[i] != NULL ? c->identity[i] : "") != 0)
			return mew_calibration_facts[i];
	}
	return NULL;
}

/* Over the texts and their ends: the file's name needs no more than to differ where the identity does. */
static uint64_t hash_of(const struct mew_calibration *c)
{
	uint64_t h = MEW_FNV_START;

	for (size_t i = 0; i < MEW_CALIBRATION_IDENTITY; i++) {
		const char *s = c->identity[i] != NULL ? c->identity[i] : "";

		h = mew_fnv_bytes(h, s, strlen(s) + 1);
	}
	return h;
}

char *mew_calibration_path(const struct mew_calibration *c)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	bool has_state = state != NULL && state[0] == '/'; /* its specification: a relative one is ignored */
	char *path;

	if (!has_state && (home == NULL || home[0] != '/'))
		return NULL;
	if (asprintf(&path, "%s%s/mew/%.100s-%016" PRIx64 ".json", has_state ? state : home,
		     has_state ? "" : "/.local/state", c->program, hash_of(c)) < 0)
		return NULL;
	return path;
}

void mew_calibration_words(const struct mew_calibration *c, char *text, size_t size)
{
	struct mew_interval in = { 0, 1 };

	if (c->trials > 0)
		(void)mew_stats_wilson(c->false_positives, c->trials, 1.959964, &in);
	(void)snprintf(text, size, "%u of %u A/A runs found a difference (95 %%: %.1f to %.1f %%)", c->false_positives,
		       c->trials, in.low * 100, in.high * 100);
}

/* --- the gate's use --------------------------------------------------------------------------------------------- */

/* The one in the usual place, when there is one that fits; its absence is no error. */
static struct mew_calibration *find_usual(const struct mew_gate *g)
{
	struct mew_calibration wanted = { 0 }, *found = NULL;
	struct mew_error err;
	char *path = NULL;

	if (mew_calibration_identify(&wanted, g->options->programs[MEW_BASE], g->models[MEW_BASE]) == 0)
		path = mew_calibration_path(&wanted);
	if (path != NULL && access(path, F_OK) == 0 && (found = mew_calibration_read(path, &err)) == NULL)
		mew_cli_complain("%s: the gate goes on without it", err.text);
	free(path);
	free(wanted.program);
	for (size_t i = 0; i < MEW_CALIBRATION_IDENTITY; i++)
		free(wanted.identity[i]);
	return found;
}

/* Returns how many cases are in it. */
static size_t take_floors(struct mew_gate *g)
{
	size_t known = 0;

	for (size_t i = 0; i < g->ncases; i++) {
		const struct mew_calibration_case *c = mew_calibration_find(g->calibration, g->cases[i].key);

		g->cases[i].noise_floor = c != NULL ? c->noise_floor : 0;
		g->cases[i].is_uncalibrated = c == NULL;
		known += c != NULL;
	}
	return known;
}

/* What would be refused after the first pair is refused before it. */
static int check_margins(const struct mew_gate *g)
{
	for (size_t i = 0; i < g->ncases; i++) {
		const struct mew_observations none = { .noise_floor = g->cases[i].noise_floor };
		struct mew_verdict v;
		struct mew_error err;

		if (mew_verdict_time(&g->rules, g->cases[i].key, &none, &v, &err) == MEW_OK)
			continue;
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	return MEW_EXIT_FINE;
}

int mew_calibration_apply(struct mew_gate *g)
{
	const char *path = g->options->calibration, *misfit;
	struct mew_error err;

	if (path != NULL && strcmp(path, "none") == 0)
		return MEW_EXIT_FINE;
	g->calibration = path != NULL ? mew_calibration_read(path, &err) : find_usual(g);
	if (g->calibration == NULL) {
		if (path == NULL)
			return MEW_EXIT_FINE;
		mew_cli_complain("--calibration: %s", err.text);
		return MEW_EXIT_USAGE;
	}
	misfit = mew_calibration_misfit(g->calibration, g->models[MEW_BASE]);
	if (misfit != NULL) {
		mew_cli_complain("--calibration: %s is of another %s: run `mew calibrate` here",
				 path != NULL ? path : "the file in the usual place", misfit);
		return MEW_EXIT_USAGE;
	}
	if (take_floors(g) > 0)
		return check_margins(g);
	if (path != NULL) {
		mew_cli_complain("--calibration: %s is of %s and has none of these cases: run `mew calibrate %s`", path,
				 g->calibration->program, g->options->programs[MEW_BASE]);
		return MEW_EXIT_USAGE;
	}
	mew_calibration_free(g->calibration); /* another program of that name: nothing in it is about this one */
	g->calibration = NULL;
	return MEW_EXIT_FINE;
}
