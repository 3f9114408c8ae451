// SPDX-License-Identifier: MIT
//
// Layer norm -> skinny GEMMs: the norm is computed again in front of each GEMM that reads it, which
// is cheaper than a launch.

#include "compile/fusion_match.h"
#include "op/matmul/linear.h"

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

static bool match_norm_linear(const struct lowered *p, int norm, struct fusion *f)
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

static bool norm_linear_is_legal(const struct lowered *p, const struct fusion *f)
{
    return !attncl__fusion_overwritten_before(p, f->node[0], f->last);
}

static void norm_linear_inputs(const struct lowered *p, int linear, int norm,
                               int in[N_NORM_LINEAR_INPUTS])
{
    memcpy(in, p->nodes[linear].inputs, N_LINEAR_INPUTS * sizeof in[0]);
    in[LINEAR_X] = input_of(p, norm, NORM_X);
    in[NORM_LINEAR_NORM_W] = input_of(p, norm, NORM_WEIGHT);
    in[NORM_LINEAR_NORM_B] = input_of(p, norm, NORM_BIAS);
}

static bool norm_linear_is_profitable(const struct lowered *p, struct fusion *f)
{
    const struct lowered_value *result = &p->values[p->nodes[f->node[0]].outputs[0]];
    int in[N_NORM_LINEAR_INPUTS];
    struct op_sig sig;

    for (const struct use *use = result->first_use; use; use = use->next) {
        norm_linear_inputs(p, use->node, f->node[0], in);
        attncl__lowered_sig_of(p, &attncl__op_fused_norm_linear_fwd, in, &sig);
        if (!attncl__norm_linear_supported(&sig))
            return false;
    }
    return true;
}

static attncl_status build_norm_linear(struct lowered *p, const struct fusion *f)
{
    const int norm = f->node[0];
    const struct lowered_value *result = &p->values[p->nodes[norm].outputs[0]];
    int in[N_NORM_LINEAR_INPUTS];

    while (result->first_use) {
        const int linear = result->first_use->node;
        struct fused_norm_linear_fwd_params *params = attncl__lowered_alloc(p, sizeof *params);
        REQUIRE(params, ATTNCL_ERR_NO_MEMORY, "node of fused_norm_linear_fwd");
        memcpy(&params->linear, p->nodes[linear].params, sizeof params->linear);
        memcpy(&params->norm, p->nodes[norm].params, sizeof params->norm);
        norm_linear_inputs(p, linear, norm, in);
        TRY(attncl__lowered_replace(p, linear, &attncl__op_fused_norm_linear_fwd, params, in));
    }
    attncl__lowered_remove(p, norm);
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_norm_linear = {"norm_linear", match_norm_linear,
                                                     norm_linear_is_legal,
                                                     norm_linear_is_profitable, build_norm_linear};
