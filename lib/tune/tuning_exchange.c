// SPDX-License-Identifier: MIT
//
// Tuning files given to others: the user's file copied, and entries of several files taken into it.

#include <inttypes.h>
#include <string.h>

#include "attncl/tune.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/try.h"
#include "store/tuning_file.h"

// Entries with the texts that they lie in.
struct entries {
    char **texts;
    struct line *at;
    size_t n_texts, n, capacity;
};

static void free_entries(struct entries *e)
{
    for (size_t i = 0; i < e->n_texts; ++i)
        attncl__free(e->texts[i]);
    attncl__free(e->texts);
    attncl__free(e->at);
}

// Of one device, driver, kernel and class.
static bool same_entry(const struct line *a, const struct line *b)
{
    for (int i = 0; i < CELL_VALUES; ++i)
        if (a->cell[i].n != b->cell[i].n || memcmp(a->cell[i].at, b->cell[i].at, a->cell[i].n) != 0)
            return false;
    return true;
}

// In the place of the entry that says something else of the same.
static attncl_status add_entry(struct entries *e, const struct line *line)
{
    for (size_t i = 0; i < e->n; ++i)
        if (same_entry(&e->at[i], line)) {
            e->at[i] = *line;
            return ATTNCL_OK;
        }
    if (e->n == e->capacity) {
        const size_t capacity = e->capacity ? 2 * e->capacity : 32;
        struct line *grown = attncl__grow_array(e->at, capacity, sizeof *grown);

        REQUIRE(grown, ATTNCL_ERR_NO_MEMORY, "%zu tuning entries", capacity);
        e->at = grown;
        e->capacity = capacity;
    }
    e->at[e->n++] = *line;
    return ATTNCL_OK;
}

// `strict`: a line that is no entry is an error, and named; else it is left out.
static attncl_status add_text(struct entries *e, const char *path, struct slice text, bool strict)
{
    struct line line = {.number = 0};
    char why[WHY_BYTES];

    if (!attncl__tuning_next_line(&text, &line) ||
        !attncl__slice_is(line.text, TUNING_FIRST_LINE)) {
        REQUIRE(!strict, ATTNCL_ERR_FORMAT, "%s:1: begins with \"%.*s\", not with \"%s\"", path,
                line.text.n < 40 ? (int)line.text.n : 40, line.text.at ? line.text.at : "",
                TUNING_FIRST_LINE);
        return ATTNCL_OK;
    }
    while (attncl__tuning_next_line(&text, &line)) {
        if (attncl__tuning_is_ignored(&line))
            continue;
        if (attncl__tuning_is_entry(&line, why)) {
            TRY(add_entry(e, &line));
            continue;
        }
        REQUIRE(!strict, ATTNCL_ERR_FORMAT, "%s:%d: %s", path, line.number, why);
    }
    return ATTNCL_OK;
}

static attncl_status add_file(struct entries *e, const char *path)
{
    attncl_status status = ATTNCL_OK;
    uint64_t bytes = 0;
    int fd = -1;

    TRY(attncl__file_open(path, &fd, &bytes));
    if (bytes > TUNING_MAX_BYTES)
        TRY_DONE(FAIL(ATTNCL_ERR_FORMAT, "%s has %" PRIu64 " bytes, a tuning file at most %d", path,
                      bytes, TUNING_MAX_BYTES));
    char *data = attncl__alloc_array((size_t)bytes + 1, 1);
    if (!data)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%s", path));
    e->texts[e->n_texts++] = data;
    status = attncl__file_read(fd, data, (size_t)bytes);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("%s", path);
        goto done;
    }
    TRY_DONE(add_text(e, path, (struct slice){data, (size_t)bytes}, true));

done:
    attncl__file_close(&fd);
    return status;
}

// The user's own entries.
static attncl_status add_own(struct entries *e)
{
    char *data = NULL;
    size_t n = 0;

    TRY(attncl__tuning_text(&data, &n));
    if (data)
        e->texts[e->n_texts++] = data;
    return n ? add_text(e, "", (struct slice){data, n}, false) : ATTNCL_OK;
}

static void print_entries(const struct entries *e, struct strbuf *ret)
{
    attncl__strbuf_add(ret,
                       "%s\n# device, driver, kernel, class of shapes, values; by attncl tune\n",
                       TUNING_FIRST_LINE);
    for (size_t i = 0; i < e->n; ++i) {
        attncl__strbuf_add_bytes(ret, e->at[i].text.at, e->at[i].text.n);
        attncl__strbuf_add(ret, "\n");
    }
}

attncl_status attncl_tuning_export(const char *path, size_t *n_ret)
{
    attncl_status status = ATTNCL_OK;
    struct entries e = {.texts = attncl__alloc_array(1, sizeof(char *))};
    struct strbuf text = STRBUF_EMPTY;

    if (!path)
        TRY_DONE(FAIL(ATTNCL_ERR_ARGUMENT, "no path"));
    if (!e.texts)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%s", path));
    TRY_DONE(add_own(&e));
    if (e.n == 0)
        TRY_DONE(FAIL(ATTNCL_ERR_STATE, "there are no tuning entries to export: run attncl tune"));
    print_entries(&e, &text);
    if (text.failed)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%s", path));
    TRY_DONE(attncl__file_replace(path, &(struct file_part){text.data, text.used}, 1, false));
    if (n_ret)
        *n_ret = e.n;

done:
    attncl__strbuf_free(&text);
    free_entries(&e);
    return status;
}

attncl_status attncl_tuning_import(const char *const *paths, size_t n_paths, size_t *n_ret)
{
    attncl_status status = ATTNCL_OK;
    struct entries e = {.texts = NULL}, given = {.texts = NULL};
    struct strbuf text = STRBUF_EMPTY;

    REQUIRE(paths && n_paths > 0 && n_paths < 1000, ATTNCL_ERR_ARGUMENT, "%zu tuning files",
            n_paths);
    TRY(attncl__tuning_check_named(&(struct tuning_key){"", "", false}, true));
    e.texts = attncl__alloc_array(1, sizeof(char *));
    given.texts = attncl__alloc_array(n_paths, sizeof(char *));
    if (!e.texts || !given.texts)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%zu tuning files", n_paths));
    for (size_t i = 0; i < n_paths; ++i)
        TRY_DONE(add_file(&given, paths[i]));
    TRY_DONE(add_own(&e));
    for (size_t i = 0; i < given.n; ++i)
        TRY_DONE(add_entry(&e, &given.at[i]));
    print_entries(&e, &text);
    TRY_DONE(attncl__tuning_write(&text));
    if (n_ret)
        *n_ret = given.n;

done:
    attncl__strbuf_free(&text);
    free_entries(&e);
    free_entries(&given);
    return status;
}
