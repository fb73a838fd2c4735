/*
 * calibration_file.c - a calibration as JSON: written whole or not at all, read trusting nothing.
 * Layer L6, in the command only.
 *
 * schema_version, mew, program, started, seed, samples, rounds, load_1min, identity{fact: text}, trials,
 * false_positives, cases[{key, trials, noise_floor, smallest_effect, controls[{extra, trials, found, why}]}];
 * fractions, not percent.
 */
#include "config.h"

#include "calibration.h"

#include "emit.h"
#include "error.h"
#include "writer.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- writing ---------------------------------------------------------------------------------------------------- */

static void put_case(struct mew_json *j, const struct mew_calibration_case *c)
{
	mew_json_object(j);
	mew_json_put_some_text(j, "key", c->key);
	mew_json_put_u64(j, "trials", c->trials);
	mew_json_put_f64(j, "noise_floor", c->noise_floor);
	mew_json_put_f64(j, "smallest_effect", c->smallest_effect);
	mew_json_key(j, "controls");
	mew_json_array(j);
	for (size_t i = 0; i < MEW_CALIBRATION_CONTROLS; i++) {
		mew_json_object(j);
		mew_json_put_f64(j, "extra", c->controls[i].extra);
		mew_json_put_u64(j, "trials", c->controls[i].trials);
		mew_json_put_u64(j, "found", c->controls[i].found);
		mew_json_put_some_text(j, "why", c->controls[i].why);
		mew_json_object_end(j);
	}
	mew_json_array_end(j);
	mew_json_object_end(j);
}

static int write_body(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct mew_calibration *c = data;
	struct mew_json j;
	char seed[24];

	(void)err;
	mew_json_init(&j, w, 4);
	mew_json_object(&j);
	mew_json_put_u64(&j, "schema_version", MEW_CALIBRATION_SCHEMA);
	mew_json_put_some_text(&j, "mew", mew_version());
	mew_json_put_some_text(&j, "program", c->program);
	mew_json_put_u64(&j, "started", c->started_s);
	(void)snprintf(seed, sizeof seed, "%" PRIu64, c->seed);
	mew_json_put_some_text(&j, "seed", seed); /* a user's may be larger than what readers of JSON keep */
	mew_json_put_u64(&j, "samples", c->samples);
	mew_json_put_u64(&j, "rounds", c->rounds);
	mew_json_put_f64(&j, "load_1min", c->load);
	mew_json_key(&j, "identity");
	mew_json_object(&j);
	for (size_t i = 0; i < MEW_CALIBRATION_IDENTITY; i++)
		mew_json_put_some_text(&j, mew_calibration_facts[i], c->identity[i]);
	mew_json_object_end(&j);
	mew_json_put_u64(&j, "trials", c->trials);
	mew_json_put_u64(&j, "false_positives", c->false_positives);
	mew_json_key(&j, "cases");
	mew_json_array(&j);
	for (size_t i = 0; i < c->ncases; i++)
		put_case(&j, &c->cases[i]);
	mew_json_array_end(&j);
	mew_json_object_end(&j);
	mew_write_char(w, '\n');
	return MEW_OK;
}

/* The folders above it; what fails here fails again, with its reason, when the file is written. */
static void make_folders(const char *path)
{
	char *copy = strdup(path);

	for (char *s = copy != NULL ? strchr(copy + (copy[0] != '\0'), '/') : NULL; s != NULL; s = strchr(s + 1, '/')) {
		*s = '\0';
		(void)mkdir(copy, 0777);
		*s = '/';
	}
	free(copy);
}

int mew_calibration_write(const struct mew_calibration *c, const char *path, struct mew_error *err)
{
	union { /* the body only reads it */
		const struct mew_calibration *from;
		void *to;
	} data = { .from = c };

	make_folders(path);
	return mew_write_file(path, write_body, data.to, err);
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

static bool take_count(const json_t *from, const char *key, unsigned *out)
{
	const json_t *value = json_object_get(from, key);
	json_int_t n = json_integer_value(value);

	*out = (unsigned)n;
	return json_is_integer(value) && n >= 0 && n <= 1000000000;
}

/* A fraction of time: above what any machine's noise is, the file is damaged. */
static bool take_fraction(const json_t *from, const char *key, double *out)
{
	const json_t *value = json_object_get(from, key);

	*out = json_number_value(value);
	return json_is_number(value) && isfinite(*out) && *out >= 0 && *out < 10;
}

static bool read_case(struct mew_calibration *c, const json_t *from)
{
	const char *key = json_string_value(json_object_get(from, "key"));
	struct mew_calibration_case *to = key != NULL ? mew_calibration_case(c, key) : NULL;

	return to != NULL && take_count(from, "trials", &to->trials) &&
	       take_fraction(from, "noise_floor", &to->noise_floor);
}

/* NULL when it is sound, else what is wrong. */
static const char *read_tree(struct mew_calibration *c, const json_t *tree)
{
	const json_t *identity = json_object_get(tree, "identity"), *cases = json_object_get(tree, "cases");
	const char *program = json_string_value(json_object_get(tree, "program"));
	unsigned version;

	if (!take_count(tree, "schema_version", &version) || !json_is_object(identity) || !json_is_array(cases) ||
	    program == NULL)
		return "it is no calibration of mew";
	if (version != MEW_CALIBRATION_SCHEMA)
		return "it was written by another version of mew";
	c->program = strdup(program);
	for (size_t i = 0; i < MEW_CALIBRATION_IDENTITY; i++) {
		const char *value = json_string_value(json_object_get(identity, mew_calibration_facts[i]));

		c->identity[i] = value != NULL ? strdup(value) : NULL;
	}
	if (!take_count(tree, "trials", &c->trials) || !take_count(tree, "false_positives", &c->false_positives) ||
	    c->trials == 0 || c->false_positives > c->trials || !take_count(tree, "samples", &c->samples))
		return "its trials are not sound";
	for (size_t i = 0; i < json_array_size(cases); i++)
		if (!read_case(c, json_array_get(cases, i)))
			return "a case of it is not sound";
	return NULL;
}

struct mew_calibration *mew_calibration_read(const char *path, struct mew_error *err)
{
	struct mew_calibration *c = calloc(1, sizeof *c);
	FILE *from = fopen(path, "re");
	const char *wrong = NULL;
	json_error_t where;
	json_t *tree;

	if (from == NULL || c == NULL) {
		(void)mew_error_errno(err, c == NULL ? MEW_E_NOMEM : MEW_E_IO,
				      "cannot read %.200s; `mew calibrate` writes it", path);
		if (from != NULL)
			(void)fclose(from);
		free(c);
		return NULL;
	}
	tree = json_loadf(from, JSON_REJECT_DUPLICATES, &where);
	(void)fclose(from);
	wrong = tree == NULL ? "it is not sound JSON" : read_tree(c, tree);
	json_decref(tree);
	if (wrong == NULL)
		return c;
	(void)mew_error_set(err, MEW_E_INVALID, "%.200s cannot be used: %s; run `mew calibrate` again", path, wrong);
	mew_calibration_free(c);
	return NULL;
}
