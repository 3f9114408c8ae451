// SPDX-License-Identifier: MIT
// What AFT keeps of a prompt against what its steps leave: the maximum of the keys that have left the
// window exactly, their sums by the definition, the rings exactly.
// Reference: the definition of the state, written here.

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

// Sums of exponentials: each within 4 ulp (tests/op/aft/test_aft.c), added up.
static const double tolerance = 1e-5;

struct variant {
    int length, last, batch, channels, heads, window; // heads 0: a key for each channel
    double key_scale, early;                          // early: added to the keys of one row
};
static const struct variant variants[] = {
    {1, 0, 1, 1, 0, 0, 1, 0},      {17, 16, 2, 9, 0, 0, 1, 0},    {17, 16, 2, 9, 0, 1, 1, 0},
    {23, 22, 1, 37, 0, 5, 80, 0},  {23, 9, 3, 16, 0, 5, 80, 400}, {23, 3, 2, 9, 0, 5, 1, 0},
    {40, 39, 2, 9, 0, 64, 1, 0},   {40, 31, 1, 70, 0, 7, 100, 0}, {23, 20, 2, 12, 3, 4, 1, 0},
    {19, 12, 1, 40, 2, 6, 50, 40},
};

struct prompt {
    struct host *k, *v;
    struct host *sums, *keys, *values;
};

static struct prompt make(const struct variant *x, unsigned seed)
{
    const int64_t all = x->batch * x->channels, slots = x->window > 0 ? x->window : 1;
    struct prompt p = {
        .k = host_random(seed, DIMS(x->length, x->batch, x->heads ? x->heads : x->channels)),
        .v = host_random(seed + 1, DIMS(x->length, x->batch, x->channels)),
        .sums = host_new(ATTNCL_F32, DIMS(3, all)),
        .keys = host_new(ATTNCL_F32, DIMS(slots, all)),
        .values = host_new(ATTNCL_F32, DIMS(slots, all)),
    };
    host_scale(p.k, x->key_scale);
    const int64_t row = p.k->count / x->length;
    for (int64_t c = 0; c < row; ++c) {
        double *key = &p.k->data[x->last / 5 * row + c];
        *key = (float)(*key + x->early);
    }
    for (int64_t i = 0; i < p.sums->count; ++i)
        p.sums->data[i] = 3;
    for (int64_t i = 0; i < p.keys->count; ++i)
        p.keys->data[i] = p.values->data[i] = 5;
    return p;
}

static double key_of(const struct variant *x, const struct prompt *p, int64_t t, int64_t at)
{
    const int64_t all = x->batch * x->channels, b = at / x->channels, c = at % x->channels;
    if (!x->heads)
        return p->k->data[t * all + at];
    return p->k->data[(t * x->batch + b) * x->heads + c / (x->channels / x->heads)];
}

static void check_sums(const struct variant *x, const struct prompt *p, int64_t at, int64_t n)
{
    const int64_t all = x->batch * x->channels;
    double largest = -INFINITY, a = 0, b = 0, size = 0;
    for (int64_t t = 0; t < n; ++t)
        largest = fmax(largest, key_of(x, p, t, at));
    for (int64_t t = 0; t < n; ++t) {
        const double e = exp(key_of(x, p, t, at) - largest), v = p->v->data[t * all + at];
        a += e, b += e * v, size += e * fabs(v);
    }
    const double *got = p->sums->data;
    if (n > 0)
        ck_assert_double_eq(got[at], largest);
    ck_assert_double_le(fabs(got[all + at] - a), tolerance * a);
    ck_assert_double_le(fabs(got[2 * all + at] - b), tolerance * size);
}

static void check_ring(const struct variant *x, const struct prompt *p, int64_t at)
{
    const int64_t all = x->batch * x->channels;
    for (int64_t slot = 0; slot < x->window; ++slot) {
        const int64_t t = x->last - (x->last - slot + x->window) % x->window;
        const int64_t i = slot * all + at;
        ck_assert_double_eq(p->keys->data[i], t < 0 ? 5 : key_of(x, p, t, at));
        ck_assert_double_eq(p->values->data[i], t < 0 ? 5 : p->v->data[t * all + at]);
    }
}

static void check(const struct variant *x, struct prompt *p)
{
    const struct aft_prefill_fwd_params params = {.per_head = x->heads > 0, .window = x->window};
    const int64_t n_left = x->last + 1 > x->window ? x->last + 1 - x->window : 0;

    ck_ok(run_op("aft_prefill_fwd", &params,
                 HOSTS(p->k, p->v, host_index(x->last), p->sums, p->keys, p->values), NULL, 0));
    for (int64_t at = 0; at < x->batch * x->channels; ++at) {
        check_sums(x, p, at, n_left);
        check_ring(x, p, at);
    }
}

TABLE_TEST(keeps_what_the_definition_says, variants)
{
    struct prompt p = make(&variants[_i], 10u + (unsigned)_i);
    check(&variants[_i], &p);
}

// Rings of 16 bits, of keys and values that are rounded already.
TABLE_TEST(keeps_rings_of_16_bits, variants)
{
    static const attncl_dtype types[] = {ATTNCL_F16, ATTNCL_BF16};

    for (int i = 0; i < 2; ++i) {
        struct prompt p = make(&variants[_i], 20u + (unsigned)_i);
        host_stored(p.k, types[i])->dtype = host_stored(p.v, types[i])->dtype = ATTNCL_F32;
        p.keys->dtype = p.values->dtype = types[i];
        check(&variants[_i], &p);
    }
}

TEST(takes_views)
{
    for (int i = 3; i < 9; i += 5) {
        struct prompt p = make(&variants[i], 3);
        host_view(p.k), host_view(p.v);
        check(&variants[i], &p);
    }
}

// A key of -inf is absent, and so is its value.
TEST(absent_keys_count_nothing)
{
    const struct variant *x = &variants[1];
    struct prompt p = make(x, 4);
    for (int64_t c = 0; c < x->batch * x->channels; ++c) {
        p.k->data[3 * x->batch * x->channels + c] = -INFINITY;
        p.v->data[3 * x->batch * x->channels + c] = 1e30;
    }
    const struct aft_prefill_fwd_params params = {.window = 0};
    ck_ok(run_op("aft_prefill_fwd", &params,
                 HOSTS(p.k, p.v, host_index(x->last), p.sums, p.keys, p.values), NULL, 0));
    for (int64_t i = 0; i < p.sums->count; ++i)
        ck_assert(fabs(p.sums->data[i]) < 1e3);
}

TEST(refusals)
{
    struct prompt p = make(&variants[3], 6);
    const struct aft_prefill_fwd_params window5 = {.window = 5}, window6 = {.window = 6},
                                        negative = {.window = -1},
                                        per_head = {.per_head = 1, .window = 5};
    struct host *narrow = host_random(1, DIMS(23, 1, 3)), *flat = host_random(1, DIMS(23, 37));
    struct host *at = host_index(0), *two = host_new(ATTNCL_I32, DIMS(2));

#define REFUSE(params, k, at, status, words)                                                       \
    ck_fails(run_op("aft_prefill_fwd", &(params), HOSTS(k, p.v, at, p.sums, p.keys, p.values),     \
                    NULL, 0),                                                                      \
             status, words)
    REFUSE(window5, narrow, at, ATTNCL_ERR_SHAPE,
           "k is [23, 1, 3], must be [T, B, C] with C = 37 as v");
    REFUSE(per_head, narrow, at, ATTNCL_ERR_SHAPE, "k has H = 3, which does not divide C = 37");
    REFUSE(window5, flat, at, ATTNCL_ERR_SHAPE, "k");
    REFUSE(window5, p.k, two, ATTNCL_ERR_SHAPE, "last is [2]");
    REFUSE(window6, p.k, at, ATTNCL_ERR_SHAPE, "keys is [5, 37], expected [6, 37]");
    REFUSE(negative, p.k, at, ATTNCL_ERR_ARGUMENT, "-1");
#undef REFUSE
}
