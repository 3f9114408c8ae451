// SPDX-License-Identifier: MIT
// Checked arithmetic at and around its limits.

#include "base/ckd.h"
#include "support/test.h"

NO_DEVICE;

TEST(products_of_sizes)
{
    size_t r = 7;
    ck_assert(ckd_mul_size(0, SIZE_MAX, &r) && r == 0);
    ck_assert(ckd_mul_size(SIZE_MAX, 1, &r) && r == SIZE_MAX);
    ck_assert(ckd_mul_size(SIZE_MAX / 3, 3, &r) && r == SIZE_MAX / 3 * 3);
    r = 7;
    ck_assert(!ckd_mul_size(SIZE_MAX / 2 + 1, 2, &r));
    ck_assert(!ckd_mul_size((size_t)1 << 32, (size_t)1 << 32, &r));
    ck_assert_uint_eq(r, 7); // left alone
}

TEST(sums_of_sizes)
{
    size_t r = 7;
    ck_assert(ckd_add_size(SIZE_MAX - 1, 1, &r) && r == SIZE_MAX);
    r = 7;
    ck_assert(!ckd_add_size(SIZE_MAX, 1, &r));
    ck_assert_uint_eq(r, 7);
}

TEST(signed_products_and_sums)
{
    int64_t r = 7;
    ck_assert(ckd_mul_i64(INT64_MIN, 1, &r) && r == INT64_MIN);
    ck_assert(ckd_mul_i64(-3, 5, &r) && r == -15);
    ck_assert(ckd_add_i64(INT64_MAX, INT64_MIN, &r) && r == -1);
    r = 7;
    ck_assert(!ckd_mul_i64(INT64_MIN, -1, &r));
    ck_assert(!ckd_mul_i64(INT64_C(1) << 32, INT64_C(1) << 31, &r));
    ck_assert(!ckd_add_i64(INT64_MAX, 1, &r));
    ck_assert(!ckd_add_i64(INT64_MIN, -1, &r));
    ck_assert_int_eq(r, 7);
}

TEST(rounding_up)
{
    size_t r = 7;
    ck_assert(ckd_round_up(0, 128, &r) && r == 0);
    ck_assert(ckd_round_up(1, 128, &r) && r == 128);
    ck_assert(ckd_round_up(128, 128, &r) && r == 128);
    ck_assert(ckd_round_up(129, 128, &r) && r == 256);
    ck_assert(ckd_round_up(5, 1, &r) && r == 5);
    ck_assert(ckd_round_up(SIZE_MAX - 127, 128, &r) && r == SIZE_MAX - 127);
    r = 7;
    ck_assert(!ckd_round_up(SIZE_MAX - 126, 128, &r));
    ck_assert_uint_eq(r, 7);
}
