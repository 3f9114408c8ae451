// SPDX-License-Identifier: MIT
// Tuning entries in use: they change launches but not results, and one that cannot run is rejected.
// And the tuner itself, in a second or less.

#define _GNU_SOURCE // setenv
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attncl/log.h"
#include "attncl/tune.h"
#include "attncl/version.h"
#include "device/context.h"
#include "support/directory.h"
#include "support/sources.h"
#include "support/test.h"
#include "tune/internal.h"

static char log_text[4096];

static void remember(attncl_log_level level, const char *text, void *user)
{
    const size_t used = strlen(log_text);

    (void)level;
    (void)user;
    snprintf(log_text + used, sizeof log_text - used, "%s\n", text);
}

static void set_up(void)
{
    directory_begin();
    log_text[0] = '\0';
}

static void tear_down(void)
{
    attncl_log_set(NULL, NULL, ATTNCL_LOG_ERROR);
    setenv("ATTNCL_TUNE", "off", 1);
    unsetenv("ATTNCL_CL_DIR");
    directory_down();
}

// The device ends loops early and takes no rows.
static bool takes_none(void)
{
    return test_context()->caps.max_loop_iterations != 0;
}

static const struct workload works[] = {
    {.kind = WORK_GEMM, .size = {33, 31, 29}, .flag = true},
    {.kind = WORK_ATTENTION, .size = {2, 50, 24}},
    {.kind = WORK_AFT, .size = {40, 24, 8}},
    {.kind = WORK_AFT, .size = {40, 24, 8}, .flag = true},
    {.kind = WORK_SOFTMAX, .size = {37, 70}},
    {.kind = WORK_NORM, .size = {37, 70}},
    {.kind = WORK_GELU, .size = {37, 70}},
};

enum { N_WORKS = COUNT_OF(works) };

// The smallest and the largest of everything that kernels take, for every class.
static void write_rows(bool largest)
{
    const attncl_device_info *info = &test_context()->info;
    char text[8192] = "attncl-tune 1 " ATTNCL_VERSION_STRING "\n";
    size_t used = strlen(text);

    for (int k = 0; k < N_TUNABLES; ++k)
        for (int c = 0; attncl__tune_kernels[k].classes[c]; ++c) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s\t%s\t%s\t%s\t",
                                     info->name, info->driver_version, attncl__tune_kernels[k].name,
                                     attncl__tune_kernels[k].classes[c]);
            for (int f = 0; attncl__tune_kernels[k].fields[f].name; ++f) {
                const struct tune_field *field = &attncl__tune_kernels[k].fields[f];
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%d", f ? " " : "",
                                         field->name, largest ? field->high : field->low);
            }
            used += (size_t)snprintf(text + used, sizeof text - used, "\n");
        }
    ck_assert_uint_lt(used, sizeof text);
    directory_write("tune/rows", text);
}

static void run_one(attncl_context *ctx, const struct workload *work, struct variant *variant)
{
    struct workload_data data;

    ck_ok(attncl__workload_fill(ctx, work, &data));
    ck_ok(attncl__variant_begin(ctx, work, &data, variant));
    attncl_graph_destroy(variant->graph);
    variant->graph = NULL;
    attncl__workload_clear(&data);
}

static void run_all(const char *rows, struct variant *variants)
{
    attncl_context *ctx = NULL;

    setenv("ATTNCL_TUNE", rows, 1);
    ck_ok(attncl_context_create(NULL, &ctx));
    for (size_t i = 0; i < N_WORKS; ++i)
        run_one(ctx, &works[i], &variants[i]);
    ck_ok(attncl_context_destroy(ctx));
}

static void agree_all(const struct variant *a, const struct variant *b)
{
    for (size_t i = 0; i < N_WORKS; ++i) {
        const int64_t n = works[i].size[0] * works[i].size[1] *
                          (works[i].kind == WORK_ATTENTION ? works[i].size[2] : 1);
        ck_assert_msg(attncl__variants_agree(&a[i], &b[i], n, 64), "workload %zu differs", i);
    }
}

FIXTURE(set_up, tear_down);

TEST(rows_change_no_result)
{
    struct variant plain[N_WORKS] = {{.graph = NULL}}, small[N_WORKS] = {{.graph = NULL}},
                   large[N_WORKS] = {{.graph = NULL}};
    const bool groups = test_context()->caps.variant == VARIANT_GPU;

    run_all("off", plain);
    attncl_log_set(remember, NULL, ATTNCL_LOG_INFO);
    write_rows(false);
    run_all(IN_DIRECTORY("tune/rows"), small);
    agree_all(plain, small);
    ck_assert_msg(strstr(log_text, "tuning entries for this device") != NULL, "%s", log_text);
    if (!takes_none()) // the smallest tile runs in either variant, and the log says so
        ck_assert_msg(strstr(log_text, "(tuned)") != NULL, "%s", log_text);

    log_text[0] = '\0';
    write_rows(true);
    run_all(IN_DIRECTORY("tune/rows"), large);
    agree_all(plain, large);
    if (!takes_none() && groups) // a work-group of 32 x 32 is beyond what kernels take
        ck_assert_msg(strstr(log_text, "gemm_gpu small does not run on this device") != NULL, "%s",
                      log_text);
    for (size_t i = 0; i < N_WORKS; ++i) {
        attncl__variant_end(&plain[i]);
        attncl__variant_end(&small[i]);
        attncl__variant_end(&large[i]);
    }
}

TEST(results_agree_within_rounding_only)
{
    float x[3] = {1.0f, -2.0f, 0.5f}, y[3] = {1.0f, -2.0f, 0.5f};
    const struct variant a = {.result = x}, b = {.result = y};

    ck_assert(attncl__variants_agree(&a, &b, 3, 64));
    y[1] = -2.00001f;
    ck_assert(attncl__variants_agree(&a, &b, 3, 64));
    y[1] = -2.01f;
    ck_assert(!attncl__variants_agree(&a, &b, 3, 64));
    y[1] = NAN;
    ck_assert(!attncl__variants_agree(&a, &b, 3, 64));
}

// Kernels that leave an element out, or that make one NaN.
static const char *const wrong_stores[] = {
    "if (c != 0) VSTORE(ACTIVATE(v), y + c);",
    "VSTORE(c == 0 ? (FV)(NAN) : ACTIVATE(v), y + c);",
};

TABLE_TEST(wrong_elements_disagree, wrong_stores)
{
    const struct workload work = {.kind = WORK_GELU, .size = {37, 70}};
    struct variant right = {.graph = NULL}, wrong = {.graph = NULL};
    attncl_context *ctx = NULL;

    unsetenv("ATTNCL_GUARD"); // users have no poisoned outputs
    ck_ok(attncl_context_create(NULL, &ctx));
    run_one(ctx, &work, &right);
    ck_ok(attncl_context_destroy(ctx));
    sources_write("elementwise/activation.cl", "VSTORE(ACTIVATE(v), y + c);", wrong_stores[_i]);
    ck_ok(attncl_context_create(NULL, &ctx));
    run_one(ctx, &work, &wrong);
    ck_assert(isnan(wrong.result[0]));
    ck_assert(!attncl__variants_agree(&right, &wrong, 37 * 70, 70));
    ck_ok(attncl_context_destroy(ctx));
    attncl__variant_end(&right);
    attncl__variant_end(&wrong);
    setenv("ATTNCL_GUARD", "1", 1);
}

TEST(every_candidate_is_a_row)
{
    for (size_t i = 0; i < attncl__n_candidates; ++i) {
        const struct candidate *c = &attncl__candidates[i];
        const struct tune_field *fields = attncl__tune_kernels[c->kernel].fields;
        for (int f = 0; fields[f].name; ++f)
            ck_assert_msg(attncl__tune_is_allowed(&fields[f], c->value[f]), "candidate %zu, %s", i,
                          fields[f].name);
    }
}

static int n_reports, n_kept;

static void count(const attncl_tune_result *r, void *user)
{
    ck_assert_ptr_eq(user, &n_reports);
    ck_assert_str_eq(r->shapes, "any");
    ck_assert(strncmp(r->kernel, "flat_", 5) == 0);
    ck_assert(r->note || (r->built_in_ms > 0 && r->n_tried > 0));
    ck_assert(!r->kept || (r->row && r->gain >= 0.05 && r->best_ms > 0));
    ++n_reports;
    n_kept += r->kept;
}

TEST(it_measures_and_reports)
{
    attncl_tune_options o = ATTNCL_TUNE_OPTIONS_INIT;
    attncl_tune_summary summary = ATTNCL_TUNE_SUMMARY_INIT;

    o.seconds = 0.2;
    o.kernel = test_context()->caps.variant == VARIANT_CPU ? "flat_cpu" : "flat_gpu";
    o.report = count;
    o.user = &n_reports;
    setenv("ATTNCL_TUNE", IN_DIRECTORY("new/tune.txt"), 1);
    if (takes_none()) {
        ck_fails(attncl_device_tune(NULL, &o, &summary), ATTNCL_ERR_UNSUPPORTED, "loops");
        return;
    }
    o.check = 1;
    ck_ok(attncl_device_tune(NULL, &o, &summary));
    ck_assert_int_eq(n_reports, 1);
    ck_assert_int_eq(summary.n_kept, n_kept);
    ck_assert_str_eq(summary.file, "");
    ck_assert_uint_eq(directory_count(), 0);

    n_kept = 0;
    o.check = 0;
    ck_ok(attncl_device_tune(NULL, &o, &summary));
    ck_assert_int_eq(summary.n_kept, n_kept);
    ck_assert_str_eq(summary.file, IN_DIRECTORY("new/tune.txt")); // which contexts ask for now
    ck_assert_uint_eq(directory_count(), 1);
}

TEST(mistakes_are_refused)
{
    attncl_tune_options o = ATTNCL_TUNE_OPTIONS_INIT;

    if (takes_none())
        return;
    o.seconds = 0.1;
    ck_fails(attncl_device_tune(NULL, &o, NULL), ATTNCL_ERR_IO, "ATTNCL_TUNE is off");
    o.check = 1;
    o.kernel = "gemm_xpu";
    ck_fails(attncl_device_tune(NULL, &o, NULL), ATTNCL_ERR_ARGUMENT, "gemm_xpu");
    o.kernel = "three_terms"; // without such instructions
    ck_fails(attncl_device_tune(NULL, &o, NULL), ATTNCL_ERR_ARGUMENT, "three_terms");
    o.seconds = -1;
    ck_fails(attncl_device_tune(NULL, &o, NULL), ATTNCL_ERR_ARGUMENT, "-1 seconds");
    o.struct_size = 0;
    ck_fails(attncl_device_tune(NULL, &o, NULL), ATTNCL_ERR_ARGUMENT, "struct_size");
}
