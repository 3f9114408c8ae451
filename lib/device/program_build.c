// SPDX-License-Identifier: MIT
//
// Building one program: its binary from the program cache, or else its source, compiled.

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "device/internal.h"
#include "device/program.h"

// OpenCL C 1.2, without options that relax arithmetic.  With ATTNCL_GUARD launches check their arguments.
static const char *build_options(const attncl_context *ctx)
{
    return attncl__context_env(ctx, ENV_GUARD) ? "-cl-std=CL1.2 -cl-kernel-arg-info"
                                               : "-cl-std=CL1.2";
}

struct build { // the program's key
    const char *file, *defines;
};

void attncl__program_release(cl_program *cl)
{
    if (!*cl)
        return;
    clReleaseProgram(*cl);
    attncl__object_released(OBJECT_PROGRAM);
    *cl = NULL;
}

// The compiler's log; NULL or empty where it cannot be read.
static char *build_log(const attncl_context *ctx, cl_program cl)
{
    size_t bytes = 0;

    if (clGetProgramBuildInfo(cl, ctx->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) != CL_SUCCESS)
        return NULL;
    char *log = attncl__alloc_zero(bytes + 1);
    if (log && clGetProgramBuildInfo(cl, ctx->device, CL_PROGRAM_BUILD_LOG, bytes, log, NULL) !=
                   CL_SUCCESS)
        log[0] = '\0';
    return log;
}

// The first line with "error" in it, else the first line that is not blank.
static const char *error_line(const char *log, int *n_ret)
{
    const char *line = strstr(log, "error");

    while (line && line > log && line[-1] != '\n')
        --line;
    if (!line)
        line = log + strspn(log, " \t\r\n");
    *n_ret = (int)strcspn(line, "\r\n");
    return line;
}

// ATTNCL_DUMP_CL, for developers: writes the source and the compiler's log.  A failure to write is
// logged.
static void dump(const char *directory, const struct build *b, const char *source, const char *log)
{
    uint32_t hash = 2166136261u; // FNV-1a of the macros tells the specialisations of a file apart
    for (const char *c = b->defines; *c; ++c)
        hash = (hash ^ (unsigned char)*c) * 16777619u;

    const char *name = strrchr(b->file, '/');
    struct strbuf path = STRBUF_EMPTY;
    attncl__strbuf_add(&path, "%s/%s.%08x.cl", directory, name ? name + 1 : b->file, hash);
    FILE *file = path.failed ? NULL : fopen(path.data, "wb");
    if (!file) {
        attncl__log(ATTNCL_LOG_WARN, "cannot write a kernel source into %s", directory);
    } else {
        fprintf(file, "%s\n/* Build log:\n%s\n*/\n", source, log ? log : "");
        fclose(file);
    }
    attncl__strbuf_free(&path);
}

static attncl_status compile(attncl_context *ctx, const struct build *b, const char *source,
                             cl_program *ret)
{
    attncl_status status = ATTNCL_OK;
    char *log = NULL;
    cl_int code = CL_SUCCESS;

    cl_program cl = clCreateProgramWithSource(ctx->cl, 1, &source, NULL, &code);
    TRY_DONE(CL_CODE(code, "clCreateProgramWithSource"));
    attncl__object_created(OBJECT_PROGRAM);
    code = clBuildProgram(cl, 1, &ctx->device, build_options(ctx), NULL, NULL);
    const char *directory = attncl__context_env(ctx, ENV_DUMP_CL);
    if (directory || code == CL_BUILD_PROGRAM_FAILURE)
        log = build_log(ctx, cl);
    if (directory)
        dump(directory, b, source, log);
    if (code == CL_BUILD_PROGRAM_FAILURE && log && *log) {
        int n = 0;
        const char *line = error_line(log, &n);
        status = FAIL(ATTNCL_ERR_COMPILE, "%s does not compile: %.*s", b->file, n, line);
    } else {
        status = CL_CODE(code, "clBuildProgram");
    }

    if (status == ATTNCL_OK) {
        *ret = cl;
        cl = NULL; // ownership has passed to the caller
    }

done:
    attncl__program_release(&cl);
    attncl__free(log);
    return status;
}

attncl_status attncl__program_build(attncl_context *ctx, const char *file, const char *defines,
                                    cl_program *cl_ret, char **source_ret)
{
    const struct build b = {file, defines};
    attncl_status status = ATTNCL_OK;
    struct strbuf source = STRBUF_EMPTY;
    char *text = NULL;

    TRY_DONE(attncl__source_load(ctx, file, &text));
    attncl__strbuf_add(&source, "%s%s", defines, text);
    if (source.failed) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "the source of %s", file);
        goto done;
    }
    // To dump sources and logs, the compiler has to run.
    if (!attncl__context_env(ctx, ENV_DUMP_CL))
        *cl_ret = attncl__cache_load(ctx, source.data, build_options(ctx));
    if (*cl_ret) {
        attncl__object_created(OBJECT_PROGRAM);
        attncl__log(ATTNCL_LOG_DEBUG, "%s from the cache", file);
        goto done;
    }
    TRY_DONE(compile(ctx, &b, source.data, cl_ret));
    attncl__log(ATTNCL_LOG_DEBUG, "%s built", file);
    if (attncl__cache_stores(ctx)) {
        *source_ret = source.data;
        source = STRBUF_EMPTY;
    }

done:
    attncl__strbuf_free(&source);
    attncl__free(text);
    return status;
}

void attncl__program_store(const attncl_context *ctx, const char *source, cl_program cl)
{
    attncl__cache_store(ctx, source, build_options(ctx), cl);
}
