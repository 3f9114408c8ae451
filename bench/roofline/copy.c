// SPDX-License-Identifier: MIT
//
// Memory: copies on the device, by a kernel and by the driver, and transfers from and to ordinary
// memory of the host, which is what attncl_graph_write() and attncl_graph_read() are given.

#include <string.h>

#include "base/alloc.h"
#include "device/clerr.h"
#include "families.h"
#include "launch/command_list.h"
#include "roofline/rig.h"

// Vectors that one work-item of a CPU variant copies: 4 KiB of float16.
enum { CPU_RUN = 64, GPU_GROUP = 256 };

static attncl_status open_buffers(struct case_data *t, struct rig **ret)
{
    TRY(rig_open(t, ret));
    (*ret)->n = (size_t)t->c->sizes.N;
    TRY(rig_buffer(t, RIG_FROM, true));
    TRY(rig_buffer(t, RIG_TO, false));
    t->bytes = 2.0 * sizeof(float) * (double)(*ret)->n;
    return ATTNCL_OK;
}

static attncl_status open_copy(struct case_data *t)
{
    // Whatever variant the library uses; llvmpipe runs the work-items of a work-group side by side.
    const bool gpu = !t->ctx->caps.is_cpu || t->ctx->caps.vendor == VENDOR_MESA_CPU;
    const int vw = gpu ? 4 : 16, per = gpu ? 1 : CPU_RUN;
    struct rig *r;

    // A fast GPU needs it to be long against a launch.
    REQUIRE(t->c->sizes.N < 1 << 27 || !t->ctx->caps.is_cpu, ATTNCL_ERR_UNSUPPORTED,
            "a CPU device needs no copy of this length");
    TRY(open_buffers(t, &r));
    TRY(rig_kernel(t, "roofline_copy", vw, per));
    TRY(attncl__command_list_set_arg(r->kernel, 0, sizeof(cl_mem), &r->buffer[RIG_FROM]));
    TRY(attncl__command_list_set_arg(r->kernel, 1, sizeof(cl_mem), &r->buffer[RIG_TO]));
    r->global = r->n / (size_t)(vw * per);
    r->local = gpu ? GPU_GROUP : 1;
    return ATTNCL_OK;
}

const struct family bench_copy = {.name = "copy",
                                  .suite = SUITE_DEVICE,
                                  .quantity = QUANTITY_COPY,
                                  .open = open_copy,
                                  .run = rig_enqueue,
                                  .read = rig_read_pattern,
                                  .settle = rig_settle,
                                  .close = rig_close,
                                  .check = rig_check,
                                  .sum_length = rig_no_sum};

static attncl_status open_copy_buffer(struct case_data *t)
{
    struct rig *r;

    return open_buffers(t, &r);
}

static attncl_status run_copy_buffer(struct case_data *t)
{
    const struct rig *r = t->state;

    TRY_CL(clEnqueueCopyBuffer(t->ctx->queue, r->buffer[RIG_FROM], r->buffer[RIG_TO], 0, 0,
                               r->n * sizeof(float), 0, NULL, NULL));
    return ATTNCL_OK;
}

const struct family bench_copy_buffer = {.name = "copy_buffer",
                                         .suite = SUITE_DEVICE,
                                         .quantity = QUANTITY_COPY,
                                         .open = open_copy_buffer,
                                         .run = run_copy_buffer,
                                         .read = rig_read_pattern,
                                         .settle = rig_settle,
                                         .close = rig_close,
                                         .check = rig_check,
                                         .sum_length = rig_no_sum};

static attncl_status open_transfer(struct case_data *t, bool to_device)
{
    struct rig *r;

    TRY(rig_open(t, &r));
    r->n = (size_t)t->c->sizes.N;
    r->host = attncl__alloc_array(r->n, sizeof *r->host);
    REQUIRE(r->host, ATTNCL_ERR_NO_MEMORY, "%zu floats of %s", r->n, t->c->name);
    if (to_device)
        rig_fill(r->host, 0, r->n);
    t->bytes = sizeof(float) * (double)r->n;
    return rig_buffer(t, RIG_TO, !to_device);
}

static attncl_status open_to_device(struct case_data *t)
{
    return open_transfer(t, true);
}

static attncl_status run_to_device(struct case_data *t)
{
    const struct rig *r = t->state;

    TRY_CL(clEnqueueWriteBuffer(t->ctx->queue, r->buffer[RIG_TO], CL_FALSE, 0,
                                r->n * sizeof *r->host, r->host, 0, NULL, NULL));
    return ATTNCL_OK;
}

const struct family bench_to_device = {.name = "to_device",
                                       .suite = SUITE_DEVICE,
                                       .quantity = QUANTITY_TO_DEVICE,
                                       .open = open_to_device,
                                       .run = run_to_device,
                                       .read = rig_read_pattern,
                                       .settle = rig_settle,
                                       .close = rig_close,
                                       .check = rig_check,
                                       .sum_length = rig_no_sum};

static attncl_status open_from_device(struct case_data *t)
{
    return open_transfer(t, false);
}

static attncl_status run_from_device(struct case_data *t)
{
    const struct rig *r = t->state;

    TRY_CL(clEnqueueReadBuffer(t->ctx->queue, r->buffer[RIG_TO], CL_FALSE, 0,
                               r->n * sizeof *r->host, r->host, 0, NULL, NULL));
    return ATTNCL_OK;
}

static attncl_status read_from_device(struct case_data *t)
{
    struct rig *r = t->state;

    TRY(attncl_context_finish(t->ctx));
    r->n_missed = 0;
    for (size_t i = 0; i < r->n; ++i)
        r->n_missed += r->host[i] != rig_pattern(i);
    return ATTNCL_OK;
}

const struct family bench_from_device = {.name = "from_device",
                                         .suite = SUITE_DEVICE,
                                         .quantity = QUANTITY_FROM_DEVICE,
                                         .open = open_from_device,
                                         .run = run_from_device,
                                         .read = read_from_device,
                                         .settle = rig_settle,
                                         .close = rig_close,
                                         .check = rig_check,
                                         .sum_length = rig_no_sum};
