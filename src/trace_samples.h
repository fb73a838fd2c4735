/*
 * trace_samples.h - the samples of the CPU pass on the timeline.
 * Layer L5. After the measurement, when stacks have their names.
 *
 * Format   what V8 streams of its own CPU profiles, which Perfetto, catapult and the profilers of browsers read: for each
 *          thread of a case an event "Profile" when its window opened, then events "ProfileChunk". A chunk has in
 *          args.data.cpuProfile the nodes of the tree of calls that are new in it (id, the parent's id, callFrame) and
 *          for each sample the id of its innermost node; in args.data.timeDeltas whole microseconds since the sample
 *          before, the first one since the window opened. The root of a tree is the case. cpuProfile.weights_ns, which
 *          readers pass over, has what each sample stands for, and cpuProfile.blocked, where there is any, a 1 for each
 *          whose thread was not on a processor.
 */
#ifndef MEW_TRACE_SAMPLES_H
#define MEW_TRACE_SAMPLES_H

#include "model.h"

#define MEW_TRACE_SAMPLES_MAX 1000000u /* about 20 MB */
#define MEW_TRACE_NODES_MAX 200000u    /* and of their trees */

struct mew_trace_samples {
	uint64_t samples_max, nodes_max; /* of all files together */
	/* returned */
	uint64_t written, left_out;
};

/*
 * Write a file of events for each process that the model has samples of, into the directory of a traced run. Above
 * samples_max, every n-th sample of each thread is kept, evenly; a sample whose stack would be one node too many is
 * left out. Both are counted, here and in the files.
 *
 * m          with names; borrowed
 * directory  open; borrowed
 * Returns    MEW_OK; MEW_E_IO; MEW_E_NOMEM
 */
int mew_trace_samples_write(const struct mew_model *m, int directory, struct mew_trace_samples *s,
			    struct mew_error *err);

/*
 * The same within the usual bounds, and a slice for it on this thread's timeline: how many, or why it failed.
 *
 * directory  taken; -1: nothing happens
 */
int mew_trace_samples_show(const struct mew_model *m, int directory, struct mew_error *err);

#endif
