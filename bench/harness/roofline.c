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

void roofline_take(struct roofline *r, const struct run *x)
{
    const double seconds = x->wall.min;

    if (x->outcome != OUTCOME_OK)
        return;
    switch (x->c->family->quantity) {
    case QUANTITY_NONE:
        break;
    case QUANTITY_COPY:
        take_copy(r, x->bytes, x->bytes / seconds);
        break;
    case QUANTITY_FMA:
        r->fma_rate = fmax(r->fma_rate, x->flop / seconds);
        break;
    case QUANTITY_LAUNCH:
        *(x->c->sizes.N == 1 ? &r->launch_s : &r->launch_queued_s) = seconds;
        break;
    case QUANTITY_TO_DEVICE:
        r->to_device_rate = x->bytes / seconds;
        break;
    case QUANTITY_FROM_DEVICE:
        r->from_device_rate = x->bytes / seconds;
        break;
    case QUANTITY_GEMM:
        take_gemm(r, x->c->sizes.provider, x->flop / seconds);
        break;
    }
}

bool roofline_is_known(const struct roofline *r)
{
    return r->copy_rate > 0 || r->fma_rate > 0;
}

// What a copy of this footprint reaches: the best of those measured that are not much smaller, since
// a smaller one may lie in a nearer cache.
static double copy_rate(const struct roofline *r, double footprint_bytes)
{
    double rate = 0;

    for (size_t i = r->n_copies; i-- > 0;) {
        rate = fmax(rate, r->copy[i].rate);
        if (r->copy[i].bytes <= 1.1 * footprint_bytes)
            break;
    }
    return rate;
}

struct shares roofline_shares(const struct roofline *r, const struct work *w)
{
    if (!(r->copy_rate > 0) || !(r->fma_rate > 0) || !(w->flop > 0 || w->bytes > 0))
        return (struct shares){0};
    const double compute_s = w->flop / r->fma_rate;
    const double memory_s = w->bytes / copy_rate(r, w->footprint_bytes);
    return (struct shares){compute_s > memory_s ? "compute" : "memory",
                           fmin(100, 100 * fmax(compute_s, memory_s) / w->seconds)};
}
