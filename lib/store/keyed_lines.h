// SPDX-License-Identifier: MIT
// Texts of lines with cells divided by tabs.  All cells but the last form a key: tuning files, verdicts.
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

// Removes the next line from `rest`; false at the end.
bool attncl__next_line(struct slice *rest, struct slice *line);
// Splits a line into its cells; false unless there are n_cells.
bool attncl__split_line(struct slice line, int n_cells, struct slice *cells);

// Appends a text, with control characters replaced by blanks, and `end`.
void attncl__add_cell(struct strbuf *ret, const char *text, char end);
// Appends one line for each key of the text: its last line, at the position of its first.
void attncl__add_last_of_keys(struct strbuf *ret, struct slice text);

#endif
