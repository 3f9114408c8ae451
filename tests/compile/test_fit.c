// SPDX-License-Identifier: MIT
// Kernels of the GPU variant that the device's compiler does not build: smaller work-groups, then the CPU variant.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/log.h"
#include "attncl/ops.h"
#include "compile/lowered.h"
#include "device/context.h"
#include "support/directory.h"
#include "support/sources.h"
#include "support/test.h"

enum { COUNT = 3000 }; // in work-groups of 256, or what the device has

static char variant[16]; // ATTNCL_VARIANT, as it was
static char log_text[1024];

static void keep_warning(attncl_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == ATTNCL_LOG_WARN && strstr(text, "recorded again"))
        strncat(log_text, text, sizeof log_text - strlen(log_text) - 1);
}

static void up(void)
{
    const char *const text = getenv("ATTNCL_VARIANT");
    directory_begin();
    snprintf(variant, sizeof variant, "%s", text ? text : "");
    log_text[0] = '\0';
    attncl_log_set(keep_warning, NULL, ATTNCL_LOG_WARN);
}

static void down(void)
{
    attncl_log_set(NULL, NULL, ATTNCL_LOG_WARN);
    if (variant[0])
        setenv("ATTNCL_VARIANT", variant, 1);
    else
        unsetenv("ATTNCL_VARIANT");
    unsetenv("ATTNCL_CL_DIR");
    directory_end();
}

FIXTURE(up, down);

static attncl_status relu(attncl_context *ctx, float y[COUNT])
{
    float x[COUNT];
    attncl_graph *g = NULL;

    for (int i = 0; i < COUNT; ++i)
        x[i] = (float)(i - COUNT / 2);
    ck_ok(attncl_graph_create(ctx, &g));
    const attncl_value in = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){COUNT});
    attncl_graph_output(g, "y", attncl_activate(g, in, ATTNCL_RELU));
    attncl_status status = attncl_graph_compile(g, NULL);
    if (status == ATTNCL_OK) {
        ck_ok(attncl_graph_write(g, "x", x, sizeof x));
        ck_ok(attncl_graph_run(g));
        ck_ok(attncl_graph_read(g, "y", y, sizeof x));
    }
    attncl_graph_destroy(g);
    return status;
}

static const struct {
    const char *condition, *message; // NULL: compiling fails
} compilers[] = {
    {"LS > 64", "recorded again with smaller work-groups"},
    {"LS > 1", "recorded again in the CPU variant"},
    {"LS > 0", NULL},
};

TABLE_TEST(what_does_not_build_is_recorded_again, compilers)
{
    static const char include[] = "#include \"common/prefetch.clh\"";
    float y[COUNT];
    attncl_context *ctx = NULL;
    char text[200];

    if (test_context()->caps.vendor == VENDOR_OCLGRIND) // reports the failed build as a finding
        return;
    snprintf(text, sizeof text, "#if %s\n#error broken on purpose\n#endif\n%s",
             compilers[_i].condition, include);
    sources_write("elementwise/activation.cl", include, text);
    setenv("ATTNCL_VARIANT", "gpu", 1);
    ck_ok(attncl_context_create(NULL, &ctx));
    const bool small = ctx->caps.max_group <= 64;
    const attncl_status status = relu(ctx, y);
    if (compilers[_i].message) {
        ck_ok(status);
        for (int i = 0; i < COUNT; ++i)
            ck_assert_msg(y[i] == fmaxf((float)(i - COUNT / 2), 0), "y[%d] = %g", i, (double)y[i]);
        ck_assert_msg(small || strstr(log_text, compilers[_i].message), "%s", log_text);
    } else {
        ck_assert_msg(status == ATTNCL_ERR_COMPILE, "%s", attncl_last_error());
    }
    ck_ok(attncl_context_destroy(ctx));
}

// What a kernel can run, and the work-groups that its op gets then; 1: the CPU variant.
static const struct {
    size_t max_group, group;
} limits[] = {{0, 1}, {3, 1}, {4, 4}, {9, 8}, {128, 128}};

TABLE_TEST(work_groups_are_powers_of_two_from_four_on, limits)
{
    const struct op_class *const cls = &attncl__op_softmax_fwd;
    const struct refused_op refused = {cls, {.refused = true, .max_group = limits[_i].max_group}};
    struct device_caps device = test_context()->caps;
    struct fit fit = {0};
    bool lowered = false;

    device.variant = VARIANT_GPU;
    device.max_group = 256;
    ck_assert_int_eq(attncl__fit_reduce(&fit, &refused, ATTNCL_ERR_UNSUPPORTED, &device, &lowered),
                     ATTNCL_ERR_UNSUPPORTED);
    const struct device_caps *const caps = attncl__fit_get_caps(&fit, cls, &device);
    ck_assert(lowered);
    ck_assert_int_eq(caps->variant, limits[_i].group == 1 ? VARIANT_CPU : VARIANT_GPU);
    if (caps->variant == VARIANT_GPU)
        ck_assert_uint_eq(caps->max_group, limits[_i].group);
    attncl__fit_free(&fit);
}

// What a probe finds never makes work-groups larger again.
TEST(an_op_keeps_the_smallest_work_groups)
{
    static const size_t groups[] = {128, 32, 64};
    const struct op_class *const cls = &attncl__op_add_fwd;
    struct fit fit = {.n = 0};
    struct device_caps caps = {.max_group = 256};

    for (int i = 0; i < 3; ++i) {
        caps.max_group = groups[i];
        ck_ok(attncl__fit_use(&fit, cls, &caps));
        ck_assert_uint_eq(attncl__fit_get_caps(&fit, cls, &caps)->max_group, i ? 32 : 128);
    }
    attncl__fit_free(&fit);
}
