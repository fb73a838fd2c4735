/*
 * jansson.c - parse and write the code tables of iso-codes: many small allocations, one deep free.
 * Shows: files as cases, releasing a result outside the figures, set-up that may be missing.
 */
#include <mew.h>

#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#define FOLDER "/usr/share/iso-codes/json/"

static const char *const tables[] = { "iso_4217", "iso_639-3", NULL };

struct text {
	char *data;
	size_t bytes;
};

/* The whole table of this case; skips the case and returns 0 where it cannot be read. */
static int load(struct mew_state *st, struct text *out)
{
	char path[256], why[320];
	FILE *file;
	long size = 0;

	snprintf(path, sizeof path, "%s%s.json", FOLDER, mew_case_label(st));
	snprintf(why, sizeof why, "%s cannot be read: install iso-codes", path);
	*out = (struct text){ NULL, 0 };
	file = fopen(path, "rb");
	if (file == NULL) {
		mew_skip(st, why);
		return 0;
	}
	if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0)
		out->data = malloc((size_t)size);
	if (out->data != NULL)
		out->bytes = fread(out->data, 1, (size_t)size, file);
	fclose(file);
	if (out->bytes == 0) {
		free(out->data);
		mew_skip(st, why);
	}
	return out->bytes != 0;
}

MEW_BENCHMARK_NAMED(parse, "jansson/parse", .cases = tables, .tags = "json read")
{
	struct text in;

	if (!load(st, &in))
		return;
	MEW_LOOP(st) {
		json_t *root = json_loadb(in.data, in.bytes, 0, NULL);

		if (root == NULL)
			mew_fail(st, "json_loadb refused the table");
		json_decref(root);
	}
	mew_set_bytes(st, (double)in.bytes);
	free(in.data);
}

/* Parsing alone: what it built is released in a pause, so its free calls are not timed. */
MEW_BENCHMARK_NAMED(parse_only, "jansson/parse-only", .cases = tables, .tags = "json read")
{
	struct text in;

	if (!load(st, &in))
		return;
	MEW_LOOP(st) {
		json_t *root = json_loadb(in.data, in.bytes, 0, NULL);

		mew_keep(root);
		MEW_PAUSED(st) {
			json_decref(root);
		}
	}
	mew_set_bytes(st, (double)in.bytes);
	free(in.data);
}

MEW_BENCHMARK_NAMED(dump, "jansson/dump", .cases = tables, .tags = "json write")
{
	struct text in;
	json_t *root;

	if (!load(st, &in))
		return;
	root = json_loadb(in.data, in.bytes, 0, NULL);
	free(in.data);
	if (root == NULL) {
		mew_fail(st, "json_loadb refused the table");
		return;
	}
	MEW_LOOP(st) {
		char *out = json_dumps(root, JSON_COMPACT);

		mew_keep(out);
		free(out);
	}
	mew_set_bytes(st, (double)json_dumpb(root, NULL, 0, JSON_COMPACT));
	json_decref(root);
}

MEW_MAIN()
