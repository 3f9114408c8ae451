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

static attncl_status fuse_node(struct lowered *p, int n)
{
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; ++r) {
        struct fusion f = {.n_nodes = 0};
        if (rules[r]->match(p, n, &f) && (!rules[r]->is_legal || rules[r]->is_legal(p, &f)) &&
            (!rules[r]->is_profitable || rules[r]->is_profitable(p, &f)))
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
