// SPDX-License-Identifier: MIT

#include "harness/roofline.h"

#include <math.h>
#include <string.h>

// One entry per footprint, in growing order: the fastest copy of it.
static void take_copy(struct roofline *r, double bytes, double rate)
{
    size_t i = 0;

    while (i < r->n_copies && r->copy[i].bytes < bytes)
        ++i;
    if (i == r->n_copies || r->copy[i].bytes != bytes) {
        if (r->n_copies == ROOFLINE_MAX_COPIES)
            return;
        memmove(&r->copy[i + 1], &r->copy[i], (r->n_copies - i) * sizeof r->copy[0]);
        ++r->n_copies;
        r->copy[i].bytes = bytes;
        r->copy[i].rate = 0;
    }
    r->copy[i].rate = fmax(r->copy[i].rate, rate);
    r->copy_rate = r->copy[r->n_copies - 1].rate;
}

static void take_gemm(struct roofline *r, const char *name, double rate)
{
    for (size_t i = 0; i < r->n_providers; ++i)
        if (strcmp(r->gemm[i].name, name) == 0) {
            r->gemm[i].rate = fmax(r->gemm[i].rate, rate);
            return;
        }
    if (r->n_providers == ROOFLINE_MAX_PROVIDERS)
        return;
    r->gemm[r->n_providers].name = name;
    r->gemm[r->n_providers++].rate = rate;
}

void roofline_take(struct roofline *r, const struct result *x)
{
    const struct timing *t = &x->timing;
    const double seconds = t->wall.min;

    if (x->outcome != OUTCOME_OK)
        return;
    switch (x->c->family->quantity) {
    case QUANTITY_NONE:
        break;
    case QUANTITY_COPY:
        take_copy(r, t->bytes, t->bytes / seconds);
        break;
    case QUANTITY_FMA:
        r->fma_rate = fmax(r->fma_rate, t->flop / seconds);
        break;
    case QUANTITY_LAUNCH:
        *(x->c->sizes.N == 1 ? &r->launch_s : &r->launch_queued_s) = seconds;
        break;
    case QUANTITY_TO_DEVICE:
        r->to_device_rate = t->bytes / seconds;
        break;
    case QUANTITY_FROM_DEVICE:
        r->from_device_rate = t->bytes / seconds;
        break;
    case QUANTITY_GEMM:
        take_gemm(r, x->c->sizes.provider, t->flop / seconds);
        break;
    }
}

// The bandwidth of the smallest measured copy that is not smaller than this (a tenth does not
// matter), else of the largest one.
static double copy_rate(const struct roofline *r, double footprint_bytes)
{
    for (size_t i = 0; i < r->n_copies; ++i)
        if (1.1 * r->copy[i].bytes >= footprint_bytes)
            return r->copy[i].rate;
    return r->copy_rate;
}

// All that a run touches: what lies in a cache from run to run is read at the cache's speed.
static double footprint(const struct result *x)
{
    const attncl_memory_report *m = &x->memory;

    if (!x->has_memory)
        return x->timing.bytes;
    return (double)(m->io_bytes + m->weights_bytes + m->arena_bytes + m->state_bytes);
}

void roofline_judge(const struct roofline *r, struct result *x)
{
    const struct timing *t = &x->timing;

    if (x->outcome != OUTCOME_OK || x->c->family->suite == SUITE_DEVICE)
        return;
    if (r->copy_rate > 0 && t->bytes > 0)
        x->copy_percent = 100 * t->bytes / t->wall.min / copy_rate(r, footprint(x));
    if (!(r->copy_rate > 0) || !(r->fma_rate > 0) || !(t->flop > 0 || t->bytes > 0))
        return;
    const double compute_s = t->flop / r->fma_rate, memory_s = t->bytes / r->copy_rate;
    x->bound = compute_s > memory_s ? "compute" : "memory";
    x->roofline_percent = 100 * fmax(compute_s, memory_s) / t->wall.min;
}
