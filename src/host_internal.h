/*
 * host_internal.h - what host.c and host_driver.c share.
 * Layer L4.
 */
#ifndef MEW_HOST_INTERNAL_H
#define MEW_HOST_INTERNAL_H

#include "host.h"

/* Start the worker that a pass needs, and leave its greeting to mew_host_ensure(): two can come up side by side. */
int mew_host_launch(struct mew_host *h, enum mew_pass pass, struct mew_error *err);

/* Start a worker when there is none. Returns MEW_OK, MEW_E_IO or MEW_E_INVALID. */
int mew_host_start(struct mew_host *h, struct mew_error *err);

/* A greeted worker with the user's hooks active, started when there is none. */
int mew_host_ensure(struct mew_host *h, struct mew_error *err);

/* Let the worker tear down and leave; the next mew_host_ensure() starts a fresh one. */
void mew_host_retire(struct mew_host *h);

/* Send h->out. Returns MEW_OK; MEW_E_BODY when the worker was lost (it is cleared away then). */
int mew_host_send(struct mew_host *h, enum mew_message message, struct mew_error *err);

/* Wait for `answer` to what was sent; as mew_host_ask(). */
int mew_host_answer(struct mew_host *h, int answer, uint64_t deadline_ns, struct mew_error *err);

/* The time by which the worker must have answered; 0: none. */
uint64_t mew_host_deadline(const struct mew_host *h);

/* Take the outcome of a block that was asked for by MEW_MSG_RUN, after mew_host_answer() gave `status`. */
int mew_host_take_block(struct mew_host *h, uint32_t item, int status, struct mew_model *out, struct mew_error *err);

/*
 * Put the end of what a failed body printed behind the error, where nobody shows the row that has it.
 *
 * m  what mew_host_take_block() or the driver put the row into; NULL: there is none
 */
void mew_host_add_output(struct mew_host *h, const struct mew_model *m, struct mew_error *err);

/*
 * Send h->out and wait for `answer`. MEW_MSG_DONE is read up to its status and text.
 * Returns MEW_OK; the status the worker gave; MEW_E_BODY when it was lost or ran out of time (it is cleared away then).
 */
int mew_host_ask(struct mew_host *h, enum mew_message message, int answer, uint64_t deadline_ns, struct mew_error *err);

#endif
