// SPDX-License-Identifier: MIT
//
// Attention of one query per batch entry to S memories (Fan et al. 2020, 3.2; relative positions).
//
//   joint   s_jbh = (q_bh + u_h) . (k_jbh + U_jh) / sqrt(D)
//   split   s_jbh = ((q_bh + u_h) . k_jbh + q_bh . U_jh + w_jh) / sqrt(D)
//   y_bh = sum_j m_bhj softmax_j(s_jbh) v_jbh
//
// U_j and w_j are rows P - distance of their tables; the newest memory has distance 1.  With a
// position, only the first `position` memories exist yet (cl/feedback/feedback_attention.cl).
//
// m is the dropout mask [B, H, S], or 1; with a position it is row `position` of a larger mask.  The
// optional output of weights excludes it.
//
// If n_parts is not 0 (fusion sets it in the GPU variant), y holds the parts' unmerged results,
// [B, H, n_parts, 2 + D].
//
// With a position, keys and values are slots of a cache, which is not a differentiable value.  The
// backward pass, last step first, adds their gradients to slots `slot` and slot + 1 of the cache
// DCACHE.  The last step overwrites them instead, unless `adds` (another use has started the sum).

#include <math.h>

#include "op/attention/attention_split.h"
#include "op/dropout_mask.h"
#include "op/row_launch.h"

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct feedback_attention_fwd_params *params = sig->params;
    const bool grows = attncl__desc_present(&sig->in[FEEDBACK_POSITION]);
    int64_t *of = sig->axes->of;

    // Only a cache's slots may have 16-bit types.
    REQUIRE(grows || sig->in[FEEDBACK_KEYS].dtype == ATTNCL_F32, ATTNCL_ERR_DTYPE,
            "key is %s, must be F32", attncl_dtype_name(sig->in[FEEDBACK_KEYS].dtype));
    REQUIRE(of['H'] * of['D'] == of['C'], ATTNCL_ERR_SHAPE,
            "key has H D = %" PRId64 " * %" PRId64 ", query has C = %" PRId64, of['H'], of['D'],
            of['C']);
    for (int i = FEEDBACK_KEYS; i <= FEEDBACK_VALUES; ++i)
        REQUIRE(sig->in[i].stride[3] == 1 || of['D'] <= 1, ATTNCL_ERR_SHAPE,
                "channels of a head lie %" PRId64 " apart, must be 1", sig->in[i].stride[3]);
    TRY(attncl__check_at_most(sig, 'S', 'P'));
    TRY(attncl__check_dropout(&params->dropout, &sig->in[FEEDBACK_STEP], of['B']));
    of['W'] = params->n_parts;
    of['E'] = 2 + of['D'];
    TRY(attncl__make_output(sig, 0, params->n_parts ? "B H W E" : "B C"));
    REQUIRE(!params->want_weights || !grows, ATTNCL_ERR_ARGUMENT, "weights of a memory that grows");
    if (params->want_weights)
        sig->out[1].dtype = ATTNCL_F32;
    return ATTNCL_OK;
}

// A decode step on a GPU without dropout or weights.
static bool is_split(const struct op_sig *sig, const struct device_caps *caps)
{
    const struct feedback_attention_fwd_params *params = sig->params;
    return caps->variant == VARIANT_GPU && attncl__desc_present(&sig->in[FEEDBACK_POSITION]) &&
           params->dropout.p == 0 && !params->want_weights;
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct feedback_attention_fwd_params *params = sig->params;
    const int64_t *k = sig->in[FEEDBACK_KEYS].dim;

    *bytes_ret = 0;
    return is_split(sig, sig->caps) && !params->n_parts
               ? attncl__attention_split_scratch(sig->caps, k[1] * k[2], k[0], k[3], bytes_ret)
               : ATTNCL_OK;
}

static struct head_rows head_rows(const struct op_call *call, int i)
{
    const struct tensor_desc *d = &call->sig.in[i];
    return (struct head_rows){call->in[i], d->start, d->stride[0], d->stride[1], d->stride[2]};
}

static attncl_status launch_split(struct launcher *l, const struct op_call *call)
{
    const struct feedback_attention_fwd_params *params = call->sig.params;
    const struct tensor_desc *in = call->sig.in, *q = &in[FEEDBACK_Q], *k = &in[FEEDBACK_KEYS];
    const struct attention_split p = {
        .q = {call->in[FEEDBACK_Q], q->start, attncl__rows(q).stride},
        .keys = head_rows(call, FEEDBACK_KEYS),
        .values = head_rows(call, FEEDBACK_VALUES),
        .dtype = k->dtype,
        .places = attncl__desc_present(&in[FEEDBACK_PLACE_BIAS]) ? SPLIT_PLACES : JOINT_PLACES,
        .place_rows = call->in[FEEDBACK_PLACES],
        .u = call->in[FEEDBACK_U],
        .place_bias = call->in[FEEDBACK_PLACE_BIAS],
        .n_places = in[FEEDBACK_PLACES].dim[0],
        .position = call->in[FEEDBACK_POSITION],
        .y = call->out[0],
        .scratch = call->scratch,
        .batch = k->dim[1],
        .n_heads = k->dim[2],
        .kv_group = 1,
        .width = k->dim[3],
        .limit = k->dim[0],
        .span = k->dim[0],
        .n_parts = params->n_parts,
        .scale = (float)(1 / sqrt((double)k->dim[3])),
    };
    return attncl__attention_split_launch(l, &p);
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct feedback_attention_fwd_params *params = call->sig.params;
    const struct tensor_desc *in = call->sig.in, *q = &in[FEEDBACK_Q], *k = &in[FEEDBACK_KEYS],
                             *v = &in[FEEDBACK_VALUES];
    const int64_t width = k->dim[3];
    struct group_launch p = attncl__group_launch(l->caps, "feedback/feedback_attention.cl",
                                                 "feedback_attention_fwd", width > 64 ? width : 64);

    kspec_int(&p.spec, "HAS_TAIL", width % p.vw != 0);
    kspec_int(&p.spec, "SPLIT", attncl__desc_present(&in[FEEDBACK_PLACE_BIAS]));
    kspec_int(&p.spec, "WEIGHTS", attncl__desc_present(&call->sig.out[1]));
    kspec_int(&p.spec, "DROPOUT", params->dropout.p > 0);
    kspec_set_stored(&p.spec, "CACHE_TYPE", k->dtype);
    if (attncl__desc_count(q) == 0)
        return ATTNCL_OK;
    if (is_split(&call->sig, l->caps))
        return launch_split(l, call);
    assert(!params->n_parts);
    return attncl__launch(
        l, &p.spec, grid_2d(k->dim[2], k->dim[1], p.local, 1),
        ARGS(ROW_ARGS(call, FEEDBACK_Q), arg_mem(call->in[FEEDBACK_KEYS]), arg_i64(k->start),
             arg_i64(k->stride[0]), arg_i64(k->stride[1]), arg_i64(k->stride[2]),
             arg_mem(call->in[FEEDBACK_VALUES]), arg_i64(v->start), arg_i64(v->stride[0]),
             arg_i64(v->stride[1]), arg_i64(v->stride[2]), arg_mem(call->in[FEEDBACK_PLACES]),
             arg_mem(call->in[FEEDBACK_U]), arg_mem(call->in[FEEDBACK_PLACE_BIAS]),
             arg_mem(call->in[FEEDBACK_POSITION]), arg_mem(call->out[0]), arg_mem(call->out[1]),
             arg_i32(attncl__desc_present(&in[FEEDBACK_POSITION])), arg_i32(k->dim[0]),
             arg_i32(in[FEEDBACK_PLACES].dim[0]), arg_i32(width),
             arg_f32((float)(1 / sqrt((double)width))),
             DROPOUT_ARGS(&params->dropout, call->in[FEEDBACK_STEP]),
             arg_i32(params->dropout.batch_begin),
             arg_i32(attncl__dropout_batch(&params->dropout, k->dim[1]))));
}

static bool is_whole(const struct op_sig *sig)
{
    return !attncl__desc_present(&sig->in[FEEDBACK_POSITION]);
}

static bool is_growing(const struct op_sig *sig)
{
    return !is_whole(sig) && attncl__desc_present(&sig->in[FEEDBACK_DCACHE]);
}

// REF_TEMP(0): m p and ds of every memory; REF_TEMP(1): partial sums of du.
#define QUERY_IN                                                                                   \
    REF_X(FEEDBACK_Q), REF_X(FEEDBACK_KEYS), REF_X(FEEDBACK_VALUES), REF_X(FEEDBACK_PLACES),       \
        REF_X(FEEDBACK_U), REF_X(FEEDBACK_PLACE_BIAS), REF_X(FEEDBACK_POSITION), REF_DY(0)
static const struct grad_rule fwd_grad[] = {
    {
        .op = OP_feedback_attention_bwd_query,
        .same_params = true,
        .in = {QUERY_IN, REF_DY(1), REF_X(FEEDBACK_STEP)},
        .out = {REF_DX(FEEDBACK_Q), REF_TEMP(0), REF_TEMP(1)},
        .when = is_whole,
    },
    {
        .op = OP_feedback_attention_bwd_accumulate,
        .same_params = true,
        .in = {QUERY_IN, REF_X(FEEDBACK_DCACHE), REF_X(FEEDBACK_STEP)},
        .out = {REF_DX(FEEDBACK_Q), REF_TEMP(0), REF_TEMP(1)},
        .when = is_growing,
    },
    {
        .op = OP_feedback_attention_bwd_memory,
        .in = {REF_X(FEEDBACK_Q), REF_X(FEEDBACK_U), REF_TEMP(0), REF_DY(0), REF_X(FEEDBACK_KEYS)},
        .out = {REF_DX(FEEDBACK_KEYS), REF_DX(FEEDBACK_VALUES)},
        .when = is_whole,
    },
    {
        .op = OP_feedback_attention_bwd_positions,
        .in = {REF_X(FEEDBACK_Q), REF_X(FEEDBACK_U), REF_TEMP(0), REF_TEMP(1),
               REF_X(FEEDBACK_PLACES), REF_X(FEEDBACK_PLACE_BIAS), REF_X(FEEDBACK_POSITION)},
        .out = {REF_DX(FEEDBACK_PLACES), REF_DX(FEEDBACK_U), REF_DX(FEEDBACK_PLACE_BIAS)},
    },
};

// Output 1 is p, [S, B, H], if want_weights.
const struct op_class attncl__op_feedback_attention_fwd = {
    .name = OP_CLASS(feedback_attention_fwd),
    .in = OP_IN({"query", F32 | STRIDED, "B C"}, {"key", STORED | ANY_VIEW, "S B H D"},
                {"value", SAME_TYPE | ANY_VIEW, "S B H D"}, {"key_pos_embeddings", F32, "P H D"},
                {"query_pos_bias", F32, "H D"}, {"key_pos_bias", F32 | OPTIONAL, "P H"},
                {"position", I32 | OPTIONAL, "1"}, {"dcache", F32 | OPTIONAL, NULL},
                {"step", I32 | OPTIONAL, ""}),
    .out = OP_OUT({"y", F32, NULL}, {"weights", F32 | OPTIONAL, "S B H"}),
    .int_axes = "SHDP",
    .infer = fwd_infer,
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .flop = "6SBHD", // at the last position, which only the device knows
    .moved = {[FEEDBACK_PLACES] = "SHD", [FEEDBACK_PLACE_BIAS] = "SH", [FEEDBACK_DCACHE] = "0"},
    .grad = GRAD_RULES(fwd_grad),
};
