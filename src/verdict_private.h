/*
 * verdict_private.h - what the files of the verdict share.
 * Layer L2.
 */
#ifndef MEW_VERDICT_PRIVATE_H
#define MEW_VERDICT_PRIVATE_H

#include "verdict.h"

/*
 * The limit of a metric of a case; neither units nor percent: none was given. *allow is returned: the rule that it
 * comes from, or NULL.
 */
struct mew_limit mew_rules_limit(const struct mew_rules *rules, const char *key, const char *metric,
				 const struct mew_allow **allow);

#endif
