// SPDX-License-Identifier: MIT
// Gradients of attention by matrix instructions: which passes take them, and, where local memory stands for the
// instruction, gradients against the reference (tests/ref/attention_bwd.c).

#include <math.h>

#include "attncl/kinds.h"
#include "op/attention/attention_tiling.h"
#include "support/attention_gradient.h"
#include "support/emulated_mma.h"
#include "support/launch_mock.h"
#include "support/op_test.h"

NO_DEVICE;

static struct {
    const char *refused; // a define of kernels that do not fit
    char launched[256];
} seen;

static bool fake_fits(void *user, const struct kspec *spec, size_t local, bool no_spills)
{
    (void)user;
    (void)local;
    (void)no_spills;
    return !seen.refused || strstr(spec->defines, seen.refused) == NULL;
}

static attncl_status fake_launch(void *user, const struct kspec *spec, const struct grid *grid,
                                 size_t local_arg_bytes)
{
    const size_t used = strlen(seen.launched);
    (void)user;
    (void)local_arg_bytes;
    if (strstr(spec->kernel, "delta") == NULL)
        snprintf(seen.launched + used, sizeof seen.launched - used, "%s%s of %zu, %zu x %zu x %zu",
                 used ? "; " : "", spec->kernel + strlen("attention_bwd_gpu"), grid->local[0],
                 grid->groups[0], grid->groups[1], grid->groups[2]);
    return ATTNCL_OK;
}

struct launch_case {
    enum matrix_instruction mma;
    int queries, keys, width, value_width;
    const char *launched; // for dk and dv, for dq
};

// Two heads on a device of which a buffer holds 16 MiB of ds at most.
static void check_launches(const struct launch_case *c)
{
    static const struct launch_mock mock = {fake_fits, fake_launch, NULL};
    const struct device_caps caps = {.variant = VARIANT_GPU,
                                     .compute_units = 16,
                                     .max_group = 256,
                                     .local_bytes = 32768,
                                     .max_buffer_bytes = 64 << 20,
                                     .vector_width = 4,
                                     .attention_bwd_mma = c->mma};
    const struct attention_bwd_params params = {{.scale = 1}};
    const int64_t q[] = {1, 2, c->queries, c->width}, k[] = {1, 2, c->keys, c->width},
                  v[] = {1, 2, c->keys, c->value_width}, y[] = {c->queries, 1, 2, c->value_width},
                  rows[] = {1, 2, c->queries, 2};
    const int64_t *const dims[] = {q, k, v, NULL, NULL, y, NULL, rows, y, NULL, NULL};
    enum { N_IN = COUNT_OF(dims) };
    struct tensor_desc in[N_IN] = {{0}}, out[3] = {{0}};
    struct span none[N_IN] = {{0}};
    struct op_call call = {
        .sig = {.caps = &caps, .params = &params, .n_in = N_IN, .n_out = 3, .in = in, .out = out},
        .in = none,
        .out = none};
    struct launcher l = {.caps = &caps};

    seen.launched[0] = '\0';
    for (int i = 0; i < N_IN; ++i)
        if (dims[i])
            ck_ok(attncl__desc_make(ATTNCL_F32, 4, dims[i], &in[i]));
    ck_ok(attncl__op_infer(&attncl__op_attention_bwd, &call.sig));
    launch_mock_set(&mock);
    ck_ok(attncl__op_attention_bwd.launch(&l, &call));
    launch_mock_set(NULL);
    ck_assert_str_eq(seen.launched, c->launched);
}

static const struct launch_case launches[] = {
    {MMA_NONE, 200, 150, 64, 64, " of 128, 2 x 5 x 1;  of 128, 2 x 7 x 1"},
    {MMA_PTX, 200, 150, 64, 64, "_mma of 128, 2 x 3 x 1; _mma of 128, 2 x 4 x 1"},
    {MMA_MFMA, 200, 150, 64, 64, "_mma of 256, 2 x 3 x 1; _mma of 256, 2 x 4 x 1"},
    {MMA_PTX, 32, 32, 16, 128, "_mma of 128, 2 x 1 x 2; _mma of 128, 2 x 1 x 1"},
    {MMA_PTX, 200, 150, 128, 16, "_mma of 128, 2 x 3 x 2; _mma of 128, 2 x 4 x 1"},
    {MMA_MFMA, 200, 150, 100, 128, "_mma of 256, 2 x 3 x 1; _mma of 256, 2 x 4 x 1"},
    // ds is computed again.
    {MMA_PTX, 200, 32768, 128, 64, "_mma of 128, 2 x 512 x 2; _mma of 128, 2 x 4 x 2"},
    {MMA_PTX, 31, 150, 64, 64, " of 128, 2 x 5 x 1;  of 128, 2 x 1 x 1"},
    {MMA_PTX, 200, 31, 64, 64, " of 128, 2 x 1 x 1;  of 128, 2 x 7 x 1"},
    {MMA_PTX, 200, 150, 15, 64, " of 128, 2 x 5 x 1;  of 128, 2 x 7 x 1"},
    {MMA_PTX, 200, 150, 64, 15, " of 128, 2 x 5 x 1;  of 128, 2 x 7 x 1"},
    {MMA_PTX, 200, 150, 129, 64, " of 128, 2 x 5 x 2;  of 128, 2 x 7 x 2"},
    {MMA_PTX, 200, 150, 64, 129, " of 128, 2 x 5 x 2;  of 128, 2 x 7 x 1"},
};

TABLE_TEST(launches_by_device_and_shape, launches)
{
    seen.refused = NULL;
    check_launches(&launches[_i]);
}

// A pass for itself: what the other one keeps is the same.
TEST(what_does_not_fit_falls_back_to_fmas)
{
    struct launch_case c = launches[1];

    seen.refused = "MMA 1";
    c.launched = launches[0].launched;
    check_launches(&c);
    seen.refused = "OUTPUT 1";
    c.launched = " of 128, 2 x 5 x 1; _mma of 128, 2 x 4 x 1";
    check_launches(&c);
    seen.refused = NULL;
}

// -- on the device, emulated

FIXTURE_ONCE(device_up, device_down);

// As tests/op/attention/test_attention_bwd.c has it.
static const double tolerance = 1e-5;

static bool emulate(int mma, enum gemm_precision precision)
{
    return emulate_mma("mma attention gradients", (enum matrix_instruction)mma, precision);
}

static void check_random(struct attention_size n, struct ref_attention a, bool time_first,
                         bool weights)
{
    const struct attention_problem p = attention_problem_random(n, a, time_first, weights);
    attention_problem_check(&p, tolerance);
}

// The simulator takes minutes for what others do in seconds.
static bool left_out(size_t i)
{
    return i > 0 && on_simulator();
}

BOTH_MMA_TEST(matches_the_reference)
{
    static const struct attention_size sizes[] = {
        {1, 1, 35, 37, 17, 31},  {2, 2, 70, 40, 16, 20},  {1, 1, 129, 65, 32, 32},
        {1, 1, 33, 130, 30, 17}, {1, 1, 40, 50, 68, 128}, {1, 1, 64, 64, 128, 40},
    };

    if (!emulate(_i, GEMM_F32))
        return;
    for (size_t i = 0; i < COUNT_OF(sizes) && !left_out(i); ++i)
        check_random(sizes[i], (struct ref_attention){0}, i % 2, i % 3 == 1);
}

BOTH_MMA_TEST(views)
{
    struct attention_problem p = attention_problem_random(
        (struct attention_size){2, 2, 35, 37, 16, 32}, (struct ref_attention){0}, true, false);

    if (!emulate(_i, GEMM_F32) || on_simulator())
        return;
    host_view(p.x.q);
    host_view(p.x.k);
    host_view(p.x.v);
    attention_problem_check(&p, tolerance);
}

BOTH_MMA_TEST(ranges)
{
    static const struct {
        int64_t queries, keys;
        int causal;
        int64_t window;
    } cases[] = {{70, 75, 1, 0},   {140, 140, 1, 0}, {40, 100, 1, 0},  {90, 40, 1, 0},
                 {130, 130, 0, 1}, {50, 150, 0, 3},  {150, 150, 1, 7}, {60, 33, 0, 4}};

    if (!emulate(_i, GEMM_F32))
        return;
    for (size_t i = 0; i < COUNT_OF(cases) && !left_out(i); ++i)
        check_random((struct attention_size){1, 1, cases[i].queries, cases[i].keys, 17, 18},
                     (struct ref_attention){.causal = cases[i].causal, .window = cases[i].window},
                     i % 2, i % 3 == 1);
}

BOTH_MMA_TEST(masks)
{
    const struct attention_size n = {2, 1, 37, 135, 17, 19};
    struct host *kinds[] = {
        host_mask(5, 0.5, DIMS(37, 135, 1)), host_mask(6, 0.01, DIMS(37, 135, 2)),
        host_mask(7, 0.5, DIMS(1, 135, 2)), host_new(ATTNCL_U8, DIMS(1, 135, 1))};

    if (!emulate(_i, GEMM_F32) || on_simulator())
        return;
    for (int64_t j = 0; j < 135; ++j) // the first and the last query see nothing
        kinds[0]->data[j] = kinds[0]->data[kinds[0]->count - 1 - j] = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); ++i)
        check_random(n, (struct ref_attention){.mask = kinds[i]}, i % 2, i % 3 == 0);
}

BOTH_MMA_TEST(lengths)
{
    struct host *one = host_with(ATTNCL_I32, (const double[]){0, 1, 70, 1000}, DIMS(4)),
                *two = host_ints(9, -2, 150, DIMS(4, 37));
    const struct attention_size n = {4, 1, 37, 140, 17, 21};

    if (!emulate(_i, GEMM_F32) || on_simulator())
        return;
    check_random(n, (struct ref_attention){.valid_lens = one}, true, true);
    check_random(n, (struct ref_attention){.valid_lens = two}, false, false);
}

BOTH_MMA_TEST(dropout_of_weights)
{
    static const struct ref_dropout d = {0.3, 0x123456789u, 5, 77};

    if (!emulate(_i, GEMM_F32))
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

    if (!emulate(_i, GEMM_F32) || on_simulator())
        return;
    struct device_caps *caps = &test_context()->caps;
    const uint64_t saved = caps->max_buffer_bytes;
    caps->max_buffer_bytes = 2 * of_head + 100;
    check_random(three, (struct ref_attention){0}, true, false);
    caps->max_buffer_bytes = of_head - 100;
    check_random(one, (struct ref_attention){.causal = 1}, false, true);
    check_random(one, (struct ref_attention){.dropout = d}, true, false);
    check_random(one, (struct ref_attention){.valid_lens = host_ints(9, -2, 120, DIMS(1, N))}, true,
                 false);
    caps->max_buffer_bytes = saved;
}

// Three terms are as exact as floats; rounded factors show that the instruction is what computes.
TEST(precisions)
{
    static const double least[N_GEMM_PRECISIONS] = {0, 2e-5, 2e-4};
    static const double most[N_GEMM_PRECISIONS] = {2e-6, 0x1p-7, 0x1p-4};
    const struct attention_problem p = attention_problem_random(
        (struct attention_size){1, 1, 64, 64, 64, 64}, (struct ref_attention){0}, false, false);

    for (int i = GEMM_F32; i < N_GEMM_PRECISIONS && !left_out((size_t)i); ++i) {
        if (!emulate(MMA_PTX, (enum gemm_precision)i))
            return;
        const double error = attention_problem_check(&p, 0x1p-4);
        ck_assert_double_ge(error, least[i]);
        ck_assert_double_le(error, most[i]);
    }
}
