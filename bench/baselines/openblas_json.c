// SPDX-License-Identifier: MIT

#include "openblas_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "attncl/version.h"
#include "harness/machine.h"

enum { SKINNY_MAX_ROWS = 8 };

static json_t *device(const struct openblas_setting *s)
{
    const char *core = getenv("OPENBLAS_CORETYPE");

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:i, s:s, s:s?}, s:n, s:[]}", "device",
                     "openblas", "kind", "baseline", "type", "cpu", "name", s->config, "sizes",
                     "full", "settings", "threads", s->threads, "clock", s->clock,
                     "OPENBLAS_CORETYPE", core, "roofline", "results");
}

json_t *openblas_report(int argc, char **argv, const struct openblas_setting *setting)
{
    char date[32];
    const time_t now = time(NULL);
    struct tm utc;
    json_t *command = json_array();

    for (int i = 0; i < argc; ++i)
        json_array_append_new(command, json_string(argv[i]));
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_pack("{s:i, s:s, s:s, s:n, s:s, s:o, s:n, s:o, s:[o]}", "schema", 2, "program",
                     "attncl-bench-openblas", "version", attncl_version(), "revision", "date", date,
                     "command", command, "label", "host", machine_describe(), "devices",
                     device(setting));
}

// As in cases.def.
static void case_name(const struct openblas_figure *f, char *text, size_t capacity)
{
    if (f->m == f->n && f->n == f->k)
        snprintf(text, capacity, "product %.2s %d", f->form, f->m);
    else
        snprintf(text, capacity, "product %.2s %dx%dx%d%s", f->form, f->m, f->n, f->k,
                 f->m <= SKINNY_MAX_ROWS ? " (few rows)" : "");
}

void openblas_add(json_t *report, const struct openblas_figure *f)
{
    const double flop = 2.0 * f->m * f->n * f->k;
    const struct spread *t = &f->theirs;
    json_t *devices = json_object_get(report, "devices");
    json_t *results = json_object_get(json_array_get(devices, 0), "results");
    char name[64];

    case_name(f, name, sizeof name);
    json_t *result = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:{s:i, s:i, s:i, s:b}, s:s, s:i, s:i}", "case", name, "suite",
        "op", "family", "gemm", "set", "full", "dtype", "f32", "sizes", "M", f->m, "N", f->n, "K",
        f->k, "transposed", f->form[1] == 'T', "outcome", "ok", "runs", f->runs, "rounds", f->runs);
    json_object_set_new(result, "wall",
                        json_pack("{s:f, s:f, s:f, s:f, s:f}", "min_s", t->min, "q1_s", t->q1,
                                  "median_s", t->median, "q3_s", t->q3, "max_s", t->max));
    json_object_set_new(result, "flop", json_real(flop));
    json_object_set_new(result, "gflop_s", json_real(1e-9 * flop / t->min));
    json_object_set_new(result, "library_min_s", json_real(f->ours_s));
    json_array_append_new(results, result);
}
