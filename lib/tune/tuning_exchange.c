// SPDX-License-Identifier: MIT
//
// Sharing tuning files: exports the user's file, and imports entries of several files into it.

#include <inttypes.h>

#include "attncl/tune.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/try.h"
#include "store/tuning_table.h"

// Appends the entries of a text.  Lines that are no entry are an error if `strict`; else they are left
// out.
static attncl_status add_text(struct strbuf *entries, const char *path, struct slice text,
                              bool strict)
{
    struct slice line = {.n = 0};
    char why[WHY_BYTES];

    if (!attncl__next_line(&text, &line) || !attncl__slice_is(line, TUNING_FIRST_LINE)) {
        REQUIRE(!strict, ATTNCL_ERR_FORMAT, "%s:1: begins with \"%.*s\", not with \"%s\"", path,
                line.n < 40 ? (int)line.n : 40, line.at ? line.at : "", TUNING_FIRST_LINE);
        return ATTNCL_OK;
    }
    for (int number = 2; attncl__next_line(&text, &line); ++number) {
        if (attncl__tuning_is_ignored(line))
            continue;
        if (attncl__tuning_is_entry(line, why))
            attncl__strbuf_add(entries, "%.*s\n", (int)line.n, line.at);
        else
            REQUIRE(!strict, ATTNCL_ERR_FORMAT, "%s:%d: %s", path, number, why);
    }
    return ATTNCL_OK;
}

static attncl_status add_file(struct strbuf *entries, const char *path)
{
    attncl_status status = ATTNCL_OK;
    char *data = NULL;
    uint64_t bytes = 0;
    int fd = -1;

    TRY(attncl__file_open(path, &fd, &bytes));
    if (bytes > TUNING_MAX_BYTES)
        TRY_DONE(FAIL(ATTNCL_ERR_FORMAT, "%s has %" PRIu64 " bytes, a tuning file at most %d", path,
                      bytes, TUNING_MAX_BYTES));
    data = attncl__alloc((size_t)bytes);
    if (!data)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%s", path));
    TRY_DONE(attncl__prefix_failure(attncl__file_read(fd, data, (size_t)bytes), "%s", path));
    TRY_DONE(add_text(entries, path, (struct slice){data, (size_t)bytes}, true));

done:
    attncl__free(data);
    attncl__file_close(&fd);
    return status;
}

static attncl_status add_own_entries(struct strbuf *entries)
{
    char *data = NULL;
    size_t n = 0;

    TRY(attncl__tuning_read(&data, &n));
    const attncl_status status = add_text(entries, "", (struct slice){data, n}, false);
    attncl__free(data);
    return status;
}

// Writes a file's text with the last entry of each device, driver, kernel and class.  *n_ret: their number.
static attncl_status make_text(const struct strbuf *entries, struct strbuf *ret, size_t *n_ret)
{
    size_t n = 0;

    attncl__strbuf_add(ret, "%s", TUNING_HEAD);
    const size_t head = ret->used;
    if (!entries->failed)
        attncl__add_last_of_keys(ret, (struct slice){entries->data, entries->used});
    REQUIRE(!entries->failed && !ret->failed, ATTNCL_ERR_NO_MEMORY, "tuning entries");
    for (size_t i = head; i < ret->used; ++i)
        n += ret->data[i] == '\n';
    *n_ret = n;
    return ATTNCL_OK;
}

attncl_status attncl_tuning_export(const char *path, size_t *n_ret)
{
    attncl_status status = ATTNCL_OK;
    struct strbuf own = STRBUF_EMPTY, text = STRBUF_EMPTY;
    size_t n = 0;

    REQUIRE(path, ATTNCL_ERR_ARGUMENT, "no path");
    TRY_DONE(add_own_entries(&own));
    TRY_DONE(make_text(&own, &text, &n));
    if (n == 0)
        TRY_DONE(FAIL(ATTNCL_ERR_STATE, "there are no tuning entries to export: run attncl tune"));
    TRY_DONE(attncl__file_replace(path, &(struct bytes){text.data, text.used}, 1, false));
    if (n_ret)
        *n_ret = n;

done:
    attncl__strbuf_free(&own);
    attncl__strbuf_free(&text);
    return status;
}

attncl_status attncl_tuning_import(const char *const *paths, size_t n_paths, size_t *n_ret)
{
    attncl_status status = ATTNCL_OK;
    struct strbuf given = STRBUF_EMPTY, all = STRBUF_EMPTY, text = STRBUF_EMPTY;
    size_t n_given = 0, n_all;

    REQUIRE(paths && n_paths > 0 && n_paths < 1000, ATTNCL_ERR_ARGUMENT, "%zu tuning files",
            n_paths);
    TRY(attncl__tuning_check_file(&(struct tuning_key){"", "", false}, true));
    for (size_t i = 0; i < n_paths; ++i) {
        if (!paths[i])
            TRY_DONE(FAIL(ATTNCL_ERR_ARGUMENT, "path %zu of the tuning files is NULL", i));
        TRY_DONE(add_file(&given, paths[i]));
    }
    TRY_DONE(make_text(&given, &text, &n_given));
    TRY_DONE(add_own_entries(&all));
    attncl__strbuf_add_bytes(&all, given.data, given.used);
    attncl__strbuf_free(&text);
    TRY_DONE(make_text(&all, &text, &n_all));
    TRY_DONE(attncl__tuning_write(&text));
    if (n_ret)
        *n_ret = n_given;

done:
    attncl__strbuf_free(&given);
    attncl__strbuf_free(&all);
    attncl__strbuf_free(&text);
    return status;
}
