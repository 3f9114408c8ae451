// SPDX-License-Identifier: MIT
// Loops of a graph: iterations count up in every run, read their rows and write rows.
// Reference: what a loop must give is computed in the tests.

#include "attncl/ops.h"
#include "graph/graph.h"
#include "support/layer_test.h"
#include "support/op_test.h"

// y[t] = x[t] + outside, and the last row beside it; `outside` is computed before the loop and read
// in every iteration, after the loop others may reuse its memory.
static void add_in_loop(struct rig *b, attncl_value x, attncl_value constant, int trip_count,
                        attncl_value *last_ret, attncl_value *all_ret)
{
    const struct loop_stack_fwd_params params = {trip_count};
    const attncl_value outside = attncl_add(b->g, constant, constant);
    const attncl_value iteration = attncl__graph_loop_begin(b->g, trip_count, false);
    const attncl_value row =
        attncl__graph_add(b->g, &attncl__op_loop_row_fwd, NULL, IN(x, iteration));
    const attncl_value between = attncl_add(b->g, row, row); // takes what `outside` would leave
    const attncl_value sum = attncl_add(b->g, attncl_add(b->g, between, outside), row);
    const attncl_value stack =
        attncl__graph_add(b->g, &attncl__op_loop_stack_fwd, &params, IN(sum, iteration));
    attncl__graph_loop_end(b->g);
    *last_ret = attncl_add(b->g, sum, constant);
    *all_ret = attncl_add(b->g, stack, x);
}

static void check(int trip_count, int64_t width)
{
    struct host *x = host_random(1, DIMS(trip_count, 2, width));
    struct host *constant = host_random(2, DIMS(2, width));
    struct host *last = host_like(constant), *all = host_like(x);
    struct host *want_last = host_like(last), *want_all = host_like(all);
    const int64_t each = 2 * width;
    attncl_value last_value, all_value;
    struct rig b;

    for (int64_t i = 0; i < x->count; ++i) {
        want_all->data[i] = 4 * x->data[i] + 2 * constant->data[i % each];
        want_last->data[i % each] = 3 * x->data[i] + 3 * constant->data[i % each];
    }
    rig_open(&b);
    const attncl_value in = rig_in(&b, x), fixed = rig_in(&b, constant);
    add_in_loop(&b, in, fixed, trip_count, &last_value, &all_value);
    if (trip_count > 0)
        rig_out(&b, last_value, last);
    rig_out(&b, all_value, all);
    ck_ok(rig_compile(&b));
    for (int run = 0; run < 3; ++run) { // each starts at iteration 0
        rig_run(&b);
        ck_near(all, want_all, 2e-7, 2e-6);
        if (trip_count > 0)
            ck_near(last, want_last, 2e-7, 2e-6);
    }
    rig_close(&b);
}

TEST(rounds_read_and_leave_rows)
{
    check(1, 1);
    check(2, 3);
    check(7, 700);
    check(0, 5);
}

// Rows are added from the first or from the last on; the last iteration's row is left.
LOOP_TEST(a_loop_adds_rows_in_either_order, 0, 2)
{
    enum { TRIPS = 5, WIDTH = 700 };
    const bool reversed = _i == 1;
    const struct loop_sum_fwd_params params = {reversed ? TRIPS - 1 : 0};
    struct host *x = host_random(1, DIMS(TRIPS, WIDTH)), *constant = host_random(2, DIMS(WIDTH));
    struct host *sum = host_like(constant), *last = host_like(constant);
    struct host *want_sum = host_like(sum), *want_last = host_like(last);
    struct rig b;

    for (int64_t i = 0; i < WIDTH; ++i) {
        for (int64_t t = 0; t < TRIPS; ++t)
            want_sum->data[i] += x->data[t * WIDTH + i];
        want_sum->data[i] += constant->data[i];
        want_last->data[i] = x->data[(reversed ? 0 : TRIPS - 1) * WIDTH + i] + constant->data[i];
    }
    rig_open(&b);
    const attncl_value in = rig_in(&b, x), fixed = rig_in(&b, constant);
    const attncl_value iteration = attncl__graph_loop_begin(b.g, TRIPS, reversed);
    const attncl_value row =
        attncl__graph_add(b.g, &attncl__op_loop_row_fwd, NULL, IN(in, iteration));
    const attncl_value all =
        attncl__graph_add(b.g, &attncl__op_loop_sum_fwd, &params, IN(row, iteration));
    attncl__graph_loop_end(b.g);
    rig_out(&b, attncl_add(b.g, all, fixed), sum);
    rig_out(&b, attncl_add(b.g, row, fixed), last);
    ck_ok(rig_compile(&b));
    for (int run = 0; run < 2; ++run) {
        rig_run(&b);
        ck_near(sum, want_sum, 2e-6, 2e-6);
        ck_near(last, want_last, 2e-7, 2e-6);
    }
    rig_close(&b);
}

TEST(an_iteration_outside_counts_as_the_nearest)
{
    struct host *x = host_random(1, DIMS(3, 5)), *y = host_new(ATTNCL_F32, DIMS(5));
    struct host *iteration = host_new(ATTNCL_I32, DIMS(1)), *want = host_like(y);
    const double iterations[] = {-5, 0, 2, 3};
    for (int i = 0; i < 4; ++i) {
        iteration->data[0] = iterations[i];
        memcpy(want->data, x->data + (i < 2 ? 0 : 10), 5 * sizeof *want->data);
        ck_op("loop_row_fwd", NULL, HOSTS(x, iteration), HOSTS(want), 0, 0);
    }
}

TEST(refusals)
{
    struct host *x = host_new(ATTNCL_F32, DIMS(2));
    struct rig b;

    ck_refused("loop_row_fwd", NULL, HOSTS(x, x), ATTNCL_ERR_DTYPE, "iteration is F32");
    ck_refused("loop_stack_fwd", NULL, HOSTS(x, x), ATTNCL_ERR_DTYPE, "iteration is F32");
    rig_open(&b);
    attncl__graph_loop_begin(b.g, 2, false);
    attncl__graph_loop_begin(b.g, 2, false);
    ck_fails(attncl_graph_status(b.g), ATTNCL_ERR_STATE, "a loop in a loop");
    rig_close(&b);
    rig_open(&b);
    attncl__graph_loop_begin(b.g, -1, false);
    ck_fails(attncl_graph_status(b.g), ATTNCL_ERR_SHAPE, "a loop of -1 iterations");
    rig_close(&b);
}
