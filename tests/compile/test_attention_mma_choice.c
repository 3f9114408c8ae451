// SPDX-License-Identifier: MIT
// Whether attention, and its gradients, use a matrix instruction: the comparison with FMAs, where local memory stands for the
// instruction, and what of it is kept.

#include <stdio.h>
#include <string.h>

#include "attncl/attention.h"
#include "attncl/gradient.h"
#include "attncl/log.h"
#include "attncl/ops.h"
#include "compile/attention_mma_choice.h"
#include "gemm/mma_choice.h"
#include "support/directory.h"
#include "support/emulated_mma.h"
#include "support/sources.h"
#include "support/test.h"

static char logged[1024];

FIXTURE(findings_up, findings_down);

static void check_judged(enum matrix_instruction mma, enum gemm_precision precision, bool emulated,
                         double min_speed, const char *words)
{
    check_mma_judged(attncl__attention_mma_judge, mma, precision, emulated, min_speed, words);
}

static void check_gradients_judged(enum matrix_instruction mma, enum gemm_precision precision,
                                   bool emulated, const char *words)
{
    check_mma_judged(attncl__attention_bwd_mma_judge, mma, precision, emulated, 0, words);
}

LOOP_TEST(right_ones_pass, GEMM_F32, N_GEMM_PRECISIONS)
{
    check_judged(MMA_PTX, (enum gemm_precision)_i, true, 0, NULL);
}

TEST(right_ones_pass_mfma)
{
    check_judged(MMA_MFMA, GEMM_F32, true, 0, NULL);
}

LOOP_TEST(right_gradients_pass, GEMM_F32, N_GEMM_PRECISIONS)
{
    check_gradients_judged(MMA_PTX, (enum gemm_precision)_i, true, NULL);
}

TEST(right_gradients_pass_mfma)
{
    check_gradients_judged(MMA_MFMA, GEMM_F32, true, NULL);
}

TEST(slow_ones_fail)
{
    check_judged(MMA_PTX, GEMM_F32, true, 1e6, "times as fast as FMAs, less than");
}

TEST(what_the_compiler_does_not_know_fails)
{
    check_judged(MMA_MFMA, GEMM_F32, false, 0, "does not build");
    check_gradients_judged(MMA_MFMA, GEMM_F32, false, "does not build");
}

// A lane with another element, sums that are not scaled, rows that are not the first, products left out,
// statistics that only gradients would miss, an element that is NaN or is not written.
static const struct mistake {
    const char *file, *from, *to;
} mistakes[] = {
    {"attention/attention_gpu_mma.clh", "{x_high[0], x_high[2], x_high[1]",
     "{x_high[0], x_high[1], x_high[2]"},
    {"common/mma.clh", "mma_instruction(rest, a_low, b_high, box);", ""},
    {"attention/attention_gpu_mma.cl", "sums[n][c] *= factor[c / TERMS];", ";"},
    {"attention/attention_gpu_mma.cl", "= whole ? factor : sum;", "= sum;"},
    {"attention/attention_gpu_mma.clh", "= sums[n][c] * factor[c / TERMS]",
     "= i + e == 9 ? NAN : sums[n][c] * factor[c / TERMS]"},
    {"attention/attention_gpu_mma.clh", "if (i < end && e < width)",
     "if (i < end && e < width && i + e != 9)"},
};

TABLE_TEST(wrong_ones_fail, mistakes)
{
    sources_write(mistakes[_i].file, mistakes[_i].from, mistakes[_i].to);
    check_judged(MMA_PTX, GEMM_F32, true, 0, "differs from FMAs");
}

// Pairs beyond the last row or column that count, ds of the wrong pairs, and products left out.
static const struct mistake gradient_mistakes[] = {
    {"attention/attention_bwd_gpu_mma.cl", "IS_WANTED(n, c) ? e : 0.0f", "e"},
    {"attention/attention_bwd_gpu_mma.cl", "(long)key * kept.pitch + query] : 0.0f",
     "(long)key * kept.pitch + query / 2] : 0.0f"},
    {"common/mma.clh", "mma_instruction(rest, a_high, b_low, box);", ""},
    {"attention/attention_gpu_mma.clh", "= sums[n][c] * factor[c / TERMS]",
     "= i + e == 9 ? NAN : sums[n][c] * factor[c / TERMS]"},
    {"attention/attention_gpu_mma.clh", "if (i < end && e < width)",
     "if (i < end && e < width && i + e != 9)"},
};

TABLE_TEST(wrong_gradients_fail, gradient_mistakes)
{
    const struct mistake *m = &gradient_mistakes[_i];

    sources_write(m->file, m->from, m->to);
    check_gradients_judged(MMA_PTX, GEMM_F32, true, "differs from FMAs");
}

// user: what the line begins with.
static void keep_line(attncl_log_level level, const char *line, void *user)
{
    (void)level;
    if (strncmp(line, user, strlen(user)) == 0)
        snprintf(logged, sizeof logged, "%s", line);
}

// In a new context each time.
static struct device_caps chosen(enum gemm_precision precision)
{
    attncl_context *ctx = findings_context();
    struct device_caps caps;

    if (emulated_mma_caps(ctx, MMA_PTX, precision, &caps)) {
        attncl__attention_choose_mma(ctx, &caps);
        attncl__attention_bwd_choose_mma(ctx, &caps);
    }
    ck_ok(attncl_context_destroy(ctx));
    return caps;
}

// A wrong kernel is turned off with a line in the log.  What is found of ATTNCL_CL_DIR's kernels is not kept; what is found of
// the library's is, here that local memory is slower than FMAs, and GEMMs and the other pass keep their own answers.
static void check_kept(const char *file, const char *from, const char *to, bool gradients)
{
    const char *const name = gradients ? "attention gradients" : "attention";
    attncl_context *ctx = findings_context();
    char failed[FINDING_BYTES], text[128], finding[64];
    struct device_caps caps;
    const bool able = emulated_mma_caps(ctx, MMA_PTX, GEMM_F32, &caps);

    snprintf(text, sizeof text, "PTX mma, %s f32, is not used: ", name);
    snprintf(finding, sizeof finding, "mma %s f32", name);
    ck_ok(attncl__finding_keep(ctx, "mma f32", ""));
    ck_ok(attncl__finding_keep(ctx, gradients ? "mma attention f32" : "mma attention gradients f32",
                               ""));
    ck_ok(attncl_context_destroy(ctx));
    if (!able)
        return;
    sources_write(file, from, to);
    attncl_log_set(keep_line, text, ATTNCL_LOG_INFO);
    caps = chosen(GEMM_F32);
    unsetenv("ATTNCL_CL_DIR");
    ck_assert_int_eq(gradients ? caps.attention_bwd_mma : caps.attention_mma, MMA_NONE);
    ck_assert_msg(strstr(logged, "differs from FMAs") != NULL, "%s", logged);
    for (int again = 0; again < 2; ++again) {
        logged[0] = '\0';
        caps = chosen(GEMM_F32);
        ck_assert_int_eq(caps.attention_mma, gradients ? MMA_PTX : MMA_NONE);
        ck_assert_int_eq(caps.attention_bwd_mma, gradients ? MMA_NONE : MMA_PTX);
        ck_assert_msg(strstr(logged, "times as fast as FMAs") != NULL, "%s", logged);
    }
    attncl_log_set(NULL, NULL, ATTNCL_LOG_WARN);
    ctx = findings_context();
    ck_assert(attncl__finding_read(ctx, finding, failed) && *failed);
    ck_ok(attncl__finding_keep(ctx, "mma attention tf32", ""));
    ck_ok(attncl__finding_keep(ctx, "mma attention gradients tf32", ""));
    ck_ok(attncl_context_destroy(ctx));
    caps = chosen(GEMM_TF32);
    ck_assert_int_eq(caps.attention_mma, MMA_PTX);
    ck_assert_int_eq(caps.attention_bwd_mma, MMA_PTX);
}

TEST(the_choice_is_kept)
{
    check_kept("attention/attention_gpu_mma.cl", "sums[n][c] *= factor[c / TERMS];", ";", false);
}

TEST(the_choice_for_gradients_is_kept)
{
    check_kept("attention/attention_bwd_gpu_mma.cl", "IS_WANTED(n, c) ? e : 0.0f", "e", true);
}

// Only a graph that has attention, or gradients of it, asks.
LOOP_TEST(graphs_ask_where_they_have_attention, 0, 3)
{
    static const int64_t shape[] = {1, 1, 32, 16};
    attncl_context *ctx = findings_context();
    attncl_graph *g = NULL;
    const bool able = emulated_mma_caps(ctx, MMA_PTX, GEMM_F32, &ctx->caps);

    ck_ok(attncl__finding_keep(ctx, "mma f32", "not here"));
    ck_ok(attncl__finding_keep(ctx, "mma attention f32", "not here either"));
    ck_ok(attncl__finding_keep(ctx, "mma attention gradients f32", "nor here"));
    ck_ok(attncl_graph_create(ctx, &g));
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    in.query = in.key = in.value = attncl_graph_input(g, "q", ATTNCL_F32, 4, shape);
    const attncl_value y =
        _i ? attncl_attention(g, NULL, &in, NULL) : attncl_add(g, in.query, in.query);
    attncl_graph_output(g, "y", y);
    if (_i == 2) {
        attncl_value dx;
        attncl_graph_gradient(g, 1, &y, &y, 1, &in.query, &dx);
        attncl_graph_output(g, "dx", dx);
    }
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert(!able || ctx->mma_known[MMA_ATTENTION][GEMM_F32] == (_i > 0));
    ck_assert(!able || ctx->mma_known[MMA_ATTENTION_BWD][GEMM_F32] == (_i == 2));
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}
