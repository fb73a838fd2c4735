/*
 * cpu_lists.h - the lists of a CPU row, and what has to be said about them: threads, and how stacks ended.
 * Layer L3. Runner thread, after the window.
 */
#ifndef MEW_CPU_LISTS_H
#define MEW_CPU_LISTS_H

#include "cpu_crew.h"
#include "sink.h"

/* Samples by enum mew_unwind_stop, most frequent reason first; says so in the row when one stack of twenty is cut. */
void mew_cpu_put_stops(struct mew_sink *sink, const uint64_t stops[MEW_STOPS]);

/*
 * The row of a benchmark thread, and of a thread that the case made. `name` is room for the row's name and must live
 * until the list is put.
 */
#define MEW_CPU_NAME_BYTES 48
void mew_cpu_name_benchmark(struct mew_cpu_thread_figures *row, unsigned thread, char name[MEW_CPU_NAME_BYTES]);
void mew_cpu_name_crew(struct mew_cpu_thread_figures *row, const struct mew_cpu_crew_row *from,
		       char name[MEW_CPU_NAME_BYTES]);

/* Say in the row which threads were missed, or may have been. engine: of the window, enum mew_cpu_engine. */
void mew_cpu_note_crew(struct mew_sink *sink, const struct mew_cpu_crew_losses *losses, int engine);

#endif
