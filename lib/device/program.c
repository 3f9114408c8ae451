// SPDX-License-Identifier: MIT
//
// Programs, one per source file and set of macros, built once per context; and their kernels.
//
// The lock is not held while the driver compiles.  A thread that needs a program which another thread
// is building waits for it.  Programs that a graph requests are built by several threads at once.

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "device/internal.h"
#include "device/program.h"

enum { MAX_BUILDERS = 4 };

enum build_state { IDLE, REQUESTED, BUILDING, BUILT, FAILED };

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
    size_t n_done; // built or failed
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

static void free_program(struct kernel_program *p)
{
    attncl__program_release(&p->cl);
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
        free_program(p);
    }
    pthread_cond_destroy(&table->changed);
    pthread_mutex_destroy(&table->lock);
    attncl__free(table);
}

static void store_program(const attncl_context *ctx, struct kernel_program *p)
{
    attncl__cache_store(ctx, p->source, p->cl);
    attncl__free(p->source);
    p->source = NULL;
}

void attncl__programs_store(attncl_context *ctx)
{
    const double began = attncl__clock_seconds();
    int n = 0;

    for (const struct kernel_program *p = ctx->programs ? ctx->programs->first : NULL; p;
         p = p->next)
        n += p->source != NULL;
    const double budget =
        n ? attncl__cache_compute_budget(ctx, began - ctx->created_s, ctx->compiling_s / n) : 0;
    // Unless the budget is negative, at least one program is stored, so that later contexts store the rest.
    bool has_stored = budget < 0;

    for (struct kernel_program *p = n ? ctx->programs->first : NULL; p; p = p->next) {
        if (p->state != BUILT || !p->source ||
            (has_stored && attncl__clock_seconds() - began > budget))
            continue;
        store_program(ctx, p);
        has_stored = true;
    }
}

// The caller holds the lock.  Returns NULL when memory is short.
static struct kernel_program *find_or_add(struct program_table *table, const char *file,
                                          const char *defines)
{
    for (struct kernel_program *p = table->first; p; p = p->next)
        if (strcmp(p->file, file) == 0 && strcmp(p->defines, defines) == 0)
            return p;
    struct kernel_program *added = attncl__alloc_zero(sizeof *added);
    if (!added)
        return NULL;
    added->file = attncl__copy_text(file);
    added->defines = attncl__copy_text(defines);
    if (!added->file || !added->defines) {
        free_program(added);
        return NULL;
    }
    added->next = table->first;
    table->first = added;
    return added;
}

// Builds a program that this thread has set to BUILDING.  Stores the binary at once, if the driver returns it quickly,
// so that it survives an interrupted process.
static void build_program(attncl_context *ctx, struct kernel_program *p)
{
    struct program_table *table = ctx->programs;
    const double began = attncl__clock_thread_seconds();
    const attncl_status status =
        attncl__program_build(ctx, p->file, p->defines, &p->cl, &p->source);
    const double ended = attncl__clock_thread_seconds();
    char *message = status == ATTNCL_OK ? NULL : attncl__copy_text(attncl_last_error());

    if (p->source && !ctx->caps.has_own_cache)
        store_program(ctx, p);
    pthread_mutex_lock(&table->lock);
    ctx->compiling_s += p->source ? ended - began : 0;
    p->state = status == ATTNCL_OK ? BUILT : FAILED;
    ++table->n_done;
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
    struct kernel_program *p = find_or_add(table, file, defines);
    while (p && p->state == BUILDING)
        pthread_cond_wait(&table->changed, &table->lock);
    const bool ours = p && p->state != BUILT && p->state != FAILED;
    if (ours)
        p->state = BUILDING;
    pthread_mutex_unlock(&table->lock);

    REQUIRE(p, ATTNCL_ERR_NO_MEMORY, "the program of %s", file);
    if (ours)
        build_program(ctx, p);
    pthread_mutex_lock(&table->lock); // another thread may replace the message
    const attncl_status status =
        p->state == BUILT
            ? ATTNCL_OK
            : FAIL(p->status, "%s", p->message ? p->message : "the program did not build");
    pthread_mutex_unlock(&table->lock);
    TRY(status);
    *ret = p;
    return ATTNCL_OK;
}

attncl_status attncl__program_request(attncl_context *ctx, const char *file, const char *defines)
{
    struct program_table *table = ctx->programs;

    pthread_mutex_lock(&table->lock);
    struct kernel_program *p = find_or_add(table, file, defines);
    if (p && p->state == IDLE)
        p->state = REQUESTED;
    pthread_mutex_unlock(&table->lock);
    REQUIRE(p, ATTNCL_ERR_NO_MEMORY, "the program of %s", file);
    return ATTNCL_OK;
}

static struct kernel_program *take_requested(struct program_table *table)
{
    pthread_mutex_lock(&table->lock);
    struct kernel_program *p = table->first;
    while (p && p->state != REQUESTED)
        p = p->next;
    if (p)
        p->state = BUILDING;
    pthread_mutex_unlock(&table->lock);
    return p;
}

static void *build_requested(void *user)
{
    attncl_context *ctx = user;

    for (struct kernel_program *p; (p = take_requested(ctx->programs));)
        build_program(ctx, p);
    return NULL;
}

struct progress {
    size_t n_done, total; // programs done so far; programs requested
};

static struct progress count_programs(struct program_table *table)
{
    pthread_mutex_lock(&table->lock);
    struct progress ret = {.n_done = table->n_done};
    for (const struct kernel_program *p = table->first; p; p = p->next)
        ret.total += p->state == REQUESTED;
    pthread_mutex_unlock(&table->lock);
    return ret;
}

static void report_progress(attncl_context *ctx, const struct progress *start, bool is_end)
{
    const size_t done = count_programs(ctx->programs).n_done - start->n_done;

    if (ctx->compile_progress)
        ctx->compile_progress(is_end || done > start->total ? start->total : done, start->total,
                              ctx->progress_user);
}

// Blocks signals in the new threads, so that the application's own threads receive them.
static int start_builders(attncl_context *ctx, int n, pthread_t *threads)
{
    sigset_t all, before;
    int started = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (started < n && pthread_create(&threads[started], NULL, build_requested, ctx) == 0)
        ++started;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void attncl__programs_build(attncl_context *ctx)
{
    pthread_t threads[MAX_BUILDERS - 1];
    const struct progress start = count_programs(ctx->programs);
    const int max_builders = start.total < MAX_BUILDERS ? (int)start.total : MAX_BUILDERS;

    report_progress(ctx, &start, false);
    // PoCL, the driver of most CPUs, compiles one program at a time.
    const int n = ctx->caps.is_gpu ? start_builders(ctx, max_builders - 1, threads) : 0;
    for (struct kernel_program *p; (p = take_requested(ctx->programs));) {
        build_program(ctx, p);
        report_progress(ctx, &start, false);
    }
    for (int i = 0; i < n; ++i)
        pthread_join(threads[i], NULL);
    if (start.total > 0)
        report_progress(ctx, &start, true);
}

void attncl__programs_retry(attncl_context *ctx)
{
    struct program_table *table = ctx->programs;

    pthread_mutex_lock(&table->lock);
    for (struct kernel_program *p = table->first; p; p = p->next)
        if (p->state == FAILED)
            p->state = IDLE;
    pthread_mutex_unlock(&table->lock);
}

// -- kernels

attncl_status attncl__kernel_create(struct kernel_program *program, const char *name,
                                    cl_kernel *ret)
{
    cl_int code = CL_SUCCESS;

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

attncl_status attncl__device_max_argument_bytes(attncl_context *ctx, size_t *ret)
{
    return DEVICE_QUERY(ctx->device, CL_DEVICE_MAX_PARAMETER_SIZE, ret);
}

attncl_status attncl__kernel_query_arg(cl_kernel kernel, cl_uint i, struct kernel_arg *ret)
{
    cl_kernel_arg_address_qualifier place = CL_KERNEL_ARG_ADDRESS_PRIVATE;

    const cl_int code =
        clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof place, &place, NULL);
    if (code == CL_KERNEL_ARG_INFO_NOT_AVAILABLE)
        return ATTNCL_OK;
    TRY(CL_CODE(code, "clGetKernelArgInfo"));
    if (place == CL_KERNEL_ARG_ADDRESS_PRIVATE)
        TRY_CL(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof ret->kind, ret->kind,
                                  NULL));
    else
        strcpy(ret->kind, place == CL_KERNEL_ARG_ADDRESS_LOCAL ? "local memory" : "memory");
    TRY_CL(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_NAME, sizeof ret->name, ret->name, NULL));
    return ATTNCL_OK;
}

attncl_status attncl__kernel_query_limits(attncl_context *ctx, cl_kernel kernel, size_t *group_ret,
                                          size_t *local_ret, size_t *private_ret)
{
    size_t group = 0;
    cl_ulong local = 0, spilled = 0;

    TRY_CL(clGetKernelWorkGroupInfo(kernel, ctx->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof group,
                                    &group, NULL));
    TRY_CL(clGetKernelWorkGroupInfo(kernel, ctx->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local,
                                    &local, NULL));
    const cl_int code = clGetKernelWorkGroupInfo(kernel, ctx->device, CL_KERNEL_PRIVATE_MEM_SIZE,
                                                 sizeof spilled, &spilled, NULL);
    if (attncl__cl_is_refusal(code)) // some drivers do not answer this query
        spilled = 0;
    else
        TRY(CL_CODE(code, "clGetKernelWorkGroupInfo"));
    *group_ret = group;
    *local_ret = (size_t)local;
    *private_ret = (size_t)spilled;
    return ATTNCL_OK;
}
