// SPDX-License-Identifier: MIT
//
// The gradient of an embedding's table.
//
//   dweight[v, :] = scale sum over r with tokens[r] = v of dy[r, :],   0 for v = untrained - 1
//
// No atomics: first the occurrences of each token are linked in order, then every row of the table
// walks its list (cl/embedding/embedding_bwd.cl).  A CPU links them one by one, in O(n); on a GPU all
// occurrences search for their successors in parallel, in at most O(n) steps each.

#include "op/row_launch.h"
#include "op/view/view.h"

static attncl_status bwd_infer(struct op_sig *sig)
{
    return attncl__check_width("tokens", sig->axes->of['.']);
}

// Per table row its first occurrence; per occurrence the next one of the same token.
static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const int64_t rows = attncl__desc_count(&sig->in[0]);

    *bytes_ret = (size_t)(sig->in[1].dim[0] + rows) * sizeof(int32_t);
    return ATTNCL_OK;
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct embedding_bwd_params *params = call->sig.params;
    const int64_t n = attncl__desc_count(&call->sig.in[0]);
    const int64_t n_tokens = call->sig.out[0].dim[0], width = call->sig.out[0].dim[1];
    const struct row_launch p = attncl__row_launch(l->caps, "embedding/embedding_bwd.cl",
                                                   "embedding_bwd_rows", n_tokens, width);
    const size_t local = p.grid.local[0];
    struct kspec link = p.spec; // the same program
    struct grid grid = grid_1d(local == 1 ? n > 0 : ceil_div(n, (int64_t)local), local);

    link.kernel = "embedding_bwd_link";
    grid.iterations = n;
    TRY(attncl__zeros(l, call->scratch, 0, n_tokens));
    TRY(attncl__launch(
        l, &link, grid,
        ARGS(arg_mem(call->in[0]), arg_mem(call->scratch), arg_i32(n), arg_i32(n_tokens))));
    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->scratch), arg_mem(call->in[2]), arg_mem(call->out[0]),
                               arg_i32(n_tokens), arg_i32(width), arg_i32(p.rows_per_group),
                               arg_f32(params->scale), arg_i32(params->untrained)));
}

const struct op_class attncl__op_embedding_bwd = {
    .name = OP_CLASS(embedding_bwd),
    .in =
        OP_IN({"tokens", I32, "..."}, {"weight", STORED | SHAPE_ONLY, "V C"}, {"dy", F32, "... C"}),
    .out = OP_OUT({"dweight", F32, "V C"}),
    .int_axes = "VC",
    .infer = bwd_infer,
    .scratch = bwd_scratch,
    .launch = bwd_launch,
    .flop = ".C",
};
