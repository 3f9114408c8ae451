// SPDX-License-Identifier: MIT
//
// The file of tuned rows: where it is, read once per context, rewritten by the tuner.  Whatever is
// wrong with it, the library's own tables are there.

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/try.h"
#include "device/tuned_file.h"
#include "store/private_dir.h"

enum { MAX_BYTES = 65536 };

struct place {
    char *directory, *path;
    const char *name; // in path
    bool asked;       // by ATTNCL_TUNE: it should be there
};

static void free_place(struct place *p)
{
    attncl__free(p->directory);
    attncl__free(p->path);
    *p = (struct place){.name = NULL};
}

// ATTNCL_TUNE's path, or attncl/tune.txt in the user's configuration directory.  A relative base
// directory is none, as the XDG specification says.  Never a directory that is everybody's.
// Returns false, and the reason, when there is none.
static bool find_place(const attncl_context *ctx, struct place *ret, const char **why_ret)
{
    const char *own = attncl__context_env(ctx, ENV_TUNE);
    const char *xdg = attncl__context_env(ctx, ENV_XDG_CONFIG_HOME);
    const char *home = attncl__context_env(ctx, ENV_HOME);
    struct strbuf path = STRBUF_EMPTY;

    *why_ret = "there is no XDG_CONFIG_HOME and no HOME";
    if (attncl__privileged())
        *why_ret = "the process has raised privileges";
    else if (own && strcmp(own, "off") == 0)
        *why_ret = "ATTNCL_TUNE is off";
    else if (own)
        attncl__strbuf_add(&path, "%s%s", strchr(own, '/') ? "" : "./", own);
    else if (xdg && xdg[0] == '/')
        attncl__strbuf_add(&path, "%s/attncl/tune.txt", xdg);
    else if (home && home[0] == '/')
        attncl__strbuf_add(&path, "%s/.config/attncl/tune.txt", home);
    if (!path.data)
        return false;
    *ret = (struct place){.path = path.data, .asked = own != NULL};
    ret->directory = path.failed ? NULL : attncl__copy_text(path.data);
    if (!ret->directory) {
        *why_ret = "out of memory";
        free_place(ret);
        return false;
    }
    char *slash = strrchr(ret->directory, '/');
    ret->name = ret->path + (slash + 1 - ret->directory);
    slash[slash == ret->directory] = '\0'; // "/" itself stays
    *why_ret = NULL;
    return true;
}

// The file as it is.  False, and *why_ret NULL, when there is none.
static bool read_file(const struct place *place, char **data_ret, size_t *n_ret,
                      const char **why_ret)
{
    struct private_dir directory;

    *why_ret = NULL;
    if (access(place->directory, F_OK) != 0 && errno == ENOENT)
        return false;
    if (!attncl__private_dir_open(place->directory, false, &directory, why_ret))
        return false;
    const bool found =
        attncl__private_file_read(&directory, place->name, 0, MAX_BYTES, data_ret, n_ret, why_ret);
    attncl__private_dir_close(&directory);
    return found;
}

void attncl__tuned_open(attncl_context *ctx)
{
    struct place place = {.name = NULL};
    struct tune_table *table = NULL;
    const char *why = NULL;
    char *data = NULL;
    size_t n = 0;

    if (!find_place(ctx, &place, &why))
        return;
    if (!read_file(&place, &data, &n, &why)) {
        if (why || place.asked)
            attncl__log(ATTNCL_LOG_WARN, "%s: no tuned rows, %s", place.path,
                        why ? why : "not there");
        goto done;
    }
    table = attncl__alloc_zero(sizeof *table);
    if (!table)
        goto done;
    const int taken =
        attncl__tuned_parse(data, n, place.path, ctx->info.name, ctx->info.driver_version, table);
    attncl__log(ATTNCL_LOG_INFO, "%s: %d tuned rows for this device and driver", place.path, taken);
    if (taken == 0)
        goto done;
    table->path = place.path;
    place.path = NULL;
    ctx->caps.tuned = table;
    table = NULL;

done:
    attncl__free(table);
    attncl__free(data);
    free_place(&place);
}

void attncl__tuned_close(attncl_context *ctx)
{
    if (!ctx->caps.tuned)
        return;
    attncl__free(ctx->caps.tuned->path);
    attncl__free(ctx->caps.tuned);
    ctx->caps.tuned = NULL;
}

attncl_status attncl__tuned_check_place(const attncl_context *ctx)
{
    attncl_status status = ATTNCL_OK;
    struct private_dir directory = {.fd = -1};
    struct place place = {.name = NULL};
    const char *why = NULL;

    REQUIRE(find_place(ctx, &place, &why), ATTNCL_ERR_IO, "no file for tuned rows: %s", why);
    if (!attncl__private_dir_open(place.directory, true, &directory, &why))
        status = FAIL(ATTNCL_ERR_IO, "%s: %s", place.directory, why);
    attncl__private_dir_close(&directory);
    free_place(&place);
    return status;
}

static bool has_rows(const struct tune_table *table)
{
    for (int k = 0; k < N_TUNABLES; ++k)
        for (int c = 0; c < TUNE_MAX_CLASSES; ++c)
            if (table->entries[k][c].line)
                return true;
    return false;
}

attncl_status attncl__tuned_store(const attncl_context *ctx, const struct tune_table *table,
                                  const bool measured[N_TUNABLES][TUNE_MAX_CLASSES],
                                  char **path_ret)
{
    attncl_status status = ATTNCL_OK;
    struct private_dir directory = {.fd = -1};
    struct place place = {.name = NULL};
    struct strbuf text = STRBUF_EMPTY;
    const char *why = NULL;
    char *old = NULL;
    size_t n = 0;

    REQUIRE(find_place(ctx, &place, &why), ATTNCL_ERR_IO, "no file for tuned rows: %s", why);
    // What is there and may not be trusted is not looked at, and replaced.
    const bool found = read_file(&place, &old, &n, &why);
    if (!found && !why && !has_rows(table))
        goto done;
    attncl__tuned_merge(old, found ? n : 0, ctx->info.name, ctx->info.driver_version, table,
                        measured, &text);
    if (text.failed)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%s", place.path));
    if (text.used > MAX_BYTES)
        TRY_DONE(FAIL(ATTNCL_ERR_IO, "%s would have %zu bytes, at most %d are read", place.path,
                      text.used, MAX_BYTES));
    if (!attncl__private_dir_open(place.directory, true, &directory, &why))
        TRY_DONE(FAIL(ATTNCL_ERR_IO, "%s: %s", place.directory, why));
    errno = 0;
    if (!attncl__private_file_replace(&directory, place.name, &(struct bytes){text.data, text.used},
                                      1))
        TRY_DONE(FAIL(ATTNCL_ERR_IO, "%s: %s", place.path, strerror(errno ? errno : EIO)));
    *path_ret = place.path;
    place.path = NULL;

done:
    attncl__private_dir_close(&directory);
    attncl__strbuf_free(&text);
    attncl__free(old);
    free_place(&place);
    return status;
}
