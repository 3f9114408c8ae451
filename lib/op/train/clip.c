// SPDX-License-Identifier: MIT
//
// Gradient clipping.  No kernel: uses cl/train/update.cl.  By the norm of all gradients together:
//
//   sum_squares   sums of squares of up to eight arrays, added to the sums of earlier arrays
//   clip_factor   total = sqrt(sum);  factor = min(1, max / (total + 1e-6)) as in PyTorch, or
//                 max / total if total > max, as in d2l
//   scale_by      y = factor x
//
// By the value of each element:
//
//   clamp         y = min(max(x, -limit), limit)
//
// Three sums of squares: of the elements as they are, scaled up and scaled down by powers of two, so
// no finite gradient overflows or vanishes.  Work-groups sum in a fixed order, and a last one adds
// their sums, so results are reproducible bit by bit.

#include "op/row_launch.h"

enum { SUMS = 3, MAX_BLOCKS = 1024 };

// At most MAX_BLOCKS work-groups, unless an int could not count their elements.
static struct elementwise_launch choose_squares_launch(const struct device_caps *caps,
                                                       int64_t count)
{
    enum { MAX_PER_GROUP = 1 << 28 };
    struct elementwise_launch p =
        attncl__elementwise_launch(caps, "train/update.cl", "update_squares_fwd", count);

    while (ceil_div(count, p.per_group) > MAX_BLOCKS && p.per_group < MAX_PER_GROUP)
        p.per_group *= 2;
    p.grid = grid_1d(ceil_div(count, p.per_group), p.grid.local[0]);
    return p;
}

enum { IN_SUMS, IN_X };

static int64_t count_elements(const struct op_sig *sig, int part)
{
    const struct tensor_desc *x = &sig->in[IN_X + part];
    return attncl__desc_present(x) ? attncl__desc_count(x) : 0;
}

static attncl_status squares_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = 0;
    for (int i = 0; i < N_PARTS; ++i)
        *bytes_ret += choose_squares_launch(sig->caps, count_elements(sig, i)).grid.groups[0] *
                      SUMS * sizeof(float);
    return ATTNCL_OK;
}

static attncl_status squares_launch(struct launcher *l, const struct op_call *call)
{
    struct elementwise_launch p = choose_squares_launch(l->caps, 0);
    struct arg_list squares = {.n = 0}, total = {.n = 0};
    int64_t blocks = 0;

    arg_list_add(&squares, ARGS(arg_mem(call->scratch)));
    arg_list_add(&total,
                 ARGS(arg_mem(call->scratch), arg_mem(call->in[IN_SUMS]), arg_mem(call->out[0]),
                      arg_i32(attncl__desc_present(&call->sig.in[IN_SUMS]))));
    for (int i = 0; i < N_PARTS; ++i) {
        p = choose_squares_launch(l->caps, count_elements(&call->sig, i));
        const int64_t own = (int64_t)p.grid.groups[0];
        arg_list_add(&squares,
                     ARGS(arg_mem(call->in[IN_X + i]), arg_i64(count_elements(&call->sig, i)),
                          arg_i32(p.per_group), arg_i32(blocks)));
        arg_list_add(&total, ARGS(arg_i32(own)));
        blocks += own;
    }
    p.grid.groups[0] = (size_t)blocks;
    arg_list_add(&squares, ARGS(arg_i32(blocks)));
    TRY(attncl__launch(l, &p.spec, p.grid, squares.arg, squares.n));
    p.spec.kernel = "update_total_fwd"; // one work-group, the same program
    return attncl__launch(l, &p.spec, grid_1d(1, p.grid.local[0]), total.arg, total.n);
}

static void squares_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    (void)bytes_ret;
    for (int i = 0; i < N_PARTS; ++i)
        *flop_ret += 8 * (double)count_elements(sig, i);
}

static attncl_status factor_infer(struct op_sig *sig)
{
    const struct clip_factor_fwd_params *p = sig->params;

    REQUIRE(p->max_norm >= 0, ATTNCL_ERR_ARGUMENT, "max_norm is %g, must be at least 0",
            p->max_norm);
    REQUIRE(p->style == 0 || p->style == 1, ATTNCL_ERR_ARGUMENT, "style is %d, expected 0 or 1",
            p->style);
    return ATTNCL_OK;
}

static attncl_status factor_launch(struct launcher *l, const struct op_call *call)
{
    const struct clip_factor_fwd_params *p = call->sig.params;
    // Work for one work-item, in the same program as the other kernels.
    const struct elementwise_launch one =
        attncl__elementwise_launch(l->caps, "train/update.cl", "update_factor_fwd", 1);

    return attncl__launch(l, &one.spec, one.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->out[0]), arg_mem(call->out[1]),
                               arg_f32((float)p->max_norm), arg_i32(p->style)));
}

static attncl_status scale_launch(struct launcher *l, const struct op_call *call)
{
    const int64_t count = attncl__desc_count(&call->sig.out[0]);
    const struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, "train/update.cl", "update_scale_fwd", count);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->out[0]),
                               arg_i64(count), arg_i32(p.per_group)));
}

static attncl_status clamp_infer(struct op_sig *sig)
{
    const struct clamp_fwd_params *p = sig->params;

    REQUIRE(p->limit >= 0, ATTNCL_ERR_ARGUMENT, "max_value is %g, must be at least 0", p->limit);
    return ATTNCL_OK;
}

static attncl_status clamp_launch(struct launcher *l, const struct op_call *call)
{
    const struct clamp_fwd_params *params = call->sig.params;
    const int64_t count = attncl__desc_count(&call->sig.out[0]);
    const struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, "train/update.cl", "update_clamp_fwd", count);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->out[0]),
                               arg_f32((float)params->limit), arg_i64(count),
                               arg_i32(p.per_group)));
}

#define MORE(name)                                                                                 \
    {                                                                                              \
        name, F32 | OPTIONAL, NULL                                                                 \
    }
const struct op_class attncl__op_sum_squares_fwd = {
    .name = OP_CLASS(sum_squares_fwd),
    .in = OP_IN({"sums", F32 | OPTIONAL, "3"}, {"x", F32, NULL}, MORE("x2"), MORE("x3"), MORE("x4"),
                MORE("x5"), MORE("x6"), MORE("x7"), MORE("x8")),
    .out = OP_OUT({"sums", F32, "3"}),
    .scratch = squares_scratch,
    .launch = squares_launch,
    .cost = squares_cost,
};

const struct op_class attncl__op_clip_factor_fwd = {
    .name = OP_CLASS(clip_factor_fwd),
    .in = OP_IN({"sums", F32, "3"}),
    .out = OP_OUT({"norm", F32, ""}, {"factor", F32, ""}),
    .infer = factor_infer,
    .launch = factor_launch,
};

const struct op_class attncl__op_scale_by_fwd = {
    .name = OP_CLASS(scale_by_fwd),
    .in = OP_IN({"x", F32, "..."}, {"factor", F32, ""}),
    .out = OP_OUT({"y", F32, "..."}),
    .launch = scale_launch,
    .flop = "x",
};

const struct op_class attncl__op_clamp_fwd = {
    .name = OP_CLASS(clamp_fwd),
    .in = OP_IN({"x", F32, "..."}),
    .out = OP_OUT({"y", F32, "..."}),
    .infer = clamp_infer,
    .launch = clamp_launch,
    .flop = "2x",
};
