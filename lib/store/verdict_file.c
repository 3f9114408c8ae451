// SPDX-License-Identifier: MIT
//
// Each line is: DIGEST <tab> DEVICE <tab> DRIVER <tab> NAME <tab> what is wrong, or nothing.

#include "store/private_dir.h"

#include <string.h>

#include "base/strbuf.h"
#include "store/keyed_lines.h"

static const char file[] = "verdicts.txt";

static void add_key(struct strbuf *line, const struct verdict_key *key)
{
    attncl__add_cell(line, key->sources, '\t');
    attncl__add_cell(line, key->device, '\t');
    attncl__add_cell(line, key->driver, '\t');
}

void attncl__verdicts_read(const struct private_dir *directory, const struct verdict_key *key,
                           attncl__verdict_fn fn, void *user)
{
    struct strbuf begin = STRBUF_EMPTY;
    const char *fault = NULL;
    char *data = NULL;
    size_t n = 0;
    struct slice line;

    if (!attncl__private_file_read(directory, file, 0, VERDICTS_MAX_BYTES, &data, &n, &fault))
        return;
    add_key(&begin, key);
    struct slice rest = {data, begin.failed ? 0 : n};
    while (attncl__next_line(&rest, &line) &&
           line.at + line.n < data + n) { // ignores an incomplete line
        if (line.n < begin.used || memcmp(line.at, begin.data, begin.used) != 0)
            continue;
        char *const at = data + (line.at - data), *const name = at + begin.used;
        at[line.n] = '\0';
        char *const tab = strchr(name, '\t');
        if (!tab || strlen(tab + 1) >= VERDICT_WHY_BYTES)
            continue;
        *tab = '\0';
        fn(name, tab + 1, user);
    }
    attncl__strbuf_free(&begin);
    attncl__free(data);
}

bool attncl__verdict_write(const struct private_dir *directory, const struct verdict_key *key,
                           const char *name, const char *why)
{
    struct strbuf all = STRBUF_EMPTY, text = STRBUF_EMPTY;
    const char *fault = NULL;
    char *old = NULL;
    size_t n = 0;

    if (attncl__private_file_read(directory, file, 0, VERDICTS_MAX_BYTES / 2, &old, &n, &fault))
        attncl__strbuf_add_bytes(&all, old, n);
    if (n > 0 && old[n - 1] != '\n')
        attncl__strbuf_add(&all, "\n");
    add_key(&all, key);
    attncl__add_cell(&all, name, '\t');
    attncl__add_cell(&all, why, '\n');
    if (!all.failed)
        attncl__add_last_of_keys(&text, (struct slice){all.data, all.used});
    const bool written =
        !all.failed && !text.failed &&
        attncl__private_file_replace(directory, file, &(struct bytes){text.data, text.used}, 1);
    attncl__strbuf_free(&all);
    attncl__strbuf_free(&text);
    attncl__free(old);
    return written;
}
