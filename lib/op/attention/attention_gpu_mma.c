// SPDX-License-Identifier: MIT
//
// Attention by matrix instructions, GPU variant: the launch (cl/attention/attention_gpu_mma.cl).  Which
// launches it takes: attention_gpu_tiles.c.

#include "op/attention/attention.h"

static struct kspec mma_spec(const struct device_caps *caps, const struct attention_tiling *p)
{
    struct kspec spec = kspec_begin("attention/attention_gpu_mma.cl", "attention_gpu_mma_fwd");

    kspec_set_vw_ls(&spec, p->vw, attncl__attention_mma_group(p->mma));
    kspec_int(&spec, "MMA", p->mma);
    kspec_int(&spec, "EMULATED", caps->mma_emulated);
    kspec_int(&spec, "PRECISION", p->mma == MMA_PTX ? caps->precision : GEMM_F32);
    kspec_int(&spec, "VALUE_WIDTH", round_up(p->value_width, ATT_MMA_COLUMNS));
    kspec_int(&spec, "ALIGNED", p->aligned);
    kspec_int(&spec, "MASKING", p->masking);
    kspec_int(&spec, "SOFTCAP", p->softcap);
    kspec_int(&spec, "BIAS", p->bias);
    return spec;
}

bool attncl__attention_mma_fits(struct launcher *l, const struct attention_tiling *p)
{
    const struct kspec spec = mma_spec(l->caps, p);

    return attncl__kernel_fits(l, &spec, attncl__attention_mma_group(p->mma), true);
}

attncl_status attncl__attention_mma_launch(struct launcher *l, const struct op_call *call,
                                           const struct attention_tiling *p, struct span rows)
{
    const struct attention_fwd_params *params = call->sig.params;
    const struct kspec spec = mma_spec(l->caps, p);
    int64_t y_b, y_t, blocks = ceil_div(p->n_queries, ATT_MMA_ROWS);
    const int64_t at_once = attncl__parts_at_once(l, blocks, 1);

    attncl__attention_strides(&call->sig, &call->sig.out[0], &y_b, &y_t);
    for (; blocks > 0; blocks -= at_once)
        TRY(attncl__attention_launch(
            l, call, &spec,
            grid_3d(p->heads, blocks < at_once ? blocks : at_once, p->n_splits,
                    attncl__attention_mma_group(p->mma), 1),
            ARGS(ATTENTION_HEADS(call, ATT_IN_Q), ATTENTION_HEADS(call, ATT_IN_K),
                 ATTENTION_HEADS(call, ATT_IN_V), ATTENTION_VISIBILITY(call, p),
                 arg_mem(call->out[0]), arg_i64(y_b), arg_i64(y_t), arg_mem(rows),
                 arg_i32(rows.storage != NULL), arg_mem(call->scratch), arg_i64(p->row_floats),
                 arg_i32(p->n_splits), arg_i32(p->n_splits > 1 ? p->split_keys : 0),
                 arg_i32(blocks), arg_i32(call->sig.in[ATT_IN_Q].dim[1]), arg_i32(p->kv_group),
                 arg_i32(p->n_queries), arg_i32(p->n_keys), arg_i32(p->width),
                 arg_i32(p->value_width), arg_f32(params->scale), arg_f32(params->softcap))));
    return ATTNCL_OK;
}
