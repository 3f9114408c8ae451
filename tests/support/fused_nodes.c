// SPDX-License-Identifier: MIT

#include "support/fused_nodes.h"

#include "compile/lowered.h"
#include "support/test.h"

static int count(const attncl_graph *g, const struct op_class *cls, int input)
{
    struct lowered p = {0};
    int n = 0;

    ck_ok(attncl__lower(g, NULL, &p));
    attncl__eliminate_dead(&p);
    ck_ok(attncl__fuse(&p));
    for (int i = 0; i < p.n_nodes; ++i)
        n += !p.nodes[i].dead && p.nodes[i].cls == cls && p.nodes[i].inputs[input] != 0;
    attncl__lowered_free(&p);
    return n;
}

int count_fused(const attncl_graph *g, const struct op_class *cls)
{
    return count(g, cls, 0);
}

int count_maps(const attncl_graph *g, enum fused_linear_input input)
{
    return count(g, &attncl__op_fused_linear_fwd, (int)input);
}
