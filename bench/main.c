// SPDX-License-Identifier: MIT
//
// attncl-bench: every case on every device, checked, then timed.

#define _GNU_SOURCE // strcasestr
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/context.h"
#include "harness/clock.h"
#include "harness/options.h"
#include "harness/run_case.h"

enum { EXIT_WRONG = 1, EXIT_NO_DEVICE = 3 };

static bool wanted(const struct bench_case *c, const struct options *o, enum case_set set)
{
    return c->set == set &&
           (!o->only || strcasestr(c->name, o->only) || strcasestr(c->family->name, o->only));
}

static size_t count_wanted(const struct options *o, enum case_set set)
{
    size_t n = 0;

    for (size_t i = 0; i < bench_n_cases; ++i)
        n += wanted(&bench_cases[i], o, set);
    return n;
}

static void progress(size_t done, size_t total, const char *name)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K[%zu/%zu] %s\r", done + 1, total, name);
}

static void progress_clear(void)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}

// What is left of the device's time, shared equally among the cases to come: a case that needs less
// leaves more to the others.  One that takes more, for its least number of runs, does not starve
// them.
static double share(double left_s, size_t cases_left, double even_share)
{
    const double s = left_s / (double)cases_left;
    return s > even_share / 2 ? s : even_share / 2;
}

static void run_cases(attncl_context *ctx, const attncl_device_info *info, const struct options *o,
                      struct report *report)
{
    // A device whose loops are cut off after so many rounds may give wrong results at full sizes.
    const bool limited = ctx->caps.loop_limit > 0 && !o->full && !o->quick;
    const enum case_set set = o->quick || limited ? CASE_QUICK : CASE_FULL;
    const size_t total = count_wanted(o, set);
    size_t done = 0;
    double spent_s = 0;

    report_device(report, info, set);
    for (size_t i = 0; i < bench_n_cases; ++i) {
        if (!wanted(&bench_cases[i], o, set))
            continue;
        struct measure_options options = {
            .budget_s = share(o->budget_s - spent_s, total - done, o->budget_s / (double)total),
            .min_runs = o->min_runs,
            .driver_does_not_wait = ctx->caps.vendor == VENDOR_MESA_CPU,
        };
        struct result result;
        progress(done++, total, bench_cases[i].name);
        run_case(ctx, &bench_cases[i], &options, &result);
        spent_s += result.timing.spent_s;
        progress_clear();
        report_result(report, info, &result);
    }
    if (limited)
        report_loop_limit(report, count_wanted(o, CASE_FULL), ctx->caps.loop_limit);
}

static void run_device(const attncl_context_options *options, const attncl_device_info *info,
                       const struct options *o, struct report *report)
{
    attncl_context *ctx = NULL;

    if (attncl_context_create(options, &ctx) != ATTNCL_OK) {
        report_no_device(report, info, attncl_last_error());
        ++report->n_failed;
        return;
    }
    run_cases(ctx, info, o, report);
    if (attncl_context_destroy(ctx) != ATTNCL_OK) {
        fprintf(stderr, "attncl-bench: %s\n", attncl_last_error());
        ++report->n_failed;
    }
}

// The one device of --device, described by its own context.
static attncl_status describe(const char *name, attncl_device_info *info_ret)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *ctx = NULL;
    attncl_status status;

    options.device = name;
    status = attncl_context_create(&options, &ctx);
    if (status == ATTNCL_OK)
        status = attncl_context_device(ctx, info_ret);
    attncl_context_destroy(ctx);
    return status;
}

static void list_device(const attncl_device_info *info)
{
    printf("  %d:%d  %s (%s, %u compute units)%s\n", info->platform, info->device, info->name,
           info->platform_name, info->compute_units, info->available ? "" : ", not available");
}

// False, with a message printed, when there is no device.
static bool run_devices(const struct options *o, struct report *report)
{
    size_t n = 0;
    attncl_device_info chosen = {0};

    if (attncl_device_count(&n) != ATTNCL_OK ||
        (o->device && describe(o->device, &chosen) != ATTNCL_OK)) {
        fprintf(stderr, "attncl-bench: %s\n", attncl_last_error());
        return false;
    }
    if (n == 0) {
        fprintf(stderr, "attncl-bench: there is no OpenCL device\n");
        return false;
    }
    printf("OpenCL devices:\n");
    for (size_t i = 0; i < n; ++i) {
        attncl_device_info info;
        if (attncl_device_get(i, &info) == ATTNCL_OK)
            list_device(&info);
    }
    for (size_t i = 0; i < n; ++i) {
        attncl_device_info info;
        attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
        char address[32];
        if (attncl_device_get(i, &info) != ATTNCL_OK)
            continue;
        if (o->device && (info.platform != chosen.platform || info.device != chosen.device))
            continue;
        snprintf(address, sizeof address, "%d:%d", info.platform, info.device);
        options.device = address;
        options.profile = 1;
        if (info.available)
            run_device(&options, &info, o, report);
        else
            report_no_device(report, &info, "the driver says it is not available");
    }
    return true;
}

static int list_cases(void)
{
    json_t *list = json_array();

    for (size_t i = 0; i < bench_n_cases; ++i)
        json_array_append_new(list, report_case(&bench_cases[i]));
    json_dumpf(list, stdout, JSON_INDENT(1));
    printf("\n");
    json_decref(list);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct options o;
    struct report report;
    int exit_status = EXIT_SUCCESS;

    if (options_read(argc, argv, &o, &exit_status) == OPTIONS_EXIT)
        return exit_status;
    if (o.list)
        return list_cases();

    report_begin(&report, o.json != NULL);
    if (!run_devices(&o, &report))
        exit_status = EXIT_NO_DEVICE;
    if (report.n_wrong || report.n_failed) {
        printf("\n%zu wrong, %zu failed\n", report.n_wrong, report.n_failed);
        exit_status = EXIT_WRONG;
    }
    if (o.json && !report_write(&report, o.json))
        exit_status = EXIT_WRONG;
    report_end(&report);
    return exit_status;
}
