// SPDX-License-Identifier: MIT
// What is asked of a plan, what the definitions in double answer, and how far a device may be off: by what evaluations
// differ whose values are moved by a rounding.

#include <math.h>

#include "fuzz/graphs/plan.h"
#include "ref/ref.h"
#include "support/host.h"
#include "support/op_test.h"

enum { N_MOVED = 3, MAX_MEASURED = 8 };
static const double rounding = 2.4e-7; // some roundings to float

static double random_sign(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 11) / 4503599627370496.0 - 1;
}

static bool same_leaf(const struct plan_value *v)
{
    return v->source == RESULT || v->h->dtype != ATTNCL_F32;
}

// Moves a tensor's elements as rounding might; terms: struct plan_op.
static void move(struct host *h, double terms, uint64_t *state)
{
    const double all = fmax(host_largest(h), terms) * rounding * 0.1;
    for (int64_t i = 0; i < h->count; ++i)
        h->data[i] += random_sign(state) * (fabs(h->data[i]) * rounding + all) * (h->data[i] != 0);
}

static void evaluate_moved(const struct plan *p, uint64_t *state)
{
    for (int i = 0; i < p->n_steps; ++i) {
        p->step[i].op->evaluate(p, &p->step[i]);
        if (!p->value[p->step[i].out].is_view)
            move(p->value[p->step[i].out].h, p->step[i].op->terms, state);
    }
}

static void restore(const struct plan *p, struct host *const *copy)
{
    for (int i = 0; i < p->n_values; ++i)
        host_set(p->value[i].h, copy[i]->data);
}

static double distance(const struct host *a, const struct host *b)
{
    double largest = 0;
    for (int64_t i = 0; i < a->count; ++i)
        if (!(fabs(a->data[i] - b->data[i]) <= largest) && !isnan(largest)) // NaN stays
            largest = fabs(a->data[i] - b->data[i]);
    return largest;
}

static void move_leaves(const struct plan *p, uint64_t *state)
{
    for (int i = 0; i < p->n_values; ++i)
        if (!same_leaf(&p->value[i]))
            for (int64_t k = 0; k < p->value[i].h->count; ++k)
                p->value[i].h->data[k] *= 1 + random_sign(state) * rounding;
}

// -- what is asked

static int add_gradient(struct plan *p, int y)
{
    struct host *h = p->value[y].h;
    h = host_random((unsigned)plan_number(p, 0, 1 << 30), h->rank, h->dim);
    p->value[p->n_values] = (struct plan_value){.h = h, .source = INPUT, .is_used = true};
    return p->n_values++;
}

void plan_ask(struct plan *p, struct question *q)
{
    const int n = p->n_values;
    *q = (struct question){.n_y = 0};
    for (int last = 0; last < 2; ++last)
        for (int i = 0; i < n; ++i) {
            const struct plan_value *v = &p->value[i];
            if (v->source != RESULT || v->is_used || v->has_no_gradient != last)
                continue;
            q->y[q->n_y++] = i;
            if (!last)
                q->dy[q->n_dy++] = add_gradient(p, i);
        }
    if (q->n_dy == 0)
        return;
    for (int i = 0; i < n; ++i) {
        const struct plan_value *v = &p->value[i];
        if (v->h->dtype != ATTNCL_F32 || !v->is_used || v->is_view || v->has_no_gradient)
            continue;
        if (v->source != RESULT || plan_chance(p, 15))
            q->x[q->n_x++] = i;
    }
}

static double loss(const struct plan *p, const struct question *q, int kept)
{
    double sum = 0;
    plan_evaluate(p, kept);
    for (int i = 0; i < q->n_dy; ++i)
        sum += host_dot(p->value[q->y[i]].h, p->value[q->dy[i]].h);
    return sum;
}

// Of the loss as a function of one element, which is `here` at the element, from points at distance h
// on both sides.
struct slope {
    double middle;
    double bend; // the right one less the left one: it halves with h, except at a corner
};

static struct slope slope(const struct plan *p, const struct question *q, int x, int64_t i,
                          double here, double h)
{
    double *at = &p->value[x].h->data[i];
    const double before = *at;
    *at = before + h;
    const double high = loss(p, q, x);
    *at = before - h;
    const double low = loss(p, q, x);
    *at = before;
    return (struct slope){(high - low) / (2 * h), (high - 2 * here + low) / h};
}

static double distance_at(const struct plan *p, int x, int64_t i)
{
    return 2e-5 * fmax(1e-1, fabs(p->value[x].h->data[i]));
}

// ReLU at 0: the definition has two slopes, the library one of them.
static bool at_corner(struct slope far, struct slope near)
{
    return fabs(far.bend) > 1e-4 * (1e-3 + fabs(far.middle)) &&
           fabs(near.bend) > 0.75 * fabs(far.bend);
}

// Some elements of the gradient at x; NaN: not measured, or there is a corner.  `uncertainty` grows to
// the largest error that the differences may have.
static struct host *differences(const struct plan *p, const struct question *q, int x,
                                double *uncertainty, struct measured *measured)
{
    struct host *d = host_like(p->value[x].h);
    const int64_t stride = 1 + d->count / MAX_MEASURED;
    const double here = loss(p, q, x);
    for (int64_t i = 0; i < d->count; ++i) {
        d->data[i] = NAN;
        if (i % stride != 0)
            continue;
        const double h = distance_at(p, x, i);
        const struct slope far = slope(p, q, x, i, here, h), near = slope(p, q, x, i, here, h / 2);
        ++measured->elements;
        if (at_corner(far, near)) {
            ++measured->skipped;
            continue;
        }
        *uncertainty = fmax(*uncertainty, 2 * fabs(far.middle - near.middle));
        d->data[i] = near.middle;
    }
    return d;
}

// The largest movement of an element that `base` has measured when values move.
static double movement(const struct plan *p, const struct question *q, int x,
                       const struct host *base)
{
    double largest = 0;
    for (int64_t i = 0; i < base->count; ++i)
        if (!isnan(base->data[i])) {
            const struct slope moved = slope(p, q, x, i, 0, distance_at(p, x, i) / 2);
            largest = fmax(largest, fabs(moved.middle - base->data[i]));
        }
    return largest;
}

static double largest_known(const struct host *h)
{
    double largest = 0;
    for (int64_t i = 0; i < h->count; ++i)
        if (!isnan(h->data[i]))
            largest = fmax(largest, fabs(h->data[i]));
    return largest;
}

// -- what is wanted

// Large values saturate softmaxes and activations: what is left are differences of what was read, and
// no evaluation in double shows how few of their digits a float keeps.
double plan_largest(const struct plan *p)
{
    double largest = 0;
    for (int i = 0; i < p->n_values; ++i)
        if (is_float(p->value[i].h))
            largest = fmax(largest, host_largest(p->value[i].h));
    return largest;
}

bool plan_near_corners(const struct plan *p)
{
    for (int i = 0; i < p->n_steps; ++i)
        if (p->step[i].op->near_corners && p->step[i].op->near_corners(p, &p->step[i]))
            return true;
    return false;
}

static bool is_saturated(const struct plan *p)
{
    return plan_largest(p) > 20;
}

static double largest_read(const struct plan *p, int value)
{
    double largest = 0;
    for (int i = 0; i < p->n_steps; ++i)
        for (int k = 0; k < MAX_OPERANDS && p->step[i].out == value; ++k)
            if (p->step[i].in[k] != ABSENT && is_float(operand(p, &p->step[i], k)))
                largest = fmax(largest, host_largest(operand(p, &p->step[i], k)));
    return largest;
}

static double largest_asked(const struct plan *p, const struct question *q)
{
    double largest = 0;
    for (int i = 0; i < q->n_dy; ++i)
        largest = fmax(largest, host_largest(p->value[q->dy[i]].h));
    return largest;
}

int want_results(const struct plan *p, const struct question *q, struct host *const *copy,
                 struct wanted *w)
{
    uint64_t state = p->seed;
    for (int i = 0; i < q->n_y; ++i) {
        snprintf(w[i].name, sizeof w[i].name, "y%d", q->y[i]);
        for (int64_t k = 0; k < copy[q->y[i]]->count; ++k) // NaN would pass unseen
            ck_assert(isfinite(copy[q->y[i]]->data[k]));
        w[i].h = copy[q->y[i]];
        w[i].tolerance = 2e-6 * host_largest(w[i].h) + 1e-30;
        w[i].tolerance += 3e-7 * largest_read(p, q->y[i]);
        if (!is_saturated(p))
            w[i].tolerance += 3e-8 * plan_largest(p);
    }
    for (int k = 0; k < N_MOVED; ++k) {
        move_leaves(p, &state);
        evaluate_moved(p, &state);
        for (int i = 0; i < q->n_y; ++i)
            w[i].tolerance =
                fmax(w[i].tolerance, 12 * distance(p->value[q->y[i]].h, copy[q->y[i]]));
        restore(p, copy);
    }
    return q->n_y;
}

int want_gradients(const struct plan *p, const struct question *q, struct host *const *copy,
                   struct wanted *w, struct measured *measured)
{
    struct host *base[MAX_VALUES];
    double all = 0, errors[MAX_VALUES] = {0};
    uint64_t state = p->seed + 1;
    for (int i = 0; i < q->n_x; ++i) {
        snprintf(w[i].name, sizeof w[i].name, "d%d", q->x[i]);
        w[i].h = base[i] = differences(p, q, q->x[i], &errors[i], measured);
        restore(p, copy);
        all = fmax(all, largest_known(w[i].h));
    }
    for (int i = 0; i < q->n_x; ++i)
        w[i].tolerance = errors[i] + (is_saturated(p) ? 2e-3 * all + 1e-5 * largest_asked(p, q)
                                                      : 3e-5 * all + 1e-6 * largest_asked(p, q));
    move_leaves(p, &state);
    for (int i = 0; i < q->n_x; ++i) {
        plan_evaluate(p, ABSENT);
        w[i].tolerance = fmax(w[i].tolerance, 20 * movement(p, q, q->x[i], base[i]));
    }
    restore(p, copy);
    return q->n_x;
}

void widen_gradients(const struct plan *p, const struct question *q, struct host *const *copy,
                     struct wanted *w, int n)
{
    struct measured unused = {0};
    double all = 0, error = 0;
    for (int i = 0; i < p->n_values; ++i)
        if (p->value[i].source == RESULT && p->value[i].is_used) {
            all = fmax(all, largest_known(differences(p, q, i, &error, &unused)));
            restore(p, copy);
        }
    // Gradients of saturated scores are differences of products that no result's gradient shows.
    if (is_saturated(p))
        all = fmax(all, 10 * plan_largest(p) * largest_asked(p, q));
    for (int i = 0; i < n && is_saturated(p); ++i)
        all = fmax(all, 10 * plan_largest(p) * largest_known(w[i].h));
    for (int i = 0; i < n; ++i)
        w[i].tolerance = fmax(w[i].tolerance, 1e-6 * all);
}
