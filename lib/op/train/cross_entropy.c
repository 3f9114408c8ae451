// SPDX-License-Identifier: MIT
//
// Cross entropy of logits [..., V] with target classes [...].
//
//   loss_r = log sum_v exp(x_rv) - (1 - e) x_r,target - e mean_v x_rv      0 where target = pad
//
// e is the label smoothing: the fraction of each target that is spread evenly over all classes.
//
//   NONE   loss [...]
//   SUM    sum_r loss_r
//   MEAN   sum_r loss_r / number of rows that are not padding; 0 if there are none
//
// Three kernels: losses of the rows, sums of blocks of rows, sum of the blocks.

#include "attncl/kinds.h"
#include "op/row_launch.h"

// For many rows, about sqrt(rows) per block, which keeps both sums short.
static int64_t choose_block_rows(int64_t rows)
{
    enum { MIN_ROWS = 2048 };
    int64_t block = MIN_ROWS;

    while (block < INT32_MAX / 2 && ceil_div(rows, block) > block)
        block *= 2;
    return block;
}

// The scratch: loss [rows], sums [n_blocks], counts [n_blocks].  Offsets in floats, aligned to float4.
struct scratch_layout {
    int64_t rows, block, n_blocks;
    int64_t sums, counts, end;
};

static struct scratch_layout lay_out_scratch(const struct op_sig *sig)
{
    const int64_t rows = attncl__desc_count(&sig->in[1]);
    const int64_t block = choose_block_rows(rows), n_blocks = ceil_div(rows, block);
    const int64_t sums = round_up(rows, 4), counts = sums + round_up(n_blocks, 4);

    return (struct scratch_layout){rows, block, n_blocks, sums, counts, counts + n_blocks};
}

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct cross_entropy_fwd_params *params = sig->params;

    TRY(attncl__check_axes(sig, "V", 1, INT32_MAX));
    REQUIRE(params->reduction >= ATTNCL_REDUCE_MEAN && params->reduction <= ATTNCL_REDUCE_NONE,
            ATTNCL_ERR_ARGUMENT, "there is no reduction %d, only 0, 1 and 2",
            (int)params->reduction);
    REQUIRE(params->smoothing >= 0 && params->smoothing <= 1, ATTNCL_ERR_ARGUMENT,
            "label_smoothing is %g, expected 0 to 1", params->smoothing);
    return attncl__make_output(sig, 0, params->reduction == ATTNCL_REDUCE_NONE ? "..." : "");
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct cross_entropy_fwd_params *params = sig->params;
    const bool each = params->reduction == ATTNCL_REDUCE_NONE;

    *bytes_ret = each ? 0 : (size_t)lay_out_scratch(sig).end * sizeof(float);
    return ATTNCL_OK;
}

// Targets are int, so other values of pad never occur.
static bool has_pad(const struct cross_entropy_fwd_params *params)
{
    return params->pad >= 0 && params->pad <= INT32_MAX;
}

#define PAD_ARGS(params) arg_i32(has_pad(params) ? (params)->pad : 0), arg_i32(has_pad(params))

static attncl_status launch_rows(struct launcher *l, const struct op_call *call,
                                 const struct row_launch *p, struct span loss)
{
    const struct tensor_desc *logits = &call->sig.in[0];
    const struct cross_entropy_fwd_params *params = call->sig.params;
    const struct rows rows = attncl__rows(logits);

    return attncl__launch(l, &p->spec, p->grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(loss),
                               arg_i64(logits->start), arg_i64(rows.stride), arg_i32(rows.width),
                               arg_i64(rows.count), arg_i32(p->rows_per_group), PAD_ARGS(params),
                               arg_f32((float)(1 - params->smoothing)),
                               arg_f32((float)(params->smoothing / (double)rows.width))));
}

// Same program and work-group size as the rows' kernel.
static attncl_status launch_sums(struct launcher *l, const struct op_call *call,
                                 const struct row_launch *p)
{
    const struct cross_entropy_fwd_params *params = call->sig.params;
    const struct scratch_layout at = lay_out_scratch(&call->sig);
    struct kspec spec = p->spec;

    spec.kernel = "cross_entropy_block_fwd";
    TRY(attncl__launch(l, &spec, grid_1d(at.n_blocks, p->grid.local[0]),
                       ARGS(arg_mem(call->in[1]), arg_mem(call->scratch), arg_i64(at.rows),
                            arg_i32(at.block), arg_i64(at.sums), arg_i64(at.counts),
                            PAD_ARGS(params))));
    spec.kernel = "cross_entropy_total_fwd";
    return attncl__launch(l, &spec, grid_1d(1, p->grid.local[0]),
                          ARGS(arg_mem(call->scratch), arg_mem(call->out[0]), arg_i32(at.n_blocks),
                               arg_i64(at.sums), arg_i64(at.counts),
                               arg_i32(params->reduction == ATTNCL_REDUCE_MEAN)));
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct cross_entropy_fwd_params *params = call->sig.params;
    const struct rows rows = attncl__rows(&call->sig.in[0]);
    const struct row_launch p = attncl__choose_row_tiling(
        l, &(struct row_problem){kspec_begin("train/cross_entropy.cl", "cross_entropy_rows_fwd"),
                                 rows.count, rows.width, 1,
                                 attncl__rows_are_float4_aligned(call->sig.in[0].start, &rows)});

    if (params->reduction == ATTNCL_REDUCE_NONE)
        return launch_rows(l, call, &p, call->out[0]);
    TRY(launch_rows(l, call, &p, call->scratch));
    return launch_sums(l, call, &p);
}

static const struct grad_rule fwd_grad[] = {{.op = OP_cross_entropy_bwd,
                                             .same_params = true,
                                             .in = {REF_X(0), REF_X(1), REF_DY(0)},
                                             .out = {REF_DX(0)}}};

const struct op_class attncl__op_cross_entropy_fwd = {
    .name = OP_CLASS(cross_entropy_fwd),
    .in = OP_IN({"logits", F32 | STRIDED, "... V"}, {"targets", I32, "..."}),
    .out = OP_OUT({"loss", F32, NULL}),
    .infer = fwd_infer,
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .flop = "3x", // subtract, exp, add
    .grad = GRAD_RULES(fwd_grad),
};
