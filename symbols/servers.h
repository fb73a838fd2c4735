/*
 * servers.h - debug information from the servers of DEBUGINFOD_URLS, for those who asked for that.
 * Layer L3, inside libmew_symbols.
 */
#ifndef MEW_SYMBOLS_SERVERS_H
#define MEW_SYMBOLS_SERVERS_H

#include "elf_file.h"

struct mew_servers {
	uint64_t until_ns; /* of CLOCK_MONOTONIC; nothing is asked later, and nothing waited for */
	void (*told)(void *data, const char *line); /* what became of a question, in one sentence */
	void *data;
};

/*
 * Ask for the debug file with a build id, by libdebuginfod in a process of its own, which is ended at the limit: a name
 * server that hangs would hold a thread beyond it. The sentence tells the module, the server and the bytes, or why not.
 *
 * s        borrowed; NULL: nobody is asked
 * what     borrowed; stands for the file in the sentence
 * f        filled when true is returned: of exactly this build; closed by the caller
 * Context  one thread; forks, and the child uses the network and the cache of libdebuginfod
 */
bool mew_servers_ask(const struct mew_servers *s, const char *what, const unsigned char *build_id, size_t bytes,
		     struct mew_elf *f);

#endif
