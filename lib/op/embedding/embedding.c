// SPDX-License-Identifier: MIT
//
// y[..., :] = weight[tokens[...], :] * scale (cl/embedding/embedding.cl).

#include "op/row_launch.h"

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *tokens = &call->sig.in[0], *weight = &call->sig.in[1];
    const struct embedding_fwd_params *params = call->sig.params;
    const int64_t rows = attncl__desc_count(tokens), width = weight->dim[1];
    struct kspec spec = kspec_begin("embedding/embedding.cl", "embedding_rows_fwd");

    const struct rows lines = attncl__rows(tokens);
    kspec_set_wtype(&spec, weight->dtype);
    const struct row_launch p =
        attncl__choose_row_tiling(l, &(struct row_problem){spec, rows, width, 0, width % 4 == 0});

    const struct span none = {NULL}; // no row of a position table is added

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(none),
                               arg_mem(none), arg_mem(call->out[0]), arg_i32(true),
                               arg_i64(tokens->start), arg_i64(lines.width), arg_i64(lines.stride),
                               arg_i32(weight->dim[0]), arg_f32(params->scale), arg_i32(false),
                               arg_i32(false), arg_i32(0), arg_i64(1), arg_i64(1), arg_i32(width),
                               arg_i64(rows), arg_i32(p.rows_per_group)));
}

static const struct grad_rule fwd_grad[] = {{.op = OP_embedding_bwd,
                                             .same_params = true,
                                             .in = {REF_X(0), REF_X(1), REF_DY(0)},
                                             .out = {REF_DX(1)}}};

const struct op_class attncl__op_embedding_fwd = {
    .name = OP_CLASS(embedding_fwd),
    .in = OP_IN({"tokens", I32 | STRIDED, "..."}, {"weight", STORED | OR_QUANTISED, "V C"}),
    .out = OP_OUT({"y", F32, "... C"}),
    .int_axes = "C",
    .filled_axes = "V",
    .launch = fwd_launch,
    .flop = "y",
    .moved = {[1] = "y"}, // only the table's rows that are read
    .grad = GRAD_RULES(fwd_grad),
};
