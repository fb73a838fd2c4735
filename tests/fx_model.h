/*
 * fx_model.h - models and cases that are there, and short names of the kinds.
 * Test fixture of t_model.c and t_model_merge.c; included behind cmocka.h.
 */
#ifndef FX_MODEL_H
#define FX_MODEL_H

#include "model.h"

#define T MEW_KIND_TIME
#define M MEW_KIND_MEMORY
#define C MEW_KIND_CPU

static inline struct mew_model *new_model(void)
{
	struct mew_model *m = mew_model_new();

	assert_non_null(m);
	return m;
}

static inline struct mew_case *new_case(struct mew_model *m, const char *key)
{
	struct mew_case *c = mew_model_case(m, key, NULL);

	assert_non_null(c);
	return c;
}

#endif
