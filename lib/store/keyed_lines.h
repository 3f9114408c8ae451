// SPDX-License-Identifier: MIT
// Texts of lines whose cells, but the last, are a key: tuning files, kept verdicts.
#ifndef ATTNCL_STORE_KEYED_LINES_H
#define ATTNCL_STORE_KEYED_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

struct slice {
    const char *at;
    size_t n;
};
bool attncl__slice_is(struct slice p, const char *text);

// Takes the next line off `rest`; false at the end.
bool attncl__next_line(struct slice *rest, struct slice *line);
// The cells, divided by tabs; false when their number is another.
bool attncl__split_line(struct slice line, int n_cells, struct slice *cells);

// Appends a text so that it fits one cell of one line, and `end`.
void attncl__add_cell(struct strbuf *ret, const char *text, char end);
// Appends a line for each key of the text: the last, in the place of the first.
void attncl__add_last_of_keys(struct strbuf *ret, struct slice text);

#endif
