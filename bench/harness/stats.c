// SPDX-License-Identifier: MIT

#include "harness/stats.h"

#include <stdlib.h>

#include "base/alloc.h"

bool samples_add(struct samples *s, double value)
{
    if (s->n == s->capacity) {
        const size_t capacity = s->capacity ? 2 * s->capacity : 64;
        double *grown = attncl__grow_array(s->values, capacity, sizeof *grown);

        if (!grown)
            return false;
        s->values = grown;
        s->capacity = capacity;
    }
    s->values[s->n++] = value;
    return true;
}

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Between the two neighbours of place (n - 1) p, linearly: the usual definition.
static double quantile(const double *sorted, size_t n, double p)
{
    const double place = (double)(n - 1) * p;
    const size_t i = (size_t)place;
    const double part = place - (double)i;

    return i + 1 < n ? sorted[i] + part * (sorted[i + 1] - sorted[i]) : sorted[i];
}

struct spread samples_spread(struct samples *s)
{
    if (s->n == 0)
        return (struct spread){0};
    qsort(s->values, s->n, sizeof s->values[0], compare_values);
    return (struct spread){.min = s->values[0],
                           .q1 = quantile(s->values, s->n, 0.25),
                           .median = quantile(s->values, s->n, 0.5),
                           .q3 = quantile(s->values, s->n, 0.75),
                           .p95 = quantile(s->values, s->n, 0.95),
                           .p99 = quantile(s->values, s->n, 0.99),
                           .max = s->values[s->n - 1]};
}

void samples_free(struct samples *s)
{
    attncl__free(s->values);
    *s = (struct samples){0};
}
