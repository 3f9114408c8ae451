// SPDX-License-Identifier: MIT
//
// The table.  Rows come one by one, so its columns are fixed.

#include "harness/report.h"

#include <stdio.h>
#include <string.h>

#include "harness/json.h"

static const char *const type_names[] = {[0] = "unknown",
                                         [ATTNCL_DEVICE_CPU] = "CPU",
                                         [ATTNCL_DEVICE_GPU] = "GPU",
                                         [ATTNCL_DEVICE_OTHER] = "other"};

void report_begin(struct report *r, bool json)
{
    *r = (struct report){.root = json ? json_report() : NULL};
}

static void print_device(const attncl_device_info *info)
{
    printf("\ndevice %d:%d  %s\n", info->platform, info->device, info->name);
    printf("  %s, %s, driver %s, %s\n", type_names[info->type], info->platform_name,
           info->driver_version, info->opencl_version);
    printf("  %u compute units, %u MHz, %.1f GiB of memory, %llu KiB local\n", info->compute_units,
           info->clock_mhz, (double)info->global_memory_bytes / 0x1p30,
           (unsigned long long)info->local_memory_bytes / 1024);
}

void report_device(struct report *r, const attncl_device_info *info, enum case_set set)
{
    print_device(info);
    printf("  sizes: %s\n\n", set == CASE_QUICK ? "quick" : "full");
    printf("%-6s %-42s %9s %9s %9s %8s %7s %8s %8s\n", "device", "case", "min ms", "median",
           "device", "GFLOP/s", "GB/s", "error", "build s");
    if (r->root)
        r->device = json_add_device(r->root, info, set);
}

void report_loop_limit(struct report *r, size_t n_cases, uint64_t limit)
{
    printf(
        "%zu full-size cases not run: loop limit, loops end after %llu rounds (--full runs them)\n",
        n_cases, (unsigned long long)limit);
    if (r->device)
        json_object_set_new(r->device, "loop_limit", json_integer((json_int_t)limit));
}

void report_no_device(struct report *r, const attncl_device_info *info, const char *reason)
{
    print_device(info);
    printf("  not run: %s\n", reason);
    if (r->root)
        json_add_refusal(r->root, info, reason);
}

// A quantity, or "-" where it is not known.
static const char *number(double x, int digits, char text[24])
{
    if (x > 0)
        snprintf(text, 24, "%.*g", digits, x);
    else
        strcpy(text, "-");
    return text;
}

static void print_timed(const struct result *x)
{
    const struct timing *t = &x->timing;
    char device[24], flops[24], bytes[24];

    printf("%9.4g %9.4g %9s %8s %7s %8.1e %8.2g", 1e3 * t->min_s, 1e3 * t->median_s,
           number(1e3 * t->device_s, 4, device), number(1e-9 * t->flop / t->min_s, 4, flops),
           number(1e-9 * t->bytes / t->min_s, 3, bytes), x->error, x->compile_s);
    if (x->c->family->tokens)
        printf("  %.4g tokens/s", x->c->family->tokens(&x->c->sizes) / t->min_s);
}

void report_result(struct report *r, const attncl_device_info *info, const struct result *x)
{
    printf("%3d:%-2d %-42s ", info->platform, info->device, x->c->name);
    switch (x->outcome) {
    case OUTCOME_OK:
        print_timed(x);
        break;
    case OUTCOME_WRONG:
        printf("WRONG: error %.2e, allowed %.1e; not timed", x->error, x->error_limit);
        ++r->n_wrong;
        break;
    case OUTCOME_FAILED:
        printf("FAILED: %s", x->reason);
        ++r->n_failed;
        break;
    case OUTCOME_NOT_RUN:
        printf("not run: %s", x->reason);
        break;
    }
    printf("\n");
    fflush(stdout);
    if (r->device)
        json_add_result(r->device, x);
}

bool report_write(const struct report *r, const char *path)
{
    const int failed = json_dump_file(r->root, path, JSON_INDENT(1) | JSON_REAL_PRECISION(9));

    if (failed)
        fprintf(stderr, "attncl-bench: %s could not be written\n", path);
    return !failed;
}

void report_end(struct report *r)
{
    json_decref(r->root);
    *r = (struct report){0};
}
