/*
 * gate_resume.c - what a run leaves of itself for the next one, and how an interrupted one goes on.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate_resume.h"

#include "emit.h"
#include "error.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int damaged(struct mew_error *err, const char *where, const char *member, const char *must)
{
	return mew_error_set(err, MEW_E_INVALID, "samples.json is damaged: %.80s: \"%s\" must be %s; measure again",
			     where, member, must);
}

/* --- the command line ------------------------------------------------------------------------------------------- */

char **mew_gate_copy_arguments(int argc, char *const *argv)
{
	char **copy = calloc((size_t)argc + 1, sizeof *copy);

	for (int i = 0; i < argc && copy != NULL; i++) {
		copy[i] = strdup(argv[i]);
		if (copy[i] == NULL) {
			mew_gate_free_arguments(copy);
			return NULL;
		}
	}
	return copy;
}

void mew_gate_free_arguments(char **argv)
{
	for (char **at = argv; at != NULL && *at != NULL; at++)
		free(*at);
	free(argv);
}

static int read_arguments(struct mew_resumed *r, struct mew_error *err)
{
	const json_t *list = json_object_get(r->tree, "arguments");
	const char *directory = json_string_value(json_object_get(r->tree, "directory"));
	size_t n = json_array_size(list);
	char **argv = calloc(n + 1, sizeof *argv);

	if (argv == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the arguments of the run");
	for (size_t i = 0; i < n; i++)
		argv[i] = (char *)(uintptr_t)json_string_value(json_array_get(list, i));
	for (size_t i = 0; i < n; i++)
		if (argv[i] == NULL)
			n = 0;
	if (n == 0 || directory == NULL) {
		free(argv);
		return damaged(err, "top level", "arguments",
			       "the command line of the run, and \"directory\" where it ran");
	}
	r->argv = mew_gate_copy_arguments((int)n, argv);
	r->argc = (int)n;
	free(argv);
	if (r->argv == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the arguments of the run");
	return chdir(directory) == 0 ? MEW_OK :
	       mew_error_errno(err, MEW_E_IO, "%.200s, where the run was started, cannot be entered", directory);
}

int mew_gate_resume_open(const char *directory, struct mew_resumed *out, struct mew_error *err)
{
	char path[PATH_MAX + 16];
	json_error_t at;

	*out = (struct mew_resumed){ .output = realpath(directory, NULL) };
	if (out->output == NULL)
		return mew_error_errno(err, MEW_E_IO, "--resume %.200s cannot be followed", directory);
	(void)snprintf(path, sizeof path, "%s/samples.json", out->output);
	out->tree = json_load_file(path, 0, &at);
	if (out->tree == NULL)
		return mew_error_set(err, MEW_E_INVALID, "--resume: %.200s holds no run that can go on: %.60s", path,
				     at.text);
	if (json_integer_value(json_object_get(out->tree, "schema_version")) != MEW_GATE_SCHEMA)
		return damaged(err, "top level", "schema_version", "1");
	return read_arguments(out, err);
}

void mew_resumed_fini(struct mew_resumed *r)
{
	mew_gate_free_arguments(r->argv);
	json_decref(r->tree);
	free(r->output);
}

/* --- identity --------------------------------------------------------------------------------------------------- */

static int compare_identity(struct mew_gate *g, enum mew_side side, struct mew_error *err)
{
	const json_t *was = json_object_get(g->options->resumed, mew_side_name(side));
	const char *path = json_string_value(json_object_get(was, "file"));
	const char *hash = json_string_value(json_object_get(was, "hash"));
	char now[32];

	(void)snprintf(now, sizeof now, "%016" PRIx64, g->tools[side].hash);
	if (path == NULL || hash == NULL)
		return damaged(err, mew_side_name(side), "file", "the file that it was, with its \"hash\"");
	if (strcmp(path, g->tools[side].path) == 0 && strcmp(hash, now) == 0)
		return MEW_OK;
	return mew_error_set(err, MEW_E_INVALID, "%s has changed since the run began (it was %.100s): its samples "
						 "cannot be joined, begin anew",
			     mew_side_name(side), path);
}

static void phases_hash(const struct mew_gate *g, char text[32])
{
	(void)snprintf(text, 32, "%016" PRIx64, g->options->plan->hash);
}

/* Other phases are other work, also where their names are the same. */
static int compare_phases(const struct mew_gate *g, struct mew_error *err)
{
	const char *was = json_string_value(json_object_get(g->options->resumed, "phases_hash"));
	char now[32];

	if (g->options->plan == NULL)
		return MEW_OK;
	phases_hash(g, now);
	if (was == NULL)
		return damaged(err, "top level", "phases_hash", "the hash of what the phases file said");
	return strcmp(was, now) == 0 ? MEW_OK :
		mew_error_set(err, MEW_E_INVALID,
			      "%.200s has changed since the run began: its samples cannot be joined, begin anew",
			      g->options->phases_file);
}

int mew_gate_identify(struct mew_gate *g, struct mew_error *err)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		const char *name = g->options->programs[side];
		int status;

		if (g->options->phases_file != NULL) {
			status = mew_tool_find(name, &g->tools[side], err);
		} else if ((status = mew_tool_file(name, &g->tools[side], err)) != MEW_OK &&
			   g->options->resumed == NULL) {
			g->tools[side].path[0] = '\0'; /* starting it says better why it is no program */
			status = MEW_OK;
		}
		if (status == MEW_OK && g->options->resumed != NULL)
			status = compare_identity(g, side, err);
		if (status != MEW_OK)
			return status;
	}
	return g->options->resumed != NULL ? compare_phases(g, err) : MEW_OK;
}

/* One command line may do other things by other variables. */
static bool differs_by_variables(const struct mew_command_plan *plan)
{
	for (size_t i = 0; plan != NULL && i < plan->n; i++)
		if (plan->list[i].env[MEW_BASE] != NULL || plan->list[i].env[MEW_HEAD] != NULL)
			return true;
	return false;
}

const char *mew_gate_sameness(const struct mew_gate *g)
{
	const struct mew_tool *base = &g->tools[MEW_BASE], *head = &g->tools[MEW_HEAD];
	const struct mew_gate_options *o = g->options;

	if (base->path[0] == '\0' || head->path[0] == '\0' || base->bytes != head->bytes || base->hash != head->hash)
		return NULL;
	if (o->plan != NULL &&
	    (strcmp(o->programs[MEW_BASE], o->programs[MEW_HEAD]) != 0 || differs_by_variables(o->plan)))
		return NULL;
	return strcmp(base->path, head->path) == 0 ?
	       "base and head are one and the same file: this compares it with itself" :
	       "base and head have the same contents: this compares a program with its copy";
}

/* --- observations ----------------------------------------------------------------------------------------------- */

int mew_gate_read_observation(const json_t *from, const char *key, struct mew_gate_observation *out,
			      struct mew_error *err)
{
	double base = json_number_value(json_object_get(from, "base_ns")),
		head = json_number_value(json_object_get(from, "head_ns"));

	*out = (struct mew_gate_observation){
		.log_ratio = json_number_value(json_object_get(from, "log_ratio")),
		.ns = { base, head },
		.loops = (uint64_t)json_integer_value(json_object_get(from, "loops")),
		.rounds = (unsigned)json_integer_value(json_object_get(from, "rounds")),
		.disturbed = (unsigned)json_integer_value(json_object_get(from, "disturbed")),
		.ties = (unsigned)json_integer_value(json_object_get(from, "ties")),
		.cpu = json_object_get(from, "cpu") != NULL ? (int)json_integer_value(json_object_get(from, "cpu")) :
		       -1,
		.head_first = json_is_true(json_object_get(from, "head_first")),
	};
	if (!json_is_number(json_object_get(from, "log_ratio")) || !(isfinite(base) && base > 0) ||
	    !(isfinite(head) && head > 0))
		return damaged(err, key, "observations", "complete pairs: a ratio and a time above 0 of each side");
	return MEW_OK;
}

const json_t *mew_gate_find_case(const json_t *tree, const char *key)
{
	const json_t *cases = json_object_get(tree, "cases");

	for (size_t i = 0; i < json_array_size(cases); i++) {
		const char *name = json_string_value(json_object_get(json_array_get(cases, i), "key"));

		if (name != NULL && strcmp(name, key) == 0)
			return json_array_get(cases, i);
	}
	return NULL;
}

static int continue_counts(struct mew_gate *g, struct mew_gate_case *c, const json_t *from, struct mew_error *err)
{
	const json_t *counts = json_object_get(from, "counts");
	double sides[MEW_SIDES][MEW_PLAN_COUNTS];
	size_t pairs = json_array_size(json_object_get(from, "observations"));

	for (size_t i = 0; i < c->phase->ncounts; i++) {
		size_t n = json_array_size(json_object_get(counts, g->options->plan->counts[c->phase->counts[i]].name));

		if (n < pairs || (i > 0 && n != pairs))
			return damaged(err, c->key, "counts", "one pair of every count for each pair of times");
		pairs = n;
	}
	for (size_t pair = 0; pair < pairs && c->phase->ncounts > 0; pair++) {
		for (size_t i = 0; i < c->phase->ncounts; i++) {
			const json_t *list = json_object_get(counts,
							     g->options->plan->counts[c->phase->counts[i]].name);

			for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
				const json_t *value = json_array_get(json_array_get(list, pair), side);

				if (!json_is_number(value))
					return damaged(err, c->key, "counts", "numbers of both sides");
				sides[side][i] = json_number_value(value);
			}
		}
		if (mew_gate_count_pair(c, sides[MEW_BASE], sides[MEW_HEAD]) != 0)
			return mew_error_set(err, MEW_E_NOMEM, "no memory for the counts of \"%s\"", c->key);
	}
	c->reused = (unsigned)json_integer_value(json_object_get(from, "reused"));
	return MEW_OK;
}

/* What commands' contexts measured beside each pair; those of programs are measured behind all pairs, so anew. */
static int continue_context(struct mew_gate *g, struct mew_gate_case *c, size_t k, const json_t *from,
			    struct mew_error *err)
{
	const json_t *list = json_object_get(json_object_get(from, "contexts"), g->options->contexts[k].name);
	int status = MEW_OK;

	for (size_t i = 0; i < json_array_size(list) && status == MEW_OK; i++) {
		struct mew_gate_observation o;

		status = mew_gate_read_observation(json_array_get(list, i), c->key, &o, err);
		o.context = true;
		if (status == MEW_OK && mew_gate_observe(&c->contexts[k], &o) != 0)
			status = mew_error_set(err, MEW_E_NOMEM, "no memory for the observations of \"%s\"", c->key);
	}
	return status;
}

static int continue_case(struct mew_gate *g, struct mew_gate_case *c, struct mew_error *err)
{
	const json_t *from = mew_gate_find_case(g->options->resumed, c->key);
	const json_t *list = json_object_get(from, "observations");
	const char *invalid = json_string_value(json_object_get(from, "invalid"));

	if (invalid != NULL) /* else it could be tried until it passes */
		mew_gate_fail(c, "%s", invalid);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct mew_gate_observation o;
		int status = mew_gate_read_observation(json_array_get(list, i), c->key, &o, err);

		if (status == MEW_OK && mew_gate_observe(&c->series, &o) != 0)
			status = mew_error_set(err, MEW_E_NOMEM, "no memory for the observations of \"%s\"", c->key);
		if (status == MEW_OK)
			status = mew_gate_look(g, c, json_array_size(json_object_get(g->options->resumed, "cases")),
					       err);
		if (status != MEW_OK)
			return status;
		c->pair.loops = o.loops; /* equal iterations in all samples */
	}
	if (from == NULL || c->phase == NULL)
		return MEW_OK;
	for (size_t k = 0; k < g->options->ncontexts; k++)
		if (continue_context(g, c, k, from, err) != MEW_OK)
			return MEW_E_INVALID;
	return continue_counts(g, c, from, err);
}

int mew_gate_continue(struct mew_gate *g, struct mew_error *err)
{
	int status = MEW_OK;

	g->processes = (unsigned)json_integer_value(json_object_get(g->options->resumed, "processes"));
	g->earlier_s = json_number_value(json_object_get(g->options->resumed, "seconds"));
	for (size_t i = 0; i < g->ncases && status == MEW_OK; i++)
		status = continue_case(g, &g->cases[i], err);
	return status;
}

/* --- what is left for it ---------------------------------------------------------------------------------------- */

void mew_gate_put_arguments(struct mew_json *j, const struct mew_gate *g)
{
	char *directory = getcwd(NULL, 0);

	if (directory != NULL) {
		mew_json_key(j, "directory");
		mew_json_string(j, directory);
	}
	free(directory);
	mew_json_key(j, "arguments");
	mew_json_array(j);
	for (int i = 0; i < g->options->argc; i++)
		mew_json_string(j, g->options->argv[i]);
	mew_json_array_end(j);
}

void mew_gate_put_phases_hash(struct mew_json *j, const struct mew_gate *g)
{
	char text[32];

	if (g->options->plan == NULL)
		return;
	phases_hash(g, text);
	mew_json_put_text(j, "phases_hash", text);
}

void mew_gate_put_tool(struct mew_json *j, const struct mew_tool *tool)
{
	char text[32];

	if (tool->path[0] == '\0')
		return;
	mew_json_key(j, "file");
	mew_json_string(j, tool->path);
	mew_json_key(j, "bytes");
	mew_json_u64(j, tool->bytes);
	(void)snprintf(text, sizeof text, "%016" PRIx64, tool->hash);
	mew_json_key(j, "hash");
	mew_json_string(j, text);
	mew_json_put_some_text(j, "build_id", tool->build_id);
}
