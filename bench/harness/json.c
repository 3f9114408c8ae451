// SPDX-License-Identifier: MIT

#include "harness/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "harness/machine.h"
#include "revision.h"

static json_t *words(int argc, char **argv)
{
    json_t *list = json_array();

    for (int i = 0; i < argc; ++i)
        json_array_append_new(list, json_string(argv[i]));
    return list;
}

json_t *json_report(int argc, char **argv, const char *label)
{
    char date[32];
    const time_t now = time(NULL);
    struct tm utc;

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    json_t *name = label ? json_string(label) : NULL; // NULL too when it is not UTF-8
    return json_pack("{s:i, s:s, s:s, s:s?, s:s, s:o, s:o, s:o, s:[]}", "schema", JSON_SCHEMA,
                     "program", "attncl-bench", "version", attncl_version(), "revision",
                     BENCH_REVISION[0] ? BENCH_REVISION : NULL, "date", date, "command",
                     words(argc, argv), "label", name ? name : json_null(), "host",
                     machine_describe(), "devices");
}

const char *json_device_type(attncl_device_type type)
{
    return type == ATTNCL_DEVICE_CPU ? "cpu" : type == ATTNCL_DEVICE_GPU ? "gpu" : "other";
}

static json_t *device_object(const attncl_device_info *info)
{
    char address[32];

    snprintf(address, sizeof address, "%d:%d", info->platform, info->device);
    json_t *device = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:I}", "device", address, "kind",
        "opencl", "type", json_device_type(info->type), "name", info->name, "platform",
        info->platform_name, "vendor", info->vendor, "driver", info->driver_version, "opencl",
        info->opencl_version, "compute_units", (int)info->compute_units, "clock_mhz",
        (int)info->clock_mhz, "global_memory_bytes", (json_int_t)info->global_memory_bytes,
        "local_memory_bytes", (json_int_t)info->local_memory_bytes);
    json_object_set_new(device, "settings", machine_settings());
    return device;
}

json_t *json_add_device(json_t *root, const attncl_device_info *info, enum case_set set,
                        uint64_t limit)
{
    json_t *device = device_object(info);

    json_object_set_new(device, "sizes", json_string(set == CASE_QUICK ? "quick" : "full"));
    if (limit)
        json_object_set_new(device, "loop_limit", json_integer((json_int_t)limit));
    json_object_set_new(device, "roofline", json_null());
    json_object_set_new(device, "results", json_array());
    json_array_append_new(json_object_get(root, "devices"), device);
    return device;
}

void json_add_refusal(json_t *root, const attncl_device_info *info, const char *reason)
{
    json_t *device = device_object(info);

    json_object_set_new(device, "roofline", json_null());
    json_object_set_new(device, "reason", json_string(reason));
    json_array_append_new(json_object_get(root, "devices"), device);
}

json_t *report_case(const struct bench_case *c)
{
    const struct sizes *s = &c->sizes;
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"B", s->B},          {"T", s->T}, {"C", s->C},         {"F", s->F},
                 {"V", s->V},          {"M", s->M}, {"N", s->N},         {"K", s->K},
                 {"S", s->S},          {"E", s->E}, {"heads", s->heads}, {"layers", s->layers},
                 {"window", s->window}};
    json_t *extents = json_pack("{s:b, s:b}", "causal", s->causal, "transposed", s->transposed);

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
        if (sizes[i].value)
            json_object_set_new(extents, sizes[i].name, json_integer(sizes[i].value));
    if (s->VW)
        json_object_set_new(extents, "VW", json_integer(s->VW));
    if (s->provider)
        json_object_set_new(extents, "provider", json_string(s->provider));
    if (s->layer)
        json_object_set_new(extents, "layer", json_string(s->layer));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "case", c->name, "suite",
                     bench_suite_names[c->family->suite], "family", c->family->name, "set",
                     c->set == CASE_QUICK ? "quick" : "full", "dtype", "f32", "sizes", extents);
}

// JSON has no infinity.
static json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

// What was not measured is 0.
static json_t *known(double x)
{
    return x > 0 ? real_or_null(x) : json_null();
}

static json_t *memory_object(const struct result *x)
{
    const attncl_memory_report *m = &x->memory;

    if (!x->has_memory)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "io_bytes", (json_int_t)m->io_bytes,
                     "weights_bytes", (json_int_t)m->weights_bytes, "activations_bytes",
                     (json_int_t)m->activations_bytes, "scratch_bytes",
                     (json_int_t)m->scratch_bytes, "arena_bytes", (json_int_t)m->arena_bytes,
                     "state_bytes", (json_int_t)m->state_bytes);
}

void json_set_shares(json_t *object, const struct result *x)
{
    json_object_set_new(object, "bound", x->bound ? json_string(x->bound) : json_null());
    json_object_set_new(object, "roofline_percent",
                        x->bound ? json_real(x->roofline_percent) : json_null());
    json_object_set_new(object, "copy_percent", known(x->copy_percent));
}

static void add_timing(json_t *object, const struct result *x)
{
    const struct timing *t = &x->timing;
    const struct spread *w = &t->wall;
    const double tokens = x->c->family->tokens ? x->c->family->tokens(&x->c->sizes) : 0;

    json_object_set_new(object, "runs", json_integer((json_int_t)t->runs));
    json_object_set_new(object, "rounds", json_integer((json_int_t)t->rounds));
    json_object_set_new(object, "wall",
                        json_pack("{s:f, s:f, s:f, s:f, s:f}", "min_s", w->min, "q1_s", w->q1,
                                  "median_s", w->median, "q3_s", w->q3, "max_s", w->max));
    json_object_set_new(object, "event",
                        t->event.min > 0 ? json_pack("{s:f, s:f}", "min_s", t->event.min,
                                                     "median_s", t->event.median)
                                         : json_null());
    json_object_set_new(
        object, "compile",
        json_pack("{s:o, s:o}", "cold_s", known(x->cold_s), "cached_s", known(x->cached_s)));
    json_object_set_new(object, "flop", known(t->flop));
    json_object_set_new(object, "bytes", known(t->bytes));
    json_object_set_new(object, "gflop_s", known(1e-9 * t->flop / w->min));
    json_object_set_new(object, "gb_s", known(1e-9 * t->bytes / w->min));
    json_set_shares(object, x);
    json_object_set_new(object, "memory", memory_object(x));
    json_object_set_new(object, "tokens", known(tokens));
    json_object_set_new(object, "tokens_per_s", known(tokens / w->min));
}

static json_t *probes(const struct result *x)
{
    json_t *list = json_array();

    for (size_t i = 0; i < x->n_probes; ++i)
        json_array_append_new(list, real_or_null(x->probe[i]));
    return list;
}

json_t *json_add_result(json_t *device, const struct result *x)
{
    static const char *const outcomes[] = {"ok", "wrong", "failed", "not run"};
    const bool checked = x->outcome == OUTCOME_OK || x->outcome == OUTCOME_WRONG;
    json_t *object = report_case(x->c);

    json_object_set_new(object, "outcome", json_string(outcomes[x->outcome]));
    if (x->reason[0])
        json_object_set_new(object, "reason", json_string(x->reason));
    json_object_set_new(object, "error", checked ? real_or_null(x->error) : json_null());
    json_object_set_new(object, "error_limit", checked ? json_real(x->error_limit) : json_null());
    if (x->outcome == OUTCOME_OK) {
        if (x->n_probes)
            json_object_set_new(object, "probe", probes(x));
        add_timing(object, x);
    }
    json_array_append_new(json_object_get(device, "results"), object);
    return object;
}

void json_set_roofline(json_t *device, const struct roofline *x)
{
    json_t *copies = json_array(), *gemms = json_array();

    for (size_t i = 0; i < x->n_copies; ++i)
        json_array_append_new(copies, json_pack("{s:f, s:f}", "footprint_bytes", x->copy[i].bytes,
                                                "bytes_per_s", x->copy[i].rate));
    for (size_t i = 0; i < x->n_providers; ++i)
        json_array_append_new(gemms, json_pack("{s:s, s:f}", "provider", x->gemm[i].name,
                                               "flop_per_s", x->gemm[i].rate));
    json_object_set_new(
        device, "roofline",
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "copy_bytes_per_s",
                  known(x->copy_rate), "copies", copies, "fma_flop_per_s", known(x->fma_rate),
                  "launch_s", known(x->launch_s), "launch_queued_s", known(x->launch_queued_s),
                  "to_device_bytes_per_s", known(x->to_device_rate), "from_device_bytes_per_s",
                  known(x->from_device_rate), "gemm", gemms));
}
