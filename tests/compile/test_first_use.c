// SPDX-License-Identifier: MIT
// What is compared with the host before a GPU's kernels are used: right ones pass in both variants, a mistake in any of
// them is found, the CPU variant takes their place, and what was found is kept and told.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/log.h"
#include "compile/first_use.h"
#include "support/directory.h"
#include "support/sources.h"
#include "support/test.h"

static char variant[16]; // ATTNCL_VARIANT, as it was
static char warning[1024];

static void keep_warning(attncl_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == ATTNCL_LOG_WARN && strstr(text, "kernels are not used"))
        snprintf(warning, sizeof warning, "%s", text);
}

static void up(void)
{
    const char *const text = getenv("ATTNCL_VARIANT");
    findings_up();
    snprintf(variant, sizeof variant, "%s", text ? text : "");
    unsetenv("ATTNCL_VARIANT");
    warning[0] = '\0';
    attncl_log_set(keep_warning, NULL, ATTNCL_LOG_WARN);
}

static void down(void)
{
    attncl_log_set(NULL, NULL, ATTNCL_LOG_WARN);
    if (variant[0])
        setenv("ATTNCL_VARIANT", variant, 1);
    findings_down();
}

FIXTURE(up, down);

// This device as a GPU, of few compute units: the largest product takes long here.
static struct device_caps as_gpu(const attncl_context *ctx, enum kernel_variant kind)
{
    struct device_caps caps = ctx->caps;

    caps.is_gpu = true;
    caps.variant = kind;
    if (kind == VARIANT_GPU)
        caps.vector_width = 4;
    caps.compute_units = 1;
    return caps;
}

static void judge(enum kernel_variant kind, char failed[FINDING_BYTES])
{
    attncl_context *ctx = findings_context();
    const struct device_caps caps = as_gpu(ctx, kind);

    ck_ok(attncl__first_use_judge(ctx, &caps, failed));
    ck_ok(attncl_context_destroy(ctx));
}

static const enum kernel_variant kinds[] = {VARIANT_CPU, VARIANT_GPU};

TABLE_TEST(right_kernels_pass, kinds)
{
    char failed[FINDING_BYTES] = "nothing was written";

    judge(kinds[_i], failed);
    ck_assert_str_eq(failed, "");
}

// Changes of a thousandth, or less, in kernels of the GPU variant.
static const struct {
    const char *file, *from, *to, *words;
} mistakes[] = {
    {"gemm/gemm_gpu.cl", "+= a[r] * b[c]", "+= a[r] * b[c] * 1.001f", "a product of many rows"},
    {"gemm/gemv.cl", "+= x[r] * w", "+= x[r] * w * 1.001f", "a product of three rows"},
    {"norm/softmax.cl", "1.0f / r.sum", "1.001f / r.sum", "a softmax (softmax_fwd)"},
    {"norm/layer_norm.cl", "const FV d = ((v - norm.x) - norm.y) * norm.z",
     "const FV d = ((v - norm.x) - norm.y) * norm.z * 1.001f", "a layer norm"},
    {"common/math.clh", "p * a + 0.437251255f", "p * a + 0.4372f", "GELU"},
    {"attention/attention_gpu.cl", "exp_nonpos_f(s[r][c] - shift)",
     "exp_nonpos_f(s[r][c] - 1.001f * shift)", "an attention"},
    {"common/aft.clh", "sigmoid_v(q) * b / a", "sigmoid_v(q) * b / a * 1.001f", "an AFT"},
};

TABLE_TEST(mistakes_are_found, mistakes)
{
    char failed[FINDING_BYTES] = "nothing was written";

    sources_write(mistakes[_i].file, mistakes[_i].from, mistakes[_i].to);
    judge(VARIANT_GPU, failed);
    ck_assert_msg(strncmp(failed, mistakes[_i].words, strlen(mistakes[_i].words)) == 0,
                  "\"%s\" does not begin with \"%s\"", failed, mistakes[_i].words);
}

// One element is NaN or is not written, in a kernel of either variant, or one column is wrong.
static const struct {
    enum kernel_variant kind;
    const char *file, *from, *to, *words;
} wrong_elements[] = {
    {VARIANT_GPU, "gemm/gemm_gpu.cl", "store_some(x, to, left);",
     "store_some(i + j == 8 ? (float4)(NAN) : x, to, left);", "a product of many rows"},
    {VARIANT_GPU, "gemm/gemm_gpu.cl", "store_some(x, to, left);",
     "if (i + j != 8) store_some(x, to, left);", "a product of many rows"},
    {VARIANT_GPU, "gemm/gemm_gpu.cl", "store_some(x, to, left);",
     "x.s0 *= j == 100 ? 1.01f : 1.0f; store_some(x, to, left);", "a product of many rows"},
    {VARIANT_GPU, "elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);",
     "VSTORE(c == 0 ? (FV)(NAN) : ACTIVATE(v), y + c);", "GELU"},
    {VARIANT_GPU, "elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);",
     "if (c > 0) VSTORE(ACTIVATE(v), y + c);", "GELU"},
    {VARIANT_CPU, "gemm/gemm_cpu.cl", "VSTORE(sum, out + x);",
     "VSTORE(x == 0 ? (FV)(NAN) : sum, out + x);", "a product of"},
    {VARIANT_CPU, "gemm/gemm_cpu.cl", "VSTORE(sum, out + x);", "if (x > 0) VSTORE(sum, out + x);",
     "a product of"},
    {VARIANT_CPU, "elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);",
     "VSTORE(c == 0 ? (FV)(NAN) : ACTIVATE(v), y + c);", "GELU"},
    {VARIANT_CPU, "elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);",
     "if (c > 0) VSTORE(ACTIVATE(v), y + c);", "GELU"},
};

TABLE_TEST(wrong_elements_are_found, wrong_elements)
{
    char failed[FINDING_BYTES] = "nothing was written";

    sources_write(wrong_elements[_i].file, wrong_elements[_i].from, wrong_elements[_i].to);
    judge(wrong_elements[_i].kind, failed);
    ck_assert_msg(strncmp(failed, wrong_elements[_i].words, strlen(wrong_elements[_i].words)) == 0,
                  "\"%s\" does not begin with \"%s\"", failed, wrong_elements[_i].words);
}

// What the device refuses is told where a graph needs it.
TEST(what_does_not_build_is_no_mistake)
{
    char failed[FINDING_BYTES] = "nothing was written";

    sources_write("norm/softmax.cl", "KERNEL void", "KERNEL broken");
    judge(VARIANT_GPU, failed);
    ck_assert_str_eq(failed, "");
}

// In a new context each time.
static attncl_status choose(struct device_caps *caps)
{
    attncl_context *ctx = findings_context();
    *caps = as_gpu(ctx, VARIANT_GPU);
    const attncl_status status = attncl__choose_variant(ctx, caps);
    ck_ok(attncl_context_destroy(ctx));
    return status;
}

TEST(right_kernels_are_used_and_known_then)
{
    struct device_caps caps;
    char failed[FINDING_BYTES] = "nothing was written";

    ck_ok(choose(&caps));
    ck_assert_int_eq(caps.variant, VARIANT_GPU);
    ck_assert_str_eq(warning, "");
    attncl_context *ctx = findings_context();
    ck_assert(attncl__finding_read(ctx, "kernels gpu", failed));
    ck_assert_str_eq(failed, "");
    ck_ok(attncl__finding_keep(ctx, "kernels gpu", "a softmax is known to be wrong"));
    ck_ok(attncl_context_destroy(ctx));

    ck_ok(choose(&caps));
    ck_assert_int_eq(caps.variant, VARIANT_CPU);
    ck_assert_msg(strstr(warning, "a softmax is known to be wrong; its GPU kernels are not used"),
                  "%s", warning);
}

TEST(the_cpu_variant_takes_the_place_of_a_wrong_one)
{
    struct device_caps caps;

    sources_write("norm/softmax.cl", "1.0f / r.sum", "1.001f / r.sum"); // of the GPU variant alone
    ck_ok(choose(&caps));
    ck_assert_int_eq(caps.variant, VARIANT_CPU);
    ck_assert_msg(
        strstr(warning, "a softmax (softmax_fwd) is wrong by 0.001 of its largest element"), "%s",
        warning);
}

TEST(a_device_that_is_wrong_in_both_is_refused)
{
    struct device_caps caps;
    attncl_context *ctx = findings_context();

    ck_ok(attncl__finding_keep(ctx, "kernels gpu", "a softmax is known to be wrong"));
    ck_ok(attncl__finding_keep(ctx, "kernels cpu", "a layer norm is known to be wrong"));
    ck_ok(attncl_context_destroy(ctx));
    ck_fails(choose(&caps), ATTNCL_ERR_UNSUPPORTED, "computes wrongly");
    ck_assert_ptr_nonnull(strstr(attncl_last_error(), "a layer norm is known to be wrong"));
}

TEST(a_variant_that_was_asked_for_is_not_compared)
{
    struct device_caps caps;

    sources_write("norm/softmax.cl", "1.0f / r.sum", "1.001f / r.sum");
    setenv("ATTNCL_VARIANT", "gpu", 1);
    ck_ok(choose(&caps));
    unsetenv("ATTNCL_VARIANT");
    ck_assert_int_eq(caps.variant, VARIANT_GPU);
}
