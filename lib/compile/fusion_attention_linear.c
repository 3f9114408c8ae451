// SPDX-License-Identifier: MIT
//
// Step of attention -> linear map: the map merges the parts that the step leaves, in its own place.

#include "compile/fusion_match.h"
#include "op/fused/fused_attention_linear.h"

static bool match_attention_linear(const struct lowered *p, int linear, struct fusion *f)
{
    if (!is_op(p, linear, &attncl__op_linear_fwd))
        return false;
    const int step =
        attncl__fusion_sole_producer_of(p, linear, LINEAR_X, &attncl__op_attention_step_fwd);
    if (step < 0)
        return false;
    f->node[f->n_nodes++] = step;
    f->last = linear;
    return true;
}

// The step moves to the map: nothing in between may use its keys and values.
static bool attention_linear_is_legal(const struct lowered *p, const struct fusion *f)
{
    const int step = f->node[0];

    for (int i = STEP_KEYS; i <= STEP_VALUES; ++i) {
        const struct lowered_value *base = &p->values[p->values[input_of(p, step, i)].base];
        for (const struct use *use = base->first_use; use; use = use->next)
            if (step < use->node && use->node <= f->last)
                return false;
    }
    return !attncl__fusion_overwritten_before(p, step, f->last);
}

static void attention_linear_inputs(const struct lowered *p, const struct fusion *f,
                                    int in[N_ATTENTION_LINEAR_INPUTS])
{
    memcpy(in, p->nodes[f->node[0]].inputs, N_STEP_INPUTS * sizeof in[0]);
    memcpy(&in[ATTENTION_LINEAR_WEIGHT], &p->nodes[f->last].inputs[LINEAR_WEIGHT],
           (N_LINEAR_INPUTS - LINEAR_WEIGHT) * sizeof in[0]);
}

static bool attention_linear_is_profitable(const struct lowered *p, struct fusion *f)
{
    int in[N_ATTENTION_LINEAR_INPUTS];
    struct op_sig sig;

    attention_linear_inputs(p, f, in);
    attncl__lowered_sig_of(p, &attncl__op_fused_attention_linear_fwd, in, &sig);
    return attncl__attention_linear_supported(&sig, p->nodes[f->node[0]].params);
}

static attncl_status build_attention_linear(struct lowered *p, const struct fusion *f)
{
    struct fused_attention_linear_fwd_params *params = attncl__lowered_alloc(p, sizeof *params);
    int in[N_ATTENTION_LINEAR_INPUTS];

    REQUIRE(params, ATTNCL_ERR_NO_MEMORY, "node of fused_attention_linear_fwd");
    memcpy(&params->step, p->nodes[f->node[0]].params, sizeof params->step);
    memcpy(&params->linear, p->nodes[f->last].params, sizeof params->linear);
    attention_linear_inputs(p, f, in);
    TRY(attncl__lowered_replace(p, f->last, &attncl__op_fused_attention_linear_fwd, params, in));
    attncl__lowered_remove(p, f->node[0]);
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_attention_linear = {
    "attention_linear", match_attention_linear, attention_linear_is_legal,
    attention_linear_is_profitable, build_attention_linear};
