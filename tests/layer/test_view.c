// SPDX-License-Identifier: MIT
// Views and views of views, and what the graph makes of them; softmax over an inner axis.

#include <string.h>

#include "attncl/ops.h"
#include "graph/nodes.h"
#include "op/op.h"
#include "ref/ref.h"
#include "support/layer_test.h"

// Element (i, j, k) of x [2, 5, 6].
static double at(const struct host *x, int64_t i, int64_t j, int64_t k)
{
    return x->data[(i * x->dim[1] + j) * x->dim[2] + k];
}

TEST(a_slice_of_a_slice)
{
    struct rig b;
    struct host *x = host_random(1, DIMS(2, 5, 6)), *y = host_new(ATTNCL_F32, DIMS(2, 2, 3));
    rig_open(&b);
    attncl_value v = rig_in(&b, x);
    v = attncl_slice(b.g, v, 2, 1, 6);
    v = attncl_slice(b.g, v, 1, 2, 5);
    v = attncl_slice(b.g, v, 2, 1, 4);
    v = attncl_slice(b.g, v, 1, 0, 2);
    rig_out(&b, v, y);
    rig_run_once(&b);
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            for (int k = 0; k < 3; ++k)
                ck_assert_double_eq(at(y, i, j, k), at(x, i, j + 2, k + 2));
}

TEST(long_rows_with_gaps)
{
    enum { WIDTH = 4097 }; // more than a work-group copies
    struct rig b;
    struct host *x = host_random(8, DIMS(2, WIDTH + 2)), *y = host_new(ATTNCL_F32, DIMS(2, WIDTH));
    rig_open(&b);
    rig_out(&b, attncl_slice(b.g, rig_in(&b, x), 1, 1, WIDTH + 1), y);
    rig_run_once(&b);
    for (int i = 0; i < 2 * WIDTH; ++i)
        ck_assert_double_eq(y->data[i], x->data[i + 1 + i / WIDTH * 2]);
}

TEST(a_permuted_slice_reshaped)
{
    struct rig b;
    struct host *x = host_random(2, DIMS(6, 5, 6)), *y = host_new(ATTNCL_F32, DIMS(6, 12));
    rig_open(&b);
    attncl_value v = rig_in(&b, x);
    v = attncl_slice(b.g, v, 1, 1, 3);                       // [6, 2, 6]
    v = attncl_permute(b.g, v, (const int[]){2, 1, 0});      // [6, 2, 6]
    v = attncl_reshape(b.g, v, 2, (const int64_t[]){6, 12}); // copied: a view with gaps
    rig_out(&b, v, y);
    rig_run_once(&b);
    for (int k = 0; k < 6; ++k)
        for (int i = 0; i < 6; ++i)
            for (int j = 0; j < 2; ++j)
                ck_assert_double_eq(y->data[k * 12 + j * 6 + i], at(x, i, j + 1, k));
}

// An op that reads rows, after a slice that begins inside a row and one that begins at a later
// row.
TEST(ops_read_views)
{
    struct rig b;
    struct host *x = host_random(3, DIMS(4, 5, 6));
    struct host *part = host_new(ATTNCL_F32, DIMS(2, 5, 3)), *want = host_like(part);
    struct host *softmax = host_like(part), *sum = host_like(part);
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 5; ++j)
            for (int k = 0; k < 3; ++k)
                part->data[(i * 5 + j) * 3 + k] = at(x, i + 1, j, k + 3);
    rig_open(&b);
    attncl_value v = rig_in(&b, x);
    v = attncl_slice(b.g, attncl_slice(b.g, v, 0, 1, 3), 2, 3, 6);
    rig_out(&b, attncl_softmax(b.g, v, -1), softmax);
    rig_out(&b, attncl_add(b.g, v, v), sum);
    rig_run_once(&b);
    ref_softmax_fwd(part, want);
    ck_near(softmax, want, 1e-6, 1e-7);
    ref_add_fwd(part, part, want);
    ck_near(sum, want, 0, 0);
}

// Gradients of views that overlap, as many elements as their base has.
#define ROWS(from, width, step)                                                                    \
    {                                                                                              \
        .dtype = ATTNCL_F32, .rank = 2, .dim = {2, width}, .stride = {step, 1}, .start = from      \
    }
static const struct view_scatter_add_fwd_params overlaps[] = {
    {16, {ROWS(4, 4, 5), ROWS(0, 4, 8)}}, // rows of other lengths
    {18, {ROWS(0, 5, 8), ROWS(6, 4, 8)}}, // that go on in the next row
    {16, {ROWS(0, 4, 8), ROWS(2, 4, 8)}},
};

TABLE_TEST(views_that_overlap_are_summed, overlaps)
{
    const struct view_scatter_add_fwd_params *p = &overlaps[_i];
    struct host *y = host_new(ATTNCL_F32, DIMS(p->count)), *want = host_like(y), *x[2];
    attncl_value in[2];
    struct rig b;
    rig_open(&b);
    for (int i = 0; i < 2; ++i) {
        x[i] = host_random(6u + (unsigned)i, 2, p->view[i].dim);
        in[i] = rig_in(&b, x[i]);
    }
    rig_out(&b, attncl__graph_add(b.g, &attncl__op_view_scatter_add_fwd, p, in, 2), y);
    rig_run_once(&b);
    ref_view_scatter_add_fwd(x, p->view, 2, want);
    ck_near(y, want, 2e-7, 2e-7);
}

LOOP_TEST(softmax_over_any_axis, 0, 6)
{
    const int axis = _i - 3; // -3 .. 2
    struct rig b;
    struct host *x = host_random(4, DIMS(3, 5, 4)), *y = host_like(x);
    rig_open(&b);
    rig_out(&b, attncl_softmax(b.g, rig_in(&b, x), axis), y);
    rig_run_once(&b);

    const int along = axis < 0 ? axis + 3 : axis;
    int64_t stride = 1;
    for (int i = 2; i > along; --i)
        stride *= x->dim[i];
    for (int64_t i = 0; i < x->count; ++i) {
        if (i / stride % x->dim[along] != 0)
            continue; // rows begin where the coordinate is 0
        struct host *row = host_new(ATTNCL_F32, 1, &x->dim[along]), *want = host_like(row);
        for (int64_t j = 0; j < row->count; ++j)
            row->data[j] = x->data[i + j * stride];
        ref_softmax_fwd(row, want);
        for (int64_t j = 0; j < row->count; ++j)
            ck_assert_double_eq_tol(y->data[i + j * stride], want->data[j], 1e-6);
    }
}

// Each builder's refusal is what compile reports, with the scope in front.
LOOP_TEST(bad_views_are_refused, 0, 10)
{
    static const struct {
        attncl_status status;
        const char *words;
    } expected[] = {
        {ATTNCL_ERR_SHAPE, "here: axis 3 of a value of rank 3"},
        {ATTNCL_ERR_SHAPE, "here: elements [2, 6) of axis 1, which has 5"},
        {ATTNCL_ERR_SHAPE, "here: elements [3, 2) of axis 1, which has 5"},
        {ATTNCL_ERR_SHAPE, "here: shape [2, 5, 6] cannot become [2, 31]"},
        {ATTNCL_ERR_ARGUMENT, "here: axis 1 at position 2 is no permutation of 3 axes"},
        {ATTNCL_ERR_SHAPE, "here: axis 3 of a value of rank 3"},
        {ATTNCL_ERR_ARGUMENT, "here: x is missing"},
        {ATTNCL_ERR_SHAPE, "here: "},
        {ATTNCL_ERR_ARGUMENT, "here: dim is NULL"},
        {ATTNCL_ERR_ARGUMENT, "here: order is NULL"},
    };
    struct rig b;
    struct host *x = host_random(5, DIMS(2, 5, 6));
    rig_open(&b);
    const attncl_value v = rig_in(&b, x), none = ATTNCL_NONE_VALUE;
    attncl_graph_push_scope(b.g, "here");
    const attncl_value made = _i == 0   ? attncl_slice(b.g, v, 3, 0, 1)
                              : _i == 1 ? attncl_slice(b.g, v, 1, 2, 6)
                              : _i == 2 ? attncl_slice(b.g, v, 1, 3, 2)
                              : _i == 3 ? attncl_reshape(b.g, v, 2, (const int64_t[]){2, 31})
                              : _i == 4 ? attncl_permute(b.g, v, (const int[]){0, 1, 1})
                              : _i == 5 ? attncl_softmax(b.g, v, 3)
                              : _i == 6 ? attncl_slice(b.g, none, 0, 0, 1)
                              : _i == 7 ? attncl_reshape(b.g, v, 2, (const int64_t[]){-5, -12})
                              : _i == 8 ? attncl_reshape(b.g, v, 2, NULL)
                                        : attncl_permute(b.g, v, NULL);
    attncl_graph_pop_scope(b.g);
    ck_assert_int_eq(made.id, 0);
    attncl_graph_output(b.g, "y", attncl_add(b.g, made, v)); // later builders do nothing
    ck_rig_fails(&b, expected[_i].status, expected[_i].words);
}
