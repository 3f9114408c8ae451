// SPDX-License-Identifier: MIT
// Values one after another against the reference (tests/ref/concat.c).

#include "ref/ref.h"
#include "support/op_test.h"

// Value i has lengths[i] along the middle axis.
static void check(int64_t outer, int64_t inner, int n, const int *lengths, bool ints)
{
    struct host *x[8];
    int64_t length = 0;

    for (int i = 0; i < n; ++i) {
        const int64_t dim[3] = {outer, lengths[i], inner};
        x[i] = ints ? host_ints((unsigned)i, -9, 2000000000, 3, dim)
                    : host_random((unsigned)i, 3, dim);
        length += lengths[i];
    }
    struct host *want = host_new(x[0]->dtype, DIMS(outer, length, inner));
    ref_concat_fwd(x, n, want);
    ck_op("concat_fwd", NULL, x, n, HOSTS(want), 0, 0);
}

TEST(matches_the_reference)
{
    static const int lengths[] = {1, 3, 0, 700, 1, 2, 1, 5};
    for (int n = 1; n <= 8; ++n)
        check(3, 2, n, lengths, false);
    check(1, 1, 8, lengths, true);
    check(5, 33, 3, lengths, true);
    check(2, 3000, 2, lengths, false);
}

TEST(empty_is_fine)
{
    static const int lengths[] = {0, 0};
    check(0, 3, 2, (const int[]){2, 4}, false);
    check(2, 3, 2, lengths, false);
}

TEST(refusals)
{
    struct host *x = host_new(ATTNCL_F32, DIMS(2, 3, 4)),
                *wide = host_new(ATTNCL_F32, DIMS(2, 3, 5));
    struct host *ints = host_new(ATTNCL_I32, DIMS(2, 3, 4)),
                *bytes = host_mask(1, 1, DIMS(2, 3, 4));

    ck_refused("concat_fwd", NULL, HOSTS(x, wide), ATTNCL_ERR_SHAPE,
               "value 1 is [2, 3, 5], value 0 is [2, 3, 4]");
    ck_refused("concat_fwd", NULL, HOSTS(x, ints), ATTNCL_ERR_DTYPE, "I32");
    ck_refused("concat_fwd", NULL, HOSTS(bytes), ATTNCL_ERR_DTYPE, "U8");
}
