// SPDX-License-Identifier: MIT
//
// Programs: one per source file and set of macros, built once per context.
//
// The lock is not held while the driver compiles.  A thread that needs a program which another
// thread is building waits for it.

#include <string.h>

#include "base/clock.h"
#include "device/internal.h"
#include "device/program.h"

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

static void program_free(struct kernel_program *p)
{
    if (!p)
        return;
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

void attncl__programs_store(attncl_context *ctx)
{
    const double began = attncl__seconds();
    const double budget = attncl__cache_budget(ctx, began - ctx->created_s);
    bool has_begun = false; // whatever the budget is: in the end all are stored

    for (struct kernel_program *p = ctx->programs ? ctx->programs->first : NULL; p; p = p->next) {
        if (p->state != BUILT || !p->source || (has_begun && attncl__seconds() - began > budget))
            continue;
        attncl__program_store(ctx, p->source, p->cl);
        has_begun = true;
    }
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
        const attncl_status status = attncl__program_build(ctx, file, defines, &p->cl, &p->source);

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

attncl_status attncl__kernel_arg(cl_kernel kernel, cl_uint i, struct kernel_arg *ret)
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
