// SPDX-License-Identifier: MIT
// What attncl selftest found is kept by version, device, driver and variant, and told by the log when a
// context is created.

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "attncl/log.h"
#include "base/env.h"
#include "device/context.h"
#include "store/selftest_file.h"
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

TEST(what_belongs_to_another_driver)
{
    attncl_context *ctx = open_context();
    const char *device = ctx->info.name, *why = NULL;
    struct private_dir directory;
    char failed[SELFTEST_FAILED_BYTES] = "";
    ck_assert(attncl__private_dir_open(options.cache_dir, true, &directory, &why));
    const struct selftest_key other = {device, "another driver", "cpu"},
                              odd = {"a\tb\nc", "d", "e"};
    ck_assert(attncl__selftest_write(&directory, &other, "softmax"));
    ck_assert(attncl__selftest_write(&directory, &odd, "line\nbreak"));
    ck_assert(attncl__selftest_read(&directory, &other, failed));
    ck_assert_str_eq(failed, "softmax");
    ck_assert(attncl__selftest_read(&directory, &odd, failed));
    ck_assert_str_eq(failed, "line break");
    attncl__private_dir_close(&directory);
    ck_ok(attncl_context_destroy(ctx));
    check_warning(NULL);
}

TEST(a_file_that_others_can_write_is_not_read)
{
    char path[FILE_BYTES];
    keep("softmax");
    ck_assert_int_eq(chmod(directory_path("cache/selftest.txt", path), 0666), 0);
    check_warning(NULL);
}

TEST(what_was_found_is_told_for_people)
{
    static const char *const lines = "selftest, cpu kernels: failed: softmax\n"
                                     "shuffles: used\n";
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
    ck_ok(attncl_device_findings(index, text, sizeof text));
    ck_assert_str_eq(text, "");
    ck_ok(attncl__finding_keep(ctx, "shuffle", ""));
    ck_ok(attncl__finding_keep(ctx, "cpu", "softmax"));
    ck_ok(attncl_device_findings(index, text, sizeof text));
    ck_assert_str_eq(text, lines);
    ck_ok(attncl_device_findings(index, text, strlen(lines))); // one byte too few
    ck_assert_uint_eq(strlen(text), strlen(lines) - strlen(strstr(lines, "shuffles")));
    setenv("ATTNCL_CACHE", "off", 1);
    ck_ok(attncl_device_findings(index, text, 1));
    ck_assert_str_eq(text, "");
    ck_fails(attncl_device_findings(n, text, sizeof text), ATTNCL_ERR_NO_DEVICE, "device");
    ck_fails(attncl_device_findings(index, text, 0), ATTNCL_ERR_ARGUMENT, "capacity");
    ck_fails(attncl_device_findings(index, NULL, 1), ATTNCL_ERR_ARGUMENT, "text");
    unsetenv("ATTNCL_CACHE_DIR");
    ck_ok(attncl_context_destroy(ctx));
}

TEST(where_nothing_can_be_kept)
{
    char text[SELFTEST_FAILED_BYTES + 1] = "";
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
