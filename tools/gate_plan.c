/*
 * gate_plan.c - see gate_plan.h: the phases file, checked.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fnv.h"
#include "pace.h"

struct reader {
	const char *file;
	char where[100]; /* "phase cold" */
	struct mew_command_plan *plan;
	struct mew_error *err;
};

static int wrong(const struct reader *r, const char *member, const char *must)
{
	return mew_error_set(r->err, MEW_E_INVALID, "%.80s: %s: \"%.40s\" must be %s", r->file, r->where, member, must);
}

int mew_require_is_met(const char *text, double value)
{
	size_t n = strspn(text, "<>=!");
	double wanted;
	char *end;

	if (n == 0 || n > 2 || strspn(text + n, "0123456789.") == 0)
		return -1;
	wanted = strtod(text + n, &end);
	if (*end != '\0' || !isfinite(wanted))
		return -1;
	if (n == 1)
		return *text == '>' ? value > wanted : *text == '<' ? value < wanted : -1;
	if (text[1] != '=')
		return -1;
	switch (*text) {
	case '>':
		return value >= wanted;
	case '<':
		return value <= wanted;
	case '!':
		return value < wanted || value > wanted;
	default:
		return !(value < wanted || value > wanted);
	}
}

/* --- steps ------------------------------------------------------------------------------------------------------ */

static int read_step(const struct reader *r, const char *member, const json_t *value, bool timed, struct mew_step *out)
{
	const json_t *mark = json_object_get(value, "timed");

	out->timed = timed;
	out->line = json_string_value(json_is_object(value) ? json_object_get(value, "command") : value);
	if (out->line == NULL || out->line[0] == '\0' || (mark != NULL && !json_is_boolean(mark)) ||
	    (json_is_object(value) && json_object_size(value) != 1 + (size_t)(mark != NULL)))
		return wrong(r, member, "a command, {\"command\": TEXT, \"timed\": true or false}, or a list of those");
	if (mark != NULL)
		out->timed = json_is_true(mark);
	if (out->timed && strcmp(member, "prepare") == 0)
		return wrong(r, member, "without \"timed\": preparing is never timed");
	return MEW_OK;
}

static int read_steps(const struct reader *r, const json_t *phase, const char *member, bool timed,
		      struct mew_steps *out)
{
	const json_t *value = json_object_get(phase, member);
	size_t n = value == NULL ? 0 : json_is_array(value) ? json_array_size(value) : 1;

	out->list = calloc(n + 1, sizeof *out->list);
	if (out->list == NULL)
		return mew_error_set(r->err, MEW_E_NOMEM, "%.80s: no memory for its commands", r->file);
	for (; out->n < n; out->n++) {
		int status = read_step(r, member, json_is_array(value) ? json_array_get(value, out->n) : value, timed,
				       &out->list[out->n]);

		if (status != MEW_OK)
			return status;
	}
	return MEW_OK;
}

/* --- counts ----------------------------------------------------------------------------------------------------- */

/* The place of a count in the plan; -1: no room, or another direction elsewhere. */
static int place_of(struct mew_command_plan *plan, const char *name, enum mew_direction direction)
{
	for (size_t i = 0; i < plan->ncounts; i++)
		if (strcmp(plan->counts[i].name, name) == 0)
			return plan->counts[i].direction == direction ? (int)i : -1;
	if (plan->ncounts == MEW_PLAN_COUNTS)
		return -1;
	plan->counts[plan->ncounts] = (struct mew_metric){
		.name = name, .kind = MEW_KIND_MEMORY, .bit = -1, .direction = direction, .exact = true,
	};
	return (int)plan->ncounts++;
}

static int read_counts(const struct reader *r, json_t *phase, struct mew_command_phase *out)
{
	json_t *counts = json_object_get(phase, "counts"), *value;
	const char *name;

	if (counts != NULL && !json_is_object(counts))
		return wrong(r, "counts", "an object such as {\"misses\": \"less\", \"hits\": \"more\"}");
	json_object_foreach(counts, name, value) {
		const char *better = json_string_value(value);
		int place;

		if (better == NULL || (strcmp(better, "less") != 0 && strcmp(better, "more") != 0))
			return wrong(r, name, "\"less\" or \"more\", whichever is better");
		if (mew_metric_find(name) != NULL || name[0] == '\0')
			return wrong(r, name, "another name: mew has a metric of this name");
		place = place_of(r->plan, name, better[0] == 'l' ? MEW_LESS_IS_BETTER : MEW_MORE_IS_BETTER);
		if (place < 0)
			return wrong(r, name, "one of at most 16 counts, with the same direction in every phase");
		out->counts[out->ncounts++] = (size_t)place;
	}
	return MEW_OK;
}

static int read_require(const struct reader *r, json_t *phase, struct mew_command_phase *out)
{
	json_t *all = json_object_get(phase, "require"), *value;
	const char *name;

	if (all != NULL && (!json_is_object(all) || json_object_size(all) > MEW_PLAN_COUNTS))
		return wrong(r, "require", "an object of at most 16, such as {\"hits\": \">0\"}");
	json_object_foreach(all, name, value) {
		const char *text = json_string_value(value);

		if (text == NULL || mew_require_is_met(text, 0) < 0)
			return wrong(r, name, "a condition such as \">0\", \">=2\", \"<5\" or \"==0\"");
		out->require[out->nrequire++] = (struct mew_require){ name, text };
	}
	return MEW_OK;
}

/* --- phases ----------------------------------------------------------------------------------------------------- */

static int check_env(const struct reader *r, json_t *phase, const char *member, const json_t **out)
{
	json_t *env = json_object_get(phase, member), *value;
	const char *name;

	*out = env;
	if (env != NULL && !json_is_object(env))
		return wrong(r, member, "an object of texts");
	json_object_foreach(env, name, value) {
		if (!json_is_string(value) || name[0] == '\0' || strchr(name, '=') != NULL)
			return wrong(r, name, "a name without = and a text");
	}
	return MEW_OK;
}

static int check_list(const struct reader *r, const json_t *phase, const char *member, const char *must,
		      const json_t **out)
{
	const json_t *list = json_object_get(phase, member);

	*out = list;
	if (list == NULL)
		return MEW_OK;
	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > MEW_PLAN_JOBS)
		return wrong(r, member, must);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (text == NULL || text[0] == '\0')
			return wrong(r, member, must);
		/* a copied file must not lead out of the scratch folder */
		if (strcmp(member, "artefacts") == 0 && (text[0] == '/' || strstr(text, "..") != NULL))
			return wrong(r, member, must);
	}
	return MEW_OK;
}

static int check_members(const struct reader *r, json_t *phase)
{
	static const char *const known[] = { "name", "prepare", "run", "restore", "cold", "env", "env_base", "env_head",
					     "counts",
					     "require", "artefacts", "jobs" };
	const char *key;
	json_t *value;

	json_object_foreach(phase, key, value) {
		bool is_known = false;

		for (size_t i = 0; i < MEW_COUNTOF(known); i++)
			is_known |= strcmp(key, known[i]) == 0;
		if (!is_known)
			return wrong(r, key, "one of name, prepare, run, restore, cold, env, env_base, env_head, "
					     "counts, require, artefacts, jobs");
	}
	if (json_object_get(phase, "cold") != NULL && !json_is_boolean(json_object_get(phase, "cold")))
		return wrong(r, "cold", "true or false");
	return MEW_OK;
}

static int read_name(struct reader *r, const char *list, size_t i, const json_t *phase, struct mew_command_phase *out)
{
	(void)snprintf(r->where, sizeof r->where, "%s, number %zu", list, i + 1);
	out->name = json_string_value(json_object_get(phase, "name"));
	if (out->name == NULL || out->name[0] == '\0' || out->name[0] == '.' || strlen(out->name) > 60 ||
	    out->name[strspn(out->name, MEW_PLAN_NAME)] != '\0')
		return wrong(r, "name", "a text of at most 60 letters, digits, and . _ - inside");
	(void)snprintf(out->key, sizeof out->key, "%s%s", out->contended ? "contention/" : "", out->name);
	(void)snprintf(r->where, sizeof r->where, "phase %s", out->key);
	for (const struct mew_command_phase *other = r->plan->list; other < out; other++)
		if (strcmp(other->key, out->key) == 0)
			return wrong(r, "name", "another: there is such a phase");
	return MEW_OK;
}

static int read_phase(struct reader *r, const char *list, size_t i, json_t *phase, bool contended)
{
	struct mew_command_phase *out = &r->plan->list[r->plan->n++]; /* from here on it is freed */
	int status;

	*out = (struct mew_command_phase){ .contended = contended, .cold = json_is_true(json_object_get(phase, "cold")) };
	status = read_name(r, list, i, phase, out);
	if (status == MEW_OK)
		status = check_members(r, phase);
	if (status == MEW_OK)
		status = read_steps(r, phase, "prepare", false, &out->prepare);
	if (status == MEW_OK)
		status = read_steps(r, phase, "run", true, &out->run);
	if (status == MEW_OK)
		status = read_steps(r, phase, "restore", false, &out->restore);
	if (status == MEW_OK)
		status = read_counts(r, phase, out);
	if (status == MEW_OK)
		status = read_require(r, phase, out);
	if (status == MEW_OK)
		status = check_env(r, phase, "env_base", &out->env[MEW_BASE]);
	if (status == MEW_OK)
		status = check_env(r, phase, "env_head", &out->env[MEW_HEAD]);
	if (status == MEW_OK)
		status = check_env(r, phase, "env", &out->env[MEW_SIDES]);
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES && status == MEW_OK; side++)
		if (json_object_size(out->env[side]) + json_object_size(out->env[MEW_SIDES]) > MEW_PLAN_VARIABLES)
			status = wrong(r, "env", "at most 48 variables, with those of a side");
	if (status == MEW_OK)
		status = check_list(r, phase, "artefacts", "a list of files below MEW_SCRATCH", &out->artefacts);
	if (status == MEW_OK)
		status = check_list(r, phase, "jobs", "a list of 1 to 256 commands", &out->jobs);
	if (status == MEW_OK && out->jobs != NULL && !contended)
		status = wrong(r, "jobs", "in a phase of \"contention\"");
	if (status == MEW_OK && contended && out->jobs == NULL && out->run.n > 1)
		status = wrong(r, "run", "one command, to run side by side; or give \"jobs\" under \"contention\"");
	return status;
}

static bool has_timed(const struct mew_command_phase *p)
{
	for (size_t i = 0; i < p->run.n; i++)
		if (p->run.list[i].timed)
			return true;
	for (size_t i = 0; i < p->restore.n; i++)
		if (p->restore.list[i].timed)
			return true;
	return p->run.n == 0;
}

static int read_list(struct reader *r, const char *member, const json_t *list, bool contended)
{
	(void)snprintf(r->where, sizeof r->where, "top level");
	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) + r->plan->n > MEW_PLAN_PHASES)
		return wrong(r, member, "a list of phases, at least one and at most 32 in all");
	for (size_t i = 0; i < json_array_size(list); i++) {
		int status = json_is_object(json_array_get(list, i)) ?
				     read_phase(r, member, i, json_array_get(list, i), contended) :
				     wrong(r, member, "a list of objects");

		if (status != MEW_OK)
			return status;
		if (!has_timed(&r->plan->list[r->plan->n - 1]))
			return wrong(r, "run", "a command inside the clock: none of the phase is timed");
	}
	return MEW_OK;
}

/* Blanks and the order of members say nothing. */
static int take_hash(struct mew_command_plan *plan, struct mew_error *err)
{
	char *text = json_dumps(plan->tree, JSON_COMPACT | JSON_SORT_KEYS);

	if (text == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the phases");
	plan->hash = mew_fnv_bytes(MEW_FNV_START, text, strlen(text));
	free(text);
	return MEW_OK;
}

int mew_command_plan_read(const char *path, bool contention, struct mew_command_plan *out, struct mew_error *err)
{
	struct reader r = { .file = path, .plan = out, .err = err };
	const json_t *contended;
	json_error_t at;
	const char *key;
	json_t *value;
	int status;

	*out = (struct mew_command_plan){ .tree = json_load_file(path, JSON_REJECT_DUPLICATES, &at) };
	if (out->tree == NULL && at.line <= 0)
		return mew_error_errno(err, MEW_E_IO, "--command %.80s cannot be read", path);
	if (out->tree == NULL)
		return mew_error_set(err, MEW_E_INVALID,
				     "%.80s is not sound JSON: line %d, column %d: %.60s; mend it there", path,
				     at.line, at.column, at.text);
	(void)snprintf(r.where, sizeof r.where, "top level");
	json_object_foreach(out->tree, key, value) {
		if (strcmp(key, "phases") != 0 && strcmp(key, "contention") != 0)
			return wrong(&r, key, "\"phases\" or \"contention\"");
	}
	status = take_hash(out, err);
	if (status == MEW_OK)
		status = read_list(&r, "phases", json_object_get(out->tree, "phases"), false);
	out->isolated = out->n;
	contended = json_object_get(out->tree, "contention");
	if (status == MEW_OK && contention)
		status = contended != NULL ? read_list(&r, "contention", contended, true) :
					     read_list(&r, "phases", json_object_get(out->tree, "phases"), true);
	return status;
}

void mew_command_plan_free(struct mew_command_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		free(plan->list[i].prepare.list);
		free(plan->list[i].run.list);
		free(plan->list[i].restore.list);
	}
	json_decref(plan->tree);
	*plan = (struct mew_command_plan){ .n = 0 };
}
