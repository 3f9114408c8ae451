// SPDX-License-Identifier: MIT
// Attention, with and without its weights, against its reference (tests/ref/attention.c).

#include <math.h>

#include "attncl/kinds.h"
#include "device/context.h"
#include "ref/ref.h"
#include "support/op_test.h"

static const double unit = 6e-8; // one rounding

struct size {
    int64_t batch, heads, queries, keys, width, value_width;
};

struct inputs {
    struct host *q, *k, *v;
};

static struct inputs random_inputs(struct size n)
{
    return (struct inputs){
        .q = host_random(1, DIMS(n.batch, n.heads, n.queries, n.width)),
        .k = host_random(2, DIMS(n.batch, n.heads, n.keys, n.width)),
        .v = host_random(3, DIMS(n.batch, n.heads, n.keys, n.value_width)),
    };
}

// How far a score may be off: D products and as many sums, and the scale, of at most |q| |k| each.
// A test with exact scores says so.
static double score_error(const struct inputs *x, double scale, bool exact)
{
    const double width = (double)x->q->dim[3];
    return exact ? 0 : (width + 2) * unit * scale * width * host_largest(x->q) * host_largest(x->k);
}

// Weights: e^(2 score errors), an exponential of 1 ulp (8 roundings with its argument's) and a sum
// of S terms.
static void check_all(const struct inputs *x, const struct ref_attention *a, bool time_first,
                      bool exact)
{
    struct attention_fwd_params params = {
        (float)a->scale, a->causal,
        a->window,       time_first ? ATTNCL_LAYOUT_TIME_FIRST : ATTNCL_LAYOUT_BATCH_FIRST,
        false,           {.p = a->dropout.p, .seed = a->dropout.seed, .site = a->dropout.site}};
    const int64_t n_batch = x->q->dim[0], n_heads = x->q->dim[1], n_queries = x->q->dim[2];
    const int64_t n_keys = x->k->dim[2], value_width = x->v->dim[3];
    const double relative = 2 * score_error(x, a->scale, exact) + ((double)n_keys + 16) * unit;
    struct host *mask = (struct host *)a->mask, *lens = (struct host *)a->valid_lens;
    struct host *want_p = host_new(ATTNCL_F32, DIMS(n_batch, n_heads, n_queries, n_keys));
    struct host *got =
        host_new(ATTNCL_F32, DIMS(time_first ? n_queries : n_batch,
                                  time_first ? n_batch : n_queries, n_heads, value_width));
    struct host *want = host_like(got), *got_p = host_like(want_p), *dropped = host_like(want_p);
    struct host *step = a->dropout.p > 0 ? host_new(ATTNCL_I32, 0, NULL) : NULL;
    const double kept = a->dropout.p < 1 ? 1 / (1 - a->dropout.p) : 1;

    if (step)
        step->data[0] = a->dropout.step;
    ref_attention_weights(a, x->q, x->k, want_p);
    host_set(dropped, want_p->data);
    ref_attention_drop(a, dropped);
    ref_attention_mix(dropped, x->v, time_first, want);
    ck_ok(run_op("attention_fwd", &params, HOSTS(x->q, x->k, x->v, mask, lens, step), HOSTS(got)));
    ck_near(got, want, 0, kept * relative * host_largest(x->v));
    params.want_weights = true;
    ck_ok(run_op("attention_fwd", &params, HOSTS(x->q, x->k, x->v, mask, lens, step),
                 HOSTS(got, got_p)));
    ck_near(got, want, 0, kept * relative * host_largest(x->v));
    ck_near(got_p, want_p, relative, 1e-37);
}

static double usual_scale(const struct inputs *x)
{
    return (float)(1 / sqrt((double)x->q->dim[3]));
}

// Rows of the saved [B, H, T, 2]: a score up to 8 below the largest, and one over the total, by which
// the largest weight is made again.
static void check_saved_rows(const struct inputs *x, const struct ref_attention *a,
                             const struct attention_fwd_params *params, const struct host *p,
                             double relative)
{
    const int64_t n_queries = x->q->dim[2], n_keys = x->k->dim[2], width = x->q->dim[3];
    const int64_t n_rows = p->dim[0] * p->dim[1] * n_queries;
    const bool time_first = params->layout == ATTNCL_LAYOUT_TIME_FIRST;
    struct host *rows = host_new(ATTNCL_F32, DIMS(p->dim[0], p->dim[1], n_queries, 2));
    struct host *y =
        host_new(ATTNCL_F32, DIMS(time_first ? n_queries : p->dim[0],
                                  time_first ? p->dim[0] : n_queries, p->dim[1], x->v->dim[3]));
    struct host *got_p = host_like(p), *lens = (struct host *)a->valid_lens;

    ck_ok(run_op_saving("attention_fwd", params,
                        HOSTS(x->q, x->k, x->v, (struct host *)a->mask, lens),
                        HOSTS(y, params->want_weights ? got_p : NULL, rows)));
    for (int64_t row = 0; row < n_rows; ++row) {
        const double *weight = p->data + row * n_keys;
        const double *q = x->q->data + row * width;
        const double *k = x->k->data + row / n_queries * n_keys * width;
        int64_t best = 0;
        double score = 0;
        for (int64_t j = 1; j < n_keys; ++j)
            best = weight[j] > weight[best] ? j : best;
        for (int64_t d = 0; d < width; ++d)
            score += a->scale * q[d] * k[best * width + d];
        const bool sees = n_keys > 0 && weight[best] > 0;
        if (lens && sees && best >= lens->data[row / n_queries / p->dim[1]])
            score = -1e6;
        const double maximum = rows->data[2 * row], factor = rows->data[2 * row + 1];
        ck_assert_double_le(maximum, (sees ? score : 0) + relative);
        ck_assert_double_ge(maximum, (sees ? score - 8 : 0) - relative);
        ck_assert_double_eq_tol(sees ? exp(score - maximum) * factor : factor,
                                sees ? weight[best] : 0, relative * (sees ? weight[best] : 1));
    }
}

static void check(struct size n, struct ref_attention a, bool time_first)
{
    const struct inputs x = random_inputs(n);

    a.scale = usual_scale(&x);
    check_all(&x, &a, time_first, false);
}

// The simulator takes minutes for what others do in seconds: one layout, one density and one of
// several values are enough for it, and a head more does nothing new.
static bool left_out(int i)
{
    return i > 0 && on_simulator();
}

static int64_t heads(void)
{
    return on_simulator() ? 1 : 2;
}

LOOP_TEST(matches_the_reference, 0, 2)
{
    static const struct size sizes[] = {
        {1, 1, 1, 1, 1, 1},     {2, 3, 5, 7, 4, 6},      {1, 2, 33, 17, 16, 16},
        {1, 1, 3, 129, 5, 31},  {1, 1, 70, 40, 64, 64},  {1, 1, 50, 130, 17, 80},
        {1, 1, 7, 33, 100, 33}, {1, 1, 13, 9, 256, 256}, {1, 2, 1, 65, 31, 7},
        {2, 1, 65, 1, 3, 112},  {1, 1, 10, 7, 9, 170},
    };

    if (left_out(_i))
        return;
    for (size_t i = 0; i < COUNT_OF(sizes); ++i)
        check(sizes[i], (struct ref_attention){0}, _i == 1);
}

// Few queries and many keys: work-groups take parts of the keys in the GPU variant.  Of the last
// row's keys only those of the first part count; with a length of 0 all weigh the same.
TEST(keys_shared_out)
{
    const struct size n = {1, 1, 3, 530, 8, 20};
    struct host *lens = host_with(ATTNCL_I32, (const double[]){530, 0, 12}, DIMS(1, 3));

    check(n, (struct ref_attention){0}, false);
    check(n, (struct ref_attention){.causal = true, .window = 100}, true);
    check(n, (struct ref_attention){.valid_lens = lens}, false);
}

TEST(rows_saved_for_gradients)
{
    struct host *mask = host_mask(5, 0.1, DIMS(37, 135, 1)),
                *lens = host_with(ATTNCL_I32, (const double[]){0, 70}, DIMS(2));
    const struct ref_attention kinds[] = {{0}, {.causal = 1}, {.mask = mask}, {.valid_lens = lens}};

    for (int64_t j = 0; j < 135; ++j) // the first query sees nothing
        mask->data[j] = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); ++i) {
        const struct inputs x =
            random_inputs((struct size){i == 3 ? 2 : 1, heads(), 37, 135, 6, 5});
        struct ref_attention a = kinds[i];
        struct host *p = host_new(ATTNCL_F32, DIMS(x.q->dim[0], heads(), 37, 135));
        a.scale = usual_scale(&x);
        ref_attention_weights(&a, x.q, x.k, p);
        for (int want_weights = 0; want_weights < 2; ++want_weights) {
            const struct attention_fwd_params params = {.scale = (float)a.scale,
                                                        .causal = a.causal,
                                                        .layout = ATTNCL_LAYOUT_BATCH_FIRST,
                                                        .want_weights = want_weights};
            check_saved_rows(&x, &a, &params, p, 1e-5);
        }
        if (on_simulator())
            return;
    }
    // Keys shared out among work-groups in the GPU variant.
    const struct inputs x = random_inputs((struct size){1, 1, 3, 530, 8, 20});
    const struct ref_attention a = {.scale = usual_scale(&x)};
    const struct attention_fwd_params params = {.scale = (float)a.scale};
    struct host *p = host_new(ATTNCL_F32, DIMS(1, 1, 3, 530));
    ref_attention_weights(&a, x.q, x.k, p);
    check_saved_rows(&x, &a, &params, p, 1e-5);
}

// The weights that are asked for are those before dropout.
LOOP_TEST(dropout_of_weights, 0, 2)
{
    static const struct ref_dropout d = {0.3, 0x123456789u, 5, 77};
    struct host *lens = host_with(ATTNCL_I32, (const double[]){530, 0, 12}, DIMS(1, 3));

    if (left_out(_i))
        return;
    if (_i == 0) {
        check((struct size){2, 3, 5, 7, 4, 6}, (struct ref_attention){.dropout = d}, false);
        check((struct size){1, 2, 33, 17, 16, 16}, (struct ref_attention){.dropout = d}, true);
        check((struct size){1, 2, 70, 130, 32, 32}, (struct ref_attention){.dropout = d}, true);
        check((struct size){1, 1, 140, 140, 9, 10},
              (struct ref_attention){.causal = 1, .dropout = d}, false);
    } else {
        check((struct size){1, 1, 3, 530, 8, 20},
              (struct ref_attention){.valid_lens = lens, .dropout = d}, false);
        check((struct size){1, 1, 5, 9, 4, 6}, (struct ref_attention){.dropout = {1, 1, 1, 1}},
              true);
    }
}

TEST(views)
{
    const struct inputs x = random_inputs((struct size){2, 2, 35, 37, 16, 32});
    const struct ref_attention a = {.scale = 0.25};

    host_view(x.q);
    host_view(x.k);
    host_view(x.v);
    check_all(&x, &a, true, false);
}

TEST(ranges)
{
    static const struct {
        int64_t queries, keys;
        int causal;
        int64_t window;
    } cases[] = {
        {1, 1, 1, 0},   {40, 40, 1, 0},  {140, 140, 1, 0}, {5, 70, 1, 0},  {70, 5, 1, 0},
        {50, 50, 0, 1}, {50, 150, 0, 3}, {150, 150, 1, 7}, {60, 20, 0, 4}, {30, 30, 0, 1000},
    };

    for (size_t i = 0; i < COUNT_OF(cases); ++i) {
        const struct ref_attention a = {.causal = cases[i].causal, .window = cases[i].window};
        // 150 keys in a causal window meet what the other long ones do.
        if (on_simulator() && i != 7 && cases[i].queries * cases[i].keys > 5000)
            continue;
        check((struct size){1, heads(), cases[i].queries, cases[i].keys, 9, 10}, a, i % 2);
    }
}

// `mask` with its first and last query seeing nothing.
static struct host *with_empty_rows(struct host *mask)
{
    const int64_t n = mask->dim[1] * mask->dim[2];

    for (int64_t i = 0; i < n; ++i)
        mask->data[i] = mask->data[mask->count - 1 - i] = 0;
    return mask;
}

LOOP_TEST(masks, 0, 2)
{
    const double p = _i == 0 ? 0.5 : 0.01;
    const struct size n = {2, heads(), 37, 135, 6, 5};
    struct host *kinds[] = {
        with_empty_rows(host_mask(5, p, DIMS(37, 135, 1))),
        with_empty_rows(host_mask(6, p, DIMS(37, 135, 2))),
        host_mask(7, p, DIMS(1, 135, 2)),
        host_mask(8, p, DIMS(1, 135, 1)),
        host_new(ATTNCL_U8, DIMS(1, 135, 1)),
    };

    if (left_out(_i))
        return;
    for (size_t i = 0; i < COUNT_OF(kinds); ++i)
        check(n, (struct ref_attention){.mask = kinds[i]}, i % 2);
}

LOOP_TEST(lengths, 0, 2)
{
    const struct size n = {4, heads(), 29, 140, 6, 21};
    struct host *one = host_with(ATTNCL_I32, (const double[]){0, 1, 70, 1000}, DIMS(4)),
                *two = host_ints(9, -2, 150, DIMS(4, 29));

    if (left_out(_i))
        return;
    check(n, (struct ref_attention){.valid_lens = one}, _i == 1);
    check(n, (struct ref_attention){.valid_lens = two}, _i == 1);
}

// One channel and scale 1: scores are products of two floats, exact where the factors are.
static struct inputs lines(int64_t n_queries, int64_t n_keys, double q, double k, double k_step)
{
    struct inputs x = random_inputs((struct size){1, 1, n_queries, n_keys, 1, 3});

    for (int64_t i = 0; i < n_queries; ++i)
        x.q->data[i] = q;
    for (int64_t j = 0; j < n_keys; ++j)
        x.k->data[j] = k + k_step * (double)(j % 5);
    return x;
}

TEST(masked_scores_compete)
{
    static const double lowest[] = {-1e6 - 3, -1e6 + 1, -1e6 + 60, -1e6 + 86, -1e6 + 110, -2e6};

    for (size_t i = 0; i < COUNT_OF(lowest) && !left_out((int)i); ++i) {
        const struct inputs x = lines(3, 300, 1, lowest[i], 0.25);
        struct host *lens = host_with(ATTNCL_I32, (const double[]){2, 31, 299}, DIMS(1, 3));
        check_all(&x, &(struct ref_attention){.scale = 1, .valid_lens = lens}, false, true);
    }
}

TEST(extremes)
{
    const double q[] = {1e4, -1e4, 1e15}, k[] = {-1e4, 1e4, 1e15}, step[] = {1, -3, 0};

    for (int i = 0; i < 3 && !left_out(i); ++i) {
        const struct inputs x = lines(40, 70, q[i], k[i], step[i]);
        host_scale(x.v, 1e4);
        check_all(&x, &(struct ref_attention){.scale = 1, .causal = 1}, true, true);
        check_all(&x, &(struct ref_attention){.scale = 1}, true, true);
    }
}

// Scores that rise along the keys: slowly, so that a row keeps its first maximum, and so fast that
// it is replaced in later tiles, by less and by more than an exponential's range.
TEST(rising_scores)
{
    static const double rise[] = {1.0 / 128, 1.0 / 16, 0.5, 2};

    for (size_t i = 0; i < COUNT_OF(rise) && !left_out((int)i); ++i) {
        const struct inputs x = lines(7, 600, 1, 0, 0);
        const struct ref_attention a = {.scale = 1};
        struct host *p = host_new(ATTNCL_F32, DIMS(1, 1, 7, 600));
        for (int64_t j = 0; j < 600; ++j)
            x.k->data[j] = rise[i] * (double)j;
        check_all(&x, &a, false, true);
        ref_attention_weights(&a, x.q, x.k, p);
        check_saved_rows(&x, &a, &(struct attention_fwd_params){.scale = 1}, p, 1e-5);
    }
}

TEST(empty_is_fine)
{
    check((struct size){0, 2, 3, 4, 5, 6}, (struct ref_attention){0}, true);
    check((struct size){2, 2, 0, 4, 5, 6}, (struct ref_attention){0}, true);
    check((struct size){2, 2, 3, 0, 5, 6}, (struct ref_attention){0}, false); // no key: zeros
}

TEST(refusals)
{
    struct attention_fwd_params p = {.scale = 1};
    struct host *q = host_new(ATTNCL_F32, DIMS(2, 3, 4, 64));
    struct host *k = host_new(ATTNCL_F32, DIMS(2, 3, 5, 64));
    struct host *v = host_new(ATTNCL_F32, DIMS(2, 3, 5, 8));
    struct host *bad = host_new(ATTNCL_F32, DIMS(2, 3, 5, 48));
    struct host *mask = host_new(ATTNCL_U8, DIMS(4, 5, 3)), *flat = host_new(ATTNCL_U8, DIMS(4, 5));
    struct host *lens = host_new(ATTNCL_I32, DIMS(2, 5)), *y = host_new(ATTNCL_F32, DIMS(1));
    struct host *fine = host_new(ATTNCL_I32, DIMS(2));

#define REFUSED(status, words, ...)                                                                \
    ck_fails(run_op("attention_fwd", &p, HOSTS(__VA_ARGS__), HOSTS(y)), (status), (words))
    REFUSED(ATTNCL_ERR_SHAPE, "k has D = 48, q has D = 64", q, bad, v);
    REFUSED(ATTNCL_ERR_SHAPE, "v has S = 4, k has S = 5", q, k, q);
    REFUSED(ATTNCL_ERR_SHAPE, "axis 2 of the mask is 3, expected 1 or B = 2", q, k, v, mask);
    REFUSED(ATTNCL_ERR_SHAPE, "mask [4, 5] has 2 axes", q, k, v, flat);
    REFUSED(ATTNCL_ERR_SHAPE, "axis 1 of valid_lens is 5, expected T = 4", q, k, v, NULL, lens);
    REFUSED(ATTNCL_ERR_DTYPE, "valid_lens is F32", q, k, v, NULL, v);
    p.causal = 1;
    REFUSED(ATTNCL_ERR_ARGUMENT, "at most one of them, 2 are given", q, k, v, NULL, fine);
    p.window = -1;
    REFUSED(ATTNCL_ERR_ARGUMENT, "window is -1", q, k, v);
}
