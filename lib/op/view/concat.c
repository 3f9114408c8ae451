// SPDX-License-Identifier: MIT
//
// Concatenates up to 8 values along the middle axis.
//
//   y[a, begin_i + m, c] = x_i[a, m, c]        x_i [A, M_i, C], y [A, sum of M_i, C]
//
// layer/view.c reduces other axes and more values to this form (cl/view/concat.cl).

#include "op/op.h"

enum { MAX_INPUTS = 8 };

static attncl_status fwd_infer(struct op_sig *sig)
{
    REQUIRE(attncl_dtype_bytes(sig->in[0].dtype) == 4, ATTNCL_ERR_DTYPE,
            "concat of %s is not possible", attncl_dtype_name(sig->in[0].dtype));
    sig->axes->of['Y'] = 0;
    for (int i = 0; i < sig->n_in && attncl__desc_present(&sig->in[i]); ++i)
        sig->axes->of['Y'] += sig->in[i].dim[1];
    sig->out[0].dtype = sig->in[0].dtype;
    return ATTNCL_OK;
}

// A work-group copies part of one value's block for one index of the first axis; such blocks are
// contiguous in input and output.
static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    enum { ELEMENTS = 1024 }; // of a work-group
    const struct tensor_desc *out = &call->sig.out[0];
    const size_t local =
        l->caps->variant == VARIANT_CPU ? 1 : attncl__group_for_row(l->caps, ELEMENTS);
    struct kspec spec = kspec_begin("view/concat.cl", "concat_fwd");
    struct arg args[4 + 2 * MAX_INPUTS];
    int64_t end = 0, longest = 0;
    int n = 0;

    for (int i = 0; i < MAX_INPUTS; ++i) {
        const bool given = attncl__desc_present(&call->sig.in[i]);
        const int64_t block = given ? call->sig.in[i].dim[1] * out->dim[2] : 0;
        end += block;
        n += given;
        longest = block > longest ? block : longest;
        args[4 + 2 * i] = arg_mem(call->in[i]);
        args[5 + 2 * i] = arg_i64(end);
    }
    const int64_t n_chunks = ceil_div(longest, ELEMENTS);
    args[0] = arg_mem(call->out[0]);
    args[1] = arg_i32(n);
    args[2] = arg_i64(n_chunks);
    args[3] = arg_i32(ELEMENTS);
    kspec_int(&spec, "LS", (int64_t)local);
    return attncl__launch(l, &spec, grid_1d(out->dim[0] * n * n_chunks, local), args,
                          sizeof args / sizeof args[0]);
}

// An input's gradient is a part of the result's gradient.
static void describe_part(const struct op_sig *sig, int input, struct tensor_desc *view)
{
    *view = sig->out[0];
    view->dim[1] = sig->in[input].dim[1];
    for (int i = 0; i < input; ++i)
        view->start += sig->in[i].dim[1] * view->stride[1];
}

#define PART(i)                                                                                    \
    {                                                                                              \
        .in = {REF_DY(0)}, .out = {REF_DX(i)}, .part = describe_part                               \
    }
static const struct grad_rule fwd_grad[MAX_INPUTS] = {PART(0), PART(1), PART(2), PART(3),
                                                      PART(4), PART(5), PART(6), PART(7)};

const struct op_class attncl__op_concat_fwd = {
    .name = OP_CLASS(concat_fwd),
    .in =
        OP_IN({"value0", ANY_TYPE, "A M C"}, {"value1", SAME_TYPE | OPTIONAL, "A N C"},
              {"value2", SAME_TYPE | OPTIONAL, "A O C"}, {"value3", SAME_TYPE | OPTIONAL, "A P C"},
              {"value4", SAME_TYPE | OPTIONAL, "A Q C"}, {"value5", SAME_TYPE | OPTIONAL, "A R C"},
              {"value6", SAME_TYPE | OPTIONAL, "A S C"}, {"value7", SAME_TYPE | OPTIONAL, "A T C"}),
    .out = OP_OUT({"y", ANY_TYPE, "A Y C"}),
    .infer = fwd_infer,
    .launch = fwd_launch,
    .grad = GRAD_RULES(fwd_grad),
};
