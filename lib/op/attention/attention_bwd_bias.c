// SPDX-License-Identifier: MIT
//
// The gradient of softmax attention's bias.  A separate op, because it recomputes two of the five
// products of attention_bwd.c, which explains the letters.
//
//   dbias_ij = sum over the scores that share the element of p_ij (m_ij g_i . v_j + c_ij - delta_i)
//
// A work-group loops over the batch entries, heads and queries that share its elements, so there is
// no [B, H, T, S] buffer (cl/attention/attention_bwd_cpu_bias.cl, attention_bwd_gpu_bias.cl).

#include "op/attention/attention.h"

struct bias_shape {
    int64_t entries, rows; // of the table: batch entries times heads; queries
    int64_t shared;        // batch entries times heads that share an entry
};

static struct bias_shape get_bias_shape(const struct op_call *call)
{
    const struct tensor_desc *q = &call->sig.in[ATT_IN_Q], *table = &call->sig.in[ATT_IN_BIAS];
    const int64_t entries = table->dim[0] * table->dim[1];
    return (struct bias_shape){entries, table->dim[2], q->dim[0] * q->dim[1] / entries};
}

static attncl_status bias_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    struct backward_tiling b;

    *bytes_ret = 0;
    if (attncl__desc_count(&sig->out[0]) == 0)
        return ATTNCL_OK;
    TRY(attncl__attention_bwd_choose_tiling(sig, &b));
    *bytes_ret =
        sizeof(float) * (size_t)(b.tiling.gpu ? b.tiling.heads * b.tiling.n_queries : b.rows_at);
    return ATTNCL_OK;
}

// An upper bound of the loop iterations of one work-item of the CPU variant.
static int64_t count_iterations(const struct attention_tiling *p, const struct bias_shape *s)
{
    const int64_t tile = p->key_tile, block = p->block;
    const int64_t blocks = s->rows > 1 ? 1 : ceil_div(p->n_queries, block);
    const int64_t each = tile * block / p->score_rows * (p->width + p->value_width + 2) +
                         block * (4 * tile + p->n_keys + 3 * (p->width + p->value_width) + 8);

    return s->shared * blocks * each + block * tile;
}

static attncl_status launch_cpu(struct launcher *l, const struct op_call *call,
                                const struct backward_tiling *b)
{
    const struct attention_packing keys = {ATT_IN_K, ATT_IN_K, .rows_at = 0};
    const struct attention_packing values = {ATT_IN_V, ATT_IN_V, .tiles_at = b->values_at};
    const struct attention_tiling *p = &b->tiling;
    const struct bias_shape s = get_bias_shape(call);
    const int64_t row_floats = p->width + p->value_width + 2 * p->key_tile + 3;
    struct kspec spec = attncl__attention_cpu_spec(p, "attention/attention_bwd_cpu_bias.cl",
                                                   "attention_bwd_cpu_bias");

    TRY(attncl__check_loops(l->caps, spec.kernel, count_iterations(p, &s)));
    TRY(attncl__attention_launch_packing(l, call, p, &keys));
    TRY(attncl__attention_launch_packing(l, call, p, &values));
    return attncl__attention_launch(
        l, call, p, &spec,
        grid_3d(ceil_div(p->n_keys, p->key_tile), ceil_div(s.rows, p->block), s.entries, 1, 1),
        ARGS(ATTENTION_HEADS(call, ATT_IN_Q), arg_mem(call->in[ATT_BWD_IN_Y]),
             ATTENTION_BWD_STRIDES(call), arg_mem(call->in[ATT_BWD_IN_G]),
             WEIGHTS_AND_GRADIENT(call), arg_mem(call->in[ATT_BWD_IN_ROWS]), arg_mem(call->scratch),
             arg_i64(b->values_at), arg_mem(call->out[0]), arg_i32(call->sig.in[ATT_IN_Q].dim[0]),
             arg_i32(p->kv_group), arg_i32(p->block),
             arg_local(sizeof(float) * (size_t)(p->block * row_floats))));
}

static attncl_status launch_gpu(struct launcher *l, const struct op_call *call,
                                const struct attention_tiling *p)
{
    const struct attention_tile_config *r = attncl__attention_bwd_tile_config(l->caps, 1);
    const struct bias_shape s = get_bias_shape(call);
    const size_t group = (size_t)(r->tx * r->ty);
    struct kspec spec =
        kspec_begin("attention/attention_bwd_gpu_bias.cl", "attention_bwd_gpu_bias");

    attncl__attention_set_tile_macros(&spec, r);
    attncl__attention_set_gpu_macros(&spec, p, group);
    TRY(attncl__attention_bwd_launch_delta(l, call, p));
    return attncl__attention_launch(
        l, call, p, &spec,
        grid_3d(ceil_div(p->n_keys, 4 * r->tx), ceil_div(s.rows, 4 * r->ty), s.entries, group, 1),
        ARGS(arg_i32(call->sig.in[ATT_IN_Q].dim[0]), ATTENTION_HEADS(call, ATT_IN_Q),
             ATTENTION_HEADS(call, ATT_IN_K), ATTENTION_HEADS(call, ATT_IN_V),
             arg_mem(call->in[ATT_BWD_IN_G]), ATTENTION_BWD_STRIDES(call),
             GRADIENT_OF_WEIGHTS(call), arg_mem(call->in[ATT_BWD_IN_ROWS]), arg_mem(call->scratch),
             arg_i64(0), arg_i32(0), arg_mem(call->out[0]), arg_i64(0),
             arg_mem((struct span){NULL}), arg_i64(0), arg_i32(0), arg_i32(p->kv_group)));
}

static attncl_status bias_launch(struct launcher *l, const struct op_call *call)
{
    struct backward_tiling b;

    TRY(attncl__attention_bwd_choose_tiling(&call->sig, &b));
    return b.tiling.gpu ? launch_gpu(l, call, &b.tiling) : launch_cpu(l, call, &b);
}

const struct op_class attncl__op_attention_bwd_bias = {
    .name = OP_CLASS(attention_bwd_bias),
    .in = ATTENTION_BWD_IN(F32),
    .out = OP_OUT({"dbias", F32, "=bias"}),
    .infer = attncl__attention_bwd_infer,
    .scratch = bias_scratch,
    .launch = bias_launch,
    .flop = "2BHpD + 2BHpE + 6BHp", // two products
    .pairs = attncl__attention_pairs,
};
