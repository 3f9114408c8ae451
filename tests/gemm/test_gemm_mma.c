// SPDX-License-Identifier: MIT
// GEMMs by matrix instructions: which they are on devices that are only described, and their results
// where local memory stands for the instruction.

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "gemm/internal.h"
#include "support/compare.h"
#include "support/gemm_test.h"
#include "support/launch_mock.h"
#include "support/sources.h"
#include "support/test.h"

NO_DEVICE;

static struct {
    const char *refused; // a kernel that does not fit
    char launched[64];
} seen;

static bool fake_fits(const struct kspec *spec, bool no_spills)
{
    (void)no_spills;
    return !seen.refused || strcmp(spec->kernel, seen.refused) != 0;
}

static attncl_status fake_launch(const struct kspec *spec, const struct grid *grid)
{
    snprintf(seen.launched, sizeof seen.launched, "%s of %zu", spec->kernel, grid->local[0]);
    return ATTNCL_OK;
}

static const char *launched_gemm(enum matrix_instruction mma, const struct gemm *g)
{
    static const struct launch_mock mock = {fake_fits, fake_launch};
    struct device_caps caps = launch_mock_gpu(mma >= MMA_DPAS_8 ? VENDOR_INTEL
                                              : mma >= MMA_MFMA ? VENDOR_AMD
                                                                : VENDOR_NVIDIA,
                                              mma == MMA_MFMA ? 64 : 32, 100);
    struct launcher l = {.caps = &caps, .gemm = mma == MMA_NONE ? "native" : NULL};

    caps.nv_compute_capability = mma == MMA_PTX ? 80 : 0;
    caps.clblast = true;
    caps.mma = mma;
    launch_mock_set(&mock);
    ck_ok(attncl__gemm(&l, g));
    launch_mock_set(NULL);
    return seen.launched;
}

static const char *launched(enum matrix_instruction mma, int64_t m, int64_t n, bool causal)
{
    return launched_gemm(
        mma, &(struct gemm){.batch = 1, .m = m, .n = n, .k = causal ? m : 100, .causal = causal});
}

static const struct {
    enum matrix_instruction mma;
    int m, n;
    bool causal;
    const char *kernel;
} choices[] = {
    {MMA_NONE, 4096, 4096, false, "gemm_gpu_tile of 256"},
    {MMA_PTX, 4096, 4096, false, "gemm_gpu_mma_tile of 128"},
    {MMA_PTX, 4096, 4096, true, "gemm_gpu_tile of 256"},
    {MMA_PTX, 20, 65536, false, "gemm_gpu_tile of 64"},
    {MMA_MFMA, 4096, 4096, false, "gemm_gpu_mma_tile of 256"},
    {MMA_MFMA, 1024, 1024, false, "gemm_gpu_mma_tile of 256"},
    {MMA_WMMA, 4096, 4096, false, "gemm_gpu_mma_tile of 128"},
    {MMA_WMMA_GFX12, 1024, 1024, false, "gemm_gpu_mma_tile of 128"},
    {MMA_DPAS_8, 4096, 4096, false, "gemm_gpu_mma_tile of 256"},
    {MMA_DPAS_16, 4096, 4096, false, "gemm_gpu_mma_tile of 256"},
};

TABLE_TEST(instructions_by_device_and_shape, choices)
{
    seen.refused = NULL;
    ck_assert_str_eq(launched(choices[_i].mma, choices[_i].m, choices[_i].n, choices[_i].causal),
                     choices[_i].kernel);
}

TEST(few_terms_are_left_to_fmas)
{
    const struct gemm g = {.batch = 1, .m = 512, .n = 512, .k = 15};

    ck_assert_str_eq(launched_gemm(MMA_PTX, &g), "gemm_gpu_tile of 64");
}

TEST(tiles_that_do_not_fit_fall_back_to_fmas)
{
    seen.refused = "gemm_gpu_mma_tile";
    ck_assert_str_eq(launched(MMA_PTX, 4096, 4096, false), "gemm_gpu_tile of 256");
    ck_assert_str_eq(launched(MMA_MFMA, 4096, 4096, false), "gemm_gpu_tile of 256");
    seen.refused = NULL;
}

// -- on the device, emulated

FIXTURE_ONCE(device_up, device_down);

// False where the device's work-groups are too small.
static bool emulate(enum matrix_instruction mma, struct device_caps *caps)
{
    *caps = test_context()->caps;
    caps->variant = VARIANT_GPU;
    caps->vector_width = 4;
    caps->compute_units = 1;
    caps->mma = mma;
    sources_emulate = true;
    return caps->max_group >= 256 && caps->max_loop_iterations == 0;
}

#define EMULATED_CASE(...) GEMM_CASE(__VA_ARGS__, .caps = &caps, .backend = "native")

LOOP_TEST(emulated_instructions_are_right, MMA_PTX, MMA_MFMA + 1)
{
    struct device_caps caps;

    if (!emulate((enum matrix_instruction)_i, &caps))
        return;
    for (int trans = 0; trans < 2; ++trans)
        gemm_check(&EMULATED_CASE(1, 67, 131, 37, .trans_a = trans, .trans_b = trans,
                                  .bias = GEMM_BIAS_COLUMN, .gap = trans));
    gemm_check(&EMULATED_CASE(3, 64, 64, 19, .bias = GEMM_BIAS_ROW, .gate = true, .residual = true,
                              .activation = ATTNCL_RELU, .gap = 1));
    gemm_check(&EMULATED_CASE(2, 65, 70, 16, .shared_b = true, .gap = 1));
}

static double float_of(float x)
{
    return x;
}

// The nearest number of 8 bits, the larger of two.
static double bf16_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x8000u) & 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// Against sums in double of factors that are rounded here: `share` of sum |a b| is allowed.
static void check_sums(const struct gemm_case *p, double (*rounded)(float x), double share)
{
    struct gemm_data s;
    struct worst worst = {0};

    gemm_data_open(&s, p);
    ck_ok(gemm_data_run(&s));
    for (int64_t i = 0; i < p->m * p->n; ++i) {
        const float *a = s.data[A] + i / p->n * p->k, *b = s.data[B] + i % p->n;
        double sum = 0, size = 0;
        for (int64_t k = 0; k < p->k; ++k) {
            const double x = rounded(a[k]) * rounded(b[k * p->n]);
            sum += x;
            size += fabs(x);
        }
        worst_add(&worst, i, s.data[C][i], sum, share * size);
    }
    gemm_data_close(&s);
    ck_worst(&worst, 1, "c");
}

// Those of BF16 alone.
LOOP_TEST(emulated_instructions_of_bf16_are_right, MMA_WMMA, N_MATRIX_INSTRUCTIONS)
{
    struct device_caps caps;

    if (!emulate((enum matrix_instruction)_i, &caps))
        return;
    caps.precision = GEMM_BF16;
    check_sums(&EMULATED_CASE(1, 67, 131, 37), bf16_of, 0x1p-21);
}

// Weights of 16 bits, widened on their way into local memory; MFMA's tile by the other transpose and type.
LOOP_TEST(emulated_instructions_take_weights_of_16_bits, MMA_PTX, MMA_MFMA + 1)
{
    const bool trans_b = _i == MMA_PTX;
    struct device_caps caps;

    if (!emulate((enum matrix_instruction)_i, &caps))
        return;
    for (int gap = 0; gap < 4; gap += 3)
        gemm_check(&EMULATED_CASE(1, 67, 131, 36 + gap, .trans_b = trans_b, .gap = gap,
                                  .bias = GEMM_BIAS_COLUMN,
                                  .b_dtype = trans_b ? ATTNCL_F16 : ATTNCL_BF16));
}

// Split-K of two launches, and a long sum cut along k.
TEST(emulated_splits_are_right)
{
    struct device_caps caps;

    if (!emulate(MMA_PTX, &caps))
        return;
    caps.compute_units = 6;
    ck_assert_int_eq(gemm_check(&EMULATED_CASE(1, 40, 50, 1153, .scratch = true)), 2);
    caps.compute_units = 1;
    caps.flop_per_second = 2.0 * 40 * 50 * 1500 / 0.7;
    ck_assert_int_eq(gemm_check(&EMULATED_CASE(1, 40, 50, 1500, .residual = true)), 2);
}

// Whatever the sum's length.
static const int lengths[] = {16, 64, 1000};

TABLE_TEST(three_terms_are_as_exact_as_floats, lengths)
{
    struct device_caps caps;

    if (emulate(MMA_PTX, &caps))
        check_sums(&EMULATED_CASE(1, 64, 64, lengths[_i]), float_of, 0x1p-22);
}

// Large and small numbers, infinities and NaN stay what they are.
TEST(extremes_pass)
{
    static const float values[] = {FLT_MAX, -FLT_MAX, 0x1p-120f, INFINITY, -INFINITY, NAN};
    struct device_caps caps;
    struct gemm_data s;

    if (!emulate(MMA_PTX, &caps))
        return;
    const struct gemm_case p = EMULATED_CASE(1, 64, 64, 24);
    gemm_data_open(&s, &p);
    for (int i = 0; i < 6; ++i)
        for (int k = 0; k < 24; ++k)
            s.data[A][i * 24 + k] = k == 3 * i ? values[i] : 0.0f;
    for (int k = 0; k < 24; ++k)
        for (int j = 0; j < 64; ++j)
            s.data[B][k * 64 + j] = 0.3f + (float)(k + j) / 256;
    ck_ok(gemm_data_run(&s));
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 64; ++j) {
            const float want = values[i] * s.data[B][3 * i * 64 + j], got = s.data[C][i * 64 + j];
            if (isfinite(want))
                ck_assert_msg(fabsf(got - want) <= 0x1p-22f * fabsf(want), "%g, %g", got, want);
            else
                ck_assert(isnan(want) ? isnan(got) : got == want);
        }
    gemm_data_close(&s);
}
