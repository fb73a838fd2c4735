/*
 * record_window.h - the window of a recorded process, as its edges were met, and what to say where one was not.
 * Layer L4. The command's thread.
 */
#ifndef MEW_RECORD_WINDOW_H
#define MEW_RECORD_WINDOW_H

#include "record.h"

struct mew_record_window { /* CLOCK_MONOTONIC, and of the process's CPU clock */
	uint64_t opened_ns, closed_ns;
	uint64_t opened_cpu_ns, closed_cpu_ns; /* 0: not known */
	bool is_late, is_early; /* it opened after the captures began; it closed before the process ended */
};

/* When this image of the process ended: by itself, by becoming another, or else when it was seen to be gone. */
uint64_t mew_record_window_ended(const struct mew_record_root *root, uint64_t gone_ns);

/*
 * from_ns   the command opened it then; 0: it did not
 * ended_ns  of the image, by mew_record_window_ended()
 */
void mew_record_window_of(const struct mew_record_root *root, uint64_t from_ns, uint64_t ended_ns,
			  struct mew_record_window *out);

/* Did the function that opens it get entered, if there is one? */
bool mew_record_window_opened(const struct mew_record_root *root, const struct mew_record_orders *o);

/*
 * Why the window was never opened; or what is to be said of its end, "" for nothing. Names the closest function where
 * there is none of that name.
 *
 * Context  the list of modules is that of the dead process (modules.h)
 */
void mew_record_window_why(const struct mew_record_root *root, const struct mew_record_orders *o, char *text,
			   size_t size);

#endif
