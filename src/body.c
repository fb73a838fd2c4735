/*
 * body.c - see body.h.
 * Layer L4. Runner thread; benchmark threads live only inside mew_body_call().
 */
#include "config.h"

#include "body.h"

#include "entry_call.h"
#include "trace_log.h"

#include <pthread.h>
#include <stdlib.h>

struct body {
	const struct mew_item *item;
	struct mew_state *st;
};

static void *run_body(void *data)
{
	struct body *b = data;
	bool threaded = b->st->block->threads > 1;
	unsigned sections;

	if (threaded)
		mew_trace_thread_enter(b->st->thread);
	sections = mew_trace_sections();
	mew_entry_call(b->item->entry->run, b->st, b->item->entry->arg);
	mew_state_leave(b->st);
	mew_trace_settle(sections);
	if (threaded)
		mew_trace_thread_leave(b->item->key);
	return NULL;
}

/* Bodies that could not be started leave at once, so that nobody waits for them. */
static void run_threads(struct body *bodies, unsigned n)
{
	pthread_t *ids = calloc(n, sizeof *ids);
	bool *started = calloc(n, sizeof *started);

	for (unsigned i = 0; i < n; i++) {
		if (ids != NULL && started != NULL)
			started[i] = pthread_create(&ids[i], NULL, run_body, &bodies[i]) == 0;
		if (started == NULL || !started[i]) {
			mew_state_fail(bodies[i].st, MEW_E_NOMEM,
				       "thread %u of %u could not be started; use fewer threads", i, n);
			mew_state_leave(bodies[i].st);
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (started != NULL && started[i])
			(void)pthread_join(ids[i], NULL);
	free(ids);
	free(started);
}

void mew_body_call(const struct mew_item *item, struct mew_block *b)
{
	struct body *bodies = calloc(b->threads, sizeof *bodies);

	if (bodies == NULL) {
		mew_state_fail(&b->states[0], MEW_E_NOMEM, "no memory for %u threads", b->threads);
		return;
	}
	for (unsigned i = 0; i < b->threads; i++) {
		bodies[i] = (struct body){ .item = item, .st = &b->states[i] };
		b->states[i].case_index = item->case_index;
		b->states[i].case_label = item->label;
	}
	if (b->threads == 1)
		(void)run_body(&bodies[0]);
	else
		run_threads(bodies, b->threads);
	free(bodies);
}
