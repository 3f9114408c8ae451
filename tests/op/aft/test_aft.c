// SPDX-License-Identifier: MIT
// Attention-free mixing against its reference (tests/ref/aft.c): with a table of biases, and with
// biases of each head by distance, the latter position by position too.

#include <math.h>

#include "device/context.h"
#include "ref/ref.h"
#include "support/op_test.h"

// Error of y relative to sigmoid(q) sum p |v|.  Each p has a few roundings of exp (8 u) and the
// rounding of its exponent, which is known to u times the largest difference of exponents within a
// factor's reach, 60 u; numerator and denominator add a random walk over at most 500 rows, 22 u
// each.  Together 120 u = 7e-6.
static const double tolerance = 1e-5;
static const double tiny = 1e-25; // scale of a value that float's exponents cannot tell from 0

// heads 0: a table, of which `window` counts; else `window` is the size of the heads' filters.
struct variant {
    int steps, batch, channels, heads, window, causal;
};

static attncl_status run(const struct ref_aft_data *d, struct host *y)
{
    const struct aft_fwd_params params = {d->per_head, d->window, d->causal};

    return run_op("aft_fwd", &params, HOSTS(d->q, d->k, d->v, d->pos_bias, d->mask), HOSTS(y));
}

static void compare(const struct host *got, const struct host *want, const struct host *scale,
                    int64_t first, const struct ref_aft_data *d, const char *what)
{
    for (int64_t i = 0; i < got->count; ++i) {
        const double error =
            fabs(got->data[i] - want->data[first + i]) / (scale->data[first + i] + tiny);
        ck_assert_msg(
            error <= tolerance,
            "%s, T %d B %d C %d keys %d window %d causal %d mask %d: y[%lld] = %.9g, want %.9g, "
            "relative %.2g",
            what, (int)d->q->dim[0], (int)d->q->dim[1], (int)d->q->dim[2], (int)d->k->dim[2],
            d->window, d->causal, d->mask != NULL, (long long)(first + i), got->data[i],
            want->data[first + i], error);
    }
}

static void check(const struct ref_aft_data *d, const char *what)
{
    struct host *got = host_like(d->q), *want = host_like(d->q), *scale = host_like(d->q);

    ref_aft_fwd(d, want, scale);
    ck_ok(run(d, got));
    compare(got, want, scale, 0, d, what);
}

static double uniform(unsigned *state) // [0, 1)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) / 16777216.0;
}

// Adds to all elements of row t: [T, B, C], or row t of a table.
static void add_row(struct host *x, int64_t t, double value)
{
    const int64_t width = x->count / x->dim[0];
    for (int64_t c = 0; c < width; ++c)
        x->data[t * width + c] = (float)(x->data[t * width + c] + value);
}

static void add_all(struct host *x, double value)
{
    for (int64_t t = 0; t < x->dim[0]; ++t)
        add_row(x, t, value);
}

// +-size at random, for each element or for whole rows.
static void add_signs(struct host *x, double size, bool rows, unsigned *state)
{
    const int64_t run = rows ? x->count / x->dim[0] : 1;
    double sign = 1;
    for (int64_t i = 0; i < x->count; ++i) {
        if (i % run == 0)
            sign = uniform(state) < 0.5 ? -1 : 1;
        x->data[i] = (float)(x->data[i] + sign * size);
    }
}

static void add_ramp(struct host *x, double from, double to)
{
    for (int64_t t = 0; t < x->dim[0]; ++t)
        add_row(x, t,
                x->dim[0] == 1 ? from : from + (to - from) * (double)t / (double)(x->dim[0] - 1));
}

static void drop(struct host *x, double share, bool rows, unsigned *state) // to -inf
{
    const int64_t run = rows ? x->count / x->dim[0] : 1;
    bool out = false;
    for (int64_t i = 0; i < x->count; ++i) {
        if (i % run == 0)
            out = uniform(state) < share;
        if (out)
            x->data[i] = -INFINITY;
    }
}

// What data look like beside N(0, 1); what is 0 changes nothing.
static const struct kind {
    const char *name;
    double key_scale, bias_scale, value_scale;
    double key_add, bias_add;
    double key_signs, bias_signs; // +- this for each element
    double key_rows, bias_rows;   // +- this for each row
    double late, middle, early;   // this for one row of keys
    double ramp;                  // keys from -ramp to ramp
    double drop, drop_rows;       // share of keys that are -inf
    bool constant;
} kinds[] = {
    {.name = "normal"},
    {.name = "constant", .constant = true},
    {.name = "keys +-80", .key_signs = 80},
    {.name = "biases +-80", .bias_signs = 80},
    {.name = "keys and biases +-80", .key_signs = 80, .bias_signs = 80},
    {.name = "late key +400", .late = 400},
    {.name = "early key +400", .early = 400},
    {.name = "rising keys", .ramp = 300},
    {.name = "falling keys", .ramp = -300},
    {.name = "key rows +-80", .key_rows = 80},
    {.name = "bias rows +-80", .bias_rows = 80},
    {.name = "biases -85", .bias_add = -85},
    {.name = "biases +75, a key +105", .bias_add = 75, .middle = 105},
    {.name = "biases -30, keys -95", .bias_add = -30, .key_add = -47.5, .key_rows = 47.5},
    {.name = "keys -inf", .drop = 0.3},
    {.name = "key rows -inf", .drop_rows = 0.5},
    {.name = "keys x 20", .key_scale = 20},
    {.name = "keys x 60, biases x 30", .key_scale = 60, .bias_scale = 30},
    {.name = "keys +400, biases -400", .key_add = 400, .bias_add = -400},
    {.name = "keys and biases +400", .key_add = 400, .bias_add = 400},
    {.name = "a key +3000", .middle = 3000},
    {.name = "values x 1e6", .value_scale = 1e6},
    {.name = "biases x 1e30", .bias_scale = 1e30},
};
enum { N_KINDS = COUNT_OF(kinds) };

static void shape_data(const struct kind *x, struct ref_aft_data *d, unsigned *state)
{
    const int64_t steps = d->k->dim[0];

    host_scale(d->k, x->constant ? 0 : x->key_scale != 0 ? x->key_scale : 1);
    host_scale(d->pos_bias, x->constant ? 0 : x->bias_scale != 0 ? x->bias_scale : 1);
    host_scale(d->v, x->value_scale != 0 ? x->value_scale : 1);
    add_ramp(d->k, -x->ramp, x->ramp);
    add_signs(d->k, x->key_signs, false, state);
    add_signs(d->pos_bias, x->bias_signs, false, state);
    add_signs(d->k, x->key_rows, true, state);
    add_signs(d->pos_bias, x->bias_rows, true, state);
    add_row(d->k, steps * 4 / 5, x->late);
    add_row(d->k, steps / 2, x->middle);
    add_row(d->k, steps / 10, x->early);
    add_all(d->k, x->key_add);
    add_all(d->pos_bias, x->bias_add);
    drop(d->k, x->drop, false, state);
    drop(d->k, x->drop_rows, true, state);
}

static struct ref_aft_data make(const struct kind *kind, const struct variant *x, unsigned seed)
{
    const int64_t n = x->steps + seed % 3;
    unsigned state = seed;
    struct ref_aft_data d = {
        .q = host_random(seed, DIMS(x->steps, x->batch, x->channels)),
        .k = host_random(seed + 1, DIMS(x->steps, x->batch, x->heads ? x->heads : x->channels)),
        .v = host_random(seed + 2, DIMS(x->steps, x->batch, x->channels)),
        .pos_bias = x->heads ? host_random(seed + 3, DIMS(x->heads, x->window))
                             : host_random(seed + 3, DIMS(n, n)),
        .window = x->heads ? 0 : x->window,
        .causal = x->causal,
        .per_head = x->heads > 0,
    };
    if (x->steps > 0)
        shape_data(kind, &d, &state);
    return d;
}

// Random, with rows that see nothing and blocks of rows that nothing sees.
static struct host *make_mask(unsigned seed, int64_t rows, int64_t steps, int64_t entries)
{
    struct host *m = host_mask(seed, 0.5, DIMS(rows, steps, entries));

    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < steps; ++j)
            for (int64_t b = 0; b < entries; ++b)
                if ((i % 5 == 3 && b == 0) || (steps > 40 && j >= 3 && j < steps / 2))
                    m->data[(i * steps + j) * entries + b] = 0;
    for (int64_t i = 0; i < m->count; i += 3)
        m->data[i] *= 255; // any value but 0
    return m;
}

// Ways of summing that ordinary data do not choose.  Low keys in every block of the CPU variant keep
// factors from being multiplied: rows keep running maxima.  Low biases beside them, in all that a
// block has weights for, make them take every element by itself.
enum way { AS_IT_COMES, RUNNING_MAXIMA, EVERY_ELEMENT, N_WAYS };

static bool ends_block(int64_t t)
{
    enum { BLOCK = 12 };
    return t % BLOCK == 0 || t % BLOCK == BLOCK - 1;
}

static void force(const struct ref_aft_data *d, enum way way)
{
    const int64_t width = d->pos_bias->dim[1];

    for (int64_t t = 0; t < d->k->dim[0] && way != AS_IT_COMES; ++t)
        if (ends_block(t))
            add_row(d->k, t, -70);
    for (int64_t i = 0; i < d->pos_bias->count && way == EVERY_ELEMENT; ++i)
        if (ends_block(i % width))
            d->pos_bias->data[i] = (float)(d->pos_bias->data[i] - 200);
}

// Simulators take seconds for what others do in milliseconds: they run short lengths, and every
// eighth kind of data at each.
static bool skipped(int steps, int kind, int turn)
{
    return on_simulator() && (steps > 40 || (kind + turn) % 8 != 0);
}

// One, less than a block, a block, one more, primes, a panel, one more, several panels.
static const int lengths[] = {1, 2, 3, 11, 12, 13, 37, 96, 97, 131, 499};

// Batch and channels: fewer than a vector, a ragged tail, whole vectors.
static const int widths[][2] = {{1, 5}, {2, 9}, {3, 16}, {1, 33}};

// All kinds of data at one length, each with two of the windows, one of them causal.
TABLE_TEST(matches_the_reference, lengths)
{
    const int steps = lengths[_i], windows[] = {0, 1, 5, 13, 64, steps};
    unsigned seed = 100u * (unsigned)_i + 1;

    for (int kind = 0; kind < N_KINDS; ++kind)
        for (int step = 0; step < 2; ++step, seed += 7) {
            if (skipped(steps, kind, _i + 2 * step))
                continue;
            const int *width = widths[steps > 200 ? 0 : (kind + step) % 4];
            const int window = windows[(kind + _i + 3 * step) % 6];
            const struct variant x = {steps, width[0], width[1], 0, window, (step + kind / 2) % 2};
            const struct ref_aft_data d = make(&kinds[kind], &x, seed);
            check(&d, kinds[kind].name);
            host_reset();
        }
}

// Every second kind of data under each form of mask: per row, one row for all, per batch entry.
LOOP_TEST(matches_the_reference_under_masks, 0, 5)
{
    const int lengths_here[] = {1, 3, 13, 37, 131}, steps = lengths_here[_i];
    unsigned seed = 500u * (unsigned)_i + 3;

    for (int kind = 0; kind < N_KINDS; ++kind)
        for (int form = 0; form < 3; ++form, seed += 7) {
            if ((kind + form + _i) % 2 != 0 || skipped(3 * steps, kind, form))
                continue;
            const struct variant x = {steps, 3, 9, 0, kind % 2 ? steps : 5, 0};
            struct ref_aft_data d = make(&kinds[kind], &x, seed);
            d.mask = make_mask(seed, form == 1 ? 1 : steps, steps, form == 2 ? 3 : 1);
            check(&d, kinds[kind].name);
            host_reset();
        }
}

LOOP_TEST(every_path_is_right, 0, 2)
{
    for (int kind = 0; kind < N_KINDS; ++kind)
        for (int masked = 0; masked < 2; ++masked) {
            const struct variant x = {39, 2, 9, 0, 20, 0};
            if (skipped(x.steps, kind, masked))
                continue;
            struct ref_aft_data d = make(&kinds[kind], &x, 40u + (unsigned)kind);
            force(&d, RUNNING_MAXIMA + (enum way)_i);
            if (masked)
                d.mask = make_mask(9, 39, 39, 1);
            check(&d, kinds[kind].name);
            host_reset();
        }
}

// Many source blocks, more weights than fit the CPU variant's scratch, and several channel blocks.
LOOP_TEST(long_and_wide, 0, 2)
{
    const struct variant full = {1009, 1, 5, 0, 1009, _i}, longer = {2053, 1, 1, 0, 2053, _i},
                         wide = {101, 2, 1500, 0, 9, _i};

    if (skipped(full.steps, 0, 0))
        return;
    struct ref_aft_data d = make(&kinds[_i * 16], &full, 77);
    check(&d, "long");
    d = make(kinds, &longer, 79);
    check(&d, "longer");
    d = make(kinds, &wide, 78);
    check(&d, "wide");
}

static const struct host *mix(const struct ref_aft_data *d)
{
    struct host *y = host_like(d->q);

    ck_ok(run(d, y));
    return y;
}

// A product of factors, which rounds otherwise, for the rows before one huge key; running maxima,
// to the bit, from it on.  The row before it is right.  The first channel's keys make running
// maxima of its neighbours'.
TEST(a_product_where_ranges_allow)
{
    const struct variant x = {229, 1, 9, 0, 5, 1};
    const int64_t huge = 180, width = 9, neighbours = 4;
    int64_t differ = 0;

    if (on_simulator())
        return;
    const struct ref_aft_data d = make(kinds, &x, 12);
    add_row(d.k, huge, 400);
    check(&d, "one huge key");
    const struct host *by_range = mix(&d);
    for (int64_t t = 0; t < x.steps; t += 8)
        d.k->data[t * width] -= 1000;
    const struct host *maxima = mix(&d);
    for (int64_t i = 0; i < by_range->count; ++i) {
        if (i % width == 0 || i % width >= neighbours)
            continue;
        if (i < 64 * width)
            differ += by_range->data[i] != maxima->data[i];
        if (i >= huge * width)
            ck_assert_msg(by_range->data[i] == maxima->data[i], "y[%lld] = %.9g, by maxima %.9g",
                          (long long)i, by_range->data[i], maxima->data[i]);
    }
    ck_assert_int_gt(differ, 0);
}

// Work-groups of the shapes that GPUs of each vendor get, products and running maxima in each.
LOOP_TEST(groups_of_other_vendors, 0, 3)
{
    static const struct {
        enum device_vendor vendor;
        unsigned group_multiple;
    } vendors[] = {{VENDOR_NVIDIA, 32}, {VENDOR_AMD, 32}, {VENDOR_AMD, 64}};
    const struct variant x = {70, 1, 9, 0, 5, 1};
    struct device_caps *caps = &test_context()->caps, before = *caps;

    if (caps->variant != VARIANT_GPU || caps->max_group < 256 || (on_simulator() && _i < 2))
        return;
    caps->vendor = vendors[_i].vendor;
    caps->group_multiple = vendors[_i].group_multiple;
    caps->compute_units = 1;
    const struct ref_aft_data d = make(kinds, &x, 13);
    add_row(d.k, 40, 400);
    check(&d, "groups of another vendor");
    *caps = before;
}

LOOP_TEST(without_a_table_biases_are_0, 0, 2)
{
    const struct variant x = {25, 2, 7, 0, 3, _i};
    struct ref_aft_data d = make(kinds, &x, 5);

    d.pos_bias = NULL;
    check(&d, "no table");
}

static void check_views(const struct variant *x)
{
    struct ref_aft_data d = make(kinds, x, 6);

    host_view(d.q), host_view(d.k), host_view(d.v);
    check(&d, "views");
    d.mask = make_mask(3, x->steps, x->steps, x->batch);
    check(&d, "views, masked");
}

TEST(takes_views)
{
    check_views(&(struct variant){23, 3, 19, 0, 7, 0});
}

TEST(takes_views_of_heads)
{
    check_views(&(struct variant){23, 3, 38, 2, 7, 0});
}

LOOP_TEST(empty_is_fine, 0, 6)
{
    const struct variant none[] = {{0, 2, 3, 0, 1, 0}, {4, 0, 3, 0, 1, 0}, {4, 2, 0, 0, 1, 0},
                                   {0, 2, 4, 2, 3, 0}, {4, 0, 4, 2, 3, 0}, {4, 2, 0, 2, 3, 0}};
    const struct ref_aft_data d = make(kinds, &none[_i], 6);

    check(&d, "empty");
}

// One; a head a channel; one head; ragged heads; whole vectors; several panels.  Windows: one, the
// table longer than the sequence.  Extremes: keys, biases, both; a late key; keys that rise and
// fall.
static const struct {
    struct variant shape;
    struct kind kind;
} heads[] = {
    {{1, 1, 1, 1, 1, 0}, {0}},
    {{2, 2, 6, 6, 3, 0}, {0}},
    {{13, 3, 5, 1, 7, 0}, {0}},
    {{37, 2, 21, 3, 11, 0}, {0}},
    {{97, 2, 64, 2, 25, 0}, {0}},
    {{211, 1, 40, 2, 63, 0}, {0}},
    {{23, 2, 18, 2, 1, 0}, {.bias_scale = 30}},
    {{23, 2, 18, 2, 91, 0}, {0}},
    {{37, 2, 18, 2, 9, 0}, {.key_scale = 80}},
    {{37, 2, 18, 2, 9, 0}, {.bias_scale = 80}},
    {{37, 2, 18, 2, 9, 0}, {.key_scale = 60, .bias_scale = 30}},
    {{131, 1, 18, 2, 9, 0}, {.late = 400}},
    {{131, 1, 18, 2, 31, 0}, {.ramp = 300}},
    {{131, 1, 18, 2, 31, 0}, {.ramp = -300}},
    {{37, 1, 18, 2, 5, 0}, {.bias_scale = 1e30}},
    {{37, 1, 18, 2, 5, 0}, {.constant = true}},
};

// Simulators: the short shapes, not the extremes.
static bool skips_heads(int i)
{
    return on_simulator() && (heads[i].shape.steps > 40 || heads[i].kind.key_scale != 0 ||
                              heads[i].kind.bias_scale != 0);
}

TABLE_TEST(heads_match_the_reference, heads)
{
    for (int way = AS_IT_COMES; way < N_WAYS && !skips_heads(_i); ++way) {
        struct ref_aft_data d = make(&heads[_i].kind, &heads[_i].shape, 10u * (unsigned)_i + 1);
        force(&d, (enum way)way);
        check(&d, "all seen");
        d.causal = 1;
        check(&d, "causal");
    }
}

// Per row, one row for all, per batch entry; each with rows that see nothing.
TABLE_TEST(heads_match_the_reference_under_masks, heads)
{
    const struct variant *x = &heads[_i].shape;
    struct ref_aft_data d = make(&heads[_i].kind, x, 10u * (unsigned)_i + 2);

    for (int form = 0; form < 3 && !skips_heads(_i); ++form) {
        if (on_simulator() && (_i + form) % 3 != 0)
            continue;
        d.mask = make_mask(7u + (unsigned)form, form == 1 ? 1 : x->steps, x->steps,
                           form == 2 ? x->batch : 1);
        check(&d, "masked");
    }
}

TABLE_TEST(heads_step_as_the_causal_pass, heads)
{
    const struct variant *x = &heads[_i].shape;
    const int64_t all = x->batch * x->channels;
    struct ref_aft_data d = make(&heads[_i].kind, x, 10u * (unsigned)_i + 3);
    struct host *want = host_like(d.q), *scale = host_like(d.q);
    struct host *sums = host_new(ATTNCL_F32, DIMS(3, all));
    struct host *keys = host_new(ATTNCL_F32, DIMS((x->window + 1) / 2, all));
    struct host *values = host_like(keys), *at = host_new(ATTNCL_I32, DIMS(1));

    const struct aft_step_fwd_params params = {.per_head = true};

    if (skips_heads(_i))
        return;
    sums->data[0] = NAN; // whatever the state held, position 0 starts anew
    d.causal = 1;
    ref_aft_fwd(&d, want, scale);
    for (int64_t t = 0; t < x->steps && t < (on_simulator() ? 14 : 60); ++t) {
        struct host *q = host_row(d.q, t), *k = host_row(d.k, t), *v = host_row(d.v, t);
        struct host *y = host_like(q);
        at->data[0] = (double)t;
        if (t % 2)
            host_view(q), host_view(k), host_view(v);
        ck_ok(run_op("aft_step_fwd", &params, HOSTS(q, k, v, d.pos_bias, at, sums, keys, values),
                     HOSTS(y)));
        compare(y, want, scale, t * all, &d, "step");
    }
}

// 16 MB beside inputs and outputs at T = 4096, B = 8, C = 512, whatever the form and the mask.
TEST(scratch_is_bounded)
{
    struct device_caps caps = test_context()->caps;
    const struct aft_fwd_params params = {.window = 64};
    struct tensor_desc in[5] = {{0}}, out[2] = {{0}};
    struct op_sig sig = {
        .caps = &caps, .params = &params, .n_in = 5, .n_out = 2, .in = in, .out = out};
    const int64_t x[] = {4096, 8, 512}, n[] = {4096, 4096}, mask[] = {4096, 4096, 1};

    for (int i = 0; i < 3; ++i)
        ck_ok(attncl__desc_make(ATTNCL_F32, 3, x, &sig.in[i]));
    ck_ok(attncl__desc_make(ATTNCL_F32, 2, n, &sig.in[3]));
    for (int masked = 0; masked < 2; ++masked)
        for (int variant = VARIANT_CPU; variant <= VARIANT_GPU; ++variant) {
            size_t bytes = 0;
            caps.variant = (enum kernel_variant)variant;
            if (masked)
                ck_ok(attncl__desc_make(ATTNCL_U8, 3, mask, &sig.in[4]));
            ck_ok(attncl__op_aft_fwd.scratch(&sig, &bytes));
            ck_assert_uint_le(bytes, 16u << 20);
        }
}

TEST(refusals)
{
    const struct variant x = {5, 2, 3, 0, 2, 0};
    const struct ref_aft_data d = make(kinds, &x, 6);
    struct ref_aft_data bad = d;

    bad.k = host_random(1, DIMS(5, 2, 4));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "k is [5, 2, 4], q is [5, 2, 3]");
    bad = d, bad.v = host_ints(1, 0, 3, DIMS(5, 2, 3));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_DTYPE, "v is I32");
    bad = d, bad.pos_bias = host_random(1, DIMS(4, 4));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "T = 5 exceeds the n = 4");
    bad = d, bad.pos_bias = host_random(1, DIMS(6, 5));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "[6, 5]");
    bad = d, bad.mask = host_mask(1, 0.5, DIMS(3, 5, 1));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "axis 0 of the mask is 3, expected 1 or T = 5");
    bad.mask = host_mask(1, 0.5, DIMS(5, 1, 1));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "axis 1 of the mask is 1, expected T = 5");
    bad.mask = host_mask(1, 0.5, DIMS(5, 5, 3));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "axis 2 of the mask is 3, expected 1 or B = 2");
    bad.mask = host_mask(1, 0.5, DIMS(5, 5));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "2 axes");
    bad.mask = host_random(1, DIMS(5, 5, 1));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_DTYPE, "F32");
    bad.mask = host_mask(1, 0.5, DIMS(5, 5, 1));
    bad.causal = 1;
    ck_fails(run(&bad, d.q), ATTNCL_ERR_ARGUMENT, "causal");
    bad = d, bad.window = -1;
    ck_fails(run(&bad, d.q), ATTNCL_ERR_ARGUMENT, "-1");
}

TEST(refusals_of_heads)
{
    const struct variant x = {5, 2, 6, 2, 3, 0};
    const struct ref_aft_data d = make(kinds, &x, 6);
    struct ref_aft_data bad = d;

    bad.k = host_random(1, DIMS(5, 2, 4));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "H = 4 does not divide C = 6");
    bad.k = host_random(1, DIMS(5, 2, 0));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "H = 0 does not divide C = 6");
    bad.k = host_random(1, DIMS(4, 2, 2));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "k is [4, 2, 2], q is [5, 2, 6]");
    bad = d, bad.v = host_random(1, DIMS(5, 2, 2));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "v is [5, 2, 2], q is [5, 2, 6]");
    bad = d, bad.pos_bias = host_random(1, DIMS(2, 4));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "s = 4, expected an odd number");
    bad = d, bad.pos_bias = host_random(1, DIMS(3, 3));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "w is [3, 3], expected [H = 2, s]");
    bad = d, bad.pos_bias = host_ints(1, 0, 3, DIMS(2, 3));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_DTYPE, "w is I32");
    bad = d, bad.pos_bias = NULL;
    ck_fails(run(&bad, d.q), ATTNCL_ERR_ARGUMENT, "w is missing");
    bad = d, bad.mask = host_mask(1, 0.5, DIMS(5, 5, 3));
    ck_fails(run(&bad, d.q), ATTNCL_ERR_SHAPE, "axis 2 of the mask is 3, expected 1 or B = 2");
    bad.mask = host_mask(1, 0.5, DIMS(5, 5, 1));
    bad.causal = 1;
    ck_fails(run(&bad, d.q), ATTNCL_ERR_ARGUMENT, "causal");
}
