// SPDX-License-Identifier: MIT
//
// The gradient of the mixing op's biases: cl/aft/aft_bwd_cpu_*.cl, cl/aft/aft_bwd_gpu_pairs.cl.

#include "op/aft/aft.h"

enum { PAIR_QUERIES = 8 }; // QUERIES of cl/aft/aft_bwd_gpu_pairs.cl

// CPU variant.  MAX_CHUNK lanes at a time and MAX_BLOCKS blocks (the kernel's BLOCKS) at most per
// work-item.  FACTOR_BYTES leaves a tile's keys space in a core's second-level cache.
enum { MAX_CHUNK = 16, MAX_BLOCKS = 8, ITEMS_PER_CORE = 8, FACTOR_BYTES = 256 << 10 };

#define TABLE_TENSORS(s)                                                                           \
    AFT_MATRIX((s)->forward.source[0]), AFT_MATRIX((s)->forward.source[1]),                        \
        AFT_MATRIX((s)->backward.source[0]), AFT_MATRIX((s)->backward.source[1]),                  \
        AFT_MATRIX((s)->backward.source[2]), AFT_MATRIX((s)->backward.source[3])
#define TABLE(s) arg_mem((s)->table), arg_i64((s)->table_start), arg_i32((s)->table_row)

static attncl_status launch_keys(struct launcher *l, const struct aft_channel_block *f,
                                 const char *kernel, int64_t vectors, int64_t ranges_at)
{
    struct kspec spec = attncl__aft_spec(f->p, "aft/aft_bwd_cpu_keys.cl", kernel);
    const int64_t groups = ceil_div(f->lanes, AFT_SOURCE_GROUP);
    struct arg_list args = {.n = 0};

    attncl__aft_add_source_args(&args, f);
    arg_list_add(&args, ARGS(arg_mem(f->scratch), arg_i64(ranges_at), AFT_RANGE(f)));
    return attncl__launch(l, &spec,
                          vectors > 0 ? grid_2d(vectors, groups, 1, 1) : grid_1d(groups, 1),
                          args.arg, args.n);
}

// Lanes at a time, and row blocks, of a work-item.
struct table_tiling {
    int64_t chunk, blocks;
};

static size_t factor_bytes(const struct aft_tiling *p, const struct table_tiling *t)
{
    const int64_t half_floats = t->chunk * p->vw * AFT_ROWS + p->vw;
    return sizeof(float) * (size_t)(t->blocks * 2 * half_floats);
}

static struct table_tiling tile_table(const struct device_caps *caps, const struct aft_tiling *p)
{
    const size_t max = caps->local_bytes < FACTOR_BYTES ? caps->local_bytes : FACTOR_BYTES;
    struct table_tiling t = {p->block_lanes < MAX_CHUNK ? p->block_lanes : MAX_CHUNK, MAX_BLOCKS};

    while (t.blocks > 1 &&
           (ceil_div(p->blocks, t.blocks) < ITEMS_PER_CORE * (int64_t)caps->compute_units ||
            factor_bytes(p, &t) > max || caps->max_loop_iterations))
        t.blocks /= 2;
    while (t.chunk > 1 && factor_bytes(p, &t) > max)
        t.chunk /= 2;
    return t;
}

attncl_status attncl__aft_bwd_launch_table(struct launcher *l, const struct aft_series *s)
{
    const struct aft_channel_block *f = &s->forward;
    const struct aft_tiling *p = f->p;
    const struct table_tiling t = tile_table(l->caps, p);
    const int64_t vectors = ceil_div(p->steps, (int64_t)p->vw),
                  ranges_at = vectors * 2 * f->lanes * p->vw * p->vw;
    struct kspec spec = attncl__aft_spec(p, "aft/aft_bwd_cpu_table.cl", "aft_bwd_cpu_table");

    assert(ranges_at + f->lanes * 2 * p->vw <= p->block_floats);
    TRY(launch_keys(l, f, "aft_bwd_cpu_keys_range", 0, ranges_at));
    TRY(launch_keys(l, f, "aft_bwd_cpu_keys_pack", vectors, ranges_at));
    kspec_int(&spec, "MASKED", p->masked);
    return attncl__launch(l, &spec, grid_1d(ceil_div(p->blocks, t.blocks), 1),
                          ARGS(TABLE_TENSORS(s), arg_mem(f->scratch), arg_i64(ranges_at),
                               AFT_BIAS(f), AFT_RANGE(f), arg_i32(p->window), arg_i32(f->causal),
                               TABLE(s), arg_i32(t.chunk), arg_i32(t.blocks),
                               arg_local(factor_bytes(p, &t))));
}

attncl_status attncl__aft_bwd_launch_pairs(struct launcher *l, const struct aft_series *s)
{
    const struct aft_channel_block *f = &s->forward;
    const struct aft_tiling *p = f->p;
    const int64_t keys = (int64_t)p->local / PAIR_QUERIES,
                  groups = ceil_div(p->steps, PAIR_QUERIES);
    const int64_t at_once = attncl__parts_at_once(l, p->heads * p->entries * groups, 1);
    struct kspec spec = attncl__aft_spec(p, "aft/aft_bwd_gpu_pairs.cl", "aft_bwd_gpu_pairs");

    kspec_int(&spec, "MASKED", p->masked);
    for (int64_t first = 0; first < groups; first += at_once)
        TRY(attncl__launch(
            l, &spec,
            grid_2d(ceil_div(2 * p->window - 1 + PAIR_QUERIES - 1, keys),
                    groups - first < at_once ? groups - first : at_once, p->local, 1),
            ARGS(TABLE_TENSORS(s), AFT_BIAS(f), arg_i32(first * PAIR_QUERIES), arg_i32(p->steps),
                 arg_i32(p->batch), arg_i32(p->channels), arg_i32(p->lanes), arg_i32(p->window),
                 arg_i32(f->causal), TABLE(s))));
    return ATTNCL_OK;
}
