// SPDX-License-Identifier: MIT
//
// attncl selftest: compares ops and their gradients on a device with the host's results.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "selftest.h"

static const char usage[] =
    "usage: attncl selftest [--brief | --large] [options]\n"
    "\n"
    "Compares operations and their gradients on the device with a double-precision reference on\n"
    "the host.  Compares language models' decode steps with their prefill, and their gradients\n"
    "with finite differences.  Exit status 1 if a result differs; the output names it.  Attach\n"
    "the output of attncl report to bug reports.  Failures are stored by driver version beside the "
    "program cache,\n"
    "and programs that use the library get a warning in its log.\n";

enum { MAX_SPECS = 64 };

struct report {
    json_t *rows; // null: prints lines
    int n_checks, n_failed;
    bool is_brief;              // the result is not kept: too few checks
    char failed[OUTCOME_BYTES]; // names of the first failed ops
};

static int add_result(struct report *r, const struct outcome *o)
{
    const bool passed = !*o->message;

    progress_clear();
    r->n_checks++;
    if (r->rows)
        json_array_append_new(r->rows,
                              json_pack("{ss sb so ss}", "op", o->op, "passed", passed, "worst",
                                        json_number(o->worst), "message", o->message));
    else
        printf("%-4s %-28s %8.3f of the tolerance%s%s\n", passed ? "ok" : "FAIL", o->op, o->worst,
               passed ? "" : ": ", o->message);
    if (!passed) {
        const size_t used = strlen(r->failed);
        snprintf(r->failed + used, sizeof r->failed - used, "%s%s", used ? ", " : "", o->op);
        r->n_failed++;
    }
    return r->rows ? TOOL_OK : output_flush();
}

void outcome_compare(struct outcome *o, const char *what, int64_t at, double got, double want,
                     double allowed)
{
    const bool finite = isfinite(got) && isfinite(want) && isfinite(allowed);
    const double off = finite ? fabs(got - want) / allowed : INFINITY;

    if (off <= o->worst)
        return;
    o->worst = off;
    if (off > 1)
        snprintf(o->message, sizeof o->message, "%s[%lld] is %.9g, expected %.9g", what,
                 (long long)at, got, want);
}

// Lists the specs of ops that users can call.
static size_t list_specs(const struct op_spec **specs, bool brief)
{
    size_t n = 0;

    for (int i = 0; spec_at(i); i++)
        if (spec_at(i)->build && n < MAX_SPECS && (!brief || is_brief_op(spec_at(i))))
            specs[n++] = spec_at(i);
    return n;
}

static int check_device(attncl_context *context, const attncl_device_info *info,
                        struct op_check check, struct report *r)
{
    const bool brief = check.sizes == CHECK_BRIEF;
    const struct op_spec *specs[MAX_SPECS];
    const size_t n_specs = list_specs(specs, brief);
    const size_t n_models = n_specs + (brief ? 0 : selftest_n_decodings);
    const size_t n = n_models + (brief ? 0 : selftest_n_trainings);

    check.full = info->type == ATTNCL_DEVICE_GPU;
    for (size_t i = 0; i < n; i++) {
        struct outcome o;

        progress_bar("checking", NULL, (int64_t)i, (int64_t)n);
        TOOL_TRY(i < n_specs    ? check_op(specs[i], context, &check, &o)
                 : i < n_models ? check_decoding(&selftest_decodings[i - n_specs], context, &o)
                                : check_gradients(&selftest_trainings[i - n_models], context, &o));
        TOOL_TRY(add_result(r, &o));
    }
    return TOOL_OK;
}

static int finish(attncl_context *context, const attncl_device_info *info, struct report *r,
                  double seconds)
{
    progress_clear();
    if (!r->is_brief)
        (void)attncl_context_keep_selftest(context, r->failed); // kept only if there is a cache
    if (r->rows) {
        const int printed = json_print(json_pack(
            "{ss so so so so sf sb sO}", "version", attncl_version(), "device",
            json_text(info->name), "platform", json_text(info->platform_name), "driver_version",
            json_text(info->driver_version), "opencl_version", json_text(info->opencl_version),
            "seconds", seconds, "passed", r->n_failed == 0, "checks", r->rows));
        if (printed != TOOL_OK)
            return printed;
    }
    if (r->n_failed)
        return tool_error("%d of %d checks failed on %s: %s", r->n_failed, r->n_checks, info->name,
                          r->failed);
    if (!r->rows)
        printf("%d checks passed on %s, driver %s, in %.1f s\n", r->n_checks, info->name,
               info->driver_version, seconds);
    return TOOL_OK;
}

// The factors of products are rounded to 11 bits (tf32) or 8 bits (bf16) instead of 24.
static double tolerance_factor(attncl_precision precision)
{
    return precision == ATTNCL_PRECISION_TF32   ? 0x1p14
           : precision == ATTNCL_PRECISION_BF16 ? 0x1p17
                                                : 1;
}

int command_selftest(int argc, char **argv)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
    attncl_context *context = NULL;
    struct report report = {0};
    bool json = false, brief = false, large = false;
    const struct option_row rows[] = {
        {"brief", 0, OPTION_SWITCH, &brief,
         .help = "only attention and products, of some sizes: not kept for later warnings"},
        {"large", 0, OPTION_SWITCH, &large,
         .help = "also attention of 130 x 160 and products of 200 and 1400"},
        JSON_OPTION(&json, "print the device, its driver and every result as JSON, at the end"),
        PRECISION_OPTION(&options.precision),
        DEVICE_OPTION(&options.device),
        {.name = NULL},
    };
    int status = tool_options("selftest", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (brief && large) {
        tool_error("selftest: --brief and --large exclude each other");
        return TOOL_USAGE;
    }
    if (tolerance_factor(options.precision) > 1 && !brief) {
        tool_error("selftest: --precision is for --brief");
        return TOOL_USAGE;
    }
    const struct op_check check = {.sizes = brief   ? CHECK_BRIEF
                                            : large ? CHECK_LARGE
                                                    : CHECK_USUAL,
                                   .times = tolerance_factor(options.precision)};
    setenv("ATTNCL_GUARD", "1", 0); // results are NaN before each run
    TOOL_TRY(tool_status(attncl_context_create(&options, &context)));
    if (attncl_context_device(context, &info) != ATTNCL_OK) {
        status = tool_failed();
        goto done;
    }
    const double start = seconds_now();
    report.rows = json ? json_array() : NULL;
    report.is_brief = brief;
    status = check_device(context, &info, check, &report);
    if (status == TOOL_OK)
        status = finish(context, &info, &report, seconds_now() - start);
    json_decref(report.rows);
done:
    attncl_context_destroy(context);
    return status;
}
