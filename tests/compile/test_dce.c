// SPDX-License-Identifier: MIT
// Dead code elimination: what no output and no state needs is gone, with all that only it needs.

#include "compile/lowered.h"
#include "support/test.h"

static attncl_value add(attncl_graph *g, attncl_value a, attncl_value b)
{
    return attncl__graph_add(g, &attncl__op_add_fwd, NULL, IN(a, b));
}

TEST(only_what_is_needed_stays)
{
    const int64_t dim[] = {1, 4, 1, 1, 8}, n = 1, rows[] = {4, 8};
    const struct feedback_store_fwd_params params = {0};
    struct lowered p = {0};

    attncl_graph *g = test_graph();
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, rows);
    const attncl_value y = add(g, x, x), dead = add(g, y, y);
    add(g, dead, x);
    const attncl_value stored = add(g, y, x); // node 3: only state needs it
    const attncl_value at = attncl_graph_input(g, "at", ATTNCL_I32, 1, &n);
    const attncl_value memory = attncl_graph_state(g, "memory", ATTNCL_F32, 5, dim);
    attncl__graph_add(g, &attncl__op_feedback_store_fwd, &params, IN(stored, at, memory));
    attncl_graph_output(g, "y", y);
    attncl_graph_output(g, "last", add(g, y, y)); // node 5: no node reads it
    ck_ok(attncl__lower(g, NULL, &p));
    attncl__eliminate_dead(&p);

    static const bool dead_nodes[] = {false, true, true, false, false, false};
    ck_assert_int_eq(p.n_nodes, 6);
    for (int i = 0; i < 6; ++i)
        ck_assert_msg(p.nodes[i].dead == dead_nodes[i], "node %d", i);
    ck_assert_int_eq(p.values[x.id].n_uses, 3);
    ck_assert_int_eq(p.values[y.id].n_uses, 3);
    ck_assert_int_eq(p.values[memory.id].n_writes, 1);
    attncl__lowered_free(&p);
    attncl_graph_destroy(g);
}
