// SPDX-License-Identifier: MIT
//
// Programs: one per source file and set of macros, built once per context.
//
// The lock is not held while the driver compiles.  A thread that needs a program which another
// thread is building waits for it.  Those that a graph wants are built by several threads at once.

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "device/internal.h"
#include "device/program.h"

enum { MAX_BUILDERS = 4 };

enum build_state { IDLE, WANTED, BUILDING, BUILT, FAILED };

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
    size_t n_built; // or failed
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

static void program_free(struct kernel_program *p)
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
        program_free(p);
    }
    pthread_cond_destroy(&table->changed);
    pthread_mutex_destroy(&table->lock);
    attncl__free(table);
}

static void store(const attncl_context *ctx, struct kernel_program *p)
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
        n ? attncl__cache_budget(ctx, began - ctx->created_s, ctx->compiling_s / n) : 0;
    bool has_begun = budget < 0; // else one is stored, whatever the budget is: in the end all are

    for (struct kernel_program *p = n ? ctx->programs->first : NULL; p; p = p->next) {
        if (p->state != BUILT || !p->source ||
            (has_begun && attncl__clock_seconds() - began > budget))
            continue;
        store(ctx, p);
        has_begun = true;
    }
}

// The lock is held.  NULL: there is no memory.
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
        program_free(added);
        return NULL;
    }
    added->next = table->first;
    table->first = added;
    return added;
}

// The state is BUILDING, and this thread's.  Where the driver gives binaries at once they are stored: they outlive
// a process that is interrupted.
static void build(attncl_context *ctx, struct kernel_program *p)
{
    struct program_table *table = ctx->programs;
    const double began = attncl__clock_thread_seconds();
    const attncl_status status =
        attncl__program_build(ctx, p->file, p->defines, &p->cl, &p->source);
    const double ended = attncl__clock_thread_seconds();
    char *message = status == ATTNCL_OK ? NULL : attncl__copy_text(attncl_last_error());

    if (p->source && !ctx->caps.keeps_programs)
        store(ctx, p);
    pthread_mutex_lock(&table->lock);
    ctx->compiling_s += p->source ? ended - began : 0;
    p->state = status == ATTNCL_OK ? BUILT : FAILED;
    ++table->n_built;
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
        build(ctx, p);
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

attncl_status attncl__program_want(attncl_context *ctx, const char *file, const char *defines)
{
    struct program_table *table = ctx->programs;

    pthread_mutex_lock(&table->lock);
    struct kernel_program *p = find_or_add(table, file, defines);
    if (p && p->state == IDLE)
        p->state = WANTED;
    pthread_mutex_unlock(&table->lock);
    REQUIRE(p, ATTNCL_ERR_NO_MEMORY, "the program of %s", file);
    return ATTNCL_OK;
}

static struct kernel_program *take_wanted(struct program_table *table)
{
    pthread_mutex_lock(&table->lock);
    struct kernel_program *p = table->first;
    while (p && p->state != WANTED)
        p = p->next;
    if (p)
        p->state = BUILDING;
    pthread_mutex_unlock(&table->lock);
    return p;
}

static void *build_wanted(void *user)
{
    attncl_context *ctx = user;

    for (struct kernel_program *p; (p = take_wanted(ctx->programs));)
        build(ctx, p);
    return NULL;
}

struct progress {
    size_t n_before, total; // built when it began, and wanted then
};

static struct progress count(struct program_table *table)
{
    pthread_mutex_lock(&table->lock);
    struct progress ret = {.n_before = table->n_built};
    for (const struct kernel_program *p = table->first; p; p = p->next)
        ret.total += p->state == WANTED;
    pthread_mutex_unlock(&table->lock);
    return ret;
}

static void tell(attncl_context *ctx, const struct progress *begun, bool is_end)
{
    const size_t done = count(ctx->programs).n_before - begun->n_before;

    if (ctx->compile_progress)
        ctx->compile_progress(is_end || done > begun->total ? begun->total : done, begun->total,
                              ctx->progress_user);
}

// Signals are the application's: its own threads take them.
static int start_builders(attncl_context *ctx, int n, pthread_t *threads)
{
    sigset_t all, before;
    int started = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (started < n && pthread_create(&threads[started], NULL, build_wanted, ctx) == 0)
        ++started;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void attncl__programs_build(attncl_context *ctx)
{
    pthread_t threads[MAX_BUILDERS - 1];
    const struct progress begun = count(ctx->programs);
    const int most = begun.total < MAX_BUILDERS ? (int)begun.total : MAX_BUILDERS;

    tell(ctx, &begun, false);
    // PoCL, the driver of most CPUs, compiles one program at a time.
    const int n = ctx->caps.is_gpu ? start_builders(ctx, most - 1, threads) : 0;
    for (struct kernel_program *p; (p = take_wanted(ctx->programs));) {
        build(ctx, p);
        tell(ctx, &begun, false);
    }
    for (int i = 0; i < n; ++i)
        pthread_join(threads[i], NULL);
    if (begun.total > 0)
        tell(ctx, &begun, true);
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
