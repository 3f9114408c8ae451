// SPDX-License-Identifier: MIT
// Recording: which nodes have commands and in which order, loops, rows of profiles, failures.

#include "base/alloc.h"
#include "compile/lowered.h"
#include "compile/program.h"
#include "exec/exec.h"
#include "op/aft/aft.h"
#include "op/attention/additive_attention.h"
#include "op/attention/attention.h"
#include "support/op_spec.h"
#include "support/op_test.h"
#include "support/test.h"

enum { N = 24 };

static attncl_value add(attncl_graph *g, attncl_value a, attncl_value b)
{
    return attncl__graph_add(g, &attncl__op_add_fwd, NULL, IN(a, b));
}

// The passes up to recording.  The caller frees both.
static attncl_status record(const attncl_graph *g, struct lowered *p, struct program **ret)
{
    *ret = attncl__alloc_zero(sizeof **ret);
    (*ret)->ctx = test_context();
    ck_ok(attncl__plan(g, NULL, p));
    ck_ok(attncl__allocate(p, *ret));
    return attncl__record(p, *ret);
}

static void end(attncl_graph *g, struct lowered *p, struct program *program)
{
    attncl__program_free(program);
    attncl__lowered_free(p);
    attncl_graph_destroy(g);
}

// Nodes 0, 2 and 3 have commands; node 1 is dead, node 4 computes no element.
TEST(live_nodes_in_their_order)
{
    attncl_graph *g = test_graph();
    struct lowered p;
    struct program *program;
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    const attncl_value none = attncl_graph_input(g, "none", ATTNCL_F32, 1, (int64_t[]){0});
    attncl_graph_push_scope(g, "here");
    const attncl_value y = add(g, x, x);
    attncl_graph_pop_scope(g);
    add(g, x, y);
    attncl_graph_output(g, "z", add(g, add(g, y, x), y));
    attncl_graph_output(g, "empty", add(g, none, none));
    ck_ok(record(g, &p, &program));

    static const int nodes[] = {0, 2, 3};
    size_t n_found = 0;
    for (size_t i = 0; i < program->command_list.n_commands; ++i) {
        const struct command *c = &program->command_list.commands[i];
        if (attncl__command_is_sync(c)) // of several queues
            continue;
        ck_assert_uint_lt(n_found, COUNT_OF(nodes));
        ck_assert_int_eq(c->node, nodes[n_found++]);
    }
    ck_assert_uint_eq(n_found, COUNT_OF(nodes));
    ck_assert_str_eq(program->nodes[0].op, "add_fwd");
    ck_assert_str_eq(program->nodes[0].scope, "here");
    ck_assert_str_eq(program->nodes[2].scope, "");
    ck_assert_ptr_null(program->nodes[1].op);
    ck_assert_double_eq(program->nodes[0].flop, N);
    ck_assert_double_eq(program->nodes[0].bytes, 3 * N * sizeof(float));
    ck_assert_uint_eq(program->inputs.copies.n_commands + program->outputs.copies.n_commands, 0);
    end(g, &p, program);
}

// Commands of a loop are there once; a run enqueues them, and a profile counts them, for each
// iteration.  A loop without iterations has none.
LOOP_TEST(loops_are_recorded_once, 0, 3)
{
    static const int64_t trip_counts[] = {3, 1, 0};
    const int64_t trip_count = trip_counts[_i];
    attncl_graph *g = test_graph();
    struct lowered p;
    struct program *program;
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    const attncl_value before = add(g, x, x);
    attncl__graph_loop_begin(g, trip_count, false);
    const attncl_value inside = add(g, before, x);
    attncl__graph_loop_end(g);
    attncl_graph_output(g, "y", add(g, inside, before));
    ck_ok(record(g, &p, &program));

    const struct command_list *list = &program->command_list;
    const size_t in_loop = trip_count ? 2 : 0; // the index and the sum
    ck_assert_uint_eq(list->n_commands, 2 + in_loop);
    ck_assert_uint_eq(attncl__command_list_length(list), 2 + in_loop * (size_t)trip_count);
    if (trip_count > 1) {
        ck_assert_uint_eq(list->commands[2].loop_first, 1);
        ck_assert_uint_eq(list->commands[2].trip_count, 3);
    }
    ck_assert_double_eq(program->nodes[2].flop, (double)(N * trip_count));
    end(g, &p, program);
}

static attncl_status refuse(struct launcher *l, const struct op_call *call)
{
    (void)l;
    (void)call;
    return FAIL(ATTNCL_ERR_UNSUPPORTED, "not on this device");
}

TEST(a_failure_names_scope_and_op)
{
    struct op_class refused = attncl__op_add_fwd;
    attncl_graph *g = test_graph();
    struct lowered p;
    struct program *program;
    refused.launch = refuse;
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    attncl_graph_push_scope(g, "here");
    attncl_graph_output(g, "y", attncl__graph_add(g, &refused, NULL, IN(x, x)));
    attncl_graph_pop_scope(g);
    ck_fails(record(g, &p, &program), ATTNCL_ERR_UNSUPPORTED, "here: add_fwd: not on this device");
    end(g, &p, program);
}

enum { LONG_INPUTS = 4 };

// y and the gradients of an op; returns the number of commands.
static size_t run_long_op(const struct op_class *cls, const void *params, struct host *const in[],
                          struct host *y, struct host *ret[1 + LONG_INPUTS])
{
    struct op_graph t = {.cls = cls, .n_in = cls->n_in, .n_out = 1, .out = {y}};
    struct program *program;

    t.dy[0] = host_random(5, y->rank, y->dim);
    for (int i = 0; i < LONG_INPUTS && in[i]; ++i) {
        t.in[i] = in[i];
        t.wanted |= 1u << i;
    }
    ck_ok(op_graph_open(&t, params));
    ck_ok(op_graph_run(&t));
    ret[0] = host_like(y);
    ck_ok(op_graph_read(&t, "out", 0, ret[0]));
    for (int i = 0; i < LONG_INPUTS && in[i]; ++i) {
        ret[1 + i] = host_like(in[i]);
        ck_ok(op_graph_read(&t, "dx", i, ret[1 + i]));
    }
    ck_ok(attncl__get_program(t.g, &program));
    const size_t n = program->command_list.n_commands;
    op_graph_close(&t);
    return n;
}

static const struct {
    const struct op_class *cls;
    const void *params;
    struct {
        int rank;
        const int64_t *dim;
    } y, in[LONG_INPUTS];
    size_t more; // commands in parts than whole, at least
} long_ops[] = {
    {&attncl__op_aft_fwd,
     SPEC_PARAMS(aft_fwd, .window = 9),
     {DIMS(40, 7, 200)},
     {{DIMS(40, 7, 200)}, {DIMS(40, 7, 200)}, {DIMS(40, 7, 200)}, {DIMS(40, 40)}},
     10},
    {&attncl__op_aft_fwd,
     SPEC_PARAMS(aft_fwd, .window = 40, .causal = 1),
     {DIMS(40, 7, 200)},
     {{DIMS(40, 7, 200)}, {DIMS(40, 7, 200)}, {DIMS(40, 7, 200)}, {DIMS(40, 40)}},
     10},
    {&attncl__op_attention_fwd,
     SPEC_PARAMS(attention_fwd, .scale = 0.25f, .causal = 1),
     {DIMS(70, 2, 2, 16)},
     {{DIMS(2, 2, 70, 16)}, {DIMS(2, 2, 70, 16)}, {DIMS(2, 2, 70, 16)}},
     5},
    // Each of 18 queries in three passes, each of 140 keys in one.
    {&attncl__op_additive_attention_fwd,
     SPEC_PARAMS(additive_attention_fwd, 0),
     {DIMS(2, 9, 6)},
     {{DIMS(2, 9, 5)}, {DIMS(2, 70, 5)}, {DIMS(2, 70, 6)}, {DIMS(5)}},
     3 * 17 + 139},
};

// The results are the same where each launch does as little as it can.
TABLE_TEST(what_takes_long_is_launched_in_parts, long_ops)
{
    struct host *in[LONG_INPUTS] = {NULL}, *whole[1 + LONG_INPUTS], *parts[1 + LONG_INPUTS];
    struct device_caps *caps = &test_context()->caps;
    const double flop_per_second = caps->flop_per_second;
    const struct op_class *cls = long_ops[_i].cls;
    const void *params = long_ops[_i].params;

    if (caps->variant != VARIANT_GPU || on_simulator())
        return;
    for (int i = 0; i < LONG_INPUTS && long_ops[_i].in[i].rank > 0; ++i)
        in[i] = host_random(1u + (unsigned)i, long_ops[_i].in[i].rank, long_ops[_i].in[i].dim);
    struct host *const y = host_new(ATTNCL_F32, long_ops[_i].y.rank, long_ops[_i].y.dim);
    caps->flop_per_second = 0;
    const size_t n = run_long_op(cls, params, in, y, whole);
    caps->flop_per_second = 1;
    ck_assert_uint_ge(run_long_op(cls, params, in, y, parts), n + long_ops[_i].more);
    caps->flop_per_second = flop_per_second;
    for (int i = 0; i <= LONG_INPUTS && (i == 0 || in[i - 1]); ++i)
        for (int64_t k = 0; k < whole[i]->count; ++k)
            ck_assert_msg(whole[i]->data[k] == parts[i]->data[k], "result %d, element %" PRId64, i,
                          k);
}
