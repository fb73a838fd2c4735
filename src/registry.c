/*
 * registry.c - plugins.h is generated: one MEW_BACKEND(x) or MEW_REPORT(x) per line of the two lists.
 * Layer L3. Constant data.
 */
#include "config.h"

#include "registry.h"

#include <stddef.h>
#include <string.h>

#define MEW_BACKEND(x) extern const struct mew_backend mew_backend_##x;
#define MEW_REPORT(x) extern const struct mew_report mew_report_##x;
#include "plugins.h"
#undef MEW_BACKEND
#undef MEW_REPORT

#define MEW_BACKEND(x) &mew_backend_##x,
#define MEW_REPORT(x)
const struct mew_backend *const mew_backends[] = {
#include "plugins.h"
	NULL,
};
#undef MEW_BACKEND
#undef MEW_REPORT

#define MEW_BACKEND(x)
#define MEW_REPORT(x) &mew_report_##x,
const struct mew_report *const mew_reports[] = {
#include "plugins.h"
	NULL,
};

const struct mew_backend *mew_backend_for(enum mew_pass pass)
{
	for (size_t i = 0; mew_backends[i] != NULL; i++)
		if (mew_backends[i]->pass == pass)
			return mew_backends[i];
	return NULL;
}

const struct mew_report *mew_report_find(const char *name)
{
	for (size_t i = 0; mew_reports[i] != NULL; i++)
		if (strcmp(mew_reports[i]->name, name) == 0)
			return mew_reports[i];
	return NULL;
}
