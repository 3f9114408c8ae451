// SPDX-License-Identifier: MIT
//
// Dead code elimination: a node is live when it updates state, or when an output or a live node
// reads one of its results.  Nodes are in topological order, so that one backward traversal is
// enough.

#include "compile/lowered.h"

static bool is_live(const struct lowered *p, const struct lowered_node *node)
{
    bool live = attncl__op_inputs(node->cls, STATE) != 0;

    for (int i = 0; i < node->cls->n_out; ++i) {
        const struct lowered_value *v = &p->values[node->outputs[i]];
        live = live || v->n_uses > 0 || v->is_output;
    }
    return live;
}

void attncl__eliminate_dead(struct lowered *p)
{
    for (int n = p->n_nodes - 1; n >= 0; --n)
        if (!is_live(p, &p->nodes[n]))
            attncl__lowered_remove(p, n);
}
