// SPDX-License-Identifier: MIT
//
// A line: VERSION <tab> DEVICE <tab> DRIVER <tab> VARIANT <tab> ops that failed, "" where none did.

#include <string.h>

#include "attncl/version.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "store/selftest_file.h"

static const char name[] = "selftest.txt";

// A text that fits one cell of one line.
static void add_cell(struct strbuf *line, const char *text, char end)
{
    for (; *text; ++text)
        attncl__strbuf_add(line, "%c", (unsigned char)*text < 0x20 ? ' ' : *text);
    attncl__strbuf_add(line, "%c", end);
}

static void add_key(struct strbuf *line, const struct selftest_key *key)
{
    add_cell(line, ATTNCL_VERSION_STRING, '\t');
    add_cell(line, key->device, '\t');
    add_cell(line, key->driver, '\t');
    add_cell(line, key->variant, '\t');
}

// The line after `at`, or `end`; *n_ret: the length of this one without its newline.
static const char *next_line(const char *at, const char *end, size_t *n_ret)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    *n_ret = (size_t)((newline ? newline : end) - at);
    return newline ? newline + 1 : end;
}

static bool begins_with(const char *line, size_t n, const struct strbuf *key)
{
    return n >= key->used && memcmp(line, key->data, key->used) == 0;
}

bool attncl__selftest_read(const struct private_dir *directory, const struct selftest_key *key,
                           char failed[SELFTEST_FAILED_BYTES])
{
    struct strbuf begin = STRBUF_EMPTY;
    const char *why = NULL;
    char *data = NULL;
    size_t n = 0, length = 0;
    bool found = false;

    if (!attncl__private_file_read(directory, name, 0, SELFTEST_MAX_BYTES, &data, &n, &why))
        return false;
    add_key(&begin, key);
    for (const char *at = data, *end = data + n, *next; !begin.failed && at < end; at = next) {
        next = next_line(at, end, &length);
        if (!begins_with(at, length, &begin) || length - begin.used >= SELFTEST_FAILED_BYTES)
            continue;
        memcpy(failed, at + begin.used, length - begin.used);
        failed[length - begin.used] = '\0';
        found = true;
    }
    attncl__strbuf_free(&begin);
    attncl__free(data);
    return found;
}

bool attncl__selftest_write(const struct private_dir *directory, const struct selftest_key *key,
                            const char *failed)
{
    struct strbuf begin = STRBUF_EMPTY, text = STRBUF_EMPTY;
    const char *why = NULL;
    char *old = NULL;
    size_t n = 0, length = 0;

    add_key(&begin, key);
    if (!begin.failed &&
        attncl__private_file_read(directory, name, 0, SELFTEST_MAX_BYTES / 2, &old, &n, &why))
        for (const char *at = old, *end = old + n, *next; at < end; at = next) {
            next = next_line(at, end, &length);
            if (!begins_with(at, length, &begin))
                attncl__strbuf_add(&text, "%.*s\n", (int)length, at);
        }
    if (!begin.failed)
        attncl__strbuf_add_bytes(&text, begin.data, begin.used);
    add_cell(&text, failed, '\n');
    const bool written =
        !begin.failed && !text.failed &&
        attncl__private_file_replace(directory, name, &(struct bytes){text.data, text.used}, 1);
    attncl__strbuf_free(&begin);
    attncl__strbuf_free(&text);
    attncl__free(old);
    return written;
}
