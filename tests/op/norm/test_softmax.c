// SPDX-License-Identifier: MIT
// softmax against its reference (tests/ref/softmax.c).

#include <math.h>

#include "device/context.h"
#include "ref/ref.h"
#include "support/op_test.h"

// Chosen to hit: one column, less than a vector, exactly one, a ragged tail, several rows to a
// work-item or to a work-group, of which the last has fewer; both sides of the widths at which a
// GPU's rows take more work-items, and cease to be held.
static const struct shape {
    int rows, cols;
} shapes[] = {{1, 1},  {3, 7},  {5, 16},   {37, 19},  {70, 64},  {4, 256},  {5, 257},  {3, 31},
              {9, 32}, {9, 33}, {5, 1024}, {3, 1025}, {1, 4099}, {1, 8192}, {2, 8196}, {1, 8197}};

// Relative error of exp(x - m): the subtraction's rounding (span units in the last place), exp and
// the division, and the sum of the row.
static double rtol(double span, int64_t cols)
{
    return (span + 10 + log2((double)cols)) * 6e-8 + 6e-8 * (double)cols / 256;
}
static const double tiny = 2e-38; // what a device may flush to zero

static void check(struct host *x, double span)
{
    struct host *want = host_like(x);

    ref_softmax_fwd(x, want);
    ck_op("softmax_fwd", NULL, HOSTS(x), HOSTS(want), rtol(span, x->dim[x->rank - 1]), tiny);
}

TABLE_TEST(matches_the_reference, shapes)
{
    check(host_random(7u + (unsigned)_i, DIMS(shapes[_i].rows, shapes[_i].cols)), 9);
}

// As on a device that ends the loops of a work-item after so many iterations.
TEST(rows_too_long_for_one_work_item)
{
    struct device_caps *caps = &test_context()->caps;
    const struct device_caps saved = *caps;
    struct host *x = host_random(2, DIMS(3, 30011));

    if (on_simulator() || saved.max_group < 64 || saved.max_loop_iterations)
        return;
    caps->max_loop_iterations = 3000;
    check(x, 9);
    caps->max_loop_iterations = 20;
    ck_fails(run_op("softmax_fwd", NULL, HOSTS(x), HOSTS(host_like(x))), ATTNCL_ERR_UNSUPPORTED,
             "loop iterations, the device stops at 20");
    *caps = saved;
}

TEST(takes_views)
{
    check(host_view(host_random(3, DIMS(3, 5, 21))), 9);
    check(host_view(host_random(4, DIMS(33))), 9);
}

TEST(wide_spans)
{
    check(host_uniform(5, -45, 45, DIMS(4, 131)), 90);
    check(host_uniform(6, 9912, 10000, DIMS(4, 131)), 88);
    check(host_uniform(6, -10000, -9910, DIMS(4, 131)), 90);
}

TEST(extreme_rows)
{
    struct host *x = host_new(ATTNCL_F32, DIMS(5, 20));

    for (int c = 0; c < 20; ++c) {
        x->data[c] = c == 3 ? 1e4 : -1e4;        // one huge element
        x->data[20 + c] = c % 2 ? -INFINITY : c; // some never count
        x->data[40 + c] = -INFINITY;             // none counts: zeros
        x->data[60 + c] = 1e4;                   // all alike
        x->data[80 + c] = c == 19 ? 3e38 : -3e38;
    }
    check(x, 20);
}

// Where a GPU reads a row piece by piece, each piece may change the maximum, or hold nothing.
TEST(extreme_long_rows)
{
    enum { WIDTH = 8196 };
    struct host *x = host_random(9, DIMS(5, WIDTH));

    for (int c = 0; c < WIDTH; ++c) {
        x->data[c] = (float)(x->data[c] + c / 8);                    // rises
        x->data[WIDTH + c] = (float)(x->data[WIDTH + c] - c / 8);    // falls
        x->data[2 * WIDTH + c] = c < 8190 ? -INFINITY : c;           // the end alone counts
        x->data[3 * WIDTH + c] = -INFINITY;                          // none counts
        x->data[4 * WIDTH + c] = c == 1 || c == 8194 ? 3e38 : -3e38; // far apart
    }
    check(x, 90);
}

static void check_nan(int width)
{
    struct host *x = host_random(8, DIMS(3, width)), *got = host_like(x);

    x->data[width + width - 1] = NAN;
    ck_ok(run_op("softmax_fwd", NULL, HOSTS(x), HOSTS(got)));
    for (int c = 0; c < width; ++c) {
        ck_assert(isfinite(got->data[c]));
        ck_assert(isnan(got->data[width + c]));
        ck_assert(isfinite(got->data[2 * width + c]));
    }
}

TEST(not_a_number_stays_in_its_row)
{
    check_nan(18);
    check_nan(8196);
}

TEST(empty_is_fine)
{
    check(host_new(ATTNCL_F32, DIMS(0, 5)), 1);
    check(host_new(ATTNCL_F32, DIMS(3, 0)), 1);
}

TEST(refusals)
{
    struct host *none = host_new(ATTNCL_F32, 0, NULL), *ints = host_ints(1, 0, 9, DIMS(2, 3));

    ck_refused("softmax_fwd", NULL, HOSTS(none), ATTNCL_ERR_SHAPE, "axis");
    ck_refused("softmax_fwd", NULL, HOSTS(ints), ATTNCL_ERR_DTYPE, "I32");
}
