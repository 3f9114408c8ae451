// SPDX-License-Identifier: MIT
// The lines of a tuning file and their cells.
#ifndef ATTNCL_STORE_TUNING_LINES_H
#define ATTNCL_STORE_TUNING_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "attncl/version.h"

#define TUNING_FIRST_LINE "attncl-tune 1 " ATTNCL_VERSION_STRING

enum cell { CELL_DEVICE, CELL_DRIVER, CELL_KERNEL, CELL_CLASS, CELL_VALUES, N_CELLS };

enum { WHY_BYTES = 128 };

struct slice {
    const char *at;
    size_t n;
};

struct line {
    struct slice text;
    int number;
    struct slice cell[N_CELLS];
};

bool attncl__slice_is(struct slice p, const char *text);
// Takes the next line off `rest`; false at the end.
bool attncl__tuning_next_line(struct slice *rest, struct line *line);
// True for an empty line and a comment.
bool attncl__tuning_is_ignored(const struct line *line);
// Sets the cells; false when their number is wrong.
bool attncl__tuning_split(struct line *line);

// Splits the line; false, and the reason, unless it is an entry of some device.  In tuning_text.c.
bool attncl__tuning_is_entry(struct line *line, char why[WHY_BYTES]);

#endif
