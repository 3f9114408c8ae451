// SPDX-License-Identifier: MIT
//
// Attention-free mixing, CPU variant: sources packed by lanes of channels, scan, mix
// (cl/aft/aft_cpu_*.cl).

#include "op/aft/aft_channel_block.h"

attncl_status attncl__aft_sources(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    struct kspec spec = attncl__aft_spec(p, "aft/aft_cpu_sources.cl", "aft_cpu_sources");
    struct aft_args args = {.n = 0};

    kspec_int(&spec, "ROWS", AFT_ROWS);
    kspec_int(&spec, "PANEL", AFT_PANEL);
    kspec_int(&spec, "GROUP", AFT_SOURCE_GROUP);
    kspec_int(&spec, "BACKWARD", s->backward);
    attncl__aft_put_sources(&args, s);
    attncl__aft_put(&args, ARGS(arg_mem(s->scratch), arg_i64(p->lane_floats), arg_i64(p->ranges_at),
                                arg_i64(p->before_at), AFT_RANGE(s)));
    return attncl__launch(l, &spec, grid_2d(p->panels, ceil_div(s->lanes, AFT_SOURCE_GROUP), 1, 1),
                          args.arg, args.n);
}

attncl_status attncl__aft_cpu(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    struct kspec spec = attncl__aft_spec(p, "aft/aft_cpu_mix.cl", "aft_cpu_mix");
    struct aft_args args = {.n = 0};

    TRY(attncl__aft_sources(l, s));
    if (!p->masked)
        TRY(attncl__aft_scan(l, s));
    kspec_int(&spec, "ROWS", AFT_ROWS);
    kspec_int(&spec, "PANEL", AFT_PANEL);
    kspec_int(&spec, "BACKWARD", s->backward);
    kspec_int(&spec, "MASKED", p->masked);
    attncl__aft_put_targets(&args, s);
    attncl__aft_put_sources(&args, s);
    attncl__aft_put(&args, ARGS(arg_mem(s->scratch), arg_i64(p->lane_floats), arg_i64(p->ranges_at),
                                arg_i64(p->before_at), arg_i64(p->after_at), AFT_BIAS(s),
                                AFT_RANGE(s), arg_i32(p->window), arg_i32(s->causal),
                                arg_i32(p->group), arg_i32(p->segment), arg_local(p->weights_bytes),
                                arg_local(p->spill_bytes)));
    return attncl__launch(l, &spec, grid_2d(p->blocks, ceil_div(s->lanes, p->group), 1, 1),
                          args.arg, args.n);
}
