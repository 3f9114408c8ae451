// SPDX-License-Identifier: MIT
//
// Sizes of a fused step, for the op and its inner steps.

#include "op/fused/fused.h"

int64_t attncl__fused_step_width(const struct op_sig *sig)
{
    return sig->in[FUSED_NORM_W].dim[0];
}

int64_t attncl__fused_step_rows(const struct op_sig *sig)
{
    const int64_t d = attncl__fused_step_width(sig);
    return d > 0 ? attncl__desc_count(&sig->in[FUSED_X]) / d : 0;
}

int64_t attncl__fused_step_channels(const struct op_sig *sig)
{
    return sig->in[FUSED_WQ].dim[0];
}

attncl_status attncl__fused_step_check(const struct op_sig *sig, const struct op_class *cls,
                                       const void *params, const int *inputs, int n)
{
    enum { N_PROJECTED = 3 };
    const int64_t dim[2] = {attncl__fused_step_rows(sig), attncl__fused_step_channels(sig)};
    struct tensor_desc in[N_FUSED_INPUTS] = {{0}}, y = {0};
    struct op_sig step = {
        .params = params, .n_in = cls->n_in, .n_out = cls->n_out, .in = in, .out = &y};

    assert(cls->n_in == N_PROJECTED + n && cls->n_out == 1);
    for (int i = 0; i < N_PROJECTED; ++i)
        TRY(attncl__desc_make(ATTNCL_F32, 2, dim, &step.in[i]));
    for (int i = 0; i < n; ++i)
        step.in[N_PROJECTED + i] = sig->in[inputs[i]];
    return attncl__op_infer(cls, &step);
}
