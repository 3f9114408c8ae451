// SPDX-License-Identifier: MIT
// The lines of a tuning file and their cells.

#include "store/tuning_file.h"

#include <string.h>

bool attncl__tuning_next_line(struct slice *rest, struct line *line)
{
    if (rest->n == 0)
        return false;
    const char *end = memchr(rest->at, '\n', rest->n);
    const size_t n = end ? (size_t)(end - rest->at) : rest->n;

    line->text = (struct slice){rest->at, n};
    ++line->number;
    rest->at += end ? n + 1 : n;
    rest->n -= end ? n + 1 : n;
    return true;
}

bool attncl__slice_is(struct slice p, const char *text)
{
    return p.n == strlen(text) && memcmp(p.at, text, p.n) == 0;
}

bool attncl__tuning_is_ignored(const struct line *line)
{
    return line->text.n == 0 || line->text.at[0] == '#';
}

bool attncl__tuning_split(struct line *line)
{
    struct slice rest = line->text;

    for (int i = 0; i < N_CELLS; ++i) {
        const char *tab = memchr(rest.at, '\t', rest.n);
        const bool last = i == N_CELLS - 1;
        if (last != (tab == NULL))
            return false;
        const size_t n = last ? rest.n : (size_t)(tab - rest.at);
        line->cell[i] = (struct slice){rest.at, n};
        rest.at += last ? n : n + 1;
        rest.n -= last ? n : n + 1;
    }
    return true;
}
