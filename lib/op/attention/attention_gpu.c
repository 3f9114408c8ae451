// SPDX-License-Identifier: MIT
//
// Attention, GPU variant: the launches (cl/attention/attention_gpu.cl, attention_gpu_merge.cl; by
// matrix instructions attention_gpu_mma.c).

#include "op/attention/attention.h"

static struct kspec attention_spec(const struct attention_tiling *p, bool weights)
{
    const struct attention_tile_config *r = p->tile;
    struct kspec spec = kspec_begin("attention/attention_gpu.cl", "attention_gpu_fwd");

    kspec_set_vw_ls(&spec, p->vw, (size_t)(r->tx * r->ty));
    attncl__attention_tile_macros(&spec, r);
    kspec_int(&spec, "QUERY_CHANNELS", p->query_channels);
    kspec_int(&spec, "ALIGNED", p->aligned);
    kspec_int(&spec, "MASKING", p->masking);
    kspec_int(&spec, "DROPOUT", p->dropout);
    kspec_int(&spec, "SOFTCAP", p->softcap);
    kspec_int(&spec, "BIAS", p->bias);
    kspec_int(&spec, "WEIGHTS", weights);
    return spec;
}

static bool tile_fits(struct launcher *l, const struct attention_tiling *p, bool registers)
{
    const struct kspec spec = attention_spec(p, false);
    const size_t group = (size_t)(p->tile->tx * p->tile->ty);

    return attncl__kernel_fits(l, &spec, group, registers);
}

// A tile that the device runs, with all values of a work-item in registers if there is one.  Keys
// are split as the tiling says, in whole tiles.
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

// Where the rows' maxima and totals go: an output, the scratch, or nowhere.
static struct span rows_of(const struct op_call *call, const struct attention_tiling *p)
{
    if (attncl__desc_present(&call->sig.out[ATT_OUT_ROWS]))
        return call->out[ATT_OUT_ROWS];
    return p->row_floats ? call->scratch : (struct span){NULL};
}

// Computes y or its partial results; or, from the rows' saved maxima and totals, the weights.
static attncl_status launch_attention(struct launcher *l, const struct op_call *call,
                                      const struct attention_tiling *p, bool weights)
{
    const struct attention_fwd_params *params = call->sig.params;
    const struct tensor_desc *in = call->sig.in;
    const struct kspec spec = attention_spec(p, weights);
    const int64_t n_panels = ceil_div(p->value_width, (int64_t)4 * p->tile->tx * p->tile->ne);
    const int64_t n_splits = weights ? 1 : p->n_splits;
    const size_t group = (size_t)(p->tile->tx * p->tile->ty);
    const struct span rows = rows_of(call, p);
    int64_t y_b, y_t, blocks = ceil_div(p->n_queries, (int64_t)4 * p->tile->ty);
    const int64_t at_once = attncl__parts_at_once(l, blocks, 1);

    attncl__attention_strides(&call->sig, &call->sig.out[0], &y_b, &y_t);
    for (; blocks > 0; blocks -= at_once)
        TRY(attncl__attention_launch(
            l, call, &spec,
            grid_3d(p->heads, blocks < at_once ? blocks : at_once,
                    weights ? 1 : n_panels * n_splits, group, 1),
            ARGS(ATTENTION_HEADS(call, ATT_IN_Q), ATTENTION_HEADS(call, ATT_IN_K),
                 ATTENTION_HEADS(call, ATT_IN_V), ATTENTION_VISIBILITY(call, p),
                 arg_mem(call->out[0]), arg_i64(y_b), arg_i64(y_t),
                 arg_mem(call->out[ATT_OUT_WEIGHTS]), arg_mem(rows), arg_i32(rows.storage != NULL),
                 arg_mem(call->scratch), arg_i64(p->row_floats), arg_i32(n_splits),
                 arg_i32(n_splits > 1 ? p->split_keys : 0), arg_i32(blocks),
                 arg_i32(in[ATT_IN_Q].dim[1]), arg_i32(p->kv_group), arg_i32(p->n_queries),
                 arg_i32(p->n_keys), arg_i32(p->width), arg_i32(p->value_width),
                 arg_f32(params->scale), arg_f32(params->softcap),
                 ATTENTION_WEIGHT_MASK(&params->dropout, call->in[ATT_IN_STEP], call, p))));
    return ATTNCL_OK;
}

static attncl_status launch_merge(struct launcher *l, const struct op_call *call,
                                  const struct attention_tiling *p)
{
    enum { MERGE_GROUP = 64 };
    size_t group = l->caps->max_group < MERGE_GROUP ? l->caps->max_group : MERGE_GROUP;
    struct kspec spec = kspec_begin("attention/attention_gpu_merge.cl", "attention_gpu_merge_fwd");
    const struct span rows = rows_of(call, p);
    int64_t y_b, y_t;

    attncl__attention_strides(&call->sig, &call->sig.out[0], &y_b, &y_t);
    kspec_set_vw_ls(&spec, 1, group);
    return attncl__launch(l, &spec, grid_2d(p->heads, p->n_queries, group, 1),
                          ARGS(arg_mem(call->out[0]), arg_i64(y_b), arg_i64(y_t), arg_mem(rows),
                               arg_i32(rows.storage != NULL), arg_mem(call->scratch),
                               arg_i64(p->row_floats), arg_i32(p->n_splits),
                               arg_i32(call->sig.in[ATT_IN_Q].dim[1]), arg_i32(p->value_width)));
}

attncl_status attncl__attention_gpu(struct launcher *l, const struct op_call *call,
                                    const struct attention_tiling *tiling)
{
    struct attention_tiling p = *tiling;

    if (p.mma && attncl__attention_mma_fits(l, &p)) {
        TRY(attncl__attention_mma_launch(l, call, &p, rows_of(call, &p)));
    } else {
        TRY(choose_tile(l, &p));
        TRY(launch_attention(l, call, &p, false));
    }
    if (p.n_splits > 1)
        TRY(launch_merge(l, call, &p));
    return attncl__desc_present(&call->sig.out[ATT_OUT_WEIGHTS])
               ? launch_attention(l, call, &p, true)
               : ATTNCL_OK;
}
