// SPDX-License-Identifier: MIT
//
// A layer of recurrent units over a sequence: gated, or plain with an activation.  The input half xi
// is computed before.
//
// Two launches per step: the GEMM hh = W_hh h + b_hh, and the gates (cl/recurrent/gru.cl, which has the
// formulas), which write the step's rows of the output, the next step's state.  A reversed layer begins
// with the last step.  For the gradients the gates of all steps are saved: hh is written in their place,
// then r, z and n overwrite its parts that are no longer needed.  The gradients of plain units need only
// the output.
//
// With lengths, a state stays from its entry's length on, so that a reversed layer begins with h0 at the last step
// within.  `masked` is the states with zeros there.

#include "attncl/kinds.h"
#include "gemm/gemm.h"
#include "op/row_launch.h"

enum { IN_XI, IN_WEIGHT, IN_BIAS, IN_H0, IN_LENS };
enum { OUT_Y, OUT_GATES, OUT_MASKED };

// Xi and y are [T, B, ..] or [B, T, ..].
static int batch_axis(const struct op_sig *sig)
{
    const struct gru_fwd_params *params = sig->params;
    return params->layout == ATTNCL_LAYOUT_BATCH_FIRST ? 0 : 1;
}

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct gru_fwd_params *params = sig->params;
    const int64_t batch = sig->in[IN_XI].dim[batch_axis(sig)];
    int64_t *of = sig->axes->of;

    REQUIRE(params->layout == ATTNCL_LAYOUT_TIME_FIRST ||
                params->layout == ATTNCL_LAYOUT_BATCH_FIRST,
            ATTNCL_ERR_ARGUMENT, "layout %d is unknown", (int)params->layout);
    REQUIRE(params->plain == ATTNCL_IDENTITY || params->plain == ATTNCL_TANH ||
                params->plain == ATTNCL_RELU,
            ATTNCL_ERR_ARGUMENT, "activation %d of recurrent units, must be tanh or relu",
            (int)params->plain);
    REQUIRE(of['G'] == (params->plain ? 1 : 3) * of['H'], ATTNCL_ERR_SHAPE,
            "weight_hh is %s, must be [%sH, H]", SHAPE(&sig->in[IN_WEIGHT]),
            params->plain ? "" : "3 ");
    of['Z'] = 4 * of['H'];
    if (params->plain)
        sig->out[OUT_GATES].dtype = ATTNCL_DTYPE_NONE;
    REQUIRE(of['B'] < 0 || of['B'] == batch, ATTNCL_ERR_SHAPE, "%s, expected %" PRId64 " entries",
            attncl__desc_present(&sig->in[IN_H0]) ? "h0" : "lens", batch);
    if (attncl__desc_present(&sig->in[IN_LENS])) {
        REQUIRE(!params->plain, ATTNCL_ERR_UNSUPPORTED, "plain units take no lens");
        sig->out[OUT_MASKED].dtype = ATTNCL_F32;
    }
    return ATTNCL_OK;
}

// One step's hh, unless gates are saved.
static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    struct tensor_desc hh;

    *bytes_ret = 0;
    if (attncl__desc_present(&sig->out[OUT_GATES]))
        return ATTNCL_OK;
    const int64_t dim[2] = {sig->in[IN_XI].dim[batch_axis(sig)], sig->in[IN_XI].dim[2]};

    TRY(attncl__desc_make(ATTNCL_F32, 2, dim, &hh));
    *bytes_ret = attncl__desc_bytes(&hh);
    return ATTNCL_OK;
}

// One row of each batch entry: entry b begins at start + b * stride.
struct step_rows {
    struct span span; // absent: zeros
    int64_t start, stride;
};

static struct step_rows get_step_rows(const struct op_sig *sig, struct span span,
                                      const struct tensor_desc *x, int64_t t)
{
    const int b = batch_axis(sig);
    return (struct step_rows){span, x->start + t * x->stride[1 - b], x->stride[b]};
}

static struct step_rows initial_state(const struct op_call *call)
{
    const struct tensor_desc *h0 = &call->sig.in[IN_H0];

    if (!attncl__desc_present(h0))
        return (struct step_rows){.start = 0};
    return (struct step_rows){call->in[IN_H0], h0->start, attncl__rows(h0).stride};
}

// The memory of step t's hh.
static struct step_rows get_hh_rows(const struct op_call *call, int64_t t)
{
    const struct tensor_desc *gates = &call->sig.out[OUT_GATES];

    if (attncl__desc_present(gates))
        return get_step_rows(&call->sig, call->out[OUT_GATES], gates, t);
    return (struct step_rows){call->scratch, 0, call->sig.in[IN_XI].dim[2]};
}

// hh = W_hh h + b_hh, or b_hh if h is absent.
static attncl_status launch_gemm(struct launcher *l, const struct op_call *call, struct step_rows h,
                                 struct step_rows hh)
{
    const int64_t n_batch = call->sig.out[OUT_Y].dim[batch_axis(&call->sig)];
    const int64_t *dim = call->sig.in[IN_WEIGHT].dim;
    const struct gemm gemm =
        GEMM_OF(1, n_batch, dim[0], h.span.storage ? dim[1] : 0,
                .a = {.span = h.span, .start = h.start, .ld = h.stride},
                .b = {.span = call->in[IN_WEIGHT], .ld = dim[1]},
                .c = {.span = hh.span, .start = hh.start, .ld = hh.stride}, .trans_b = true,
                .bias_kind = GEMM_BIAS_COLUMN, .bias = call->in[IN_BIAS]);

    return attncl__gemm(l, &gemm);
}

#define ROWS(x) arg_mem((x).span), arg_i64((x).start), arg_i64((x).stride)

static attncl_status launch_gates(struct launcher *l, const struct op_call *call,
                                  struct step_rows xi, struct step_rows hh, struct step_rows h,
                                  struct step_rows y, int64_t t)
{
    enum { CHANNELS = 256 }; // maximum of a work-group; few, because a step is little work
    const struct tensor_desc *out = &call->sig.out[OUT_Y];
    const int64_t n_batch = out->dim[batch_axis(&call->sig)], width = out->dim[2];
    const int64_t per_group = width < CHANNELS ? width : CHANNELS;
    const int64_t n_chunks = ceil_div(width, per_group);
    const bool keep = attncl__desc_present(&call->sig.out[OUT_GATES]);
    const struct gru_fwd_params *params = call->sig.params;
    struct group_launch p =
        attncl__group_launch(l->caps, "recurrent/gru.cl", "gru_gates_fwd", per_group);

    kspec_int(&p.spec, "KIND", params->plain);
    return attncl__launch(l, &p.spec, grid_1d(n_batch * n_chunks, p.local),
                          ARGS(ROWS(xi), ROWS(hh), ROWS(h), arg_i32(h.span.storage != NULL),
                               ROWS(y), arg_i32(keep), arg_i32(width), arg_i32(n_chunks),
                               arg_i32(per_group), arg_mem(call->in[IN_LENS]),
                               arg_i32(attncl__desc_present(&call->sig.in[IN_LENS])), arg_i32(t),
                               arg_mem(call->out[OUT_MASKED])));
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct gru_fwd_params *params = call->sig.params;
    const struct tensor_desc *out = &call->sig.out[OUT_Y];
    const int64_t n_steps = out->dim[1 - batch_axis(&call->sig)];
    struct step_rows h = initial_state(call);

    for (int64_t i = 0; i < n_steps; ++i) {
        const int64_t t = params->reversed ? n_steps - 1 - i : i;
        const struct step_rows xi =
            get_step_rows(&call->sig, call->in[IN_XI], &call->sig.in[IN_XI], t);
        const struct step_rows y = get_step_rows(&call->sig, call->out[OUT_Y], out, t);
        const struct step_rows hh = get_hh_rows(call, t);
        TRY(launch_gemm(l, call, h, hh));
        TRY(launch_gates(l, call, xi, hh, h, y, t));
        h = y;
    }
    return ATTNCL_OK;
}

// REF_TEMP(0): dhh; REF_TEMP(1): the state before each step.
static const struct grad_rule gru_grad[] = {
    {.op = OP_gru_bwd,
     .same_params = true,
     .in = {REF_X(IN_WEIGHT), REF_X(IN_H0), REF_Y(OUT_Y), REF_Y(OUT_GATES), REF_DY(OUT_Y),
            REF_DY(OUT_MASKED), REF_X(IN_LENS)},
     .out = {REF_DX(IN_XI), REF_TEMP(0), REF_TEMP(1), REF_DX(IN_H0)}},
    {.op = OP_linear_bwd_weight, .in = {REF_TEMP(0), REF_TEMP(1)}, .out = {REF_DX(IN_WEIGHT)}},
    {.op = OP_linear_bwd_bias, .in = {REF_TEMP(0)}, .out = {REF_DX(IN_BIAS)}},
};

// Output 1 is each step's r, z, hh_n and n, [.., .., 4 H], for the gradients; absent for plain units.
const struct op_class attncl__op_gru_fwd = {
    .name = OP_CLASS(gru_fwd),
    .in = OP_IN({"xi", F32, "X Y G"}, {"weight_hh", F32, "G H"}, {"bias_hh", F32, "G"},
                {"h0", F32 | STRIDED | OPTIONAL, "B H"}, {"lens", I32 | OPTIONAL, "B"}),
    .out = OP_OUT({"y", F32, "X Y H"}, {"gates", F32 | FOR_BACKWARD, "X Y Z"},
                  {"masked", F32 | OPTIONAL, "X Y H"}),
    .int_axes = "G",
    .infer = fwd_infer,
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .flop = "2Gy + 13y", // the GEMMs; a sigmoid or tanh counts as one
    .grad = GRAD_RULES(gru_grad),
};
