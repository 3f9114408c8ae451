// SPDX-License-Identifier: MIT
//
// A sample is a few runs, then reading a small part of the result.  Some drivers return from
// clFinish before the work is done; a read cannot.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/opencl.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/worst_error.h"
#include "graph/nodes.h"
#include "tune/internal.h"

enum { MIN_ROUNDS = 3, PROBE_FLOATS = 4096 };

static attncl_status wait_for(attncl_graph *g)
{
    float probe[PROBE_FLOATS];
    attncl_shape shape;

    attncl_graph_output_name(g, 1, &shape);
    const size_t n = (size_t)shape.dim[shape.rank - 1];
    REQUIRE(n <= PROBE_FLOATS, ATTNCL_ERR_STATE, "a probe of %zu elements", n);
    return attncl_graph_read(g, "probe", probe, n * sizeof *probe);
}

attncl_status attncl__variant_begin(struct variant *s, int64_t n_result)
{
    const size_t bytes = (size_t)n_result * sizeof *s->result;
    attncl_status status = ATTNCL_OK;
    cl_mem y = NULL;

    s->result = attncl__alloc_array((size_t)n_result, sizeof *s->result);
    REQUIRE(s->result, ATTNCL_ERR_NO_MEMORY, "a result of %lld floats", (long long)n_result);
    // attncl__variants_agree() detects elements that no kernel wrote.
    TRY(attncl__buffer_create(s->graph->ctx, bytes, &y));
    TRY_DONE(attncl__buffer_fill(s->graph->ctx, y, CANARY_WORD, 0, bytes));
    TRY_DONE(attncl_graph_bind(s->graph, "y", y, 0));
    TRY_DONE(attncl_graph_run(s->graph));
    TRY_DONE(attncl__buffer_read(s->graph->ctx, y, 0, s->result, bytes));
    TRY_DONE(attncl_graph_bind(s->graph, "y", NULL, 0));
done:
    attncl__buffer_release(&y);
    return status;
}

void attncl__variant_end(struct variant *s)
{
    attncl_graph_destroy(s->graph);
    attncl__free(s->result);
    memset(s, 0, sizeof *s);
}

bool attncl__variants_agree(const struct variant *a, const struct variant *b, int64_t n,
                            double terms)
{
    // Higham and Mary 2019: the error of a sum of n terms stays below lambda sqrt(n) u times the
    // sum of magnitudes but with a probability that lambda = 10 makes negligible; the largest
    // result stands for the magnitudes, both variants err, and 4 is for what is not a sum (exp,
    // division).
    const double allowed = 2 * 10 * (sqrt(terms) + 4) * 0x1p-24;
    struct worst_error worst = {0};

    for (int64_t i = 0; i < n; ++i)
        attncl__worst_error_add(&worst, i, (double)b->result[i], (double)a->result[i], 1);
    return attncl__error_within(&worst, allowed * worst.largest);
}

attncl_status attncl__variant_time(struct variant *s, int runs, double *seconds_ret)
{
    const double start = attncl__seconds();

    for (int i = 0; i < runs; ++i)
        TRY(attncl_graph_run(s->graph));
    TRY(wait_for(s->graph));
    *seconds_ret = (attncl__seconds() - start) / runs;
    return ATTNCL_OK;
}

attncl_status attncl__ab_time(struct variant *a, struct variant *b, int runs, double seconds)
{
    const double start = attncl__seconds();

    a->n_samples = b->n_samples = 0;
    for (int round = 0; round < AB_MAX_SAMPLES; ++round) {
        // The order alternates, so that the contents of caches favour neither.
        struct variant *const order[2] = {round % 2 ? b : a, round % 2 ? a : b};
        for (int i = 0; i < 2; ++i)
            TRY(attncl__variant_time(order[i], runs, &order[i]->sample[round]));
        a->n_samples = b->n_samples = round + 1;
        if (round + 1 >= MIN_ROUNDS && attncl__seconds() - start > seconds)
            break;
    }
    return ATTNCL_OK;
}

double attncl__variant_min(const struct variant *s)
{
    double fastest = s->sample[0];

    for (int i = 1; i < s->n_samples; ++i)
        fastest = fmin(fastest, s->sample[i]);
    return fastest;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double attncl__variant_median(const struct variant *s)
{
    double sorted[AB_MAX_SAMPLES];

    memcpy(sorted, s->sample, sizeof *sorted * (size_t)s->n_samples);
    qsort(sorted, (size_t)s->n_samples, sizeof *sorted, by_value);
    return sorted[s->n_samples / 2];
}
