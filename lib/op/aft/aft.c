// SPDX-License-Identifier: MIT
//
// Attention-free mixing (Zhai et al. 2021, arXiv 2105.14103): AFT-local with a table of position
// biases, AFT-conv (eq. 6) with one bias per head and distance.
//
//   y_i = sigmoid(q_i) sum_j p_ij v_j,   p_ij = softmax over visible j of (w_ij + k_j), per batch
//   entry and channel
//
// Table: w is [n, n], read where |i - j| < window, else 0; each channel has its own keys.
// Per head: channel c belongs to head c / (C / H), which has one key per row; w is
// filter[head, j - i + (s - 1) / 2] where that exists, else 0.  The paper subtracts 1 from e^w in
// the window and adds the sum over all rows; here each head is AFT-local over its channels.
//
// Rows without a bias are added as sums of whole blocks, so the cost is O(T window) per channel; a
// mask makes it O(T^2).  Blocks of channels run one after another and share the scratch
// (aft_channel_block.c).

#include "op/aft/aft.h"

attncl_status attncl__aft_check_heads(const struct op_sig *sig)
{
    const int64_t *of = sig->axes->of;

    REQUIRE(of['H'] >= 1 && of['C'] % of['H'] == 0, ATTNCL_ERR_SHAPE,
            "k has H = %" PRId64 ", which does not divide C = %" PRId64, of['H'], of['C']);
    return ATTNCL_OK;
}

attncl_status attncl__aft_check_bias(const struct op_sig *sig, int i, bool per_head)
{
    const int64_t *of = sig->axes->of;
    const bool has_bias = attncl__desc_present(&sig->in[i]);

    REQUIRE(has_bias || !per_head, ATTNCL_ERR_ARGUMENT, "pos_bias is missing");
    if (per_head)
        TRY(attncl__aft_check_heads(sig));
    if (has_bias)
        TRY(attncl__check_shape(sig, i, per_head ? "H F" : "N N"));
    REQUIRE(!per_head || of['F'] % 2 == 1, ATTNCL_ERR_SHAPE,
            "pos_bias is %s, each head must have an odd number", SHAPE(&sig->in[i]));
    return attncl__check_axes(sig, "FN", 0, AFT_MAX_LENGTH);
}

attncl_status attncl__aft_check_state(const struct op_sig *sig, int keys, int64_t window)
{
    const int64_t *of = sig->axes->of, slots = window > 0 ? window : 1, all = of['B'] * of['C'];

    TRY(attncl__check_product(sig, "BC", AFT_MAX_LENGTH));
    REQUIRE(of['W'] == slots && of['A'] == all, ATTNCL_ERR_SHAPE,
            "keys is %s, expected [%" PRId64 ", %" PRId64 "]", SHAPE(&sig->in[keys]), slots, all);
    return ATTNCL_OK;
}

attncl_status attncl__aft_infer(struct op_sig *sig)
{
    const struct aft_fwd_params *params = sig->params; // the backward op's begin alike
    const struct tensor_desc *mask = &sig->in[AFT_IN_MASK];

    REQUIRE(params->window >= 0, ATTNCL_ERR_ARGUMENT, "window is %d, at least 0", params->window);
    REQUIRE(!params->causal || !attncl__desc_present(mask), ATTNCL_ERR_ARGUMENT,
            "causal = 1 and a mask %s: one of them", SHAPE(mask));
    TRY(attncl__check_axes(sig, "T", 0, AFT_MAX_LENGTH));
    TRY(attncl__check_product(sig, "BC", AFT_MAX_LENGTH));
    TRY(attncl__check_shape(sig, AFT_IN_K, params->per_head ? "T B H" : "T B C"));
    TRY(attncl__aft_check_bias(sig, AFT_IN_BIAS, params->per_head));
    return attncl__check_at_most(sig, 'T', 'N');
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = 0;
    if (attncl__desc_count(&sig->in[AFT_IN_Q]) > 0)
        *bytes_ret = (size_t)attncl__aft_choose_tiling(sig).block_floats * sizeof(float);
    return ATTNCL_OK;
}

static attncl_status launch_series(struct launcher *l, const struct op_call *call,
                                   const struct aft_tiling *p, int64_t head, int64_t b)
{
    const int64_t width = p->heads * p->channels;
    struct aft_channel_block s = attncl__aft_forward_block(call, p, head, b);

    s.target[0] = attncl__aft_input(call, p, AFT_IN_Q, head, b);
    s.result = (struct aft_matrix){call->out[0], b * width + head * p->channels, width};
    s.second_result = call->out[1];
    s.save_log = attncl__desc_present(&call->sig.out[1]);
    for (; s.lane0 < p->lanes; s.lane0 += p->block_lanes) {
        s.lanes = p->lanes - s.lane0 < p->block_lanes ? p->lanes - s.lane0 : p->block_lanes;
        TRY(attncl__aft_launch_channel_block(l, &s));
    }
    return ATTNCL_OK;
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    struct aft_tiling p = attncl__aft_choose_tiling(&call->sig);

    TRY(attncl__check_loops(l->caps, "attention-free mixing", p.iterations));
    attncl__aft_fit_work_groups(l, &p, false);
    for (int64_t head = 0; head < p.heads; ++head)
        for (int64_t b = 0; b < p.entries; ++b)
            TRY(launch_series(l, call, &p, head, b));
    return ATTNCL_OK;
}

// Per pair of rows inside the window: weight times (1, v), added.  Per element: two exponentials.
static void fwd_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct aft_variant variant = attncl__aft_variant(sig);
    const double count = (double)attncl__desc_count(&sig->out[0]),
                 keys = (double)attncl__desc_count(&sig->in[AFT_IN_K]),
                 steps = (double)sig->out[0].dim[0];
    const bool biased = attncl__desc_present(&sig->in[AFT_IN_BIAS]),
               masked = attncl__desc_present(&sig->in[AFT_IN_MASK]);
    const double window = biased ? (double)variant.window : 0, sides = variant.causal ? 1 : 2;
    const double all = variant.causal ? steps / 2 : steps;
    const double reach = masked || sides * window > all ? all : sides * window;
    const double table =
        variant.heads > 0 ? (double)attncl__desc_count(&sig->in[AFT_IN_BIAS]) : steps * reach;

    *flop_ret = count * (4 * reach + 40);
    *bytes_ret = 12 * count + 4 * keys + 4 * (biased ? table : 0) +
                 (masked ? (double)attncl__desc_count(&sig->in[AFT_IN_MASK]) : 0);
}

static const struct grad_rule fwd_grad[] = {
    {
        .op = OP_aft_bwd,
        .same_params = true,
        .in = {REF_X(AFT_IN_Q), REF_X(AFT_IN_K), REF_X(AFT_IN_V), REF_X(AFT_IN_BIAS),
               REF_X(AFT_IN_MASK), REF_Y(AFT_OUT_Y), REF_Y(AFT_OUT_LOG), REF_DY(AFT_OUT_Y)},
        .out = {REF_DX(AFT_IN_Q), REF_DX(AFT_IN_K), REF_DX(AFT_IN_V), REF_DX(AFT_IN_BIAS)},
    },
};

const struct op_class attncl__op_aft_fwd = {
    .name = OP_CLASS(aft_fwd),
    .in = OP_IN({"q", F32 | STRIDED, "T B C"}, {"k", F32 | STRIDED, NULL},
                {"v", F32 | STRIDED, "T B C"}, {"pos_bias", F32 | OPTIONAL, NULL},
                {"mask", U8 | OPTIONAL, "T|1 T B|1"}),
    .out = OP_OUT({"y", F32, "T B C"}, {"log", F32 | FOR_BACKWARD, "T B C"}),
    .infer = attncl__aft_infer,
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .cost = fwd_cost,
    .grad = GRAD_RULES(fwd_grad),
};
