/*
 * gate_junit.c - junit.xml: each metric of each case as a test, for the test views of forges.
 * Layer L6. A regression is a failure, what is invalid an error, what is inconclusive skipped.
 */
#include "config.h"

#include "gate_files.h"

#include "textual.h"

#include <string.h>

/* Text of an attribute; what XML cannot hold becomes U+FFFD. */
static void put_attribute(struct mew_writer *w, const char *name, const char *text)
{
	mew_writef(w, " %s=\"", name);
	for (size_t bytes; *text != '\0'; text += bytes) {
		uint32_t c = mew_utf8_next(text, &bytes);

		if (c == MEW_BAD_CHARACTER || c < ' ' || c == 0xfffe || c == 0xffff)
			mew_write_text(w, "\xef\xbf\xbd");
		else if (c == '<')
			mew_write_text(w, "&lt;");
		else if (c == '&')
			mew_write_text(w, "&amp;");
		else if (c == '"')
			mew_write_text(w, "&quot;");
		else
			mew_write_bytes(w, text, bytes);
	}
	mew_write_char(w, '"');
}

static const char *element_of(enum mew_outcome outcome)
{
	switch (outcome) {
	case MEW_OUTCOME_REGRESSED:
		return "failure";
	case MEW_OUTCOME_INVALID:
		return "error";
	case MEW_OUTCOME_INCONCLUSIVE:
	case MEW_OUTCOME_ABSENT:
		return "skipped";
	default:
		return NULL;
	}
}

static bool is_anything_compared(const struct mew_gate *g)
{
	for (size_t i = 0; i < g->ncases; i++)
		for (size_t k = 0; k < g->cases[i].nverdicts; k++)
			if (g->cases[i].verdicts[k].outcome != MEW_OUTCOME_ABSENT)
				return true;
	return false;
}

/* What makes the whole run void; NULL: nothing. */
static const char *fault_of(const struct mew_gate *g)
{
	if (g->identity[0] != '\0')
		return g->identity;
	return g->interrupted ? "it was interrupted" : is_anything_compared(g) ? NULL : "nothing was compared";
}

static size_t count(const struct mew_gate *g, const char *element)
{
	size_t n = fault_of(g) != NULL && (element == NULL || strcmp(element, "error") == 0);

	for (size_t i = 0; i < g->ncases; i++)
		for (size_t k = 0; k < g->cases[i].nverdicts; k++) {
			const char *is = element_of(g->cases[i].verdicts[k].outcome);

			n += element == NULL || (is != NULL && strcmp(is, element) == 0);
		}
	return n;
}

static void put_case(struct mew_writer *w, const struct mew_gate_case *c, const struct mew_verdict *v)
{
	const char *element = element_of(v->outcome);
	char words[200];

	mew_write_text(w, "    <testcase");
	put_attribute(w, "classname", c->key);
	put_attribute(w, "name", v->metric->name);
	if (element == NULL) {
		mew_write_text(w, "/>\n");
		return;
	}
	mew_gate_words(v, words, sizeof words);
	mew_writef(w, ">\n      <%s", element);
	put_attribute(w, "message", words);
	mew_write_text(w, "/>\n    </testcase>\n");
}

static int write_junit(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct mew_gate *g = data;

	(void)err;
	mew_write_text(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
	mew_writef(w, "  <testsuite name=\"mew gate\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\">\n",
		   count(g, NULL), count(g, "failure"), count(g, "error"), count(g, "skipped"));
	if (fault_of(g) != NULL) {
		mew_write_text(w, "    <testcase classname=\"mew gate\" name=\"measurement\">\n      <error");
		put_attribute(w, "message", fault_of(g));
		mew_write_text(w, "/>\n    </testcase>\n");
	}
	for (size_t i = 0; i < g->ncases; i++)
		for (size_t k = 0; k < g->cases[i].nverdicts; k++)
			put_case(w, &g->cases[i], &g->cases[i].verdicts[k]);
	mew_write_text(w, "  </testsuite>\n</testsuites>\n");
	return MEW_OK;
}

int mew_gate_write_junit(const struct mew_gate *g, struct mew_error *err)
{
	return mew_gate_file(g, "junit.xml", write_junit, err);
}
