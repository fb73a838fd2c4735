/*
 * wire.h - messages between the command and a worker: a growing buffer, and requests and models in it.
 * Layer L4. Both ends may be different builds of mew: the first message carries the protocol's number.
 *
 * Format   frame = u32 little-endian MEW_WIRE_MAGIC, u32 little-endian payload length, u8 type, payload
 *          number = LEB128; real = 8 bytes IEEE little-endian; text = 0 for NULL, else length + 1 and the bytes
 */
#ifndef MEW_WIRE_H
#define MEW_WIRE_H

#include "runner.h"

#define MEW_WIRE_PROTOCOL 7u
/* A body may write to this socket, and the rest of a wrong length would be waited for: no text has such bytes. */
#define MEW_WIRE_MAGIC UINT32_C(0xf577656d)
#define MEW_WIRE_MAX ((size_t)1 << 30)

enum mew_message {
	MEW_MSG_HELLO = 1,  /* worker: protocol, then a model with its facts */
	MEW_MSG_LIST,       /* command: nothing */
	MEW_MSG_CATALOGUE,  /* worker: cases and hooks */
	MEW_MSG_HOOKS,      /* command: names of hooks to activate */
	MEW_MSG_OPEN,       /* command: item, pass */
	MEW_MSG_RUN,        /* command: a request */
	MEW_MSG_CLOSE,      /* command: item, pass */
	MEW_MSG_DONE,       /* worker: status, text, and a model for MEW_MSG_RUN */
	MEW_MSG_BOTH        /* command: two requests whose samples take turns on one thread; each has its MEW_MSG_DONE, in their order */
};

struct mew_wire {
	unsigned char *data;
	size_t size, capacity;
	size_t at;   /* reading */
	bool failed; /* out of memory, or read past the end: everything after is zero */
};

void mew_wire_init(struct mew_wire *w);
void mew_wire_fini(struct mew_wire *w);
void mew_wire_reset(struct mew_wire *w);

void mew_wire_put_number(struct mew_wire *w, uint64_t value);
void mew_wire_put_real(struct mew_wire *w, double value);
void mew_wire_put_text(struct mew_wire *w, const char *text);
uint64_t mew_wire_number(struct mew_wire *w);
double mew_wire_real(struct mew_wire *w);
/* NULL, or NUL-ended text inside the buffer that lives until the next reset. */
const char *mew_wire_text(struct mew_wire *w);

void mew_wire_put_request(struct mew_wire *w, const struct mew_request *rq);
void mew_wire_request(struct mew_wire *w, struct mew_request *rq);
void mew_wire_put_model(struct mew_wire *w, const struct mew_model *m);
/* Adds to an empty model; false when the bytes are not one. */
bool mew_wire_model(struct mew_wire *w, struct mew_model *m);

/*
 * Send the buffer as one frame; receive one frame into the buffer.
 *
 * deadline_ns  of CLOCK_MONOTONIC; 0 waits for ever
 * cancelled    (may be NULL) ends the wait when it becomes non-zero; looked at after each signal to the calling thread, and
 *              when the descriptor wake_fd (-1: none) is readable
 * Returns      send: MEW_OK or MEW_E_IO; receive: the message's type, 0 when the other end is gone, MEW_E_BODY when the
 *              deadline passed, MEW_E_BUSY when cancelled, MEW_E_IO for a broken frame
 */
int mew_wire_send(int fd, enum mew_message type, const struct mew_wire *w);
int mew_wire_receive(int fd, struct mew_wire *w, uint64_t deadline_ns, const volatile int *cancelled, int wake_fd);

#endif
