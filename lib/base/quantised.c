// SPDX-License-Identifier: MIT
//
// 8-bit and 4-bit weights: quantisation by blocks, and dequantisation.

#include "base/quantised.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/ckd.h"
#include "base/dtype.h"
#include "base/try.h"

enum { SCALE_BYTES = 2 * QUANTISED_ROWS * 2 }; // of a pair of blocks

static int bits_per_weight(attncl_dtype dtype)
{
    return dtype == ATTNCL_Q8 ? 8 : 4;
}

// Stored integers are this much larger than what they stand for.
static int zero_point(attncl_dtype dtype)
{
    return 1 << (bits_per_weight(dtype) - 1);
}

size_t attncl__quantised_pair_bytes(attncl_dtype dtype)
{
    return SCALE_BYTES +
           (size_t)(2 * QUANTISED_ROWS * QUANTISED_BLOCK * bits_per_weight(dtype) / 8);
}

static int64_t pair_count(int64_t k)
{
    return (k / QUANTISED_BLOCK + 1) / 2;
}

static int64_t panel_count(int64_t n)
{
    return (n + QUANTISED_ROWS - 1) / QUANTISED_ROWS;
}

size_t attncl_quantised_bytes(attncl_dtype dtype, int64_t n, int64_t k)
{
    const int64_t most = INT64_C(1) << 47;
    size_t pairs, bytes;

    if (!attncl__is_quantised(dtype) || n < 0 || k < 0 || n > most || k > most ||
        k % QUANTISED_BLOCK != 0 ||
        !ckd_mul_size((size_t)panel_count(n), (size_t)pair_count(k), &pairs) ||
        !ckd_mul_size(pairs, attncl__quantised_pair_bytes(dtype), &bytes))
        return 0;
    return bytes;
}

// Byte offsets of one row's block.
struct place {
    size_t scale, first; // the scale; the block's first byte of weights
};

static struct place find_place(attncl_dtype dtype, int64_t k, int64_t row, int64_t block)
{
    const size_t pair_bytes = attncl__quantised_pair_bytes(dtype), half = (size_t)(block % 2);
    const size_t pair = (size_t)(row / QUANTISED_ROWS * pair_count(k) + block / 2) * pair_bytes;
    const size_t r = (size_t)(row % QUANTISED_ROWS);

    return (struct place){pair + (half * QUANTISED_ROWS + r) * 2,
                          pair + SCALE_BYTES + half * (pair_bytes - SCALE_BYTES) / 2 + 4 * r};
}

// The offset of the byte that holds column c of the block; with 4 bits it holds two columns.
static size_t weight_offset(attncl_dtype dtype, struct place at, int c)
{
    return at.first + (size_t)(64 * (c / (32 / bits_per_weight(dtype))) + c % 4);
}

static float read_scale(const unsigned char *data, size_t at)
{
    uint16_t half;
    memcpy(&half, data + at, sizeof half);
    return attncl__half_to_float(half);
}

static void unpack_block(attncl_dtype dtype, const unsigned char *data, struct place at, float *to)
{
    const float d = read_scale(data, at.scale);

    for (int c = 0; c < QUANTISED_BLOCK; ++c) {
        const int byte = data[weight_offset(dtype, at, c)];
        const int stored = dtype == ATTNCL_Q8 ? byte : c % 8 < 4 ? byte & 15 : byte >> 4;
        to[c] = d * (float)(stored - zero_point(dtype));
    }
}

static attncl_status check_type(attncl_dtype dtype, int64_t n, int64_t k)
{
    REQUIRE(attncl__is_quantised(dtype), ATTNCL_ERR_DTYPE, "%s is not Q8 or Q4",
            attncl_dtype_name(dtype));
    REQUIRE(n >= 0 && k >= 0 && k % QUANTISED_BLOCK == 0, ATTNCL_ERR_SHAPE,
            "[%" PRId64 ", %" PRId64 "] in %s: k must be a multiple of %d", n, k,
            attncl_dtype_name(dtype), QUANTISED_BLOCK);
    REQUIRE(n == 0 || k == 0 || attncl_quantised_bytes(dtype, n, k) > 0, ATTNCL_ERR_SHAPE,
            "[%" PRId64 ", %" PRId64 "] is too large", n, k);
    return ATTNCL_OK;
}

attncl_status attncl__quantised_check(attncl_dtype dtype, int64_t n, int64_t k, const void *data)
{
    TRY(check_type(dtype, n, k));
    for (int64_t row = 0; row < n; ++row)
        for (int64_t b = 0; b < k / QUANTISED_BLOCK; ++b) {
            const float d = read_scale(data, find_place(dtype, k, row, b).scale);
            REQUIRE(isfinite(d), ATTNCL_ERR_FORMAT,
                    "the scale of block %" PRId64 " of row %" PRId64 " is %g, not finite", b, row,
                    (double)d);
        }
    return ATTNCL_OK;
}

attncl_status attncl_dequantise(attncl_dtype dtype, int64_t n, int64_t k, const void *from,
                                float *to)
{
    REQUIRE((from && to) || n == 0 || k == 0, ATTNCL_ERR_ARGUMENT, "from or to is NULL");
    TRY(attncl__quantised_check(dtype, n, k, from));
    for (int64_t row = 0; row < n; ++row)
        for (int64_t b = 0; b < k / QUANTISED_BLOCK; ++b)
            unpack_block(dtype, from, find_place(dtype, k, row, b),
                         to + row * k + b * QUANTISED_BLOCK);
    return ATTNCL_OK;
}

// The integers nearest to w / d in the type's range, which for Q8 is symmetric.
static void round_block(attncl_dtype dtype, const float *w, float d, float q[QUANTISED_BLOCK])
{
    const float least = dtype == ATTNCL_Q8 ? -127.0f : -8.0f,
                most = dtype == ATTNCL_Q8 ? 127.0f : 7.0f;
    const float divisor = d != 0.0f ? d : INFINITY;
    const float integers = 0x1.8p23f; // has no fraction, nor have its neighbours

    for (int c = 0; c < QUANTISED_BLOCK; ++c) {
        const float x = w[c] / divisor, above = x < least ? least : x;
        q[c] = (above > most ? most : above) + integers - integers;
    }
}

static float squared_error(attncl_dtype dtype, const float *w, float d)
{
    float q[QUANTISED_BLOCK], sum[4] = {0};

    round_block(dtype, w, d, q);
    for (int c = 0; c < QUANTISED_BLOCK; c += 4)
        for (int i = 0; i < 4; ++i) {
            const float e = w[c + i] - d * q[c + i];
            sum[i] += e * e;
        }
    return sum[0] + sum[1] + sum[2] + sum[3];
}

// Rounds a scale to F16; infinite when it is out of range.
static float round_scale(double d, uint16_t *half_ret)
{
    if (attncl__convert(ATTNCL_F64, &d, ATTNCL_F16, half_ret, 1) != ATTNCL_OK)
        return INFINITY;
    return attncl__half_to_float(*half_ret);
}

// The scale maps the element of the largest magnitude to an end of the integer range.  Q4 also tries ends that clip
// some elements but quantise the others more finely, and takes the first with the smallest error.
static bool choose_scale(attncl_dtype dtype, const float *w, uint16_t *half_ret)
{
    static const double ends_8[] = {127}, ends_4[] = {-8, -7.5, -7, -7.25, -8.5, -9};
    const double *ends = dtype == ATTNCL_Q8 ? ends_8 : ends_4;
    const int n_ends = dtype == ATTNCL_Q8 ? 1 : (int)(sizeof ends_4 / sizeof ends_4[0]);
    double largest = 0, least = INFINITY;

    for (int c = 0; c < QUANTISED_BLOCK; ++c)
        if (fabs((double)w[c]) > fabs(largest))
            largest = (double)w[c];
    for (int i = 0; i < n_ends; ++i) {
        uint16_t half;
        const float d = round_scale(largest / ends[i], &half);
        const double error = !isfinite(d) ? INFINITY : n_ends == 1 ? 0 : squared_error(dtype, w, d);
        if (error < least) {
            least = error;
            *half_ret = half;
        }
    }
    // A scale and its negative represent the same weights unless one is stored as 0; then prefer the positive one.
    float q[QUANTISED_BLOCK], lowest = 0;
    round_block(dtype, w, attncl__half_to_float(*half_ret), q);
    for (int c = 0; c < QUANTISED_BLOCK; ++c)
        lowest = q[c] < lowest ? q[c] : lowest;
    if (lowest > (float)-zero_point(dtype))
        *half_ret &= 0x7fff;
    return isfinite(least);
}

static void pack_block(attncl_dtype dtype, const float *w, uint16_t half, struct place at,
                       unsigned char *data)
{
    float q[QUANTISED_BLOCK];

    memcpy(data + at.scale, &half, sizeof half);
    round_block(dtype, w, attncl__half_to_float(half), q);
    for (int c = 0; c < QUANTISED_BLOCK; ++c) {
        const int stored = (int)q[c] + zero_point(dtype);
        data[weight_offset(dtype, at, c)] |=
            (unsigned char)(dtype == ATTNCL_Q4 && c % 8 >= 4 ? stored << 4 : stored);
    }
}

attncl_status attncl_quantise(attncl_dtype dtype, int64_t n, int64_t k, const float *from, void *to)
{
    REQUIRE((from && to) || n == 0 || k == 0, ATTNCL_ERR_ARGUMENT, "from or to is NULL");
    TRY(check_type(dtype, n, k));
    if (n == 0 || k == 0)
        return ATTNCL_OK;
    memset(to, 0, attncl_quantised_bytes(dtype, n, k));
    for (int64_t row = 0; row < n; ++row)
        for (int64_t b = 0; b < k / QUANTISED_BLOCK; ++b) {
            const float *w = from + row * k + b * QUANTISED_BLOCK;
            uint16_t half = 0;
            for (int c = 0; c < QUANTISED_BLOCK; ++c)
                REQUIRE(isfinite(w[c]), ATTNCL_ERR_ARGUMENT,
                        "element [%" PRId64 ", %" PRId64 "] is %g, not finite", row,
                        b * QUANTISED_BLOCK + c, (double)w[c]);
            REQUIRE(choose_scale(dtype, w, &half), ATTNCL_ERR_ARGUMENT,
                    "block %" PRId64 " of row %" PRId64 " is too large for a scale in F16", b, row);
            pack_block(dtype, w, half, find_place(dtype, k, row, b), to);
        }
    return ATTNCL_OK;
}
