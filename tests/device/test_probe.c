// SPDX-License-Identifier: MIT
// Verdicts on kernels: found once, known to the context, kept by digest of the sources, device, driver and name, told for
// people; what attncl selftest found is told when a context is created.

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "attncl/log.h"
#include "base/env.h"
#include "device/probe.h"
#include "device/program.h"
#include "store/private_dir.h"
#include "support/directory.h"
#include "support/test.h"

enum { MAX_TEXT = 1024 };

static char warning[MAX_TEXT];
static attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;

static void keep_warning(attncl_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == ATTNCL_LOG_WARN)
        snprintf(warning, sizeof warning, "%s", text);
}

static void up(void)
{
    static char path[FILE_BYTES];
    directory_begin();
    options.cache_dir = directory_path("cache", path);
    setenv("ATTNCL_CACHE", "rw", 1);
    attncl_log_set(keep_warning, NULL, ATTNCL_LOG_WARN);
}

static void down(void)
{
    attncl_log_set(NULL, NULL, ATTNCL_LOG_ERROR);
    setenv("ATTNCL_CACHE", "off", 1);
    directory_end();
}

FIXTURE(up, down);

static attncl_context *open_context(void)
{
    attncl_context *ctx = NULL;
    warning[0] = '\0';
    ck_ok(attncl_context_create(&options, &ctx));
    return ctx;
}

static void keep(const char *failed)
{
    attncl_context *ctx = open_context();
    ck_ok(attncl_context_keep_selftest(ctx, failed));
    ck_ok(attncl_context_destroy(ctx));
}

static void check_warning(const char *words)
{
    ck_ok(attncl_context_destroy(open_context()));
    if (!words)
        ck_assert_str_eq(warning, "");
    else
        ck_assert_msg(strstr(warning, words) != NULL, "\"%s\" lacks \"%s\"", warning, words);
}

TEST(a_failure_is_told_until_it_passes)
{
    check_warning(NULL);
    keep("softmax, adam");
    check_warning(": softmax, adam");
    keep("gelu");
    check_warning(": gelu");
    keep("");
    check_warning(NULL);
}

static void copy_why(const char *name, const char *why, void *user)
{
    snprintf(user, MAX_TEXT, "%s=%s", name, why);
}

// Of other kernels, another driver, or another's odd name.
TEST(what_belongs_to_others)
{
    attncl_context *ctx = open_context();
    const char *device = ctx->info.name, *driver = ctx->info.driver_version, *why = NULL;
    const char *const name = ctx->caps.variant == VARIANT_CPU ? "selftest cpu" : "selftest gpu";
    const struct verdict_key others[] = {{"0123", device, driver},
                                         {attncl__sources_digest, device, "another driver"},
                                         {attncl__sources_digest, "a\tb\nc", "d"}};
    struct private_dir directory;
    char text[MAX_TEXT] = "";

    ck_assert_uint_eq(strlen(attncl__sources_digest), 64);
    ck_assert(attncl__private_dir_open(options.cache_dir, true, &directory, &why));
    for (size_t i = 0; i < COUNT_OF(others); ++i) {
        ck_assert(attncl__verdict_write(&directory, &others[i], name, "line\nbreak"));
        attncl__verdicts_read(&directory, &others[i], copy_why, text);
        ck_assert_int_eq(strncmp(text, name, strlen(name)), 0);
        ck_assert_str_eq(text + strlen(name), "=line break");
    }
    attncl__private_dir_close(&directory);
    ck_ok(attncl_context_destroy(ctx));
    check_warning(NULL);
}

static struct {
    int n_runs;
    attncl_status status;
    const char *why;
} fake;

static attncl_status run_fake(attncl_context *ctx, const struct device_caps *caps, const void *user,
                              char why[PROBE_WHY_BYTES])
{
    ck_assert_ptr_eq(caps, &ctx->caps);
    ck_assert_ptr_eq(user, &fake);
    ++fake.n_runs;
    strcpy(why, fake.why);
    return fake.status;
}

static enum probe_verdict probe(attncl_context *ctx, const char *name, enum probe_mode mode,
                                const char *words)
{
    const struct probe p = {name, run_fake, &fake};
    char why[PROBE_WHY_BYTES] = "nothing was written";
    const enum probe_verdict verdict = attncl__probe_get_verdict(ctx, &ctx->caps, &p, mode, why);

    ck_assert_str_eq(why, words);
    return verdict;
}

// Each is run once, by all contexts together; what could not be compared, once by each.
TEST(verdicts_are_found_once)
{
    for (int again = 0; again < 2; ++again) {
        attncl_context *ctx = open_context();
        fake.n_runs = 0;
        fake.status = ATTNCL_OK;
        fake.why = "all is wrong";
        ck_assert_int_eq(probe(ctx, "good", PROBE_LOOK_UP, ""),
                         again ? PROBE_PASSED : PROBE_UNKNOWN);
        ck_assert_int_eq(probe(ctx, "bad", PROBE_RUN, "all is wrong"), PROBE_FAILED);
        ck_assert_msg(strstr(warning, "bad is not used: all is wrong"), "%s", warning);
        warning[0] = '\0';
        ck_assert_int_eq(probe(ctx, "bad", PROBE_LOOK_UP, "all is wrong"), PROBE_FAILED);
        ck_assert_str_eq(warning, ""); // told once
        fake.why = "";
        for (int i = 0; i < 2; ++i)
            ck_assert_int_eq(probe(ctx, "good", PROBE_RUN, ""), PROBE_PASSED);
        ck_assert_int_eq(fake.n_runs, again ? 0 : 2);
        fake.status = ATTNCL_ERR_OPENCL;
        fake.why = "half a text";
        for (int i = 0; i < 2; ++i)
            ck_assert_int_eq(probe(ctx, "neither", PROBE_RUN, ""), PROBE_UNKNOWN);
        ck_assert_int_eq(fake.n_runs, again ? 1 : 3);
        ck_assert_msg(strstr(warning, "neither: cannot be compared"), "%s", warning);
        attncl__probe_remember(ctx, "good", PROBE_FAILED, "by hand");
        ck_assert_int_eq(probe(ctx, "good", PROBE_RUN, "by hand"), PROBE_FAILED);
        ck_ok(attncl_context_destroy(ctx));
    }
}

// Of kernels that are not the library's nothing is kept.
TEST(kernels_of_a_directory_are_compared_each_time)
{
    setenv("ATTNCL_CL_DIR", IN_DIRECTORY("."), 1);
    fake.n_runs = 0;
    fake.status = ATTNCL_OK;
    fake.why = "";
    for (int i = 0; i < 2; ++i) {
        attncl_context *ctx = open_context();
        ck_assert_int_eq(probe(ctx, "good", PROBE_RUN, ""), PROBE_PASSED);
        ck_ok(attncl_context_destroy(ctx));
    }
    unsetenv("ATTNCL_CL_DIR");
    ck_assert_int_eq(fake.n_runs, 2);
}

TEST(a_file_that_others_can_write_is_not_read)
{
    char path[FILE_BYTES];
    keep("softmax");
    ck_assert_int_eq(chmod(directory_path("cache/verdicts.txt", path), 0666), 0);
    check_warning(NULL);
}

TEST(what_was_found_is_told_for_people)
{
    static const char *const first = "GEMMs: native kernels (CLBlast is slow on this device)\n";
    static const char *const lines = "GEMMs: native kernels (CLBlast is slow on this device)\n"
                                     "mma attention gradients f32: passed\n"
                                     "softmax gpu: failed: it is wrong\n";
    char text[MAX_TEXT] = "nothing was written";
    attncl_context *ctx = open_context();
    size_t n = 0, index = 0;

    ck_ok(attncl_device_count(&n));
    for (attncl_device_info info = ATTNCL_DEVICE_INFO_INIT; index < n; ++index) {
        ck_ok(attncl_device_get(index, &info));
        if (info.platform == ctx->info.platform && info.device == ctx->info.device)
            break;
    }
    setenv("ATTNCL_CACHE_DIR", options.cache_dir, 1);
    setenv("ATTNCL_VARIANT", "cpu", 1);
    ck_ok(attncl_device_findings(index, text, sizeof text));
    ck_assert_str_eq(text, first);
    ck_ok(attncl__verdict_store(ctx, "mma attention gradients f32", ""));
    ck_ok(attncl__verdict_store(ctx, "softmax gpu", "it is wrong"));
    ck_ok(attncl_device_findings(index, text, sizeof text));
    ck_assert_str_eq(text, lines);
    ck_ok(attncl_device_findings(index, text, strlen(lines))); // one byte too few
    ck_assert_uint_eq(strlen(text), strlen(lines) - strlen(strstr(lines, "softmax")));
    setenv("ATTNCL_CACHE", "off", 1);
    ck_ok(attncl_device_findings(index, text, 1));
    ck_assert_str_eq(text, "");
    ck_fails(attncl_device_findings(n, text, sizeof text), ATTNCL_ERR_NO_DEVICE, "device");
    ck_fails(attncl_device_findings(index, text, 0), ATTNCL_ERR_ARGUMENT, "capacity");
    ck_fails(attncl_device_findings(index, NULL, 1), ATTNCL_ERR_ARGUMENT, "text");
    unsetenv("ATTNCL_VARIANT");
    unsetenv("ATTNCL_CACHE_DIR");
    ck_ok(attncl_context_destroy(ctx));
}

TEST(where_nothing_can_be_kept)
{
    char text[PROBE_WHY_BYTES + 1] = "";
    attncl_context *ctx = open_context();
    ck_fails(attncl_context_keep_selftest(NULL, ""), ATTNCL_ERR_ARGUMENT, "context");
    ck_fails(attncl_context_keep_selftest(ctx, NULL), ATTNCL_ERR_ARGUMENT, "failed");
    memset(text, 'x', sizeof text - 1);
    ck_fails(attncl_context_keep_selftest(ctx, text), ATTNCL_ERR_ARGUMENT, "512");
    ck_ok(attncl_context_destroy(ctx));
    setenv("ATTNCL_CACHE", "off", 1);
    ctx = open_context();
    ck_fails(attncl_context_keep_selftest(ctx, ""), ATTNCL_ERR_STATE, "program cache");
    ck_ok(attncl_context_destroy(ctx));
}
