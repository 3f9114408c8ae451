// SPDX-License-Identifier: MIT
//
// Fusion: applies the rules of fusion_rules.c to each node, producers before their consumers.

#include "compile/fuse.h"

static attncl_status fuse_node(struct lowered *p, int n)
{
    for (int r = 0; attncl__fusion_rules[r]; ++r) {
        const struct fusion_rule *rule = attncl__fusion_rules[r];
        struct fusion f = {.n_nodes = 0};
        if (rule->match(p, n, &f) && rule->is_legal(p, &f) && rule->is_profitable(p, &f))
            return rule->build(p, &f);
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
