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
