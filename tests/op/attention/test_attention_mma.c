// SPDX-License-Identifier: MIT
// Attention by matrix instructions: which launches it takes, and, where local memory stands for the instruction, results,
// statistics of rows and the gradients that read them against the references (tests/ref/attention.c, attention_bwd.c).

#include <math.h>

#include "attncl/kinds.h"
#include "op/attention/attention_tiling.h"
#include "ref/ref.h"
#include "support/attention_gradient.h"
#include "support/compare.h"
#include "support/emulated_mma.h"
#include "support/launch_mock.h"
#include "support/op_test.h"

NO_DEVICE;

static struct {
    const char *refused; // a kernel that does not fit
    char launched[64];
} seen;

static bool fake_fits(void *user, const struct kspec *spec, size_t local, bool no_spills)
{
    (void)user;
    (void)local;
    (void)no_spills;
    return !seen.refused || strcmp(spec->kernel, seen.refused) != 0;
}

static attncl_status fake_launch(void *user, const struct kspec *spec, const struct grid *grid,
                                 size_t local_arg_bytes)
{
    (void)user;
    (void)local_arg_bytes;
    if (strstr(spec->kernel, "merge") == NULL)
        snprintf(seen.launched, sizeof seen.launched, "%s of %zu, %zu x %zu x %zu", spec->kernel,
                 grid->local[0], grid->groups[0], grid->groups[1], grid->groups[2]);
    return ATTNCL_OK;
}

struct launch_case {
    enum matrix_instruction mma;
    int queries, keys, width, value_width;
    double dropout;
    bool weights;
    const char *launched;
};

// Eight heads on a device of 16 compute units.
static const char *launched(const struct launch_case *c)
{
    static const struct launch_mock mock = {fake_fits, fake_launch, NULL};
    static const struct device_caps gpu = {.variant = VARIANT_GPU,
                                           .compute_units = 16,
                                           .max_group = 256,
                                           .local_bytes = 32768,
                                           .vector_width = 4};
    struct device_caps caps = gpu;
    struct attention_fwd_params params = {
        .scale = 1, .want_weights = c->weights, .dropout = {.p = c->dropout}};
    const int64_t dim[3][4] = {
        {1, 8, c->queries, c->width}, {1, 8, c->keys, c->width}, {1, 8, c->keys, c->value_width}};
    struct tensor_desc in[6] = {{0}}, out[3] = {{0}};
    struct span none[6] = {{0}};
    struct op_call call = {
        .sig = {.caps = &caps, .params = &params, .n_in = 6, .n_out = 3, .in = in, .out = out},
        .in = none,
        .out = none};
    struct launcher l = {.caps = &caps};

    caps.attention_mma = c->mma;
    for (int i = 0; i < 3; ++i)
        ck_ok(attncl__desc_make(ATTNCL_F32, 4, dim[i], &in[i]));
    if (c->dropout > 0)
        ck_ok(attncl__desc_make(ATTNCL_I32, 0, NULL, &in[5]));
    ck_ok(attncl__op_infer(&attncl__op_attention_fwd, &call.sig));
    launch_mock_set(&mock);
    ck_ok(attncl__op_attention_fwd.launch(&l, &call));
    launch_mock_set(NULL);
    return seen.launched;
}

static const struct launch_case launches[] = {
    {MMA_NONE, 200, 200, 64, 64, 0, false, "attention_gpu_fwd of 128, 8 x 4 x 1"},
    {MMA_PTX, 200, 200, 64, 64, 0, false, "attention_gpu_mma_fwd of 128, 8 x 4 x 1"},
    {MMA_MFMA, 200, 200, 64, 64, 0, false, "attention_gpu_mma_fwd of 256, 8 x 4 x 1"},
    {MMA_PTX, 32, 200, 16, 128, 0, false, "attention_gpu_mma_fwd of 128, 8 x 1 x 1"},
    {MMA_PTX, 32, 1200, 300, 16, 0, false, "attention_gpu_mma_fwd of 128, 8 x 1 x 4"},
    {MMA_PTX, 31, 200, 64, 64, 0, false, "attention_gpu_fwd of 128, 8 x 1 x 1"},
    {MMA_PTX, 200, 200, 15, 64, 0, false, "attention_gpu_fwd of 128, 8 x 4 x 1"},
    {MMA_PTX, 200, 200, 64, 15, 0, false, "attention_gpu_fwd of 128, 8 x 4 x 1"},
    {MMA_PTX, 200, 200, 64, 129, 0, false, "attention_gpu_fwd of 64, 8 x 13 x 1"},
    {MMA_PTX, 200, 200, 64, 64, 0.1, false, "attention_gpu_fwd of 128, 8 x 4 x 1"},
    {MMA_PTX, 200, 200, 64, 64, 0, true, "attention_gpu_fwd of 128, 8 x 4 x 1"},
};

TABLE_TEST(launches_by_device_and_shape, launches)
{
    seen.refused = NULL;
    ck_assert_str_eq(launched(&launches[_i]), launches[_i].launched);
}

TEST(what_does_not_fit_falls_back_to_fmas)
{
    seen.refused = "attention_gpu_mma_fwd";
    ck_assert_str_eq(launched(&launches[1]), launches[0].launched);
    seen.refused = NULL;
}

// -- on the device, emulated

FIXTURE_ONCE(device_up, device_down);

static bool emulate(enum matrix_instruction mma, enum gemm_precision precision)
{
    return emulate_mma("mma attention", mma, precision);
}

static const double unit = 6e-8; // one rounding

struct size {
    int64_t batch, heads, queries, keys, width, value_width;
};

struct problem {
    struct ref_attention a;
    struct host *q, *k, *v;
    bool time_first, exact; // exact: scores have no error
};

static struct problem problem_of(struct size n, struct ref_attention a, bool time_first)
{
    struct problem p = {.a = a, .time_first = time_first};

    p.q = host_random(1, DIMS(n.batch, n.heads, n.queries, n.width));
    p.k = host_random(2, DIMS(n.batch, n.heads, n.keys, n.width));
    p.v = host_random(3, DIMS(n.batch, n.heads, n.keys, n.value_width));
    if (a.scale == 0)
        p.a.scale = (float)(1 / sqrt((double)n.width));
    return p;
}

static struct host *like_y(const struct problem *p)
{
    const int64_t *d = p->q->dim;

    return host_new(ATTNCL_F32,
                    DIMS(d[p->time_first ? 2 : 0], d[p->time_first ? 0 : 2], d[1], p->v->dim[3]));
}

static struct attention_fwd_params params_of(const struct problem *p)
{
    return (struct attention_fwd_params){.scale = (float)p->a.scale,
                                         .causal = p->a.causal,
                                         .window = p->a.window,
                                         .layout = p->time_first ? ATTNCL_LAYOUT_TIME_FIRST
                                                                 : ATTNCL_LAYOUT_BATCH_FIRST};
}

// The rows' largest scores, and the weights that these have: 0 and 0 where a row sees nothing.
static void check_rows(const struct problem *p, const struct host *weights, const struct host *rows,
                       double relative)
{
    const int64_t n_queries = p->q->dim[2], n_keys = p->k->dim[2], width = p->q->dim[3];

    for (int64_t row = 0; row < rows->count / 2; ++row) {
        const double *weight = weights->data + row * n_keys;
        const int64_t head = row / n_queries;
        int64_t best = 0;
        double score = 0;
        for (int64_t j = 1; j < n_keys; ++j)
            best = weight[j] > weight[best] ? j : best;
        for (int64_t d = 0; d < width; ++d)
            score += p->a.scale * p->q->data[row * width + d] *
                     p->k->data[(head * n_keys + best) * width + d];
        if (p->a.valid_lens) {
            const struct host *lens = p->a.valid_lens;
            const int64_t b = head / p->q->dim[1], i = row % n_queries;
            if (best >= lens->data[lens->rank > 1 ? b * n_queries + i : b])
                score = -1e6;
        }
        const bool sees = weight[best] > 0;
        // A product of two floats is known to 2^-22.
        ck_assert_double_le(fabs(rows->data[2 * row] - (sees ? score : 0)),
                            relative + 4 * unit * fabs(score));
        ck_assert_double_le(fabs(rows->data[2 * row + 1] - weight[best]), relative * weight[best]);
    }
}

// The largest error of y, as a share of the largest value.
static double check_with(const struct problem *p, double relative)
{
    const struct attention_fwd_params params = params_of(p);
    const int64_t *d = p->q->dim;
    struct host *weights = host_new(ATTNCL_F32, DIMS(d[0], d[1], d[2], p->k->dim[2]));
    struct host *rows = host_new(ATTNCL_F32, DIMS(d[0], d[1], d[2], 2));
    struct host *want = like_y(p), *got = host_like(want);
    const double largest = host_largest(p->v);
    struct worst worst = {0};

    ref_attention_weights(&p->a, p->q, p->k, weights);
    ref_attention_mix(weights, p->v, p->time_first, want);
    ck_ok(run_op_saving(
        "attention_fwd", &params,
        HOSTS(p->q, p->k, p->v, (struct host *)p->a.mask, (struct host *)p->a.valid_lens),
        HOSTS(got, NULL, rows)));
    ck_near(got, want, 0, relative * largest);
    check_rows(p, weights, rows, relative);
    for (int64_t i = 0; i < got->count; ++i)
        worst_add(&worst, i, got->data[i], want->data[i], largest);
    return worst.ratio;
}

// As tests/op/attention/test_attention.c has it: a score is a sum of D products, a weight e^(2 score
// errors) times a few roundings, a result a sum of S terms.
static double check(const struct problem *p)
{
    const double width = (double)p->q->dim[3];
    const double score_error = p->exact ? 0
                                        : (width + 2) * unit * p->a.scale * width *
                                              host_largest(p->q) * host_largest(p->k);
    return check_with(p, 2 * score_error + ((double)p->k->dim[2] + 16) * unit);
}

static void check_random(struct size n, struct ref_attention a, bool time_first)
{
    const struct problem p = problem_of(n, a, time_first);
    check(&p);
}

// The simulator takes minutes for what others do in seconds.
static bool left_out(size_t i)
{
    return i > 0 && on_simulator();
}

BOTH_MMA_TEST(matches_the_reference)
{
    static const struct size sizes[] = {{1, 1, 35, 37, 17, 31},  {1, 2, 64, 32, 32, 32},
                                        {2, 3, 70, 40, 16, 16},  {1, 1, 129, 65, 64, 64},
                                        {1, 1, 50, 1, 20, 96},   {1, 1, 33, 130, 80, 68},
                                        {1, 1, 40, 50, 128, 128}};

    if (!emulate((enum matrix_instruction)_i, GEMM_F32))
        return;
    for (size_t i = 0; i < COUNT_OF(sizes) && !left_out(i); ++i)
        check_random(sizes[i], (struct ref_attention){0}, i % 2);
}

BOTH_MMA_TEST(views)
{
    const struct problem p =
        problem_of((struct size){2, 2, 35, 37, 16, 32}, (struct ref_attention){0}, true);

    if (!emulate((enum matrix_instruction)_i, GEMM_F32) || on_simulator())
        return;
    host_view(p.q);
    host_view(p.k);
    host_view(p.v);
    check(&p);
}

BOTH_MMA_TEST(ranges)
{
    static const struct {
        int64_t queries, keys;
        int causal;
        int64_t window;
    } cases[] = {{70, 75, 1, 0},   {140, 140, 1, 0}, {40, 100, 1, 0},  {90, 40, 1, 0},
                 {130, 130, 0, 1}, {50, 150, 0, 3},  {150, 150, 1, 7}, {60, 33, 0, 4}};

    if (!emulate((enum matrix_instruction)_i, GEMM_F32))
        return;
    for (size_t i = 0; i < COUNT_OF(cases) && !left_out(i); ++i)
        check_random((struct size){1, 1, cases[i].queries, cases[i].keys, 17, 18},
                     (struct ref_attention){.causal = cases[i].causal, .window = cases[i].window},
                     i % 2);
}

BOTH_MMA_TEST(masks)
{
    const struct size n = {2, 1, 37, 135, 16, 20};
    struct host *kinds[] = {
        host_mask(5, 0.5, DIMS(37, 135, 1)), host_mask(6, 0.01, DIMS(37, 135, 2)),
        host_mask(7, 0.5, DIMS(1, 135, 2)), host_new(ATTNCL_U8, DIMS(1, 135, 1))};

    if (!emulate((enum matrix_instruction)_i, GEMM_F32))
        return;
    for (int64_t j = 0; j < 135; ++j) // the first and the last query see nothing
        kinds[0]->data[j] = kinds[0]->data[kinds[0]->count - 1 - j] = 0;
    for (size_t i = 0; i < COUNT_OF(kinds) && !left_out(i); ++i)
        check_random(n, (struct ref_attention){.mask = kinds[i]}, i % 2);
}

BOTH_MMA_TEST(lengths)
{
    struct host *one = host_with(ATTNCL_I32, (const double[]){0, 1, 70, 1000}, DIMS(4)),
                *two = host_ints(9, -2, 150, DIMS(4, 37));

    if (!emulate((enum matrix_instruction)_i, GEMM_F32) || on_simulator())
        return;
    check_random((struct size){4, 1, 37, 140, 16, 21}, (struct ref_attention){.valid_lens = one},
                 true);
    check_random((struct size){4, 1, 37, 140, 16, 21}, (struct ref_attention){.valid_lens = two},
                 false);
}

// Work-groups take parts of the keys, a causal one of several parts none.
BOTH_MMA_TEST(keys_shared_out)
{
    const struct size n = {1, 1, 40, 1050, 16, 20};

    if (!emulate((enum matrix_instruction)_i, GEMM_F32) || on_simulator())
        return;
    test_context()->caps.compute_units = 8;
    check_random(n, (struct ref_attention){0}, false);
    check_random(n, (struct ref_attention){.causal = 1, .window = 100}, true);
}

// Scores of the given channel alone, exact where its factors are.
static struct problem lines(double q, double k, double k_step, struct ref_attention a)
{
    struct problem p = problem_of((struct size){1, 1, 40, 70, 16, 16}, a, true);

    p.exact = true;
    for (int64_t i = 0; i < p.q->count; ++i)
        p.q->data[i] = i % 16 == 5 ? q : 0;
    for (int64_t j = 0; j < p.k->count; ++j)
        p.k->data[j] = j % 16 == 5 ? k + k_step * (double)(j / 16 % 5) : 0;
    return p;
}

BOTH_MMA_TEST(extremes)
{
    static const double q[] = {1e4, -1e4, 1e15, 1, 1, 1}, k[] = {-1e4, 1e4, 1e15, 0, 0, -1e6 + 86},
                        step[] = {1, -3, 0, 0.5, 16, 0.25};

    if (!emulate((enum matrix_instruction)_i, GEMM_F32))
        return;
    for (size_t i = 0; i < COUNT_OF(q) && !left_out(i); ++i) {
        struct host *lens = host_with(ATTNCL_I32, (const double[]){31}, DIMS(1));
        struct problem p = lines(q[i], k[i], step[i], (struct ref_attention){.scale = 1});
        host_scale(p.v, 1e4);
        check(&p);
        p.a.causal = 1;
        check(&p);
        p.a.causal = 0;
        p.a.valid_lens = lens;
        if (i != 2)
            check(&p);
    }
}

// Of a row's values infinities and NaN come out as they went in.
BOTH_MMA_TEST(infinities_pass)
{
    struct problem p =
        problem_of((struct size){1, 1, 40, 70, 16, 16}, (struct ref_attention){0}, false);
    const struct attention_fwd_params params = params_of(&p);
    struct host *y = like_y(&p);

    if (!emulate((enum matrix_instruction)_i, GEMM_F32) || on_simulator())
        return;
    for (int64_t j = 0; j < 70; ++j)
        p.v->data[16 * j] = 1;
    p.v->data[16 * 20 + 1] = INFINITY;
    p.v->data[16 * 20 + 2] = -INFINITY;
    p.v->data[16 * 20 + 3] = NAN;
    ck_ok(run_op("attention_fwd", &params, HOSTS(p.q, p.k, p.v), HOSTS(y)));
    for (int64_t i = 0; i < 40; ++i) {
        ck_assert_double_eq_tol(y->data[16 * i], 1, 1e-5);
        ck_assert(y->data[16 * i + 1] == INFINITY && y->data[16 * i + 2] == -INFINITY);
        ck_assert(isnan(y->data[16 * i + 3]));
    }
}

// Three terms are as exact as floats; rounded factors show that the instruction is what computes.
TEST(precisions)
{
    static const double least[N_GEMM_PRECISIONS] = {0, 1e-5, 1e-4};
    static const double most[N_GEMM_PRECISIONS] = {1e-6, 0x1p-7, 0x1p-4};
    const struct problem p =
        problem_of((struct size){1, 1, 64, 64, 64, 64}, (struct ref_attention){0}, false);

    for (int i = GEMM_F32; i < N_GEMM_PRECISIONS && !left_out((size_t)i); ++i) {
        if (!emulate(MMA_PTX, (enum gemm_precision)i))
            return;
        const double error = check_with(&p, i == GEMM_F32 ? 1e-5 : 0x1p-4);
        ck_assert_double_ge(error, least[i]);
        ck_assert_double_le(error, most[i]);
    }
}

// Those by FMAs.
BOTH_MMA_TEST(gradients_read_the_statistics)
{
    const struct attention_size n = {2, 1, 37, 70, 17, 20};
    struct host *lens = host_with(ATTNCL_I32, (const double[]){0, 50}, DIMS(2));
    const struct ref_attention kinds[] = {
        {.causal = 1}, {.mask = host_mask(6, 0.05, DIMS(37, 70, 2))}, {.valid_lens = lens}};

    if (!emulate((enum matrix_instruction)_i, GEMM_F32) || on_simulator())
        return;
    for (size_t i = 0; i < COUNT_OF(kinds); ++i) {
        const struct attention_problem p = attention_problem_random(n, kinds[i], false, false);
        attention_problem_check(&p, 1e-5);
    }
}
