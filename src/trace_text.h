/*
 * trace_text.h - text of trace events in a fixed buffer, and names that live as long as the process.
 * Layer L2. Outside windows.
 */
#ifndef MEW_TRACE_TEXT_H
#define MEW_TRACE_TEXT_H

#include "base.h"

struct mew_trace_text { /* the owner empties it before it is half full: one event is shorter than that */
	size_t used;
	char data[32768];
};

/* printf for integers and strings. Context: one thread at a time. */
void mew_trace_text_add(struct mew_trace_text *t, const char *format, ...) MEW_PRINTF(2, 3);
/* A JSON string with its quotes; at most about 1,000 bytes of the text. Bytes that are not UTF-8 become U+FFFD. */
void mew_trace_text_string(struct mew_trace_text *t, const char *text);

/*
 * Bytes of the UTF-8 sequence at `p`: 1 to 4; 0 when it is none.
 * Context: any thread
 */
size_t mew_trace_utf8(const unsigned char *p, size_t left);

#endif
