// SPDX-License-Identifier: MIT
//
// Backward pass of a layer of recurrent units, in reverse order of its steps.
//
// Each step computes the gates' gradients (cl/recurrent/gru_bwd.cl), dhh among them, from r, z, hh_n
// and n saved by the forward op (gru.c), or from the output of plain units.  Then
// dh = g z + W_hh^T dhh, without g z for plain units, goes to the step before.
//
// W_hh and b_hh map `before`, the state before each step, to hh.  Their gradients come from the linear
// map's ops, which is why `before` and dhh are outputs.

#include "attncl/kinds.h"
#include "gemm/gemm.h"
#include "op/row_launch.h"

enum { IN_WEIGHT, IN_H0, IN_Y, IN_GATES /* absent for plain units */, IN_DY, IN_DMASKED, IN_LENS };
enum { OUT_DXI, OUT_DHH, OUT_BEFORE, OUT_DH0 };

static bool time_first(const struct op_sig *sig)
{
    const struct gru_bwd_params *params = sig->params;
    return params->layout != ATTNCL_LAYOUT_BATCH_FIRST;
}

static int64_t batch_count(const struct op_sig *sig)
{
    return sig->in[IN_Y].dim[time_first(sig) ? 1 : 0];
}

// Elements of a state, rounded up to the alignment of vectors.
static int64_t state_floats(const struct op_sig *sig)
{
    return ceil_div(batch_count(sig) * sig->in[IN_WEIGHT].dim[1], 16) * 16;
}

// g z, and dh after it.
static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = 2 * sizeof(float) * (size_t)state_floats(sig);
    return ATTNCL_OK;
}

// A step's rows of y, gates and their gradients: batch entry b is row first + b * step.
struct step_rows {
    int64_t first, step;
};

static int64_t step_count(const struct op_sig *sig)
{
    return sig->in[IN_Y].dim[time_first(sig) ? 0 : 1];
}

// The i-th step in the forward op's order.
static int64_t get_step(const struct op_sig *sig, int64_t i)
{
    const struct gru_bwd_params *params = sig->params;
    return params->reversed ? step_count(sig) - 1 - i : i;
}

static struct step_rows get_step_rows(const struct op_sig *sig, int64_t i)
{
    const int64_t n_steps = step_count(sig), t = get_step(sig, i);
    return time_first(sig) ? (struct step_rows){t * batch_count(sig), 1}
                           : (struct step_rows){t, n_steps};
}

// The state before the i-th step: entry b at start + b * stride; absent: zeros.
struct state_rows {
    struct span span;
    int64_t start, stride;
};

static struct state_rows state_rows(const struct op_call *call, int64_t i)
{
    const struct tensor_desc *h0 = &call->sig.in[IN_H0];
    const int64_t width = call->sig.in[IN_WEIGHT].dim[1];

    if (i > 0) {
        const struct step_rows rows = get_step_rows(&call->sig, i - 1);
        return (struct state_rows){call->in[IN_Y], rows.first * width, rows.step * width};
    }
    if (!attncl__desc_present(h0))
        return (struct state_rows){.start = 0};
    return (struct state_rows){call->in[IN_H0], h0->start, attncl__rows(h0).stride};
}

static attncl_status launch_gates(struct launcher *l, const struct op_call *call,
                                  struct state_rows h, int64_t i)
{
    enum { CHANNELS = 256 }; // maximum of a work-group; few, because a step is little work
    const int64_t n_batch = batch_count(&call->sig), width = call->sig.in[IN_WEIGHT].dim[1];
    const int64_t per_group = width < CHANNELS ? width : CHANNELS;
    const int64_t n_chunks = ceil_div(width, per_group);
    const struct gru_bwd_params *params = call->sig.params;
    const struct step_rows rows = get_step_rows(&call->sig, i);
    const struct tensor_desc *in = call->sig.in;
    struct group_launch p =
        attncl__group_launch(l->caps, "recurrent/gru_bwd.cl", "gru_bwd_gates", per_group);

    kspec_int(&p.spec, "KIND", params->plain);
    return attncl__launch(
        l, &p.spec, grid_1d(n_batch * n_chunks, p.local),
        ARGS(arg_mem(call->in[params->plain ? IN_Y : IN_GATES]), arg_mem(h.span), arg_i64(h.start),
             arg_i64(h.stride), arg_i32(h.span.storage != NULL), arg_mem(call->in[IN_DY]),
             arg_mem(call->out[OUT_DXI]), arg_mem(call->out[OUT_DHH]),
             arg_mem(call->out[OUT_BEFORE]), arg_mem(call->scratch),
             arg_i64(state_floats(&call->sig)), arg_i32(i < step_count(&call->sig) - 1),
             arg_i64(rows.first), arg_i64(rows.step), arg_i32(width), arg_i32(n_chunks),
             arg_i32(per_group), arg_i32(attncl__desc_present(&in[IN_DY])),
             arg_mem(call->in[IN_DMASKED]), arg_i32(attncl__desc_present(&in[IN_DMASKED])),
             arg_mem(call->in[IN_LENS]), arg_i32(attncl__desc_present(&in[IN_LENS])),
             arg_i32(get_step(&call->sig, i))));
}

// dh = dhh W_hh, plus g z for gated units.
static attncl_status launch_state_gradient(struct launcher *l, const struct op_call *call,
                                           struct step_rows rows, struct gemm_matrix dh)
{
    const struct gru_bwd_params *params = call->sig.params;
    const int64_t n_gates = call->sig.in[IN_WEIGHT].dim[0];
    const int64_t width = call->sig.in[IN_WEIGHT].dim[1];
    struct gemm gemm = GEMM_OF(
        1, batch_count(&call->sig), width, n_gates,
        .a = {.span = call->out[OUT_DHH], .start = rows.first * n_gates, .ld = rows.step * n_gates},
        .b = {.span = call->in[IN_WEIGHT], .ld = width}, .c = dh);

    if (!params->plain)
        gemm.residual = (struct gemm_matrix){.span = call->scratch, .ld = width};
    return attncl__gemm(l, &gemm);
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct op_sig *sig = &call->sig;
    const int64_t n_steps = step_count(sig), width = sig->in[IN_WEIGHT].dim[1];
    const struct gemm_matrix dh = {.span = call->scratch, .start = state_floats(sig), .ld = width};
    const struct gemm_matrix dh0 = {.span = call->out[OUT_DH0], .ld = width};

    for (int64_t i = n_steps - 1; i >= 0; --i) {
        TRY(launch_gates(l, call, state_rows(call, i), i));
        if (i > 0 || attncl__desc_present(&sig->out[OUT_DH0]))
            TRY(launch_state_gradient(l, call, get_step_rows(sig, i), i > 0 ? dh : dh0));
    }
    return ATTNCL_OK;
}

const struct op_class attncl__op_gru_bwd = {
    .name = OP_CLASS(gru_bwd),
    .in = OP_IN({"weight_hh", F32, "G H"}, {"h0", F32 | STRIDED | OPTIONAL, "B H"},
                {"y", F32, "X Y H"}, {"gates", F32 | OPTIONAL, "X Y Z"},
                {"dy", F32 | OPTIONAL, "X Y H"}, {"dmasked", F32 | OPTIONAL, "X Y H"},
                {"lens", I32 | OPTIONAL, "B"}),
    .out = OP_OUT({"dxi", F32, "X Y G"}, {"dhh", F32, "X Y G"}, {"before", F32, "X Y H"},
                  {"dh0", F32, "=h0"}),
    .int_axes = "G",
    .scratch = bwd_scratch,
    .launch = bwd_launch,
    .flop = "2GHXY + 18HXY", // a GEMM as large as the forward one, and the gates
};
