// SPDX-License-Identifier: MIT
//
// The gradients of layer normalisation; a row is the trailing axes, those of the weight.
//
//   h = (x - mean) / sqrt(var + eps),  g = dy weight,  r = 1 / sqrt(var + eps)
//   dx = r (g - mean(g) - h mean(g h))        dweight = sum over rows of dy h
//                                             dbias   = sum over rows of dy
//
// RMS normalisation uses 0 for mean and mean(g), and has no bias.
//
// One kernel computes dx and, per block of rows, partial sums; a second one adds the blocks
// (cl/norm/layer_norm_bwd.cl, cl/matmul/column_sum.cl).  Blocks depend only on the shape.

#include "op/matmul/matmul.h"
#include "op/row_launch.h"

static attncl_status bwd_infer(struct op_sig *sig)
{
    return attncl__check_last_axes(sig, 0, 1);
}

struct blocks {
    int64_t rows, width;
    int64_t block, n; // rows of a block; number of blocks
};

// A block has at least 8 rows, and at least a quarter as many rows as there are blocks.
static struct blocks choose_blocks(const struct op_sig *sig)
{
    struct blocks b = {.width = attncl__desc_count(&sig->in[1]), .block = 8};

    b.rows = b.width ? attncl__desc_count(&sig->in[0]) / b.width : 0;
    while (4 * b.block * b.block < b.rows)
        b.block *= 2;
    b.n = ceil_div(b.rows, b.block);
    return b;
}

static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct blocks b = choose_blocks(sig);

    *bytes_ret = (size_t)((sig->cls->n_out - 1) * b.n * b.width) * sizeof(float);
    return ATTNCL_OK;
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct layer_norm_bwd_params *params = call->sig.params;
    const struct blocks b = choose_blocks(&call->sig);
    const int sums = call->sig.cls->n_out - 1;
    struct row_problem work = {kspec_begin("norm/layer_norm_bwd.cl", "layer_norm_bwd_rows"), b.n,
                               b.width, 4, b.width % 4 == 0};
    kspec_int(&work.spec, "RMS", sums == 1);
    const struct row_launch p = attncl__choose_row_tiling(l, &work);
    const struct group_launch sum =
        attncl__group_launch(l->caps, "matmul/column_sum.cl", "column_sum_pair", COLUMN_SUM_WIDTH);

    TRY(attncl__launch(l, &p.spec, p.grid,
                       ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[2]),
                            arg_mem(call->out[0]), arg_mem(call->scratch), arg_i32(b.width),
                            arg_i64(b.rows), arg_i32(b.block), arg_i64(b.n),
                            arg_i32(p.rows_per_group), arg_f32(params->eps))));
    return attncl__launch(
        l, &sum.spec, grid_1d(ceil_div(b.width, (int64_t)sum.local * sum.vw), sum.local),
        ARGS(arg_mem(call->scratch), arg_mem(call->out[1]), arg_mem(call->out[sums]),
             arg_i32(b.width), arg_i64(b.n), arg_i32(sums)));
}

const struct op_class attncl__op_layer_norm_bwd = {
    .name = OP_CLASS(layer_norm_bwd),
    .in = OP_IN({"x", F32, "..."}, {"weight", F32, NULL}, {"dy", F32, "..."}),
    .out = OP_OUT({"dx", F32, "..."}, {"dweight", F32, "=weight"}, {"dbias", F32, "=weight"}),
    .infer = bwd_infer,
    .scratch = bwd_scratch,
    .launch = bwd_launch,
    .flop = "17x",
};

const struct op_class attncl__op_rms_norm_bwd = {
    .name = OP_CLASS(rms_norm_bwd),
    .in = OP_IN({"x", F32, "..."}, {"weight", F32, NULL}, {"dy", F32, "..."}),
    .out = OP_OUT({"dx", F32, "..."}, {"dweight", F32, "=weight"}),
    .infer = bwd_infer,
    .scratch = bwd_scratch,
    .launch = bwd_launch,
    .flop = "12x",
};
