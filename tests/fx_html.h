/*
 * fx_html.h - models with known figures, stacks and names for the tests of the HTML report.
 */
#ifndef FX_HTML_H
#define FX_HTML_H

#include "model.h"

/* Names that try to leave their place in the page; ended by NULL. */
extern const char *const fx_html_hostile_names[];

/*
 * A model of one of these shapes, sealed, to be freed by mew_model_free():
 *
 *   "codec"    eight cases of a program with every kind of row: figures, absences, failures, inlined and unnamed frames
 *   "before"   the same of an older build: slower, one function of another name, one case of another key
 *   "recorded" two processes of an unmodified program: samples and stacks of the whole, no loop and no time
 *   "twins"    two cases, each of two programs, with two functions of one name
 *   "older_twins"
 *              the same cases, each of one program: the first of a name that "twins" has, the other of none
 *   "hostile"  names, labels and facts out of fx_html_hostile_names
 *   "empty"    no case at all
 *   "many"     so many cases as `frames` says, with a time each
 *   "large"    one case whose merged call tree has about `frames` frames
 *
 * Returns  NULL without memory or for an unknown shape
 */
struct mew_model *fx_html_model(const char *shape, size_t frames);

/* Write a model as a page, compared with `base` unless it is NULL. Returns MEW_OK or the status of the writer. */
int fx_html_write(const struct mew_model *m, const struct mew_model *base, const char *path);

#endif
