// SPDX-License-Identifier: MIT

#include "support/host.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/status.h"
#include "base/quantised.h"

// Everything handed out since the last reset, as a chain.
struct piece {
    struct piece *next;
    max_align_t data[];
};
static struct piece *pieces;

static void *arena_alloc(size_t bytes)
{
    struct piece *piece = calloc(1, sizeof *piece + bytes);
    if (!piece) {
        fprintf(stderr, "no memory for a host tensor of %zu bytes\n", bytes);
        abort();
    }
    piece->next = pieces;
    pieces = piece;
    return piece->data;
}

void host_reset(void)
{
    while (pieces) {
        struct piece *next = pieces->next;
        free(pieces);
        pieces = next;
    }
}

struct host *host_new(attncl_dtype dtype, int rank, const int64_t *dim)
{
    struct host *h = arena_alloc(sizeof *h);

    assert(rank <= ATTNCL_MAX_RANK);
    h->dtype = dtype;
    h->rank = rank;
    h->count = 1;
    for (int i = 0; i < rank; ++i) {
        h->dim[i] = dim[i];
        h->count *= dim[i];
    }
    h->data = arena_alloc((size_t)h->count * sizeof h->data[0]);
    return h;
}

struct host *host_like(const struct host *h)
{
    return host_new(h->dtype, h->rank, h->dim);
}

struct host *host_with(attncl_dtype dtype, const double *values, int rank, const int64_t *dim)
{
    struct host *h = host_new(dtype, rank, dim);

    host_set(h, values);
    return h;
}

struct host *host_copy(const struct host *h)
{
    return host_with(h->dtype, h->data, h->rank, h->dim);
}

struct host *host_row(const struct host *h, int64_t t)
{
    return host_with(h->dtype, h->data + t * (h->count / h->dim[0]), h->rank - 1, h->dim + 1);
}

bool host_is_constant(const struct host *h)
{
    return attncl__is_16_bit(h->dtype) || attncl__is_quantised(h->dtype);
}

size_t host_bytes(const struct host *h)
{
    if (attncl__is_quantised(h->dtype))
        return attncl_quantised_bytes(h->dtype, h->dim[0], h->dim[1]);
    return (size_t)h->count * attncl_dtype_bytes(h->dtype);
}

// F16 has 10 bits of fraction and exponents from -14 on, BF16 7 and -126.
static int fraction_bits(attncl_dtype dtype)
{
    return dtype == ATTNCL_F16 ? 10 : 7;
}

static int min_exponent(attncl_dtype dtype)
{
    return dtype == ATTNCL_F16 ? -14 : -126;
}

// The nearest value of a type, ties to even.
static double rounded(double x, attncl_dtype dtype)
{
    const int low = min_exponent(dtype);

    if (!isfinite(x) || x == 0 || dtype == ATTNCL_F32)
        return (float)x;
    const int exponent = (ilogb(x) > low ? ilogb(x) : low) - fraction_bits(dtype);
    const double y = ldexp(nearbyint(ldexp(x, -exponent)), exponent);
    return ilogb(y) > 1 - low ? copysign(INFINITY, x) : y;
}

static uint16_t to_16_bits(double x, attncl_dtype dtype)
{
    const int bits = fraction_bits(dtype), low = min_exponent(dtype);
    const unsigned sign = signbit(x) ? 0x8000 : 0, infinity = 0x7fffu >> bits << bits;
    const double y = fabs(rounded(x, dtype));

    if (!isfinite(y))
        return (uint16_t)(sign | infinity | (isnan(y) ? 1u << (bits - 1) : 0));
    const int exponent = y == 0 || ilogb(y) < low ? low : ilogb(y);
    // The leading one of a normal number adds 1 to the exponent's field, which begins at 1.
    const unsigned digits = (unsigned)ldexp(y, bits - exponent);
    return (uint16_t)(sign | (((unsigned)(exponent - low) << bits) + digits));
}

static double of_16_bits(uint16_t word, attncl_dtype dtype)
{
    const int bits = fraction_bits(dtype), low = min_exponent(dtype),
              field = (word & 0x7fff) >> bits;
    const double fraction = word & ((1u << bits) - 1), sign = word & 0x8000 ? -1 : 1;

    if (field == 0x7fff >> bits)
        return fraction != 0 ? NAN : sign * INFINITY;
    return sign * ldexp(field > 0 ? fraction + (1 << bits) : fraction,
                        low - bits + (field > 0 ? field - 1 : 0));
}

static float *floats_of(const struct host *h)
{
    float *floats = arena_alloc((size_t)h->count * sizeof *floats);

    for (int64_t i = 0; i < h->count; ++i)
        floats[i] = (float)h->data[i];
    return floats;
}

static void *quantised(const struct host *h, float *floats)
{
    void *bytes = arena_alloc(host_bytes(h));

    if (attncl_quantise(h->dtype, h->dim[0], h->dim[1], floats, bytes) != ATTNCL_OK) {
        fprintf(stderr, "%s\n", attncl_last_error());
        abort();
    }
    return bytes;
}

void *host_pack(const struct host *h)
{
    if (attncl__is_quantised(h->dtype))
        return quantised(h, floats_of(h));
    void *bytes = arena_alloc(host_bytes(h));

    for (int64_t i = 0; i < h->count; ++i) {
        if (h->dtype == ATTNCL_F32)
            ((float *)bytes)[i] = (float)h->data[i];
        else if (attncl__is_16_bit(h->dtype))
            ((uint16_t *)bytes)[i] = to_16_bits(h->data[i], h->dtype);
        else if (h->dtype == ATTNCL_I32)
            ((int32_t *)bytes)[i] = (int32_t)h->data[i];
        else
            ((uint8_t *)bytes)[i] = (uint8_t)h->data[i];
    }
    return bytes;
}

void host_unpack(struct host *h, const void *bytes)
{
    for (int64_t i = 0; i < h->count; ++i) {
        if (h->dtype == ATTNCL_F32)
            h->data[i] = ((const float *)bytes)[i];
        else if (attncl__is_16_bit(h->dtype))
            h->data[i] = of_16_bits(((const uint16_t *)bytes)[i], h->dtype);
        else if (h->dtype == ATTNCL_I32)
            h->data[i] = ((const int32_t *)bytes)[i];
        else
            h->data[i] = ((const uint8_t *)bytes)[i];
    }
}

struct host *host_stored(struct host *h, attncl_dtype dtype)
{
    h->dtype = dtype;
    if (attncl__is_quantised(dtype)) {
        float *floats = floats_of(h);
        void *bytes = quantised(h, floats);
        attncl_dequantise(dtype, h->dim[0], h->dim[1], bytes, floats);
        for (int64_t i = 0; i < h->count; ++i)
            h->data[i] = floats[i];
        return h;
    }
    for (int64_t i = 0; i < h->count; ++i)
        h->data[i] = rounded(h->data[i], dtype);
    return h;
}

// splitmix64: every seed gives an independent stream.
static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// In (0, 1).
static double next_unit(uint64_t *state)
{
    return ((double)(next_bits(state) >> 11) + 0.5) / 9007199254740992.0;
}

static uint64_t stream(unsigned seed)
{
    return seed * 0x2545f4914f6cdd1du + 1;
}

struct host *host_random(unsigned seed, int rank, const int64_t *dim)
{
    struct host *h = host_new(ATTNCL_F32, rank, dim);
    uint64_t state = stream(seed);

    for (int64_t i = 0; i < h->count; ++i) {
        const double radius = sqrt(-2.0 * log(next_unit(&state)));
        h->data[i] = (float)(radius * cos(6.283185307179586 * next_unit(&state)));
    }
    return h;
}

struct host *host_uniform(unsigned seed, double low, double high, int rank, const int64_t *dim)
{
    struct host *h = host_new(ATTNCL_F32, rank, dim);
    uint64_t state = stream(seed);

    for (int64_t i = 0; i < h->count; ++i)
        h->data[i] = (float)(low + (high - low) * next_unit(&state));
    return h;
}

struct host *host_ints(unsigned seed, int low, int high, int rank, const int64_t *dim)
{
    struct host *h = host_new(ATTNCL_I32, rank, dim);
    uint64_t state = stream(seed);

    for (int64_t i = 0; i < h->count; ++i)
        h->data[i] = floor(low + ((double)high - low) * next_unit(&state));
    return h;
}

struct host *host_mask(unsigned seed, double p_visible, int rank, const int64_t *dim)
{
    struct host *h = host_new(ATTNCL_U8, rank, dim);
    uint64_t state = stream(seed);

    for (int64_t i = 0; i < h->count; ++i)
        h->data[i] = next_unit(&state) < p_visible;
    return h;
}

void host_scale(struct host *h, double factor)
{
    for (int64_t i = 0; i < h->count; ++i)
        h->data[i] = (float)(h->data[i] * factor);
}

void host_set(struct host *h, const double *values)
{
    memcpy(h->data, values, (size_t)h->count * sizeof values[0]);
}

double host_largest(const struct host *h)
{
    double largest = 0;

    for (int64_t i = 0; i < h->count; ++i)
        if (!(fabs(h->data[i]) <= largest) && !isnan(largest))
            largest = fabs(h->data[i]);
    return largest;
}

double host_dot(const struct host *a, const struct host *b)
{
    double sum = 0;

    for (int64_t i = 0; i < a->count; ++i)
        sum += a->data[i] * b->data[i];
    return sum;
}

struct host *host_view(struct host *h)
{
    h->as_view = true;
    return h;
}
