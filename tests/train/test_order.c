// SPDX-License-Identifier: MIT
// Orders: permutations are permutations, another one in each epoch and for each seed; random items are
// spread evenly.

#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "train/dataset.h"

NO_DEVICE;

TEST(sequential_order_repeats)
{
    for (int64_t p = 0; p < 10; ++p)
        ck_assert_int_eq(attncl__order_item(ORDER_SEQUENTIAL, 7, 4, p), p % 4);
}

LOOP_TEST(an_epoch_has_each_item_once, 1, 300)
{
    const int64_t n = _i;
    char seen[300];

    for (int64_t epoch = 0; epoch < 3; ++epoch) {
        memset(seen, 0, sizeof seen);
        for (int64_t i = 0; i < n; ++i) {
            const int64_t item = attncl__order_item(ORDER_SHUFFLED, 5, n, epoch * n + i);
            ck_assert(item >= 0 && item < n);
            ck_assert_int_eq(seen[item]++, 0);
        }
    }
}

// Of two random permutations of n items, one place agrees on average.
static int n_equal(int64_t n, uint64_t seed_a, int64_t epoch_a, uint64_t seed_b, int64_t epoch_b)
{
    int n_equal = 0;

    for (int64_t i = 0; i < n; ++i)
        n_equal += attncl__order_item(ORDER_SHUFFLED, seed_a, n, epoch_a * n + i) ==
                   attncl__order_item(ORDER_SHUFFLED, seed_b, n, epoch_b * n + i);
    return n_equal;
}

TEST(epochs_and_seeds_differ)
{
    enum { N = 3000, FEW = 12 };
    int still = 0;

    ck_assert_int_lt(n_equal(N, 1, 0, 1, 1), FEW);
    ck_assert_int_lt(n_equal(N, 1, 0, 2, 0), FEW);
    ck_assert_int_lt(n_equal(N, 1, 0, UINT64_C(1) << 32 | 1, 0), FEW);
    ck_assert_int_eq(n_equal(N, 1, 5, 1, 5), N);
    for (int64_t i = 0; i < N; ++i)
        still += attncl__order_item(ORDER_SHUFFLED, 1, N, i) == i;
    ck_assert_int_lt(still, FEW);
}

// A permutation of three items takes each of its six forms in about a sixth of the epochs: 600 +- 5
// standard deviations of 22.4.
TEST(small_permutations_are_even)
{
    int n_seen[3][3] = {{0}};

    for (int64_t epoch = 0; epoch < 3600; ++epoch)
        ++n_seen[attncl__order_item(ORDER_SHUFFLED, 3, 3, 3 * epoch)]
                [attncl__order_item(ORDER_SHUFFLED, 3, 3, 3 * epoch + 1)];
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b)
            ck_assert_msg(a == b ? n_seen[a][b] == 0 : abs(n_seen[a][b] - 600) < 112, "%d %d: %d",
                          a, b, n_seen[a][b]);
}

TEST(random_items_and_offsets_are_spread)
{
    enum { N = 10, EACH = 1000 };
    int items[N] = {0}, offsets[N] = {0}, equal = 0, others = 0;

    for (int64_t p = 0; p < N * EACH; ++p) {
        const int64_t item = attncl__order_item(ORDER_RANDOM, 9, N, p);
        const int64_t offset = attncl__order_offset(9, N, p);
        ++items[item];
        ++offsets[offset];
        equal += item == offset;
        others += item == attncl__order_item(ORDER_RANDOM, 10, N, p);
        others += offset == attncl__order_offset(10, N, p);
    }
    for (int i = 0; i < N; ++i) { // five standard deviations of 30
        ck_assert_int_lt(abs(items[i] - EACH), 150);
        ck_assert_int_lt(abs(offsets[i] - EACH), 150);
    }
    ck_assert_int_lt(abs(equal - EACH), 150);
    ck_assert_int_lt(abs(others - 2 * EACH), 215); // of another seed
}
