/*
 * firefox_tables.h - the tables of one thread in the Firefox Profiler's format: stacks, frames, functions and so on.
 * Layer L5. Reads a sealed model.
 */
#ifndef MEW_FIREFOX_TABLES_H
#define MEW_FIREFOX_TABLES_H

#include "emit.h"
#include "functions.h"
#include "model.h"
#include "strings.h"

enum mew_firefox_category { /* of frames; the order is that of the file's list of categories */
	MEW_FIREFOX_OTHER,
	MEW_FIREFOX_PROGRAM,
	MEW_FIREFOX_LIBRARY,
	MEW_FIREFOX_UNNAMED
};

#define MEW_FIREFOX_NO_NODE UINT32_MAX

struct mew_firefox_node { /* a frame below another one */
	uint32_t prefix; /* MEW_FIREFOX_NO_NODE: outermost */
	uint32_t frame;  /* into frames */
};

struct mew_firefox_frame {
	uint32_t location; /* m->nlocations: the stack that is missing */
	uint32_t function; /* into the table of all functions */
	uint32_t outer;    /* the function that the inlined ones of the place were laid into */
	uint32_t line, inlined;
};

struct mew_firefox_tables {
	const struct mew_model *m;
	const struct mew_shown_functions *shown;
	struct mew_strings *strings; /* of the whole file */
	uint32_t program;            /* module of the program */
	uint32_t *node_of;           /* by stack, the missing one last: the node it ends in; MEW_FIREFOX_NO_NODE: unused */
	struct mew_firefox_node *nodes;
	size_t nnodes;
	struct mew_firefox_frame *frames;
	size_t nframes;
};

/* The place of a stack in node_of. */
static inline size_t mew_firefox_stack(const struct mew_model *m, uint32_t stack)
{
	return stack < m->nstacks && m->stacks[stack].depth > 0 ? stack : m->nstacks;
}

/*
 * Merge stacks into the tree of a thread.
 *
 * t        m, shown, strings and program are set, the rest is filled; given back by mew_firefox_tables_fini(), after a
 *          failure too
 * used     borrowed: by place in node_of, whether the stack is wanted
 * Returns  0, or -1 without memory
 */
int mew_firefox_tables_init(struct mew_firefox_tables *t, const bool *used);
void mew_firefox_tables_fini(struct mew_firefox_tables *t);

/* Write the members stackTable to nativeSymbols of the thread. Returns 0, or -1 without memory. */
int mew_firefox_put_tables(struct mew_json *j, const struct mew_firefox_tables *t);

/* A member with an array, element by element. */
void mew_firefox_column(struct mew_json *j, const char *key);

#endif
