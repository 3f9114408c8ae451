// SPDX-License-Identifier: MIT
// Weights in 8 and 4 bits: what rounding loses, what it keeps, what it refuses.  tests/tools/convert.py reads the layout.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantised.h"
#include "support/compare.h"
#include "support/host.h"
#include "support/test.h"

NO_DEVICE;

enum { N = 17, K = 96, BYTES = 2 * 2 * 1088 };

static void *zeroed(size_t bytes)
{
    void *p = calloc(1, bytes);
    ck_assert(p != NULL);
    return p;
}

static const struct {
    attncl_dtype dtype;
    size_t bytes;
    double steps; // an element is off by, of its block's largest, at most
} types[] = {{ATTNCL_Q8, 2 * 2 * 1088, 0.5 / 127 * 1.01}, {ATTNCL_Q4, 2 * 2 * 576, 1.0 / 7}};

TABLE_TEST(rounding_is_to_the_nearest_level, types)
{
    struct host *h = host_random(3, DIMS(N, K));
    float *w = zeroed(N * K * sizeof *w), *back = zeroed(N * K * sizeof *back);
    unsigned char *bytes = zeroed(BYTES), *again = zeroed(BYTES);

    ck_assert_uint_eq(attncl_quantised_bytes(types[_i].dtype, N, K), types[_i].bytes);
    for (int i = 0; i < N * K; ++i)
        w[i] = i / K == 3 ? 0 : (float)h->data[i];
    ck_ok(attncl_quantise(types[_i].dtype, N, K, w, bytes));
    ck_ok(attncl_dequantise(types[_i].dtype, N, K, bytes, back));
    ck_ok(attncl_quantise(types[_i].dtype, N, K, back, again));
    ck_assert_int_eq(memcmp(bytes, again, types[_i].bytes), 0);
    for (int b = 0; b < N * K / 32; ++b) {
        double largest = 0;
        for (int i = 32 * b; i < 32 * b + 32; ++i)
            largest = fmax(largest, fabs((double)w[i]));
        ck_floats(back + 32 * b, w + 32 * b, 32, 0, types[_i].steps * largest, "block %d", b);
    }
    free(w);
    free(back);
    free(bytes);
    free(again);
}

// Four bits: the scale of the smallest error, not that of the largest element.
TEST(outliers_do_not_make_all_coarse)
{
    float w[32], back[32];
    unsigned char bytes[576];
    double plain = 0, chosen = 0;

    for (int c = 0; c < 32; ++c)
        w[c] = c == 0 ? -8.0f : c % 2 ? 3.3f : -5.4f; // ends -8 and -9: levels of 1 and 0.89
    ck_ok(attncl_quantise(ATTNCL_Q4, 1, 32, w, bytes));
    ck_ok(attncl_dequantise(ATTNCL_Q4, 1, 32, bytes, back));
    for (int c = 0; c < 32; ++c) {
        plain += pow((double)w[c] - (double)rintf(w[c]), 2);
        chosen += pow((double)w[c] - (double)back[c], 2);
    }
    ck_assert_msg(chosen < 0.9 * plain, "%g instead of %g", chosen, plain);
}

TEST(what_is_no_weight_is_refused)
{
    float w[64] = {1};
    unsigned char bytes[1088] = {0};

    ck_fails(attncl_quantise(ATTNCL_Q8, 1, 33, w, bytes), ATTNCL_ERR_SHAPE, "multiple of 32");
    ck_fails(attncl_quantise(ATTNCL_F16, 1, 32, w, bytes), ATTNCL_ERR_DTYPE, "F16 is not Q8");
    ck_fails(attncl_dequantise(ATTNCL_Q4, 1, 48, bytes, w), ATTNCL_ERR_SHAPE, "[1, 48] in Q4");
    w[33] = NAN;
    ck_fails(attncl_quantise(ATTNCL_Q8, 1, 64, w, bytes), ATTNCL_ERR_ARGUMENT, "[0, 33]");
    w[33] = 1e8f;
    ck_fails(attncl_quantise(ATTNCL_Q8, 1, 64, w, bytes), ATTNCL_ERR_ARGUMENT, "block 1 of row 0");
    bytes[32 + 1] = 0x7c; // the second block's scale
    ck_fails(attncl_dequantise(ATTNCL_Q8, 1, 64, bytes, w), ATTNCL_ERR_FORMAT, "block 1 of row 0");
    ck_assert_uint_eq(attncl_quantised_bytes(ATTNCL_Q8, 1, 33), 0);
    ck_assert_uint_eq(attncl_quantised_bytes(ATTNCL_F32, 1, 32), 0);
    ck_assert_uint_eq(attncl_quantised_bytes(ATTNCL_Q8, INT64_C(1) << 46, 1 << 20), 0);
}
