// SPDX-License-Identifier: MIT

#include "support/fused_nodes.h"

#include "compile/lowered.h"
#include "support/test.h"

int count_fused(const attncl_graph *g, const struct op_class *cls)
{
    struct lowered p = {0};
    int n = 0;

    ck_ok(attncl__lower(g, NULL, &p));
    attncl__eliminate_dead(&p);
    ck_ok(attncl__fuse(&p));
    for (int i = 0; i < p.n_nodes; ++i)
        n += !p.nodes[i].dead && p.nodes[i].cls == cls;
    attncl__lowered_free(&p);
    return n;
}
