/*
 * host_internal.h - what host.c and host_driver.c share.
 * Layer L4.
 */
#ifndef MEW_HOST_INTERNAL_H
#define MEW_HOST_INTERNAL_H

#include "host.h"

/* A greeted worker with the user's hooks active, started when there is none. */
int mew_host_ensure(struct mew_host *h, struct mew_error *err);

/* Let the worker tear down and leave; the next mew_host_ensure() starts a fresh one. */
void mew_host_retire(struct mew_host *h);

/*
 * Send h->out and wait for `answer`. MEW_MSG_DONE is read up to its status and text.
 * Returns MEW_OK; the status the worker gave; MEW_E_BODY when it was lost or ran out of time (it is cleared away then).
 */
int mew_host_ask(struct mew_host *h, enum mew_message message, int answer, uint64_t deadline_ns, struct mew_error *err);

#endif
