// SPDX-License-Identifier: MIT
// Whether GEMMs use a matrix instruction: the comparison with FMAs, where local memory stands for the instruction,
// and what of it is kept.

#include <stdio.h>
#include <string.h>

#include "attncl/ops.h"
#include "gemm/mma_choice.h"
#include "support/compare.h"
#include "support/directory.h"
#include "support/emulated_mma.h"
#include "support/sources.h"
#include "support/test.h"

static char backend[16]; // ATTNCL_GEMM, as it was

static void up(void)
{
    findings_up();
    const char *const text = getenv("ATTNCL_GEMM");
    snprintf(backend, sizeof backend, "%s", text ? text : "");
    unsetenv("ATTNCL_GEMM"); // CLBlast uses no matrix instructions of ours
}

static void down(void)
{
    if (backend[0])
        setenv("ATTNCL_GEMM", backend, 1);
    findings_down();
}

FIXTURE(up, down);

static void check_judged(enum matrix_instruction mma, enum gemm_precision precision, bool emulated,
                         double min_speed, const char *words)
{
    check_mma_judged(attncl__mma_judge, mma, precision, emulated, min_speed, words);
}

LOOP_TEST(right_ones_pass, GEMM_F32, N_GEMM_PRECISIONS)
{
    check_judged(MMA_PTX, (enum gemm_precision)_i, true, 0, NULL);
}

TEST(right_ones_pass_mfma)
{
    check_judged(MMA_MFMA, GEMM_F32, true, 0, NULL);
}

LOOP_TEST(right_ones_of_bf16_pass, MMA_WMMA, N_MATRIX_INSTRUCTIONS)
{
    check_judged((enum matrix_instruction)_i, GEMM_BF16, true, 0, NULL);
}

// Lanes whose elements are not where they should be are seen, of each.
static const struct {
    enum matrix_instruction mma;
    const char *from, *to;
} misplaced[] = {
    {MMA_WMMA, "MMA_A_K(lane, i)\n", "MMA_A_K(lane, (i) ^ 1)\n"},
    {MMA_WMMA_GFX12, "MMA_A_K(lane, i)\n", "MMA_A_K(lane, (i) ^ 1)\n"},
    {MMA_DPAS_8, "((lane)*MMA_A / MMA_M + (i) / MMA_M)", "((lane) + (i) / MMA_M)"},
    {MMA_DPAS_16, "((i) % MMA_M)", "(((i) + 1) % MMA_M)"},
};

TABLE_TEST(misplaced_ones_fail, misplaced)
{
    sources_write("common/mma.clh", misplaced[_i].from, misplaced[_i].to);
    check_judged(misplaced[_i].mma, GEMM_BF16, true, 0, "integers");
}

// Factors of 16 bits are for those who ask for them.
TEST(bf16_is_not_taken_unasked)
{
    attncl_context *ctx = findings_context();
    struct device_caps caps;

    for (int mma = MMA_WMMA; mma < N_MATRIX_INSTRUCTIONS; ++mma)
        for (int precision = GEMM_F32; precision < GEMM_BF16; ++precision)
            if (emulated_mma_caps(ctx, (enum matrix_instruction)mma, (enum gemm_precision)precision,
                                  &caps)) {
                attncl__gemm_choose_mma(ctx, &caps);
                ck_assert_int_eq(caps.mma, MMA_NONE);
            }
    ck_ok(attncl_context_destroy(ctx));
}

TEST(slow_ones_fail)
{
    check_judged(MMA_PTX, GEMM_F32, true, 1e6, "times as fast as FMAs, less than");
}

TEST(what_the_compiler_does_not_know_fails)
{
    check_judged(MMA_MFMA, GEMM_F32, false, 0, "does not build");
}

static const struct {
    const char *file, *from, *to, *failure;
} mistakes[] = {
    {"common/mma.clh", "% 4 + 4 * (i))", "% 4 + 4 * (1 - (i)))", "integers"},
    {"common/mma.clh", "/ 4 + 8 * ((i) % 2)", "/ 4 + 8 * (1 - (i) % 2)", "integers"},
    {"common/mma.clh", "isfinite(sum) ? sum + rest : sum", "sum", "differs from FMAs"},
    {"gemm/gemm_gpu_mma.cl", "if (i >= m || j >= n)", "if (i >= m || j >= n || i + j == 9)",
     "never written"},
    {"gemm/gemm_gpu_mma.cl", "if (i >= m || j >= n)", "if (i >= m || j >= n || i + j == 190)",
     "never written"}, // beyond the integers
    {"gemm/gemm_gpu_mma.cl", "if (k_from > 0)", "x = i + j == 190 ? NAN : x; if (k_from > 0)",
     "differs from FMAs"},
};

TABLE_TEST(wrong_ones_fail, mistakes)
{
    sources_write(mistakes[_i].file, mistakes[_i].from, mistakes[_i].to);
    check_judged(MMA_PTX, GEMM_F32, true, 0, mistakes[_i].failure);
}

// In a new context each time.
static enum matrix_instruction chosen(enum gemm_precision precision)
{
    attncl_context *ctx = findings_context();
    struct device_caps caps;

    if (emulated_mma_caps(ctx, MMA_PTX, precision, &caps))
        attncl__gemm_choose_mma(ctx, &caps);
    ck_ok(attncl_context_destroy(ctx));
    return caps.mma;
}

static void keep(const char *what, const char *failed)
{
    attncl_context *ctx = findings_context();
    ck_ok(attncl__finding_keep(ctx, what, failed));
    ck_ok(attncl_context_destroy(ctx));
}

TEST(the_choice_is_kept_by_precision)
{
    attncl_context *ctx = findings_context();
    char failed[FINDING_BYTES];
    struct device_caps caps;
    const bool able = emulated_mma_caps(ctx, MMA_PTX, GEMM_F32, &caps);

    ck_assert(!attncl__finding_read(ctx, "mma f32", failed));
    ck_ok(attncl_context_destroy(ctx));
    if (!able)
        return;
    ck_assert_int_eq(chosen(GEMM_F32), MMA_NONE); // emulated, it is slow
    ctx = findings_context();
    ck_assert(attncl__finding_read(ctx, "mma f32", failed));
    ck_assert_msg(strstr(failed, "times as fast") != NULL, "%s", failed);
    ck_ok(attncl_context_destroy(ctx));
    keep("mma f32", "");
    ck_assert_int_eq(chosen(GEMM_F32), MMA_PTX);
    keep("mma tf32", "it is known to be wrong");
    ck_assert_int_eq(chosen(GEMM_TF32), MMA_NONE);
    ck_assert_int_eq(chosen(GEMM_F32), MMA_PTX);
}

// The largest error of a product of two matrices of ones and of ones plus 2^-9, as a share of it, as a
// graph computes it on a context.
// Of sums of N.
static double error_of_graph(attncl_context *ctx, attncl_precision precision)
{
    enum { N = 64 };
    static float x[N * N];
    static const int64_t shape[] = {N, N};
    attncl_compile_options how = ATTNCL_COMPILE_OPTIONS_INIT;
    attncl_graph *g = NULL;
    struct worst worst = {0};

    ck_ok(attncl_graph_create(ctx, &g));
    const attncl_value a = attncl_graph_input(g, "a", ATTNCL_F32, 2, shape);
    attncl_graph_output(g, "c", attncl_linear(g, a, a, (attncl_value)ATTNCL_VALUE_INIT));
    how.precision = precision;
    ck_ok(attncl_graph_compile(g, &how));
    for (int i = 0; i < N * N; ++i)
        x[i] = 1.0f + 0x1p-9f;
    ck_ok(attncl_graph_write(g, "a", x, sizeof x));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "c", x, sizeof x));
    for (int i = 0; i < N * N; ++i)
        worst_add(&worst, i, x[i], N * (1 + 0x1p-9) * (1 + 0x1p-9), N);
    attncl_graph_destroy(g);
    return worst.ratio;
}

TEST(graphs_ask_for_a_precision)
{
    attncl_context *ctx = findings_context();
    attncl_compile_options how = ATTNCL_COMPILE_OPTIONS_INIT;
    attncl_graph *g = NULL;

    ck_ok(attncl_graph_create(ctx, &g));
    how.precision = (attncl_precision)-1;
    ck_fails(attncl_graph_compile(g, &how), ATTNCL_ERR_ARGUMENT, "precision is -1");
    attncl_graph_destroy(g);
    ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_BF16) < 1e-6); // without the instruction
    if (emulated_mma_caps(ctx, MMA_PTX, GEMM_F32, &ctx->caps)) {
        ctx->caps.compute_units = 1;
        ck_ok(attncl__finding_keep(ctx, "mma f32", ""));
        ck_ok(attncl__finding_keep(ctx, "mma tf32", ""));
        ck_ok(attncl__finding_keep(ctx, "mma bf16", ""));
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_DEFAULT) < 1e-6);
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_TF32) < 1e-6); // of 11 bits, it loses none
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_BF16) > 1e-3);
        attncl__caps_set_precision(&ctx->caps, ATTNCL_PRECISION_BF16);
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_DEFAULT) > 1e-3);
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_FLOAT32) < 1e-6);
    }
    ck_ok(attncl_context_destroy(ctx));
}

TEST(devices_without_instructions_are_not_asked)
{
    attncl_context *ctx = findings_context();
    struct device_caps caps = ctx->caps;
    char failed[FINDING_BYTES];

    caps.mma_candidate = MMA_NONE;
    attncl__gemm_choose_mma(ctx, &caps);
    ck_assert_int_eq(caps.mma, MMA_NONE);
    ck_assert(!attncl__finding_read(ctx, "mma f32", failed));
    ck_ok(attncl_context_destroy(ctx));
}
