// SPDX-License-Identifier: MIT
//
// The table.  Rows come one by one, so its columns are fixed.

#include "harness/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "revision.h"

void report_begin(struct report *r, int argc, char **argv, const char *path, const char *label)
{
    *r = (struct report){.root =
                             json_report("attncl-bench", BENCH_REVISION[0] ? BENCH_REVISION : NULL,
                                         argc, argv, label),
                         .path = path};
}

static void print_device(const attncl_device_info *info)
{
    printf("\ndevice %d:%d  %s\n", info->platform, info->device, info->name);
    printf("  %s, %s, driver %s, %s\n", json_device_type(info->type), info->platform_name,
           info->driver_version, info->opencl_version);
    printf("  %u compute units, %u MHz, %.1f GiB of memory, %llu KiB local\n", info->compute_units,
           info->clock_mhz, (double)info->global_memory_bytes / 0x1p30,
           (unsigned long long)info->local_memory_bytes / 1024);
}

void report_device(struct report *r, struct bench_device *d)
{
    json_t *json = json_device(&d->info);

    json_array_append_new(json_object_get(r->root, "devices"), json);
    print_device(&d->info);
    if (!d->ctx) {
        printf("  not run: %s\n", d->reason);
        json_object_set_new(json, "reason", json_string(d->reason));
        r->n_failed += d->failed;
        return;
    }
    printf("  sizes: %s", sizes_names[d->sizes]);
    if (d->loop_limit)
        printf(", because loops end after %llu rounds (--full runs the full ones)",
               (unsigned long long)d->loop_limit);
    printf("\n");
    json_object_set_new(json, "sizes", json_string(sizes_names[d->sizes]));
    if (d->loop_limit)
        json_object_set_new(json, "loop_limit", json_integer((json_int_t)d->loop_limit));
    json_object_set_new(json, "results", json_array());
    d->json = json;
}

void report_heading(void)
{
    printf("\n%-6s %-42s %9s %9s %7s %9s %8s %7s %7s %7s %7s %8s %8s\n", "device", "case", "min ms",
           "median", "spread", "device", "GFLOP/s", "GB/s", "roof", "cold s", "cached", "MiB",
           "error");
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

static void print_timed(const struct run *x, const struct shares *s)
{
    const struct spread *wall = &x->wall;
    char device[24], flops[24], bytes[24], roof[24], cold[24], cached[24], memory[24];

    printf("%9.4g %9.4g %6.1f%% %9s %8s %7s %5s%-2s %7s %7s %8s %8.1e", 1e3 * wall->min,
           1e3 * wall->median, 100 * (wall->q3 - wall->q1) / wall->median,
           number(1e3 * x->event.min, 4, device), number(1e-9 * x->flop / wall->min, 4, flops),
           number(1e-9 * x->bytes / wall->min, 3, bytes), number(s->percent, 3, roof),
           !s->bound            ? ""
           : s->bound[0] == 'c' ? "%c"
                                : "%m",
           number(x->cold_s, 2, cold), number(x->cached_s, 2, cached),
           number(x->has_memory ? (double)x->memory.arena_bytes / 0x1p20 : 0, 3, memory), x->error);
    if (x->c->family->tokens)
        printf("  %.4g tokens/s", x->c->family->tokens(&x->c->sizes) / wall->min);
}

void report_run(struct report *r, const struct bench_device *d, const struct run *x)
{
    json_t *result = json_result(x);
    const struct shares shares = json_set_shares(result, &d->roofline);

    json_array_append_new(json_object_get(d->json, "results"), result);
    r->n_wrong += x->outcome == OUTCOME_WRONG;
    r->n_failed += x->outcome == OUTCOME_FAILED;
    printf("%3d:%-2d %-42s ", d->info.platform, d->info.device, x->c->name);
    switch (x->outcome) {
    case OUTCOME_OK:
        print_timed(x, &shares);
        break;
    case OUTCOME_WRONG:
        printf("WRONG: error %.2e, allowed %.1e; not timed", x->error, x->error_limit);
        break;
    case OUTCOME_FAILED:
        printf("FAILED: %s", x->reason);
        break;
    case OUTCOME_NOT_RUN:
        printf("not run: %s", x->reason);
        break;
    }
    printf("\n");
    fflush(stdout);
}

void report_roofline(const struct bench_device *d, const char *what)
{
    const struct roofline *x = &d->roofline;
    char copy[24], fma[24], launch[24], queued[24];

    printf("%3d:%-2d %s: copy %s GB/s, FMA %s GFLOP/s", d->info.platform, d->info.device, what,
           number(1e-9 * x->copy_rate, 3, copy), number(1e-9 * x->fma_rate, 4, fma));
    if (x->launch_s > 0)
        printf(", launch %s us, in a queue %s us", number(1e6 * x->launch_s, 3, launch),
               number(1e6 * x->launch_queued_s, 3, queued));
    printf("\n");
    json_object_set_new(d->json, "roofline", json_roofline(x));
}

void report_update_roofline(const struct bench_device *d)
{
    json_t *result;
    size_t i;

    if (!d->json)
        return;
    if (roofline_is_known(&d->roofline))
        json_object_set_new(d->json, "roofline", json_roofline(&d->roofline));
    json_array_foreach (json_object_get(d->json, "results"), i, result) {
        json_set_shares(result, &d->roofline);
    }
}

bool report_write(const struct report *r, bool complete)
{
    if (!r->path)
        return true;
    json_object_set_new(r->root, "complete", json_boolean(complete));
    char *text = json_dumps(r->root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    const struct bytes part = {text, text ? strlen(text) : 0};
    const bool written = text && attncl__file_replace(r->path, &part, 1, false) == ATTNCL_OK;

    free(text);
    if (!written)
        fprintf(stderr, "attncl-bench: %s could not be written: %s\n", r->path,
                text ? attncl_last_error() : "out of memory");
    return written;
}

void report_end(struct report *r)
{
    json_decref(r->root);
    *r = (struct report){0};
}
