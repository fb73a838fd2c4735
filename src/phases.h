/*
 * phases.h - the user's hooks around the blocks of a case.
 * Layer L4. Runner thread, outside windows.
 */
#ifndef MEW_PHASES_H
#define MEW_PHASES_H

#include "base.h"
#include "model.h"

#define MEW_PHASE_COUNT 9 /* numbers 1..8; 0 is unused */

/* Which hooks run, and what they have begun for one case and pass. */
struct mew_phases {
	const struct mew_hook *const *hooks; /* borrowed */
	size_t n;
	const char *key;                     /* of the case; borrowed */
	uint64_t index[MEW_PHASE_COUNT];     /* blocks so far */
	uint64_t *begun;                     /* per phase and hook: was begun and not torn down */
	struct mew_model *model;             /* where mew_phase_set() puts values; borrowed, may change between blocks */
	struct mew_case *row;
};

/* Returns MEW_OK, MEW_E_NOMEM, MEW_E_INVALID for a hook without a name. */
int mew_phases_init(struct mew_phases *p, const struct mew_hook *const *hooks, size_t n, const char *key,
		    struct mew_error *err);

/*
 * Run the begin calls of a block in order. If one fails, those that began are ended in reverse order.
 * Returns MEW_OK or MEW_E_BODY naming the hook and the phase.
 */
int mew_phases_begin(struct mew_phases *p, int phase, uint64_t loops, unsigned repetition, struct mew_error *err);

/* Run the end calls in reverse order, all of them; the first failure is returned. Counts the block. */
int mew_phases_end(struct mew_phases *p, int phase, uint64_t loops, unsigned repetition, struct mew_error *err);

/* Tear down everything that was begun, once per hook and phase, and free. */
void mew_phases_fini(struct mew_phases *p);

#endif
