// SPDX-License-Identifier: MIT
//
// attncl tune: times tile and work-group sizes on a device, and keeps the faster ones.

#include <math.h>
#include <string.h>

#include "tool.h"

static const char usage[] = "usage: attncl tune [options]\n"
                            "\n"
                            "Times the tile and work-group sizes of each kernel against the "
                            "built-in choice.  Sizes that are\n"
                            "at least 5 % faster are written to the file of ATTNCL_TUNE, else to\n"
                            "$XDG_CONFIG_HOME/attncl/tune.txt or ~/.config/attncl/tune.txt, and "
                            "used from then on with this\n"
                            "device and driver.  Run nothing else meanwhile.  --export and "
                            "--import time nothing: they copy\n"
                            "that file, and add the entries of other files to it.\n";

enum { MAX_IMPORTS = 64 };

struct imports {
    const char *paths[MAX_IMPORTS];
    size_t n;
};

static bool take_import(const char *path, void *value)
{
    struct imports *p = value;

    if (p->n == MAX_IMPORTS) {
        tool_error("tune: more than %d --import", MAX_IMPORTS);
        return false;
    }
    p->paths[p->n++] = path;
    return true;
}

static int copy_entries(const struct imports *imports, const char *path)
{
    size_t n = 0;

    if (imports->n && attncl_tuning_import(imports->paths, imports->n, &n) != ATTNCL_OK)
        return tool_failed();
    if (imports->n)
        printf("%zu tuning entries taken from %zu file%s\n", n, imports->n,
               imports->n == 1 ? "" : "s");
    if (path && attncl_tuning_export(path, &n) != ATTNCL_OK)
        return tool_failed();
    if (path)
        printf("%zu tuning entries written to %s\n", n, path);
    return TOOL_OK;
}

struct table {
    bool has_header; // printed with the first row
    json_t *rows;    // JSON instead of a printed table; null: none
};

static json_t *json_result(const attncl_tune_result *r)
{
    const bool timed = !r->note, compared = timed && r->row;

    return json_pack(
        "{ss ss ss so so so ss? sb sI sI ss?}", "kernel", r->kernel, "shapes", r->shapes,
        "workload", r->workload, "built_in_ms", timed ? json_number(r->built_in_ms) : json_null(),
        "best_ms", compared ? json_number(r->best_ms) : json_null(), "gain",
        compared ? json_number(r->gain) : json_null(), "row", r->row, "kept", r->kept, "n_tried",
        (json_int_t)r->n_tried, "n_rows", (json_int_t)r->n_rows, "note", r->note);
}

// Adds a JSON row, or prints two lines: the numbers, and the workload.
static void print_result(const attncl_tune_result *r, void *user)
{
    struct table *t = user;
    const char *row = r->note ? r->note : r->row ? r->row : "no other row runs";

    progress_clear();
    if (t->rows) {
        json_array_append_new(t->rows, json_result(r));
        return;
    }
    if (!t->has_header)
        printf("%-24s %-8s %11s %9s %7s  %-4s %s\n", "kernel", "shapes", "built-in ms", "best ms",
               "gain", "kept", "best row");
    t->has_header = true;
    printf("%-24s %-8s ", r->kernel, r->shapes);
    if (r->note)
        printf("%11s %9s %7s", "-", "-", "-");
    else if (!r->row)
        printf("%11.4f %9s %7s", r->built_in_ms, "-", "-");
    else
        printf("%11.4f %9.4f %6.1f%%", r->built_in_ms, r->best_ms, 100 * r->gain);
    printf("  %-4s %s\n", r->kept ? "yes" : "no", row);
    printf("    %s\n", r->workload);
    if (!r->note && r->n_tried < r->n_rows)
        printf("    the time was enough for %zu of %zu rows\n", r->n_tried, r->n_rows);
    fflush(stdout);
}

static void print_progress(double share, void *user)
{
    (void)user;
    progress_bar("tuning", NULL, lround(1000 * share), 1000);
}

static void print_summary(const attncl_tune_summary *summary)
{
    if (summary->n_measured == 0)
        printf("nothing was measured; more --seconds?");
    else if (summary->n_kept == 0)
        printf("no gain: the built-in choice stays");
    else
        printf("%zu of %zu are faster with another row", summary->n_kept, summary->n_measured);
    printf("%s%s\n", summary->file[0] ? "; written to " : "", summary->file);
}

// reports: a JSON array that receives the device's report; null: prints it.
static int tune_device(const char *device, const attncl_tune_options *given, json_t *reports)
{
    attncl_context_options which = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_tune_options o = *given;
    attncl_tune_summary summary = ATTNCL_TUNE_SUMMARY_INIT;
    struct table table = {.rows = reports ? json_array() : NULL};

    which.device = device;
    o.report = print_result;
    o.progress = print_progress;
    o.user = &table;
    print_progress(0, NULL);
    if (attncl_device_tune(&which, &o, &summary) != ATTNCL_OK) {
        json_decref(table.rows);
        return tool_failed();
    }
    progress_clear();
    if (!reports)
        print_summary(&summary);
    else if (json_array_append_new(reports, json_pack("{ss? so sI sI ss?}", "device", device,
                                                      "results", table.rows, "n_measured",
                                                      (json_int_t)summary.n_measured, "n_kept",
                                                      (json_int_t)summary.n_kept, "file",
                                                      summary.file[0] ? summary.file : NULL)) != 0)
        return tool_error("out of memory");
    return TOOL_OK;
}

static int tune_all_devices(const attncl_tune_options *o, json_t *reports)
{
    int status = TOOL_OK;
    size_t n = 0;

    TOOL_TRY(tool_status(attncl_device_count(&n)));
    if (n == 0)
        return tool_no_device();
    for (size_t i = 0; i < n; i++) {
        attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
        char id[32];

        TOOL_TRY(tool_status(attncl_device_get(i, &info)));
        snprintf(id, sizeof id, "%d:%d", info.platform, info.device);
        if (!reports)
            printf("%s %s, %s, driver %s\n", id, info.name, info.platform_name,
                   info.driver_version);
        fflush(stdout);
        if (tune_device(id, o, reports) != TOOL_OK)
            status = TOOL_FAILED;
    }
    return status;
}

int command_tune(int argc, char **argv)
{
    attncl_tune_options o = ATTNCL_TUNE_OPTIONS_INIT;
    const char *device = NULL, *export = NULL;
    struct imports imports = {.n = 0};
    bool check = false, json = false;
    const struct option_row rows[] = {
        {"device", 'd', OPTION_TEXT, &device, "D",
         .help = "gpu, cpu, PLATFORM:DEVICE, part of a device's name, or all\n(default: the best "
                 "device)"},
        {"seconds", 0, OPTION_NUMBER, &o.seconds, "N",
         .help = "approximate time for each device (default 20)", .low = 0.1L, .high = 3600},
        {"kernel", 0, OPTION_TEXT, &o.kernel, "K", .help = "tune only this kernel, as in gemm_cpu"},
        {"check", 0, OPTION_SWITCH, &check, .help = "print the gains, write nothing"},
        {"export", 0, OPTION_TEXT, &export, "FILE",
         .help = "write the tuning entries of all devices to FILE, for sharing"},
        {"import", 0, OPTION_CALL, &imports, "FILE", .take = take_import,
         .help = "add the entries of such a file; repeatable, later files win"},
        JSON_OPTION(&json, "print the results as JSON, an array of devices, at the end"),
        {.name = NULL},
    };
    int status = tool_options("tune", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (export || imports.n) {
        if (device || o.kernel || check || json || o.seconds > 0) {
            tool_error("tune: --export and --import exclude the options for timing");
            return OPTIONS_MISTAKE;
        }
        return copy_entries(&imports, export);
    }
    o.check = check;
    json_t *reports = json ? json_array() : NULL;
    const bool all = device && strcmp(device, "all") == 0;
    status = all ? tune_all_devices(&o, reports) : tune_device(device, &o, reports);
    if (json && status == TOOL_OK)
        return json_print(reports);
    json_decref(reports);
    return status;
}
