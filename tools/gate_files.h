/*
 * gate_files.h - the files of a gate's directory, one writer each.
 * Layer L6. Each returns MEW_OK, or MEW_E_IO naming the file; without --output nothing is written.
 */
#ifndef MEW_GATE_FILES_H
#define MEW_GATE_FILES_H

#include "gate.h"
#include "writer.h"

/* Make the directory and its parents. Refuses one that already holds a run. */
int mew_gate_directory(const struct mew_gate *g, struct mew_error *err);

/* Write one of its files, whole or not at all; `body` gets the gate as its data. */
int mew_gate_file(const struct mew_gate *g, const char *name, mew_write_body_fn *body, struct mew_error *err);

/* Text in a cell or sentence of mew-gate.md: nothing of it is read as markup. */
void mew_gate_put_escaped(struct mew_writer *w, const char *text);

/*
 * Append what a memory writer holds, if w then has no more than so many bytes.
 *
 * piece    taken
 * Returns  whether it was appended
 */
bool mew_gate_put_piece(struct mew_writer *w, struct mew_writer *piece, uint64_t most);

int mew_gate_write_summary(const struct mew_gate *g, struct mew_error *err);
int mew_gate_write_markdown(const struct mew_gate *g, struct mew_error *err);
int mew_gate_write_junit(const struct mew_gate *g, struct mew_error *err);
int mew_gate_write_otlp(const struct mew_gate *g, struct mew_error *err);

#endif
