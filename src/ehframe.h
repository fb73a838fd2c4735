/*
 * ehframe.h - the .eh_frame of one module, compiled to a sorted table of packed rules (cfi.h).
 * Layer L1. Compiled outside windows; looked up anywhere, also in a signal handler and inside malloc.
 */
#ifndef MEW_EHFRAME_H
#define MEW_EHFRAME_H

#include "arena.h"
#include "base.h"
#include "cfi.h"

/* Elsewhere there is nothing to compile: see unwind_none.c. */
#if defined(__x86_64__) || defined(__aarch64__)
#define MEW_EHFRAME_SUPPORTED 1
#else
#define MEW_EHFRAME_SUPPORTED 0
#endif

/* Immutable. Row i speaks of the code from base + offset[i] up to the next row. */
struct mew_unwind_table {
	uintptr_t base;         /* run-time address that offsets count from */
	uint32_t nrows, npages, nrules;
	const uint32_t *offset; /* nrows; ascending */
	const uint16_t *rule;   /* nrows; index into rules */
	const uint32_t *page;   /* npages + 1; the last row at or before the start of each 4 KiB of code */
	const uint64_t *rules;  /* nrules; each once */
	uint32_t fdes;             /* functions compiled */
	uint32_t unsupported_rows; /* rows whose rule is MEW_RULE_UNSUPPORTED */
	size_t bytes;              /* memory of the table */
};

struct mew_ehframe {
	struct mew_span header; /* .eh_frame_hdr; size 0 where there is none */
	struct mew_span frames; /* from the start of .eh_frame; may reach beyond its end */
	uintptr_t lo, hi;       /* run-time range of the code; functions outside it are left out */
	const struct mew_machine *machine; /* that the code is for; NULL: this one */
};

/*
 * Where a .eh_frame_hdr says that .eh_frame begins.
 *
 * Returns  its run-time address; 0 when the header is not usable
 */
uintptr_t mew_ehframe_address(const struct mew_span *header);

/*
 * Compile. Pure but for the arena: it reads the two spans and nothing else, and any bytes will do. Functions are listed
 * by the header's search table, or by a walk over the frames where that is missing or no good.
 *
 * arena    holds the table; what else is needed while it is made is asked of it too and given back to it, not to the
 *          kernel: pages that were touched serve the next table
 * out      returned; NULL when the input has no usable function
 * Returns  0; -1 when memory ran out
 * Context  one thread at a time per arena; outside windows; never calls malloc
 */
int mew_ehframe_compile(const struct mew_ehframe *in, struct mew_arena *arena, const struct mew_unwind_table **out);

/* The rule at pc; MEW_RULE_NONE outside the table. Context: any thread, signal, malloc. */
static inline uint64_t mew_unwind_table_rule(const struct mew_unwind_table *t, uintptr_t pc)
{
	uintptr_t at = pc - t->base;
	size_t page = at >> 12, first, n;

	if (page >= t->npages) /* also when pc lies below base */
		return MEW_RULE_NONE;
	first = t->page[page];
	n = t->page[page + 1] + 1 - first;
	while (n > 1) { /* without a branch that depends on the rows */
		size_t half = n / 2;

		first = t->offset[first + half] <= at ? first + half : first;
		n -= half;
	}
	return t->offset[first] <= at ? t->rules[t->rule[first]] : MEW_RULE_NONE;
}

#endif
