// SPDX-License-Identifier: MIT
//
// Element types on the host.

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/dtype.h"
#include "base/try.h"

const char *attncl_dtype_name(attncl_dtype dtype)
{
    switch (dtype) {
#define NAME_OF(name, value, bits)                                                                 \
    case ATTNCL_##name:                                                                            \
        return #name;
        ATTNCL_DTYPE_LIST(NAME_OF)
        ATTNCL_QUANTISED_LIST(NAME_OF)
#undef NAME_OF
    case ATTNCL_DTYPE_NONE:
        break;
    }
    return "none";
}

attncl_dtype attncl__dtype_from_name(const char *text)
{
#define IS_NAMED(name, value, bits)                                                                \
    if (strcmp(text, #name) == 0)                                                                  \
        return ATTNCL_##name;
    ATTNCL_DTYPE_LIST(IS_NAMED)
#undef IS_NAMED
    return ATTNCL_DTYPE_NONE;
}

size_t attncl__dtype_bits(attncl_dtype dtype)
{
    switch (dtype) {
#define BITS_OF(name, value, bits)                                                                 \
    case ATTNCL_##name:                                                                            \
        return bits;
        ATTNCL_DTYPE_LIST(BITS_OF)
#undef BITS_OF
    case ATTNCL_Q8:
    case ATTNCL_Q4:
    case ATTNCL_DTYPE_NONE:
        break;
    }
    return 0;
}

size_t attncl_dtype_bytes(attncl_dtype dtype)
{
    const size_t bits = attncl__dtype_bits(dtype);
    return bits % 8 == 0 ? bits / 8 : 0;
}

static float float_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits.
float attncl__half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1fu;
    const uint32_t fraction = half & 0x3ffu;

    if (exponent == 0x1f)
        return float_from_bits(sign | 0x7f800000u | (fraction << 13));
    if (exponent == 0) {
        const float tiny = (float)fraction * 0x1p-24f; // exact
        return sign ? -tiny : tiny;
    }
    return float_from_bits(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

bool attncl__is_float(attncl_dtype dtype)
{
    return dtype == ATTNCL_F32 || dtype == ATTNCL_F16 || dtype == ATTNCL_BF16 ||
           dtype == ATTNCL_F64;
}

bool attncl__is_integer(attncl_dtype dtype)
{
    return dtype >= ATTNCL_I32 && dtype <= ATTNCL_U64; // I32 I64 BOOL U8 I8 I16 U16 U32 U64
}

static double read_float(attncl_dtype type, const unsigned char *p)
{
    uint16_t bits;
    float f;
    double d;

    switch (type) {
    case ATTNCL_F16:
        memcpy(&bits, p, sizeof bits);
        return attncl__half_to_float(bits);
    case ATTNCL_BF16:
        memcpy(&bits, p, sizeof bits);
        return float_from_bits((uint32_t)bits << 16);
    case ATTNCL_F64:
        memcpy(&d, p, sizeof d);
        return d;
    default:
        memcpy(&f, p, sizeof f);
        return f;
    }
}

// Reads one integer as int64; false when a U64 does not fit.
static bool read_int(attncl_dtype type, const unsigned char *p, int64_t *ret)
{
#define INT_CASE(name, ctype)                                                                      \
    case ATTNCL_##name: {                                                                          \
        ctype x;                                                                                   \
        memcpy(&x, p, sizeof x);                                                                   \
        *ret = (int64_t)x;                                                                         \
        return true;                                                                               \
    }
    switch (type) {
        INT_CASE(I64, int64_t)
        INT_CASE(I32, int32_t)
        INT_CASE(U32, uint32_t)
        INT_CASE(I16, int16_t)
        INT_CASE(U16, uint16_t)
        INT_CASE(I8, int8_t)
        INT_CASE(U8, uint8_t)
    case ATTNCL_BOOL:
        *ret = *p != 0;
        return true;
    default: { // U64
        uint64_t x;
        memcpy(&x, p, sizeof x);
        *ret = (int64_t)x;
        return x <= INT64_MAX;
    }
    }
#undef INT_CASE
}

// Rounds to the nearest value of a 16-bit float type, ties to even.
static uint16_t round_to_16_bits(double x, int fraction_bits, int min_exponent)
{
    const uint32_t sign = signbit(x) ? 0x8000u : 0;
    const uint32_t infinity = 0x7fffu >> fraction_bits << fraction_bits;
    const double magnitude = fabs(x);

    if (isnan(x))
        return (uint16_t)(sign | infinity | 1u << (fraction_bits - 1));
    if (magnitude == 0 || isinf(x))
        return (uint16_t)(sign | (magnitude == 0 ? 0 : infinity));
    const int exponent = ilogb(magnitude) < min_exponent ? min_exponent : ilogb(magnitude);
    if (exponent > -min_exponent + 1)
        return (uint16_t)(sign | infinity);
    const double steps = nearbyint(ldexp(magnitude, fraction_bits - exponent));
    // The leading one of a normal number adds 1 to the exponent's field, which begins at 1.
    const uint32_t bits = ((uint32_t)(exponent - min_exponent) << fraction_bits) + (uint32_t)steps;
    return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

static attncl_status convert_floats(attncl_dtype from_type, const unsigned char *from,
                                    attncl_dtype to_type, unsigned char *to, size_t count)
{
    const size_t step = attncl_dtype_bytes(from_type);

    for (size_t i = 0; i < count; ++i) {
        const double x = read_float(from_type, from + i * step);
        if (to_type == ATTNCL_F64) {
            memcpy(to + i * sizeof x, &x, sizeof x);
        } else if (attncl__is_16_bit(to_type)) {
            const uint16_t bits =
                to_type == ATTNCL_F16 ? round_to_16_bits(x, 10, -14) : round_to_16_bits(x, 7, -126);
            REQUIRE(!isfinite(x) || isfinite(read_float(to_type, (const unsigned char *)&bits)),
                    ATTNCL_ERR_ARGUMENT, "element %zu is %g, which does not fit %s", i, x,
                    attncl_dtype_name(to_type));
            memcpy(to + i * sizeof bits, &bits, sizeof bits);
        } else {
            const float f = (float)x;
            memcpy(to + i * sizeof f, &f, sizeof f);
        }
    }
    return ATTNCL_OK;
}

static attncl_status convert_ints(attncl_dtype from_type, const unsigned char *from,
                                  attncl_dtype to_type, unsigned char *to, size_t count)
{
    const size_t step = attncl_dtype_bytes(from_type);

    for (size_t i = 0; i < count; ++i) {
        int64_t x;
        const bool fits = read_int(from_type, from + i * step, &x);
        if (to_type == ATTNCL_I32) {
            REQUIRE(fits && x >= INT32_MIN && x <= INT32_MAX, ATTNCL_ERR_ARGUMENT,
                    "element %zu is %lld, which does not fit I32", i, (long long)x);
            const int32_t narrow = (int32_t)x;
            memcpy(to + i * sizeof narrow, &narrow, sizeof narrow);
        } else if (to_type == ATTNCL_I64) {
            REQUIRE(fits, ATTNCL_ERR_ARGUMENT, "element %zu does not fit I64", i);
            memcpy(to + i * sizeof x, &x, sizeof x);
        } else {
            to[i] = !fits || x != 0;
        }
    }
    return ATTNCL_OK;
}

attncl_status attncl__convert(attncl_dtype from_type, const void *from, attncl_dtype to_type,
                              void *to, size_t count)
{
    const bool to_flag = to_type == ATTNCL_BOOL || to_type == ATTNCL_U8;
    const bool to_float = attncl__is_float(to_type);
    const bool to_int = to_type == ATTNCL_I32 || to_type == ATTNCL_I64;
    const bool same = from_type == to_type && attncl_dtype_bytes(to_type) > 0 && !to_flag;

    REQUIRE(same || (attncl__is_float(from_type) && to_float) ||
                (attncl__is_integer(from_type) && (to_flag || to_int)),
            ATTNCL_ERR_DTYPE, "%s does not convert to %s", attncl_dtype_name(from_type),
            attncl_dtype_name(to_type));
    if (to_float && !same)
        return convert_floats(from_type, from, to_type, to, count);
    if (!same)
        return convert_ints(from_type, from, to_type, to, count);
    if (count > 0)
        memcpy(to, from, count * attncl_dtype_bytes(to_type));
    return ATTNCL_OK;
}

attncl_status attncl_elements_convert(attncl_dtype from_type, const void *from,
                                      attncl_dtype to_type, void *to, size_t count)
{
    REQUIRE((from && to) || count == 0, ATTNCL_ERR_ARGUMENT, "from or to is NULL");
    return attncl__convert(from_type, from, to_type, to, count);
}
