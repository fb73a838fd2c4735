/*
 * gate_resume.h - an interrupted gate goes on: its command line, its seed, the identity of its sides, its observations.
 * Layer L6. The command's thread.
 */
#ifndef MEW_GATE_RESUME_H
#define MEW_GATE_RESUME_H

#include "gate.h"

struct mew_resumed {
	json_t *tree; /* samples.json */
	char *output; /* its directory, absolute */
	int argc;     /* of the command line that began the run */
	char **argv;
};

/* A copy for the record, because reading the flags changes the texts; NULL without memory. */
char **mew_gate_copy_arguments(int argc, char *const *argv);
void mew_gate_free_arguments(char **argv); /* NULL is fine */

/*
 * Read DIR/samples.json and go to the directory where its run was started.
 * Returns MEW_OK, or MEW_E_IO, MEW_E_INVALID, MEW_E_NOMEM with a sentence; mew_resumed_fini() is due in any case
 */
int mew_gate_resume_open(const char *directory, struct mew_resumed *out, struct mew_error *err);
void mew_resumed_fini(struct mew_resumed *r);

/* One pair out of a file; MEW_E_INVALID where a side lacks. */
int mew_gate_read_observation(const json_t *from, const char *key, struct mew_gate_observation *out,
			      struct mew_error *err);
/* The case of a key in samples.json or summary.json; NULL: it has none. */
const json_t *mew_gate_find_case(const json_t *tree, const char *key);

/* Members of samples.json that the next run reads. */
void mew_gate_put_arguments(struct mew_json *j, const struct mew_gate *g);
void mew_gate_put_tool(struct mew_json *j, const struct mew_tool *tool);
/* Commands: what the phases file said, which the next run and the other machines must have too. */
void mew_gate_put_phases_hash(struct mew_json *j, const struct mew_gate *g);

#endif
