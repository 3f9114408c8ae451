// SPDX-License-Identifier: MIT
// What is compared at first use: right kernels pass, by either variant, by shuffles and by matrix instructions, for which
// local memory stands; a mistake in any of them is found; what follows for graphs.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/log.h"
#include "attncl/ops.h"
#include "compile/probes.h"
#include "support/compare.h"
#include "support/directory.h"
#include "support/emulated_mma.h"
#include "support/sources.h"
#include "support/test.h"

enum { LANES = 128 }; // of a sub-group: two sizes of work-groups are compared

static char saved[2][16]; // ATTNCL_VARIANT, ATTNCL_GEMM, as they were
static const char *const variables[] = {"ATTNCL_VARIANT", "ATTNCL_GEMM"};
static char warning[1024];

static void keep_warning(attncl_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == ATTNCL_LOG_WARN && strstr(text, "is not used"))
        snprintf(warning, sizeof warning, "%s", text);
}

static void up(void)
{
    findings_up();
    for (size_t i = 0; i < COUNT_OF(variables); ++i) {
        const char *const text = getenv(variables[i]);
        snprintf(saved[i], sizeof saved[i], "%s", text ? text : "");
        unsetenv(variables[i]); // CLBlast uses no matrix instructions of ours
    }
    warning[0] = '\0';
    attncl_log_set(keep_warning, NULL, ATTNCL_LOG_WARN);
}

static void down(void)
{
    attncl_log_set(NULL, NULL, ATTNCL_LOG_WARN);
    unsetenv("ATTNCL_SHUFFLE");
    for (size_t i = 0; i < COUNT_OF(variables); ++i)
        if (saved[i][0])
            setenv(variables[i], saved[i], 1);
    findings_down();
}

FIXTURE(up, down);

// One probe, by an op that it is for: of shuffles, of a matrix instruction, else of the GPU variant.
struct subject {
    const char *name;
    const struct op_class *cls;
    enum lane_shuffle shuffle;
    enum matrix_instruction mma;
    enum gemm_precision precision;
    bool unknown; // to the compiler: local memory does not stand for it
};

#define OF_VARIANT(name, op)                                                                       \
    {                                                                                              \
        (name), &attncl__op_##op, SHUFFLE_NONE, MMA_NONE, GEMM_F32, false                          \
    }
#define OF_SHUFFLES(shuffle)                                                                       \
    {                                                                                              \
        "shuffles", &attncl__op_softmax_fwd, (shuffle), MMA_NONE, GEMM_F32, false                  \
    }
#define OF_MMA(name, op, ...)                                                                      \
    {                                                                                              \
        "mma " name, &attncl__op_##op, SHUFFLE_NONE, __VA_ARGS__                                   \
    }
#define GEMMS(name, ...)      OF_MMA("gemm " name, linear_fwd, __VA_ARGS__)
#define ATTENTIONS(name, ...) OF_MMA("attention " name, attention_fwd, __VA_ARGS__)
#define GRADIENTS(name, ...)  OF_MMA("attention gradients " name, attention_bwd, __VA_ARGS__)

// False where the device's work-groups are too small.
static bool describe(attncl_context *ctx, const struct subject *s, struct device_caps *caps)
{
    if (s->mma) {
        const bool able = emulated_mma_caps(ctx, s->mma, s->precision, caps);
        caps->mma_emulated = !s->unknown;
        return able;
    }
    *caps = ctx->caps;
    caps->variant = VARIANT_GPU;
    caps->vector_width = 4;
    caps->is_gpu = s->shuffle == SHUFFLE_NONE;
    caps->compute_units = 1; // the largest product takes long here
    caps->shuffle_candidate = s->shuffle;
    caps->shuffle_lanes = LANES;
    return s->shuffle == SHUFFLE_NONE || caps->max_group >= LANES;
}

// A graph of one op.
static attncl_status apply(attncl_context *ctx, struct device_caps *caps,
                           const struct op_class *cls, struct fit *fit)
{
    struct lowered_node node = {.cls = cls};
    struct lowered p = {.caps = caps, .nodes = &node, .n_nodes = 1};

    return attncl__apply_probes(ctx, fit, &p);
}

static enum probe_verdict known(attncl_context *ctx, const char *name, char why[PROBE_WHY_BYTES])
{
    return attncl__probe(ctx, &ctx->caps, &(struct probe){.name = name}, PROBE_LOOK_UP, why);
}

// The variants that others have are right; that of GPUs is wrong where the subject is the other one.
static void remember_others(attncl_context *ctx, const char *name)
{
    char other[PROBE_NAME_BYTES];

    for (int i = 0; i < attncl__n_probes && attncl__probes[i].feature == GPU_VARIANT; ++i) {
        snprintf(other, sizeof other, "%s gpu", attncl__probes[i].name);
        if (strncmp(name, other, strlen(other) - 3) != 0)
            attncl__probe_remember(ctx, other, PROBE_PASSED, "");
        else if (strcmp(name, other) != 0)
            attncl__probe_remember(ctx, other, PROBE_FAILED, "it is wrong");
    }
}

// words: what is said of a mistake; NULL: it passes.  In a new context.
static void check_judged(const struct subject *s, const char *words)
{
    attncl_context *ctx = findings_context();
    char why[PROBE_WHY_BYTES] = "";
    struct fit fit = {.probes = PROBE_RUN};
    struct device_caps caps;

    if (describe(ctx, s, &caps)) {
        remember_others(ctx, s->name);
        ck_assert(apply(ctx, &caps, s->cls, &fit) == ATTNCL_OK || words); // wrong in both variants
        ck_assert_int_eq(known(ctx, s->name, why), words ? PROBE_FAILED : PROBE_PASSED);
        ck_assert_msg(!words || strstr(why, words), "\"%s\" lacks \"%s\"", why, words);
    }
    attncl__fit_free(&fit);
    ck_ok(attncl_context_destroy(ctx));
}

static const struct subject right_ones[] = {
    OF_VARIANT("products gpu", linear_fwd),
    OF_VARIANT("products cpu", linear_fwd),
    OF_VARIANT("softmax gpu", softmax_fwd),
    OF_VARIANT("softmax cpu", softmax_bwd),
    OF_VARIANT("layer norm gpu", layer_norm_bwd),
    OF_VARIANT("layer norm cpu", layer_norm_fwd),
    OF_VARIANT("functions gpu", activation_bwd),
    OF_VARIANT("functions cpu", activation_fwd),
    OF_VARIANT("attention gpu", attention_fwd),
    OF_VARIANT("attention cpu", attention_step_fwd),
    OF_VARIANT("aft gpu", aft_fwd),
    OF_VARIANT("aft cpu", aft_prefill_fwd),
    OF_SHUFFLES(SHUFFLE_EMULATED),
    OF_SHUFFLES(SHUFFLE_AMD_EMULATED),
    GEMMS("f32", MMA_PTX, GEMM_F32, false),
    GEMMS("tf32", MMA_PTX, GEMM_TF32, false),
    GEMMS("bf16", MMA_PTX, GEMM_BF16, false),
    GEMMS("f32", MMA_MFMA, GEMM_BF16, false), // in float, whatever is asked for
    GEMMS("bf16", MMA_WMMA, GEMM_BF16, false),
    GEMMS("bf16", MMA_WMMA_GFX12, GEMM_BF16, false),
    GEMMS("bf16", MMA_DPAS_8, GEMM_BF16, false),
    GEMMS("bf16", MMA_DPAS_16, GEMM_BF16, false),
    ATTENTIONS("f32", MMA_PTX, GEMM_F32, false),
    ATTENTIONS("tf32", MMA_PTX, GEMM_TF32, false),
    ATTENTIONS("bf16", MMA_PTX, GEMM_BF16, false),
    ATTENTIONS("f32", MMA_MFMA, GEMM_F32, false),
    GRADIENTS("f32", MMA_PTX, GEMM_F32, false),
    GRADIENTS("tf32", MMA_PTX, GEMM_TF32, false),
    GRADIENTS("bf16", MMA_PTX, GEMM_BF16, false),
    GRADIENTS("f32", MMA_MFMA, GEMM_F32, false),
};

TABLE_TEST(right_ones_pass, right_ones)
{
    check_judged(&right_ones[_i], NULL);
}

static const struct subject unknown_ones[] = {
    OF_SHUFFLES(SHUFFLE_AMD),
    GEMMS("f32", MMA_MFMA, GEMM_F32, true),
    ATTENTIONS("f32", MMA_MFMA, GEMM_F32, true),
    GRADIENTS("f32", MMA_MFMA, GEMM_F32, true),
};

TABLE_TEST(what_the_compiler_does_not_know_fails, unknown_ones)
{
    check_judged(&unknown_ones[_i], "does not build or does not fit");
}

// Of a variant it is no mistake: what the device refuses is told where a graph needs it.
TEST(a_variant_that_does_not_build_is_not_compared)
{
    static const struct subject softmax = OF_VARIANT("softmax gpu", softmax_fwd);

    sources_write("norm/softmax.cl", "KERNEL void", "KERNEL broken");
    check_judged(&softmax, NULL);
}

static const struct subject products = OF_VARIANT("products gpu", linear_fwd),
                            products_cpu = OF_VARIANT("products cpu", linear_fwd),
                            softmax_gpu = OF_VARIANT("softmax gpu", softmax_fwd),
                            norms = OF_VARIANT("layer norm gpu", layer_norm_fwd),
                            functions = OF_VARIANT("functions gpu", activation_fwd),
                            functions_cpu = OF_VARIANT("functions cpu", activation_fwd),
                            attention_gpu = OF_VARIANT("attention gpu", attention_fwd),
                            afts = OF_VARIANT("aft gpu", aft_fwd),
                            shuffles = OF_SHUFFLES(SHUFFLE_EMULATED),
                            of_amd = OF_SHUFFLES(SHUFFLE_AMD_EMULATED),
                            gemms = GEMMS("f32", MMA_PTX, GEMM_F32, false),
                            wmma = GEMMS("bf16", MMA_WMMA, GEMM_BF16, false),
                            gfx12 = GEMMS("bf16", MMA_WMMA_GFX12, GEMM_BF16, false),
                            dpas_8 = GEMMS("bf16", MMA_DPAS_8, GEMM_BF16, false),
                            dpas_16 = GEMMS("bf16", MMA_DPAS_16, GEMM_BF16, false),
                            attentions = ATTENTIONS("f32", MMA_PTX, GEMM_F32, false),
                            gradients = GRADIENTS("f32", MMA_PTX, GEMM_F32, false);

#define MANY_ROWS "linear_fwd of [216, 24]"
#define INTEGERS  "bmm_fwd of [1, 64, 16]"
#define FLOATS    "bmm_fwd of [1, "
static const struct {
    const struct subject *of;
    const char *file, *from, *to, *words;
} mistakes[] = {
    // Changes of a thousandth, or less.
    {&products, "gemm/gemm_gpu.cl", "+= a[r] * b[c]", "+= a[r] * b[c] * 1.001f", MANY_ROWS},
    {&products, "gemm/gemv.cl", "+= x[r] * w", "+= x[r] * w * 1.001f", "linear_fwd of [3, 300]"},
    {&softmax_gpu, "norm/softmax.cl", "1.0f / r.sum", "1.001f / r.sum", "by 0.001 of its largest"},
    {&norms, "norm/layer_norm.cl", "const FV d = ((v - norm.x) - norm.y) * norm.z",
     "const FV d = ((v - norm.x) - norm.y) * norm.z * 1.001f", "layer_norm_fwd of [37, 300]"},
    {&functions, "common/math.clh", "p * a + 0.437251255f", "p * a + 0.4372f", "activation_fwd"},
    {&attention_gpu, "attention/attention_gpu.cl", "exp_nonpos_f(s[r][c] - shift)",
     "exp_nonpos_f(s[r][c] - 1.001f * shift)", "attention_fwd"},
    {&afts, "common/aft.clh", "sigmoid_v(q) * b / a", "sigmoid_v(q) * b / a * 1.001f", "aft_fwd"},
    // One element is NaN or is not written, or one column is wrong.
    {&products, "gemm/gemm_gpu.cl", "store_some(x, to, left);",
     "store_some(i + j == 8 ? (float4)(NAN) : x, to, left);", MANY_ROWS},
    {&products, "gemm/gemm_gpu.cl", "store_some(x, to, left);",
     "if (i + j != 8) store_some(x, to, left);", "never written"},
    {&products, "gemm/gemm_gpu.cl", "store_some(x, to, left);",
     "x.s0 *= j == 100 ? 1.01f : 1.0f; store_some(x, to, left);", MANY_ROWS},
    {&functions, "elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);",
     "VSTORE(c == 0 ? (FV)(NAN) : ACTIVATE(v), y + c);", "activation_fwd"},
    {&functions, "elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);",
     "if (c > 0) VSTORE(ACTIVATE(v), y + c);", "never written"},
    {&products_cpu, "gemm/gemm_cpu.cl", "VSTORE(sum, out + x);",
     "VSTORE(x == 0 ? (FV)(NAN) : sum, out + x);", "linear_fwd"},
    {&products_cpu, "gemm/gemm_cpu.cl", "VSTORE(sum, out + x);", "if (x > 0) VSTORE(sum, out + x);",
     "never written"},
    {&functions_cpu, "elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);",
     "VSTORE(c == 0 ? (FV)(NAN) : ACTIVATE(v), y + c);", "activation_fwd"},
    {&functions_cpu, "elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);",
     "if (c > 0) VSTORE(ACTIVATE(v), y + c);", "never written"},
    // Lanes that read another's numbers.
    {&shuffles, "common/shuffle.clh", "(i ^ distance)", "(i ^ 1)", "linear_fwd"},
    {&shuffles, "common/shuffle.clh", "(i ^ distance)", "(i ^ (distance / 2))", "linear_fwd"},
    {&of_amd, "common/shuffle.clh", "0xb1", "0x4e", "linear_fwd"},
    {&of_amd, "common/shuffle.clh", "0x1b", "0xb1", "linear_fwd"},
    {&of_amd, "common/shuffle.clh", "0x128", "0x124", "linear_fwd"},
    {&of_amd, "common/shuffle.clh", "DPP_TWICE(x, HALF_MIRROR, QUAD_XOR_3)", "DPP(x, HALF_MIRROR)",
     "linear_fwd"},
    {&shuffles, "common/row_tiling.clh", "n < JOINED", "n < JOINED / 2", "layer_norm_fwd"},
    {&shuffles, "common/row_tiling.clh", "if (PARTS == 1)", "if (JOINED > 1)", "layer_norm_fwd"},
    {&shuffles, "common/row_tiling.clh", "(x, JOIN, SHUFFLE_XOR, tmp);",
     "(x, ADD, SHUFFLE_XOR, tmp);", "softmax_fwd"},
    {&shuffles, "common/row_tiling.clh", "    if (c < n)\n        VSTORE",
     "    if (c < n && c != 8)\n        VSTORE", "layer_norm_fwd"}, // by local memory too
    // Elements that are not where an instruction has them, products left out, an element that is NaN or not written.
    {&wmma, "common/mma.clh", "MMA_A_K(lane, i)\n", "MMA_A_K(lane, (i) ^ 1)\n", INTEGERS},
    {&gfx12, "common/mma.clh", "MMA_A_K(lane, i)\n", "MMA_A_K(lane, (i) ^ 1)\n", INTEGERS},
    {&dpas_8, "common/mma.clh", "((lane)*MMA_A / MMA_M + (i) / MMA_M)", "((lane) + (i) / MMA_M)",
     INTEGERS},
    {&dpas_16, "common/mma.clh", "((i) % MMA_M)", "(((i) + 1) % MMA_M)", INTEGERS},
    {&gemms, "common/mma.clh", "% 4 + 4 * (i))", "% 4 + 4 * (1 - (i)))", INTEGERS},
    {&gemms, "common/mma.clh", "/ 4 + 8 * ((i) % 2)", "/ 4 + 8 * (1 - (i) % 2)", INTEGERS},
    {&gemms, "common/mma.clh", "isfinite(sum) ? sum + rest : sum", "sum", FLOATS},
    {&gemms, "gemm/gemm_gpu_mma.cl", "if (i >= m || j >= n)", "if (i >= m || j >= n || i + j == 9)",
     "never written"},
    {&gemms, "gemm/gemm_gpu_mma.cl", "if (i >= m || j >= n)",
     "if (i >= m || j >= n || i + j == 190)", "never written"}, // beyond the integers
    {&gemms, "gemm/gemm_gpu_mma.cl", "if (k_from > 0)",
     "x = i + j == 190 ? NAN : x; if (k_from > 0)", FLOATS},
    // And sums that are not scaled, rows that are not the first, statistics that only gradients would miss.
    {&attentions, "attention/attention_gpu_mma.clh", "{x_high[0], x_high[2], x_high[1]",
     "{x_high[0], x_high[1], x_high[2]", "result 0 of attention_fwd"},
    {&attentions, "common/mma.clh", "mma_instruction(rest, a_low, b_high, box);", "",
     "result 0 of attention_fwd"},
    {&attentions, "attention/attention_gpu_mma.cl", "sums[n][c] *= factor[c / TERMS];", ";",
     "result 0 of attention_fwd"},
    {&attentions, "attention/attention_gpu_mma.cl", "= whole ? factor : sum;", "= sum;",
     "result 2 of attention_fwd"},
    {&attentions, "attention/attention_gpu_mma.clh", "= sums[n][c] * factor[c / TERMS]",
     "= i + e == 9 ? NAN : sums[n][c] * factor[c / TERMS]", "result 0 of attention_fwd"},
    {&attentions, "attention/attention_gpu_mma.clh", "if (i < end && e < width)",
     "if (i < end && e < width && i + e != 9)", "never written"},
    // And pairs beyond the last row or column that count, ds of the wrong pairs.
    {&gradients, "attention/attention_bwd_gpu_mma.cl", "IS_WANTED(n, c) ? e : 0.0f", "e",
     "attention_bwd"},
    {&gradients, "attention/attention_bwd_gpu_mma.cl", "(long)key * kept.pitch + query] : 0.0f",
     "(long)key * kept.pitch + query / 2] : 0.0f", "attention_bwd"},
    {&gradients, "common/mma.clh", "mma_instruction(rest, a_high, b_low, box);", "",
     "attention_bwd"},
    {&gradients, "attention/attention_gpu_mma.clh", "= sums[n][c] * factor[c / TERMS]",
     "= i + e == 9 ? NAN : sums[n][c] * factor[c / TERMS]", "attention_bwd"},
    {&gradients, "attention/attention_gpu_mma.clh", "if (i < end && e < width)",
     "if (i < end && e < width && i + e != 9)", "never written"},
};

TABLE_TEST(mistakes_are_found, mistakes)
{
    sources_write(mistakes[_i].file, mistakes[_i].from, mistakes[_i].to);
    check_judged(mistakes[_i].of, mistakes[_i].words);
}

// By extensions, with the lanes that lib/device/caps.c takes: right on devices that have them.
static const enum lane_shuffle extensions[] = {SHUFFLE_INTEL, SHUFFLE_KHR};

TABLE_TEST(extensions_are_right_or_do_not_build, extensions)
{
    enum { SUB_GROUP = 16 };
    const struct subject s = OF_SHUFFLES(extensions[_i]);
    setenv("ATTNCL_VARIANT", "gpu", 1);
    attncl_context *ctx = findings_context();
    unsetenv("ATTNCL_VARIANT");
    const bool has = ctx->caps.shuffle_candidate == extensions[_i];
    const unsigned lanes = has ? ctx->caps.shuffle_lanes : SUB_GROUP;
    struct fit fit = {.probes = PROBE_RUN};
    char why[PROBE_WHY_BYTES];
    struct device_caps caps;

    ck_assert(lanes == SUB_GROUP || (extensions[_i] == SHUFFLE_INTEL && lanes == SUB_GROUP / 2));
    describe(ctx, &s, &caps);
    caps.shuffle_lanes = lanes;
    if (caps.max_group >= lanes) {
        ck_ok(apply(ctx, &caps, s.cls, &fit));
        if (known(ctx, s.name, why) != PROBE_PASSED)
            ck_assert_msg(!has && strstr(why, "does not build"), "%s", why);
    }
    ck_ok(attncl_context_destroy(ctx));
}

// -- what is done with a verdict

// What a graph of one op may use: the bits are those of lib/compile/probes.h's features.
static unsigned features(attncl_context *ctx, const struct subject *s, enum probe_mode mode)
{
    struct fit fit = {.probes = mode};
    struct device_caps caps;

    describe(ctx, s, &caps);
    ck_ok(apply(ctx, &caps, s->cls, &fit));
    const struct device_caps *const of_op = attncl__fit_caps(&fit, s->cls, &caps);
    const unsigned ret = (unsigned)(of_op->variant == VARIANT_GPU) << GPU_VARIANT |
                         (unsigned)(caps.shuffle != SHUFFLE_NONE) << SHUFFLES |
                         (unsigned)(caps.mma != MMA_NONE) << GEMM_MMA |
                         (unsigned)(caps.attention_mma != MMA_NONE) << ATTENTION_MMA |
                         (unsigned)(caps.attention_bwd_mma != MMA_NONE) << ATTENTION_BWD_MMA;
    attncl__fit_free(&fit);
    return ret;
}

static const struct {
    const struct subject *of;
    enum feature feature;
} uses[] = {
    {&softmax_gpu, GPU_VARIANT}, {&shuffles, SHUFFLES},        {&gemms, GEMM_MMA},
    {&wmma, GEMM_MMA},           {&attentions, ATTENTION_MMA}, {&gradients, ATTENTION_BWD_MMA},
};

// An op uses what passed or, where it is only looked up, is unknown, and nothing of another op's; the next context knows.
TABLE_TEST(verdicts_decide, uses)
{
    const struct subject *const s = uses[_i].of;
    const unsigned with = 1u << GPU_VARIANT | 1u << uses[_i].feature;
    const unsigned without = with ^ 1u << uses[_i].feature;
    attncl_context *ctx = findings_context();
    struct object_counts before, after;

    attncl__objects_count(&before);
    ck_assert_uint_eq(features(ctx, s, PROBE_LOOK_UP), with);
    attncl__objects_count(&after);
    ck_assert_mem_eq(&after, &before, sizeof after);
    ck_ok(attncl__verdict_keep(ctx, s->name, "it is known to be wrong"));
    ck_assert_uint_eq(features(ctx, s, PROBE_LOOK_UP), without);
    ck_ok(attncl_context_destroy(ctx));
    ck_assert(strstr(warning, s->name) && strstr(warning, "it is known to be wrong"));
    ctx = findings_context();
    ck_ok(attncl__verdict_keep(ctx, s->name, ""));
    ck_assert_uint_eq(features(ctx, s, PROBE_RUN), with);
    ck_ok(attncl_context_destroy(ctx));
}

static const struct subject unasked[] = {
    OF_SHUFFLES(SHUFFLE_NONE),
    GEMMS("f32", MMA_WMMA, GEMM_F32, false), // factors of 16 bits are for those who ask for them
    GEMMS("tf32", MMA_DPAS_16, GEMM_TF32, false),
    ATTENTIONS("bf16", MMA_WMMA, GEMM_BF16, false), // no tiles
};

TABLE_TEST(what_is_not_asked_for_is_not_used, unasked)
{
    attncl_context *ctx = findings_context();
    char why[PROBE_WHY_BYTES];

    setenv("ATTNCL_VARIANT", "gpu", 1); // not compared then
    ck_assert_uint_eq(features(ctx, &unasked[_i], PROBE_RUN), 1u << GPU_VARIANT);
    ck_assert_uint_eq(features(ctx, &softmax_gpu, PROBE_RUN), 1u << GPU_VARIANT);
    setenv("ATTNCL_SHUFFLE", "off", 1);
    ck_assert_uint_eq(features(ctx, &shuffles, PROBE_RUN), 1u << GPU_VARIANT);
    unsetenv("ATTNCL_VARIANT");
    ck_assert_int_eq(known(ctx, unasked[_i].name, why), PROBE_UNKNOWN);
    ck_assert_int_eq(known(ctx, softmax_gpu.name, why), PROBE_UNKNOWN);
    ck_ok(attncl_context_destroy(ctx));
}

// Three products of TF32 for one of floats, where a tuning file says that they pay: each kind for itself.
TEST(three_terms_are_used_where_they_were_measured)
{
    attncl_context *ctx = findings_context();
    struct device_caps caps;

    for (int i = 0; i < 2; ++i)
        ck_ok(attncl__verdict_keep(ctx, i ? attentions.name : gemms.name, ""));
    if (describe(ctx, &gemms, &caps)) {
        caps.tuned->entries[TUNE_THREE_TERMS][TUNE_OF_ATTENTION].line = 0;
        struct fit fit = {.probes = PROBE_RUN};
        ck_ok(apply(ctx, &caps, gemms.cls, &fit));
        ck_ok(apply(ctx, &caps, attentions.cls, &fit));
        ck_assert(caps.mma == MMA_PTX && caps.attention_mma == MMA_NONE);
        caps.tuned->entries[TUNE_THREE_TERMS][TUNE_OF_GEMM].value[THREE_TERMS_USED] = 0;
        caps.tuned->entries[TUNE_THREE_TERMS][TUNE_OF_ATTENTION].line = 1;
        caps.mma = MMA_NONE;
        ck_ok(apply(ctx, &caps, gemms.cls, &fit));
        ck_ok(apply(ctx, &caps, attentions.cls, &fit));
        ck_assert(caps.mma == MMA_NONE && caps.attention_mma == MMA_PTX);
    }
    ck_ok(attncl_context_destroy(ctx));
}

// Two ops, of which the first is wrong in the GPU variant alone: its results are those of the other one.
TEST(an_op_that_is_wrong_falls_back_by_itself)
{
    enum { N = 300 };
    static const int64_t shape[] = {1, N};
    attncl_graph *g = NULL;
    float x[N] = {0};

    sources_write("norm/softmax.cl", "1.0f / r.sum", "1.001f / r.sum"); // of the GPU variant alone
    attncl_context *ctx = findings_context();
    describe(ctx, &softmax_gpu, &ctx->caps);
    ck_ok(attncl_graph_create(ctx, &g));
    const attncl_value v = attncl_graph_input(g, "x", ATTNCL_F32, 2, shape);
    attncl_graph_output(g, "y", attncl_activate(g, attncl_softmax(g, v, -1), ATTNCL_SIGMOID));
    attncl_graph_output(g, "p", attncl_softmax(g, v, -1));
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "p", x, sizeof x));
    for (int i = 0; i < N; ++i)
        ck_assert_float_eq_tol(x[i], 1.0f / N, 1e-8f);
    ck_assert_msg(strstr(warning, "softmax gpu is not used: result 0 of softmax_fwd"), "%s",
                  warning);
    attncl_graph_destroy(g);
    unsetenv("ATTNCL_CL_DIR");
    ck_assert_uint_eq(features(ctx, &functions, PROBE_LOOK_UP), 1u << GPU_VARIANT);
    ck_assert_uint_eq(features(ctx, &softmax_gpu, PROBE_LOOK_UP), 0);

    struct fit fit = {.probes = PROBE_RUN};
    struct device_caps caps = ctx->caps;
    attncl__probe_remember(ctx, "softmax cpu", PROBE_FAILED, "it is known to be wrong");
    ck_fails(apply(ctx, &caps, softmax_gpu.cls, &fit), ATTNCL_ERR_UNSUPPORTED, "computes wrongly");
    ck_assert_ptr_nonnull(strstr(attncl_last_error(), "it is known to be wrong"));
    ck_ok(attncl_context_destroy(ctx));
}

// The largest error of a product of two matrices of ones plus 2^-9, as a share of it, as a graph computes it.
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
        ck_ok(attncl__verdict_keep(ctx, "mma gemm f32", ""));
        ck_ok(attncl__verdict_keep(ctx, "mma gemm tf32", ""));
        ck_ok(attncl__verdict_keep(ctx, "mma gemm bf16", ""));
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_DEFAULT) < 1e-6);
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_TF32) < 1e-6); // of 11 bits, it loses none
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_BF16) > 1e-3);
        attncl__caps_set_precision(&ctx->caps, ATTNCL_PRECISION_BF16);
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_DEFAULT) > 1e-3);
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_FLOAT32) < 1e-6);
    }
    ck_ok(attncl_context_destroy(ctx));
}
