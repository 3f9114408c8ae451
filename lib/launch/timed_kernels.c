// SPDX-License-Identifier: MIT
//
// Kernels of one work-group, long ones enough to overlap, timed in command lists.

#include "launch/timed_kernels.h"

enum { SUMS = 3 }; // of clip_squares_fwd

attncl_status attncl__timed_kernels_open(struct timed_kernels *t, attncl_context *ctx,
                                         const struct device_caps *caps)
{
    static const float zeros[TIMED_LONG_COUNT];

    *t = (struct timed_kernels){.ctx = ctx, .caps = *caps};
    t->in.bytes = sizeof zeros;
    TRY(attncl__buffer_create(ctx, t->in.bytes, &t->in.mem));
    TRY(attncl__buffer_write(ctx, t->in.mem, 0, zeros, t->in.bytes));
    for (int i = 0; i < 2; ++i) {
        t->out[i].bytes = SUMS * sizeof(float);
        TRY(attncl__buffer_create(ctx, t->out[i].bytes, &t->out[i].mem));
    }
    return ATTNCL_OK;
}

void attncl__timed_kernels_close(struct timed_kernels *t)
{
    for (int i = 0; i < 2; ++i)
        attncl__buffer_release(&t->out[i].mem);
    attncl__buffer_release(&t->in.mem);
}

attncl_status attncl__timed_kernels_append(struct timed_kernels *t, struct command_list *list,
                                           int queue, int64_t count)
{
    const size_t group = t->caps.max_group < TIMED_GROUP ? t->caps.max_group : TIMED_GROUP;
    struct launcher l = {.caps = &t->caps, .command_list = list};
    struct kspec spec = kspec_begin("train/clip.cl", "clip_squares_fwd");

    kspec_set_vw_ls(&spec, 1, group);
    list->queue = queue;
    return attncl__launch(&l, &spec, grid_1d(1, group),
                          ARGS(arg_mem((struct span){&t->in}),
                               arg_mem((struct span){&t->out[queue]}), arg_i64(count),
                               arg_i32(count), arg_i32(1)));
}

static void sort(double x[N_TIMED_RUNS])
{
    for (int i = 1; i < N_TIMED_RUNS; ++i)
        for (int j = i; j > 0 && x[j] < x[j - 1]; --j) {
            const double larger = x[j - 1];
            x[j - 1] = x[j];
            x[j] = larger;
        }
}

attncl_status attncl__timed_kernels_time(struct command_list *lists, int n_lists,
                                         double seconds[][N_TIMED_RUNS])
{
    double first = 0;

    for (int list = 0; list < n_lists; ++list) // a driver may compile at a kernel's first launch
        TRY(attncl__command_list_time(&lists[list], &first));
    for (int i = 0; i < N_TIMED_RUNS; ++i)
        for (int list = 0; list < n_lists; ++list)
            TRY(attncl__command_list_time(&lists[list], &seconds[list][i]));
    for (int list = 0; list < n_lists; ++list)
        sort(seconds[list]);
    return ATTNCL_OK;
}
