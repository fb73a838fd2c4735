/*
 * phases.c - hooks with phases: in order in, in reverse order out, teardown once for all that was begun.
 * Layer L4. Runner thread, outside windows.
 */
#include "config.h"

#include "phases.h"

#include "error.h"
#include "os.h"
#include "trace_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *group, *step;
} phases[MEW_PHASE_COUNT] = {
	[MEW_PHASE_CALIBRATION_LOOPS] = { "calibration/loops", "calibration", "loops" },
	[MEW_PHASE_CALIBRATION_WARMUP] = { "calibration/warmup", "calibration", "warmup" },
	[MEW_PHASE_MEASUREMENT_WARMUP] = { "measurement/warmup", "measurement", "warmup" },
	[MEW_PHASE_MEASUREMENT_VALUE] = { "measurement/value", "measurement", "value" },
	[MEW_PHASE_MEMORY_WARMUP] = { "memory/warmup", "memory", "warmup" },
	[MEW_PHASE_MEMORY_VALUE] = { "memory/value", "memory", "value" },
	[MEW_PHASE_CPU_WARMUP] = { "cpu/warmup", "cpu", "warmup" },
	[MEW_PHASE_CPU_VALUE] = { "cpu/value", "cpu", "value" },
};

const char *mew_phase_name(int phase)
{
	return phase > 0 && phase < MEW_PHASE_COUNT ? phases[phase].name : NULL;
}

int mew_phases_init(struct mew_phases *p, const struct mew_hook *const *hooks, size_t n, const char *key,
		    struct mew_error *err)
{
	*p = (struct mew_phases){ .hooks = hooks, .n = n, .key = key };
	for (size_t i = 0; i < n; i++)
		if (hooks[i]->name == NULL || hooks[i]->name[0] == '\0')
			return mew_error_set(err, MEW_E_INVALID, "hook %zu has no name; give it one", i);
	p->begun = calloc(n * MEW_PHASE_COUNT + 1, sizeof *p->begun);
	if (p->begun == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for %zu hooks", n);
	return MEW_OK;
}

static struct mew_phase_info info_of(struct mew_phases *p, int phase, uint64_t loops, unsigned repetition)
{
	return (struct mew_phase_info){
		.phase = phase,
		.group = phases[phase].group,
		.step = phases[phase].step,
		.key = p->key,
		.index = p->index[phase],
		.loops = loops,
		.repetition = repetition,
		.private_ = p,
	};
}

static int call(const struct mew_hook *h, const char *which, int (*function)(const struct mew_phase_info *, void *),
		const struct mew_phase_info *info)
{
	uint64_t start = mew_trace_is_on() ? mew_os_now_ns() : 0;
	char name[120];
	int got;

	if (function == NULL)
		return 0;
	got = function(info, h->data);
	if (start != 0) {
		(void)snprintf(name, sizeof name, "%s: %s", h->name, which);
		mew_trace_slice(&(struct mew_trace_slice){
			.category = "hook", .name = name, .start_ns = start, .end_ns = mew_os_now_ns() });
	}
	return got;
}

static int fault(struct mew_error *err, const struct mew_hook *h, const char *call, int phase, int got)
{
	return mew_error_set(err, MEW_E_BODY, "hook \"%s\" failed in %s of %s (it returned %d)", h->name, call,
			     phases[phase].name, got);
}

/* End hooks count-1 .. 0; keeps the first failure. */
static int end_all(struct mew_phases *p, const struct mew_phase_info *info, size_t count, struct mew_error *err)
{
	int status = MEW_OK;

	while (count-- > 0) {
		const struct mew_hook *h = p->hooks[count];
		int got = call(h, "end", h->end, info);

		if (got != 0 && status == MEW_OK)
			status = fault(err, h, "end", info->phase, got);
	}
	return status;
}

int mew_phases_begin(struct mew_phases *p, int phase, uint64_t loops, unsigned repetition, struct mew_error *err)
{
	struct mew_phase_info info = info_of(p, phase, loops, repetition);

	for (size_t i = 0; i < p->n; i++) {
		const struct mew_hook *h = p->hooks[i];
		int got = call(h, "begin", h->begin, &info);

		if (got != 0) {
			int status = fault(err, h, "begin", phase, got);

			(void)end_all(p, &info, i, NULL);
			return status;
		}
		p->begun[i] |= 1u << phase;
	}
	return MEW_OK;
}

int mew_phases_end(struct mew_phases *p, int phase, uint64_t loops, unsigned repetition, struct mew_error *err)
{
	struct mew_phase_info info = info_of(p, phase, loops, repetition);
	int status = end_all(p, &info, p->n, err);

	p->index[phase]++;
	return status;
}

void mew_phases_fini(struct mew_phases *p)
{
	if (p->begun == NULL)
		return;
	for (size_t i = p->n; i-- > 0;) {
		for (int phase = 1; phase < MEW_PHASE_COUNT; phase++) {
			struct mew_phase_info info;

			if ((p->begun[i] >> phase & 1) == 0 || p->hooks[i]->teardown == NULL)
				continue;
			info = info_of(p, phase, 0, 0);
			p->hooks[i]->teardown(&info, p->hooks[i]->data);
		}
	}
	free(p->begun);
	p->begun = NULL;
}

int mew_phase_set(const struct mew_phase_info *info, const char *key, const char *value)
{
	struct mew_phases *p;

	if (info == NULL || info->private_ == NULL || key == NULL || key[0] == '\0' || value == NULL)
		return mew_error_set(mew_error_thread(), MEW_E_INVALID,
				     "mew_phase_set needs the info of a running hook, a key and a value");
	p = info->private_;
	if (p->model == NULL)
		return mew_error_set(mew_error_thread(), MEW_E_INVALID,
				     "mew_phase_set(\"%s\") has no block to belong to: call it in begin or end", key);
	if (mew_model_add_phase_data(p->model, p->row, info->phase, key, value) != 0)
		return mew_error_set(mew_error_thread(), MEW_E_NOMEM, "no memory for the phase value \"%s\"", key);
	return MEW_OK;
}
