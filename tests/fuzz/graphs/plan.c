// SPDX-License-Identifier: MIT

#include "fuzz/graphs/plan.h"

#include <math.h>
#include <string.h>

enum { MOOD_LARGE = 1, MOOD_TINY, MOOD_ZERO, MOOD_EQUAL, MAX_COUNT = 600, MAX_DRAWN = 8 };

static uint64_t next_bits(struct plan *p)
{
    uint64_t z = (p->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t plan_number(struct plan *p, int64_t low, int64_t high)
{
    return low + (int64_t)(next_bits(p) % (uint64_t)(high - low + 1));
}

bool plan_chance(struct plan *p, int percent)
{
    return plan_number(p, 0, 99) < percent;
}

static int64_t count_of(int rank, const int64_t *dim)
{
    int64_t n = 1;
    for (int i = 0; i < rank; ++i)
        n *= dim[i];
    return n;
}

static int add_value(struct plan *p, struct host *h, enum source source)
{
    p->value[p->n_values] = (struct plan_value){.h = h, .source = source};
    return p->n_values++;
}

static void set_mood(struct plan *p, struct host *h)
{
    const double equal = h->count > 0 ? h->data[0] : 0;
    for (int64_t i = 0; i < h->count; ++i) {
        double *x = &h->data[i];
        *x = p->mood == MOOD_LARGE   ? *x * 30
             : p->mood == MOOD_TINY  ? *x * 1e-20
             : p->mood == MOOD_ZERO  ? 0
             : p->mood == MOOD_EQUAL ? equal
                                     : *x;
        *x = (float)*x;
    }
}

// Values that a step may take.
static bool may_take(const struct plan *p, int i)
{
    return p->takes_all || !p->value[i].has_no_gradient;
}

static int add_leaf(struct plan *p, int rank, const int64_t *dim)
{
    struct host *h = host_random((unsigned)next_bits(p), rank, dim);
    if (p->mood && plan_chance(p, 50))
        set_mood(p, h);
    return add_value(p, h, (enum source)plan_number(p, INPUT, CONSTANT));
}

// A value of this type and shape that there is, or ABSENT.
static int find_operand(struct plan *p, attncl_dtype dtype, int rank, const int64_t *dim)
{
    int found[MAX_VALUES], n = 0;
    for (int i = 0; i < p->n_values; ++i) {
        const struct host *h = p->value[i].h;
        if (may_take(p, i) && h->dtype == dtype && h->rank == rank &&
            memcmp(h->dim, dim, (size_t)rank * sizeof *dim) == 0)
            found[n++] = i;
    }
    return n > 0 && plan_chance(p, 50) ? found[plan_number(p, 0, n - 1)] : ABSENT;
}

int plan_operand(struct plan *p, int rank, const int64_t *dim)
{
    int i = find_operand(p, ATTNCL_F32, rank, dim);
    if (i == ABSENT)
        i = add_leaf(p, rank, dim);
    p->value[i].is_used = true;
    return i;
}

int plan_uniform(struct plan *p, double low, double high, int rank, const int64_t *dim)
{
    const int i = add_value(p, host_uniform((unsigned)next_bits(p), low, high, rank, dim), INPUT);

    p->value[i].is_used = true;
    return i;
}

int plan_stored(struct plan *p, attncl_dtype dtype, int rank, const int64_t *dim)
{
    int i = find_operand(p, dtype, rank, dim);

    if (i == ABSENT) {
        i = add_leaf(p, rank, dim);
        host_stored(p->value[i].h, dtype);
        p->value[i].source = WEIGHT;
    }
    p->value[i].is_used = true;
    return i;
}

int plan_lengths(struct plan *p, int64_t low, int64_t high, int rank, const int64_t *dim)
{
    const int i =
        add_value(p, host_ints((unsigned)next_bits(p), (int)low, (int)high + 1, rank, dim), INPUT);
    p->value[i].low = low;
    p->value[i].high = high + 1;
    return i;
}

int plan_mask(struct plan *p, int rank, const int64_t *dim)
{
    return add_value(p, host_mask((unsigned)next_bits(p), 0.6, rank, dim), INPUT);
}

bool plan_result(struct plan *p, struct plan_step *s, int rank, const int64_t *dim)
{
    s->out = add_value(p, host_new(ATTNCL_F32, rank, dim), RESULT);
    return true;
}

bool plan_result_like(struct plan *p, struct plan_step *s, int x)
{
    return plan_result(p, s, p->value[x].h->rank, p->value[x].h->dim);
}

bool plan_view(struct plan *p, struct plan_step *s, int rank, const int64_t *dim)
{
    return plan_result(p, s, rank, dim) && (p->value[s->out].is_view = true);
}

static int64_t extent(struct plan *p)
{
    static const int64_t extents[] = {1, 2, 3, 4, 5, 8, 4, 2, 16, 17, 33};
    return extents[plan_number(p, 0, plan_chance(p, 90) ? 7 : 10)];
}

static int first_leaf(struct plan *p)
{
    const int rank = plan_chance(p, 60) ? 3 : (int)plan_number(p, 1, 4);
    int64_t dim[4];
    do
        for (int i = 0; i < rank; ++i)
            dim[i] = extent(p);
    while (count_of(rank, dim) > MAX_COUNT / 2);
    return add_leaf(p, rank, dim);
}

// Prefers what was made last.
static int pick_value(struct plan *p)
{
    for (int tries = 0; tries < 40; ++tries) {
        const int64_t from = plan_chance(p, 60) ? p->n_values - 3 : 0;
        const int i = (int)plan_number(p, from < 0 ? 0 : from, p->n_values - 1);
        if (may_take(p, i) && p->value[i].h->dtype == ATTNCL_F32 && p->value[i].h->rank > 0)
            return i;
    }
    return 0;
}

const struct plan_op *plan_op_at(int i)
{
    return i < plan_n_views ? &plan_views[i] : plan_spec_at(i - plan_n_views);
}

static const struct plan_op *pick_op(struct plan *p)
{
    int n = 0;
    while (plan_op_at(n))
        ++n;
    return plan_op_at((int)plan_number(p, 0, n - 1));
}

static void add_step(struct plan *p, const struct plan_op *op, int x)
{
    struct plan_step *s = &p->step[p->n_steps];
    *s = (struct plan_step){.op = op, .out = ABSENT};
    for (int i = 0; i < MAX_OPERANDS; ++i)
        s->in[i] = ABSENT;
    s->in[0] = x;
    if (!s->op->choose(p, s, x))
        return;
    p->value[x].is_used = true;
    p->value[s->out].has_no_gradient = op->has_no_gradient;
    ++p->n_steps;
}

// Leaves that do not fit stay unused.
static void begin_with(struct plan *p, const struct plan_op *op)
{
    const int n = p->n_steps, last = p->n_values + 30;
    p->takes_all = op->has_no_gradient;
    while (p->n_steps == n && p->n_values < last && p->n_values < MAX_VALUES - 3 * MAX_OPERANDS)
        add_step(p, op, first_leaf(p));
}

void plan_draw(struct plan *p, uint64_t seed, int first, int end)
{
    *p = (struct plan){.seed = seed, .state = seed * 0x2545f4914f6cdd1du + 99};
    p->mood = plan_chance(p, 20) ? (int)plan_number(p, MOOD_LARGE, MOOD_EQUAL) : 0;
    p->n_queues = plan_chance(p, 20) ? (int)plan_number(p, 2, 4) : 1;
    p->n_runs = plan_chance(p, 10) ? 2 : 1;
    const int64_t n_steps = plan_number(p, 1, MAX_DRAWN);
    for (int i = first; i < end; ++i)
        begin_with(p, plan_op_at(i));
    for (int i = 0; i < 2 && p->n_steps < n_steps; ++i)
        first_leaf(p);
    while (p->n_steps < n_steps && p->n_values < MAX_VALUES - 3 * MAX_OPERANDS) {
        const struct plan_op *op = pick_op(p);
        p->takes_all = op->has_no_gradient;
        add_step(p, op, pick_value(p));
        if (p->n_steps > 0 && p->value[p->n_values - 1].h->count > MAX_COUNT) // concatenations grow
            break;
    }
}

void plan_evaluate(const struct plan *p, int kept)
{
    for (int i = 0; i < p->n_steps; ++i)
        if (p->step[i].out != kept)
            p->step[i].op->evaluate(p, &p->step[i]);
}
