// SPDX-License-Identifier: MIT
//
// The peak of FMAs.  With a = b = 1 every chain counts its steps, so that a loop
// that a driver cuts off, or a compiler shortens, is seen in the result.

#include "device/clerr.h"
#include "families.h"
#include "launch/command_list.h"
#include "roofline/rig.h"

// A run is short, about a millisecond: on a busy machine some runs then meet no other work.
enum { CHAINS = 8, CPU_ITEMS_PER_UNIT = 128, GPU_ITEMS_PER_UNIT = 8192, GPU_GROUP = 256 };

static attncl_status open_fma(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const struct device_caps *caps = &t->ctx->caps;
    const bool gpu = !caps->is_cpu; // whatever variant the library uses
    const float one = 1;
    const cl_int n = (cl_int)s->K;
    struct rig *r;

    TRY(rig_open(t, &r));
    r->n = (size_t)(gpu ? GPU_ITEMS_PER_UNIT : CPU_ITEMS_PER_UNIT) * caps->compute_units;
    r->local = gpu ? GPU_GROUP : 1;
    r->global = r->n;
    TRY(rig_buffer(t, RIG_TO, false));
    TRY(rig_kernel(t, "roofline_fma", (int)s->VW, 1));
    TRY(attncl__command_list_set_arg(r->kernel, 0, sizeof(cl_mem), &r->buffer[RIG_TO]));
    TRY(attncl__command_list_set_arg(r->kernel, 1, sizeof one, &one));
    TRY(attncl__command_list_set_arg(r->kernel, 2, sizeof one, &one));
    TRY(attncl__command_list_set_arg(r->kernel, 3, sizeof n, &n));
    t->flop = 2.0 * CHAINS * (double)s->VW * (double)s->K * (double)r->n;
    return ATTNCL_OK;
}

static attncl_status read_fma(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    struct rig *r = t->state;
    struct case_data_array *y = case_data_array_find(t, "y");

    if (!y)
        y = case_data_array_add(t, "y", 0, DIMS((int64_t)r->n));
    TRY(t->status);
    TRY(attncl__buffer_read(t->ctx, r->buffer[RIG_TO], 0, y->data, case_data_array_bytes(y)));
    r->n_missed = 0;
    for (size_t i = 0; i < r->n; ++i) {
        const double mean_start = (double)(i & 7) + (CHAINS - 1) / 2.0;
        const double want = (double)(CHAINS * s->VW) * (mean_start + (double)s->K);
        r->n_missed += ((const float *)y->data)[i] != want;
    }
    return ATTNCL_OK;
}

const struct family bench_fma = {.name = "fma",
                                 .suite = SUITE_DEVICE,
                                 .quantity = QUANTITY_FMA,
                                 .open = open_fma,
                                 .run = rig_enqueue,
                                 .read = read_fma,
                                 .settle = rig_settle,
                                 .close = rig_close,
                                 .check = rig_check,
                                 .sum_length = rig_no_sum};
