// SPDX-License-Identifier: MIT
//
// A line: DIGEST <tab> DEVICE <tab> DRIVER <tab> NAME <tab> what is wrong, "" where nothing is.

#include "store/private_dir.h"

#include <string.h>

#include "base/strbuf.h"

static const char file[] = "verdicts.txt";

// A text that fits one cell of one line.
static void add_cell(struct strbuf *line, const char *text, char end)
{
    for (; *text; ++text)
        attncl__strbuf_add(line, "%c", (unsigned char)*text < 0x20 ? ' ' : *text);
    attncl__strbuf_add(line, "%c", end);
}

static void add_key(struct strbuf *line, const struct verdict_key *key)
{
    add_cell(line, key->sources, '\t');
    add_cell(line, key->device, '\t');
    add_cell(line, key->driver, '\t');
}

// The line after `at`, or `end`; *n_ret: the length of this one without its newline.
static const char *next_line(const char *at, const char *end, size_t *n_ret)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    *n_ret = (size_t)((newline ? newline : end) - at);
    return newline ? newline + 1 : end;
}

static bool begins_with(const char *line, size_t n, const struct strbuf *begin)
{
    return n >= begin->used && memcmp(line, begin->data, begin->used) == 0;
}

// line: what follows the key, changed.
static void tell(char *line, attncl__verdict_fn fn, void *user)
{
    char *const tab = strchr(line, '\t');

    if (!tab || strlen(tab + 1) >= VERDICT_WHY_BYTES)
        return;
    *tab = '\0';
    fn(line, tab + 1, user);
}

void attncl__verdicts_read(const struct private_dir *directory, const struct verdict_key *key,
                           attncl__verdict_fn fn, void *user)
{
    struct strbuf begin = STRBUF_EMPTY;
    const char *why = NULL;
    char *data = NULL;
    size_t n = 0, length = 0;

    if (!attncl__private_file_read(directory, file, 0, VERDICTS_MAX_BYTES, &data, &n, &why))
        return;
    add_key(&begin, key);
    for (char *at = data, *end = data + n; !begin.failed && at < end; at += length + 1) {
        (void)next_line(at, end, &length);
        if (at + length == end)
            break; // cut off
        if (!begins_with(at, length, &begin))
            continue;
        at[length] = '\0';
        tell(at + begin.used, fn, user);
    }
    attncl__strbuf_free(&begin);
    attncl__free(data);
}

bool attncl__verdict_write(const struct private_dir *directory, const struct verdict_key *key,
                           const char *name, const char *verdict)
{
    struct strbuf begin = STRBUF_EMPTY, text = STRBUF_EMPTY;
    const char *why = NULL;
    char *old = NULL;
    size_t n = 0, length = 0;

    add_key(&begin, key);
    add_cell(&begin, name, '\t');
    if (!begin.failed &&
        attncl__private_file_read(directory, file, 0, VERDICTS_MAX_BYTES / 2, &old, &n, &why))
        for (const char *at = old, *end = old + n, *next; at < end; at = next) {
            next = next_line(at, end, &length);
            if (!begins_with(at, length, &begin))
                attncl__strbuf_add(&text, "%.*s\n", (int)length, at);
        }
    if (!begin.failed)
        attncl__strbuf_add_bytes(&text, begin.data, begin.used);
    add_cell(&text, verdict, '\n');
    const bool written =
        !begin.failed && !text.failed &&
        attncl__private_file_replace(directory, file, &(struct bytes){text.data, text.used}, 1);
    attncl__strbuf_free(&begin);
    attncl__strbuf_free(&text);
    attncl__free(old);
    return written;
}
