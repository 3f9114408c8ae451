// SPDX-License-Identifier: MIT
//
// Attention, GPU variant: the launches of cl/attention/attention_gpu.cl, or attention_gpu_mma.cl
// where attention_gpu_tiles.c chose matrix instructions, and of attention_gpu_merge.cl.

#include "op/attention/attention.h"

struct pass {
    struct kspec spec;
    size_t group;          // work-items of a work-group
    int64_t rows, columns; // its queries and columns of values
    bool weights;          // computes the weights, from the rows' saved maxima and totals; else y
};

static struct pass tile_pass(const struct attention_tiling *p, bool weights)
{
    const struct attention_tile_config *r = p->tile;
    struct pass pass = {kspec_begin("attention/attention_gpu.cl", "attention_gpu_fwd"),
                        (size_t)(r->tx * r->ty), 4 * r->ty, (int64_t)4 * r->tx * r->ne, weights};

    attncl__attention_set_gpu_macros(&pass.spec, p, pass.group);
    attncl__attention_set_tile_macros(&pass.spec, r);
    kspec_int(&pass.spec, "QUERY_CHANNELS", p->query_channels);
    kspec_int(&pass.spec, "WEIGHTS", weights);
    return pass;
}

static struct pass mma_pass(const struct device_caps *caps, const struct attention_tiling *p)
{
    struct pass pass = {kspec_begin("attention/attention_gpu_mma.cl", "attention_gpu_mma_fwd"),
                        attncl__attention_mma_group(p->mma), ATT_MMA_ROWS, p->value_width, false};

    attncl__attention_set_gpu_macros(&pass.spec, p, pass.group);
    attncl__attention_set_mma_macros(&pass.spec, caps, p->mma);
    kspec_int(&pass.spec, "VALUE_WIDTH", round_up(p->value_width, ATT_MMA_COLUMNS));
    return pass;
}

static bool tile_fits(struct launcher *l, const struct attention_tiling *p, bool registers)
{
    const struct pass pass = tile_pass(p, false);

    return attncl__kernel_fits(l, &pass.spec, pass.group, registers);
}

// Chooses a tile that the device runs, without register spills if there is one, and rounds splits of
// keys to whole tiles.
static attncl_status choose_tile(struct launcher *l, struct attention_tiling *p)
{
    for (int registers = 1; registers >= 0; --registers)
        for (int skip = 0;; ++skip) {
            p->tile = attncl__attention_tile_config(l->caps, p->n_queries, p->value_width, skip);
            if (!p->tile)
                break;
            const int64_t tile = 4 * p->tile->tx;
            p->query_channels = attncl__attention_query_channels(l->caps, p->tile, p->width);
            if (!tile_fits(l, p, registers)) {
                if (p->query_channels == 0)
                    continue;
                p->query_channels = 0;
                if (!tile_fits(l, p, registers))
                    continue;
            }
            if (p->n_splits > 1)
                p->split_keys = ceil_div(ceil_div(p->n_keys, p->n_splits), tile) * tile;
            return ATTNCL_OK;
        }
    return FAIL(ATTNCL_ERR_UNSUPPORTED, "no variant of attention runs on this device: %s",
                attncl_last_error());
}

// The memory of the rows' maxima and totals: an output, the scratch, or none.
static struct span rows_of(const struct op_call *call, const struct attention_tiling *p)
{
    if (attncl__desc_present(&call->sig.out[ATT_OUT_ROWS]))
        return call->out[ATT_OUT_ROWS];
    return p->row_floats ? call->scratch : (struct span){NULL};
}

static attncl_status launch_pass(struct launcher *l, const struct op_call *call,
                                 const struct attention_tiling *p, const struct pass *pass)
{
    const int64_t n_panels = ceil_div(p->value_width, pass->columns);
    const int64_t n_splits = pass->weights ? 1 : p->n_splits;
    const struct span rows = rows_of(call, p);
    int64_t blocks = ceil_div(p->n_queries, pass->rows);
    const int64_t at_once = attncl__parts_at_once(l, blocks, 1);

    for (; blocks > 0; blocks -= at_once)
        TRY(attncl__attention_launch(
            l, call, p, &pass->spec,
            grid_3d(p->heads, blocks < at_once ? blocks : at_once,
                    pass->weights ? 1 : n_panels * n_splits, pass->group, 1),
            ARGS(ATTENTION_HEADS(call, ATT_IN_Q), ATTENTION_HEADS(call, ATT_IN_K),
                 ATTENTION_HEADS(call, ATT_IN_V), arg_mem(call->out[0]),
                 ATTENTION_STRIDES(call, &call->sig.out[0]), arg_mem(call->out[ATT_OUT_WEIGHTS]),
                 arg_mem(rows), arg_i32(rows.storage != NULL), arg_mem(call->scratch),
                 arg_i64(p->row_floats), arg_i32(n_splits),
                 arg_i32(n_splits > 1 ? p->split_keys : 0), arg_i32(blocks),
                 arg_i32(p->kv_group))));
    return ATTNCL_OK;
}

static attncl_status launch_merge(struct launcher *l, const struct op_call *call,
                                  const struct attention_tiling *p)
{
    enum { MERGE_GROUP = 64 };
    size_t group = l->caps->max_group < MERGE_GROUP ? l->caps->max_group : MERGE_GROUP;
    struct kspec spec = kspec_begin("attention/attention_gpu_merge.cl", "attention_gpu_merge_fwd");
    const struct span rows = rows_of(call, p);

    kspec_set_vw_ls(&spec, 1, group);
    return attncl__launch(l, &spec, grid_2d(p->heads, p->n_queries, group, 1),
                          ARGS(arg_mem(call->out[0]), ATTENTION_STRIDES(call, &call->sig.out[0]),
                               arg_mem(rows), arg_i32(rows.storage != NULL), arg_mem(call->scratch),
                               arg_i64(p->row_floats), arg_i32(p->n_splits),
                               arg_i32(call->sig.in[ATT_IN_Q].dim[1]), arg_i32(p->value_width)));
}

attncl_status attncl__attention_launch_gpu(struct launcher *l, const struct op_call *call,
                                           const struct attention_tiling *tiling)
{
    struct attention_tiling p = *tiling;
    struct pass pass = {.group = 0};

    if (p.mma)
        pass = mma_pass(l->caps, &p);
    if (!p.mma || !attncl__kernel_fits(l, &pass.spec, pass.group, true)) {
        TRY(choose_tile(l, &p));
        pass = tile_pass(&p, false);
    }
    TRY(launch_pass(l, call, &p, &pass));
    if (p.n_splits > 1)
        TRY(launch_merge(l, call, &p));
    if (!attncl__desc_present(&call->sig.out[ATT_OUT_WEIGHTS]))
        return ATTNCL_OK;
    pass = tile_pass(&p, true);
    return launch_pass(l, call, &p, &pass);
}
