/*
 * calibrate.h - run gates of a program against itself, with and without known extra work.
 * Layer L6.
 */
#ifndef MEW_CALIBRATE_H
#define MEW_CALIBRATE_H

#include "calibration.h"
#include "gate.h"

struct mew_calibrate_options {
	const char *program;
	const struct mew_select *select;
	unsigned trials;        /* of the A/A runs, and of each control */
	unsigned samples, rounds;
	uint64_t seed;
	bool gbench;            /* the program is of Google Benchmark */
	enum mew_when progress;
	struct mew_host_options host;
};

/* "+1 % found": a column for each control. */
extern const char *const mew_control_names[MEW_CALIBRATION_CONTROLS];

/*
 * Each trial is a whole gate of the program against itself at margin 0, on fresh processes: what calls a difference
 * there is wrong. A control's head does extra work in each sample.
 *
 * c        filled, borrowed; also as far as it came when interrupted
 * Returns  MEW_EXIT_FINE; MEW_EXIT_USAGE or MEW_EXIT_INVALID after a line on standard error
 */
int mew_calibrate(const struct mew_calibrate_options *o, struct mew_calibration *c);

#endif
