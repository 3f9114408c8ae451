// SPDX-License-Identifier: MIT

#include "store/keyed_lines.h"

#include <string.h>

#include "base/strbuf.h"

bool attncl__slice_is(struct slice p, const char *text)
{
    return p.n == strlen(text) && memcmp(p.at, text, p.n) == 0;
}

bool attncl__next_line(struct slice *rest, struct slice *line)
{
    if (rest->n == 0)
        return false;
    const char *end = memchr(rest->at, '\n', rest->n);
    const size_t n = end ? (size_t)(end - rest->at) : rest->n;

    *line = (struct slice){rest->at, n};
    rest->at += end ? n + 1 : n;
    rest->n -= end ? n + 1 : n;
    return true;
}

bool attncl__split_line(struct slice rest, int n_cells, struct slice *cells)
{
    for (int i = 0; i < n_cells; ++i) {
        const char *tab = memchr(rest.at, '\t', rest.n);
        const bool last = i == n_cells - 1;
        if (last != (tab == NULL))
            return false;
        const size_t n = last ? rest.n : (size_t)(tab - rest.at);
        cells[i] = (struct slice){rest.at, n};
        rest.at += last ? n : n + 1;
        rest.n -= last ? n : n + 1;
    }
    return true;
}

void attncl__add_cell(struct strbuf *ret, const char *text, char end)
{
    for (; *text; ++text)
        attncl__strbuf_add(ret, "%c", (unsigned char)*text < 0x20 ? ' ' : *text);
    attncl__strbuf_add(ret, "%c", end);
}

static size_t measure_key(struct slice line)
{
    while (line.n > 0 && line.at[line.n - 1] != '\t')
        --line.n;
    return line.n;
}

void attncl__add_last_of_keys(struct strbuf *ret, struct slice text)
{
    struct slice rest = text, line, other;

    while (attncl__next_line(&rest, &line)) {
        const size_t n = measure_key(line);
        struct slice others = text, last = line;
        bool is_first = true;
        while (attncl__next_line(&others, &other))
            if (measure_key(other) == n && memcmp(other.at, line.at, n) == 0) {
                is_first = is_first && other.at >= line.at;
                last = other;
            }
        if (!is_first)
            continue;
        attncl__strbuf_add_bytes(ret, last.at, last.n);
        attncl__strbuf_add(ret, "\n");
    }
}
