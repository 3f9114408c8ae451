// SPDX-License-Identifier: MIT
//
// Compilation is timed in two contexts of the attempt's own: the first meets programs that no cache
// has seen, the second finds what the first left.  Drivers compile in the first run too, so that
// what the first run takes beyond a usual one counts.

#include "harness/attempt.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/try.h"
#include "device/context.h"
#include "harness/check.h"
#include "harness/clock.h"

static attncl_status open_context(struct attempt *a)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;

    options.device = a->setting.device;
    options.cache_dir = a->setting.folder;
    options.profile = 1;
    TRY(attncl_context_create(&options, &a->own));
    a->own->nonce = a->nonce;
    return ATTNCL_OK;
}

static attncl_status close_context(struct attempt *a)
{
    attncl_context *ctx = a->own;

    a->own = NULL;
    return attncl_context_destroy(ctx);
}

// Data, graph, programs and a first run; the same in both contexts.
static attncl_status open_trial(struct attempt *a, attncl_context *ctx)
{
    const struct bench_case *c = a->result.c;

    a->trial = (struct trial){.ctx = ctx, .c = c};
    TRY(trial_open(&a->trial));
    return measure_once(&a->trial, a->setting.driver_does_not_wait, &a->first_s);
}

static attncl_status compile_cold(struct attempt *a)
{
    TRY(open_context(a));
    const attncl_status status = open_trial(a, a->own);
    a->result.cold_s = a->trial.compile_s;
    a->cold_run_s = a->first_s;
    trial_close(&a->trial);
    TRY(status);
    return close_context(a);
}

static void take_probes(struct attempt *a)
{
    const struct trial_array *y = trial_array_find(&a->trial, "y");
    struct result *r = &a->result;

    if (!y || y->dtype != ATTNCL_F32 || y->count == 0 || r->c->family->suite == SUITE_DEVICE)
        return;
    const int64_t step = (y->count - 1) / (N_PROBES - 1);
    for (r->n_probes = 0; r->n_probes < N_PROBES; ++r->n_probes)
        r->probe[r->n_probes] =
            ((const float *)y->data)[y->count - 1 - step * (int64_t)(N_PROBES - 1 - r->n_probes)];
}

// A fast wrong result is worth nothing, so an unchecked result is never timed.
static attncl_status check_trial(struct attempt *a)
{
    struct result *r = &a->result;
    struct check check = {0};

    TRY(trial_read(&a->trial));
    r->c->family->check(&a->trial, &check);
    host_reset();
    take_probes(a);
    r->error = check_error(&check);
    r->error_limit = check_limit(r->c->family, &r->c->sizes);
    if (!(r->error <= r->error_limit))
        r->outcome = OUTCOME_WRONG;
    return ATTNCL_OK;
}

static attncl_status begin(struct attempt *a)
{
    const bool timed = a->setting.folder && a->result.c->family->suite != SUITE_DEVICE;

    if (timed) {
        TRY(compile_cold(a));
        TRY(open_context(a));
    }
    TRY(open_trial(a, timed ? a->own : a->setting.ctx));
    if (timed)
        a->result.cached_s = a->trial.compile_s;
    return check_trial(a);
}

static void settle(struct attempt *a, attncl_status status)
{
    struct result *r = &a->result;

    if (status == ATTNCL_OK)
        return;
    const bool cannot = status == ATTNCL_ERR_UNSUPPORTED || status == ATTNCL_ERR_DEVICE_MEMORY;
    r->outcome = cannot ? OUTCOME_NOT_RUN : OUTCOME_FAILED;
    snprintf(r->reason, sizeof r->reason, "%s", attncl_last_error());
}

struct attempt *attempt_begin(const struct attempt_setting *setting, const struct bench_case *c)
{
    static unsigned n_attempts;
    struct attempt *a = attncl__alloc_zero(sizeof *a);

    if (!a)
        return NULL;
    a->setting = *setting;
    a->result.c = a->trial.c = c;
    // A declaration: unlike a comment or a macro it is there after preprocessing too.
    snprintf(a->nonce, sizeof a->nonce, "typedef int nonce_%ld_%lx_%u;\n", (long)getpid(),
             (unsigned long)(1e6 * clock_now()), ++n_attempts);
    settle(a, begin(a));
    return a;
}

void attempt_round(struct attempt *a, const struct measure_options *options)
{
    const double start = clock_now();
    struct timing *t = &a->result.timing;

    if (a->result.outcome != OUTCOME_OK)
        return;
    if (t->rounds == 0)
        settle(a, measure_warm_up(&a->trial, options));
    if (a->result.outcome == OUTCOME_OK)
        settle(a, measure_round(&a->trial, options, &a->wall));
    ++t->rounds;
    a->spent_s += clock_now() - start;
}

static void count_memory(struct attempt *a)
{
    struct result *r = &a->result;

    r->has_memory = a->trial.graph && attncl_graph_memory(a->trial.graph, &r->memory) == ATTNCL_OK;
}

void attempt_end(struct attempt *a, const struct measure_options *options)
{
    const double start = clock_now();
    struct result *r = &a->result;

    if (r->outcome == OUTCOME_OK) {
        settle(a, measure_events(&a->trial, options, &r->timing));
        count_memory(a);
        r->timing.runs = a->wall.n;
        r->timing.wall = samples_spread(&a->wall);
        if (r->cold_s > 0)
            r->cold_s += fmax(0, a->cold_run_s - r->timing.wall.median);
        if (r->cached_s > 0)
            r->cached_s += fmax(0, a->first_s - r->timing.wall.median);
    }
    a->spent_s += clock_now() - start;
    trial_close(&a->trial);
    const attncl_status status = close_context(a);
    if (r->outcome == OUTCOME_OK)
        settle(a, status);
}

void attempt_free(struct attempt *a)
{
    if (!a)
        return;
    samples_free(&a->wall);
    attncl__free(a);
}
