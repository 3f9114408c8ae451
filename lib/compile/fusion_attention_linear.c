// SPDX-License-Identifier: MIT
//
// Attention of one position -> linear map: the map merges the parts that the attention leaves, in its own place.

#include "compile/fusion_match.h"
#include "op/fused/fused_attention_linear.h"
#include "op/fused/fused_feedback_linear.h"

// Kinds of attention: of a decoder, which stores the position's key and value first; of a feedback transformer.
enum { DECODER, FEEDBACK, N_KINDS };

static const struct {
    const struct op_class *step, *fused;
    int n_step_inputs; // of the fused op: the step's first ones, then the map's without x
} kinds[N_KINDS] = {
    [DECODER] = {&attncl__op_attention_step_fwd, &attncl__op_fused_attention_linear_fwd,
                 ATTENTION_LINEAR_WEIGHT},
    [FEEDBACK] = {&attncl__op_feedback_attention_fwd, &attncl__op_fused_feedback_linear_fwd,
                  FEEDBACK_LINEAR_WEIGHT},
};

enum { MAX_INPUTS = 16 };
_Static_assert((int)N_ATTENTION_LINEAR_INPUTS <= MAX_INPUTS &&
                   (int)N_FEEDBACK_LINEAR_INPUTS <= MAX_INPUTS,
               "inputs of the fused ops");

// To memories that grow, without what only training and a caller's weights need.
static bool is_feedback_step(const struct lowered *p, int n)
{
    const struct feedback_attention_fwd_params *params = p->nodes[n].params;
    return has_input(p, n, FEEDBACK_POSITION) && !has_input(p, n, FEEDBACK_DCACHE) &&
           params->dropout.p == 0 && !params->want_weights;
}

static bool match_attention_linear(const struct lowered *p, int linear, struct fusion *f)
{
    int step = -1;

    if (!is_op(p, linear, &attncl__op_linear_fwd))
        return false;
    for (int kind = 0; step < 0 && kind < N_KINDS; ++kind) {
        step = attncl__fusion_sole_producer_of(p, linear, LINEAR_X, kinds[kind].step);
        f->kind = kind;
    }
    if (step < 0 || (f->kind == FEEDBACK && !is_feedback_step(p, step)))
        return false;
    f->node[f->n_nodes++] = step;
    f->last = linear;
    return true;
}

// The step moves to the map: nothing in between may write what it reads, or use the keys and values that it stores.
static bool attention_linear_is_legal(const struct lowered *p, const struct fusion *f)
{
    const int step = f->node[0];

    for (int i = STEP_KEYS; f->kind == DECODER && i <= STEP_VALUES; ++i) {
        const struct lowered_value *base = &p->values[p->values[input_of(p, step, i)].base];
        for (const struct use *use = base->first_use; use; use = use->next)
            if (step < use->node && use->node <= f->last)
                return false;
    }
    return !attncl__fusion_overwritten_before(p, step, f->last);
}

static void attention_linear_inputs(const struct lowered *p, const struct fusion *f,
                                    int in[MAX_INPUTS])
{
    const int n = kinds[f->kind].n_step_inputs;

    memcpy(in, p->nodes[f->node[0]].inputs, (size_t)n * sizeof in[0]);
    memcpy(&in[n], &p->nodes[f->last].inputs[LINEAR_WEIGHT],
           (N_LINEAR_INPUTS - LINEAR_WEIGHT) * sizeof in[0]);
}

static bool attention_linear_is_profitable(const struct lowered *p, struct fusion *f)
{
    int in[MAX_INPUTS];
    struct op_sig sig;

    attention_linear_inputs(p, f, in);
    attncl__lowered_sig_of(p, kinds[f->kind].fused, in, &sig);
    return f->kind == DECODER
               ? attncl__attention_linear_supported(&sig, p->nodes[f->node[0]].params)
               : attncl__feedback_linear_supported(&sig);
}

static attncl_status build_attention_linear(struct lowered *p, const struct fusion *f)
{
    const struct op_class *fused = kinds[f->kind].fused;
    const struct linear_fwd_params *linear = p->nodes[f->last].params;
    void *params = attncl__lowered_alloc(p, fused->params_bytes);
    int in[MAX_INPUTS];

    REQUIRE(params, ATTNCL_ERR_NO_MEMORY, "node of %s", fused->name);
    if (f->kind == DECODER)
        *(struct fused_attention_linear_fwd_params *)params =
            (struct fused_attention_linear_fwd_params){
                *(const struct attention_step_fwd_params *)p->nodes[f->node[0]].params, *linear};
    else
        *(struct fused_feedback_linear_fwd_params *)params =
            (struct fused_feedback_linear_fwd_params){*linear};
    attention_linear_inputs(p, f, in);
    TRY(attncl__lowered_replace(p, f->last, fused, params, in));
    attncl__lowered_remove(p, f->node[0]);
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_attention_linear = {
    "attention_linear", match_attention_linear, attention_linear_is_legal,
    attention_linear_is_profitable, build_attention_linear};
