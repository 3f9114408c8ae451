// SPDX-License-Identifier: MIT
//
// A feed-forward network of few rows with the layer norm in front of it, one launch:
//
//   x' = x + bias + sum_s before[s]           the residual stream, whose last addend is in parts
//   sum_s parts[s] = act(LN(x') W1^T + b1) W2^T
//
// Hidden units are cut into slices, which need nothing of each other up to the sum at the end; who
// reads the result next adds the parts.  Made when a graph is planned (graph/rewrite.c), behind
// another op that leaves parts; it has no gradient.

#include "launch/few_rows.h"
#include "launch/gemm.h"
#include "op/join.h"
#include "op/linear.h"
#include "op/parts.h"

enum { W1 = PARTS_INPUTS, B1, W2, N_INPUTS };

static attncl_status infer(struct op_sig *sig)
{
    const struct ffn_parts_fwd_params *params = sig->params;
    const struct tensor_desc *w1 = &sig->in[W1], *b1 = &sig->in[B1], *w2 = &sig->in[W2];

    TRY(attncl__check_input("w1", w1, ATTNCL_F32, 2));
    TRY(attncl__check_input("w2", w2, ATTNCL_F32, 2));
    TRY(attncl__parts_infer(sig, params->n_slices, w2->dim[0]));
    REQUIRE(w1->dim[1] == attncl__parts_width(sig), ATTNCL_ERR_SHAPE,
            "w1 is %s, x has %" PRId64 " channels", SHAPE(w1), attncl__parts_width(sig));
    REQUIRE(w2->dim[1] == w1->dim[0], ATTNCL_ERR_SHAPE, "w2 is %s, w1 is %s", SHAPE(w2), SHAPE(w1));
    if (attncl__desc_present(b1)) {
        TRY(attncl__check_input("b1", b1, ATTNCL_F32, 1));
        REQUIRE(b1->dim[0] == w1->dim[0], ATTNCL_ERR_SHAPE, "b1 is %s, w1 is %s", SHAPE(b1),
                SHAPE(w1));
    }
    REQUIRE(params->activation >= GEMM_ACT_NONE && params->activation <= GEMM_ACT_SILU,
            ATTNCL_ERR_ARGUMENT, "there is no activation %d", (int)params->activation);
    return ATTNCL_OK;
}

static bool suits(const struct op_sig *sig, int64_t n_slices)
{
    const struct tensor_desc *w1 = &sig->in[W1], *w2 = &sig->in[W2];
    const int64_t slice = attncl__parts_slice(sig->caps, w1->dim[0], n_slices);

    return attncl__parts_suit(sig, (int64_t[]){w1->dim[0], w1->dim[1], w2->dim[0]}, 3,
                              attncl__parts_rows(sig) * slice);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    enum { OWN_ARGS = 12 };
    const struct ffn_parts_fwd_params *params = call->sig.params;
    const int64_t m = attncl__parts_rows(&call->sig), d = attncl__parts_width(&call->sig);
    const int64_t f = call->sig.in[W1].dim[0], d_out = call->sig.in[W2].dim[0];
    const int64_t slice = attncl__parts_slice(l->caps, f, params->n_slices);
    struct kspec spec = kspec_begin("op/ffn_parts.cl", "ffn_parts_fwd");
    struct arg args[PARTS_ARGS + OWN_ARGS];

    REQUIRE(suits(&call->sig, params->n_slices) && ceil_div(f, slice) == params->n_slices,
            ATTNCL_ERR_UNSUPPORTED,
            "a network of %" PRId64 " rows, %" PRId64 " channels and %" PRId64
            " hidden units in %d slices cannot be one launch on this device",
            m, d, f, (int)params->n_slices);
    attncl__few_rows_form(l->caps, m, &spec);
    kspec_int(&spec, "TAIL", 0);
    kspec_int(&spec, "ACT", params->activation);
    attncl__parts_args(call, params->eps, args);
    const struct arg own[OWN_ARGS] = {
        arg_i32(f),
        arg_i32(slice),
        arg_i32(d_out),
        arg_i32(attncl__few_rows_ahead(l->caps, m, d)),
        arg_i32(attncl__few_rows_ahead(l->caps, m, slice)),
        arg_mem(call->in[W1]),
        arg_i32(attncl__desc_present(&call->sig.in[B1])),
        arg_mem(call->in[B1]),
        arg_mem(call->in[W2]),
        arg_mem(call->out[PARTS_RESULT]),
        arg_local((size_t)(m * d) * sizeof(float)),
        arg_local((size_t)(m * slice) * sizeof(float)),
    };
    memcpy(args + PARTS_ARGS, own, sizeof own);
    return attncl__launch(l, &spec, grid_1d(params->n_slices, 1), args, PARTS_ARGS + OWN_ARGS);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const double weights =
        (double)(attncl__desc_count(&sig->in[W1]) + attncl__desc_count(&sig->in[W2]));

    *flop_ret = (double)attncl__parts_rows(sig) * (2 * weights + 8 * (double)sig->in[W1].dim[1]);
    *bytes_ret = 4 * (weights + 2 * (double)attncl__desc_count(&sig->in[PARTS_X]) +
                      (double)attncl__desc_count(&sig->out[PARTS_RESULT]));
}

const struct op_class attncl__op_ffn_parts_fwd = {
    .name = "ffn_parts_fwd",
    .params_bytes = sizeof(struct ffn_parts_fwd_params),
    .n_in = N_INPUTS,
    .n_out = 2,
    .optional = 1u << PARTS_BEFORE | 1u << PARTS_BEFORE_BIAS | 1u << B1,
    .infer = infer,
    .launch = launch,
    .cost = cost,
};

static bool prepare(const struct op_sig *sig, const void *const *part_params, void *params)
{
    const struct linear_fwd_params *outer = part_params[0];
    const struct norm_linear_fwd_params *inner = part_params[1];
    struct ffn_parts_fwd_params *made = params;

    made->eps = inner->norm.eps;
    made->activation = inner->linear.activation;
    made->n_slices = attncl__parts_slices(sig->caps, sig->in[W1].dim[0],
                                          attncl__parts_rows(sig) * sig->in[W1].dim[0] *
                                              (sig->in[W1].dim[1] + sig->in[W2].dim[0]));
    return outer->activation == GEMM_ACT_NONE && suits(sig, made->n_slices);
}

// join -> norm_linear -> linear, becomes ffn_parts -> join.
enum { OUTER, INNER, STREAM };
const struct op_rewrite attncl__ffn_parts_rewrite = {
    .n_parts = 3,
    .part = {[OUTER] = {&attncl__op_linear_fwd},
             [INNER] = {&attncl__op_norm_linear_fwd, OUTER, LINEAR_X},
             [STREAM] = {&attncl__op_join_fwd, INNER, LINEAR_X}},
    .absent = {IN_OF(OUTER, LINEAR_GATE), IN_OF(INNER, LINEAR_GATE), IN_OF(INNER, LINEAR_RESIDUAL)},
    .passed_on = STREAM,
    .made = {{&attncl__op_ffn_parts_fwd,
              {[PARTS_X] = IN_OF(STREAM, JOIN_RESIDUAL),
               [PARTS_NORM_W] = IN_OF(INNER, N_LINEAR_INPUTS),
               [PARTS_NORM_B] = IN_OF(INNER, N_LINEAR_INPUTS + 1),
               [PARTS_BEFORE] = IN_OF(STREAM, JOIN_PARTS),
               [PARTS_BEFORE_BIAS] = IN_OF(STREAM, JOIN_BIAS),
               [W1] = IN_OF(INNER, LINEAR_WEIGHT),
               [B1] = IN_OF(INNER, LINEAR_BIAS),
               [W2] = IN_OF(OUTER, LINEAR_WEIGHT)}},
             {&attncl__op_join_fwd,
              {[JOIN_PARTS] = OUT_OF(INNER, 0),
               [JOIN_BIAS] = IN_OF(OUTER, LINEAR_BIAS),
               [JOIN_RESIDUAL] = IN_OF(OUTER, LINEAR_RESIDUAL)}}},
    .prepare = prepare,
};
