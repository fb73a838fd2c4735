/*
 * session.c - see session.h.
 * Layer L4. Signals and malloc hooks are process-wide, hence one session; this claim is the library's one global
 * besides the lists of registrations.
 */
#include "config.h"

#include "session.h"

#include "analyse.h"
#include "environment.h"
#include "error.h"
#include "os.h"
#include "runner.h"
#include "span_registry.h"
#include "symbolise.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const void *owner_frame;
static int owner_tid;

int mew_session_begin(const void *frame, struct mew_error *err)
{
	int tid = mew_os_tid(), status = MEW_OK;

	(void)pthread_mutex_lock(&lock);
	/* the stack grows down: a new frame at or above the old one, on the same thread, means the old one is left */
	if (owner_frame != NULL && !(tid == owner_tid && frame >= owner_frame))
		status = mew_error_set(err, MEW_E_BUSY,
				       "a profiling session is running in this process; wait until it returns");
	if (status == MEW_OK) {
		if (owner_frame != NULL)
			mew_runner_abandon();
		owner_frame = frame;
		owner_tid = tid;
	}
	(void)pthread_mutex_unlock(&lock);
	if (status == MEW_OK)
		mew_spans_sweep(frame);
	return status;
}

void mew_session_end(void)
{
	(void)pthread_mutex_lock(&lock);
	owner_frame = NULL;
	(void)pthread_mutex_unlock(&lock);
}

int mew_session_finish(struct mew_model *m, const struct mew_symbolise_servers *servers, struct mew_error *err)
{
	int status = MEW_OK;

	if (m->nlocations > 0)
		status = mew_symbolise(m, servers, err);
	if (status == MEW_OK || status == MEW_E_UNSUPPORTED)
		status = mew_analyse(m, err);
	mew_environment_grade(m);
	mew_model_seal(m);
	return status;
}
