/*
 * fx_comma.h - a locale whose numbers have a decimal comma: of the system, or the one that `make check` makes.
 * Test fixture; included behind cmocka.h. setlocale(LC_ALL, "C") is due.
 */
#ifndef FX_COMMA_H
#define FX_COMMA_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "base.h"

/*
 * False, and a line on standard output, where there is none. LOCPATH is set for the choice alone: while it is set,
 * newlocale() of glibc loses a few bytes at each call, which the address sanitizer would call leaks of ours.
 */
static inline bool fx_set_comma(void)
{
	static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8",
					     "es_ES.UTF-8", "nl_NL.UTF-8" };
	const char *builddir = getenv("builddir"), *given = getenv("LOCPATH"), *found = NULL;
	char made[4096];

	(void)snprintf(made, sizeof made, "%s/tests/locale", builddir != NULL ? builddir : ".");
	for (unsigned turn = given != NULL; turn < 2 && found == NULL; turn++) { /* those of the system first */
		if (given == NULL && turn == 1 && setenv("LOCPATH", made, 1) != 0)
			break;
		for (size_t i = 0; i < MEW_COUNTOF(names) && found == NULL; i++)
			found = setlocale(LC_ALL, names[i]);
	}
	if (given == NULL)
		(void)unsetenv("LOCPATH");
	if (found == NULL)
		print_message("no locale with a decimal comma is installed here: install locales and run make check again\n");
	return found != NULL;
}

#endif
