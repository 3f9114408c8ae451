// SPDX-License-Identifier: MIT
//
// Expands the includes of kernel sources, so that drivers need to open no files.

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/try.h"
#include "device/program.h"

enum { MAX_FILES = 64, MAX_NAME = 128 };

struct expansion {
    const char *directory; // NULL: the embedded sources
    struct strbuf out;
    char seen[MAX_FILES][MAX_NAME];
    size_t n_seen;
};

static attncl_status read_from_disk(const char *directory, const char *name, struct strbuf *ret)
{
    attncl_status status = ATTNCL_OK;
    struct strbuf path = STRBUF_EMPTY;
    FILE *file = NULL;
    char piece[4096];
    size_t n;

    attncl__strbuf_add(&path, "%s/%s", directory, name);
    if (path.failed)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "the path of %s", name));
    file = fopen(path.data, "rb");
    if (!file)
        TRY_DONE(FAIL(ATTNCL_ERR_IO, "kernel source %s: %s", path.data, strerror(errno)));
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        attncl__strbuf_add_bytes(ret, piece, n);
    if (ferror(file))
        status = FAIL(ATTNCL_ERR_IO, "kernel source %s: read error", path.data);

done:
    if (file)
        fclose(file);
    attncl__strbuf_free(&path);
    return status;
}

static attncl_status read_source(const char *directory, const char *name, struct strbuf *ret)
{
    attncl__strbuf_add_bytes(ret, "", 0); // so that ret->data is "" for an empty file
    if (directory)
        return read_from_disk(directory, name, ret);
    for (size_t i = 0; i < attncl__n_sources; ++i)
        if (strcmp(attncl__sources[i].file, name) == 0) {
            attncl__strbuf_add_bytes(ret, attncl__sources[i].bytes, attncl__sources[i].n_bytes);
            return ATTNCL_OK;
        }
    return FAIL(ATTNCL_ERR_STATE, "there is no kernel source %s", name);
}

// True when `line` is #include "name"; copies the name.
static bool parse_include(const char *line, char name[MAX_NAME])
{
    static const char word[] = "#include", blanks[] = " \t";

    line += strspn(line, blanks);
    if (strncmp(line, word, sizeof word - 1) != 0)
        return false;
    line += sizeof word - 1;
    line += strspn(line, blanks);
    const size_t n = *line == '"' ? strcspn(line + 1, "\"\n") : 0;
    if (n == 0 || n >= MAX_NAME || line[1 + n] != '"')
        return false;
    memcpy(name, line + 1, n);
    name[n] = '\0';
    return true;
}

static bool is_seen(const struct expansion *expansion, const char *name)
{
    for (size_t i = 0; i < expansion->n_seen; ++i)
        if (strcmp(expansion->seen[i], name) == 0)
            return true;
    return false;
}

// Recursion ends because each file is included once, and there are at most MAX_FILES.
static attncl_status add_file(struct expansion *expansion, const char *name)
{
    attncl_status status = ATTNCL_OK;
    struct strbuf source = STRBUF_EMPTY;
    char included[MAX_NAME];
    size_t line_number = 0;

    REQUIRE(strlen(name) < MAX_NAME && !strstr(name, "..") && name[0] != '/', ATTNCL_ERR_ARGUMENT,
            "\"%s\" is not the name of a kernel source", name);
    REQUIRE(expansion->n_seen < MAX_FILES, ATTNCL_ERR_STATE, "kernel source %s: more than %d files",
            name, MAX_FILES);
    strcpy(expansion->seen[expansion->n_seen++], name);
    TRY_DONE(read_source(expansion->directory, name, &source));
    if (source.failed)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "kernel source %s", name));

    // #line, so that the compiler's messages name the source file and line.
    attncl__strbuf_add(&expansion->out, "#line 1 \"%s\"\n", name);
    const char *end = source.data + source.used;
    for (const char *line = source.data; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const size_t n = (size_t)((stop ? stop : end) - line);

        ++line_number;
        if (!parse_include(line, included)) {
            attncl__strbuf_add_bytes(&expansion->out, line, n);
            attncl__strbuf_add_bytes(&expansion->out, "\n", 1);
        } else if (is_seen(expansion, included)) {
            attncl__strbuf_add_bytes(&expansion->out, "\n", 1);
        } else {
            TRY_DONE(
                attncl__prefix_failure(add_file(expansion, included), "%s:%zu", name, line_number));
            attncl__strbuf_add(&expansion->out, "#line %zu \"%s\"\n", line_number + 1, name);
        }
        line += n + 1;
    }

done:
    attncl__strbuf_free(&source);
    return status;
}

attncl_status attncl__source_load(const attncl_context *ctx, const char *file, char **text_ret)
{
    attncl_status status = ATTNCL_OK;
    struct expansion *expansion = attncl__alloc_zero(sizeof *expansion);

    REQUIRE(expansion, ATTNCL_ERR_NO_MEMORY, "kernel source %s", file);
    expansion->directory = attncl__context_env(ctx, ENV_CL_DIR);
    TRY_DONE(add_file(expansion, file));
    if (expansion->out.failed)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "kernel source %s", file));
    *text_ret = expansion->out.data;
    expansion->out = STRBUF_EMPTY;

done:
    attncl__strbuf_free(&expansion->out);
    attncl__free(expansion);
    return status;
}
