// SPDX-License-Identifier: MIT
// softmax against its definition (tests/ref/softmax.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

// Chosen to hit: one column, less than a vector, exactly one, a ragged tail, several rows to a
// work-item, a long row.
static const struct shape {
    int rows, cols;
} shapes[] = {{1, 1}, {3, 7}, {5, 16}, {37, 19}, {4, 256}, {5, 257}, {70, 64}, {2, 4099}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

// Relative error of exp(x - m): the subtraction's rounding (span units in the last place), exp and
// the division, and the sum of the row.
static double rtol(double span, int64_t cols)
{
    return (span + 10 + log2((double)cols)) * 6e-8 + 6e-8 * (double)cols / 256;
}
static const double tiny = 2e-38; // what a device may flush to zero

static void check(struct host *x, double span)
{
    struct host *got = host_like(x), *want = host_like(x);

    ref_softmax_fwd(x, want);
    ck_ok(run_op("softmax_fwd", NULL, HOSTS(x), HOSTS(got)));
    ck_near(got, want, rtol(span, x->dim[x->rank - 1]), tiny);
}

START_TEST(meets_the_definition)
{
    check(host_random(7u + (unsigned)_i, DIMS(shapes[_i].rows, shapes[_i].cols)), 9);
}
END_TEST

START_TEST(takes_views)
{
    check(host_view(host_random(3, DIMS(3, 5, 21))), 9);
    check(host_view(host_random(4, DIMS(33))), 9);
}
END_TEST

START_TEST(wide_spans)
{
    check(host_uniform(5, -45, 45, DIMS(4, 131)), 90);
    check(host_uniform(6, 9912, 10000, DIMS(4, 131)), 88);
    check(host_uniform(6, -10000, -9910, DIMS(4, 131)), 90);
}
END_TEST

START_TEST(extreme_rows)
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
END_TEST

START_TEST(not_a_number_stays_in_its_row)
{
    struct host *x = host_random(8, DIMS(3, 18)), *got = host_like(x);

    x->data[18 + 17] = NAN;
    ck_ok(run_op("softmax_fwd", NULL, HOSTS(x), HOSTS(got)));
    for (int c = 0; c < 18; ++c) {
        ck_assert(isfinite(got->data[c]));
        ck_assert(isnan(got->data[18 + c]));
        ck_assert(isfinite(got->data[36 + c]));
    }
}
END_TEST

START_TEST(empty_is_fine)
{
    check(host_new(ATTNCL_F32, DIMS(0, 5)), 1);
    check(host_new(ATTNCL_F32, DIMS(3, 0)), 1);
}
END_TEST

START_TEST(refusals)
{
    struct host *none = host_new(ATTNCL_F32, 0, NULL), *ints = host_ints(1, 0, 9, DIMS(2, 3));

    ck_fails(run_op("softmax_fwd", NULL, HOSTS(none), HOSTS(none)), ATTNCL_ERR_SHAPE, "axis");
    ck_fails(run_op("softmax_fwd", NULL, HOSTS(ints), HOSTS(ints)), ATTNCL_ERR_DTYPE, "I32");
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("op.softmax");
    TCase *core = tcase_create("core");

    tcase_add_unchecked_fixture(core, device_up, device_down);
    tcase_add_loop_test(core, meets_the_definition, 0, N_SHAPES);
    tcase_add_test(core, takes_views);
    tcase_add_test(core, wide_spans);
    tcase_add_test(core, extreme_rows);
    tcase_add_test(core, not_a_number_stays_in_its_row);
    tcase_add_test(core, empty_is_fine);
    tcase_add_test(core, refusals);
    suite_add_tcase(s, core);
    return s;
}
