// SPDX-License-Identifier: MIT
//
// What the arrays of an op spec hold.

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/spec_point.h"

static double element(unsigned kind, double normal, double flat, int64_t row, int64_t c, int64_t n)
{
    static const double offsets[] = {1, 100, 1e4}, scales[] = {1e-10, 1e15, 1};
    const double sign = row % 2 ? -1 : 1;

    switch (kind) {
    case SPAN90:
        return 45 * flat;
    case FAR:
        return sign * (9956 + 44 * flat);
    case OFFSET:
        return normal + offsets[row % 3];
    case SCALED:
        return normal * scales[row % 3];
    case PEAK:
        return c == 3 % n ? 1e4 : -1e4;
    case LIMITS:
        return c == n - 1 ? 3e38 : -3e38;
    case ALIKE:
        return row % 2 ? 10000 - (double)(c % 2) : 5.5;
    case RISING:
        return normal + sign * (double)c / 8;
    case MINUS_INF:
        return row % 3 == 1 || (row % 3 == 0 ? c % 2 == 1 : c < n - 1) ? -INFINITY : normal;
    case TAILS:
        return 86 * flat;
    case NAN_ROWS:
        return row % 3 == 1 ? NAN : normal;
    case NEAR_ZERO:
        return 1e-3 * flat;
    default:
        return normal;
    }
}

// A stream of its own for each input.
static unsigned seed(int stream)
{
    const char *const text = getenv("TEST_SEED");

    return (unsigned)stream + 1000u * (text ? (unsigned)atoi(text) : 0);
}

static struct host *floats(const struct spec_point *p, int i, int rank, const int64_t *dim,
                           unsigned kind)
{
    const char *const axes = p->in_slot[i].axes;
    const size_t last = strlen(axes);
    const int64_t n = last == 0 ? 1
                      : isupper((unsigned char)axes[last - 1]) && !strchr(axes, '+')
                          ? (int64_t)spec_extent(p, axes[last - 1])
                          : dim[rank - 1];
    struct host *x = p->in_slot[i].ranged
                         ? host_uniform(seed(i + 1), spec_number(p, p->in_slot[i].low),
                                        spec_number(p, p->in_slot[i].high), rank, dim)
                         : host_random(seed(i + 1), rank, dim);
    const struct host *flat = kind == NORMAL ? x : host_uniform(seed(50), -1, 1, rank, dim);

    for (int64_t at = 0; kind != NORMAL && at < x->count; ++at)
        x->data[at] = (float)element(kind, x->data[at], flat->data[at], at / n, at % n, n);
    return p->in_slot[i].dtype == ATTNCL_F32 ? x : host_stored(x, p->in_slot[i].dtype);
}

static struct host *ints(const struct spec_point *p, int i, int rank, const int64_t *dim)
{
    const int low = (int)spec_number(p, p->in_slot[i].low);
    const int high = (int)spec_number(p, p->in_slot[i].high);
    const int ends[] = {low, high - 1, low + 1 < high ? low + 1 : low,
                        (int)(low + ((int64_t)high - 1 - low) / 2)};
    struct host *x = host_ints(seed(i + 1), low, high, rank, dim);

    for (int64_t at = 0; p->kind == INT_ENDS && at < x->count; ++at)
        x->data[at] = ends[at % 4];
    return x;
}

static struct host *mask(const struct spec_point *p, int i, int rank, const int64_t *dim)
{
    const double share = p->kind == MASK_SPARSE ? 0.02 : strtod(p->in_slot[i].low, NULL);
    struct host *x = host_mask(seed(i + 1), share, rank, dim);
    const int axis = rank > 1; // masks are [queries, keys, entries]
    const int64_t n = rank > 0 ? dim[0] : 1, n_keys = rank > 0 ? dim[axis] : 1;
    int64_t inner = 1;

    for (int a = axis + 1; a < rank; ++a)
        inner *= dim[a];
    for (int64_t at = 0; at < x->count; ++at) {
        const int64_t first = at / (x->count / n);
        if (p->kind == MASK_NONE || (p->kind == MASK_SPARSE && n > 1 && first % (n - 1) == 0))
            x->data[at] = 0;
        if (p->kind == MASK_LAST)
            x->data[at] = at / inner % n_keys == n_keys - 1;
    }
    return x;
}

void spec_fill(struct spec_point *p)
{
    unsigned kind = p->kind < MASK_SPARSE ? p->kind : NORMAL; // of the first input of floats
    int64_t dim[ATTNCL_MAX_RANK];

    host_reset();
    for (int i = 0; i < p->n_in; ++i) {
        const struct spec_slot *const s = &p->in_slot[i];
        const int rank = spec_shape(s, &p->sizes, dim);
        const bool takes_kind = s->dtype == ATTNCL_F32 && !s->ranged;
        p->in[i] = NULL;
        if (!s->present)
            continue;
        p->in[i] = s->dtype == ATTNCL_I32  ? ints(p, i, rank, dim)
                   : s->dtype == ATTNCL_U8 ? mask(p, i, rank, dim)
                                           : floats(p, i, rank, dim, takes_kind ? kind : NORMAL);
        kind = takes_kind ? NORMAL : kind;
    }
    if (p->c->prepare)
        p->c->prepare(p->in);
    for (int i = 0; i < p->n_in; ++i)
        if (p->in[i] && p->in[i]->dtype == ATTNCL_F32)
            host_scale(p->in[i], 1); // what was prepared as floats
    for (int i = 0; i < p->n_out; ++i) {
        const struct spec_slot *const s = &p->out_slot[i];
        const int rank = spec_shape(s, &p->sizes, dim);
        p->out[i] = s->present ? host_new(s->dtype, rank, dim) : NULL;
        p->dy[i] =
            s->present && s->dtype == ATTNCL_F32 ? host_random(seed(97 + i), rank, dim) : NULL;
    }
}
