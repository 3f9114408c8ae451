// SPDX-License-Identifier: MIT
// Lowering: producers and consumers of a small graph, also after an edit; the graph stays as it was.

#include "attncl/ops.h"
#include "compile/lowered.h"
#include "graph/nodes.h"
#include "support/test.h"

enum { N = 8 };

struct fixture {
    attncl_graph *g;
    attncl_value x, y, flat, z; // y = x + x, flat a view of it, z = flat + flat
    struct lowered p;
};

static struct fixture begin(void)
{
    struct fixture f = {.g = NULL};

    ck_ok(attncl_graph_create(test_context(), &f.g));
    f.x = attncl_graph_input(f.g, "x", ATTNCL_F32, 2, (int64_t[]){N, N});
    f.y = attncl__graph_add(f.g, &attncl__op_add_fwd, NULL, IN(f.x, f.x));
    f.flat = attncl_reshape(f.g, f.y, 1, (int64_t[]){N * N});
    f.z = attncl__graph_add(f.g, &attncl__op_add_fwd, NULL, IN(f.flat, f.flat));
    attncl_graph_output(f.g, "z", f.z);
    ck_ok(attncl__lower(f.g, NULL, &f.p));
    return f;
}

static void end(struct fixture *f)
{
    attncl__lowered_free(&f->p);
    attncl_graph_destroy(f->g);
}

static void ck_links(const struct lowered *p, attncl_value v, int producer, int n_uses)
{
    int n = 0;

    ck_assert_int_eq(p->values[v.id].producer, producer);
    ck_assert_int_eq(p->values[v.id].n_uses, n_uses);
    for (const struct use *use = p->values[v.id].first_use; use; use = use->next, ++n)
        ck_assert_int_lt(producer, use->node);
    ck_assert_int_eq(n, n_uses);
}

TEST(values_have_producers_and_consumers)
{
    struct fixture f = begin();
    ck_links(&f.p, f.x, -1, 2);
    ck_links(&f.p, f.y, 0, 2); // through its view
    ck_links(&f.p, f.z, 1, 0);
    ck_assert_int_eq(f.p.values[f.flat.id].base, f.y.id);
    ck_assert_ptr_eq(f.p.values[f.y.id].desc, &f.g->values[f.y.id].desc);
    end(&f);
}

TEST(edits_keep_links_and_leave_the_graph)
{
    struct fixture f = begin();
    const int in[] = {f.x.id};
    ck_ok(attncl__lowered_replace(&f.p, 1, &attncl__op_copy_fwd, NULL, in));
    ck_links(&f.p, f.x, -1, 3);
    ck_links(&f.p, f.y, 0, 0);
    ck_assert_int_eq(f.p.nodes[1].outputs[0], f.z.id);
    attncl__lowered_remove(&f.p, 0);
    ck_links(&f.p, f.x, -1, 1);
    ck_assert_ptr_eq(f.g->nodes[1].cls, &attncl__op_add_fwd);
    ck_assert_int_eq(f.g->nodes[1].in[0], f.flat.id);
    end(&f);
}

// What lives how long: y from node 0 to node 1; the output is not in the arena.
TEST(lifetimes_end_with_the_last_consumer)
{
    struct fixture f = begin();
    attncl__eliminate_dead(&f.p);
    ck_ok(attncl__find_lifetimes(&f.p));
    ck_assert_uint_eq(f.p.n_items, 1);
    ck_assert_int_eq(f.p.items[0].value, f.y.id);
    ck_assert_uint_eq(f.p.items[0].content_bytes, N * N * sizeof(float));
    if (!f.p.canaries) {
        ck_assert_int_eq(f.p.items[0].first, 0);
        ck_assert_int_eq(f.p.items[0].last, 1);
    }
    ck_assert_uint_eq(f.p.report.io_bytes, 2 * N * N * sizeof(float));
    end(&f);
}
