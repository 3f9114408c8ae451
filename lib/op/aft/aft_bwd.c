// SPDX-License-Identifier: MIT
//
// Gradients of attention-free mixing, at the forward op's cost in time and memory.
//
//   a = g sigmoid(q),   p_ij = e^(w_ij + k_j - L_i)
//   dq_i = g_i y_i (1 - sigmoid(q_i))
//   dv_j = sum_i p_ij a_i
//   dk_j = v_j dv_j - sum_i p_ij g_i y_i
//   dw_ij = sum over channels of p_ij (a_i v_j - g_i y_i)
//
// y and L are the forward op's results.  The forward kernels also compute dk and dv, with queries
// and keys swapped: the queries' -L, a and g y replace keys, 1 and values, and the biases are
// reversed.  dw is a product over the channels, for pairs inside the window only.

#include "op/aft/aft.h"
#include "op/view/view.h"

enum { IN_Y = AFT_IN_Y, IN_LOG = AFT_IN_LOG, IN_G = AFT_IN_G };
enum { OUT_DQ, OUT_DK, OUT_DV, OUT_DW };

enum { SLACK = 16 }; // floats around the reversed biases that vectors may read

// Offsets in floats.  A channel block comes first, then the reversed biases; with heads also a table
// with one head's dw, and dk of each channel.
struct scratch_layout {
    int64_t reversed_bias_at, table_at, dk_at, floats;
};

static struct scratch_layout lay_out_scratch(const struct op_sig *sig, const struct aft_tiling *p)
{
    const int64_t table = p->window > 0 ? p->steps * (2 * p->window - 1) : 0;
    struct scratch_layout x = {.reversed_bias_at = p->block_floats + SLACK};

    if (!p->per_head) {
        x.floats = x.reversed_bias_at + table + SLACK;
        return x;
    }
    const struct tensor_desc *w = &sig->in[AFT_IN_BIAS];
    x.table_at = x.reversed_bias_at + attncl__desc_count(w) + SLACK;
    x.dk_at = x.table_at + p->steps * w->dim[1] + SLACK;
    x.floats = x.dk_at + attncl__desc_count(&sig->in[AFT_IN_Q]);
    return x;
}

// Packed sources of the table and of the backward pass share their space.
static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = 0;
    if (attncl__desc_count(&sig->in[AFT_IN_Q]) == 0)
        return ATTNCL_OK;
    const struct aft_tiling p = attncl__aft_choose_tiling(sig);
    *bytes_ret = (size_t)lay_out_scratch(sig, &p).floats * sizeof(float);
    return ATTNCL_OK;
}

static attncl_status launch_channel_blocks(struct launcher *l, struct aft_series *s)
{
    const struct aft_tiling *p = s->forward.p;

    if (!p->cpu && p->window > 0)
        TRY(attncl__aft_bwd_launch_pairs(l, s));
    for (int64_t lane = 0; lane < p->lanes; lane += p->block_lanes) {
        const int64_t lanes = p->lanes - lane < p->block_lanes ? p->lanes - lane : p->block_lanes;
        s->forward.lane0 = s->backward.lane0 = lane;
        s->forward.lanes = s->backward.lanes = lanes;
        if (p->cpu && p->window > 0)
            TRY(attncl__aft_bwd_launch_table(l, s));
        TRY(attncl__aft_launch_channel_block(l, &s->backward));
    }
    return ATTNCL_OK;
}

static attncl_status launch_series(struct launcher *l, const struct op_call *call,
                                   const struct aft_tiling *p, const struct scratch_layout *x,
                                   int64_t head, int64_t b)
{
    const struct aft_variant *variant = &p->variant;
    const int64_t width = p->heads * p->channels;
    const struct aft_channel_block f = attncl__aft_forward_block(call, p, head, b);
    struct aft_series s = {
        .forward = f,
        .backward =
            {
                .p = p,
                .backward = true,
                .source = {attncl__aft_input(call, p, IN_LOG, head, b),
                           attncl__aft_input(call, p, AFT_IN_Q, head, b),
                           attncl__aft_input(call, p, IN_Y, head, b),
                           attncl__aft_input(call, p, IN_G, head, b)},
                .target = {f.source[0], f.source[1]},
                .result = {call->out[OUT_DK], b * width + head * p->channels, width},
                .second_result = call->out[OUT_DV],
                .scratch = call->scratch,
                .bias = call->scratch,
                .bias_start = x->reversed_bias_at + p->window - 1,
                .bias_row = 2 * p->window - 2,
                .mask = f.mask,
                .mask_start = f.mask_start,
                .mask_row = f.mask_column,
                .mask_column = f.mask_row,
                .causal = -f.causal,
            },
        .table = call->out[OUT_DW],
        .table_row = variant->bias_row,
    };
    if (p->per_head) {
        s.backward.result.span = call->scratch;
        s.backward.result_offset = x->dk_at;
        s.backward.bias_start = x->reversed_bias_at + f.bias_start;
        s.backward.bias_row = variant->bias_row;
        s.table = call->scratch;
        s.table_start = x->table_at + variant->bias_start;
        s.table_row = call->sig.in[AFT_IN_BIAS].dim[1] - 1;
    }
    return launch_channel_blocks(l, &s);
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *in = call->sig.in, *w = &in[AFT_IN_BIAS];

    if (attncl__desc_count(&in[AFT_IN_Q]) == 0)
        return attncl__desc_present(w)
                   ? attncl__zeros(l, call->out[OUT_DW], 0, attncl__desc_count(w))
                   : ATTNCL_OK;
    struct aft_tiling p = attncl__aft_choose_tiling(&call->sig);
    const struct scratch_layout x = lay_out_scratch(&call->sig, &p);

    TRY(attncl__check_loops(l->caps, "gradients of attention-free mixing", p.iterations));
    attncl__aft_fit_work_groups(l, &p, true);
    TRY(attncl__aft_bwd_launch_gate(l, call));
    TRY(attncl__aft_bwd_launch_bias_reversal(l, call, &p, x.reversed_bias_at));
    if (!p.per_head && attncl__desc_present(w))
        TRY(attncl__zeros(l, call->out[OUT_DW], 0, attncl__desc_count(w)));
    for (int64_t head = 0; head < p.heads; ++head) {
        if (p.per_head)
            TRY(attncl__zeros(l, call->scratch, x.table_at, p.steps * w->dim[1]));
        for (int64_t b = 0; b < p.entries; ++b)
            TRY(launch_series(l, call, &p, &x, head, b));
        if (p.per_head)
            TRY(attncl__aft_bwd_launch_sums(l, &(struct aft_sums){.x = call->scratch,
                                                                  .y = call->out[OUT_DW],
                                                                  .x_start = x.table_at,
                                                                  .x_row = w->dim[1],
                                                                  .y_start = head * w->dim[1],
                                                                  .n = p.steps,
                                                                  .count = w->dim[1],
                                                                  .down = true}));
    }
    if (!p.per_head)
        return ATTNCL_OK;
    return attncl__aft_bwd_launch_sums(
        l, &(struct aft_sums){.x = call->scratch,
                              .y = call->out[OUT_DK],
                              .x_start = x.dk_at,
                              .x_row = p.channels,
                              .n = p.channels,
                              .count = attncl__desc_count(&in[AFT_IN_K])});
}

// The forward op's operations, and those of dw for pairs with a bias.
static void bwd_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    (void)bytes_ret; // inputs and outputs only
    const struct aft_variant variant = attncl__aft_variant(sig);
    const double count = (double)attncl__desc_count(&sig->in[AFT_IN_Q]);
    const double steps = (double)sig->in[AFT_IN_Q].dim[0], sides = variant.causal ? 1 : 2;
    const bool masked = attncl__desc_present(&sig->in[AFT_IN_MASK]);
    const double all = variant.causal ? steps / 2 : steps;
    const double window =
        attncl__desc_present(&sig->in[AFT_IN_BIAS]) ? sides * (double)variant.window : 0;
    const double biased = window < all ? window : all, reach = masked ? all : biased;

    *flop_ret = count * (4 * reach + 4 * biased + 100);
}

const struct op_class attncl__op_aft_bwd = {
    .name = OP_CLASS(aft_bwd),
    .in = OP_IN({"q", F32, "T B C"}, {"k", F32, NULL}, {"v", F32, "T B C"},
                {"pos_bias", F32 | OPTIONAL, NULL}, {"mask", U8 | OPTIONAL, "T|1 T B|1"},
                {"y", F32, "T B C"}, {"log", F32, "T B C"}, {"dy", F32, "T B C"}),
    .out = OP_OUT({"dq", F32, "T B C"}, {"dk", F32, "=k"}, {"dv", F32, "T B C"},
                  {"dpos_bias", F32, "=pos_bias"}),
    .infer = attncl__aft_infer,
    .scratch = bwd_scratch,
    .launch = bwd_launch,
    .cost = bwd_cost,
};
