// SPDX-License-Identifier: MIT
//
// Backward pass of what a step of a feedback transformer does with its memory.
//
//   mix     dx_f = p_f dy as one array [n, ...], and the weights' gradient through their softmax
//   load    the gradients of the keys and values that a step stored: y[b, s, h, :] =
//           cache[slot + s, b, h, position, :], zeros for the last of n_steps steps
//
// Kernels: cl/feedback/feedback_memory_bwd.cl.

#include "op/row_launch.h"

enum { WEIGHTS, X, DY = X + 8 };

static int count_x(const struct op_sig *sig)
{
    int n = 0;
    while (X + n < DY && attncl__desc_present(&sig->in[X + n]))
        ++n;
    return n;
}

static attncl_status mix_infer(struct op_sig *sig)
{
    sig->axes->of['N'] = count_x(sig);
    return ATTNCL_OK;
}

// The products dy . x_f.
static attncl_status mix_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = sizeof(float) * (size_t)count_x(sig);
    return ATTNCL_OK;
}

static attncl_status append_weights(struct launcher *l, const struct op_call *call, int64_t count)
{
    const struct feedback_mix_bwd_params *params = call->sig.params;
    const struct span *in = call->in;
    const int n = count_x(&call->sig);
    struct group_launch dots = attncl__group_launch(l->caps, "feedback/feedback_memory_bwd.cl",
                                                    "feedback_memory_bwd_dots", count);
    struct kspec weights =
        kspec_begin("feedback/feedback_memory_bwd.cl", "feedback_memory_bwd_weights");

    kspec_int(&dots.spec, "N_X", n);
    kspec_set_vw_ls(&weights, 1, 1);
    kspec_int(&weights, "N_X", n);
    TRY(attncl__launch(l, &dots.spec, grid_1d(n, dots.local),
                       ARGS(arg_mem(in[DY]), arg_mem(in[X]), arg_mem(in[X + 1]), arg_mem(in[X + 2]),
                            arg_mem(in[X + 3]), arg_mem(in[X + 4]), arg_mem(in[X + 5]),
                            arg_mem(in[X + 6]), arg_mem(in[X + 7]), arg_mem(call->scratch),
                            arg_i64(count))));
    return attncl__launch(l, &weights, grid_1d(1, 1),
                          ARGS(arg_mem(in[WEIGHTS]), arg_mem(call->scratch), arg_mem(call->out[1]),
                               arg_i32(call->sig.in[WEIGHTS].dim[0]), arg_i32(params->first)));
}

static attncl_status mix_launch(struct launcher *l, const struct op_call *call)
{
    const struct feedback_mix_bwd_params *params = call->sig.params;
    const int64_t count = attncl__desc_count(&call->sig.in[DY]);
    struct elementwise_launch p = attncl__elementwise_launch(
        l->caps, "feedback/feedback_memory_bwd.cl", "feedback_memory_bwd_parts", count);

    kspec_int(&p.spec, "N_X", count_x(&call->sig));
    TRY(attncl__launch(l, &p.spec, p.grid,
                       ARGS(arg_mem(call->in[WEIGHTS]), arg_mem(call->in[DY]),
                            arg_mem(call->out[0]), arg_i32(call->sig.in[WEIGHTS].dim[0]),
                            arg_i32(params->first), arg_i64(count), arg_i32(p.per_group))));
    return append_weights(l, call, count);
}

enum { L_CACHE, L_POSITION };

static attncl_status load_infer(struct op_sig *sig)
{
    const struct feedback_load_fwd_params *params = sig->params;
    int64_t *of = sig->axes->of;

    REQUIRE(params->slot >= 0 && params->n_slots > 0 && params->slot + params->n_slots <= of['L'],
            ATTNCL_ERR_SHAPE, "%d slots from slot %d on, cache is %s", params->n_slots,
            params->slot, SHAPE(&sig->in[L_CACHE]));
    of['X'] = params->n_slots * of['H'] * of['D'];
    return ATTNCL_OK;
}

static attncl_status load_launch(struct launcher *l, const struct op_call *call)
{
    const struct feedback_load_fwd_params *params = call->sig.params;
    const struct tensor_desc *cache = &call->sig.in[L_CACHE];
    const int64_t n_heads = cache->dim[2], limit = cache->dim[3], width = cache->dim[4];
    const int64_t rows = attncl__desc_count(&call->sig.out[0]) / width;
    struct row_launch p = attncl__row_launch(l->caps, "feedback/feedback_memory_bwd.cl",
                                             "feedback_memory_bwd_load", rows, width);

    kspec_int(&p.spec, "N_X", 0);
    return attncl__launch(
        l, &p.spec, p.grid,
        ARGS(arg_mem(call->in[L_CACHE]), arg_mem(call->in[L_POSITION]), arg_mem(call->out[0]),
             arg_i32(params->slot), arg_i32(params->n_slots), arg_i32(n_heads), arg_i32(limit),
             arg_i32(params->n_steps), arg_i32(width), arg_i64(rows), arg_i32(p.rows_per_group)));
}

const struct op_class attncl__op_feedback_mix_bwd = {
    .name = OP_CLASS(feedback_mix_bwd),
    .in = OP_IN({"weights", F32, "W"}, {"x0", F32, "..."}, {"x1", F32 | OPTIONAL, "..."},
                {"x2", F32 | OPTIONAL, "..."}, {"x3", F32 | OPTIONAL, "..."},
                {"x4", F32 | OPTIONAL, "..."}, {"x5", F32 | OPTIONAL, "..."},
                {"x6", F32 | OPTIONAL, "..."}, {"x7", F32 | OPTIONAL, "..."}, {"dy", F32, "..."}),
    .out = OP_OUT({"dx", F32, "N ..."}, {"dweights", F32, "W"}),
    .infer = mix_infer,
    .scratch = mix_scratch,
    .launch = mix_launch,
    .flop = "3y", // a multiplication for dx and two operations for the product
};

const struct op_class attncl__op_feedback_load_fwd = {
    .name = OP_CLASS(feedback_load_fwd),
    .in = OP_IN({"cache", F32, "L B H P D"}, {"position", I32, "1"}),
    .out = OP_OUT({"y", F32, "B X"}),
    .int_axes = "LBHPD",
    .infer = load_infer,
    .launch = load_launch,
    .moved = {[L_CACHE] = "y"},
};
