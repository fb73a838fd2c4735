/*
 * symbols.h - the contract between libmew and libmew_symbols.so: one C function, loaded after the windows.
 * Layer L3. Neither side includes the other's headers; texts are copied by whoever keeps them.
 *
 * Offsets are virtual addresses of the file (run-time address minus load bias). For a caller the offset is already that
 * of the call instruction's last byte, so nothing is subtracted here.
 */
#ifndef MEW_SYMBOLS_H
#define MEW_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#define MEW_SYMBOLS_ABI 2u
#define MEW_SYMBOLS_ENTRY "mew_symbols_resolve"
#define MEW_SYMBOLS_DEBUGINFOD "libdebuginfod.so.1" /* loaded by its name, and only where servers may be asked */

/* One function at one offset. Texts are valid during the callback only. */
struct mew_symbols_frame {
	size_t index;           /* into the query's offsets */
	unsigned depth;         /* 0: the innermost inlined function; rises towards the function they all sit in */
	const char *function;   /* demangled where possible */
	const char *file;       /* of the definition; "" unknown */
	uint32_t function_line; /* of the definition; 0 unknown */
	uint32_t line;          /* being executed, or of the call of the next inner function; 0 unknown */
};

struct mew_symbols_query {
	unsigned abi;            /* MEW_SYMBOLS_ABI */
	const char *path;        /* of the module, or "[vdso]" for the vDSO of this process */
	const char *build_id;    /* lower-case hex the module must have; "" when it is not known: no check */
	const uint64_t *offsets; /* n of them, ascending */
	size_t n;
	/*
	 * Called for each offset in order, innermost function first. A value other than 0 ends the query with
	 * MEW_E_NOMEM.
	 */
	int (*frame)(void *data, const struct mew_symbols_frame *frame);
	/*
	 * Called after the frames of an offset when something is missing: with no frame before it, why the offset has
	 * no name; otherwise why lines or inlined functions are missing. One sentence. Result as for frame.
	 */
	int (*note)(void *data, size_t index, const char *why);
	/* Called before the note of an offset without a name, where the unwind table knows the function it lies in. */
	int (*start)(void *data, size_t index, uint64_t start);
	void *data;
	/*
	 * The servers of DEBUGINFOD_URLS may be asked for debug information that this machine lacks until this moment
	 * of CLOCK_MONOTONIC, in ns; 0: nobody is asked. `told` is called after each question: the module, the server
	 * and the bytes, or why there are none.
	 */
	uint64_t servers_until_ns;
	void (*told)(void *data, const char *line);
	uint64_t reserved[2]; /* zero */
};

/*
 * Name all offsets of one module.
 *
 * Returns  MEW_OK, also when nothing could be named (then each offset has a note); MEW_E_NOMEM; MEW_E_UNSUPPORTED for
 *          another abi
 * Context  any thread, several at once; allocates, maps files; forks where servers are asked
 */
typedef int mew_symbols_resolve_fn(const struct mew_symbols_query *query);
__attribute__((visibility("default"))) mew_symbols_resolve_fn mew_symbols_resolve;

#endif
