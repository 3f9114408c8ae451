// SPDX-License-Identifier: MIT
// Attention and its gradients by matrix instructions: which launches take them, and, where local memory stands for the
// instruction, results, statistics of rows and gradients against the references (tests/ref/attention.c, attention_bwd.c).

#include <math.h>

#include "attncl/kinds.h"
#include "op/attention/attention.h"
#include "support/attention_gradient.h"
#include "support/compare.h"
#include "support/emulated_mma.h"
#include "support/launch_mock.h"
#include "support/op_test.h"

NO_DEVICE;

static struct {
    const char *refused; // in the name or the defines of kernels that do not fit
    char launched[256];
} seen;

static bool fake_fits(const struct kspec *spec, bool no_spills)
{
    (void)no_spills;
    return !seen.refused ||
           (!strstr(spec->kernel, seen.refused) && !strstr(spec->defines, seen.refused));
}

static attncl_status fake_launch(const struct kspec *spec, const struct grid *grid)
{
    const size_t used = strlen(seen.launched);
    const char *variant = strstr(spec->kernel, "gpu");
    if (variant && !strstr(variant, "merge") && !strstr(variant, "delta"))
        snprintf(seen.launched + used, sizeof seen.launched - used, "%s%s of %zu, %zu x %zu x %zu",
                 used ? "; " : "", variant, grid->local[0], grid->groups[0], grid->groups[1],
                 grid->groups[2]);
    return ATTNCL_OK;
}

struct launch_case {
    enum matrix_instruction mma;
    int queries, keys, width, value_width;
    const char *launched; // of gradients for dk and dv, for dq
    double dropout;
    bool weights, causal;
};

// Eight heads, or two with gradients, on a device of which a buffer holds 16 MiB of ds at most.
static void check_launches(const struct launch_case *c, bool backward)
{
    static const struct launch_mock mock = {fake_fits, fake_launch};
    const struct device_caps caps = {.variant = VARIANT_GPU,
                                     .compute_units = 16,
                                     .max_group = 256,
                                     .local_bytes = 32768,
                                     .max_buffer_bytes = 64 << 20,
                                     .vector_width = 4,
                                     .attention_mma = c->mma,
                                     .attention_bwd_mma = c->mma};
    const struct attention_bwd_params params = {{.scale = 1,
                                                 .causal = c->causal,
                                                 .want_weights = c->weights,
                                                 .dropout = {.p = c->dropout}}};
    const struct op_class *cls = backward ? &attncl__op_attention_bwd : &attncl__op_attention_fwd;
    const int64_t heads = backward ? 2 : 8;
    const int64_t q[] = {1, heads, c->queries, c->width}, k[] = {1, heads, c->keys, c->width},
                  v[] = {1, heads, c->keys, c->value_width},
                  y[] = {c->queries, 1, heads, c->value_width}, rows[] = {1, heads, c->queries, 2};
    const int64_t *const dims[] = {q, k, v, NULL, NULL, NULL, NULL, y, NULL, rows, y, NULL, NULL};
    enum { N_FWD = 9, N_BWD = COUNT_OF(dims) };
    struct tensor_desc in[N_BWD] = {{0}}, out[3] = {{0}};
    struct span none[N_BWD] = {{0}};
    struct op_call call = {.sig = {.caps = &caps,
                                   .params = &params, // which begin with the forward op's
                                   .n_in = backward ? N_BWD : N_FWD,
                                   .n_out = 3,
                                   .in = in,
                                   .out = out},
                           .in = none,
                           .out = none};
    struct launcher l = {.caps = &caps};

    seen.launched[0] = '\0';
    for (int i = 0; i < (backward ? N_BWD : N_FWD - 2); ++i)
        if (dims[i])
            ck_ok(attncl__desc_make(ATTNCL_F32, 4, dims[i], &in[i]));
    if (c->dropout > 0)
        ck_ok(attncl__desc_make(ATTNCL_I32, 0, NULL, &in[N_FWD - 1]));
    ck_ok(attncl__op_infer(cls, &call.sig));
    launch_mock_set(&mock);
    ck_ok(cls->launch(&l, &call));
    launch_mock_set(NULL);
    ck_assert_str_eq(seen.launched, c->launched);
}

static const struct launch_case forward[] = {
    {MMA_NONE, 200, 200, 64, 64, "gpu_fwd of 128, 8 x 7 x 1", 0, false, false},
    {MMA_PTX, 200, 200, 64, 64, "gpu_mma_fwd of 128, 8 x 4 x 1", 0, false, false},
    {MMA_MFMA, 200, 200, 64, 64, "gpu_mma_fwd of 256, 8 x 4 x 1", 0, false, false},
    {MMA_PTX, 32, 200, 16, 128, "gpu_mma_fwd of 128, 8 x 1 x 1", 0, false, false},
    {MMA_PTX, 32, 1200, 300, 16, "gpu_mma_fwd of 128, 8 x 1 x 4", 0, false, false},
    {MMA_PTX, 31, 200, 64, 64, "gpu_fwd of 128, 8 x 1 x 1", 0, false, false},
    {MMA_PTX, 200, 200, 15, 64, "gpu_fwd of 128, 8 x 7 x 1", 0, false, false},
    {MMA_PTX, 200, 200, 64, 15, "gpu_fwd of 128, 8 x 7 x 1", 0, false, false},
    {MMA_PTX, 200, 200, 64, 129, "gpu_fwd of 64, 8 x 13 x 1", 0, false, false},
    {MMA_PTX, 200, 200, 64, 64, "gpu_fwd of 128, 8 x 7 x 1", 0.1, false, false},
    {MMA_PTX, 200, 200, 64, 64, "gpu_fwd of 128, 8 x 7 x 1; gpu_fwd of 128, 8 x 7 x 1", 0, true,
     false},
    // Four work-groups for each of 16 multiprocessors where the last has the most to do, else two.
    {MMA_NONE, 200, 512, 64, 64, "gpu_fwd of 128, 8 x 7 x 1", 0, false, false},
    {MMA_NONE, 200, 512, 64, 64, "gpu_fwd of 128, 8 x 7 x 2", 0, false, true},
};

TABLE_TEST(launches_by_device_and_shape, forward)
{
    check_launches(&forward[_i], false);
}

static const struct launch_case backward[] = {
    {MMA_NONE, 200, 150, 64, 64, "gpu of 128, 2 x 5 x 1; gpu of 128, 2 x 7 x 1", 0, false, false},
    {MMA_PTX, 200, 150, 64, 64, "gpu_mma of 128, 2 x 3 x 1; gpu_mma of 128, 2 x 4 x 1", 0, false,
     false},
    {MMA_MFMA, 200, 150, 64, 64, "gpu_mma of 256, 2 x 3 x 1; gpu_mma of 256, 2 x 4 x 1", 0, false,
     false},
    {MMA_PTX, 32, 32, 16, 128, "gpu_mma of 128, 2 x 1 x 2; gpu_mma of 128, 2 x 1 x 1", 0, false,
     false},
    {MMA_PTX, 200, 150, 128, 16, "gpu_mma of 128, 2 x 3 x 2; gpu_mma of 128, 2 x 4 x 1", 0, false,
     false},
    {MMA_MFMA, 200, 150, 100, 128, "gpu_mma of 256, 2 x 3 x 1; gpu_mma of 256, 2 x 4 x 1", 0, false,
     false},
    // ds is computed again.
    {MMA_PTX, 200, 32768, 128, 64, "gpu_mma of 128, 2 x 512 x 2; gpu_mma of 128, 2 x 4 x 2", 0,
     false, false},
    {MMA_PTX, 31, 150, 64, 64, "gpu of 128, 2 x 5 x 1; gpu of 128, 2 x 1 x 1", 0, false, false},
    {MMA_PTX, 200, 31, 64, 64, "gpu of 128, 2 x 1 x 1; gpu of 128, 2 x 7 x 1", 0, false, false},
    {MMA_PTX, 200, 150, 15, 64, "gpu of 128, 2 x 5 x 1; gpu of 128, 2 x 7 x 1", 0, false, false},
    {MMA_PTX, 200, 150, 64, 15, "gpu of 128, 2 x 5 x 1; gpu of 128, 2 x 7 x 1", 0, false, false},
    {MMA_PTX, 200, 150, 129, 64, "gpu of 128, 2 x 5 x 2; gpu of 128, 2 x 7 x 2", 0, false, false},
    {MMA_PTX, 200, 150, 64, 129, "gpu of 128, 2 x 5 x 2; gpu of 128, 2 x 7 x 1", 0, false, false},
};

TABLE_TEST(launches_of_gradients, backward)
{
    check_launches(&backward[_i], true);
}

// A pass for itself: what the other one keeps is the same.
TEST(what_does_not_fit_falls_back_to_fmas)
{
    struct launch_case c = forward[1];

    seen.refused = "attention_gpu_mma_fwd";
    c.launched = forward[0].launched;
    check_launches(&c, false);
    c = backward[1];
    seen.refused = "MMA 1";
    c.launched = backward[0].launched;
    check_launches(&c, true);
    seen.refused = "OUTPUT 1";
    c.launched = "gpu of 128, 2 x 5 x 1; gpu_mma of 128, 2 x 4 x 1";
    check_launches(&c, true);
    seen.refused = NULL;
}

// -- on the device, emulated

FIXTURE_ONCE(device_up, device_down);

static const double unit = 6e-8; // one rounding

// The rows' largest scores, and the weights that these have: 0 and 0 where a row sees nothing.
static void check_rows(const struct attention_problem *p, const struct host *weights,
                       const struct host *rows, double relative)
{
    const struct host *q = p->x.q, *k = p->x.k, *lens = p->a.valid_lens;
    const int64_t n_queries = q->dim[2], n_keys = k->dim[2], width = q->dim[3];

    for (int64_t row = 0; row < rows->count / 2; ++row) {
        const double *weight = weights->data + row * n_keys;
        const int64_t head = row / n_queries, kv_head = head * k->dim[1] / q->dim[1];
        int64_t best = 0;
        double score = 0;
        for (int64_t j = 1; j < n_keys; ++j)
            best = weight[j] > weight[best] ? j : best;
        for (int64_t d = 0; d < width; ++d)
            score += q->data[row * width + d] * k->data[(kv_head * n_keys + best) * width + d];
        const int64_t b = head / q->dim[1], i = row % n_queries;
        score = ref_attention_score(&p->a, score) +
                ref_attention_bias(&p->a, b, head % q->dim[1], i, best, n_keys - n_queries);
        if (lens) {
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
static double check_within(const struct attention_problem *p, double relative)
{
    struct host *weights = attention_problem_weights(p), *rows = attention_problem_rows(p->x.q);
    struct host *want = host_like(p->x.g), *got = host_like(want);
    const double largest = host_largest(p->x.v);
    struct worst worst = {0};

    attention_problem_forward(p, want, weights);
    attention_problem_run(p, got, rows);
    ck_near(got, want, 0, relative * largest);
    check_rows(p, weights, rows, relative);
    for (int64_t i = 0; i < got->count; ++i)
        worst_add(&worst, i, got->data[i], want->data[i], largest);
    return worst.ratio;
}

// As tests/op/attention/test_attention.c has it: a score is a sum of D products, a weight e^(2 score
// errors) times a few roundings, a result a sum of S terms.
static void check_forward(const struct attention_problem *p, bool exact)
{
    const double width = (double)p->x.q->dim[3];
    const double score_error = exact ? 0
                                     : (width + 2) * unit * p->a.scale * width *
                                           host_largest(p->x.q) * host_largest(p->x.k);
    check_within(p, 2 * score_error + ((double)p->x.k->dim[2] + 16) * unit);
}

// Gradients, as tests/op/attention/test_attention_bwd.c has them, read the statistics of the rows.
static void check(const struct attention_problem *p)
{
    check_forward(p, false);
    attention_problem_check(p, 1e-5);
}

static void check_random(struct attention_size n, struct ref_attention a, bool time_first,
                         bool weights)
{
    const struct attention_problem p = attention_problem_random(n, a, time_first, weights);
    check(&p);
}

// Smoke runs take every third case by NVIDIA's instructions, every fourth by AMD's; the simulator, which takes minutes for
// what others do in seconds, the first alone.
static bool is_left_out(size_t i, int mma)
{
    if (on_simulator() || test_has_full_sizes())
        return on_simulator() && i > 0;
    return mma == MMA_PTX ? i % 3 != 1 : i % 4 != 0;
}

BOTH_MMA_TEST(matches_the_reference)
{
    static const struct attention_size sizes[] = {
        {1, 1, 35, 37, 17, 31},  {1, 2, 64, 32, 32, 32},  {2, 3, 70, 40, 16, 20},
        {1, 1, 129, 65, 64, 64}, {1, 1, 50, 1, 20, 96},   {1, 1, 33, 130, 80, 68},
        {1, 1, 33, 130, 30, 17}, {1, 1, 40, 50, 68, 128}, {1, 1, 40, 50, 128, 128},
        {1, 1, 64, 64, 128, 40}};

    if (!emulate_mma(_i, GEMM_F32))
        return;
    for (size_t i = 0; i < COUNT_OF(sizes); ++i)
        if (!is_left_out(i, _i))
            check_random(sizes[i], (struct ref_attention){0}, i % 2, i % 3 == 1);
}

BOTH_MMA_TEST(soft_cap)
{
    if (emulate_mma(_i, GEMM_F32) && !is_left_out(4, _i))
        check_random((struct attention_size){1, 1, 50, 45, 20, 32},
                     (struct ref_attention){.softcap = 0.7, .causal = 1}, true, false);
}

BOTH_MMA_TEST(biases)
{
    struct host *slopes = host_random(7, DIMS(2));

    if (!emulate_mma(_i, GEMM_F32) || is_left_out(4, _i))
        return;
    check_random((struct attention_size){2, 2, 50, 45, 20, 32},
                 (struct ref_attention){.bias = host_random(6, DIMS(1, 2, 50, 45)),
                                        .softcap = 0.7,
                                        .mask = host_mask(8, 0.5, DIMS(50, 45, 1))},
                 true, false);
    check_random((struct attention_size){2, 2, 50, 70, 20, 32},
                 (struct ref_attention){.slopes = slopes,
                                        .bias = host_random(6, DIMS(2, 1, 1, 70)),
                                        .mask = host_mask(8, 0.5, DIMS(1, 70, 2)),
                                        .valid_lens = host_ints(9, -2, 75, DIMS(2)),
                                        .hard_lens = true},
                 false, false);
}

BOTH_MMA_TEST(views)
{
    struct attention_problem p = attention_problem_random(
        (struct attention_size){2, 2, 35, 37, 16, 32}, (struct ref_attention){0}, true, false);

    if (!emulate_mma(_i, GEMM_F32) || is_left_out(1, _i))
        return;
    p.x.k = host_random(2, DIMS(2, 1, 37, 16)); // both heads'
    p.x.v = host_random(3, DIMS(2, 1, 37, 32));
    host_view(p.x.q);
    host_view(p.x.k);
    host_view(p.x.v);
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

    if (!emulate_mma(_i, GEMM_F32))
        return;
    for (size_t i = 0; i < COUNT_OF(cases); ++i)
        if (!is_left_out(i, _i))
            check_random(
                (struct attention_size){1, 1, cases[i].queries, cases[i].keys, 17, 18},
                (struct ref_attention){.causal = cases[i].causal, .window = cases[i].window}, i % 2,
                i % 3 == 1);
}

BOTH_MMA_TEST(masks)
{
    const struct attention_size n = {2, 1, 37, 135, 17, 19};
    struct host *kinds[] = {
        host_mask(5, 0.5, DIMS(37, 135, 1)), host_mask(6, 0.01, DIMS(37, 135, 2)),
        host_mask(7, 0.5, DIMS(1, 135, 2)), host_new(ATTNCL_U8, DIMS(1, 135, 1))};

    if (!emulate_mma(_i, GEMM_F32))
        return;
    for (int64_t j = 0; j < 135; ++j) // the first and the last query see nothing
        kinds[0]->data[j] = kinds[0]->data[kinds[0]->count - 1 - j] = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); ++i)
        if (!is_left_out(i, _i))
            check_random(n, (struct ref_attention){.mask = kinds[i]}, i % 2, i % 3 == 0);
}

BOTH_MMA_TEST(lengths)
{
    struct host *one = host_with(ATTNCL_I32, (const double[]){0, 1, 70, 1000}, DIMS(4)),
                *two = host_ints(9, -2, 150, DIMS(4, 37));
    const struct attention_size n = {4, 1, 37, 140, 17, 21};

    if (!emulate_mma(_i, GEMM_F32) || on_simulator())
        return;
    if (!is_left_out(0, _i))
        check_random(n, (struct ref_attention){.valid_lens = one}, true, true);
    if (!is_left_out(1, _i))
        check_random(n, (struct ref_attention){.valid_lens = two}, false, false);
}

BOTH_MMA_TEST(dropout_of_weights)
{
    static const struct ref_dropout d = {0.3, 0x123456789u, 5, 77};

    if (!emulate_mma(_i, GEMM_F32))
        return;
    check_random((struct attention_size){1, 1, 50, 67, 17, 20},
                 (struct ref_attention){.dropout = d}, false, false);
    if (on_simulator())
        return;
    check_random((struct attention_size){2, 2, 70, 130, 18, 17},
                 (struct ref_attention){.dropout = d, .causal = 1}, true, true);
}

// Of three heads ds is kept for two at a time; of one it is not.
BOTH_MMA_TEST(kept_scores)
{
    enum { N = 101, PITCH = 104 };
    static const struct ref_dropout d = {0.3, 0x123456789u, 5, 77};
    const struct attention_size three = {1, 3, N, N, 17, 18}, one = {1, 1, N, N, 17, 18};
    const uint64_t of_head = 4 * sizeof(float[PITCH][N]);

    if (!emulate_mma(_i, GEMM_F32) || on_simulator())
        return;
    struct device_caps *caps = &test_context()->caps;
    const uint64_t saved = caps->max_buffer_bytes;
    if (caps->local_bytes < 32 << 10) // for another kernel, which keeps all scores
        return;
    caps->max_buffer_bytes = 2 * of_head + 100;
    check_random(three, (struct ref_attention){0}, true, false);
    caps->max_buffer_bytes = of_head - 100;
    if (!is_left_out(1, _i))
        check_random(one, (struct ref_attention){.causal = 1}, false, true);
    if (!is_left_out(2, _i))
        check_random(one, (struct ref_attention){.dropout = d}, true, false);
    if (!is_left_out(3, _i))
        check_random(one, (struct ref_attention){.valid_lens = host_ints(9, -2, 120, DIMS(1, N))},
                     true, false);
    caps->max_buffer_bytes = saved;
}

// Work-groups take parts of the keys, a causal one of several parts none.
BOTH_MMA_TEST(keys_shared_out)
{
    const struct attention_size n = {1, 1, 40, 1050, 16, 20};

    if (!emulate_mma(_i, GEMM_F32) || on_simulator())
        return;
    test_context()->caps.compute_units = 8;
    check_random(n, (struct ref_attention){0}, false, false);
    check_random(n, (struct ref_attention){.causal = 1, .window = 100}, true, false);
}

// Scores of the given channel alone, exact where its factors are.
static struct attention_problem lines(double q, double k, double k_step)
{
    struct attention_problem p =
        attention_problem_random((struct attention_size){1, 1, 40, 70, 16, 16},
                                 (struct ref_attention){.scale = 1}, true, false);

    for (int64_t i = 0; i < p.x.q->count; ++i)
        p.x.q->data[i] = i % 16 == 5 ? q : 0;
    for (int64_t j = 0; j < p.x.k->count; ++j)
        p.x.k->data[j] = j % 16 == 5 ? k + k_step * (double)(j / 16 % 5) : 0;
    return p;
}

BOTH_MMA_TEST(extremes)
{
    static const double q[] = {1e4, -1e4, 1e15, 1, 1, 1}, k[] = {-1e4, 1e4, 1e15, 0, 0, -1e6 + 86},
                        step[] = {1, -3, 0, 0.5, 16, 0.25};

    if (!emulate_mma(_i, GEMM_F32))
        return;
    for (size_t i = 0; i < COUNT_OF(q); ++i) {
        if (is_left_out(i, _i))
            continue;
        struct attention_problem p = lines(q[i], k[i], step[i]);
        host_scale(p.x.v, 1e4);
        check_forward(&p, true);
        p.a.causal = 1;
        check_forward(&p, true);
        p.a.causal = 0;
        p.a.valid_lens = host_with(ATTNCL_I32, (const double[]){31}, DIMS(1));
        if (i != 2)
            check_forward(&p, true);
    }
}

// Of a row's values infinities and NaN come out as they went in.
BOTH_MMA_TEST(infinities_pass)
{
    struct attention_problem p = attention_problem_random(
        (struct attention_size){1, 1, 40, 70, 16, 16}, (struct ref_attention){0}, false, false);
    struct host *y = host_like(p.x.g);

    if (!emulate_mma(_i, GEMM_F32) || on_simulator())
        return;
    for (int64_t j = 0; j < 70; ++j)
        p.x.v->data[16 * j] = 1;
    p.x.v->data[16 * 20 + 1] = INFINITY;
    p.x.v->data[16 * 20 + 2] = -INFINITY;
    p.x.v->data[16 * 20 + 3] = NAN;
    attention_problem_run(&p, y, attention_problem_rows(p.x.q));
    for (int64_t i = 0; i < 40; ++i) {
        ck_assert_double_eq_tol(y->data[16 * i], 1, 1e-5);
        ck_assert(y->data[16 * i + 1] == INFINITY && y->data[16 * i + 2] == -INFINITY);
        ck_assert(isnan(y->data[16 * i + 3]));
    }
}

// Three terms are as exact as floats; rounded factors show that the instruction is what computes.
TEST(precisions)
{
    static const double least[N_GEMM_PRECISIONS][2] = {{0, 0}, {1e-5, 2e-5}, {1e-4, 2e-4}};
    static const double most[N_GEMM_PRECISIONS] = {1e-6, 0x1p-7, 0x1p-4};
    const struct attention_problem p = attention_problem_random(
        (struct attention_size){1, 1, 64, 64, 64, 64}, (struct ref_attention){0}, false, false);

    for (int i = GEMM_F32; i < N_GEMM_PRECISIONS && (i == 0 || !on_simulator()); ++i) {
        if (!emulate_mma(MMA_PTX, (enum gemm_precision)i))
            return;
        const double errors[] = {check_within(&p, i == GEMM_F32 ? 1e-5 : 0x1p-4),
                                 attention_problem_check(&p, 0x1p-4)};
        for (int k = 0; k < 2; ++k) {
            ck_assert_double_ge(errors[k], least[i][k]);
            ck_assert_double_le(errors[k], i == GEMM_F32 && k == 1 ? 2e-6 : most[i]);
        }
    }
}
