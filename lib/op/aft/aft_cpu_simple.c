// SPDX-License-Identifier: MIT
//
// Attention-free mixing without biases and mask (AFT-simple), CPU variant: block sums, scan, results.  Nothing is packed:
// a row needs no source but as part of a sum (cl/aft/aft_cpu_simple.cl).

#include "op/aft/aft_channel_block.h"

static struct kspec simple_spec(const struct aft_channel_block *s, const char *kernel)
{
    struct kspec spec = attncl__aft_spec(s->p, "aft/aft_cpu_simple.cl", kernel);

    kspec_int(&spec, "ROWS", AFT_SIMPLE_ROWS);
    kspec_int(&spec, "GROUP", AFT_SIMPLE_GROUP);
    kspec_int(&spec, "BACKWARD", s->backward);
    kspec_int(&spec, "CAUSAL", s->causal != 0);
    return spec;
}

attncl_status attncl__aft_cpu_simple(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    const struct kspec sums = simple_spec(s, "aft_cpu_simple_sums"),
                       rows = simple_spec(s, "aft_cpu_simple_rows");
    const int64_t groups = ceil_div(s->lanes, AFT_SIMPLE_GROUP), blocks = p->blocks - 1;
    struct aft_args args = {.n = 0};

    attncl__aft_put_sources(&args, s);
    attncl__aft_put(&args, ARGS(arg_mem(s->scratch), arg_i64(p->lane_floats), arg_i64(p->before_at),
                                AFT_RANGE(s)));
    TRY(attncl__launch(l, &sums, grid_2d(p->blocks, groups, 1, 1), args.arg, args.n));
    TRY(attncl__aft_scan(l, s));

    args.n = 0;
    attncl__aft_put_targets(&args, s);
    attncl__aft_put_sources(&args, s);
    attncl__aft_put(&args, ARGS(arg_mem(s->scratch), arg_i64(p->lane_floats),
                                arg_i64(s->causal < 0 ? p->after_at : p->before_at),
                                arg_i32(blocks), AFT_RANGE(s)));
    return attncl__launch(l, &rows, grid_2d(blocks, groups, 1, 1), args.arg, args.n);
}
