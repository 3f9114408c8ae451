// SPDX-License-Identifier: MIT
// Ops of plans that are described by a spec (support/op_spec.h): a case of it, of which a value of the plan is one input.

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "attncl/attention.h"
#include "fuzz/graphs/plan.h"
#include "support/spec_point.h"
#include "support/test.h"

enum { CASE, OUTPUT, MAX_SPEC_OPS = 48, MAX_OPERAND = 400, MAX_TRIES = 30 };

static const struct op_case *case_of(const struct plan_step *s)
{
    return &s->op->spec->cases[s->number[CASE]];
}

// One that changes its inputs needs them as they are drawn; gradients of all or of none.
static bool choose_case(struct plan *p, struct plan_step *s)
{
    const struct op_case *const cases = s->op->spec->cases;
    int n = 0;

    while (cases[n].name)
        ++n;
    s->number[CASE] = plan_number(p, 0, n > 0 ? n - 1 : 0);
    return !case_of(s)->prepare && !case_of(s)->grad;
}

// The letter or digit of an axis, and how often it is added to itself: "C+C"; 0 of another sum.
static char next_axis(const char **axes, int *times_ret)
{
    const char axis = *(*axes)++;

    *times_ret = 1;
    for (; **axes == '+'; *axes += 2)
        *times_ret = (*axes)[1] == axis && *times_ret > 0 ? *times_ret + 1 : 0;
    return axis;
}

static bool bind_letter(struct spec_sizes *sizes, char letter, int rank, const int64_t *dim,
                        int times)
{
    int *const bound = &sizes->rank[letter - 'A'];
    int64_t *const to = sizes->dim[letter - 'A'];
    int64_t each[ATTNCL_MAX_RANK];

    for (int i = 0; i < rank; ++i) {
        if (times == 0 || dim[i] % times != 0)
            return false;
        each[i] = dim[i] / times;
    }
    if (*bound >= 0)
        return *bound == rank && memcmp(to, each, (size_t)rank * sizeof *to) == 0;
    *bound = rank;
    memcpy(to, each, (size_t)rank * sizeof *to);
    return true;
}

// Gives the letters of a slot the extents of a value; the first axis may be several, or none.
static bool bind_slot(struct spec_sizes *sizes, const struct spec_slot *slot, const struct host *h)
{
    int n_axes = 0, at = 0, times;

    for (const char *axes = slot->axes; *axes; ++n_axes)
        next_axis(&axes, &times);
    const int extra = h->rank - n_axes;
    if (slot->any_rank ? extra < -1 : extra != 0)
        return false;
    for (const char *axes = slot->axes; *axes;) {
        const int rank = axes == slot->axes ? extra + 1 : 1;
        const char axis = next_axis(&axes, &times);
        if (isdigit((unsigned char)axis) ? h->dim[at] != axis - '0'
                                         : !bind_letter(sizes, axis, rank, h->dim + at, times))
            return false;
        at += rank;
    }
    return true;
}

// Extents of the other letters: often 1, or one that there is.
static void draw_letters(struct plan *p, struct spec_point *q)
{
    int64_t known[SPEC_LETTERS];
    int n_known = 0;

    for (int i = 0; i < SPEC_LETTERS; ++i)
        if (q->sizes.rank[i] == 1)
            known[n_known++] = q->sizes.dim[i][0];
    for (int i = 0; i < SPEC_LETTERS; ++i)
        if (q->sizes.rank[i] < 0) {
            q->sizes.rank[i] = 1;
            q->sizes.dim[i][0] = n_known > 0 && plan_chance(p, 45)
                                     ? known[plan_number(p, 0, n_known - 1)] +
                                           (plan_chance(p, 20) ? plan_number(p, 1, 2) : 0)
                                     : plan_number(p, 1, 6);
        }
}

// Whether the library takes these shapes and gives those of the spec; `view_ret`: the result is an input as it is.
static bool is_taken(const struct plan_step *s, const struct spec_point *q, bool *view_ret)
{
    attncl_graph *g = test_graph();
    attncl_value in[SPEC_MAX_IN] = {ATTNCL_VALUE_INIT}, out[SPEC_MAX_OUT] = {ATTNCL_VALUE_INIT};
    const struct spec_slot *const want = &q->out_slot[s->number[OUTPUT]];
    int64_t dim[ATTNCL_MAX_RANK];
    bool fits = true;

    for (int i = 0; i < q->n_in && fits; ++i) {
        const struct spec_slot *const slot = &q->in_slot[i];
        if (!slot->present)
            continue;
        const int rank = spec_shape(slot, &q->sizes, dim);
        const struct host *const zeros = host_new(slot->dtype, rank, dim);
        fits = zeros->count <= MAX_OPERAND;
        if (fits)
            in[i] = slot->dtype == ATTNCL_F16 || slot->dtype == ATTNCL_BF16
                        ? attncl_graph_constant(g, slot->dtype, rank, dim, host_pack(zeros))
                        : attncl_graph_input(g, slot->name, slot->dtype, rank, dim);
    }
    if (fits)
        s->op->spec->build(g, q->c->params, in, out);
    const attncl_shape shape = attncl_graph_shape(g, out[s->number[OUTPUT]]);
    const int rank = spec_shape(want, &q->sizes, dim);
    fits = fits && shape.rank == rank && shape.dtype == want->dtype &&
           memcmp(shape.dim, dim, (size_t)rank * sizeof *dim) == 0;
    *view_ret = false;
    for (int i = 0; i < q->n_in; ++i)
        *view_ret |= in[i].id && in[i].id == out[s->number[OUTPUT]].id;
    attncl_graph_destroy(g);
    return fits;
}

static int choose_operand(struct plan *p, const struct spec_point *q, const struct spec_slot *slot)
{
    int64_t dim[ATTNCL_MAX_RANK];
    const int rank = spec_shape(slot, &q->sizes, dim);
    const double low = spec_number(q, slot->low), high = spec_number(q, slot->high);

    if (slot->dtype == ATTNCL_I32)
        return plan_lengths(p, (int64_t)low, (int64_t)high - 1, rank, dim);
    if (slot->dtype == ATTNCL_U8)
        return plan_mask(p, rank, dim);
    if (slot->dtype != ATTNCL_F32)
        return plan_stored(p, slot->dtype, rank, dim);
    if (slot->ranged)
        return plan_uniform(p, low, high, rank, dim);
    return slot->any_type && plan_chance(p, 15)
               ? plan_stored(p, plan_chance(p, 50) ? ATTNCL_F16 : ATTNCL_BF16, rank, dim)
               : plan_operand(p, rank, dim);
}

static bool choose_output(struct plan *p, struct plan_step *s, const struct spec_point *q)
{
    s->number[OUTPUT] = plan_chance(p, 70) ? 0 : plan_number(p, 0, q->n_out - 1);
    return q->out_slot[s->number[OUTPUT]].present &&
           q->out_slot[s->number[OUTPUT]].dtype == ATTNCL_F32;
}

// An F32 input that the value can be, from a random one on; -1: none.
static int choose_place(struct plan *p, const struct spec_point *q, const struct host *h)
{
    const int first = (int)plan_number(p, 0, q->n_in - 1);

    for (int i = 0; i < q->n_in; ++i) {
        const int place = (first + i) % q->n_in;
        const struct spec_slot *const slot = &q->in_slot[place];
        struct spec_sizes none;
        memset(none.rank, -1, sizeof none.rank);
        if (slot->present && slot->dtype == ATTNCL_F32 && !slot->ranged &&
            bind_slot(&none, slot, h))
            return place;
    }
    return -1;
}

static bool spec_choose(struct plan *p, struct plan_step *s, int x)
{
    struct spec_point *const q = &s->point;
    int64_t dim[ATTNCL_MAX_RANK];
    bool fits = false, is_view = false;

    if (!choose_case(p, s))
        return false;
    *q = spec_point_of(s->op->spec, case_of(s));
    const int place = choose_place(p, q, p->value[x].h);
    if (place < 0 || !choose_output(p, s, q))
        return false;
    for (int tries = 0; tries < MAX_TRIES && !fits; ++tries) {
        memset(q->sizes.rank, -1, sizeof q->sizes.rank);
        bind_slot(&q->sizes, &q->in_slot[place], p->value[x].h);
        draw_letters(p, q);
        fits = is_taken(s, q, &is_view);
    }
    if (!fits)
        return false;
    for (int i = 0; i < q->n_in; ++i)
        s->in[i] = !q->in_slot[i].present ? ABSENT
                   : i == place           ? x
                                          : choose_operand(p, q, &q->in_slot[i]);
    plan_result(p, s, spec_shape(&q->out_slot[s->number[OUTPUT]], &q->sizes, dim), dim);
    p->value[s->out].is_view = is_view;
    return true;
}

static void spec_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct spec_point *const q = &s->point;
    struct host *in[SPEC_MAX_IN], *out[SPEC_MAX_OUT];
    int64_t dim[ATTNCL_MAX_RANK];

    for (int i = 0; i < q->n_in; ++i)
        in[i] = operand(p, s, i);
    for (int i = 0; i < q->n_out; ++i) {
        const struct spec_slot *const slot = &q->out_slot[i];
        const int rank = slot->present ? spec_shape(slot, &q->sizes, dim) : 0;
        out[i] = i == s->number[OUTPUT] ? result(p, s)
                 : slot->present        ? host_new(slot->dtype, rank, dim)
                                        : NULL;
    }
    q->spec->ref(q->c->params, in, out);
}

static attncl_value spec_build_step(struct builder *b, const struct plan_step *s)
{
    attncl_value in[SPEC_MAX_IN] = {ATTNCL_VALUE_INIT}, out[SPEC_MAX_OUT] = {ATTNCL_VALUE_INIT};

    for (int i = 0; i < s->point.n_in; ++i)
        in[i] = taken(b, s, i);
    s->point.spec->build(b->g, s->point.c->params, in, out);
    return out[s->number[OUTPUT]];
}

// Tiny distances of either sign: their slopes cancel.
static bool pooling_near_corners(const struct plan *p, const struct plan_step *s)
{
    const struct attention_pooling_fwd_params *const params = s->point.c->params;
    const struct host *const keys = operand(p, s, 0), *const queries = operand(p, s, 2);

    for (int64_t i = 0; i < keys->count * queries->count; ++i) {
        const double u = fabs(keys->data[i / queries->count] - queries->data[i % queries->count]);
        if (params->kind == ATTNCL_POOL_EPANECHIKOV && fmin(u, fabs(u - 1)) < 1e-3)
            return true;
    }
    return false;
}

const struct plan_op *plan_spec_at(int i)
{
    static struct plan_op ops[MAX_SPEC_OPS];
    static int n = -1;

    if (n < 0) {
        n = 0;
        for (int k = 0; spec_at(k); ++k) {
            const struct op_spec *const spec = spec_at(k);
            if (!spec->build || strncmp(spec->out, "y i32", 5) == 0)
                continue;
            ck_assert_int_lt(n, MAX_SPEC_OPS);
            ops[n++] = (struct plan_op){
                .name = spec->op,
                .spec = spec,
                .choose = spec_choose,
                .evaluate = spec_evaluate,
                .build = spec_build_step,
                .has_no_gradient = !spec->grad,
                .terms = strcmp(spec->op, "gru") == 0, // gates' terms are larger than states
                .near_corners =
                    strcmp(spec->op, "attention_pooling_fwd") == 0 ? pooling_near_corners : NULL};
        }
    }
    return i < n ? &ops[i] : NULL;
}
