// SPDX-License-Identifier: MIT
//
// Timing.  A sample is a few runs and the reading of a small part of their result: some drivers
// return from clFinish before the work is done, none can from that.

#define _GNU_SOURCE // clock_gettime beside C11
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/try.h"
#include "tune/duel.h"

enum { LEAST_TURNS = 3, PROBE_FLOATS = 4096 };

double attncl__seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static attncl_status wait_for(attncl_graph *g)
{
    float probe[PROBE_FLOATS];
    attncl_shape shape;

    attncl_graph_output_name(g, 1, &shape);
    const size_t n = (size_t)shape.dim[shape.rank - 1];
    REQUIRE(n <= PROBE_FLOATS, ATTNCL_ERR_STATE, "a probe of %zu elements", n);
    return attncl_graph_read(g, "probe", probe, n * sizeof *probe);
}

attncl_status attncl__side_begin(struct side *s, int64_t n_result)
{
    s->result = attncl__alloc_array((size_t)n_result, sizeof *s->result);
    REQUIRE(s->result, ATTNCL_ERR_NO_MEMORY, "a result of %lld floats", (long long)n_result);
    TRY(attncl_graph_run(s->graph));
    return attncl_graph_read(s->graph, "y", s->result, (size_t)n_result * sizeof *s->result);
}

void attncl__side_end(struct side *s)
{
    attncl_graph_destroy(s->graph);
    attncl__free(s->result);
    memset(s, 0, sizeof *s);
}

bool attncl__sides_agree(const struct side *a, const struct side *b, int64_t n, double terms)
{
    // Higham and Mary 2019: the error of a sum of n terms stays below lambda sqrt(n) u times the
    // sum of magnitudes but with a probability that lambda = 10 makes nothing; the largest result
    // stands for the magnitudes, both sides err, and 4 is for what is not a sum (exp, division).
    const double allowed = 2 * 10 * (sqrt(terms) + 4) * 0x1p-24;
    double largest = 0;

    for (int64_t i = 0; i < n; ++i)
        largest = fmax(largest, fabs((double)a->result[i]));
    for (int64_t i = 0; i < n; ++i) // written so that NaN disagrees
        if (!(fabs((double)a->result[i] - (double)b->result[i]) <= allowed * largest))
            return false;
    return true;
}

attncl_status attncl__side_time(struct side *s, int runs, double *seconds_ret)
{
    const double start = attncl__seconds();

    for (int i = 0; i < runs; ++i)
        TRY(attncl_graph_run(s->graph));
    TRY(wait_for(s->graph));
    *seconds_ret = (attncl__seconds() - start) / runs;
    return ATTNCL_OK;
}

attncl_status attncl__duel(struct side *a, struct side *b, int runs, double seconds)
{
    const double start = attncl__seconds();

    a->n_samples = b->n_samples = 0;
    for (int turn = 0; turn < DUEL_MOST_SAMPLES; ++turn) {
        // Who is first changes: what one leaves in the caches must not favour the other.
        struct side *const order[2] = {turn % 2 ? b : a, turn % 2 ? a : b};
        for (int i = 0; i < 2; ++i)
            TRY(attncl__side_time(order[i], runs, &order[i]->sample[turn]));
        a->n_samples = b->n_samples = turn + 1;
        if (turn + 1 >= LEAST_TURNS && attncl__seconds() - start > seconds)
            break;
    }
    return ATTNCL_OK;
}

double attncl__side_least(const struct side *s)
{
    double least = s->sample[0];

    for (int i = 1; i < s->n_samples; ++i)
        least = fmin(least, s->sample[i]);
    return least;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double attncl__side_median(const struct side *s)
{
    double sorted[DUEL_MOST_SAMPLES];

    memcpy(sorted, s->sample, sizeof *sorted * (size_t)s->n_samples);
    qsort(sorted, (size_t)s->n_samples, sizeof *sorted, by_value);
    return sorted[s->n_samples / 2];
}
