// SPDX-License-Identifier: MIT
//
// Compilation is timed in two contexts of the case run's own: the first meets programs that no
// cache has seen, the second finds what the first left.  Drivers compile in the first run too, so
// that what the first run takes beyond a usual one counts.

#include "harness/case_run.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/try.h"
#include "device/context.h"
#include "harness/check.h"
#include "harness/clock.h"

static attncl_status open_context(struct case_run *a)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;

    options.device = a->setting.device;
    options.cache_dir = a->setting.directory;
    options.profile = 1;
    TRY(attncl_context_create(&options, &a->own));
    a->own->cache_buster = a->cache_buster;
    return ATTNCL_OK;
}

static attncl_status close_context(struct case_run *a)
{
    attncl_context *ctx = a->own;

    a->own = NULL;
    return attncl_context_destroy(ctx);
}

// Data, graph, programs and a first run; the same in both contexts.
static attncl_status open_case_data(struct case_run *a, attncl_context *ctx)
{
    const struct bench_case *c = a->result.c;

    a->data = (struct case_data){.ctx = ctx, .c = c};
    TRY(case_data_open(&a->data));
    return measure_once(&a->data, a->setting.driver_does_not_wait, &a->first_s);
}

static attncl_status compile_cold(struct case_run *a)
{
    TRY(open_context(a));
    const attncl_status status = open_case_data(a, a->own);
    a->result.cold_s = a->data.compile_s;
    a->cold_run_s = a->first_s;
    case_data_close(&a->data);
    TRY(status);
    return close_context(a);
}

static void take_probes(struct case_run *a)
{
    const struct case_data_array *y = case_data_array_find(&a->data, "y");
    struct result *r = &a->result;

    if (!y || y->dtype != ATTNCL_F32 || y->count == 0 || r->c->family->suite == SUITE_DEVICE)
        return;
    const int64_t step = (y->count - 1) / (N_PROBES - 1);
    for (r->n_probes = 0; r->n_probes < N_PROBES; ++r->n_probes)
        r->probe[r->n_probes] =
            ((const float *)y->data)[y->count - 1 - step * (int64_t)(N_PROBES - 1 - r->n_probes)];
}

// A fast wrong result is worth nothing, so an unchecked result is never timed.
static attncl_status check_case_data(struct case_run *a)
{
    struct result *r = &a->result;
    struct check check = {0};

    TRY(case_data_read(&a->data));
    r->c->family->check(&a->data, &check);
    host_reset();
    take_probes(a);
    r->error = check_error(&check);
    r->error_limit = check_limit(r->c->family, &r->c->sizes);
    if (!(r->error <= r->error_limit))
        r->outcome = OUTCOME_WRONG;
    return ATTNCL_OK;
}

static attncl_status begin(struct case_run *a)
{
    const bool timed = a->setting.directory && a->result.c->family->suite != SUITE_DEVICE;

    if (timed) {
        TRY(compile_cold(a));
        TRY(open_context(a));
    }
    TRY(open_case_data(a, timed ? a->own : a->setting.ctx));
    if (timed)
        a->result.cached_s = a->data.compile_s;
    return check_case_data(a);
}

static void settle(struct case_run *a, attncl_status status)
{
    struct result *r = &a->result;

    if (status == ATTNCL_OK)
        return;
    const bool cannot = status == ATTNCL_ERR_UNSUPPORTED || status == ATTNCL_ERR_DEVICE_MEMORY;
    r->outcome = cannot ? OUTCOME_NOT_RUN : OUTCOME_FAILED;
    snprintf(r->reason, sizeof r->reason, "%s", attncl_last_error());
}

struct case_run *case_run_begin(const struct case_run_setting *setting, const struct bench_case *c)
{
    static unsigned n_case_runs;
    struct case_run *a = attncl__alloc_zero(sizeof *a);

    if (!a)
        return NULL;
    a->setting = *setting;
    a->result.c = a->data.c = c;
    // A declaration: unlike a comment or a macro it is there after preprocessing too.
    snprintf(a->cache_buster, sizeof a->cache_buster, "typedef int cache_buster_%ld_%lx_%u;\n",
             (long)getpid(), (unsigned long)(1e6 * clock_now()), ++n_case_runs);
    settle(a, begin(a));
    return a;
}

void case_run_round(struct case_run *a, const struct measure_options *options)
{
    const double start = clock_now();
    struct timing *t = &a->result.timing;

    if (a->result.outcome != OUTCOME_OK)
        return;
    if (t->rounds == 0)
        settle(a, measure_warm_up(&a->data, options));
    if (a->result.outcome == OUTCOME_OK)
        settle(a, measure_round(&a->data, options, &a->wall));
    ++t->rounds;
    a->spent_s += clock_now() - start;
}

static void count_memory(struct case_run *a)
{
    struct result *r = &a->result;

    r->has_memory = a->data.graph && attncl_graph_memory(a->data.graph, &r->memory) == ATTNCL_OK;
}

void case_run_end(struct case_run *a, const struct measure_options *options)
{
    const double start = clock_now();
    struct result *r = &a->result;

    if (r->outcome == OUTCOME_OK) {
        settle(a, measure_events(&a->data, options, &r->timing));
        count_memory(a);
        r->timing.runs = a->wall.n;
        r->timing.wall = samples_spread(&a->wall);
        if (r->cold_s > 0)
            r->cold_s += fmax(0, a->cold_run_s - r->timing.wall.median);
        if (r->cached_s > 0)
            r->cached_s += fmax(0, a->first_s - r->timing.wall.median);
    }
    a->spent_s += clock_now() - start;
    case_data_close(&a->data);
    const attncl_status status = close_context(a);
    if (r->outcome == OUTCOME_OK)
        settle(a, status);
}

void case_run_free(struct case_run *a)
{
    if (!a)
        return;
    samples_free(&a->wall);
    attncl__free(a);
}
