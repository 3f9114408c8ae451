// SPDX-License-Identifier: MIT
//
// Backward pass of a layer of gated recurrent units, from the last step to the first.
//
//   hh = W_hh h + b_hh for all steps at once: every state is known
//   a step: the gates' gradients (cl/recurrent/gru_bwd.cl), dhh among them, and
//   dh = g z + W_hh^T dhh, which is what reaches the step before
//
// The gradients of W_hh and b_hh are those of a linear map that took `before` to dhh, and are left
// to its ops: both are outputs.

#include "attncl/kinds.h"
#include "gemm/gemm.h"
#include "op/op.h"
#include "op/row_launch.h"

enum { IN_XI, IN_WEIGHT, IN_BIAS, IN_H0, IN_Y, IN_DY };
enum { OUT_DXI, OUT_DHH, OUT_BEFORE, OUT_DH0 };

static bool time_first(const struct op_sig *sig)
{
    const struct gru_bwd_params *params = sig->params;
    return params->layout != ATTNCL_LAYOUT_BATCH_FIRST;
}

static int64_t batch_count(const struct op_sig *sig)
{
    return sig->in[IN_XI].dim[time_first(sig) ? 1 : 0];
}

static attncl_status bwd_infer(struct op_sig *sig)
{
    const struct tensor_desc *xi = &sig->in[IN_XI], *weight = &sig->in[IN_WEIGHT];
    const struct tensor_desc *y = &sig->in[IN_Y], *dy = &sig->in[IN_DY];

    TRY(attncl__check_input("xi", xi, ATTNCL_F32, 3));
    TRY(attncl__check_input("weight_hh", weight, ATTNCL_F32, 2));
    TRY(attncl__check_input("y", y, ATTNCL_F32, 3));
    TRY(attncl__check_input("dy", dy, ATTNCL_F32, 3));
    REQUIRE(attncl__desc_same_shape(y, dy), ATTNCL_ERR_SHAPE, "y is %s, dy is %s", SHAPE(y),
            SHAPE(dy));
    REQUIRE(xi->dim[2] == weight->dim[0] && y->dim[2] == weight->dim[1], ATTNCL_ERR_SHAPE,
            "xi is %s and y is %s, weight_hh is %s", SHAPE(xi), SHAPE(y), SHAPE(weight));
    TRY(attncl__check_width("the last axis of xi", xi->dim[2]));
    TRY(attncl__desc_make(ATTNCL_F32, 3, xi->dim, &sig->out[OUT_DXI]));
    sig->out[OUT_DHH] = sig->out[OUT_DXI];
    TRY(attncl__desc_make(ATTNCL_F32, 3, y->dim, &sig->out[OUT_BEFORE]));
    if (!attncl__desc_present(&sig->in[IN_H0]))
        return ATTNCL_OK;
    return attncl__desc_make(ATTNCL_F32, 2, sig->in[IN_H0].dim, &sig->out[OUT_DH0]);
}

// Elements of a state, up to a multiple of what vectors are aligned to.
static int64_t state_floats(const struct op_sig *sig)
{
    return ceil_div(batch_count(sig) * sig->in[IN_WEIGHT].dim[1], 16) * 16;
}

// carry, and dh after it.
static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = 2 * sizeof(float) * (size_t)state_floats(sig);
    return ATTNCL_OK;
}

static attncl_status append_before(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *y = &call->sig.in[IN_Y], *h0 = &call->sig.in[IN_H0];
    const int64_t n_rows = y->dim[0] * y->dim[1];
    const bool has_h0 = attncl__desc_present(h0);
    const struct row_launch p =
        attncl__row_launch(l->caps, "recurrent/gru_bwd.cl", "gru_bwd_before", n_rows, y->dim[2]);
    const int64_t h0_stride = has_h0 ? attncl__rows(h0).stride : 0;

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[IN_Y]), arg_mem(call->in[IN_H0]),
                               arg_i64(has_h0 ? h0->start : 0), arg_i64(h0_stride), arg_i32(has_h0),
                               arg_mem(call->out[OUT_BEFORE]), arg_i32(y->dim[2]), arg_i64(n_rows),
                               arg_i32(p.rows_per_group), arg_i64(y->dim[1]),
                               arg_i32(time_first(&call->sig))));
}

// Into dhh, which the steps turn into what its name says.
static attncl_status append_gemm(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *xi = &call->sig.in[IN_XI];
    const int64_t width = call->sig.in[IN_WEIGHT].dim[1];
    const struct gemm gemm =
        GEMM_OF(1, xi->dim[0] * xi->dim[1], 3 * width, width,
                .a = {.span = call->out[OUT_BEFORE], .ld = width},
                .b = {.span = call->in[IN_WEIGHT], .ld = width},
                .c = {.span = call->out[OUT_DHH], .ld = 3 * width}, .trans_b = true,
                .bias_kind = GEMM_BIAS_COLUMN, .bias = call->in[IN_BIAS]);

    return attncl__gemm(l, &gemm);
}

// A step's rows of xi and the like: entry b is row first + b * step.
struct step_rows {
    int64_t first, step;
};

static struct step_rows rows_of(const struct op_sig *sig, int64_t t)
{
    const int64_t n_steps = sig->in[IN_XI].dim[time_first(sig) ? 0 : 1];
    return time_first(sig) ? (struct step_rows){t * batch_count(sig), 1}
                           : (struct step_rows){t, n_steps};
}

static attncl_status append_gates(struct launcher *l, const struct op_call *call,
                                  struct step_rows rows, bool is_last)
{
    enum { CHANNELS = 256 }; // of a work-group at most: a step has little work to share out
    const int64_t n_batch = batch_count(&call->sig), width = call->sig.in[IN_WEIGHT].dim[1];
    const int64_t per_group = width < CHANNELS ? width : CHANNELS;
    const int64_t n_chunks = ceil_div(width, per_group);
    const struct group_launch p =
        attncl__group_launch(l->caps, "recurrent/gru_bwd.cl", "gru_bwd_gates", per_group);

    return attncl__launch(
        l, &p.spec, grid_1d(n_batch * n_chunks, p.local),
        ARGS(arg_mem(call->in[IN_XI]), arg_mem(call->out[OUT_DHH]), arg_mem(call->out[OUT_BEFORE]),
             arg_mem(call->in[IN_DY]), arg_mem(call->out[OUT_DXI]), arg_mem(call->scratch),
             arg_i64(state_floats(&call->sig)), arg_i32(!is_last), arg_i64(rows.first),
             arg_i64(rows.step), arg_i32(width), arg_i32(n_chunks), arg_i32(per_group)));
}

// dh = carry + dhh W_hh
static attncl_status append_state(struct launcher *l, const struct op_call *call,
                                  struct step_rows rows, struct gemm_matrix dh)
{
    const int64_t width = call->sig.in[IN_WEIGHT].dim[1];
    const struct gemm gemm = GEMM_OF(1, batch_count(&call->sig), width, 3 * width,
                                     .a = {.span = call->out[OUT_DHH],
                                           .start = rows.first * 3 * width,
                                           .ld = rows.step * 3 * width},
                                     .b = {.span = call->in[IN_WEIGHT], .ld = width}, .c = dh,
                                     .residual = {.span = call->scratch, .ld = width});

    return attncl__gemm(l, &gemm);
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct op_sig *sig = &call->sig;
    const int64_t n_steps = sig->in[IN_XI].dim[time_first(sig) ? 0 : 1];
    const int64_t width = sig->in[IN_WEIGHT].dim[1];
    const struct gemm_matrix dh = {.span = call->scratch, .start = state_floats(sig), .ld = width};
    const struct gemm_matrix dh0 = {.span = call->out[OUT_DH0], .ld = width};

    TRY(append_before(l, call));
    TRY(append_gemm(l, call));
    for (int64_t t = n_steps - 1; t >= 0; --t) {
        const struct step_rows rows = rows_of(sig, t);
        TRY(append_gates(l, call, rows, t == n_steps - 1));
        if (t > 0 || attncl__desc_present(&sig->out[OUT_DH0]))
            TRY(append_state(l, call, rows, t > 0 ? dh : dh0));
    }
    return ATTNCL_OK;
}

// Two GEMMs of the forward size, and 30 operations a channel.
static void bwd_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const double count = (double)attncl__desc_count(&sig->in[IN_Y]);
    const double width = (double)sig->in[IN_WEIGHT].dim[1];

    *flop_ret = count * (12 * width + 30);
    *bytes_ret = 4 * (12 * count + 3 * width * (width + 1));
}

const struct op_class attncl__op_gru_bwd = {
    .name = OP_CLASS(gru_bwd, 6, 4),
    .optional = 1u << IN_H0,
    .strided = 1u << IN_H0,
    .infer = bwd_infer,
    .scratch = bwd_scratch,
    .launch = bwd_launch,
    .cost = bwd_cost,
};
