// SPDX-License-Identifier: MIT
//
// Times in seconds, rates left to the reader: flop, bytes and times are given.

#include "harness/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

json_t *json_report(void)
{
    return json_pack("{s:s, s:[]}", "version", attncl_version(), "devices");
}

static json_t *device_object(const attncl_device_info *info)
{
    char address[32];

    snprintf(address, sizeof address, "%d:%d", info->platform, info->device);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:I}", "device", address,
                     "name", info->name, "platform", info->platform_name, "vendor", info->vendor,
                     "driver", info->driver_version, "opencl", info->opencl_version,
                     "compute_units", (int)info->compute_units, "clock_mhz", (int)info->clock_mhz,
                     "global_memory_bytes", (json_int_t)info->global_memory_bytes,
                     "local_memory_bytes", (json_int_t)info->local_memory_bytes);
}

json_t *json_add_device(json_t *root, const attncl_device_info *info, enum case_set set)
{
    json_t *device = device_object(info);

    json_object_set_new(device, "sizes", json_string(set == CASE_QUICK ? "quick" : "full"));
    json_object_set_new(device, "results", json_array());
    json_array_append_new(json_object_get(root, "devices"), device);
    return device;
}

void json_add_refusal(json_t *root, const attncl_device_info *info, const char *reason)
{
    json_t *device = device_object(info);

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

static void add_timing(json_t *object, const struct result *x)
{
    const struct timing *t = &x->timing;

    json_object_set_new(object, "runs", json_integer((json_int_t)t->runs));
    json_object_set_new(object, "min_s", json_real(t->min_s));
    json_object_set_new(object, "median_s", json_real(t->median_s));
    json_object_set_new(object, "device_s", t->device_s > 0 ? json_real(t->device_s) : json_null());
    json_object_set_new(object, "flop", json_real(t->flop));
    json_object_set_new(object, "bytes", json_real(t->bytes));
    json_object_set_new(object, "compile_s", json_real(x->compile_s));
    if (x->c->family->tokens)
        json_object_set_new(object, "tokens", json_real(x->c->family->tokens(&x->c->sizes)));
}

void json_add_result(json_t *device, const struct result *x)
{
    static const char *const outcomes[] = {"ok", "wrong", "failed", "not run"};
    json_t *object = report_case(x->c);

    json_object_set_new(object, "outcome", json_string(outcomes[x->outcome]));
    if (x->reason[0])
        json_object_set_new(object, "reason", json_string(x->reason));
    if (x->outcome == OUTCOME_OK || x->outcome == OUTCOME_WRONG) {
        json_object_set_new(object, "error", real_or_null(x->error));
        json_object_set_new(object, "error_limit", json_real(x->error_limit));
    }
    if (x->outcome == OUTCOME_OK)
        add_timing(object, x);
    json_array_append_new(json_object_get(device, "results"), object);
}
