// SPDX-License-Identifier: MIT
//
// Attention-free mixing without biases and mask (AFT-simple, cl/aft/aft_simple.cl): block sums,
// scan, results.  A row needs its sources only as part of a sum, so nothing is packed.

#include "op/aft/aft.h"

static struct kspec simple_spec(const struct aft_tiling *p, const char *kernel, bool backward)
{
    struct kspec spec = attncl__aft_spec(p, "aft/aft_simple.cl", kernel);

    kspec_int(&spec, "BACKWARD", backward);
    kspec_int(&spec, "CAUSAL", p->variant.causal);
    return spec;
}

void attncl__aft_simple_fit_work_groups(struct launcher *l, struct aft_tiling *p, bool backward)
{
    enum { MIN_GROUP = 8 };
    static const char *const kernels[] = {"aft_simple_sums", "aft_simple_rows"};

    for (int i = 0; i < 2 && !p->cpu; ++i) {
        struct kspec spec = simple_spec(p, kernels[i], backward);
        while (p->local > MIN_GROUP && !attncl__kernel_fits(l, &spec, p->local, false)) {
            p->local /= 2;
            spec = simple_spec(p, kernels[i], backward);
        }
    }
}

attncl_status attncl__aft_launch_simple(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    const struct kspec sums = simple_spec(p, "aft_simple_sums", s->backward),
                       rows = simple_spec(p, "aft_simple_rows", s->backward);
    const struct aft_sums_layout at = attncl__aft_sums_layout(s);
    const int64_t group_lanes = (int64_t)p->local * (p->cpu ? AFT_SIMPLE_GROUP : 1);
    const int64_t groups = ceil_div(s->lanes, group_lanes), blocks = p->blocks - 1;
    struct arg_list args = {.n = 0};

    attncl__aft_add_source_args(&args, s);
    arg_list_add(&args, ARGS(arg_mem(s->scratch), arg_i64(at.lane_stride), arg_i64(at.before),
                             arg_i32(at.step), AFT_RANGE(s)));
    TRY(attncl__launch(l, &sums, grid_2d(groups, p->blocks, p->local, 1), args.arg, args.n));
    TRY(attncl__aft_launch_scan(l, s));

    args.n = 0;
    attncl__aft_add_target_args(&args, s);
    attncl__aft_add_source_args(&args, s);
    arg_list_add(&args, ARGS(arg_mem(s->scratch), arg_i64(at.lane_stride),
                             arg_i64(s->causal < 0 ? at.after : at.before), arg_i32(at.step),
                             arg_i32(blocks), AFT_RANGE(s)));
    return attncl__launch(l, &rows, grid_2d(groups, blocks, p->local, 1), args.arg, args.n);
}
