// SPDX-License-Identifier: MIT

#include "harness/measure.h"

#include "base/try.h"
#include "harness/clock.h"

enum { MAX_RUNS_OF_ROUND = 2000, N_EVENT_RUNS = 5, N_WARM_UP_RUNS = 3 };

attncl_status measure_once(struct case_data *t, bool driver_does_not_wait, double *seconds_ret)
{
    const double start = clock_now();

    TRY(case_data_run(t));
    TRY(driver_does_not_wait ? case_data_settle(t) : attncl_context_finish(t->ctx));
    *seconds_ret = (clock_now() - start) / (double)t->repeats;
    return ATTNCL_OK;
}

attncl_status measure_warm_up(struct case_data *t, const struct measure_options *o)
{
    const double start = clock_now();
    double seconds;

    for (int i = 0; i < N_WARM_UP_RUNS && (i == 0 || clock_now() - start < o->budget_s / 2); ++i)
        TRY(measure_once(t, o->driver_does_not_wait, &seconds));
    return ATTNCL_OK;
}

attncl_status measure_round(struct case_data *t, const struct measure_options *o,
                            struct samples *wall)
{
    double seconds;

    TRY(measure_once(t, o->driver_does_not_wait, &seconds));
    const double start = clock_now();
    for (size_t n = 1;; ++n) {
        TRY(measure_once(t, o->driver_does_not_wait, &seconds));
        REQUIRE(samples_add(wall, seconds), ATTNCL_ERR_NO_MEMORY, "%zu samples", wall->n);
        const double elapsed = clock_now() - start;
        const bool enough = n >= o->min_runs && elapsed >= o->budget_s;
        if (enough || n == MAX_RUNS_OF_ROUND || elapsed >= 4 * o->budget_s)
            return ATTNCL_OK;
    }
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

attncl_status measure_events(struct case_data *t, const struct measure_options *o,
                             struct timing *timing)
{
    const double start = clock_now();
    struct samples events = {0};
    attncl_status status = ATTNCL_OK;

    timing->flop = t->flop;
    timing->bytes = t->bytes;
    if (!t->graph)
        return ATTNCL_OK;
    const int n = o->driver_does_not_wait ? 1 : N_EVENT_RUNS; // counts are in any profile
    for (int i = 0; i < n && (i == 0 || clock_now() - start < o->budget_s); ++i) {
        const uint64_t before = profile_sums(t->graph).total_ns;
        TRY_DONE(attncl_graph_run_profiled(t->graph));
        const struct sums after = profile_sums(t->graph);
        samples_add(&events, 1e-9 * (double)(after.total_ns - before));
        timing->flop = after.flop;
        timing->bytes = after.bytes;
    }
    if (!o->driver_does_not_wait)
        timing->event = samples_spread(&events);

done:
    samples_free(&events);
    return status;
}
