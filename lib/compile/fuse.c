// SPDX-License-Identifier: MIT
//
// Fusion: applies the rules to each node, producers before consumers.

#include "compile/fuse.h"

// The first rule that matches a node is applied.
static const struct fusion_rule *const rules[] = {
    &attncl__fuse_norm,
    &attncl__fuse_add_gemm,
    &attncl__fuse_products,
    &attncl__fuse_merge,
    &attncl__fuse_mixing_step_after,
    &attncl__fuse_mixing_step,
    &attncl__fuse_ffn_after,
    &attncl__fuse_sums,
    &attncl__fuse_clipping,
};

// True when a node between n and `end` writes an input of node n.
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

static bool is_overwritten(const struct lowered *p, const struct fusion *fusion)
{
    for (int i = 0; i < fusion->n_nodes; ++i)
        if (is_overwritten_before(p, fusion->node[i], fusion->last))
            return true;
    return false;
}

static attncl_status fuse_node(struct lowered *p, int n)
{
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; ++r) {
        struct fusion fusion = {.n_nodes = 0};
        if (rules[r]->match(p, n, &fusion) && !is_overwritten(p, &fusion))
            return rules[r]->build(p, &fusion);
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
