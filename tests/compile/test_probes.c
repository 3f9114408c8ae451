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
#include "support/launch_mock.h"
#include "support/sources.h"
#include "support/test.h"

enum { LANES = 128 };  // of a sub-group: two sizes of work-groups are compared
enum { SMALLEST = 4 }; // work-groups for which the library takes the GPU variant

static char saved[2][16]; // ATTNCL_VARIANT, ATTNCL_GEMM, as they were
static const char *const variables[] = {"ATTNCL_VARIANT", "ATTNCL_GEMM"};
static char warning[1024];

static void keep_warning(attncl_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == ATTNCL_LOG_WARN && strstr(text, " with driver "))
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
    sources_emulate = true; // else the compiler does not know the instruction
    attncl_log_set(keep_warning, NULL, ATTNCL_LOG_WARN);
}

static void down(void)
{
    attncl_log_set(NULL, NULL, ATTNCL_LOG_WARN);
    unsetenv("ATTNCL_SHUFFLE");
    launch_mock_clblast = (struct launch_mock_clblast){0};
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
};

#define OF_VARIANT(text, op)                                                                       \
    {                                                                                              \
        .name = text, .cls = &attncl__op_##op                                                      \
    }
#define OF_SHUFFLES(which)                                                                         \
    {                                                                                              \
        .name = "shuffles", .cls = &attncl__op_softmax_fwd, .shuffle = which                       \
    }
#define OF_MMA(text, op, ...)                                                                      \
    {                                                                                              \
        "mma " text, &attncl__op_##op, SHUFFLE_NONE, __VA_ARGS__                                   \
    }
#define GEMMS(text, ...)      OF_MMA("gemm " text, linear_fwd, __VA_ARGS__)
#define ATTENTIONS(text, ...) OF_MMA("attention " text, attention_fwd, __VA_ARGS__)
#define GRADIENTS(text, ...)  OF_MMA("attention gradients " text, attention_bwd, __VA_ARGS__)

// False where the device's work-groups are too small.
static bool describe(attncl_context *ctx, const struct subject *s, struct device_caps *caps)
{
    if (s->mma) {
        const bool able = emulated_mma_caps(ctx, s->mma, s->precision, caps);
        caps->shuffle_candidate = SHUFFLE_NONE;
        caps->clblast_candidate = false;
        return able;
    }
    *caps = ctx->caps;
    caps->clblast_candidate = false; // its probe asks for sizes, which a bare op has not
    caps->variant = VARIANT_GPU;
    caps->vector_width = 4;
    caps->is_gpu = s->shuffle == SHUFFLE_NONE;
    caps->compute_units = 1; // the largest product takes long here
    caps->shuffle_candidate = s->shuffle;
    caps->shuffle_lanes = LANES;
    if (strstr(s->name, " gpu"))
        return caps->max_group >= SMALLEST;
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
    return attncl__probe_get_verdict(ctx, &ctx->caps, &(struct probe){.name = name}, PROBE_LOOK_UP,
                                     why);
}

// The variants that others have are right; that of GPUs is wrong where the subject is the other one.
static void remember_others(attncl_context *ctx, const char *name)
{
    char other[PROBE_NAME_BYTES];

    for (int i = 0; i < attncl__n_probes; ++i) {
        if (attncl__probes[i].feature != GPU_VARIANT)
            continue;
        snprintf(other, sizeof other, "%s gpu", attncl__probes[i].name);
        if (strncmp(name, other, strlen(other) - 3) != 0)
            attncl__probe_remember(ctx, other, PROBE_PASSED, "");
        else if (strcmp(name, other) != 0)
            attncl__probe_remember(ctx, other, PROBE_FAILED, "it is wrong");
        strcat(other, " 32");
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
        const enum probe_verdict verdict = known(ctx, s->name, why);
        ck_assert_msg(verdict == (words ? PROBE_FAILED : PROBE_PASSED), "verdict %d: %s", verdict,
                      why);
        ck_assert_msg(!words || strstr(why, words), "\"%s\" lacks \"%s\"", why, words);
    }
    attncl__fit_free(&fit);
    ck_ok(attncl_context_destroy(ctx));
}

enum {
    PRODUCTS,
    PRODUCTS_CPU,
    SOFTMAX,
    NORMS,
    FUNCTIONS,
    FUNCTIONS_CPU,
    ATTENTION,
    AFTS,
    SHUFFLE,
    OF_AMD,
    GEMM,
    WMMA,
    GFX12,
    DPAS_8,
    DPAS_16,
    ATTENTION_BY_MMA,
    GRADIENTS_BY_MMA,
    N_NAMED,
};
static const struct subject subjects[] = {
    [PRODUCTS] = OF_VARIANT("products gpu", linear_fwd),
    [PRODUCTS_CPU] = OF_VARIANT("products cpu", linear_fwd),
    [SOFTMAX] = OF_VARIANT("softmax gpu", softmax_fwd),
    [NORMS] = OF_VARIANT("layer norm gpu", layer_norm_bwd),
    [FUNCTIONS] = OF_VARIANT("functions gpu", activation_bwd),
    [FUNCTIONS_CPU] = OF_VARIANT("functions cpu", activation_fwd),
    [ATTENTION] = OF_VARIANT("attention gpu", attention_fwd),
    [AFTS] = OF_VARIANT("aft gpu", aft_fwd),
    [SHUFFLE] = OF_SHUFFLES(SHUFFLE_KHR),
    [OF_AMD] = OF_SHUFFLES(SHUFFLE_AMD),
    [GEMM] = GEMMS("f32", MMA_PTX, GEMM_F32),
    [WMMA] = GEMMS("bf16", MMA_WMMA, GEMM_BF16),
    [GFX12] = GEMMS("bf16", MMA_WMMA_GFX12, GEMM_BF16),
    [DPAS_8] = GEMMS("bf16", MMA_DPAS_8, GEMM_BF16),
    [DPAS_16] = GEMMS("bf16", MMA_DPAS_16, GEMM_BF16),
    [ATTENTION_BY_MMA] = ATTENTIONS("f32", MMA_PTX, GEMM_F32),
    [GRADIENTS_BY_MMA] = GRADIENTS("f32", MMA_PTX, GEMM_F32),
    OF_VARIANT("softmax cpu", softmax_bwd),
    OF_VARIANT("layer norm cpu", layer_norm_fwd),
    OF_VARIANT("attention cpu", attention_step_fwd),
    OF_VARIANT("aft cpu", aft_prefill_fwd),
    GEMMS("tf32", MMA_PTX, GEMM_TF32),
    GEMMS("bf16", MMA_PTX, GEMM_BF16),
    GEMMS("f32", MMA_MFMA, GEMM_BF16), // in float, whatever is asked for
    ATTENTIONS("tf32", MMA_PTX, GEMM_TF32),
    ATTENTIONS("bf16", MMA_PTX, GEMM_BF16),
    ATTENTIONS("f32", MMA_MFMA, GEMM_F32),
    GRADIENTS("tf32", MMA_PTX, GEMM_TF32),
    GRADIENTS("bf16", MMA_PTX, GEMM_BF16),
    GRADIENTS("f32", MMA_MFMA, GEMM_F32),
};

// Emulated attention takes PoCL seconds to compile, the reductions half a minute: smoke runs have one kind of each.
static bool is_slow(const struct subject *s)
{
    const bool is_attention = s->mma && s->cls != &attncl__op_linear_fwd;

    return (is_attention && s != &subjects[GRADIENTS_BY_MMA]) || s == &subjects[OF_AMD];
}

TABLE_TEST(right_ones_pass, subjects)
{
    if (is_slow(&subjects[_i]) && !test_has_full_sizes())
        return;
    check_judged(&subjects[_i], NULL);
}

static const struct subject unknown_ones[] = {
    OF_SHUFFLES(SHUFFLE_AMD),
    GEMMS("f32", MMA_MFMA, GEMM_F32),
    ATTENTIONS("f32", MMA_MFMA, GEMM_F32),
    GRADIENTS("f32", MMA_MFMA, GEMM_F32),
};

TABLE_TEST(what_the_compiler_does_not_know_fails, unknown_ones)
{
    sources_emulate = false;
    check_judged(&unknown_ones[_i], "does not build or does not fit");
}

// Of a variant it is no mistake: what the device refuses is told where a graph needs it.
TEST(a_variant_that_does_not_build_is_not_compared)
{
    sources_write("norm/softmax.cl", "KERNEL void", "KERNEL broken");
    check_judged(&subjects[SOFTMAX], NULL);
}

#define MMA       "common/mma.clh"
#define GEMM_TILE "gemm/gemm_gpu_mma.cl"
#define SHARED    "attention/attention_gpu_mma.clh"
#define BACKWARD  "attention/attention_bwd_gpu_mma.cl"
#define ROWS      "common/row_tiling.clh"
#define MANY_ROWS "linear_fwd of [216, 24]"
#define INTEGERS  "bmm_fwd of [1, 64, 16]"
#define UNWRITTEN "never written"
static const struct {
    int of;
    const char *file, *from, *to, *words; // NULL: any
} mistakes[] = {
    // Changes of a thousandth, or less.
    {PRODUCTS, "gemm/gemm_gpu.cl", "+= a[r] * b[c]", "+= a[r] * b[c] * 1.001f", MANY_ROWS},
    {PRODUCTS, "gemm/gemv.clh", "+= x[r] * w", "+= x[r] * w * 1.001f", "linear_fwd of [3, 300]"},
    {SOFTMAX, "norm/softmax.cl", "1.0f / r.sum", "1.001f / r.sum", "by 0.001 of its largest"},
    {NORMS, "norm/layer_norm.cl", "FV d = ((v - norm.x) - norm.y)",
     "FV d = ((v - norm.x) - norm.y) * 1.001f", NULL},
    {FUNCTIONS, "common/math.clh", "p * a + 0.437251255f", "p * a + 0.4372f", NULL},
    {ATTENTION, "attention/attention_gpu.cl", "exp_nonpos_f(s[r][c] - shift)",
     "exp_nonpos_f(1.001f * (s[r][c] - shift))", NULL},
    {AFTS, "common/aft.clh", "sigmoid_v(q) * b / a", "sigmoid_v(q) * b / a * 1.001f", NULL},
    // Right in the first run alone, as what races may be.
    {FUNCTIONS, "elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);",
     "VSTORE(isnan(y[c]) ? ACTIVATE(v) : v, y + c);", "is another one in run 2"},
    // One element is NaN or is not written, or one column is wrong.
    {PRODUCTS, "gemm/gemm_gpu.cl", "store_some(x,", "if (i + j != 8) store_some(x,", UNWRITTEN},
    {PRODUCTS, "gemm/gemm_gpu.cl", "store_some(x, to",
     "x.s0 *= j == 100 ? 1.01f : 1.0f; store_some(x, to", MANY_ROWS},
    {PRODUCTS_CPU, "gemm/gemm_cpu.cl", "VSTORE(sum,", "VSTORE(x == 0 ? (FV)(NAN) : sum,", NULL},
    {FUNCTIONS_CPU, "elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);",
     "if (c > 0) VSTORE(ACTIVATE(v), y + c);", UNWRITTEN},
    {FUNCTIONS, "elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);",
     "VSTORE(c == 0 ? (FV)(NAN) : ACTIVATE(v), y + c);", NULL},
    // Lanes that read another's numbers.
    {SHUFFLE, "common/shuffle_instruction.clh", "tmp[i ^ distance]", "tmp[i ^ (distance / 2)]",
     NULL},
    {OF_AMD, "common/shuffle.clh", "0x1b", "0xb1", NULL},
    {OF_AMD, "common/shuffle.clh", "0x128", "0x124", NULL},
    {SHUFFLE, ROWS, "n < JOINED", "n < JOINED / 2", "layer_norm_fwd"},
    {SHUFFLE, ROWS, "(x, JOIN, SHUFFLE_XOR, tmp);", "(x, ADD, SHUFFLE_XOR, tmp);", "softmax_fwd"},
    // Elements that are not where an instruction has them, an element that is NaN or not written, beyond the integers.
    {WMMA, MMA, "MMA_A_K(lane, i)\n", "MMA_A_K(lane, (i) ^ 1)\n", INTEGERS},
    {GFX12, MMA, "MMA_A_K(lane, i)\n", "MMA_A_K(lane, (i) ^ 1)\n", INTEGERS},
    {DPAS_8, MMA, "((lane)*MMA_A / MMA_M + (i) / MMA_M)", "((lane) + (i) / MMA_M)", INTEGERS},
    {DPAS_16, MMA, "((i) % MMA_M)", "(((i) + 1) % MMA_M)", INTEGERS},
    {GEMM, MMA, "% 4 + 4 * (i))", "% 4 + 4 * (1 - (i)))", INTEGERS},
    {GEMM, GEMM_TILE, "if (i >= m || j >= n)", "if (i >= m || j >= n || i + j == 190)", UNWRITTEN},
    {GEMM, GEMM_TILE, "if (k_from > 0)", "x = i + j == 190 ? NAN : x; if (k_from > 0)", NULL},
    // And sums that are not scaled, statistics that only gradients would miss, pairs beyond the last column that counts.
    {ATTENTION_BY_MMA, MMA, "mma_instruction(rest, a_low, b_high, box);", "", NULL},
    {ATTENTION_BY_MMA, "attention/attention_gpu_mma.cl", "sums[n][c] *= factor[c / TERMS];", ";",
     "result 0 of attention_fwd"},
    {ATTENTION_BY_MMA, "attention/attention_gpu_mma.cl", "= whole ? factor : sum;", "= sum;",
     "result 2 of attention_fwd"},
    {ATTENTION_BY_MMA, SHARED, "if (i < end &&", "if (i < end && i + e != 9 &&", UNWRITTEN},
    {GRADIENTS_BY_MMA, BACKWARD, "IS_WANTED(n, c) ? e : 0.0f", "e", NULL},
    {GRADIENTS_BY_MMA, SHARED, "if (i < end &&", "if (i < end && i + e != 9 &&", UNWRITTEN},
};

// Smoke runs have every third of them, and of emulated attention what is not written.
static bool is_left_out(int i)
{
    if (test_has_full_sizes())
        return false;
    if (mistakes[i].of == ATTENTION_BY_MMA || mistakes[i].of == GRADIENTS_BY_MMA)
        return !mistakes[i].words || strcmp(mistakes[i].words, UNWRITTEN) != 0;
    return i % 3 != 1;
}

TABLE_TEST(mistakes_are_found, mistakes)
{
    if (is_left_out(_i))
        return;
    sources_write(mistakes[_i].file, mistakes[_i].from, mistakes[_i].to);
    check_judged(&subjects[mistakes[_i].of], mistakes[_i].words ? mistakes[_i].words : "");
}

// Programs for their comparison are built where a product's epilogue, or a function by itself, needs more than a maximum.
TEST(functions_are_compared_where_there_are_any)
{
    static const struct linear_fwd_params kinds[] = {
        {ATTNCL_IDENTITY}, {ATTNCL_RELU}, {ATTNCL_GELU}};
    attncl_context *ctx = findings_context();
    char why[PROBE_WHY_BYTES];
    struct fit fit = {.probes = PROBE_RUN};
    struct device_caps caps;

    describe(ctx, &subjects[FUNCTIONS], &caps);
    remember_others(ctx, subjects[FUNCTIONS].name);
    for (size_t i = 0; i < COUNT_OF(kinds); ++i) {
        struct lowered_node node = {.cls = &attncl__op_linear_fwd, .params = &kinds[i]};
        struct lowered p = {.caps = &caps, .nodes = &node, .n_nodes = 1};

        ck_ok(attncl__apply_probes(ctx, &fit, &p));
        ck_assert_int_eq(known(ctx, subjects[FUNCTIONS].name, why),
                         kinds[i].activation == ATTNCL_GELU ? PROBE_PASSED : PROBE_UNKNOWN);
    }
    attncl__fit_free(&fit);
    ck_ok(attncl_context_destroy(ctx));
}

// With the lanes that lib/device/caps.c takes: right on devices that have an extension.
TEST(the_devices_own_shuffles_are_right)
{
    setenv("ATTNCL_VARIANT", "gpu", 1);
    sources_emulate = false;
    attncl_context *ctx = findings_context();
    struct device_caps caps = ctx->caps;
    struct fit fit = {.probes = PROBE_RUN};
    char why[PROBE_WHY_BYTES];

    if (caps.shuffle_candidate == SHUFFLE_INTEL || caps.shuffle_candidate == SHUFFLE_KHR) {
        ck_assert(caps.shuffle_lanes == 16 || caps.shuffle_lanes == 8);
        caps.mma_candidate = MMA_NONE;
        ck_ok(apply(ctx, &caps, &attncl__op_softmax_fwd, &fit));
        ck_assert_msg(known(ctx, "shuffles", why) == PROBE_PASSED, "%s", why);
    }
    unsetenv("ATTNCL_VARIANT");
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
    const struct device_caps *const of_op = attncl__fit_get_caps(&fit, s->cls, &caps);
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
    {&subjects[SOFTMAX], GPU_VARIANT},
    {&subjects[SHUFFLE], SHUFFLES},
    {&subjects[GEMM], GEMM_MMA},
    {&subjects[WMMA], GEMM_MMA},
    {&subjects[ATTENTION_BY_MMA], ATTENTION_MMA},
    {&subjects[GRADIENTS_BY_MMA], ATTENTION_BWD_MMA},
};

// An op uses what passed or, where it is only looked up, is unknown, and nothing of another op's; the next context knows.
TABLE_TEST(verdicts_decide, uses)
{
    const struct subject *const s = uses[_i].of;
    const unsigned with = 1u << GPU_VARIANT | 1u << uses[_i].feature;
    const unsigned without = with ^ 1u << uses[_i].feature;
    attncl_context *ctx = findings_context();
    char smaller[PROBE_NAME_BYTES + 4];
    struct object_counts before, after;

    snprintf(smaller, sizeof smaller, "%s 32", s->name);
    attncl__probe_remember(ctx, smaller, PROBE_FAILED, "it is wrong too");
    attncl__objects_count(&before);
    ck_assert_uint_eq(features(ctx, s, PROBE_LOOK_UP), with);
    attncl__objects_count(&after);
    ck_assert_mem_eq(&after, &before, sizeof after);
    ck_ok(attncl__verdict_store(ctx, s->name, "it is known to be wrong"));
    ck_assert_uint_eq(features(ctx, s, PROBE_LOOK_UP), without);
    ck_ok(attncl_context_destroy(ctx));
    ck_assert(strstr(warning, s->name) && strstr(warning, "is not used: it is "));
    ctx = findings_context();
    ck_ok(attncl__verdict_store(ctx, s->name, ""));
    ck_assert_uint_eq(features(ctx, s, PROBE_RUN), with);
    ck_ok(attncl_context_destroy(ctx));
}

static const struct subject unasked[] = {
    OF_SHUFFLES(SHUFFLE_NONE),
    GEMMS("f32", MMA_WMMA, GEMM_F32), // factors of 16 bits are for those who ask for them
    GEMMS("tf32", MMA_DPAS_16, GEMM_TF32), ATTENTIONS("bf16", MMA_WMMA, GEMM_BF16), // no tiles
};

TABLE_TEST(what_is_not_asked_for_is_not_used, unasked)
{
    attncl_context *ctx = findings_context();
    char why[PROBE_WHY_BYTES];

    setenv("ATTNCL_VARIANT", "gpu", 1); // not compared then
    ck_assert_uint_eq(features(ctx, &unasked[_i], PROBE_RUN), 1u << GPU_VARIANT);
    ck_assert_uint_eq(features(ctx, &subjects[SOFTMAX], PROBE_RUN), 1u << GPU_VARIANT);
    setenv("ATTNCL_SHUFFLE", "off", 1);
    ck_assert_uint_eq(features(ctx, &subjects[SHUFFLE], PROBE_RUN), 1u << GPU_VARIANT);
    unsetenv("ATTNCL_VARIANT");
    ck_assert_int_eq(known(ctx, unasked[_i].name, why), PROBE_UNKNOWN);
    ck_assert_int_eq(known(ctx, subjects[SOFTMAX].name, why), PROBE_UNKNOWN);
    ck_ok(attncl_context_destroy(ctx));
}

// Three products of TF32 for one of floats, where a tuning file says that they pay: each kind for itself.
TEST(three_terms_are_used_where_they_were_measured)
{
    attncl_context *ctx = findings_context();
    struct device_caps caps;

    for (int i = 0; i < 2; ++i)
        ck_ok(attncl__verdict_store(ctx, i ? subjects[ATTENTION_BY_MMA].name : subjects[GEMM].name,
                                    ""));
    if (describe(ctx, &subjects[GEMM], &caps)) {
        caps.tuned->entries[TUNE_THREE_TERMS][TUNE_OF_ATTENTION].line = 0;
        struct fit fit = {.probes = PROBE_RUN};
        ck_ok(apply(ctx, &caps, subjects[GEMM].cls, &fit));
        ck_ok(apply(ctx, &caps, subjects[ATTENTION_BY_MMA].cls, &fit));
        ck_assert(caps.mma == MMA_PTX && caps.attention_mma == MMA_NONE);
        caps.tuned->entries[TUNE_THREE_TERMS][TUNE_OF_GEMM].value[THREE_TERMS_USED] = 0;
        caps.tuned->entries[TUNE_THREE_TERMS][TUNE_OF_ATTENTION].line = 1;
        caps.mma = MMA_NONE;
        ck_ok(apply(ctx, &caps, subjects[GEMM].cls, &fit));
        ck_ok(apply(ctx, &caps, subjects[ATTENTION_BY_MMA].cls, &fit));
        ck_assert(caps.mma == MMA_NONE && caps.attention_mma == MMA_PTX);
    }
    ck_ok(attncl_context_destroy(ctx));
}

// Wrong in work-groups of more than 32: the op takes smaller ones, and stays in the GPU variant.
TEST(an_op_that_is_wrong_in_large_work_groups_takes_smaller_ones)
{
    char why[PROBE_WHY_BYTES];

    sources_write("norm/softmax.cl", "1.0f / r.sum", "(LS > 32 ? 1.001f : 1.0f) / r.sum");
    attncl_context *ctx = findings_context();
    struct fit fit = {.probes = PROBE_RUN};
    struct device_caps caps;

    describe(ctx, &subjects[SOFTMAX], &caps);
    ck_ok(apply(ctx, &caps, subjects[SOFTMAX].cls, &fit));
    ck_assert_int_eq(known(ctx, "softmax gpu", why), PROBE_FAILED);
    ck_assert_int_eq(known(ctx, "softmax gpu 32", why), PROBE_PASSED);
    const struct device_caps *const of_op =
        attncl__fit_get_caps(&fit, subjects[SOFTMAX].cls, &caps);
    ck_assert(of_op->variant == VARIANT_GPU && of_op->max_group == 32);
    attncl__fit_free(&fit);
    ck_ok(attncl_context_destroy(ctx));
}

// Two ops, of which the first is wrong in the GPU variant alone: its results are those of the other one.
TEST(an_op_that_is_wrong_falls_back_by_itself)
{
    enum { N = 300 };
    static const int64_t shape[] = {1, N};
    attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
    struct object_counts before, after;
    attncl_graph *g = NULL;
    float x[N] = {0};

    sources_write("norm/softmax.cl", "1.0f / r.sum", "1.001f / r.sum"); // of the GPU variant alone
    attncl_context *ctx = findings_context();
    describe(ctx, &subjects[SOFTMAX], &ctx->caps);
    ck_ok(attncl_graph_create(ctx, &g));
    const attncl_value v = attncl_graph_input(g, "x", ATTNCL_F32, 2, shape);
    attncl_graph_output(g, "y", attncl_activate(g, attncl_softmax(g, v, -1), ATTNCL_SIGMOID));
    attncl_graph_output(g, "p", attncl_softmax(g, v, -1));
    attncl__objects_count(&before);
    ck_ok(attncl_graph_memory(g, &report)); // looks up alone
    attncl__objects_count(&after);
    ck_assert_mem_eq(&after, &before, sizeof after);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "p", x, sizeof x));
    for (int i = 0; i < N; ++i)
        ck_assert_float_eq_tol(x[i], 1.0f / N, 1e-8f);
    ck_assert_msg(strstr(warning, "softmax gpu 32 is not used: result 0 of softmax_fwd"),
                  "warned of \"%s\"", warning);
    attncl_graph_destroy(g);
    unsetenv("ATTNCL_CL_DIR");
    ck_assert_uint_eq(features(ctx, &subjects[FUNCTIONS], PROBE_LOOK_UP), 1u << GPU_VARIANT);
    ck_assert_uint_eq(features(ctx, &subjects[SOFTMAX], PROBE_LOOK_UP), 0);

    struct fit fit = {.probes = PROBE_RUN};
    struct device_caps caps = ctx->caps;
    attncl__probe_remember(ctx, "softmax cpu", PROBE_FAILED, "it is known to be wrong");
    ck_fails(apply(ctx, &caps, subjects[SOFTMAX].cls, &fit), ATTNCL_ERR_UNSUPPORTED,
             "computes wrongly");
    ck_assert_ptr_nonnull(strstr(attncl_last_error(), "it is known to be wrong"));
    ck_ok(attncl_context_destroy(ctx));
}

// -- CLBlast

// On a GPU with CLBlast, whose own kernels are right: batches of [n, k] times [k, n].
static attncl_context *compile_batch(int batch, int n, int k, attncl_graph **ret)
{
    attncl_context *ctx = findings_context();

    describe(ctx, &subjects[PRODUCTS], &ctx->caps);
    ctx->caps.clblast_candidate = true;
    attncl__probe_remember(ctx, "products gpu", PROBE_PASSED, "");
    attncl__probe_remember(ctx, "functions gpu", PROBE_PASSED, "");
    ck_ok(attncl_graph_create(ctx, ret));
    const attncl_value a = attncl_graph_input(*ret, "a", ATTNCL_F32, 3, (int64_t[]){batch, n, k});
    const attncl_value b = attncl_graph_input(*ret, "b", ATTNCL_F32, 3, (int64_t[]){batch, k, n});
    attncl_graph_output(*ret, "c", attncl_bmm(*ret, a, b));
    ck_ok(attncl_graph_compile(*ret, NULL));
    return ctx;
}

// Of attention's size.
static attncl_context *run_batch(void)
{
    enum { BATCH = 64, N = 256, K = 64 };
    static float a[BATCH * N * K], c[BATCH * N * N];
    attncl_graph *g = NULL;
    attncl_context *ctx = compile_batch(BATCH, N, K, &g);

    for (int i = 0; i < BATCH * N * K; ++i)
        a[i] = (float)(i % 7 - 3);
    ck_ok(attncl_graph_write(g, "a", a, sizeof a));
    ck_ok(attncl_graph_write(g, "b", a, sizeof a));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "c", c, sizeof c));
    for (int i = 0; i < BATCH * N * N; i += 997) {
        const int batch = i / (N * N), row = i / N % N, column = i % N;
        float sum = 0;
        for (int k = 0; k < K; ++k)
            sum += a[(batch * N + row) * K + k] * a[(batch * K + k) * N + column];
        ck_assert_float_eq(c[i], sum);
    }
    attncl_graph_destroy(g);
    return ctx;
}

TEST(clblast_is_not_compared_for_small_products)
{
    char why[PROBE_WHY_BYTES];
    attncl_graph *g = NULL;
    attncl_context *ctx = compile_batch(2, 16, 16, &g);

    ck_assert_int_eq(known(ctx, "clblast", why), PROBE_UNKNOWN);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

enum { N_PROBED_PRODUCTS = 5 };

// Without PoCL's optimiser CLBlast's kernels take it long: smoke runs have the first mistake alone.
TEST(clblast_computes_batches_where_it_is_right)
{
    char why[PROBE_WHY_BYTES];

    if (!test_has_full_sizes())
        return;
    attncl_context *ctx = run_batch();

    ck_assert_msg(known(ctx, "clblast", why) == PROBE_PASSED, "%s", why);
    ck_assert_int_eq(launch_mock_clblast.n_products, N_PROBED_PRODUCTS + 1);
    ck_ok(attncl_context_destroy(ctx));
}

static const int wrong_products[] = {1, 2, 3, 4, N_PROBED_PRODUCTS};

TABLE_TEST(clblast_is_not_used_where_it_is_wrong, wrong_products)
{
    char why[PROBE_WHY_BYTES];

    if (_i > 0 && !test_has_full_sizes())
        return;
    launch_mock_clblast.wrong_one = wrong_products[_i];
    attncl_context *ctx = run_batch();

    ck_assert_int_eq(known(ctx, "clblast", why), PROBE_FAILED);
    ck_assert_msg(strstr(warning, "clblast is not used: result 0 of "), "%s", warning);
    ck_assert_int_eq(launch_mock_clblast.n_products, wrong_products[_i]);
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
        ck_ok(attncl__verdict_store(ctx, "mma gemm f32", ""));
        ck_ok(attncl__verdict_store(ctx, "mma gemm tf32", ""));
        ck_ok(attncl__verdict_store(ctx, "mma gemm bf16", ""));
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_DEFAULT) < 1e-6);
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_TF32) < 1e-6); // of 11 bits, it loses none
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_BF16) > 1e-3);
        attncl__caps_set_precision(&ctx->caps, ATTNCL_PRECISION_BF16);
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_DEFAULT) > 1e-3);
        ck_assert(error_of_graph(ctx, ATTNCL_PRECISION_FLOAT32) < 1e-6);
    }
    ck_ok(attncl_context_destroy(ctx));
}
