// SPDX-License-Identifier: MIT
//
// Orders.  A permutation of n items is a Feistel network, with Philox as round function, over the next
// even power of two; results of n or more are permuted again until one is below n (cycle walking, less
// than four times on average).  It needs no table, so every position takes constant time.

#include "base/philox.h"
#include "train/dataset.h"

enum { N_ROUNDS = 6 };
enum purpose { PERMUTATION = 1, RANDOM_ITEM, OFFSET };

// Separates these numbers from those of weights and dropout, which may have the same seed.
static const uint32_t key_of_data = 0x64617461;

static uint64_t draw_word(uint64_t seed, enum purpose purpose, uint64_t a, uint64_t b)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32) ^ key_of_data};
    const uint32_t counter[4] = {(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b,
                                 (uint32_t)(b >> 32) ^ (uint32_t)purpose << 28};
    uint32_t ret[4];

    attncl__philox4x32(counter, key, ret);
    return (uint64_t)ret[1] << 32 | ret[0];
}

// Scales x to [0, bound): the upper half of the product, uniform up to bound / 2^64.
static int64_t scale_below(int64_t bound, uint64_t x)
{
    __extension__ typedef unsigned __int128 wide;

    return (int64_t)((wide)x * (wide)bound >> 64);
}

static uint64_t permute_block(uint64_t seed, uint64_t epoch, int half_bits, uint64_t x)
{
    const uint64_t mask = (UINT64_C(1) << half_bits) - 1;
    uint64_t left = x >> half_bits, right = x & mask;

    for (uint64_t round = 0; round < N_ROUNDS; ++round) {
        const uint64_t mixed =
            left ^ (draw_word(seed, PERMUTATION, right | round << 32, epoch) & mask);
        left = right;
        right = mixed;
    }
    return left << half_bits | right;
}

static int64_t permute(uint64_t seed, uint64_t epoch, int64_t n, int64_t i)
{
    int half_bits = 1;
    uint64_t x = (uint64_t)i;

    while (half_bits < 31 && (INT64_C(1) << 2 * half_bits) < n)
        ++half_bits;
    do
        x = permute_block(seed, epoch, half_bits, x);
    while (x >= (uint64_t)n);
    return (int64_t)x;
}

int64_t attncl__order_item(enum dataset_order order, uint64_t seed, int64_t n, int64_t position)
{
    switch (order) {
    case ORDER_SHUFFLED:
        return permute(seed, (uint64_t)(position / n), n, position % n);
    case ORDER_RANDOM:
        return scale_below(n, draw_word(seed, RANDOM_ITEM, (uint64_t)position, 0));
    case ORDER_SEQUENTIAL:
        break;
    }
    return position % n;
}

int64_t attncl__order_offset(uint64_t seed, int64_t bound, int64_t position)
{
    return scale_below(bound, draw_word(seed, OFFSET, (uint64_t)position, 0));
}
