/*
 * calibration.h - what A/A runs said of a machine and a program: how often the gate is wrong, and how fine it sees.
 * Layer L6. calibrate.c measures it, calibration.c writes and reads it, the gate takes its noise floors from it.
 *
 * Context  the command's thread
 */
#ifndef MEW_CALIBRATION_H
#define MEW_CALIBRATION_H

#include "base.h"
#include "model.h"
#include "mew.h"

#define MEW_CALIBRATION_SCHEMA 1
#define MEW_CALIBRATION_CONTROLS 3
#define MEW_CALIBRATION_IDENTITY 7

struct mew_control { /* runs whose head did known extra work */
	double extra;    /* of the work, as a fraction */
	unsigned trials, found;
	char why[160];   /* why there are none; "" */
};

struct mew_calibration_case {
	char *key;
	unsigned trials;         /* A/A */
	double noise_floor;      /* 95th percentile of |ln ratio| that the trials ended with, as a fraction */
	double smallest_effect;  /* that as many pairs find in 4 of 5 gates, as a fraction */
	struct mew_control controls[MEW_CALIBRATION_CONTROLS];
};

struct mew_calibration {
	char *program;                               /* file name without folders */
	char *identity[MEW_CALIBRATION_IDENTITY];    /* values of mew_calibration_facts[]; NULL: unknown */
	uint64_t started_s, seed;
	unsigned samples, rounds;                    /* pairs of a trial, samples of each side in a pair */
	unsigned trials, false_positives;            /* A/A gates at margin 0; of them with a difference in any case */
	double load;                                 /* of a minute, when it began; NaN: unknown */
	struct mew_calibration_case *cases;
	size_t ncases;
};

/* Names of the facts that tell whether a calibration fits. */
extern const char *const mew_calibration_facts[MEW_CALIBRATION_IDENTITY];

void mew_calibration_free(struct mew_calibration *c); /* NULL is fine */
struct mew_calibration_case *mew_calibration_find(const struct mew_calibration *c, const char *key);
/* The case of that key, added when it is new; NULL without memory. */
struct mew_calibration_case *mew_calibration_case(struct mew_calibration *c, const char *key);

/* Take program name and identity from the facts of a process and its machine. Returns 0, or -1 without memory. */
int mew_calibration_identify(struct mew_calibration *c, const char *program, const struct mew_model *facts);

/* The name of the first fact that differs, NULL when it fits the facts. */
const char *mew_calibration_misfit(const struct mew_calibration *c, const struct mew_model *facts);

/*
 * Where a calibration of this program and identity is kept: ${XDG_STATE_HOME:-~/.local/state}/mew/NAME-HASH.json.
 * Returns  the path, freed by the caller; NULL when there is no home or no memory
 */
char *mew_calibration_path(const struct mew_calibration *c);

/* Write it, folders included. Returns MEW_OK or a status naming the file. */
int mew_calibration_write(const struct mew_calibration *c, const char *path, struct mew_error *err);

/* Read one, trusting nothing. Returns NULL with err filled; MEW_E_IO when there is no such file. */
struct mew_calibration *mew_calibration_read(const char *path, struct mew_error *err);

struct mew_gate;

/*
 * Give the cases of a gate their noise floors, once its programs' facts are known.
 * Returns  an exit code: MEW_EXIT_USAGE after a line on standard error when a file that was asked for cannot be used
 */
int mew_calibration_apply(struct mew_gate *g);

/* "1 of 20 A/A runs found a difference (0.9 % to 24 %)". */
void mew_calibration_words(const struct mew_calibration *c, char *text, size_t size);

#endif
