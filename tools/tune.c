// SPDX-License-Identifier: MIT
//
// attncl tune: measures tiles and work-group sizes on a device, and keeps those that are faster.

#include <math.h>
#include <string.h>

#include "tool.h"

static const char usage[] =
    "usage: attncl tune [options]\n"
    "\n"
    "Measures each kernel's tiles and work-group sizes against the built-in choice.  Rows\n"
    "that are 5 % faster or more are written to ATTNCL_TUNE's file, else\n"
    "$XDG_CONFIG_HOME/attncl/tune.txt or ~/.config/attncl/tune.txt, and used from then on\n"
    "with this device and driver.  Let nothing else run.\n";

// The row's first lines are printed once there is one.
struct table {
    bool has_header;
};

static void print_result(const attncl_tune_result *r, void *user)
{
    struct table *t = user;

    if (!t->has_header)
        printf("%-14s %-7s %11s %9s %7s  %-5s %s\n", "kernel", "shapes", "built-in ms", "best ms",
               "gain", "kept", "best row; what was timed");
    t->has_header = true;
    progress_bar("tuning", 1, 1);
    if (r->note)
        printf("%-14s %-7s %11s %9s %7s  %-5s %s; %s\n", r->kernel, r->shapes, "-", "-", "-", "no",
               r->note, r->workload);
    else if (!r->row)
        printf("%-14s %-7s %11.4f %9s %7s  %-5s no other row runs; %s\n", r->kernel, r->shapes,
               r->built_in_ms, "-", "-", "no", r->workload);
    else
        printf("%-14s %-7s %11.4f %9.4f %6.1f%%  %-5s %s; %s\n", r->kernel, r->shapes,
               r->built_in_ms, r->best_ms, 100 * r->gain, r->kept ? "yes" : "no", r->row,
               r->workload);
    if (!r->note && r->n_tried < r->n_rows)
        printf("%-14s %-7s the time was enough for %zu of %zu rows\n", "", "", r->n_tried,
               r->n_rows);
    fflush(stdout);
}

static void print_progress(double share, void *user)
{
    (void)user;
    progress_bar("tuning", lround(1000 * share), 1000);
}

static int tune_device(const char *device, const attncl_tune_options *given)
{
    attncl_context_options which = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_tune_options o = *given;
    attncl_tune_summary summary = ATTNCL_TUNE_SUMMARY_INIT;
    struct table table = {false};

    which.device = device;
    o.report = print_result;
    o.progress = print_progress;
    o.user = &table;
    if (attncl_device_tune(&which, &o, &summary) != ATTNCL_OK)
        return tool_failed();
    if (summary.n_measured == 0)
        printf("nothing was measured; more --seconds?");
    else if (summary.n_kept == 0)
        printf("no gain: the built-in choice stays");
    else
        printf("%zu of %zu are faster with another row", summary.n_kept, summary.n_measured);
    printf("%s%s\n", summary.file[0] ? "; written to " : "", summary.file);
    return TOOL_OK;
}

static int tune_all_devices(const attncl_tune_options *o)
{
    int status = TOOL_OK;
    size_t n = 0;

    if (attncl_device_count(&n) != ATTNCL_OK)
        return tool_failed();
    if (n == 0)
        return tool_error("no OpenCL device; install a driver, for example pocl-opencl-icd");
    for (size_t i = 0; i < n; i++) {
        attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
        char id[32];

        if (attncl_device_get(i, &info) != ATTNCL_OK)
            return tool_failed();
        snprintf(id, sizeof id, "%d:%d", info.platform, info.device);
        printf("%s %s, %s, driver %s\n", id, info.name, info.platform_name, info.driver_version);
        fflush(stdout);
        if (tune_device(id, o) != TOOL_OK)
            status = TOOL_FAILED;
    }
    return status;
}

int command_tune(int argc, char **argv)
{
    attncl_tune_options o = ATTNCL_TUNE_OPTIONS_INIT;
    const char *device = NULL;
    bool check = false;
    const struct option_row rows[] = {
        {"device", 'd', OPTION_TEXT, &device, "D",
         .help =
             "gpu, cpu, PLATFORM:DEVICE, part of a device's name, or all; default: the best one"},
        {"seconds", 's', OPTION_NUMBER, &o.seconds, "N",
         .help = "for each device, roughly; default 20", .low = 0.1L, .high = 3600},
        {"kernel", 'k', OPTION_TEXT, &o.kernel, "K", .help = "this kernel alone, gemm_cpu"},
        {"check", 'c', OPTION_SWITCH, &check, .help = "say what it would gain, write nothing"},
        {.name = NULL},
    };
    const int status = tool_options("tune", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    o.check = check;
    return device && strcmp(device, "all") == 0 ? tune_all_devices(&o) : tune_device(device, &o);
}
