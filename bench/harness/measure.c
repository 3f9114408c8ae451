// SPDX-License-Identifier: MIT
//
// Wall times are of plain runs; device times come from runs of their own afterwards, so that asking
// for events does not slow what is timed.

#include "harness/measure.h"

#include <stdlib.h>

#include "base/try.h"
#include "harness/clock.h"

enum { MAX_RUNS = 2000, N_DEVICE_RUNS = 5 };

static attncl_status run_once(struct trial *t, const struct measure_options *o, double *seconds_ret)
{
    const double start = clock_now();

    TRY(trial_run(t));
    TRY(o->driver_does_not_wait ? trial_read(t) : attncl_context_finish(t->ctx));
    *seconds_ret = clock_now() - start;
    return ATTNCL_OK;
}

static int compare_samples(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The middle of `n` samples, which are sorted in place.
static double median(double *samples, size_t n)
{
    qsort(samples, n, sizeof samples[0], compare_samples);
    return n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

// Until caches, clocks and the driver's own late compilation have settled: three runs, or a fifth
// of the budget.
static attncl_status warm_up(struct trial *t, const struct measure_options *o)
{
    const double start = clock_now();
    double seconds;

    for (int i = 0; i < 3 && (i == 0 || clock_now() - start < o->budget_s / 5); ++i)
        TRY(run_once(t, o, &seconds));
    return ATTNCL_OK;
}

static attncl_status wall_times(struct trial *t, const struct measure_options *o,
                                struct timing *ret)
{
    static double samples[MAX_RUNS];
    const double start = clock_now();
    size_t n = 0;

    for (;;) {
        TRY(run_once(t, o, &samples[n]));
        ++n;
        const double elapsed = clock_now() - start;
        const bool enough = n >= o->min_runs && elapsed >= o->budget_s;
        if (enough || n == MAX_RUNS || elapsed >= 4 * o->budget_s)
            break;
    }
    ret->runs = n;
    ret->median_s = median(samples, n);
    ret->min_s = samples[0];
    return ATTNCL_OK;
}

// Sums of the graph's profile so far.
struct sums {
    uint64_t total_ns;
    double flop, bytes;
};

static struct sums profile_sums(const attncl_graph *g)
{
    struct sums s = {0};
    const attncl_profile_row *row;

    for (size_t i = 0; (row = attncl_graph_profile_row(g, i)); ++i) {
        s.total_ns += row->total_ns;
        s.flop += row->flop;
        s.bytes += row->bytes;
    }
    return s;
}

static attncl_status device_times(struct trial *t, const struct measure_options *o,
                                  struct timing *ret)
{
    const double start = clock_now();
    uint64_t best = UINT64_MAX;

    const int n = o->driver_does_not_wait ? 1 : N_DEVICE_RUNS; // counts are in any profile
    for (int i = 0; i < n && (i == 0 || clock_now() - start < o->budget_s); ++i) {
        const uint64_t before = profile_sums(t->graph).total_ns;
        TRY(attncl_graph_run_profiled(t->graph));
        const struct sums after = profile_sums(t->graph);
        if (after.total_ns - before < best)
            best = after.total_ns - before;
        ret->flop = after.flop;
        ret->bytes = after.bytes;
    }
    ret->device_s = o->driver_does_not_wait ? 0 : 1e-9 * (double)best;
    return ATTNCL_OK;
}

attncl_status measure(struct trial *t, const struct measure_options *options,
                      struct timing *timing_ret)
{
    const double start = clock_now();
    struct timing timing = {0};

    TRY(warm_up(t, options));
    TRY(wall_times(t, options, &timing));
    if (t->graph)
        TRY(device_times(t, options, &timing));
    timing.spent_s = clock_now() - start;
    *timing_ret = timing;
    return ATTNCL_OK;
}
