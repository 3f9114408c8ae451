// SPDX-License-Identifier: MIT
//
// What bounds a device: memory, arithmetic, launches.
//
// Memory: copies on the device, by a kernel and by the driver, and transfers from and to ordinary
// memory of the host, which is what attncl_graph_write() and attncl_graph_read() are given.
// Arithmetic: the peak of FMAs.  With a = b = 1 every chain counts its steps, so that a loop that a
// driver cuts off, or a compiler shortens, is seen in the result.
// Launches: what a kernel costs that does nothing, alone with the wait for it, or in a long queue.

#include <stdio.h>

#include "base/alloc.h"
#include "cases/define.h"
#include "device/clerr.h"
#include "device/context.h"
#include "device/program.h"
#include "launch/command_list.h"

// What these cases share: their kernel, two buffers, and a pattern that shows whether every element
// arrived.  A rig is the state of its case_data.
enum { RIG_FROM, RIG_TO, N_RIG_BUFFERS };

struct rig {
    cl_program program;
    cl_kernel kernel;
    size_t global, local; // work-items
    cl_mem buffer[N_RIG_BUFFERS];
    float *host;     // of transfers
    size_t n;        // floats
    size_t n_missed; // elements that the last read found wrong
};

// roofline.cl, embedded by the build.
extern const struct embedded_source bench_sources[];

// An empty rig as t->state; rig_close() releases it with all it holds.
static attncl_status rig_open(struct case_data *t, struct rig **ret)
{
    struct rig *r = attncl__alloc_zero(sizeof *r);

    REQUIRE(r, ATTNCL_ERR_NO_MEMORY, "state of %s", t->c->name);
    t->state = r;
    *ret = r;
    return ATTNCL_OK;
}

static void rig_close(struct case_data *t)
{
    struct rig *r = t->state;

    if (!r)
        return;
    for (int i = 0; i < N_RIG_BUFFERS; ++i)
        if (r->buffer[i])
            clReleaseMemObject(r->buffer[i]);
    if (r->kernel)
        clReleaseKernel(r->kernel);
    if (r->program)
        clReleaseProgram(r->program);
    attncl__free(r->host);
    attncl__free(r);
    t->state = NULL;
}

// Builds roofline.cl with these macros and takes one kernel of it.
static attncl_status rig_kernel(struct case_data *t, const char *name, int vw, int per)
{
    struct rig *r = t->state;
    char options[64];
    const char *text = (const char *)bench_sources[0].bytes;
    cl_int code;

    snprintf(options, sizeof options, "-cl-std=CL1.2 -DVW=%d -DPER=%d", vw, per);
    r->program = clCreateProgramWithSource(t->ctx->cl, 1, &text, NULL, &code);
    TRY(CL_CODE(code, "clCreateProgramWithSource"));
    TRY_CL(clBuildProgram(r->program, 1, &t->ctx->device, options, NULL, NULL));
    r->kernel = clCreateKernel(r->program, name, &code);
    return CL_CODE(code, "clCreateKernel");
}

// Element i of the pattern: exact in float.
static float rig_pattern(size_t i)
{
    return (float)((uint32_t)i * 2654435761u >> 8);
}

static void rig_fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        x[i] = rig_pattern(i);
}

static void count_missed(struct rig *r, const float *x)
{
    r->n_missed = 0;
    for (size_t i = 0; i < r->n; ++i)
        r->n_missed += x[i] != rig_pattern(i);
}

// The pattern into the buffer, or into n_missed how many elements differ from it there.
static attncl_status move_pattern(struct case_data *t, cl_mem mem, bool write)
{
    struct rig *r = t->state;
    attncl_status status = ATTNCL_OK;
    float *x = attncl__alloc_array(r->n, sizeof *x);

    REQUIRE(x, ATTNCL_ERR_NO_MEMORY, "%zu floats of %s", r->n, t->c->name);
    if (write) {
        rig_fill(x, r->n);
        TRY_DONE(attncl__buffer_write(t->ctx, mem, 0, x, r->n * sizeof *x));
    } else {
        TRY_DONE(attncl__buffer_read(t->ctx, mem, 0, x, r->n * sizeof *x));
        count_missed(r, x);
    }

done:
    attncl__free(x);
    return status;
}

// A buffer of r->n floats that holds the pattern, or -1 everywhere.
static attncl_status rig_buffer(struct case_data *t, int which, bool pattern)
{
    struct rig *r = t->state;
    const float minus_one = -1;
    const size_t bytes = r->n * sizeof(float);
    cl_int code;

    REQUIRE(bytes <= t->ctx->caps.max_buffer_bytes && 4 * bytes <= t->ctx->caps.global_bytes,
            ATTNCL_ERR_DEVICE_MEMORY, "two buffers of %zu bytes are more than half of the memory",
            bytes);
    r->buffer[which] = clCreateBuffer(t->ctx->cl, CL_MEM_READ_WRITE, bytes, NULL, &code);
    TRY(CL_CODE(code, "clCreateBuffer"));
    if (pattern)
        return move_pattern(t, r->buffer[which], true);
    TRY_CL(clEnqueueFillBuffer(t->ctx->queue, r->buffer[which], &minus_one, sizeof minus_one, 0,
                               bytes, 0, NULL, NULL));
    return attncl_context_finish(t->ctx);
}

static attncl_status rig_enqueue(struct case_data *t)
{
    const struct rig *r = t->state;

    TRY_CL(clEnqueueNDRangeKernel(t->ctx->queue, r->kernel, 1, NULL, &r->global, &r->local, 0, NULL,
                                  NULL));
    return ATTNCL_OK;
}

static attncl_status rig_read_pattern(struct case_data *t)
{
    const struct rig *r = t->state;

    return move_pattern(t, r->buffer[RIG_TO], false);
}

static void rig_check(const struct case_data *t, const struct sizes *s, struct check *c)
{
    const struct rig *r = t->state;

    (void)s;
    c->n = (int64_t)r->n;
    c->magnitude = 1;
    c->difference = (double)r->n_missed;
}

// Waits by reading one element.
static attncl_status rig_settle(struct case_data *t)
{
    const struct rig *r = t->state;
    float one;

    return attncl__buffer_read(t->ctx, r->buffer[RIG_TO], 0, &one, sizeof one);
}

#define LIMIT(NAME, QUANTITY, OPEN, RUN, READ)                                                     \
    FAMILY(NAME, .suite = SUITE_DEVICE, .quantity = (QUANTITY), .open = (OPEN), .run = (RUN),      \
           .read = (READ), .settle = rig_settle, .close = rig_close, .check = rig_check)

// Vectors that one work-item of a CPU variant copies: 4 KiB of float16.
enum { CPU_RUN = 64, GPU_GROUP = 256 };

static attncl_status open_buffers(struct case_data *t)
{
    struct rig *r = NULL;

    TRY(rig_open(t, &r));
    r->n = (size_t)t->c->sizes.N;
    TRY(rig_buffer(t, RIG_FROM, true));
    TRY(rig_buffer(t, RIG_TO, false));
    t->bytes = 2.0 * sizeof(float) * (double)r->n;
    return ATTNCL_OK;
}

static attncl_status open_copy(struct case_data *t)
{
    // Whatever variant the library uses; llvmpipe runs the work-items of a work-group side by side.
    const bool gpu = !t->ctx->caps.is_cpu || t->ctx->caps.vendor == VENDOR_MESA_CPU;
    const int vw = gpu ? 4 : 16, per = gpu ? 1 : CPU_RUN;

    // A fast GPU needs it to be long against a launch.
    REQUIRE(t->c->sizes.N < 1 << 27 || !t->ctx->caps.is_cpu, ATTNCL_ERR_UNSUPPORTED,
            "a CPU device needs no copy of this length");
    TRY(open_buffers(t));
    struct rig *r = t->state;
    TRY(rig_kernel(t, "roofline_copy", vw, per));
    TRY_CL(clSetKernelArg(r->kernel, 0, sizeof(cl_mem), &r->buffer[RIG_FROM]));
    TRY_CL(clSetKernelArg(r->kernel, 1, sizeof(cl_mem), &r->buffer[RIG_TO]));
    r->global = r->n / (size_t)(vw * per);
    r->local = gpu ? GPU_GROUP : 1;
    return ATTNCL_OK;
}

LIMIT(copy, QUANTITY_COPY, open_copy, rig_enqueue, rig_read_pattern)

static attncl_status run_copy_buffer(struct case_data *t)
{
    const struct rig *r = t->state;

    TRY_CL(clEnqueueCopyBuffer(t->ctx->queue, r->buffer[RIG_FROM], r->buffer[RIG_TO], 0, 0,
                               r->n * sizeof(float), 0, NULL, NULL));
    return ATTNCL_OK;
}

LIMIT(copy_buffer, QUANTITY_COPY, open_buffers, run_copy_buffer, rig_read_pattern)

static bool to_device(const struct case_data *t)
{
    return t->c->family->quantity == QUANTITY_TO_DEVICE;
}

static attncl_status open_transfer(struct case_data *t)
{
    struct rig *r = NULL;

    TRY(rig_open(t, &r));
    r->n = (size_t)t->c->sizes.N;
    r->host = attncl__alloc_array(r->n, sizeof *r->host);
    REQUIRE(r->host, ATTNCL_ERR_NO_MEMORY, "%zu floats of %s", r->n, t->c->name);
    if (to_device(t))
        rig_fill(r->host, r->n);
    t->bytes = sizeof(float) * (double)r->n;
    return rig_buffer(t, RIG_TO, !to_device(t));
}

static attncl_status run_transfer(struct case_data *t)
{
    const struct rig *r = t->state;
    const size_t bytes = r->n * sizeof *r->host;

    if (to_device(t))
        TRY_CL(clEnqueueWriteBuffer(t->ctx->queue, r->buffer[RIG_TO], CL_FALSE, 0, bytes, r->host,
                                    0, NULL, NULL));
    else
        TRY_CL(clEnqueueReadBuffer(t->ctx->queue, r->buffer[RIG_TO], CL_FALSE, 0, bytes, r->host, 0,
                                   NULL, NULL));
    return ATTNCL_OK;
}

static attncl_status read_from_device(struct case_data *t)
{
    struct rig *r = t->state;

    TRY(attncl_context_finish(t->ctx));
    count_missed(r, r->host);
    return ATTNCL_OK;
}

LIMIT(to_device, QUANTITY_TO_DEVICE, open_transfer, run_transfer, rig_read_pattern)
LIMIT(from_device, QUANTITY_FROM_DEVICE, open_transfer, run_transfer, read_from_device)

// A run is short, about a millisecond: on a busy machine some runs then meet no other work.
enum { CHAINS = 8, CPU_ITEMS_PER_UNIT = 128, GPU_ITEMS_PER_UNIT = 8192 };

static attncl_status open_fma(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const struct device_caps *caps = &t->ctx->caps;
    const bool gpu = !caps->is_cpu; // whatever variant the library uses
    const float one = 1;
    const cl_int n = (cl_int)s->K;
    struct rig *r = NULL;

    TRY(rig_open(t, &r));
    r->n = (size_t)(gpu ? GPU_ITEMS_PER_UNIT : CPU_ITEMS_PER_UNIT) * caps->compute_units;
    r->local = gpu ? GPU_GROUP : 1;
    r->global = r->n;
    TRY(rig_buffer(t, RIG_TO, false));
    TRY(rig_kernel(t, "roofline_fma", (int)s->VW, 1));
    TRY_CL(clSetKernelArg(r->kernel, 0, sizeof(cl_mem), &r->buffer[RIG_TO]));
    TRY_CL(clSetKernelArg(r->kernel, 1, sizeof one, &one));
    TRY_CL(clSetKernelArg(r->kernel, 2, sizeof one, &one));
    TRY_CL(clSetKernelArg(r->kernel, 3, sizeof n, &n));
    t->flop = 2.0 * CHAINS * (double)s->VW * (double)s->K * (double)r->n;
    return ATTNCL_OK;
}

static attncl_status read_fma(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    struct rig *r = t->state;
    struct case_array *y = case_array_find(t, "y");

    if (!y)
        y = case_array_add(t, "y", 0, DIMS((int64_t)r->n));
    TRY(t->status);
    TRY(attncl__buffer_read(t->ctx, r->buffer[RIG_TO], 0, y->data, case_array_bytes(y)));
    r->n_missed = 0;
    for (size_t i = 0; i < r->n; ++i) {
        const double mean_start = (double)(i & 7) + (CHAINS - 1) / 2.0;
        const double want = (double)(CHAINS * s->VW) * (mean_start + (double)s->K);
        r->n_missed += ((const float *)y->data)[i] != want;
    }
    return ATTNCL_OK;
}

LIMIT(fma, QUANTITY_FMA, open_fma, rig_enqueue, read_fma)

// Sizes say how many are enqueued before the wait; times are per kernel.
static attncl_status open_launch(struct case_data *t)
{
    const cl_int nothing = 0;
    struct rig *r = NULL;

    TRY(rig_open(t, &r));
    r->n = r->global = r->local = 1;
    t->repeats = (size_t)t->c->sizes.N;
    TRY(rig_buffer(t, RIG_TO, true));
    TRY(rig_kernel(t, "roofline_launch", 1, 1));
    TRY_CL(clSetKernelArg(r->kernel, 0, sizeof(cl_mem), &r->buffer[RIG_TO]));
    TRY_CL(clSetKernelArg(r->kernel, 1, sizeof nothing, &nothing));
    return ATTNCL_OK;
}

static attncl_status run_launch(struct case_data *t)
{
    for (size_t i = 0; i < t->repeats; ++i)
        TRY(rig_enqueue(t));
    return ATTNCL_OK;
}

LIMIT(launch, QUANTITY_LAUNCH, open_launch, run_launch, rig_read_pattern)
