/*
 * symbolise.h - gives the locations of a model their functions, files and lines.
 * Layer L3. Runs between the last window and the seal of the model: loads libmew_symbols.so, which brings libdw.
 */
#ifndef MEW_SYMBOLISE_H
#define MEW_SYMBOLISE_H

#include "error.h"
#include "model.h"

struct mew_symbolise_servers { /* those of DEBUGINFOD_URLS */
	uint64_t until_ns; /* of mew_os_now_ns(); nobody is asked later */
	void (*told)(void *data, const char *line); /* after each question: "libfoo.so: 1234 bytes ... from https://..." */
	void *data;
	bool again; /* also for locations whose name came without a line, as in a saved result */
};

/* The longest that servers are waited for in all, unless the user says otherwise. */
#define MEW_SERVERS_SECONDS 30

/*
 * Can servers be asked: is DEBUGINFOD_URLS set, and can libdebuginfod be loaded?
 *
 * Returns  MEW_OK; MEW_E_UNSUPPORTED with the remedy
 * Context  one thread; forks, since the library is not to stay loaded here
 */
int mew_symbolise_check_servers(struct mew_error *err);

/*
 * Resolve every location that has no lines yet.
 *
 * libmew_symbols.so is looked for in this order: the file that the environment variable MEW_SYMBOLS names (then
 * nothing else is tried; ignored in set-user-id programs), beside the library or program that holds this code, in the
 * directory it was configured for, by the loader's own search. It is loaded with RTLD_LOCAL and closed again before
 * this returns.
 *
 * servers  borrowed; asked for debug information that this machine lacks; NULL: nobody is asked
 * m        borrowed, not sealed; a location without a name gets `why`, and one whose lines or inlined functions could
 *          not be read for damaged or refused debug information has both a name and a `why`
 * Returns  MEW_OK, also when some or all locations stay without a name; MEW_E_UNSUPPORTED when libmew_symbols.so cannot
 *          be loaded (err says why, and so does each location); MEW_E_NOMEM
 * Context  one thread at a time for one model; never inside a window; allocates, opens files
 */
int mew_symbolise(struct mew_model *m, const struct mew_symbolise_servers *servers, struct mew_error *err);

/*
 * A name for one location, for reports: the innermost function, or "libfoo.so+0x1234" where it has none, or the address
 * alone where it is in no module.
 *
 * location  number into m->locations
 * buffer    returned: `size` bytes at most with the final zero, cut when too short
 * Returns   buffer
 * Context   any thread
 */
const char *mew_location_name(const struct mew_model *m, uint32_t location, char *buffer, size_t size);

/* "libfoo.so" of "/usr/lib/libfoo.so"; "" for MEW_NO_MODULE. Returns a part of the model. Context: any thread. */
const char *mew_module_name(const struct mew_model *m, uint32_t module);

/* The part of a path after its last slash. Returns a pointer into path. Context: any thread. */
const char *mew_base_name(const char *path);

#endif
