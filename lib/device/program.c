// SPDX-License-Identifier: MIT
//
// Programs: one per source file and set of macros, built once per context.
//
// The lock is not held while the driver compiles.  A thread that needs a program which another
// thread is building waits for it.

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "device/clerr.h"
#include "device/internal.h"
#include "device/program_cache.h"
#include "device/source.h"

// OpenCL C 1.2, without options that relax arithmetic.
static const char build_options[] = "-cl-std=CL1.2";

enum build_state { BUILDING, BUILT, FAILED };

struct kernel_program {
    enum build_state state;
    attncl_status status; // when FAILED
    char *message;
    char *file, *defines; // the key
    cl_program cl;
    char *source; // kept only while the program is to be stored
    struct kernel_program *next;
};

struct program_table {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct kernel_program *first;
};

attncl_status attncl__programs_create(struct program_table **ret)
{
    struct program_table *table = attncl__alloc_zero(sizeof *table);

    REQUIRE(table, ATTNCL_ERR_NO_MEMORY, "the program table");
    pthread_mutex_init(&table->lock, NULL);
    pthread_cond_init(&table->changed, NULL);
    *ret = table;
    return ATTNCL_OK;
}

static void release_cl(struct kernel_program *p)
{
    if (!p->cl)
        return;
    clReleaseProgram(p->cl);
    attncl__object_released(OBJECT_PROGRAM);
    p->cl = NULL;
}

static void program_free(struct kernel_program *p)
{
    if (!p)
        return;
    release_cl(p);
    attncl__free(p->source);
    attncl__free(p->message);
    attncl__free(p->file);
    attncl__free(p->defines);
    attncl__free(p);
}

void attncl__programs_free(struct program_table *table)
{
    if (!table)
        return;
    while (table->first) {
        struct kernel_program *p = table->first;

        table->first = p->next;
        program_free(p);
    }
    pthread_cond_destroy(&table->changed);
    pthread_mutex_destroy(&table->lock);
    attncl__free(table);
}

// The compiler's log, or NULL.
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
static void dump(const char *directory, const struct kernel_program *p, const char *source,
                 const char *log)
{
    uint32_t hash = 2166136261u; // FNV-1a of the macros tells the specialisations of a file apart
    for (const char *c = p->defines; *c; ++c)
        hash = (hash ^ (unsigned char)*c) * 16777619u;

    const char *name = strrchr(p->file, '/');
    struct strbuf path = STRBUF_EMPTY;
    attncl__strbuf_add(&path, "%s/%s.%08x.cl", directory, name ? name + 1 : p->file, hash);
    FILE *file = path.failed ? NULL : fopen(path.data, "wb");
    if (!file) {
        attncl__log(ATTNCL_LOG_WARN, "cannot write a kernel source into %s", directory);
    } else {
        fprintf(file, "%s\n/* Build log:\n%s\n*/\n", source, log ? log : "");
        fclose(file);
    }
    attncl__strbuf_free(&path);
}

static attncl_status build_source(attncl_context *ctx, struct kernel_program *p, const char *source)
{
    attncl_status status = ATTNCL_OK;
    char *log = NULL;
    cl_int code = CL_SUCCESS;

    p->cl = clCreateProgramWithSource(ctx->cl, 1, &source, NULL, &code);
    TRY_DONE(CL_CODE(code, "clCreateProgramWithSource"));
    attncl__object_created(OBJECT_PROGRAM);
    code = clBuildProgram(p->cl, 1, &ctx->device, build_options, NULL, NULL);
    log = build_log(ctx, p->cl);
    const char *directory = attncl__context_env(ctx, ENV_DUMP_CL);
    if (directory)
        dump(directory, p, source, log);
    if (code == CL_BUILD_PROGRAM_FAILURE && log && *log) {
        int n = 0;
        const char *line = error_line(log, &n);
        status = FAIL(ATTNCL_ERR_COMPILE, "%s does not compile: %.*s", p->file, n, line);
    } else {
        status = CL_CODE(code, "clBuildProgram");
    }

done:
    if (status != ATTNCL_OK)
        release_cl(p);
    attncl__free(log);
    return status;
}

static attncl_status build(attncl_context *ctx, struct kernel_program *p)
{
    attncl_status status = ATTNCL_OK;
    struct strbuf source = STRBUF_EMPTY;
    char *text = NULL;

    TRY_DONE(attncl__source_load(ctx, p->file, &text));
    attncl__strbuf_add(&source, "%s%s", p->defines, text);
    if (source.failed) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "the source of %s", p->file);
        goto done;
    }
    // To dump sources and logs, the compiler has to run.
    if (!attncl__context_env(ctx, ENV_DUMP_CL))
        p->cl = attncl__cache_load(ctx, source.data, build_options);
    if (p->cl) {
        attncl__object_created(OBJECT_PROGRAM);
        attncl__log(ATTNCL_LOG_DEBUG, "%s from the cache", p->file);
        goto done;
    }
    TRY_DONE(build_source(ctx, p, source.data));
    attncl__log(ATTNCL_LOG_DEBUG, "%s built", p->file);
    if (attncl__cache_stores(ctx)) {
        p->source = source.data;
        source = STRBUF_EMPTY;
    }

done:
    attncl__strbuf_free(&source);
    attncl__free(text);
    return status;
}

void attncl__programs_store(attncl_context *ctx)
{
    for (struct kernel_program *p = ctx->programs ? ctx->programs->first : NULL; p; p = p->next)
        if (p->state == BUILT && p->source)
            attncl__cache_store(ctx, p->source, build_options, p->cl);
}

static struct kernel_program *find(const struct program_table *table, const char *file,
                                   const char *defines)
{
    for (struct kernel_program *p = table->first; p; p = p->next)
        if (strcmp(p->file, file) == 0 && strcmp(p->defines, defines) == 0)
            return p;
    return NULL;
}

static struct kernel_program *program_new(const char *file, const char *defines)
{
    struct kernel_program *p = attncl__alloc_zero(sizeof *p);

    if (!p)
        return NULL;
    p->file = attncl__copy_text(file);
    p->defines = attncl__copy_text(defines);
    if (p->file && p->defines)
        return p;
    program_free(p);
    return NULL;
}

// Remembers a failure that would repeat; running out of memory would not.
static void settle(struct program_table *table, struct kernel_program *p, attncl_status status)
{
    char *message = status == ATTNCL_OK ? NULL : attncl__copy_text(attncl_last_error());

    pthread_mutex_lock(&table->lock);
    p->state = status == ATTNCL_OK ? BUILT : FAILED;
    p->status = status;
    attncl__free(p->message);
    p->message = message;
    pthread_cond_broadcast(&table->changed);
    pthread_mutex_unlock(&table->lock);
}

attncl_status attncl__program_get(attncl_context *ctx, const char *file, const char *defines,
                                  struct kernel_program **ret)
{
    struct program_table *table = ctx->programs;

    pthread_mutex_lock(&table->lock);
    struct kernel_program *p = find(table, file, defines);
    while (p && p->state == BUILDING)
        pthread_cond_wait(&table->changed, &table->lock);
    const bool ours = !p || (p->state == FAILED && p->status != ATTNCL_ERR_COMPILE);
    if (!p) {
        p = program_new(file, defines);
        if (p) {
            p->next = table->first;
            table->first = p;
        }
    }
    if (p && ours)
        p->state = BUILDING;
    pthread_mutex_unlock(&table->lock);

    REQUIRE(p, ATTNCL_ERR_NO_MEMORY, "the program of %s", file);
    if (ours) {
        const attncl_status status = build(ctx, p);

        settle(table, p, status);
        TRY(status);
    }
    REQUIRE(p->state == BUILT, p->status, "%s",
            p->message ? p->message : "the program did not build");
    *ret = p;
    return ATTNCL_OK;
}

attncl_status attncl__kernel_create(attncl_context *ctx, struct kernel_program *program,
                                    const char *name, cl_kernel *ret)
{
    cl_int code = CL_SUCCESS;

    (void)ctx;
    cl_kernel kernel = clCreateKernel(program->cl, name, &code);
    REQUIRE(code != CL_INVALID_KERNEL_NAME, ATTNCL_ERR_STATE, "%s has no kernel %s", program->file,
            name);
    TRY(CL_CODE(code, "clCreateKernel"));
    attncl__object_created(OBJECT_KERNEL);
    *ret = kernel;
    return ATTNCL_OK;
}

void attncl__kernel_release(cl_kernel *kernel)
{
    if (!*kernel)
        return;
    clReleaseKernel(*kernel);
    attncl__object_released(OBJECT_KERNEL);
    *kernel = NULL;
}

attncl_status attncl__kernel_limits(attncl_context *ctx, cl_kernel kernel, size_t *group_ret,
                                    size_t *local_ret, size_t *private_ret)
{
    size_t group = 0;
    cl_ulong local = 0, private = 0;

    TRY_CL(clGetKernelWorkGroupInfo(kernel, ctx->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof group,
                                    &group, NULL));
    TRY_CL(clGetKernelWorkGroupInfo(kernel, ctx->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local,
                                    &local, NULL));
    // Some drivers do not answer this query; nothing depends on it.
    if (clGetKernelWorkGroupInfo(kernel, ctx->device, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof private,
                                 &private, NULL) != CL_SUCCESS)
    private = 0;
    *group_ret = group;
    *local_ret = (size_t)local;
    *private_ret = (size_t) private;
    return ATTNCL_OK;
}
