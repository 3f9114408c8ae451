// SPDX-License-Identifier: MIT
//
// Compilation is timed in two contexts of the run's own: the first meets programs that no cache has
// seen, the second finds what the first left.  Drivers compile in the first run too, so that what
// the first run takes beyond a usual one counts.

#include "harness/run.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/try.h"
#include "device/context.h"
#include "device/program.h"
#include "harness/load.h"

enum { MAX_RUNS_OF_ROUND = 2000, N_EVENT_RUNS = 5, N_WARM_UP_RUNS = 3 };

// What every source that the library loads begins with, which makes it new to every compiler cache,
// the library's and the driver's; NULL: nothing.
static const char *prefix;

// The linker's --wrap sends calls of X to __wrap_X; __real_X is the library's function.
attncl_status __real_attncl__source_load(const attncl_context *ctx, const char *file,
                                         char **text_ret);
attncl_status __wrap_attncl__source_load(const attncl_context *ctx, const char *file,
                                         char **text_ret);

attncl_status __wrap_attncl__source_load(const attncl_context *ctx, const char *file,
                                         char **text_ret)
{
    struct strbuf text = STRBUF_EMPTY;

    TRY(__real_attncl__source_load(ctx, file, text_ret));
    if (!prefix)
        return ATTNCL_OK;
    attncl__strbuf_add(&text, "%s%s", prefix, *text_ret);
    attncl__free(*text_ret);
    *text_ret = text.data;
    REQUIRE(!text.failed, ATTNCL_ERR_NO_MEMORY, "%s", file);
    return ATTNCL_OK;
}

static attncl_status open_context(struct run *r)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;

    options.device = r->options.device;
    options.cache_dir = r->options.directory;
    options.profile = 1;
    return attncl_context_create(&options, &r->own);
}

static attncl_status close_context(struct run *r)
{
    attncl_context *ctx = r->own;

    r->own = NULL;
    return attncl_context_destroy(ctx);
}

// One run and the wait for it.
static attncl_status run_once(struct run *r, double *seconds_ret)
{
    TRY(case_prepare(&r->data));
    const double start = clock_now();
    TRY(case_run(&r->data));
    TRY(r->options.driver_does_not_wait ? case_settle(&r->data)
                                        : attncl_context_finish(r->data.ctx));
    *seconds_ret = (clock_now() - start) / (double)r->data.repeats;
    return ATTNCL_OK;
}

// Data, graph, programs and a first run; the same in both contexts.
static attncl_status open_data(struct run *r, attncl_context *ctx)
{
    r->data = (struct case_data){.ctx = ctx, .c = r->c};
    TRY(case_open(&r->data));
    return run_once(r, &r->first_s);
}

static attncl_status compile_cold(struct run *r)
{
    TRY(open_context(r));
    const attncl_status status = open_data(r, r->own);
    r->cold_s = r->data.compile_s;
    r->cold_run_s = r->first_s;
    case_close(&r->data);
    TRY(status);
    return close_context(r);
}

static void take_probes(struct run *r)
{
    const struct case_array *y =
        r->data.gradient ? r->data.gradient : case_array_find(&r->data, "y");

    if (!y || y->dtype != ATTNCL_F32 || y->count == 0 || r->c->family->suite == SUITE_DEVICE)
        return;
    const int64_t step = (y->count - 1) / (N_PROBES - 1);
    for (r->n_probes = 0; r->n_probes < N_PROBES; ++r->n_probes)
        r->probe[r->n_probes] =
            ((const float *)y->data)[y->count - 1 - step * (int64_t)(N_PROBES - 1 - r->n_probes)];
}

// A fast wrong result is worth nothing, so an unchecked result is never timed.
static attncl_status check_data(struct run *r)
{
    struct check check = {0};

    TRY(case_read(&r->data));
    r->c->family->check(&r->data, &r->c->sizes, &check);
    host_reset();
    take_probes(r);
    r->error = check_error(&check);
    r->error_limit = check_limit(&check);
    if (!(r->error <= r->error_limit))
        r->outcome = OUTCOME_WRONG;
    return ATTNCL_OK;
}

static attncl_status begin(struct run *r)
{
    const bool timed = r->options.directory && r->c->family->suite != SUITE_DEVICE;

    if (timed) {
        prefix = r->cache_buster;
        TRY(compile_cold(r));
        TRY(open_context(r));
    }
    TRY(open_data(r, timed ? r->own : r->options.ctx));
    if (timed)
        r->cached_s = r->data.compile_s;
    return check_data(r);
}

static void settle(struct run *r, attncl_status status)
{
    if (status == ATTNCL_OK)
        return;
    const bool cannot = status == ATTNCL_ERR_UNSUPPORTED || status == ATTNCL_ERR_DEVICE_MEMORY;
    r->outcome = cannot ? OUTCOME_NOT_RUN : OUTCOME_FAILED;
    snprintf(r->reason, sizeof r->reason, "%s", attncl_last_error());
}

struct run *run_begin(const struct run_options *options, const struct bench_case *c)
{
    static unsigned n_runs;
    struct run *r = attncl__alloc_zero(sizeof *r);

    if (!r)
        return NULL;
    r->options = *options;
    r->c = r->data.c = c;
    // A declaration: unlike a comment or a macro it is there after preprocessing too.
    snprintf(r->cache_buster, sizeof r->cache_buster, "typedef int cache_buster_%ld_%lx_%u;\n",
             (long)getpid(), (unsigned long)(1e6 * clock_now()), ++n_runs);
    settle(r, begin(r));
    prefix = NULL;
    return r;
}

// Before the first round: until caches, clocks and the driver's own late compilation have settled.
static attncl_status warm_up(struct run *r)
{
    const double start = clock_now();
    double seconds;

    for (int i = 0; i < N_WARM_UP_RUNS && (i == 0 || clock_now() - start < r->options.budget_s / 2);
         ++i)
        TRY(run_once(r, &seconds));
    return ATTNCL_OK;
}

// A run to warm up again, during which the sensors are read.
static attncl_status read_sensors(struct run *r)
{
    TRY(case_prepare(&r->data));
    TRY(case_run(&r->data));
    sensors_read(r->options.sensors, &r->sensors);
    return r->options.driver_does_not_wait ? case_settle(&r->data)
                                           : attncl_context_finish(r->data.ctx);
}

// The last n samples are the round's.
static void add_round(struct run *r, size_t n, const struct load *before)
{
    const struct load load = load_since(before);
    struct samples round = {.values = r->samples.values + r->samples.n - n, .n = n};

    if (!r->by_round)
        r->by_round = json_array();
    json_array_append_new(r->by_round,
                          json_pack("{s:f, s:f, s:f, s:f, s:I}", "median_s",
                                    samples_spread(&round).median, "wall_s", load.wall_s, "cpu_s",
                                    load.cpu_s, "busy_s", load.busy_s, "switches",
                                    (json_int_t)load.switches));
}

static attncl_status time_round(struct run *r)
{
    double seconds;

    TRY(read_sensors(r));
    r->data.latency = &r->latencies;
    const struct load before = load_now();
    for (size_t n = 1;; ++n) {
        TRY(run_once(r, &seconds));
        REQUIRE(samples_add(&r->samples, seconds), ATTNCL_ERR_NO_MEMORY, "%zu samples",
                r->samples.n);
        const double elapsed = clock_now() - before.wall_s;
        const bool enough = n >= r->options.min_runs && elapsed >= r->options.budget_s;
        if (enough || n == MAX_RUNS_OF_ROUND || elapsed >= 4 * r->options.budget_s) {
            add_round(r, n, &before);
            return ATTNCL_OK;
        }
    }
}

void run_round(struct run *r)
{
    const double start = clock_now();

    if (r->outcome != OUTCOME_OK)
        return;
    if (r->rounds == 0)
        settle(r, warm_up(r));
    if (r->outcome == OUTCOME_OK)
        settle(r, time_round(r));
    r->data.latency = NULL;
    ++r->rounds;
    r->spent_s += clock_now() - start;
}

// Nanoseconds of the graph's profile so far; sets operations and bytes of a run.
static uint64_t read_profile(struct run *r)
{
    const attncl_profile_row *row;
    uint64_t total_ns = 0;

    r->flop = r->bytes = 0;
    for (size_t i = 0; (row = attncl_graph_profile_row(r->data.graph, i)); ++i) {
        total_ns += row->total_ns;
        r->flop += row->flop;
        r->bytes += row->bytes;
    }
    return total_ns;
}

// After the last round, device times in runs of their own, so that asking for events does not slow
// what is timed.  Operations and bytes are in any profile.
static attncl_status time_events(struct run *r)
{
    const int n = r->options.driver_does_not_wait ? 1 : N_EVENT_RUNS;
    const double start = clock_now();
    struct samples events = {0};
    attncl_status status = ATTNCL_OK;

    for (int i = 0; i < n && (i == 0 || clock_now() - start < r->options.budget_s); ++i) {
        const uint64_t before = read_profile(r);
        TRY_DONE(attncl_graph_run_profiled(r->data.graph));
        samples_add(&events, 1e-9 * (double)(read_profile(r) - before));
    }
    if (!r->options.driver_does_not_wait)
        r->event = samples_spread(&events);

done:
    samples_free(&events);
    return status;
}

static void complete(struct run *r)
{
    r->flop = r->data.flop;
    r->bytes = r->data.bytes;
    if (r->data.graph) {
        settle(r, time_events(r));
        r->memory = (attncl_memory_report)ATTNCL_MEMORY_REPORT_INIT;
        r->has_memory = attncl_graph_memory(r->data.graph, &r->memory) == ATTNCL_OK;
    }
    r->runs = r->samples.n;
    r->wall = samples_spread(&r->samples);
    r->latency = samples_spread(&r->latencies);
    if (r->cold_s > 0)
        r->cold_s += fmax(0, r->cold_run_s - r->wall.median);
    if (r->cached_s > 0)
        r->cached_s += fmax(0, r->first_s - r->wall.median);
}

void run_end(struct run *r)
{
    const double start = clock_now();

    if (r->outcome == OUTCOME_OK)
        complete(r);
    r->spent_s += clock_now() - start;
    case_close(&r->data);
    const attncl_status status = close_context(r);
    if (r->outcome == OUTCOME_OK)
        settle(r, status);
}

void run_free(struct run *r)
{
    if (!r)
        return;
    samples_free(&r->samples);
    samples_free(&r->latencies);
    json_decref(r->by_round);
    attncl__free(r);
}
