/*
 * gate_phase.c - see gate_phase.h.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate_phase.h"

#include "error.h"
#include "gate_step.h"
#include "symbolise.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct place { /* of one run of a phase */
	const struct mew_command_phase *phase;
	const struct mew_arm *arm;
	char scratch[PATH_MAX / 2], counts[PATH_MAX / 2], logs[PATH_MAX / 2], sample[16], name[80];
	unsigned jobs;
	int log;
};

/* --- places ----------------------------------------------------------------------------------------------------- */

static int open_places(struct mew_commands *p, const struct mew_command_phase *phase, const struct mew_arm *arm,
		       unsigned sample, struct place *at, struct mew_error *err)
{
	char path[PATH_MAX];

	*at = (struct place){ .phase = phase, .arm = arm, .log = -1, .jobs = phase->contended ? p->g->options->contention : 1 };
	(void)snprintf(at->scratch, sizeof at->scratch, "%s/%.80s", p->scratch.root, arm->name);
	(void)snprintf(at->counts, sizeof at->counts, "%s/counts", p->scratch.root);
	(void)snprintf(at->logs, sizeof at->logs, "%s/%02u-%.80s", p->scratch.logs, sample, arm->name);
	(void)snprintf(at->sample, sizeof at->sample, "%u", sample);
	(void)snprintf(at->name, sizeof at->name, "%s%s", phase->contended ? "contention-" : "", phase->name);
	(void)snprintf(path, sizeof path, "%s/%s.log", at->logs, at->name);
	if (mew_scratch_folder(at->scratch, false, err) != MEW_OK ||
	    mew_scratch_folder(at->counts, true, err) != MEW_OK ||
	    mew_scratch_folder(at->logs, false, err) != MEW_OK)
		return MEW_E_IO;
	at->log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	return at->log >= 0 ? MEW_OK : mew_error_errno(err, MEW_E_IO, "%.200s cannot be made", path);
}

/* What the k-th artefact is called among the logs: its base name, or all of its path where that would be another's too. */
static void name_artefact(const json_t *list, size_t k, char *out, size_t size)
{
	const char *path = json_string_value(json_array_get(list, k)), *name = mew_base_name(path);

	(void)snprintf(out, size, "%.200s", name);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (i != k && strcmp(mew_base_name(json_string_value(json_array_get(list, i))), name) == 0)
			(void)snprintf(out, size, "%.200s", path);
	for (char *slash = strchr(out, '/'); slash != NULL; slash = strchr(slash, '/'))
		*slash = '-';
}

static int copy_artefacts(const struct place *at, struct mew_error *err)
{
	int status = MEW_OK;

	for (size_t i = 0; i < json_array_size(at->phase->artefacts); i++) {
		char from[PATH_MAX], to[PATH_MAX], name[201];

		name_artefact(at->phase->artefacts, i, name, sizeof name);
		(void)snprintf(from, sizeof from, "%s/%.1000s", at->scratch,
			       json_string_value(json_array_get(at->phase->artefacts, i)));
		(void)snprintf(to, sizeof to, "%s/%s-%s", at->logs, at->name, name);
		if (status == MEW_OK)
			status = mew_scratch_copy(from, to, err);
	}
	return status;
}

/* --- commands --------------------------------------------------------------------------------------------------- */

static void put_env(struct mew_command_run *r, const char *name, const char *value)
{
	if (r->nenv < MEW_STEP_VARIABLES)
		r->env[r->nenv++] = (struct mew_variable){ name, value };
}

static void put_object(struct mew_command_run *r, const json_t *from)
{
	union { /* the iteration changes nothing */
		const json_t *from;
		json_t *to;
	} object = { .from = from };
	const char *name;
	json_t *value;

	json_object_foreach(object.to, name, value) {
		put_env(r, name, json_string_value(value));
	}
}

static void describe(const struct place *at, const char *line, const char *counts, const char *job,
		     struct mew_command_run *r)
{
	*r = (struct mew_command_run){ .line = line, .directory = ".", .log = at->log };
	put_env(r, "MEW_SCRATCH", at->scratch);
	put_env(r, "MEW_ARM", at->arm->name);
	put_env(r, "MEW_PHASE", at->phase->key);
	put_env(r, "MEW_SAMPLE", at->sample);
	put_env(r, "MEW_COMMAND", at->arm->line);
	put_env(r, "MEW_COUNTS", counts);
	put_env(r, "MEW_JOB", job);
	put_object(r, at->phase->env[MEW_SIDES]);
	if (at->arm->side < MEW_SIDES)
		put_object(r, at->phase->env[at->arm->side]);
}

/* Where a job leaves its counts. */
static void counts_of(const struct place *at, unsigned job, char *path, size_t size)
{
	(void)snprintf(path, size, "%s/%u.json", at->counts, job);
}

static int run_step(struct mew_commands *p, const struct place *at, const struct mew_step *step, uint64_t *timed,
		    struct mew_error *err)
{
	char counts[PATH_MAX];
	struct mew_command_run r;
	uint64_t ns;
	int status;

	counts_of(at, 0, counts, sizeof counts);
	describe(at, step->line, counts, "0", &r);
	status = mew_command_run(&r, 1, p->g->options->host.timeout, p->g->options->host.cancelled, &ns, err);
	if (step->timed)
		*timed += ns;
	return status;
}

static int run_steps(struct mew_commands *p, const struct place *at, const char *what, const struct mew_steps *steps,
		     uint64_t *timed, struct mew_error *err)
{
	for (size_t i = 0; i < steps->n; i++) {
		struct mew_error cause;

		if (run_step(p, at, &steps->list[i], timed, &cause) != MEW_OK)
			return mew_error_set(err, MEW_E_BODY, "%s of %s %s; its output is in logs/%s/%s.log%s", what,
					     at->phase->key, cause.text, strrchr(at->logs, '/') + 1, at->name,
					     p->g->options->output == NULL ? ", which --output keeps" : "");
	}
	return MEW_OK;
}

struct job {
	char counts[PATH_MAX], number[16];
};

/* All jobs of a contended phase together; the clock runs from the first start to the last end. */
static int run_jobs(struct mew_commands *p, const struct place *at, uint64_t *timed, struct mew_error *err)
{
	struct mew_command_run *list = calloc(at->jobs, sizeof *list);
	struct job *jobs = calloc(at->jobs, sizeof *jobs);
	const char *line = at->phase->run.n > 0 ? at->phase->run.list[0].line : at->arm->line;
	size_t named = json_array_size(at->phase->jobs);
	struct mew_error cause = { 0 };
	int status = MEW_E_NOMEM;

	for (unsigned i = 0; i < at->jobs && list != NULL && jobs != NULL; i++) {
		counts_of(at, i, jobs[i].counts, sizeof jobs[i].counts);
		(void)snprintf(jobs[i].number, sizeof jobs[i].number, "%u", i);
		describe(at, named > 0 ? json_string_value(json_array_get(at->phase->jobs, i % named)) : line,
			 jobs[i].counts, jobs[i].number, &list[i]);
	}
	if (list != NULL && jobs != NULL)
		status = mew_command_run(list, at->jobs, p->g->options->host.timeout, p->g->options->host.cancelled,
					 timed, &cause);
	free(list);
	free(jobs);
	return status == MEW_OK ? MEW_OK : mew_error_set(err, MEW_E_BODY, "a job of %s %s", at->phase->key, cause.text);
}

static int run_measured(struct mew_commands *p, const struct place *at, uint64_t *timed, struct mew_error *err)
{
	struct mew_step whole = { at->arm->line, true };
	struct mew_steps own = { &whole, 1 };

	if (at->phase->contended)
		return run_jobs(p, at, timed, err);
	return run_steps(p, at, "the run", at->phase->run.n > 0 ? &at->phase->run : &own, timed, err);
}

/* --- what it left ----------------------------------------------------------------------------------------------- */

static int check_required(const struct mew_command_phase *phase, const double *required, struct mew_error *err)
{
	for (size_t i = 0; i < phase->nrequire; i++) {
		const struct mew_require *r = &phase->require[i];

		if (isnan(required[i]))
			return mew_error_set(err, MEW_E_BODY, "%s left no count \"%.40s\", which must be %s",
					     phase->key, r->name, r->text);
		if (mew_require_is_met(r->text, required[i]) != 1)
			return mew_error_set(err, MEW_E_BODY,
					     "%s did not do its job: \"%.40s\" is %.15g and must be %s", phase->key,
					     r->name, required[i], r->text);
	}
	return MEW_OK;
}

static int take_counts(struct mew_commands *p, const struct place *at, struct mew_phase_result *out,
		       struct mew_error *err)
{
	const struct mew_command_phase *phase = at->phase;
	double required[MEW_PLAN_COUNTS];
	struct mew_error cause;
	unsigned strange;

	for (size_t i = 0; i < MEW_PLAN_COUNTS; i++)
		out->counts[i] = required[i] = (double)NAN;
	if (phase->ncounts + phase->nrequire == 0)
		return MEW_OK;
	strange = mew_scratch_unexpected(at->counts, at->jobs);
	if (strange > 0 && at->jobs > 1)
		return mew_error_set(err, MEW_E_BODY,
				     "%s: %u records of counts are missing or too many; each of the %u jobs must leave "
				     "the one that its MEW_COUNTS names", phase->key, strange, at->jobs);
	for (unsigned i = 0; i < at->jobs; i++) {
		char path[PATH_MAX];

		counts_of(at, i, path, sizeof path);
		if (mew_gate_read_counts(path, p->g->options->plan, phase, out->counts, required, &cause) != MEW_OK)
			return mew_error_set(err, MEW_E_BODY, "%s %s", phase->key, cause.text);
	}
	for (size_t i = 0; i < phase->ncounts; i++)
		if (isnan(out->counts[i]))
			return mew_error_set(err, MEW_E_BODY, "%s left no count \"%.40s\": it is missing, not zero",
					     phase->key, p->g->options->plan->counts[phase->counts[i]].name);
	return check_required(phase, required, err);
}

int mew_phase_run(struct mew_commands *p, const struct mew_command_phase *phase, const struct mew_arm *arm,
		  unsigned sample, struct mew_phase_result *out, struct mew_error *err)
{
	uint64_t untimed = 0;
	struct mew_error later;
	struct place at;
	int status = open_places(p, phase, arm, sample, &at, err);

	*out = (struct mew_phase_result){ .ns = 0 };
	if (status == MEW_OK)
		status = run_steps(p, &at, "the preparation", &phase->prepare, &untimed, err);
	if (status == MEW_OK)
		status = run_measured(p, &at, &out->ns, err);
	if (status == MEW_OK)
		status = run_steps(p, &at, "the restoring", &phase->restore, &out->ns, err);
	mew_command_sweep();
	if (at.log >= 0) {
		(void)close(at.log);
		if (copy_artefacts(&at, &later) != MEW_OK && status == MEW_OK)
			status = mew_error_set(err, MEW_E_BODY, "%s", later.text);
	}
	if (status == MEW_OK)
		status = take_counts(p, &at, out, err);
	if (status == MEW_OK && out->ns == 0)
		status = mew_error_set(err, MEW_E_BODY, "%s took no time at all", phase->key);
	return status == MEW_OK ? MEW_OK : MEW_E_BODY;
}
