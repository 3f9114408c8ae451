// SPDX-License-Identifier: MIT
//
// Attention by matrix instructions, GPU variant: which launches it takes, and the launch
// (cl/attention/attention_gpu_mma.cl).

#include "op/attention/attention_tiling.h"

// As the kernel has them: the columns of values that are computed together, and lanes of a sub-group.
enum { COLUMNS = 32, MAX_COLUMNS = 128, SUB_GROUPS = 4, PTX_LANES = 32, MFMA_LANES = 64 };

static size_t group_of(enum matrix_instruction mma)
{
    return SUB_GROUPS * (mma == MMA_MFMA ? MFMA_LANES : PTX_LANES);
}

enum matrix_instruction attncl__attention_mma(const struct device_caps *caps,
                                              const struct attention_tiling *p, bool weights)
{
    // Half of a work-group's queries and of a round's channels and columns at least: less would be
    // zeros, and of few terms FMAs are more exact.
    const bool wide = p->n_queries >= ATT_MMA_ROWS / 2 && p->width >= COLUMNS / 2 &&
                      p->value_width >= COLUMNS / 2;
    // Dropout's generator makes four neighbours at once, which several work-items have here; a
    // launch for weights has no second product.
    const bool plain = !p->dropout && !weights;

    return wide && plain && p->value_width <= MAX_COLUMNS &&
                   group_of(caps->attention_mma) <= caps->max_group
               ? caps->attention_mma
               : MMA_NONE;
}

static struct kspec mma_spec(const struct device_caps *caps, const struct attention_tiling *p)
{
    struct kspec spec = kspec_begin("attention/attention_gpu_mma.cl", "attention_gpu_mma_fwd");

    kspec_set_vw_ls(&spec, p->vw, group_of(p->mma));
    kspec_int(&spec, "MMA", p->mma);
    kspec_int(&spec, "EMULATED", caps->mma_emulated);
    kspec_int(&spec, "PRECISION", p->mma == MMA_PTX ? caps->precision : GEMM_F32);
    kspec_int(&spec, "VALUE_WIDTH", round_up(p->value_width, COLUMNS));
    kspec_int(&spec, "ALIGNED", p->aligned);
    kspec_int(&spec, "MASKING", p->masking);
    return spec;
}

bool attncl__attention_mma_fits(struct launcher *l, const struct attention_tiling *p)
{
    const struct kspec spec = mma_spec(l->caps, p);

    return attncl__kernel_has_no_spills(l, &spec, group_of(p->mma));
}

attncl_status attncl__attention_mma_launch(struct launcher *l, const struct op_call *call,
                                           const struct attention_tiling *p, struct span rows)
{
    const struct attention_fwd_params *params = call->sig.params;
    const struct kspec spec = mma_spec(l->caps, p);
    int64_t y_b, y_t;

    attncl__attention_strides(&call->sig, &call->sig.out[0], &y_b, &y_t);
    return attncl__launch(
        l, &spec,
        grid_3d(p->heads, ceil_div(p->n_queries, ATT_MMA_ROWS), p->n_splits, group_of(p->mma), 1),
        ARGS(ATTENTION_HEADS(call, ATT_IN_Q), ATTENTION_HEADS(call, ATT_IN_K),
             ATTENTION_HEADS(call, ATT_IN_V), ATTENTION_VISIBILITY(call, p), arg_mem(call->out[0]),
             arg_i64(y_b), arg_i64(y_t), arg_mem(rows), arg_i32(rows.storage != NULL),
             arg_mem(call->scratch), arg_i64(p->row_floats), arg_i32(p->n_splits),
             arg_i32(p->n_splits > 1 ? p->split_keys : 0), arg_i32(call->sig.in[ATT_IN_Q].dim[1]),
             arg_i32(p->n_queries), arg_i32(p->n_keys), arg_i32(p->width), arg_i32(p->value_width),
             arg_f32(params->scale)));
}
