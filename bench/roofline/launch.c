// SPDX-License-Identifier: MIT
//
// What a kernel costs that does nothing: alone with the wait for it, or in a long queue.  The sizes
// say how many are enqueued before the wait; times are per kernel.

#include "device/clerr.h"
#include "families.h"
#include "launch/command_list.h"
#include "roofline/rig.h"

static attncl_status open_launch(struct case_data *t)
{
    const cl_int nothing = 0;
    struct rig *r;

    TRY(rig_open(t, &r));
    r->n = r->global = r->local = 1;
    t->repeats = (size_t)t->c->sizes.N;
    TRY(rig_buffer(t, RIG_TO, true));
    TRY(rig_kernel(t, "roofline_launch", 1, 1));
    TRY(attncl__command_list_set_arg(r->kernel, 0, sizeof(cl_mem), &r->buffer[RIG_TO]));
    TRY(attncl__command_list_set_arg(r->kernel, 1, sizeof nothing, &nothing));
    return ATTNCL_OK;
}

static attncl_status run_launch(struct case_data *t)
{
    for (size_t i = 0; i < t->repeats; ++i)
        TRY(rig_enqueue(t));
    return ATTNCL_OK;
}

const struct family bench_launch = {.name = "launch",
                                    .suite = SUITE_DEVICE,
                                    .quantity = QUANTITY_LAUNCH,
                                    .open = open_launch,
                                    .run = run_launch,
                                    .read = rig_read_pattern,
                                    .settle = rig_settle,
                                    .close = rig_close,
                                    .check = rig_check,
                                    .sum_length = rig_no_sum};
