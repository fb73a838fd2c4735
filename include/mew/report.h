/*
 * mew/report.h - the contract of a report: one format, one const object per file under reports/.
 * Layer L2. A report reads a sealed model and writes through the writer; it never sees a backend or a file name.
 */
#ifndef MEW_REPORT_H
#define MEW_REPORT_H

#include "mew.h"

#define MEW_REPORT_ABI 1u

struct mew_model;  /* src/model.h */
struct mew_writer; /* src/writer.h */

enum mew_report_shape {
	MEW_REPORT_FILE,     /* one file for everything */
	MEW_REPORT_DIRECTORY /* one file per case and kind that has stacks: `--NAME DIR` */
};

struct mew_report_input {
	const struct mew_model *model; /* sealed; borrowed */
	size_t only_case;              /* MEW_REPORT_DIRECTORY: index of the case */
	int only_kind;                 /* MEW_REPORT_DIRECTORY: enum mew_kind */
	/* for people */
	int width;                     /* columns of the terminal; 0: 80 */
	int color;                     /* escape sequences are welcome */
	int utf8;                      /* the terminal shows UTF-8 */
	int verbose;
	unsigned kinds;                /* which tables: 1 << enum mew_kind; 0: all that exist */
	const struct mew_model *base;  /* the result that `model` is compared with, sealed, borrowed; NULL: none */
	int embed_source;              /* source lines of hot functions are welcome in the report */
};

struct mew_report {
	unsigned abi;       /* MEW_REPORT_ABI */
	const char *name;   /* "json": the flag --json and the format of mew_write() */
	const char *help;   /* one line */
	const char *suffix; /* ".mew.json" */
	enum mew_report_shape shape;
	int needs_symbols;  /* names of functions must be resolved first */
	/* Returns MEW_OK or a status with text. Must write the same bytes for the same model. */
	int (*write)(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err);
	int compares;       /* it shows `base` too; others are not asked for two results */
};

#endif
