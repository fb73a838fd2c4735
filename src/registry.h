/*
 * registry.h - the tables of backends and reports, made from backends/backends.am and reports/reports.am.
 * Layer L3. An explicit table also works from a static archive, where unreferenced objects are dropped.
 */
#ifndef MEW_REGISTRY_H
#define MEW_REGISTRY_H

#include "mew/backend.h"
#include "mew/report.h"

/* Ended by NULL. */
extern const struct mew_backend *const mew_backends[];
extern const struct mew_report *const mew_reports[];

/* The first backend of a pass in the table's order; NULL for none. */
const struct mew_backend *mew_backend_for(enum mew_pass pass);
/* NULL when there is no report of that name. */
const struct mew_report *mew_report_find(const char *name);

#endif
