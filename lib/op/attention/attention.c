// SPDX-License-Identifier: MIT
//
// Softmax attention, one fused kernel with an online softmax.
//
//   y_i = sum_j m_ij p_ij v_j,   p_ij = softmax over visible j of scale * (q_i . k_j)
//
// m is the mask of dropout, [B, H, T, S], or 1; the weights that are asked for are p.  For the
// gradients each row's maximum and one over its total are saved: p_ij = exp(s_ij - maximum) / total.
// That maximum may be a score up to 8 below the largest (SLACK of cl/attention/attention_cpu.cl).
//
// q [B, H, T, D], k [B, H, S, D], v [B, H, S, E]; y lies as [T, B, H, E] or [B, T, H, E].  Keys are
// first packed into tiles (cl/attention/attention_cpu_pack.cl), then blocks of queries run over them
// (cl/attention/attention_cpu.cl); the GPU variant reads them where they are
// (lib/op/attention/attention_gpu.c).

#include "attncl/kinds.h"
#include "base/ckd.h"
#include "op/attention/attention_tiling.h"

enum { MAX_LENGTH = 1 << 29 }; // kernels add T and S as ints

static attncl_status check_heads(const struct op_sig *sig)
{
    static const char *const names[] = {"q", "k", "v"};
    const struct tensor_desc *q = &sig->in[ATT_IN_Q], *k = &sig->in[ATT_IN_K];
    const struct tensor_desc *v = &sig->in[ATT_IN_V];

    for (int i = ATT_IN_Q; i <= ATT_IN_V; ++i) {
        const struct tensor_desc *x = &sig->in[i];
        TRY(attncl__check_input(names[i], x, ATTNCL_F32, 4));
        REQUIRE(x->dim[0] == q->dim[0], ATTNCL_ERR_SHAPE,
                "%s has B = %" PRId64 ", q has B = %" PRId64, names[i], x->dim[0], q->dim[0]);
        REQUIRE(x->dim[1] == q->dim[1], ATTNCL_ERR_SHAPE,
                "%s has H = %" PRId64 ", q has H = %" PRId64, names[i], x->dim[1], q->dim[1]);
        REQUIRE(x->dim[2] <= MAX_LENGTH, ATTNCL_ERR_SHAPE,
                "%s has %" PRId64 " positions, at most %d", names[i], x->dim[2], MAX_LENGTH);
        REQUIRE(x->dim[3] >= 1 && x->dim[3] <= MAX_LENGTH, ATTNCL_ERR_SHAPE,
                "%s has width %" PRId64 ", expected 1 to %d", names[i], x->dim[3], MAX_LENGTH);
        REQUIRE(x->stride[3] == 1 || x->dim[3] == 1, ATTNCL_ERR_UNSUPPORTED,
                "the last axis of %s has stride %" PRId64 ", expected 1", names[i], x->stride[3]);
    }
    REQUIRE(k->dim[3] == q->dim[3], ATTNCL_ERR_SHAPE, "k has D = %" PRId64 ", q has D = %" PRId64,
            k->dim[3], q->dim[3]);
    REQUIRE(v->dim[2] == k->dim[2], ATTNCL_ERR_SHAPE, "v has S = %" PRId64 ", k has S = %" PRId64,
            v->dim[2], k->dim[2]);
    REQUIRE(q->dim[1] <= INT32_MAX && q->dim[0] <= INT32_MAX / (q->dim[1] + 1), ATTNCL_ERR_SHAPE,
            "B H = %" PRId64 " * %" PRId64 ", at most %d", q->dim[0], q->dim[1], INT32_MAX);
    return ATTNCL_OK;
}

attncl_status attncl__attention_infer(struct op_sig *sig)
{
    const struct attention_fwd_params *params = sig->params;
    const struct tensor_desc *q = &sig->in[ATT_IN_Q], *v = &sig->in[ATT_IN_V];
    const bool mask = attncl__desc_present(&sig->in[ATT_IN_MASK]);
    const bool lens = attncl__desc_present(&sig->in[ATT_IN_LENS]);
    const bool time_first = params->layout == ATTNCL_LAYOUT_TIME_FIRST;

    TRY(check_heads(sig));
    TRY(attncl__check_mask(&sig->in[ATT_IN_MASK], q->dim[2], v->dim[2], "S", q->dim[0]));
    TRY(attncl__check_lens(&sig->in[ATT_IN_LENS], q->dim[0], q->dim[2]));
    REQUIRE(params->window >= 0, ATTNCL_ERR_ARGUMENT, "window is %" PRId64 ", at least 0",
            params->window);
    REQUIRE(mask + lens + (params->causal || params->window) <= 1, ATTNCL_ERR_ARGUMENT,
            "mask, valid_lens and causal or window: at most one of them, %d are given",
            mask + lens + (params->causal || params->window));
    const int64_t dim[4] = {q->dim[time_first ? 2 : 0], q->dim[time_first ? 0 : 2], q->dim[1],
                            v->dim[3]};
    TRY(attncl__desc_make(ATTNCL_F32, 4, dim, &sig->out[0]));
    if (!params->want_weights)
        return ATTNCL_OK;
    const int64_t weights[4] = {q->dim[0], q->dim[1], q->dim[2], v->dim[2]};
    return attncl__desc_make(ATTNCL_F32, 4, weights, &sig->out[ATT_OUT_WEIGHTS]);
}

attncl_status attncl__attention_rows_desc(const struct op_sig *sig, struct tensor_desc *ret)
{
    const struct tensor_desc *q = &sig->in[ATT_IN_Q];
    const int64_t dim[4] = {q->dim[0], q->dim[1], q->dim[2], 2};

    return attncl__desc_make(ATTNCL_F32, 4, dim, ret);
}

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct attention_fwd_params *params = sig->params;

    TRY(attncl__check_dropout(&params->dropout, &sig->in[ATT_IN_STEP]));
    TRY(attncl__attention_infer(sig));
    TRY(attncl__check_dropout_batch(&params->dropout, sig->in[ATT_IN_Q].dim[0]));
    return sig->save_for_backward ? attncl__attention_rows_desc(sig, &sig->out[ATT_OUT_ROWS])
                                  : ATTNCL_OK;
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    struct attention_tiling p;

    *bytes_ret = 0;
    if (attncl__desc_count(&sig->out[0]) == 0)
        return ATTNCL_OK;
    TRY(attncl__attention_tiling(sig, &p));
    *bytes_ret =
        sizeof(float) * (size_t)(p.key_floats + p.value_floats + p.row_floats + p.partial_floats);
    return ATTNCL_OK;
}

static size_t floats(int64_t count)
{
    return sizeof(float) * (size_t)count;
}

static attncl_status launch_blocks(struct launcher *l, const struct op_call *call,
                                   const struct attention_tiling *p)
{
    const struct attention_fwd_params *params = call->sig.params;
    const struct tensor_desc *in = call->sig.in;
    const bool weights = attncl__desc_present(&call->sig.out[ATT_OUT_WEIGHTS]);
    const int64_t n_heads = in[ATT_IN_Q].dim[1], block = p->block;
    struct tensor_desc v = in[ATT_IN_V];
    struct kspec spec =
        attncl__attention_cpu_spec(p, "attention/attention_cpu.cl", "attention_cpu_fwd");
    int64_t y_b, y_t;

    attncl__attention_strides(&call->sig, &call->sig.out[0], &y_b, &y_t);
    if (p->copy_values) {
        v.start = p->key_floats;
        v.stride[2] = p->value_pitch;
        v.stride[1] = p->n_keys * p->value_pitch;
        v.stride[0] = n_heads * v.stride[1];
    }
    kspec_int(&spec, "WEIGHTS", weights);
    return attncl__launch(
        l, &spec, grid_2d(ceil_div(p->n_queries, block), p->heads, 1, 1),
        ARGS(ATTENTION_HEADS(call, ATT_IN_Q), arg_mem(call->scratch),
             ATTENTION_HEADS_OF(p->copy_values ? call->scratch : call->in[ATT_IN_V], &v),
             ATTENTION_VISIBILITY(call, p), arg_mem(call->out[0]), arg_i64(y_b), arg_i64(y_t),
             arg_mem(call->out[ATT_OUT_WEIGHTS]), arg_mem(call->out[ATT_OUT_ROWS]),
             arg_i32(attncl__desc_present(&call->sig.out[ATT_OUT_ROWS])), arg_i32(n_heads),
             arg_i32(p->n_queries), arg_i32(p->n_keys), arg_i32(p->width), arg_i32(p->value_width),
             arg_i32(p->value_pitch), arg_f32(params->scale), arg_i32(block),
             ATTENTION_WEIGHT_MASK(&params->dropout, call->in[ATT_IN_STEP], call, p),
             arg_local(floats(block * (p->width + p->key_tile + p->value_pitch + 1 + p->vw)))));
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    struct attention_tiling p;

    TRY(attncl__attention_tiling(&call->sig, &p));
    if (p.gpu)
        return attncl__attention_gpu(l, call, &p);
    const struct attention_packing packing = {
        .tiles = ATT_IN_K,
        .rows = ATT_IN_V,
        .rows_at = p.key_floats,
        .pitch = p.copy_values ? p.value_pitch : 0,
    };
    TRY(attncl__attention_pack(l, call, &p, &packing));
    return launch_blocks(l, call, &p);
}

// A pair of query and key: two products of vectors, and the softmax.
static void fwd_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    (void)bytes_ret; // those of inputs and outputs
    const struct tensor_desc *q = &sig->in[ATT_IN_Q], *v = &sig->in[ATT_IN_V];
    const double heads = (double)(q->dim[0] * q->dim[1]);
    const double pairs = heads * attncl__attention_pairs(sig);

    *flop_ret = pairs * (2 * (double)q->dim[3] + 2 * (double)v->dim[3] + 5);
}

static const struct grad_rule fwd_grad[] = {
    {
        .op = OP_attention_bwd,
        .same_params = true,
        .in = {REF_X(0), REF_X(1), REF_X(2), REF_X(3), REF_X(4), REF_Y(0), REF_Y(ATT_OUT_WEIGHTS),
               REF_Y(ATT_OUT_ROWS), REF_DY(0), REF_DY(ATT_OUT_WEIGHTS), REF_X(ATT_IN_STEP)},
        .out = {REF_DX(0), REF_DX(1), REF_DX(2)},
    },
};

// Output 1 is p, [B, H, T, S], where it is wanted; output 2 [B, H, T, 2], each row's maximum and
// one over its total, 0 and 0 where it sees no key, for the gradients.
const struct op_class attncl__op_attention_fwd = {
    .name = OP_CLASS_MASKS(attention_fwd, 6, 3),
    .optional = 1u << ATT_IN_MASK | 1u << ATT_IN_LENS | 1u << ATT_IN_STEP,
    .any_view = 1u << ATT_IN_Q | 1u << ATT_IN_K | 1u << ATT_IN_V,
    .saved_for_backward = 1u << ATT_OUT_ROWS,
    .infer = fwd_infer,
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .cost = fwd_cost,
    .grad = GRAD_RULES(fwd_grad),
};
