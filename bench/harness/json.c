// SPDX-License-Identifier: MIT

#define _GNU_SOURCE // sched_getaffinity

#include "harness/report.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "attncl/version.h"

enum { REPORT_SCHEMA = 2 };

// The value of the first line "KEY<separator>value" of a file, without quotes; "" when there is
// none.
static void value_of(const char *path, const char *key, char separator, char *text, size_t capacity)
{
    char line[512];
    FILE *file = fopen(path, "r");

    text[0] = '\0';
    while (file && !text[0] && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, separator);

        if (strncmp(line, key, strlen(key)) != 0 || !value)
            continue;
        value += 1 + strspn(value + 1, " \t\"");
        snprintf(text, capacity, "%.*s", (int)strcspn(value, "\"\n"), value);
    }
    if (file)
        fclose(file);
}

static json_t *text_or_null(const char *text)
{
    json_t *string = text[0] ? json_string(text) : NULL;

    return string ? string : json_null();
}

static int usable_threads(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                       : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static json_t *describe_host(void)
{
    char os[256], cpu[256], kernel[256] = "";
    struct utsname u;

    value_of("/etc/os-release", "PRETTY_NAME", '=', os, sizeof os);
    value_of("/proc/cpuinfo", "model name", ':', cpu, sizeof cpu);
    if (uname(&u) == 0)
        snprintf(kernel, sizeof kernel, "%s %s %s", u.sysname, u.release, u.machine);
    double load = 0;
    const bool known_load = getloadavg(&load, 1) == 1;
    return json_pack("{s:o, s:o, s:o, s:i, s:i, s:I, s:o}", "os", text_or_null(os), "kernel",
                     text_or_null(kernel), "cpu", text_or_null(cpu), "cores",
                     (int)sysconf(_SC_NPROCESSORS_ONLN), "threads", usable_threads(),
                     "memory_bytes",
                     (json_int_t)sysconf(_SC_PHYS_PAGES) * (json_int_t)sysconf(_SC_PAGESIZE),
                     "load", known_load ? json_real(load) : json_null());
}

json_t *json_report(const char *program, const char *revision, int argc, char **argv,
                    const char *label)
{
    char date[32];
    const time_t now = time(NULL);
    struct tm utc;
    json_t *command = json_array();

    for (int i = 0; i < argc; ++i)
        json_array_append_new(command, json_string(argv[i]));
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_pack("{s:i, s:s, s:s, s:s?, s:s, s:o, s:o, s:o, s:[]}", "schema", REPORT_SCHEMA,
                     "program", program, "version", attncl_version(), "revision", revision, "date",
                     date, "command", command, "label", text_or_null(label ? label : ""), "host",
                     describe_host(), "devices");
}

static json_t *machine_settings(void)
{
    static const char *const names[] = {"ATTNCL_TUNE",   "ATTNCL_GEMM",   "ATTNCL_VARIANT",
                                        "ATTNCL_GUARD",  "ATTNCL_CL_DIR", "POCL_MAX_PTHREAD_COUNT",
                                        "POCL_AFFINITY", "LP_NUM_THREADS"};
    json_t *settings = json_object();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        const char *value = getenv(names[i]);

        if (value && *value)
            json_object_set_new(settings, names[i], text_or_null(value));
    }
    return settings;
}
const char *json_device_type(attncl_device_type type)
{
    return type == ATTNCL_DEVICE_CPU ? "cpu" : type == ATTNCL_DEVICE_GPU ? "gpu" : "other";
}

json_t *json_device(const attncl_device_info *info)
{
    char address[32];

    snprintf(address, sizeof address, "%d:%d", info->platform, info->device);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:o, s:n}",
                     "device", address, "kind", "opencl", "type", json_device_type(info->type),
                     "name", info->name, "platform", info->platform_name, "vendor", info->vendor,
                     "driver", info->driver_version, "opencl", info->opencl_version,
                     "compute_units", (int)info->compute_units, "clock_mhz", (int)info->clock_mhz,
                     "global_memory_bytes", (json_int_t)info->global_memory_bytes,
                     "local_memory_bytes", (json_int_t)info->local_memory_bytes, "settings",
                     machine_settings(), "roofline");
}

json_t *json_case(const struct bench_case *c)
{
    const struct sizes *s = &c->sizes;
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"B", s->B},           {"T", s->T},  {"C", s->C},         {"F", s->F},
                 {"V", s->V},           {"M", s->M},  {"N", s->N},         {"K", s->K},
                 {"S", s->S},           {"E", s->E},  {"heads", s->heads}, {"layers", s->layers},
                 {"window", s->window}, {"VW", s->VW}};
    json_t *extents = json_pack("{s:b, s:b, s:b}", "causal", s->causal, "transposed", s->transposed,
                                "backward", s->backward);

    // Quantised types have llama.cpp's names.
    const char *weights = s->weights == ATTNCL_F16  ? "f16"
                          : s->weights == ATTNCL_Q8 ? "q8_0"
                          : s->weights == ATTNCL_Q4 ? "q4_0"
                                                    : "f32";

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
        if (sizes[i].value)
            json_object_set_new(extents, sizes[i].name, json_integer(sizes[i].value));
    if (s->provider)
        json_object_set_new(extents, "provider", json_string(s->provider));
    if (s->layer)
        json_object_set_new(extents, "layer", json_string(s->layer));
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:o}", "case", c->name, "suite",
                     bench_suite_names[c->family->suite], "family", c->family->name, "set",
                     c->sets & SMALL ? "small" : "full", "headline", (c->sets & HEADLINE) != 0,
                     "dtype", weights, "sizes", extents);
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

static json_t *memory_object(const struct run *x)
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

// At most so many, evenly spread over the sorted ones.
enum { MAX_SAMPLES = 64 };

static json_t *samples(const struct samples *s)
{
    const size_t n = s->n < MAX_SAMPLES ? s->n : MAX_SAMPLES;
    json_t *list = json_array();

    for (size_t i = 0; i < n; ++i)
        json_array_append_new(list, json_real(s->values[(2 * i + 1) * s->n / (2 * n)]));
    return list;
}

static json_t *latency(const struct run *x)
{
    const struct spread *t = &x->latency;

    return x->latencies.n ? json_pack("{s:I, s:f, s:f, s:f}", "n", (json_int_t)x->latencies.n,
                                      "median_s", t->median, "p95_s", t->p95, "p99_s", t->p99)
                          : json_null();
}

static json_t *timing(const struct run *x)
{
    const struct spread *w = &x->wall;
    const double tokens = x->c->family->tokens ? x->c->family->tokens(&x->c->sizes) : 0;
    json_t *event = x->event.min > 0 ? json_pack("{s:f, s:f}", "min_s", x->event.min, "median_s",
                                                 x->event.median)
                                     : json_null();

    return json_pack(
        "{s:I, s:I, s:O?, s:{s:f, s:f, s:f, s:f, s:f, s:f}, s:o, s:o, s:o, s:o, s:{s:o, s:o}, s:o, "
        "s:o, "
        "s:o, s:o, s:n, s:n, s:o, s:o, s:o}",
        "runs", (json_int_t)x->runs, "rounds", (json_int_t)x->rounds, "by_round", x->by_round,
        "wall", "min_s", w->min, "q1_s", w->q1, "median_s", w->median, "q3_s", w->q3, "p95_s",
        w->p95, "max_s", w->max, "samples_s", samples(&x->samples), "latency", latency(x),
        "sensors", sensors_json(&x->sensors), "event", event, "compile", "cold_s", known(x->cold_s),
        "cached_s", known(x->cached_s), "flop", known(x->flop), "bytes", known(x->bytes), "gflop_s",
        known(1e-9 * x->flop / w->min), "gb_s", known(1e-9 * x->bytes / w->min), "bound",
        "roofline_percent", "memory", memory_object(x), "tokens", known(tokens), "tokens_per_s",
        known(tokens / w->min));
}

json_t *json_result(const struct run *x)
{
    static const char *const outcomes[] = {"ok", "wrong", "failed", "not run"};
    const bool checked = x->outcome == OUTCOME_OK || x->outcome == OUTCOME_WRONG;
    json_t *result = json_case(x->c), *probe = json_array();

    json_object_set_new(result, "outcome", json_string(outcomes[x->outcome]));
    if (x->reason[0])
        json_object_set_new(result, "reason", json_string(x->reason));
    json_object_set_new(result, "error", checked ? real_or_null(x->error) : json_null());
    json_object_set_new(result, "error_limit", checked ? json_real(x->error_limit) : json_null());
    for (size_t i = 0; i < x->n_probes; ++i)
        json_array_append_new(probe, real_or_null(x->probe[i]));
    if (x->outcome == OUTCOME_OK) {
        json_t *timed = timing(x);
        if (x->n_probes)
            json_object_set(result, "probe", probe);
        json_object_update(result, timed);
        json_decref(timed);
    }
    json_decref(probe);
    return result;
}

static double number(const json_t *object, const char *field)
{
    return json_number_value(json_object_get(object, field)); // 0 for null
}

struct shares json_set_shares(json_t *result, const struct roofline *roofline)
{
    const json_t *memory = json_object_get(result, "memory");
    struct work w = {.flop = number(result, "flop"),
                     .bytes = number(result, "bytes"),
                     .footprint_bytes = number(result, "bytes"),
                     .seconds = number(json_object_get(result, "wall"), "min_s")};
    const char *suite = json_string_value(json_object_get(result, "suite"));

    if (w.seconds <= 0 || strcmp(suite, bench_suite_names[SUITE_DEVICE]) == 0)
        return (struct shares){0};
    if (json_is_object(memory))
        w.footprint_bytes = number(memory, "io_bytes") + number(memory, "weights_bytes") +
                            number(memory, "arena_bytes") + number(memory, "state_bytes");
    const struct shares s = roofline_shares(roofline, &w);
    json_object_set_new(result, "bound", s.bound ? json_string(s.bound) : json_null());
    json_object_set_new(result, "roofline_percent", s.bound ? json_real(s.percent) : json_null());
    return s;
}

json_t *json_roofline(const struct roofline *x)
{
    json_t *copies = json_array(), *gemms = json_array();

    for (size_t i = 0; i < x->n_copies; ++i)
        json_array_append_new(copies, json_pack("{s:f, s:f}", "footprint_bytes", x->copy[i].bytes,
                                                "bytes_per_s", x->copy[i].rate));
    for (size_t i = 0; i < x->n_providers; ++i)
        json_array_append_new(gemms, json_pack("{s:s, s:f}", "provider", x->gemm[i].name,
                                               "flop_per_s", x->gemm[i].rate));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "copy_bytes_per_s",
                     known(x->copy_rate), "copies", copies, "fma_flop_per_s", known(x->fma_rate),
                     "launch_s", known(x->launch_s), "launch_queued_s", known(x->launch_queued_s),
                     "to_device_bytes_per_s", known(x->to_device_rate), "from_device_bytes_per_s",
                     known(x->from_device_rate), "gemm", gemms);
}
