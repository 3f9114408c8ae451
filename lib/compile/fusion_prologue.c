// SPDX-License-Identifier: MIT
//
// Layer norm -> skinny GEMMs: the norm is computed again in front of each GEMM that reads it, which
// is cheaper than a launch.

#include "compile/fusion_match.h"

enum { NORM_X, NORM_WEIGHT, NORM_BIAS };

static bool takes_norm(const struct lowered *p, int n, int norm)
{
    const int result = p->nodes[norm].outputs[0];

    if (!is_op(p, n, &attncl__op_linear_fwd) || p->nodes[n].loop != p->nodes[norm].loop ||
        input_of(p, n, LINEAR_X) != result)
        return false;
    for (int i = LINEAR_X + 1; i < N_LINEAR_INPUTS; ++i)
        if (p->values[input_of(p, n, i)].base == result)
            return false;
    return true;
}

static bool match_norm(const struct lowered *p, int norm, struct fusion *f)
{
    if (!is_op(p, norm, &attncl__op_layer_norm_fwd))
        return false;
    const struct lowered_value *result = &p->values[p->nodes[norm].outputs[0]];
    if (result->is_output)
        return false;
    for (const struct use *use = result->first_use; use; use = use->next) {
        if (!takes_norm(p, use->node, norm))
            return false;
        f->last = use->node > f->last ? use->node : f->last;
    }
    f->node[f->n_nodes++] = norm;
    return result->n_uses > 0;
}

static bool first_is_not_overwritten(const struct lowered *p, const struct fusion *f)
{
    return !attncl__fusion_overwritten_before(p, f->node[0], f->last);
}

static void norm_inputs(const struct lowered *p, int map, int norm, int in[N_FUSED_LINEAR_INPUTS])
{
    attncl__fusion_map_inputs(p, map, in);
    in[LINEAR_X] = input_of(p, norm, NORM_X);
    in[FUSED_LINEAR_NORM_W] = input_of(p, norm, NORM_WEIGHT);
    in[FUSED_LINEAR_NORM_B] = input_of(p, norm, NORM_BIAS);
}

static bool norm_is_profitable(const struct lowered *p, struct fusion *f)
{
    const struct lowered_value *result = &p->values[p->nodes[f->node[0]].outputs[0]];
    int in[N_FUSED_LINEAR_INPUTS];
    struct op_sig sig;

    for (const struct use *use = result->first_use; use; use = use->next) {
        norm_inputs(p, use->node, f->node[0], in);
        attncl__lowered_sig_of(p, &attncl__op_fused_linear_fwd, in, &sig);
        if (!attncl__fused_linear_supported(&sig))
            return false;
    }
    return true;
}

static attncl_status build_norm(struct lowered *p, const struct fusion *f)
{
    const struct lowered_node *norm = &p->nodes[f->node[0]];
    const struct layer_norm_fwd_params *norm_params = norm->params;
    const struct lowered_value *result = &p->values[norm->outputs[0]];
    struct fused_linear_fwd_params *params;
    int in[N_FUSED_LINEAR_INPUTS];

    while (result->first_use) {
        const int map = result->first_use->node;
        norm_inputs(p, map, f->node[0], in);
        TRY(attncl__fusion_replace_map(p, map, in, &params));
        params->eps = norm_params->eps;
    }
    attncl__lowered_remove(p, f->node[0]);
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_norm = {"norm", match_norm, first_is_not_overwritten,
                                              norm_is_profitable, build_norm};
