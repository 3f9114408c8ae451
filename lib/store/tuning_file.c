// SPDX-License-Identifier: MIT
//
// The file of the tuning table: finds, reads and replaces it.

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "base/try.h"
#include "store/private_dir.h"
#include "store/tuning_table.h"

struct location {
    char *directory, *path;
    const char *name; // points into path
    bool explicit;    // named by ATTNCL_TUNE
};

static void free_location(struct location *p)
{
    attncl__free(p->directory);
    attncl__free(p->path);
    *p = (struct location){.name = NULL};
}

// False, with the reason, when there is no place for the file.
static bool find_location(const struct tuning_key *key, struct location *ret, const char **why_ret)
{
    const char *named = key->ignore_environment ? NULL : attncl__env_get(ENV_TUNE);
    struct strbuf path = STRBUF_EMPTY;

    *why_ret = "there is no XDG_CONFIG_HOME and no HOME";
    if (attncl__is_privileged())
        *why_ret = "the process has raised privileges";
    else if (named && strcmp(named, "off") == 0)
        *why_ret = "ATTNCL_TUNE is off";
    else if (named)
        attncl__strbuf_add(&path, "%s%s", strchr(named, '/') ? "" : "./", named);
    else if (!key->ignore_environment)
        attncl__add_user_path(ENV_XDG_CONFIG_HOME, ".config", "attncl/tune.txt", &path);
    if (!path.data)
        return false;
    *ret = (struct location){.path = path.data, .explicit = named != NULL};
    ret->directory = path.failed ? NULL : attncl__copy_text(path.data);
    if (!ret->directory) {
        *why_ret = "out of memory";
        free_location(ret);
        return false;
    }
    char *slash = strrchr(ret->directory, '/');
    ret->name = ret->path + (slash + 1 - ret->directory);
    slash[slash == ret->directory] = '\0'; // keeps the root directory's slash
    *why_ret = NULL;
    return true;
}

static attncl_status locate(const struct tuning_key *key, struct location *ret)
{
    const char *why;
    REQUIRE(find_location(key, ret, &why), ATTNCL_ERR_IO, "no file for tuning entries: %s", why);
    return ATTNCL_OK;
}

// Reads the whole file.  False with *why_ret NULL when it does not exist.
static bool read_file(const struct location *location, char **data_ret, size_t *n_ret,
                      const char **why_ret)
{
    struct private_dir directory;

    *why_ret = NULL;
    if (access(location->directory, F_OK) != 0 && errno == ENOENT)
        return false;
    if (!attncl__private_dir_open(location->directory, false, &directory, why_ret))
        return false;
    const bool found = attncl__private_file_read(&directory, location->name, 0, TUNING_MAX_BYTES,
                                                 data_ret, n_ret, why_ret);
    attncl__private_dir_close(&directory);
    return found;
}

struct tune_table *attncl__tuning_load(const struct tuning_key *key)
{
    struct location location = {.name = NULL};
    struct tune_table *table = NULL;
    const char *why = NULL;
    char *data = NULL;
    int n_entries = 0;
    size_t n = 0;

    if (!find_location(key, &location, &why))
        return NULL;
    if (!read_file(&location, &data, &n, &why)) {
        if (why)
            attncl__log(ATTNCL_LOG_WARN, "%s: no tuning entries, %s", location.path, why);
        goto done;
    }
    table = attncl__alloc_zero(sizeof *table);
    if (!table)
        goto done;
    n_entries = attncl__tuned_parse(data, n, location.path, key->device, key->driver, table);
    attncl__log(ATTNCL_LOG_INFO, "%s: %d tuning entries for this device and driver", location.path,
                n_entries);
    table->path = location.path;
    location.path = NULL;

done:
    if (n_entries == 0) {
        attncl__tuning_free(table);
        table = NULL;
    }
    attncl__free(data);
    free_location(&location);
    return table;
}

void attncl__tuning_free(struct tune_table *table)
{
    if (!table)
        return;
    attncl__free(table->path);
    attncl__free(table);
}

// Accepts files of any version; other versions' entries are left out when the file is read.
static attncl_status check_content(const char *path, const char *data, size_t n)
{
    static const char begin[] = "attncl-tune ";

    REQUIRE(n >= sizeof begin - 1 && memcmp(data, begin, sizeof begin - 1) == 0,
            ATTNCL_ERR_ARGUMENT,
            "environment variable ATTNCL_TUNE is %.200s: no tuning file, which begins with "
            "attncl-tune",
            path);
    return ATTNCL_OK;
}

attncl_status attncl__tuning_check_file(const struct tuning_key *key, bool is_written)
{
    struct location location = {.name = NULL};
    attncl_status status = ATTNCL_OK;
    const char *why = NULL;
    char *data = NULL;
    size_t n = 0;

    if (!find_location(key, &location, &why))
        return ATTNCL_OK;
    errno = 0;
    const bool missing = access(location.path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
    if (!location.explicit || (missing && is_written))
        goto done;
    if (missing)
        status = FAIL(ATTNCL_ERR_ARGUMENT,
                      "environment variable ATTNCL_TUNE is %.200s: there is no such file, attncl "
                      "tune writes it",
                      location.path);
    else if (read_file(&location, &data, &n, &why))
        status = check_content(location.path, data, n);
    else
        status =
            FAIL(ATTNCL_ERR_ARGUMENT, "environment variable ATTNCL_TUNE is %.200s, which %s: %s",
                 location.path, is_written ? "would be replaced" : "is not read",
                 why ? why : "it cannot be read");
done:
    attncl__free(data);
    free_location(&location);
    return status;
}

attncl_status attncl__tuning_check_path(const struct tuning_key *key)
{
    attncl_status status = ATTNCL_OK;
    struct private_dir directory = {.fd = -1};
    struct location location = {.name = NULL};
    const char *why = NULL;

    TRY(locate(key, &location));
    if (!attncl__private_dir_open(location.directory, true, &directory, &why))
        status = FAIL(ATTNCL_ERR_IO, "%s: %s", location.directory, why);
    attncl__private_dir_close(&directory);
    free_location(&location);
    return status;
}

static bool has_entries(const struct tune_table *table)
{
    for (int k = 0; k < N_TUNABLES; ++k)
        for (int c = 0; c < TUNE_MAX_CLASSES; ++c)
            if (table->entries[k][c].line)
                return true;
    return false;
}

static attncl_status write_file(const struct location *location, const struct strbuf *text)
{
    struct private_dir directory = {.fd = -1};
    const char *why = NULL;

    REQUIRE(!text->failed, ATTNCL_ERR_NO_MEMORY, "%s", location->path);
    REQUIRE(text->used <= TUNING_MAX_BYTES, ATTNCL_ERR_IO,
            "%s would have %zu bytes, at most %d are read", location->path, text->used,
            TUNING_MAX_BYTES);
    REQUIRE(attncl__private_dir_open(location->directory, true, &directory, &why), ATTNCL_ERR_IO,
            "%s: %s", location->directory, why);
    errno = 0;
    const bool written = attncl__private_file_replace(&directory, location->name,
                                                      &(struct bytes){text->data, text->used}, 1);
    const int code = errno ? errno : EIO;
    attncl__private_dir_close(&directory);
    REQUIRE(written, ATTNCL_ERR_IO, "%s: %s", location->path, strerror(code));
    return ATTNCL_OK;
}

attncl_status attncl__tuning_store(const struct tuning_key *key, const struct tune_table *table,
                                   const bool measured[N_TUNABLES][TUNE_MAX_CLASSES],
                                   char **path_ret)
{
    attncl_status status = ATTNCL_OK;
    struct location location = {.name = NULL};
    struct strbuf text = STRBUF_EMPTY;
    const char *why = NULL;
    char *old = NULL;
    size_t n = 0;

    TRY(locate(key, &location));
    // A file that is not trustworthy is replaced without reading it.
    const bool found = read_file(&location, &old, &n, &why);
    if (!found && !why && !has_entries(table) && !location.explicit)
        goto done;
    attncl__tuned_merge(old, found ? n : 0, key->device, key->driver, table, measured, &text);
    TRY_DONE(write_file(&location, &text));
    *path_ret = location.path;
    location.path = NULL;

done:
    attncl__strbuf_free(&text);
    attncl__free(old);
    free_location(&location);
    return status;
}

attncl_status attncl__tuning_read(char **data_ret, size_t *n_ret)
{
    const struct tuning_key key = {.device = NULL};
    struct location location = {.name = NULL};
    const char *why = NULL;

    TRY(locate(&key, &location));
    const bool found = read_file(&location, data_ret, n_ret, &why);
    const attncl_status status =
        why ? FAIL(ATTNCL_ERR_IO, "%s: %s", location.path, why) : ATTNCL_OK;
    free_location(&location);
    if (!found)
        *n_ret = 0;
    return status;
}

attncl_status attncl__tuning_write(const struct strbuf *text)
{
    const struct tuning_key key = {.device = NULL};
    struct location location = {.name = NULL};

    TRY(locate(&key, &location));
    const attncl_status status = write_file(&location, text);
    free_location(&location);
    return status;
}
