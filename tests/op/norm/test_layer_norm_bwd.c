// SPDX-License-Identifier: MIT
// The gradients of layer normalisation against their reference (tests/ref/layer_norm_bwd.c) and
// against finite differences.

#include <math.h>

#include "ref/ref.h"
#include "support/grad_test.h"

static const struct layer_norm_fwd_params params = {1e-5f};

// Chosen to hit: less than a vector, a ragged tail, whole vectors, several blocks of rows, the last
// of which is short, a long row.
static const struct shape {
    int rows, cols;
} shapes[] = {{3, 7}, {37, 19}, {300, 33}, {37, 64}, {9, 1028}, {3, 4099}, {2, 4100}};

// Sums of n terms of size up to 4, and the roundings of each.
static double rounding(int64_t n)
{
    return 4 * 6e-8 * (16 + 2 * sqrt((double)n));
}

static void check(struct host *x, struct host *weight)
{
    struct host *dy = host_random(9, x->rank, x->dim);
    struct host *dx = host_like(x), *dw = host_like(weight), *db = host_like(weight);
    struct host *want_dx = host_like(x), *want_dw = host_like(dw), *want_db = host_like(db);
    const int64_t rows = x->count / weight->count;

    ref_layer_norm_bwd(x, weight, dy, 1e-5f, want_dx, want_dw, want_db);
    ck_ok(run_op("layer_norm_bwd", &params, HOSTS(x, weight, dy), HOSTS(dx, dw, db)));
    ck_near(dx, want_dx, 4e-6, 4 * rounding(weight->count));
    ck_near(dw, want_dw, 4e-6, rounding(rows) * sqrt((double)rows));
    ck_near(db, want_db, 4e-6, rounding(rows) * sqrt((double)rows));
}

TABLE_TEST(matches_the_reference, shapes)
{
    const struct shape s = shapes[_i];
    check(host_random(1u + (unsigned)_i, DIMS(s.rows, s.cols)), host_random(2, DIMS(s.cols)));
}

TEST(over_two_axes)
{
    check(host_random(4, DIMS(2, 5, 3, 7)), host_random(5, DIMS(3, 7)));
}

TEST(one_column_has_no_gradient)
{
    struct host *x = host_random(6, DIMS(4, 1)), *w = host_random(7, DIMS(1));
    check(x, w);
}

static void forward(const void *p, struct host *const *in, struct host *const *out)
{
    (void)p;
    ref_layer_norm_fwd(in[0], in[1], in[2], 1e-5f, out[0]);
}

TEST(meets_finite_differences)
{
    struct host *x = host_random(10, DIMS(5, 19)), *w = host_random(11, DIMS(19));

    ck_gradients("layer_norm_fwd", &params, HOSTS(x, w, host_random(12, DIMS(19))), 7, forward,
                 1e-5);
}

TEST(refusals)
{
    struct host *x = host_new(ATTNCL_F32, DIMS(2, 3)), *w = host_new(ATTNCL_F32, DIMS(2));

    ck_refused("layer_norm_bwd", &params, HOSTS(x, w, x), ATTNCL_ERR_SHAPE, "last axes");
}
