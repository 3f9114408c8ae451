// SPDX-License-Identifier: MIT
//
// Attention-free mixing, CPU variant (cl/aft/aft_cpu_*.cl): pack the sources by lanes of channels,
// scan, pack the weights once for all channels, mix.  Weights too large for the scratch are packed
// for some target rows at a time.

#include "op/aft/aft.h"

attncl_status attncl__aft_launch_packing(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    struct kspec spec = attncl__aft_spec(p, "aft/aft_cpu_sources.cl", "aft_cpu_sources");
    struct arg_list args = {.n = 0};

    kspec_int(&spec, "BACKWARD", s->backward);
    attncl__aft_add_source_args(&args, s);
    arg_list_add(&args, ARGS(arg_mem(s->scratch), arg_i64(p->lane_floats), arg_i64(p->ranges_at),
                             arg_i64(p->before_at), AFT_RANGE(s)));
    return attncl__launch(l, &spec, grid_2d(p->panels, ceil_div(s->lanes, AFT_SOURCE_GROUP), 1, 1),
                          args.arg, args.n);
}

static struct kspec mix_spec(const struct aft_channel_block *s, const char *file,
                             const char *kernel)
{
    struct kspec spec = attncl__aft_spec(s->p, file, kernel);

    kspec_int(&spec, "MASKED", s->p->masked);
    return spec;
}

// Packs the weights of target blocks [block0, block0 + count).
static attncl_status launch_weights(struct launcher *l, const struct aft_channel_block *s,
                                    int64_t block0, int64_t count)
{
    const struct aft_tiling *p = s->p;
    const struct kspec spec = mix_spec(s, "aft/aft_cpu_weights.cl", "aft_cpu_weights");

    return attncl__launch(l, &spec, grid_1d(count, 1),
                          ARGS(AFT_BIAS(s), arg_i32(p->steps), arg_i32(p->window),
                               arg_i32(s->causal), arg_i32(block0), arg_mem(s->scratch),
                               arg_i64(p->weights_at), arg_i64(p->pitch)));
}

static attncl_status launch_mix(struct launcher *l, const struct aft_channel_block *s,
                                int64_t block0, int64_t count)
{
    const struct aft_tiling *p = s->p;
    struct kspec spec = mix_spec(s, "aft/aft_cpu_mix.cl", "aft_cpu_mix");
    struct arg_list args = {.n = 0};

    kspec_int(&spec, "BACKWARD", s->backward);
    attncl__aft_add_target_args(&args, s);
    attncl__aft_add_source_args(&args, s);
    arg_list_add(&args, ARGS(arg_mem(s->scratch), arg_i64(p->lane_floats), arg_i64(p->ranges_at),
                             arg_i64(p->before_at), arg_i64(p->after_at), arg_i64(p->weights_at),
                             arg_i64(p->pitch), arg_i32(block0), arg_i32(count), AFT_BIAS(s),
                             AFT_RANGE(s), arg_i32(p->window), arg_i32(s->causal),
                             arg_i32(p->group), arg_i32(p->item_blocks)));
    return attncl__launch(
        l, &spec, grid_2d(ceil_div(count, p->item_blocks), ceil_div(s->lanes, p->group), 1, 1),
        args.arg, args.n);
}

attncl_status attncl__aft_launch_cpu(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    const int64_t fit = p->weight_rows / AFT_ROWS;

    TRY(attncl__aft_launch_packing(l, s));
    if (!p->masked)
        TRY(attncl__aft_launch_scan(l, s));
    for (int64_t block0 = 0; block0 < p->blocks; block0 += fit) {
        const int64_t left = p->blocks - block0, count = left < fit ? left : fit;
        // All channel blocks share the weights if they fit at once.
        if (s->lane0 == 0 || p->blocks > fit)
            TRY(launch_weights(l, s, block0, count));
        TRY(launch_mix(l, s, block0, count));
    }
    return ATTNCL_OK;
}
