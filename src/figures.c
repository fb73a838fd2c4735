/*
 * figures.c - the catalogue: one line for every figure of the three rows, in the order of their members.
 * Layer L2. Constant data; any thread.
 */
#include "config.h"

#include "model.h"

#define FIGURE_OF(row, number, member, value, in, text, is_special)                                                    \
	[number] = {                                                                                                   \
		.name = #member, .unit = (in), .type = (value), .bit = (number),                                       \
		.offset = offsetof(struct row, member), .help = (text), .special = (is_special),                       \
	}
#define FIGURE(row, number, member, type, unit, help) FIGURE_OF(row, number, member, type, unit, help, false)
#define U64 MEW_VALUE_U64
#define F64 MEW_VALUE_F64

#define TIME(number, member, type, unit, help) FIGURE(mew_result, MEW_FIG_##number, member, type, unit, help)
static const struct mew_figure time_figures[] = {
	TIME(MEDIAN_NS, median_ns, F64, "ns", "median time of an iteration"),
	TIME(MEDIAN_LOW_NS, median_low_ns, F64, "ns", "lower end of the median's 95 % interval"),
	TIME(MEDIAN_HIGH_NS, median_high_ns, F64, "ns", "upper end of the median's 95 % interval"),
	TIME(MEAN_NS, mean_ns, F64, "ns", "mean time of an iteration"),
	TIME(STDDEV_NS, stddev_ns, F64, "ns", "standard deviation of the samples"),
	TIME(MAD_NS, mad_ns, F64, "ns", "median absolute deviation of the samples, unscaled"),
	TIME(MIN_NS, min_ns, F64, "ns", "fastest sample"),
	TIME(MAX_NS, max_ns, F64, "ns", "slowest sample"),
	TIME(P90_NS, p90_ns, F64, "ns", "nine samples of ten are below it; a sample is the mean of its batch"),
	TIME(P99_NS, p99_ns, F64, "ns", "99 samples of 100 are below it; a sample is the mean of its batch"),
	TIME(CPU_NS, cpu_ns, F64, "ns", "median CPU time of an iteration, all threads"),
	TIME(ITERATIONS, iterations, U64, "1", "iterations in all samples, all threads"),
	TIME(LOOPS, loops, U64, "1", "iterations per sample"),
	TIME(SAMPLES, samples, U64, "1", "samples the figures were computed from"),
	TIME(REPETITIONS, repetitions, U64, "1", "repetitions of the case"),
	TIME(PROCESSES, processes, U64, "1", "processes the case ran in"),
	TIME(BYTES_PER_SECOND, bytes_per_second, F64, "By/s", "bytes processed per second at the median"),
	TIME(ITEMS_PER_SECOND, items_per_second, F64, "1/s", "items processed per second at the median"),
	TIME(CONTEXT_SWITCHES, context_switches, F64, "1", "context switches per sample"),
	TIME(MIGRATIONS, migrations, F64, "1", "moves to another processor per sample"),
	TIME(PAGE_FAULTS, page_faults, F64, "1", "page faults per sample"),
	TIME(LOOP_OVERHEAD_NS, loop_overhead_ns, F64, "ns", "one turn of an empty loop in this process"),
	TIME(CLOCK_COST_NS, clock_cost_ns, F64, "ns", "one reading of the clock in this process"),
};

/* Columns of lists: members of their rows. */
static const struct mew_figure size_class_columns[] = {
	FIGURE(mew_size_class, 0, low, U64, "By", "smallest size of the class"),
	FIGURE(mew_size_class, 1, high, U64, "By", "largest size of the class"),
	FIGURE(mew_size_class, 2, count, U64, "1", "allocations of these sizes"),
};

static const struct mew_figure memory_function_columns[] = {
	FIGURE(mew_memory_function, 0, function, MEW_VALUE_TEXT, "text", "function that allocates itself"),
	FIGURE(mew_memory_function, 1, peak_bytes, U64, "By", "alive at the peak"),
	FIGURE(mew_memory_function, 2, cumulative_bytes, U64, "By", "asked for by all its allocations"),
	FIGURE(mew_memory_function, 3, allocations, U64, "1", "its allocations"),
	FIGURE(mew_memory_function, 4, net_bytes, U64, "By", "still alive when the window closed"),
};

static const struct mew_figure live_point_columns[] = {
	FIGURE(mew_live_point, 0, iterations, U64, "1", "iterations until then"),
	FIGURE(mew_live_point, 1, live_bytes, U64, "By", "alive then"),
};

static const struct mew_figure memory_pool_columns[] = {
	FIGURE(mew_memory_pool, 0, name, MEW_VALUE_TEXT, "text", "pool"),
	FIGURE(mew_memory_pool, 1, peak_bytes, U64, "By", "most alive at once"),
	FIGURE(mew_memory_pool, 2, allocations, U64, "1", "its allocations"),
	FIGURE(mew_memory_pool, 3, cumulative_bytes, U64, "By", "asked for by all its allocations"),
	FIGURE(mew_memory_pool, 4, net_bytes, U64, "By", "still alive when the window closed"),
};

static const struct mew_figure cpu_thread_columns[] = {
	FIGURE(mew_cpu_thread_figures, 0, name, MEW_VALUE_TEXT, "text", "thread"),
	FIGURE(mew_cpu_thread_figures, 1, tid, U64, "1", "the kernel's number of it"),
	FIGURE(mew_cpu_thread_figures, 2, wall_time, F64, "s", "its time in the window"),
	FIGURE(mew_cpu_thread_figures, 3, cpu_time, F64, "s", "of that on a processor"),
	FIGURE(mew_cpu_thread_figures, 4, sample_count, U64, "1", "its samples"),
	FIGURE(mew_cpu_thread_figures, 5, sample_weight, F64, "s", "time that they stand for"),
};

static const struct mew_figure cpu_function_columns[] = {
	FIGURE(mew_cpu_function, 0, function, MEW_VALUE_TEXT, "text", "function"),
	FIGURE(mew_cpu_function, 1, self_time, F64, "s", "time in itself"),
	FIGURE(mew_cpu_function, 2, share, F64, "1", "its part of the sampled time, 0 to 1"),
	FIGURE(mew_cpu_function, 3, share_low, F64, "1", "lower end of the share's 95 % interval"),
	FIGURE(mew_cpu_function, 4, share_high, F64, "1", "upper end of the share's 95 % interval"),
};

static const struct mew_figure cpu_stop_columns[] = {
	FIGURE(mew_cpu_stop, 0, reason, MEW_VALUE_TEXT, "text", "complete, or why a walk went no further"),
	FIGURE(mew_cpu_stop, 1, samples, U64, "1", "samples that ended so"),
};

#define MEMORY(number, member, type, unit, help) FIGURE(mew_memory_case, MEW_FIG_##number, member, type, unit, help)
#define SPECIAL(number, member, type, unit, help)                                                                      \
	FIGURE_OF(mew_memory_case, MEW_FIG_##number, member, type, unit, help, true)
/* A list: the member is a pointer to rows, and the one of the same name after an n counts them. */
#define LIST(of, number, member, row, fields, text, is_special)                                                        \
	[number] = {                                                                                                   \
		.name = #member, .unit = "list", .type = MEW_VALUE_LIST, .bit = (number),                              \
		.offset = offsetof(struct of, member), .help = (text),                                                 \
		.list = &(const struct mew_list_type){ sizeof(struct row), offsetof(struct of, n##member), fields,     \
						       MEW_COUNTOF(fields) },                                          \
		.special = (is_special),                                                                               \
	}
#define MEMORY_LIST(number, member, row, fields, help)                                                                 \
	LIST(mew_memory_case, MEW_FIG_##number, member, row, fields, help, false)
static const struct mew_figure memory_figures[] = {
	MEMORY(PEAK_BYTES, peak_bytes, U64, "By", "most heap alive at once"),
	MEMORY(TOTAL_BYTES, total_bytes, U64, "By", "heap alive at that moment: the sum over the stacks at the peak"),
	MEMORY(TOTAL_ALLOCATIONS, total_allocations, U64, "1", "successful allocations, reallocations included"),
	MEMORY(MEMORY_ITERATIONS, iterations, U64, "1", "iterations inside the window, all threads"),
	MEMORY(ALLOCATIONS_PER_ITERATION, allocations_per_iteration, F64, "1", "allocations of an iteration"),
	MEMORY(CUMULATIVE_BYTES, cumulative_bytes, U64, "By", "bytes asked for by all allocations together"),
	MEMORY(BYTES_PER_ITERATION, bytes_per_iteration, F64, "By", "bytes asked for in an iteration"),
	MEMORY(FREES, frees, U64, "1", "frees of blocks born in the window"),
	MEMORY(REALLOCS_MOVED, reallocs_moved, U64, "1", "reallocations that returned another address"),
	MEMORY(REALLOCS_IN_PLACE, reallocs_in_place, U64, "1", "reallocations that returned the same address"),
	MEMORY(FAILED, failed, U64, "1", "allocations that failed"),
	MEMORY(FOREIGN_FREES, foreign_frees, U64, "1", "frees of blocks that are older than the window"),
	MEMORY(ADOPTED, adopted, U64, "1", "reallocations of blocks that are older than the window"),
	MEMORY(NET_BYTES, net_bytes, U64, "By", "heap of the window still alive when it closed"),
	MEMORY(NET_BLOCKS, net_blocks, U64, "1", "blocks of the window still alive when it closed"),
	MEMORY(MEMORY_LOST, lost, U64, "1", "records dropped; other than 0 makes the row invalid"),
	MEMORY(MODE, mode, MEW_VALUE_TEXT, "text", "count, or capture: with the stacks"),
	MEMORY(LEAK_BYTES_PER_ITERATION, leak_bytes_per_iteration, F64, "By", "growth of the live bytes an iteration"),
	MEMORY(LEAK_BYTES_PER_ITERATION_LOW, leak_bytes_per_iteration_low, F64, "By", "lower end of its 95 % interval"),
	MEMORY(LEAK_BYTES_PER_ITERATION_HIGH, leak_bytes_per_iteration_high, F64, "By",
	       "upper end of its 95 % interval"),
	MEMORY(ALLOCATIONS_FIRST, allocations_first, U64, "1", "allocations of the first iteration"),
	MEMORY(ALLOCATIONS_MIN, allocations_min, U64, "1", "allocations of the iteration with the fewest"),
	MEMORY(ALLOCATIONS_MAX, allocations_max, U64, "1", "allocations of the iteration with the most"),
	MEMORY(STEADY, steady, U64, "1", "1 when every iteration after the first allocates equally often"),
	MEMORY(TEMPORARY_ALLOCATIONS, temporary_allocations, U64, "1", "blocks freed before their thread's next one"),
	MEMORY(PEAK_USABLE_BYTES, peak_usable_bytes, U64, "By",
	       "the blocks of the peak as large as the allocator made them"),
	MEMORY_LIST(SIZE_HISTOGRAM, size_histogram, mew_size_class, size_class_columns, "allocations by size"),
	MEMORY(RSS_PEAK_DELTA_BYTES, rss_peak_delta_bytes, U64, "By", "growth of resident memory up to its highest"),
	MEMORY(MAPPED_PEAK_BYTES, mapped_peak_bytes, U64, "By",
	       "most that the program itself had mapped, apart from the heap"),
	MEMORY_LIST(BY_FUNCTION, by_function, mew_memory_function, memory_function_columns,
		    "functions that allocate most, largest at the peak first"),
	LIST(mew_memory_case, MEW_FIG_BY_POOL, by_pool, mew_memory_pool, memory_pool_columns,
	     "what named pools announced", true),
	MEMORY(BOOKKEEPING_BYTES, bookkeeping_bytes, U64, "By", "memory that mew itself needed, in no other figure"),
	SPECIAL(JEMALLOC_ALLOCATED_OPEN, jemalloc_allocated_open, U64, "By",
		"jemalloc's stats.allocated, at the start"),
	SPECIAL(JEMALLOC_ALLOCATED_CLOSE, jemalloc_allocated_close, U64, "By",
		"jemalloc's stats.allocated, at the end"),
	SPECIAL(JEMALLOC_ACTIVE_OPEN, jemalloc_active_open, U64, "By", "jemalloc's stats.active, at the start"),
	SPECIAL(JEMALLOC_ACTIVE_CLOSE, jemalloc_active_close, U64, "By", "jemalloc's stats.active, at the end"),
	SPECIAL(JEMALLOC_RESIDENT_OPEN, jemalloc_resident_open, U64, "By", "jemalloc's stats.resident, at the start"),
	SPECIAL(JEMALLOC_RESIDENT_CLOSE, jemalloc_resident_close, U64, "By", "jemalloc's stats.resident, at the end"),
	SPECIAL(JEMALLOC_RETAINED_OPEN, jemalloc_retained_open, U64, "By", "jemalloc's stats.retained, at the start"),
	SPECIAL(JEMALLOC_RETAINED_CLOSE, jemalloc_retained_close, U64, "By", "jemalloc's stats.retained, at the end"),
	SPECIAL(JEMALLOC_FRAGMENTATION_OPEN, jemalloc_fragmentation_open, F64, "1",
		"1 - allocated / active, at the start"),
	SPECIAL(JEMALLOC_FRAGMENTATION_CLOSE, jemalloc_fragmentation_close, F64, "1",
		"1 - allocated / active, at the end"),
	LIST(mew_memory_case, MEW_FIG_LIVE_BY_ITERATION, live_by_iteration, mew_live_point, live_point_columns,
	     "heap of the window that is alive between iterations", true),
};

#define CPU(number, member, type, unit, help) FIGURE(mew_cpu_case, MEW_FIG_##number, member, type, unit, help)
#define CPU_LIST(number, member, row, fields, help) LIST(mew_cpu_case, MEW_FIG_##number, member, row, fields, help, false)
static const struct mew_figure cpu_figures[] = {
	CPU(WALL_TIME, wall_time, F64, "s", "how long the sampled window lasted, pauses out, sampler included"),
	CPU(CPU_TIME, cpu_time, F64, "s", "CPU time of the same stretch, all threads"),
	CPU(SAMPLE_COUNT, sample_count, U64, "1", "samples kept"),
	CPU(SAMPLE_WEIGHT, sample_weight, F64, "s", "time the samples stand for"),
	CPU(TOP_FUNCTION, top_function, MEW_VALUE_TEXT, "text", "function with the largest self time"),
	CPU(TOP_FUNCTION_TOTAL_SELF_TIME, top_function_total_self_time, F64, "s", "its self time"),
	CPU(TOP_FUNCTION_SHARE, top_function_share, F64, "1", "its part of the sampled time, 0 to 1"),
	CPU(TOP_FUNCTION_SHARE_LOW, top_function_share_low, F64, "1", "lower end of the share's 95 % interval"),
	CPU(TOP_FUNCTION_SHARE_HIGH, top_function_share_high, F64, "1", "upper end of the share's 95 % interval"),
	CPU(INTERVAL, interval, F64, "s", "time between samples that was asked for"),
	CPU(EFFECTIVE_INTERVAL, effective_interval, F64, "s", "time between samples that was delivered"),
	CPU(CPU_ITERATIONS, iterations, U64, "1", "iterations inside the window, all threads"),
	CPU(CPU_LOST, lost, U64, "1", "samples that were dropped"),
	CPU(TRUNCATED, truncated, U64, "1", "samples whose stack was cut"),
	CPU(UNRESOLVED, unresolved, U64, "1", "samples whose leaf has no name"),
	CPU(CLOCK, clock, MEW_VALUE_TEXT, "text", "wall or cpu: the time that the samples are spread over"),
	CPU(ENGINE, engine, MEW_VALUE_TEXT, "text", "what made the samples"),
	CPU(ENGINE_REASON, engine_reason, MEW_VALUE_TEXT, "text", "why no better engine did"),
	CPU(OFF_CPU_TIME, off_cpu_time, F64, "s", "time of the window in which its threads were on no processor"),
	CPU(BLOCKED_WEIGHT, blocked_weight, F64, "s", "time of the samples that found their thread off the processor"),
	CPU(SAMPLER_COST, sampler_cost, F64, "s", "time that sampling itself took, by the calibrated cost of a sample"),
	CPU(WALL_TIME_CORRECTED, wall_time_corrected, F64, "s", "how long it would have lasted without the sampler"),
	CPU_LIST(BY_THREAD, by_thread, mew_cpu_thread_figures, cpu_thread_columns, "each thread of the case"),
	CPU_LIST(STOPS, stops, mew_cpu_stop, cpu_stop_columns, "how the stacks of the samples ended"),
	CPU(CYCLES, cycles, F64, "1", "processor cycles of the window, all threads"),
	CPU(INSTRUCTIONS, instructions, F64, "1", "instructions of the window, all threads"),
	CPU(CACHE_MISSES, cache_misses, F64, "1", "cache misses of the window, all threads"),
	CPU(BRANCH_MISSES, branch_misses, F64, "1", "mispredicted branches of the window, all threads"),
	CPU_LIST(CPU_BY_FUNCTION, by_function, mew_cpu_function, cpu_function_columns, "functions by their own time"),
};

const struct mew_figure *mew_figures(enum mew_kind kind, size_t *count)
{
	switch (kind) {
	case MEW_KIND_TIME:
		*count = MEW_COUNTOF(time_figures);
		return time_figures;
	case MEW_KIND_MEMORY:
		*count = MEW_COUNTOF(memory_figures);
		return memory_figures;
	case MEW_KIND_CPU:
		*count = MEW_COUNTOF(cpu_figures);
		return cpu_figures;
	case MEW_KINDS:
		break;
	}
	*count = 0;
	return NULL;
}

const char *mew_kind_name(enum mew_kind kind)
{
	static const char *const names[MEW_KINDS] = { "time", "memory", "cpu" };

	return (unsigned)kind < MEW_KINDS ? names[kind] : "unknown";
}
