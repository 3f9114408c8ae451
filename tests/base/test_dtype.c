// SPDX-License-Identifier: MIT
// Element types and their conversion on the host.

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "support/test.h"

NO_DEVICE;

TEST(names_and_sizes_agree)
{
#define ROW(name, value, bits)                                                                     \
    ck_assert_int_eq((int)ATTNCL_##name, value);                                                   \
    ck_assert_str_eq(attncl_dtype_name(ATTNCL_##name), #name);                                     \
    ck_assert_int_eq(attncl__dtype_from_name(#name), ATTNCL_##name);                               \
    ck_assert_uint_eq(attncl__dtype_bits(ATTNCL_##name), bits);                                    \
    ck_assert_uint_eq(attncl_dtype_bytes(ATTNCL_##name), (bits) % 8 ? 0 : (bits) / 8);
    ATTNCL_DTYPE_LIST(ROW)
#undef ROW
    ck_assert_str_eq(attncl_dtype_name(ATTNCL_DTYPE_NONE), "none");
    ck_assert_str_eq(attncl_dtype_name((attncl_dtype)99), "none");
    ck_assert_uint_eq(attncl_dtype_bytes((attncl_dtype)99), 0);
    ck_assert_int_eq(attncl__dtype_from_name("none"), ATTNCL_DTYPE_NONE);
    ck_assert_int_eq(attncl__dtype_from_name(""), ATTNCL_DTYPE_NONE);
}

TEST(kinds_of_types)
{
    int n_float = 0, n_integer = 0;
#define COUNT(name, value, bits)                                                                   \
    n_float += attncl__is_float(ATTNCL_##name);                                                    \
    n_integer += attncl__is_integer(ATTNCL_##name);                                                \
    ck_assert(!attncl__is_float(ATTNCL_##name) || !attncl__is_integer(ATTNCL_##name));
    ATTNCL_DTYPE_LIST(COUNT)
#undef COUNT
    ck_assert_int_eq(n_float, 4);
    ck_assert_int_eq(n_integer, 9);
    ck_assert(!attncl__is_float(ATTNCL_DTYPE_NONE) && !attncl__is_integer(ATTNCL_DTYPE_NONE));
    ck_assert(!attncl__is_integer(ATTNCL_C64) && !attncl__is_float(ATTNCL_F8_E4M3));
}

// The definitions of IEEE 754 binary16 and of bfloat16 in arithmetic, not in bits.
static double small_float(unsigned pattern, int exponent_bits, int fraction_bits)
{
    const int top = (1 << exponent_bits) - 1, bias = top >> 1;
    const int exponent = (int)(pattern >> fraction_bits) & top;
    const double fraction = ldexp((double)(pattern & ((1u << fraction_bits) - 1)), -fraction_bits);
    const double sign = pattern >> (exponent_bits + fraction_bits) ? -1.0 : 1.0;

    if (exponent == top)
        return fraction == 0 ? sign * INFINITY : NAN;
    return sign *
           (exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias));
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

TEST(every_half_and_bfloat_converts_exactly)
{
    for (unsigned pattern = 0; pattern < 65536; ++pattern) {
        const uint16_t bits = (uint16_t)pattern;
        float f;
        double d;
        const double half = small_float(pattern, 5, 10), bfloat = small_float(pattern, 8, 7);

        ck_ok(attncl__convert(ATTNCL_F16, &bits, ATTNCL_F32, &f, 1));
        ck_assert_msg(same((double)f, half), "F16 %04x: %a, expected %a", pattern, (double)f, half);
        ck_assert(same((double)attncl__half_to_float(bits), half));
        ck_ok(attncl__convert(ATTNCL_F16, &bits, ATTNCL_F64, &d, 1));
        ck_assert(same(d, half));
        ck_ok(attncl__convert(ATTNCL_BF16, &bits, ATTNCL_F32, &f, 1));
        ck_assert_msg(same((double)f, bfloat), "BF16 %04x: %a, expected %a", pattern, (double)f,
                      bfloat);
    }
}

TEST(doubles_round_to_nearest_even)
{
    const double in[] = {0.1,      -0.0,       1e300,        -1e300, 1e-46,
                         0x1p-149, 0x1.8p-149, 0x1.000001p0, NAN,    0x1.fffffefp127};
    float out[10];
    ck_ok(attncl__convert(ATTNCL_F64, in, ATTNCL_F32, out, 10));
    ck_assert(out[0] == 0.1f && out[1] == 0 && signbit(out[1]));
    ck_assert(isinf(out[2]) && out[2] > 0 && isinf(out[3]) && out[3] < 0);
    ck_assert(out[4] == 0 && out[5] == 0x1p-149f && out[6] == 0x1p-148f);
    ck_assert(out[7] == 1.0f && isnan(out[8]) && out[9] == 0x1.fffffep127f);
}

// Every value of a 16-bit type comes back; between two neighbours the nearest is taken, from the middle the even one.
static void check_rounding(attncl_dtype dtype, unsigned pattern, double low, double high)
{
    const double middle = (low + high) / 2;
    const double in[] = {low, nextafter(middle, low), middle, nextafter(middle, high), high};
    uint16_t out[5];

    ck_ok(attncl__convert(ATTNCL_F64, in, dtype, out, 5));
    const unsigned want[] = {pattern, pattern, pattern + pattern % 2, pattern + 1, pattern + 1};
    for (int i = 0; i < 5; ++i)
        ck_assert_msg(out[i] == want[i], "%s of %a is %04x, expected %04x",
                      attncl_dtype_name(dtype), in[i], out[i], want[i]);
}

TEST(floats_round_to_16_bits)
{
    const float beyond[] = {1, 65519.99f, -65520}, infinite[] = {INFINITY, -INFINITY, NAN, -0.0f};
    uint16_t out[4];

    for (unsigned pattern = 0; pattern < 0x7bff; ++pattern)
        check_rounding(ATTNCL_F16, pattern, small_float(pattern, 5, 10),
                       small_float(pattern + 1, 5, 10));
    for (unsigned pattern = 0; pattern < 0x7f7f; ++pattern)
        check_rounding(ATTNCL_BF16, pattern, small_float(pattern, 8, 7),
                       small_float(pattern + 1, 8, 7));
    ck_fails(attncl_elements_convert(ATTNCL_F32, beyond, ATTNCL_F16, out, 3), ATTNCL_ERR_ARGUMENT,
             "element 2 is -65520, which does not fit F16");
    ck_assert_uint_eq(out[1], 0x7bff);
    ck_ok(attncl_elements_convert(ATTNCL_F32, beyond, ATTNCL_BF16, out, 3));
    ck_ok(attncl_elements_convert(ATTNCL_F32, infinite, ATTNCL_F16, out, 4));
    ck_assert(out[0] == 0x7c00 && out[1] == 0xfc00 && (out[2] & 0x7fff) == 0x7e00 &&
              out[3] == 0x8000);
    ck_ok(attncl_elements_convert(ATTNCL_F32, infinite, ATTNCL_BF16, out, 4));
    ck_assert(out[0] == 0x7f80 && out[1] == 0xff80 && (out[2] & 0x7fff) == 0x7fc0 &&
              out[3] == 0x8000);
    ck_fails(attncl_elements_convert(ATTNCL_F32, NULL, ATTNCL_F16, out, 1), ATTNCL_ERR_ARGUMENT,
             "NULL");
}

TEST(floats_widen_and_stay)
{
    const float in[] = {1.5f, -0.0f, INFINITY, 0x1p-149f};
    double wide[4];
    float out[4];
    ck_ok(attncl__convert(ATTNCL_F32, in, ATTNCL_F64, wide, 4));
    for (int i = 0; i < 4; ++i)
        ck_assert(same(wide[i], (double)in[i]));
    const uint32_t signalling = 0x7fa00001; // a copy keeps every bit
    ck_ok(attncl__convert(ATTNCL_F32, &signalling, ATTNCL_F32, out, 1));
    ck_assert_mem_eq(out, &signalling, 4);
}

#define CHECK_INTS(name, ctype, low, high, to_ctype, to_name)                                      \
    do {                                                                                           \
        const ctype in[] = {low, high, 0, 1};                                                      \
        to_ctype out[4];                                                                           \
        ck_ok(attncl__convert(ATTNCL_##name, in, ATTNCL_##to_name, out, 4));                       \
        ck_assert(out[0] == (to_ctype)(low) && out[1] == (to_ctype)(high) && out[2] == 0 &&        \
                  out[3] == 1);                                                                    \
    } while (0)

TEST(integers_keep_their_value_to_the_limits)
{
    CHECK_INTS(I8, int8_t, INT8_MIN, INT8_MAX, int32_t, I32);
    CHECK_INTS(U8, uint8_t, 0, UINT8_MAX, int32_t, I32);
    CHECK_INTS(I16, int16_t, INT16_MIN, INT16_MAX, int32_t, I32);
    CHECK_INTS(U16, uint16_t, 0, UINT16_MAX, int32_t, I32);
    CHECK_INTS(I32, int32_t, INT32_MIN, INT32_MAX, int32_t, I32);
    CHECK_INTS(U32, uint32_t, 0, INT32_MAX, int32_t, I32);
    CHECK_INTS(I64, int64_t, INT32_MIN, INT32_MAX, int32_t, I32);
    CHECK_INTS(U64, uint64_t, 0, INT32_MAX, int32_t, I32);
    CHECK_INTS(I8, int8_t, INT8_MIN, INT8_MAX, int64_t, I64);
    CHECK_INTS(U8, uint8_t, 0, UINT8_MAX, int64_t, I64);
    CHECK_INTS(I32, int32_t, INT32_MIN, INT32_MAX, int64_t, I64);
    CHECK_INTS(U32, uint32_t, 0, UINT32_MAX, int64_t, I64);
    CHECK_INTS(I64, int64_t, INT64_MIN, INT64_MAX, int64_t, I64);
    CHECK_INTS(U64, uint64_t, 0, INT64_MAX, int64_t, I64);
}

TEST(integers_that_do_not_fit_are_named)
{
    int32_t narrow[3];
    int64_t wide[3];
    const int64_t over[] = {INT32_MAX, INT32_MIN, INT64_C(1) << 31};
    const int64_t under[] = {0, INT64_C(-2147483649), 0};
    const uint64_t huge[] = {INT64_MAX, 0, UINT64_C(1) << 63};
    const uint32_t unsigned_over[] = {UINT32_C(1) << 31};

    ck_fails(attncl__convert(ATTNCL_I64, over, ATTNCL_I32, narrow, 3), ATTNCL_ERR_ARGUMENT,
             "element 2 is 2147483648");
    ck_ok(attncl__convert(ATTNCL_I64, over, ATTNCL_I32, narrow, 2));
    ck_fails(attncl__convert(ATTNCL_I64, under, ATTNCL_I32, narrow, 3), ATTNCL_ERR_ARGUMENT,
             "element 1 is -2147483649");
    ck_fails(attncl__convert(ATTNCL_U32, unsigned_over, ATTNCL_I32, narrow, 1), ATTNCL_ERR_ARGUMENT,
             "element 0 is 2147483648");
    ck_fails(attncl__convert(ATTNCL_U64, huge, ATTNCL_I64, wide, 3), ATTNCL_ERR_ARGUMENT,
             "element 2");
    ck_ok(attncl__convert(ATTNCL_U64, huge, ATTNCL_I64, wide, 2));
    ck_assert(wide[0] == INT64_MAX);
}

TEST(flags_are_zero_or_one)
{
    const uint8_t bytes[] = {0, 1, 2, 255};
    const int64_t wide[] = {0, -1, INT64_C(1) << 40, INT64_MIN};
    const uint64_t huge[] = {0, 1, UINT64_C(1) << 63, UINT64_MAX};
    static const attncl_dtype flags[] = {ATTNCL_BOOL, ATTNCL_U8};
    const uint8_t expected[] = {0, 1, 1, 1};
    uint8_t out[4];
    int32_t numbers[4];

    for (int i = 0; i < 2; ++i) {
        ck_ok(attncl__convert(ATTNCL_BOOL, bytes, flags[i], out, 4));
        ck_assert_mem_eq(out, expected, 4);
        ck_ok(attncl__convert(ATTNCL_U8, bytes, flags[i], out, 4));
        ck_assert_mem_eq(out, expected, 4);
        ck_ok(attncl__convert(ATTNCL_I64, wide, flags[i], out, 4));
        ck_assert_mem_eq(out, expected, 4);
        ck_ok(attncl__convert(ATTNCL_U64, huge, flags[i], out, 4));
        ck_assert_mem_eq(out, expected, 4);
    }
    ck_ok(attncl__convert(ATTNCL_BOOL, bytes, ATTNCL_I32, numbers, 4));
    ck_assert(numbers[0] == 0 && numbers[1] == 1 && numbers[2] == 1 && numbers[3] == 1);
}

TEST(other_pairs_are_refused_by_name)
{
    static const attncl_dtype pairs[][2] = {
        {ATTNCL_F32, ATTNCL_I32},
        {ATTNCL_I32, ATTNCL_F32},
        {ATTNCL_F32, ATTNCL_F8_E4M3},
        {ATTNCL_F32, ATTNCL_BOOL},
        {ATTNCL_I32, ATTNCL_I16},
        {ATTNCL_DTYPE_NONE, ATTNCL_F32},
        {ATTNCL_C64, ATTNCL_F32},
        {ATTNCL_F8_E4M3, ATTNCL_F32},
        {ATTNCL_C64, ATTNCL_I32},
        {ATTNCL_F4, ATTNCL_U8},
        {ATTNCL_F4, ATTNCL_F4},
        {ATTNCL_F32, (attncl_dtype)99},
        {(attncl_dtype)99, (attncl_dtype)99},
        {ATTNCL_DTYPE_NONE, ATTNCL_DTYPE_NONE},
    };
    unsigned char in[16] = {0}, out[16];
    for (size_t i = 0; i < COUNT_OF(pairs); ++i)
        ck_fails(attncl__convert(pairs[i][0], in, pairs[i][1], out, 1), ATTNCL_ERR_DTYPE,
                 attncl_dtype_name(pairs[i][0]));
}

TEST(unaligned_and_empty_sources_are_fine)
{
    unsigned char bytes[1 + 2 * sizeof(double)];
    const double in[] = {1.5, -2.5};
    float out[2];
    memcpy(bytes + 1, in, sizeof in);
    ck_ok(attncl__convert(ATTNCL_F64, bytes + 1, ATTNCL_F32, out, 2));
    ck_assert(out[0] == 1.5f && out[1] == -2.5f);
    ck_ok(attncl__convert(ATTNCL_F32, NULL, ATTNCL_F32, NULL, 0));
    ck_ok(attncl__convert(ATTNCL_I64, NULL, ATTNCL_I32, NULL, 0));
}
