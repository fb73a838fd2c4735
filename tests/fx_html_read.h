/*
 * fx_html_read.h - reads a page of the HTML report back: its data, unpacked, as its viewer sees them.
 * Test fixture. What the caller gets is the caller's to free.
 */
#ifndef FX_HTML_READ_H
#define FX_HTML_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "mew/report.h"

struct fx_frame { /* of a call tree, in preorder */
	int64_t level;
	const char *name;
	bool inlined;
	int64_t line;
	uint64_t self[4];
};

/* The page of a report; bytes may be NULL. */
char *fx_html_page(const struct mew_report_input *in, size_t *bytes);

/* Where the data begin in a page. */
const char *fx_html_data(const char *page);

/* The value of a digit of base64, -1 for another character. */
int fx_html_digit(char c);

/* Line `number` of the data, unpacked and ended by a NUL. */
unsigned char *fx_html_line(const char *page, int number, size_t *bytes);

/* Line 0. */
json_t *fx_html_header(const char *page);

/* Is a name among those of a list? */
bool fx_html_has(json_t *names, const char *name);

/* The frames of a case's tree, of kind "cpu" or "memory"; names are the header's. Samples in order must add up to them. */
struct fx_frame *fx_html_tree(const char *page, json_t *header, size_t at, const char *kind, size_t *count);

#endif
