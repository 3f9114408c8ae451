// SPDX-License-Identifier: MIT
//
// Builds one program: from its binary in the program cache, else from source.

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "device/internal.h"
#include "device/program.h"

struct build { // the program's key
    const char *file, *defines;
};

void attncl__program_release(cl_program *program)
{
    if (!*program)
        return;
    clReleaseProgram(*program);
    attncl__object_released(OBJECT_PROGRAM);
    *program = NULL;
}

// Returns the compiler's log; NULL or empty when it cannot be read.
static char *read_build_log(const attncl_context *ctx, cl_program program)
{
    size_t bytes = 0;

    if (clGetProgramBuildInfo(program, ctx->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) !=
        CL_SUCCESS)
        return NULL;
    char *log = attncl__alloc_zero(bytes + 1);
    if (log && clGetProgramBuildInfo(program, ctx->device, CL_PROGRAM_BUILD_LOG, bytes, log,
                                     NULL) != CL_SUCCESS)
        log[0] = '\0';
    return log;
}

// CL_KERNEL_SPILL_MEM_SIZE_INTEL; older headers lack it.
enum { SPILL_BYTES_INTEL = 0x4109 };

// Appends one of a kernel's sizes, a size_t or a cl_ulong; "null" when the driver refuses the query.
static void add_size(struct strbuf *t, const attncl_context *ctx, cl_kernel kernel,
                     const char *name, cl_kernel_work_group_info what)
{
    union {
        size_t size;
        cl_ulong bytes;
    } x = {0};
    size_t n = 0;
    const bool known =
        clGetKernelWorkGroupInfo(kernel, ctx->device, what, sizeof x, &x, &n) == CL_SUCCESS;

    attncl__strbuf_add(t, ", \"%s\": ", name);
    if (known)
        attncl__strbuf_add(t, "%llu", (unsigned long long)(n == sizeof x.size ? x.size : x.bytes));
    else
        attncl__strbuf_add(t, "null");
}

static void add_kernel(struct strbuf *t, const attncl_context *ctx, cl_kernel kernel)
{
    char name[256] = "";

    clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    attncl__strbuf_add(t, "{\"name\": ");
    attncl__strbuf_add_quoted(t, name);
    add_size(t, ctx, kernel, "work_group", CL_KERNEL_WORK_GROUP_SIZE);
    add_size(t, ctx, kernel, "local_bytes", CL_KERNEL_LOCAL_MEM_SIZE);
    add_size(t, ctx, kernel, "private_bytes", CL_KERNEL_PRIVATE_MEM_SIZE);
    // On other vendors' drivers the number may be another query.
    if (strstr(ctx->info.vendor, "Intel"))
        add_size(t, ctx, kernel, "spill_bytes", SPILL_BYTES_INTEL);
    else
        attncl__strbuf_add(t, ", \"spill_bytes\": null");
    attncl__strbuf_add(t, "}");
}

static void add_kernels(struct strbuf *t, const attncl_context *ctx, cl_program program)
{
    cl_kernel *kernels = NULL;
    cl_uint n = 0;

    // A program that did not build has no kernels.
    if (clCreateKernelsInProgram(program, 0, NULL, &n) == CL_SUCCESS && n > 0)
        kernels = attncl__alloc_zero(n * sizeof *kernels);
    if (!kernels || clCreateKernelsInProgram(program, n, kernels, NULL) != CL_SUCCESS)
        n = 0;
    for (cl_uint i = 0; i < n; ++i) {
        attncl__strbuf_add(t, i ? ", " : "");
        add_kernel(t, ctx, kernels[i]);
        clReleaseKernel(kernels[i]);
    }
    attncl__free(kernels);
}

// Logs the line that attncl/log.h describes.  seconds < 0: loaded from the cache.
static void log_program(const attncl_context *ctx, const struct build *build, cl_program program,
                        double seconds)
{
    struct strbuf line = STRBUF_EMPTY;

    if (!attncl__log_is_wanted(ATTNCL_LOG_DEBUG))
        return;
    char *log = read_build_log(ctx, program);
    attncl__strbuf_add(&line, "program {\"file\": ");
    attncl__strbuf_add_quoted(&line, build->file);
    attncl__strbuf_add(&line, ", \"macros\": ");
    attncl__strbuf_add_quoted(&line, build->defines);
    attncl__strbuf_add(&line, ", \"options\": ");
    attncl__strbuf_add_quoted(&line, attncl__build_options(ctx));
    if (seconds < 0)
        attncl__strbuf_add(&line, ", \"build_s\": null, \"log\": ");
    else
        attncl__strbuf_add(&line, ", \"build_s\": %.6f, \"log\": ", seconds);
    attncl__strbuf_add_quoted(&line, log ? log : "");
    attncl__strbuf_add(&line, ", \"kernels\": [");
    add_kernels(&line, ctx, program);
    attncl__strbuf_add(&line, "]}");
    if (!line.failed)
        attncl__log_text(ATTNCL_LOG_DEBUG, line.data);
    attncl__strbuf_free(&line);
    attncl__free(log);
}

// Returns the first line with "error" in it, else the first line that is not blank.
static const char *find_error_line(const char *log, int *n_ret)
{
    const char *line = strstr(log, "error");

    while (line && line > log && line[-1] != '\n')
        --line;
    if (!line)
        line = log + strspn(log, " \t\r\n");
    *n_ret = (int)strcspn(line, "\r\n");
    return line;
}

// ATTNCL_DUMP_CL: writes the source and the compiler's log; only logs a failure to write.
static void dump_source(const char *directory, const struct build *build, const char *source,
                        const char *log)
{
    uint32_t hash = 2166136261u; // FNV-1a of the macros distinguishes the specialisations of a file
    for (const char *c = build->defines; *c; ++c)
        hash = (hash ^ (unsigned char)*c) * 16777619u;

    const char *name = strrchr(build->file, '/');
    struct strbuf path = STRBUF_EMPTY;
    attncl__strbuf_add(&path, "%s/%s.%08x.cl", directory, name ? name + 1 : build->file, hash);
    FILE *file = path.failed ? NULL : fopen(path.data, "wb");
    if (!file) {
        attncl__log(ATTNCL_LOG_WARN, "cannot write a kernel source into %s", directory);
    } else {
        fprintf(file, "%s\n/* Build log:\n%s\n*/\n", source, log ? log : "");
        fclose(file);
    }
    attncl__strbuf_free(&path);
}

static attncl_status compile(attncl_context *ctx, const struct build *build, const char *source,
                             cl_program *ret)
{
    attncl_status status = ATTNCL_OK;
    char *log = NULL;
    cl_int code = CL_SUCCESS;

    cl_program program = clCreateProgramWithSource(ctx->cl, 1, &source, NULL, &code);
    TRY_DONE(CL_CODE(code, "clCreateProgramWithSource"));
    attncl__object_created(OBJECT_PROGRAM);
    attncl__log(ATTNCL_LOG_DEBUG, "building %s", build->file);
    const double began = attncl__clock_seconds();
    code = clBuildProgram(program, 1, &ctx->device, attncl__build_options(ctx), NULL, NULL);
    log_program(ctx, build, program, attncl__clock_seconds() - began);
    const char *directory = attncl__context_env(ctx, ENV_DUMP_CL);
    if (directory || code == CL_BUILD_PROGRAM_FAILURE)
        log = read_build_log(ctx, program);
    if (directory)
        dump_source(directory, build, source, log);
    if (code == CL_BUILD_PROGRAM_FAILURE && log && *log) {
        int n = 0;
        const char *line = find_error_line(log, &n);
        status = FAIL(ATTNCL_ERR_COMPILE, "%s does not compile: %.*s", build->file, n, line);
    } else {
        status = CL_CODE(code, "clBuildProgram");
    }

    if (status == ATTNCL_OK) {
        *ret = program;
        program = NULL; // ownership has passed to the caller
    }

done:
    attncl__program_release(&program);
    attncl__free(log);
    return status;
}

attncl_status attncl__program_build(attncl_context *ctx, const char *file, const char *defines,
                                    cl_program *cl_ret, char **source_ret)
{
    const struct build build = {file, defines};
    attncl_status status = ATTNCL_OK;
    struct strbuf source = STRBUF_EMPTY;
    char *text = NULL;

    TRY_DONE(attncl__source_load(ctx, file, &text));
    attncl__strbuf_add(&source, "%s%s", defines, text);
    if (source.failed)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "the source of %s", file));
    // Dumping needs the compiler's log, so the compiler has to run.
    if (!attncl__context_env(ctx, ENV_DUMP_CL))
        *cl_ret = attncl__cache_load(ctx, source.data);
    if (*cl_ret) {
        attncl__object_created(OBJECT_PROGRAM);
        attncl__log(ATTNCL_LOG_DEBUG, "%s from the cache", file);
        log_program(ctx, &build, *cl_ret, -1);
        goto done;
    }
    TRY_DONE(compile(ctx, &build, source.data, cl_ret));
    attncl__log(ATTNCL_LOG_DEBUG, "%s built", file);
    if (attncl__cache_is_writable(ctx)) {
        *source_ret = source.data;
        source = STRBUF_EMPTY;
    }

done:
    attncl__strbuf_free(&source);
    attncl__free(text);
    return status;
}
