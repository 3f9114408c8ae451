// SPDX-License-Identifier: MIT
//
// What must come out of an op spec's problem, and comparing it.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/compare.h"
#include "support/spec_point.h"

enum { FEW = 40000 };
static const double unit = 0x1p-24; // one rounding

static double weighted_sum(struct host *const *out, struct host *const *dy, int n_out)
{
    double sum = 0;

    for (int k = 0; k < n_out; ++k)
        if (out[k] && dy[k])
            sum += host_dot(out[k], dy[k]);
    return sum;
}

struct host *finite_differences(ref_forward forward, const void *params, struct host *const *in,
                                struct host *const *out, struct host *const *dy, int n_out, int k)
{
    struct host *d = host_like(in[k]);

    for (int64_t i = 0; i < d->count; ++i) {
        const double x = in[k]->data[i], h = 1e-4 * fmax(1, fabs(x));
        in[k]->data[i] = x + h;
        forward(params, in, out);
        const double high = weighted_sum(out, dy, n_out);
        in[k]->data[i] = x - h;
        forward(params, in, out);
        const double low = weighted_sum(out, dy, n_out);
        in[k]->data[i] = x;
        d->data[i] = (high - low) / (2 * h);
    }
    return d;
}

static double ratio_of(double got, double want, double allowed, unsigned leeway)
{
    if (is_unwritten(got))
        return INFINITY;
    if (((leeway & SPREADS) && isnan(got)) || ((leeway & UNSEEN) && isnan(want)) ||
        ((leeway & MEETS) && !isfinite(want) && !isfinite(got)))
        return 0;
    return error_ratio(got, want, allowed);
}

static double largest(const struct host *h)
{
    double most = 0;

    for (int64_t i = 0; i < h->count; ++i)
        most = isfinite(h->data[i]) ? fmax(most, fabs(h->data[i])) : most;
    return most;
}

static struct host *spread(const struct host *like, double relative, double absolute)
{
    struct host *h = host_like(like);

    for (int64_t i = 0; i < h->count; ++i)
        h->data[i] = relative * (isfinite(like->data[i]) ? fabs(like->data[i]) : 0) + absolute;
    return h;
}

static struct host *allowance(const struct spec_point *p, int k, const struct host *want)
{
    const struct op_spec *const s = p->spec;
    const double n = s->chain ? spec_extent(p, s->chain) : 1;
    const double more = (s->spans ? spec_span(p) : 0) + (s->chain ? log2(fmax(n, 1)) + n / 256 : 0);

    if (want->dtype == ATTNCL_I32 || want->dtype == ATTNCL_U8)
        return host_like(want);
    if (*p->note)
        return spread(want, 1e-4, 1e-4);
    if (s->allow) {
        struct host *allowed = host_like(want);
        s->allow(p, k, want, allowed);
        return allowed;
    }
    return spread(want, ((p->c->rel > 0 ? p->c->rel : s->rel) + more) * unit,
                  s->abs * unit * largest(want) + s->tiny);
}

static struct host *grad_allowance(const struct spec_point *p, int i, const struct host *want,
                                   const struct host *size)
{
    const double tolerance = p->spec->grad_tolerance > 0 ? p->spec->grad_tolerance : 1e-5;

    if (*p->note)
        return spread(want, 1e-4, 1e-4);
    if (p->spec->allow_grad) {
        struct host *allowed = host_like(want);
        p->spec->allow_grad(p, i, want, allowed);
        return allowed;
    }
    return size ? spread(size, tolerance, 1e-37)
                : spread(want, 0, tolerance * fmax(largest(want), 0.1));
}

// Of the reference, or of differences of the definition; with both the one proves the other.
static void expect_gradients(const struct spec_point *p, struct host **want)
{
    int64_t n_elements = 0;
    struct host *out[SPEC_MAX_OUT] = {NULL};

    for (int i = 0; i < p->n_in; ++i)
        want[i] = p->in[i] ? host_like(p->in[i]) : NULL;
    for (int i = 0; i < p->n_out; ++i)
        out[i] = p->dy[i] ? host_like(p->dy[i]) : NULL;
    if (p->spec->ref_bwd)
        p->spec->ref_bwd(p->c->params, p->in, p->dy, want);
    for (int i = 0; i < p->n_in; ++i)
        n_elements += p->in[i] ? p->in[i]->count : 0;
    for (int i = 0; i < p->n_in; ++i) {
        if (!(p->wanted >> i & 1) || *p->note ||
            (p->spec->ref_bwd &&
             (p->in[i]->count * n_elements > FEW || (p->kind != NORMAL && p->kind < MASK_SPARSE))))
            continue;
        struct host *d =
            finite_differences(p->spec->ref, p->c->params, p->in, out, p->dy, p->n_out, i);
        for (int64_t at = 0; p->spec->ref_bwd && at < d->count; ++at)
            if (!(fabs(d->data[at] - want[i]->data[at]) <= 1e-5 * (largest(d) + 1e-3))) {
                spec_wrong(p, "the reference's gradient of %s[%lld] is %.9g, differences give %.9g",
                           p->in_slot[i].name, (long long)at, want[i]->data[at], d->data[at]);
                break;
            }
        want[i] = p->spec->ref_bwd ? want[i] : d;
    }
}

void spec_expect(const struct spec_point *p, struct spec_expected *e)
{
    struct host *in[SPEC_MAX_IN] = {NULL};

    *e = (struct spec_expected){0};
    for (int i = 0; i < p->n_in; ++i) {
        in[i] = p->in[i];
        if (in[i] && p->state >> i & 1)
            e->state[i] = in[i] = host_copy(in[i]);
        e->size[i] = in[i] && p->spec->grad_sizes ? host_like(in[i]) : NULL;
        e->dx_reach[i] = in[i] && *p->note && p->spec->reach_bwd ? host_like(in[i]) : NULL;
    }
    for (int i = 0; i < p->n_out; ++i) {
        e->out[i] = p->out[i] ? host_like(p->out[i]) : NULL;
        e->reach[i] = p->out[i] && *p->note && p->spec->reach ? host_like(p->out[i]) : NULL;
    }
    p->spec->ref(p->c->params, in, e->out);
    if (*p->note && p->spec->reach)
        p->spec->reach(p->c->params, in, e->reach);
    if (*p->note && p->wanted && p->spec->reach_bwd)
        p->spec->reach_bwd(p->c->params, in, p->dy, e->dx_reach);
    if (p->wanted && p->spec->grad_sizes)
        p->spec->grad_sizes(p->c->params, in, p->dy, e->size);
    if (p->wanted)
        expect_gradients(p, e->dx);
}

void spec_compare(const struct spec_point *p, const struct spec_expected *e, enum spec_result which,
                  int i, const struct host *got)
{
    const unsigned given = which == SPEC_DX ? p->spec->leeway | (p->c->leeway & UNSEEN)
                                            : p->c->leeway & ~(unsigned)UNSEEN;
    const unsigned leeway = *p->note ? given : 0;
    const struct host *const want = which == SPEC_OUT     ? e->out[i]
                                    : which == SPEC_STATE ? e->state[i]
                                                          : e->dx[i];
    const struct host *const allowed =
        which == SPEC_DX ? grad_allowance(p, i, want, e->size[i])
                         : allowance(p, which == SPEC_OUT ? i : p->n_out + i, want);
    const struct host *const reach = which == SPEC_OUT  ? e->reach[i]
                                     : which == SPEC_DX ? e->dx_reach[i]
                                                        : NULL;
    const double times = spec_tally.times > 0 ? spec_tally.times : 1;
    struct worst w = {0};
    int64_t n_bad = 0;

    for (int64_t at = 0; at < got->count; ++at) {
        const bool reached = reach && !isfinite(reach->data[at]);
        const double ratio = ratio_of(got->data[at], want->data[at], times * allowed->data[at],
                                      leeway | (reached ? SPREADS : 0));
        n_bad += ratio > 1;
        if (at == 0 || ratio > w.ratio)
            w = (struct worst){ratio, 0, at, got->data[at], want->data[at], allowed->data[at]};
    }
    spec_tally.n_compared += 1;
    spec_tally.worst = fmax(spec_tally.worst, w.ratio); // never NaN
    if (n_bad)
        spec_wrong(p, "%s%s[%lld] of %lld is %.9g%s, expected %.9g within %.3g; %lld are wrong",
                   which == SPEC_DX ? "gradient of " : "",
                   which == SPEC_OUT ? p->out_slot[i].name : p->in_slot[i].name, (long long)w.at,
                   (long long)got->count, w.got, is_unwritten(w.got) ? " (never written)" : "",
                   w.want, w.allowed, (long long)n_bad);
}
