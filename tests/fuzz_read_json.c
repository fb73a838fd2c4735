/*
 * fuzz_read_json.c - libFuzzer target: no file breaks the reader, and what it takes is fit for every report and stable.
 *
 * Build:  clang -fsanitize=fuzzer,address,undefined; run with tests/golden/results.mew.json as the seed.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "mew/report.h"
#include "model.h"
#include "tools/read_json.h"
#include "writer.h"

extern const struct mew_report mew_report_json, mew_report_table, mew_report_csv, mew_report_folded, mew_report_pprof,
	mew_report_speedscope, mew_report_firefox, mew_report_gbench, mew_report_bmf, mew_report_gha, mew_report_otlp,
	mew_report_markdown;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The library's own is in the layer above. */
const char *mew_version(void)
{
	return "fuzz";
}

static char *report_of(const struct mew_report *report, const struct mew_model *m, size_t only_case, int only_kind)
{
	struct mew_report_input in = {
		.model = m, .only_case = only_case, .only_kind = only_kind, .utf8 = 1, .verbose = 1
	};
	struct mew_error err;
	struct mew_writer w;

	mew_writer_memory(&w);
	if (report->write(&in, &w, &err) != MEW_OK && err.status != MEW_E_INVALID) /* that there are no stacks */
		abort();
	return mew_writer_take(&w, NULL);
}

/* What was taken is written; what was written is taken and gives the same bytes. */
static void check_round(const struct mew_model *m)
{
	struct mew_error err;
	char *once = report_of(&mew_report_json, m, 0, 0), *twice;
	struct mew_model *back;

	if (once == NULL)
		return;
	back = mew_read_json_text("round", once, strlen(once), &err);
	if (back == NULL)
		abort();
	twice = report_of(&mew_report_json, back, 0, 0);
	if (twice == NULL || strcmp(once, twice) != 0)
		abort();
	free(once);
	free(twice);
	mew_model_free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mew_error err = { .status = MEW_OK };
	struct mew_model *m = mew_read_json_text("fuzz", (const char *)data, size, &err);

	if (m == NULL) {
		if (err.status == MEW_OK || err.text[0] == '\0')
			abort();
		return 0;
	}
	free(report_of(&mew_report_table, m, 0, 0));
	free(report_of(&mew_report_csv, m, 0, 0));
	free(report_of(&mew_report_gbench, m, 0, 0));
	free(report_of(&mew_report_bmf, m, 0, 0));
	free(report_of(&mew_report_gha, m, 0, 0));
	free(report_of(&mew_report_otlp, m, 0, 0));
	free(report_of(&mew_report_markdown, m, 0, 0));
	free(report_of(&mew_report_speedscope, m, 0, 0));
	free(report_of(&mew_report_firefox, m, 0, 0));
	for (size_t i = 0; i < m->ncases; i++) {
		free(report_of(&mew_report_folded, m, i, MEW_KIND_CPU));
		free(report_of(&mew_report_pprof, m, i, MEW_KIND_CPU));
		free(report_of(&mew_report_pprof, m, i, MEW_KIND_MEMORY));
	}
	check_round(m);
	mew_model_free(m);
	return 0;
}
