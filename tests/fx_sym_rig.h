/*
 * fx_sym_rig.h - compiles the fx_sym fixtures at test time, loads them and gives their marked addresses to a model.
 * Test fixture. Everything happens in a temporary directory that goes with the rig.
 */
#ifndef FX_SYM_RIG_H
#define FX_SYM_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"

struct sym_rig {
	char directory[64];
	char source[512];  /* the fixture's source file */
	char library[128]; /* the module */
	char build_id[80]; /* lower-case hex; "" none */
	uint64_t offsets[8]; /* of the marked calls, by slot; the call's last byte */
	struct mew_model *model;
	struct mew_error error;
	int status; /* of the last rig_symbolise() */
};

/*
 * Compile `fixture` (a file name in the tests' source directory) with `flags`, load it, run it, unload it.
 *
 * Returns  false, with the reason printed, when there is no compiler: the test skips
 */
bool rig_open(struct sym_rig *r, const char *fixture, const char *flags);
void rig_close(struct sym_rig *r);

/* Run a shell command made by printf in the rig's directory; true when it succeeded. */
bool rig_run(const struct sym_rig *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * A new model with one location in the rig's module for each of n slots, then mew_symbolise(). Location i is slot i.
 * build_id NULL: the right one.
 */
void rig_symbolise(struct sym_rig *r, size_t n, const char *build_id);

/* The build id of the module loaded at `base` as hex; "" none. text has room for 80 bytes. */
void rig_build_id(const void *base, char *text);

/* The line of the fixture's source that contains `mark` behind "line: ". Fails the test when there is none. */
uint32_t rig_line(const struct sym_rig *r, const char *mark);

/* Fails the test unless frame `depth` of a location is this function with these lines in the fixture's source file. */
void rig_expect(const struct sym_rig *r, uint32_t location, uint32_t depth, const char *function,
		const char *definition, const char *line);

/* Fails the test unless the text contains the part. */
void rig_contains(const char *text, const char *part);

#endif
