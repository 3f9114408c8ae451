// SPDX-License-Identifier: MIT
//
// Softmax attention: one fused kernel with an online softmax.
//
//   y_i = sum_j m_ij p_ij v_j,   p_ij = softmax over visible j of s_ij,   s_ij = scale * (q_i . k_j)
//
// With a soft cap, s_ij is softcap tanh(s_ij / softcap) instead.  Then bias_ij and
// slope (j - i - S + T) are added, except for keys beyond a valid length.  m is the dropout mask,
// [B, H, T, S], or 1; the optional output of weights is p.
//
// For the gradients each row's maximum and 1 / total are saved: p_ij = exp(s_ij - maximum) / total.
// That maximum may be a score up to 8 below the largest (SLACK in cl/attention/attention_cpu.cl).
//
// q [B, H, T, D], k [B, G, S, D], v [B, G, S, E]; y is [T, B, H, E] or [B, T, H, E].  Query head h
// reads key and value head h / (H / G).  Query i is at key i + S - T or, with the input `position`
// (read on the device), at key i + position; later keys do not exist yet.  The CPU variant packs
// keys into tiles (cl/attention/attention_cpu_pack.cl), then runs blocks of queries over them
// (attention_cpu.cl); the GPU variant reads keys in place (lib/op/attention/attention_gpu.c).

#include "op/attention/attention.h"
#include "attncl/kinds.h"

enum { MAX_LENGTH = 1 << 29 }; // kernels add T and S as ints

const char *attncl__attention_result(const struct op_sig *sig)
{
    return attncl__attention_time_axis(sig) == 0 ? "T B H E" : "B T H E";
}

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct attention_fwd_params *params = sig->params;
    const int64_t *of = sig->axes->of;

    for (int i = ATT_IN_Q; i <= ATT_IN_V; ++i)
        REQUIRE(sig->in[i].stride[3] == 1 || sig->in[i].dim[3] == 1, ATTNCL_ERR_UNSUPPORTED,
                "the last axis of %s has stride %" PRId64 ", expected 1", sig->cls->in[i].name,
                sig->in[i].stride[3]);
    TRY(attncl__check_axes(sig, "TS", 0, MAX_LENGTH));
    TRY(attncl__check_axes(sig, "DE", 1, MAX_LENGTH));
    REQUIRE(of['H'] <= INT32_MAX && of['B'] <= INT32_MAX / (of['H'] + 1), ATTNCL_ERR_SHAPE,
            "B H = %" PRId64 " * %" PRId64 ", at most %d", of['B'], of['H'], INT32_MAX);
    REQUIRE(of['H'] == of['G'] || (of['G'] > 0 && of['H'] > 0 && of['H'] % of['G'] == 0),
            ATTNCL_ERR_SHAPE, "q has H = %" PRId64 ", k has G = %" PRId64 ": G must divide H",
            of['H'], of['G']);
    REQUIRE(params->window >= 0, ATTNCL_ERR_ARGUMENT, "window is %" PRId64 ", at least 0",
            params->window);
    REQUIRE(!params->hard_lens || attncl__desc_present(&sig->in[ATT_IN_LENS]), ATTNCL_ERR_ARGUMENT,
            "hard_lens is %d, valid_lens are missing", (int)params->hard_lens);
    REQUIRE(params->causal || !attncl__desc_present(&sig->in[ATT_IN_POSITION]), ATTNCL_ERR_ARGUMENT,
            "position is given, causal is 0");
    TRY(attncl__check_softcap(params->softcap));
    TRY(attncl__check_dropout(&params->dropout, &sig->in[ATT_IN_STEP], of['B']));
    if (params->want_weights)
        sig->out[ATT_OUT_WEIGHTS].dtype = ATTNCL_F32;
    return attncl__make_output(sig, 0, attncl__attention_result(sig));
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    struct attention_tiling p;

    *bytes_ret = 0;
    if (attncl__desc_count(&sig->out[0]) == 0)
        return ATTNCL_OK;
    TRY(attncl__attention_choose_tiling(sig, &p));
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
    const bool weights = attncl__desc_present(&call->sig.out[ATT_OUT_WEIGHTS]);
    const int64_t block = p->block;
    struct tensor_desc v = call->sig.in[ATT_IN_V];
    struct kspec spec =
        attncl__attention_cpu_spec(p, "attention/attention_cpu.cl", "attention_cpu_fwd");

    if (p->copy_values) {
        v.start = p->key_floats;
        v.stride[2] = p->value_pitch;
        v.stride[1] = p->n_keys * p->value_pitch;
        v.stride[0] = v.dim[1] * v.stride[1];
    }
    kspec_int(&spec, "WEIGHTS", weights);
    return attncl__attention_launch(
        l, call, p, &spec, grid_3d(ceil_div(p->n_queries, block), p->kv_group, p->kv_heads, 1, 1),
        ARGS(ATTENTION_HEADS(call, ATT_IN_Q), arg_mem(call->scratch),
             ATTENTION_HEADS_OF(p->copy_values ? call->scratch : call->in[ATT_IN_V], &v),
             arg_mem(call->out[0]), ATTENTION_STRIDES(call, &call->sig.out[0]),
             arg_mem(call->out[ATT_OUT_WEIGHTS]), arg_mem(call->out[ATT_OUT_ROWS]),
             arg_i32(attncl__desc_present(&call->sig.out[ATT_OUT_ROWS])), arg_i32(block),
             arg_local(floats(block * (p->width + p->key_tile + p->value_pitch + 1 + p->vw)))));
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    struct attention_tiling p;

    TRY(attncl__attention_choose_tiling(&call->sig, &p));
    p.at_position = attncl__desc_present(&call->sig.in[ATT_IN_POSITION]);
    if (p.gpu)
        return attncl__attention_launch_gpu(l, call, &p);
    const struct attention_packing packing = {
        .tiles = ATT_IN_K,
        .rows = ATT_IN_V,
        .rows_at = p.key_floats,
        .pitch = p.copy_values ? p.value_pitch : 0,
    };
    TRY(attncl__attention_launch_packing(l, call, &p, &packing));
    return launch_blocks(l, call, &p);
}

#define GRADIENT_INPUTS                                                                            \
    {                                                                                              \
        REF_X(0), REF_X(1), REF_X(2), REF_X(3), REF_X(4), REF_X(5), REF_X(6), REF_Y(0),            \
            REF_Y(ATT_OUT_WEIGHTS), REF_Y(ATT_OUT_ROWS), REF_DY(0), REF_DY(ATT_OUT_WEIGHTS),       \
            REF_X(ATT_IN_STEP)                                                                     \
    }
static const struct grad_rule fwd_grad[] = {
    {
        .op = OP_attention_bwd,
        .same_params = true,
        .in = GRADIENT_INPUTS,
        .out = {REF_DX(ATT_IN_Q), REF_DX(ATT_IN_K), REF_DX(ATT_IN_V)},
    },
    {
        .op = OP_attention_bwd_bias,
        .same_params = true,
        .in = GRADIENT_INPUTS,
        .out = {REF_DX(ATT_IN_BIAS)},
    },
};

// Output 1 is p, [B, H, T, S], if wanted.  Output 2, for the gradients, is each row's maximum and
// 1 / total, [B, H, T, 2]; both are 0 where a row sees no key.
const struct op_class attncl__op_attention_fwd = {
    .name = OP_CLASS(attention_fwd),
    .in = OP_IN(ATTENTION_IN(F32 | OPTIONAL), {"position", I32 | OPTIONAL, "1"},
                {"step", I32 | OPTIONAL, ""}),
    .out = OP_OUT({"y", F32, NULL}, {"weights", F32 | OPTIONAL, "B H T S"},
                  {"rows", F32 | FOR_BACKWARD, "B H T 2"}),
    .infer = fwd_infer,
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .flop = "2BHpD + 2BHpE + 5BHp", // two products, and the softmax
    .pairs = attncl__attention_pairs,
    .grad = GRAD_RULES(fwd_grad),
};
