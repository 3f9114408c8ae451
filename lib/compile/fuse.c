// SPDX-License-Identifier: MIT
//
// Fusion: applies the rules to each node, producers before consumers.  Op classes know nothing of them.

#include "compile/fuse.h"

// For each node the first one that applies is taken.
static const struct fusion_rule *const rules[] = {
    &attncl__fuse_norm,      &attncl__fuse_add_gemm,          &attncl__fuse_products,
    &attncl__fuse_merge,     &attncl__fuse_mixing_step_after, &attncl__fuse_mixing_step,
    &attncl__fuse_ffn_after, &attncl__fuse_clipping,
};

// Whether a node between n and `end` writes to what node n reads.
static bool is_overwritten_before(const struct lowered *p, int n, int end)
{
    for (int i = 0; i < p->nodes[n].cls->n_in; ++i) {
        const struct lowered_value *base = &p->values[p->values[input_of(p, n, i)].base];
        if (base->n_writes == 0)
            continue;
        for (const struct use *use = base->first_use; use; use = use->next)
            if (use->writes && n < use->node && use->node < end)
                return true;
    }
    return false;
}

static bool is_overwritten(const struct lowered *p, const struct fusion *f)
{
    for (int i = 0; i < f->n_nodes; ++i)
        if (is_overwritten_before(p, f->node[i], f->last))
            return true;
    return false;
}

static attncl_status fuse_node(struct lowered *p, int n)
{
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; ++r) {
        struct fusion f = {.n_nodes = 0};
        if (rules[r]->match(p, n, &f) && !is_overwritten(p, &f))
            return rules[r]->build(p, &f);
    }
    return ATTNCL_OK;
}

attncl_status attncl__fuse(struct lowered *p)
{
    for (int n = 0; n < p->n_nodes; ++n)
        if (!p->nodes[n].dead)
            TRY(fuse_node(p, n));
    return ATTNCL_OK;
}

// -- matching over producer and consumer links, for the rules

int attncl__fusion_producer_of(const struct lowered *p, int n, int i, const struct op_class *cls)
{
    const int value = input_of(p, n, i), producer = p->values[value].producer;

    return is_op(p, producer, cls) && p->nodes[producer].outputs[0] == value &&
                   p->nodes[producer].loop == p->nodes[n].loop
               ? producer
               : -1;
}

int attncl__fusion_sole_producer_of(const struct lowered *p, int n, int i,
                                    const struct op_class *cls)
{
    const struct lowered_value *v = &p->values[input_of(p, n, i)];

    return v->n_uses == 1 && !v->is_output ? attncl__fusion_producer_of(p, n, i, cls) : -1;
}

bool attncl__fusion_is_plain_map(const struct lowered *p, int n, int first)
{
    const struct op_class *cls = p->nodes[n].cls;
    // Those of linear_fwd, or they begin with those.
    const struct fused_linear_fwd_params *params = p->nodes[n].params;
    const struct fused_linear_fwd_params *of_first = p->nodes[first].params;

    if (cls != p->nodes[first].cls || input_of(p, n, LINEAR_X) != input_of(p, first, LINEAR_X) ||
        params->linear.activation != ATTNCL_IDENTITY || has_input(p, n, LINEAR_GATE) ||
        has_input(p, n, LINEAR_RESIDUAL))
        return false;
    return cls == &attncl__op_linear_fwd ||
           (input_of(p, n, FUSED_LINEAR_NORM_W) == input_of(p, first, FUSED_LINEAR_NORM_W) &&
            input_of(p, n, FUSED_LINEAR_NORM_B) == input_of(p, first, FUSED_LINEAR_NORM_B) &&
            params->eps == of_first->eps);
}

void attncl__fusion_map_inputs(const struct lowered *p, int n, int in[N_FUSED_LINEAR_INPUTS])
{
    memset(in, 0, N_FUSED_LINEAR_INPUTS * sizeof in[0]);
    memcpy(in, p->nodes[n].inputs, (size_t)p->nodes[n].cls->n_in * sizeof in[0]);
}

attncl_status attncl__fusion_replace_map(struct lowered *p, int n, const int *in,
                                         struct fused_linear_fwd_params **params_ret)
{
    struct fused_linear_fwd_params *params = attncl__lowered_alloc(p, sizeof *params);

    REQUIRE(params, ATTNCL_ERR_NO_MEMORY, "node of fused_linear_fwd");
    *params_ret = memcpy(params, p->nodes[n].params, p->nodes[n].cls->params_bytes);
    return attncl__lowered_replace(p, n, &attncl__op_fused_linear_fwd, params, in);
}
