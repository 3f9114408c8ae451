// SPDX-License-Identifier: MIT
// Ops of plans: elements, rows, views.

#include <math.h>
#include <string.h>

#include "attncl/ops.h"
#include "fuzz/graphs/plan.h"
#include "ref/ref.h"

static void like(struct plan *p, struct plan_step *s, int x)
{
    plan_result(p, s, p->value[x].h->rank, p->value[x].h->dim);
}

// -- activate
static bool activate_choose(struct plan *p, struct plan_step *s, int x)
{
    s->number[0] = plan_number(p, ATTNCL_IDENTITY, ATTNCL_GELU_TANH);
    like(p, s, x);
    return true;
}

static void activate_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_activation_fwd(operand(p, s, 0), (int)s->number[0], result(p, s));
}

static attncl_value activate_build(struct builder *b, const struct plan_step *s)
{
    const int kind = (int)s->number[0];
    return CALL(b, s, attncl_activate(b->g, taken(b, s, 0), (attncl_activation)kind),
                "attncl_activate(g, %s, %d)", program_name(s, 0), kind);
}

// -- bias_activate
static bool bias_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    s->in[1] = plan_operand(p, 1, &h->dim[h->rank - 1]);
    return activate_choose(p, s, x);
}

static void bias_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = operand(p, s, 0), *bias = operand(p, s, 1);
    struct host *y = result(p, s);
    for (int64_t i = 0; i < x->count; ++i)
        y->data[i] = x->data[i] + bias->data[i % bias->count];
    ref_activation_fwd(y, (int)s->number[0], y);
}

static attncl_value bias_build(struct builder *b, const struct plan_step *s)
{
    const int kind = (int)s->number[0];
    return CALL(
        b, s, attncl_bias_activate(b->g, taken(b, s, 0), taken(b, s, 1), (attncl_activation)kind),
        "attncl_bias_activate(g, %s, %s, %d)", program_name(s, 0), program_name(s, 1), kind);
}

// -- add, mul
static bool pair_choose(struct plan *p, struct plan_step *s, int x)
{
    s->in[1] = plan_operand(p, p->value[x].h->rank, p->value[x].h->dim);
    like(p, s, x);
    return true;
}

static void add_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_add_fwd(operand(p, s, 0), operand(p, s, 1), result(p, s));
}

static attncl_value add_build(struct builder *b, const struct plan_step *s)
{
    return CALL(b, s, attncl_add(b->g, taken(b, s, 0), taken(b, s, 1)), "attncl_add(g, %s, %s)",
                program_name(s, 0), program_name(s, 1));
}

static void mul_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_mul_fwd(operand(p, s, 0), operand(p, s, 1), result(p, s));
}

static attncl_value mul_build(struct builder *b, const struct plan_step *s)
{
    return CALL(b, s, attncl_mul(b->g, taken(b, s, 0), taken(b, s, 1)), "attncl_mul(g, %s, %s)",
                program_name(s, 0), program_name(s, 1));
}

// -- softmax over any axis
static bool softmax_choose(struct plan *p, struct plan_step *s, int x)
{
    s->number[0] = plan_number(p, -p->value[x].h->rank, p->value[x].h->rank - 1);
    like(p, s, x);
    return true;
}

static void softmax_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = operand(p, s, 0);
    struct host *y = result(p, s);
    const int axis = (int)(s->number[0] < 0 ? s->number[0] + x->rank : s->number[0]);
    int64_t inner = 1;
    for (int i = axis + 1; i < x->rank; ++i)
        inner *= x->dim[i];
    const int64_t n = x->dim[axis];
    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t first = i / (n * inner) * n * inner + i % inner;
        double largest = -INFINITY, sum = 0;
        for (int64_t k = 0; k < n; ++k)
            largest = fmax(largest, x->data[first + k * inner]);
        for (int64_t k = 0; k < n; ++k)
            sum += exp(x->data[first + k * inner] - largest);
        y->data[i] = exp(x->data[i] - largest) / sum;
    }
}

static attncl_value softmax_build(struct builder *b, const struct plan_step *s)
{
    return CALL(b, s, attncl_softmax(b->g, taken(b, s, 0), (int)s->number[0]),
                "attncl_softmax(g, %s, %d)", program_name(s, 0), (int)s->number[0]);
}

// -- masked_softmax
static bool masked_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    if (h->rank != 3)
        return false;
    s->in[1] = plan_lengths(p, 0, h->dim[2], (int)plan_number(p, 1, 2), h->dim);
    like(p, s, x);
    return true;
}

static void masked_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_masked_softmax_fwd(operand(p, s, 0), operand(p, s, 1), result(p, s));
}

static attncl_value masked_build(struct builder *b, const struct plan_step *s)
{
    return CALL(b, s, attncl_masked_softmax(b->g, taken(b, s, 0), taken(b, s, 1)),
                "attncl_masked_softmax(g, %s, %s)", program_name(s, 0), program_name(s, 1));
}

// -- layer_norm over one or two trailing axes
static bool norm_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    const int n = h->rank > 1 && plan_chance(p, 25) ? 2 : 1;
    s->in[1] = plan_operand(p, n, h->dim + h->rank - n);
    s->in[2] = plan_operand(p, n, h->dim + h->rank - n);
    s->real = plan_chance(p, 50) ? 1e-5 : 1e-2;
    like(p, s, x);
    return true;
}

static void norm_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_layer_norm_fwd(operand(p, s, 0), operand(p, s, 1), operand(p, s, 2), (float)s->real,
                       result(p, s));
}

static attncl_value norm_build(struct builder *b, const struct plan_step *s)
{
    return CALL(
        b, s,
        attncl_layer_norm(b->g, taken(b, s, 0), taken(b, s, 1), taken(b, s, 2), (float)s->real),
        "attncl_layer_norm(g, %s, %s, %s, %gf)", program_name(s, 0), program_name(s, 1),
        program_name(s, 2), s->real);
}

// -- slice
static bool slice_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    int64_t dim[ATTNCL_MAX_RANK];
    const int64_t axis = s->number[0] = plan_number(p, 0, h->rank - 1);
    s->number[1] = plan_number(p, 0, h->dim[axis] - 1);
    s->number[2] = plan_number(p, s->number[1] + 1, h->dim[axis]);
    memcpy(dim, h->dim, sizeof dim);
    dim[axis] = s->number[2] - s->number[1];
    plan_result(p, s, h->rank, dim);
    p->value[s->out].is_view = true;
    return true;
}

static void slice_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = operand(p, s, 0);
    struct host *y = result(p, s);
    const int axis = (int)s->number[0];
    int64_t inner = 1;
    for (int i = axis + 1; i < x->rank; ++i)
        inner *= x->dim[i];
    for (int64_t i = 0; i < y->count; ++i) {
        const int64_t rest = i % inner, k = i / inner % y->dim[axis],
                      outer = i / inner / y->dim[axis];
        y->data[i] = x->data[(outer * x->dim[axis] + s->number[1] + k) * inner + rest];
    }
}

static attncl_value slice_build(struct builder *b, const struct plan_step *s)
{
    return CALL(b, s,
                attncl_slice(b->g, taken(b, s, 0), (int)s->number[0], s->number[1], s->number[2]),
                "attncl_slice(g, %s, %d, %d, %d)", program_name(s, 0), (int)s->number[0],
                (int)s->number[1], (int)s->number[2]);
}

// -- permute
static bool permute_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    int64_t dim[ATTNCL_MAX_RANK];
    if (h->rank > 4)
        return false;
    for (int i = 0; i < h->rank; ++i)
        s->number[i] = i;
    for (int i = h->rank - 1; i > 0; --i) {
        const int64_t k = plan_number(p, 0, i), other = s->number[k];
        s->number[k] = s->number[i];
        s->number[i] = other;
    }
    for (int i = 0; i < h->rank; ++i)
        dim[i] = h->dim[s->number[i]];
    plan_result(p, s, h->rank, dim);
    p->value[s->out].is_view = true;
    return true;
}

static void permute_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = operand(p, s, 0);
    struct host *y = result(p, s);
    for (int64_t i = 0; i < y->count; ++i) {
        int64_t place[ATTNCL_MAX_RANK] = {0}, rest = i, from = 0;
        for (int axis = y->rank - 1; axis >= 0; --axis) {
            place[s->number[axis]] = rest % y->dim[axis];
            rest /= y->dim[axis];
        }
        for (int axis = 0; axis < x->rank; ++axis)
            from = from * x->dim[axis] + place[axis];
        y->data[i] = x->data[from];
    }
}

static attncl_value permute_build(struct builder *b, const struct plan_step *s)
{
    const int order[4] = {(int)s->number[0], (int)s->number[1], (int)s->number[2],
                          (int)s->number[3]};
    return CALL(b, s, attncl_permute(b->g, taken(b, s, 0), order),
                "attncl_permute(g, %s, (const int[]){%d, %d, %d, %d})", program_name(s, 0),
                order[0], order[1], order[2], order[3]);
}

// -- reshape: two axes become one, or one two, or all one
static bool reshape_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    int64_t *dim = s->number + 1;
    const int axis = (int)plan_number(p, 0, h->rank - 1);
    int rank = 0;
    for (int i = 0; i < h->rank; ++i) {
        if (i == axis && h->rank < 4 && h->dim[i] % 2 == 0 && plan_chance(p, 70)) {
            dim[rank++] = h->dim[i] / 2;
            dim[rank++] = 2;
        } else if (i == axis && i + 1 < h->rank) {
            dim[rank++] = h->dim[i] * h->dim[i + 1];
            ++i;
        } else {
            dim[rank++] = h->dim[i];
        }
    }
    s->number[0] = rank;
    plan_result(p, s, rank, dim);
    p->value[s->out].is_view = true;
    return true;
}

static void reshape_evaluate(const struct plan *p, const struct plan_step *s)
{
    memcpy(result(p, s)->data, operand(p, s, 0)->data,
           (size_t)result(p, s)->count * sizeof(double));
}

static attncl_value reshape_build(struct builder *b, const struct plan_step *s)
{
    const int64_t *d = s->number + 1;
    return CALL(b, s, attncl_reshape(b->g, taken(b, s, 0), (int)s->number[0], d),
                "attncl_reshape(g, %s, %d, (const int64_t[]){%d, %d, %d, %d, %d})",
                program_name(s, 0), (int)s->number[0], (int)d[0], (int)d[1], (int)d[2], (int)d[3],
                (int)d[4]);
}

// -- concat of two or three
static bool concat_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    int64_t dim[ATTNCL_MAX_RANK], total;
    const int axis = (int)plan_number(p, 0, h->rank - 1), n = (int)plan_number(p, 2, 3);
    if (h->rank > 4 || h->count > 150)
        return false;
    memcpy(dim, h->dim, sizeof dim);
    total = dim[axis];
    for (int i = 1; i < n; ++i) {
        if (plan_chance(p, 40))
            dim[axis] = plan_number(p, 1, 3);
        s->in[i] = plan_operand(p, h->rank, dim);
        total += dim[axis];
    }
    dim[axis] = total;
    s->number[0] = axis;
    s->number[1] = n;
    plan_result(p, s, h->rank, dim);
    return true;
}

static void concat_evaluate(const struct plan *p, const struct plan_step *s)
{
    struct host *y = result(p, s);
    const int axis = (int)s->number[0];
    int64_t inner = 1, begin = 0;
    for (int i = axis + 1; i < y->rank; ++i)
        inner *= y->dim[i];
    for (int k = 0; k < s->number[1]; ++k) {
        const struct host *x = operand(p, s, k);
        const int64_t row = x->dim[axis] * inner;
        for (int64_t i = 0; i < x->count; ++i)
            y->data[i / row * y->dim[axis] * inner + begin * inner + i % row] = x->data[i];
        begin += x->dim[axis];
    }
}

static attncl_value concat_build(struct builder *b, const struct plan_step *s)
{
    const attncl_value list[3] = {taken(b, s, 0), taken(b, s, 1), taken(b, s, 2)};
    const size_t n = (size_t)s->number[1];
    return CALL(b, s, attncl_concat(b->g, n, list, (int)s->number[0]),
                "attncl_concat(g, %zu, (const attncl_value[]){%s, %s, %s}, %d)", n,
                program_name(s, 0), program_name(s, 1), program_name(s, 2), (int)s->number[0]);
}

// -- relative_shift
static bool shift_choose(struct plan *p, struct plan_step *s, int x)
{
    if (p->value[x].h->dim[p->value[x].h->rank - 1] % 2 != 0)
        return false;
    s->real = (double)plan_number(p, -3, 3);
    like(p, s, x);
    return true;
}

static void shift_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = operand(p, s, 0);
    const int64_t width = x->dim[x->rank - 1];
    for (int64_t i = 0; i < x->count; ++i) {
        const double angle = s->real * pow(10000.0, -(double)(i % width / 2 * 2) / (double)width);
        result(p, s)->data[i] =
            cos(angle) * x->data[i] + (i % 2 ? -sin(angle) : sin(angle)) * x->data[i ^ 1];
    }
}

static attncl_value shift_build(struct builder *b, const struct plan_step *s)
{
    return CALL(b, s, attncl_relative_shift(b->g, taken(b, s, 0), s->real),
                "attncl_relative_shift(g, %s, %g)", program_name(s, 0), s->real);
}

// -- add_positions
static bool positions_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    if (h->rank != 3)
        return false;
    s->number[0] = plan_number(p, 0, 1);
    s->in[1] = plan_operand(p, 2, (const int64_t[]){h->dim[s->number[0]], h->dim[2]});
    like(p, s, x);
    return true;
}

static void positions_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_add_positions_fwd(operand(p, s, 0), operand(p, s, 1), (int)s->number[0], result(p, s));
}

static attncl_value positions_build(struct builder *b, const struct plan_step *s)
{
    const int layout = (int)s->number[0];
    return CALL(
        b, s, attncl_add_positions(b->g, taken(b, s, 0), taken(b, s, 1), (attncl_layout)layout),
        "attncl_add_positions(g, %s, %s, %d)", program_name(s, 0), program_name(s, 1), layout);
}

const struct plan_op plan_ops_rows[] = {
    {"activate", activate_choose, activate_evaluate, activate_build},
    {"bias_activate", bias_choose, bias_evaluate, bias_build},
    {"add", pair_choose, add_evaluate, add_build},
    {"mul", pair_choose, mul_evaluate, mul_build},
    {"softmax", softmax_choose, softmax_evaluate, softmax_build},
    {"masked_softmax", masked_choose, masked_evaluate, masked_build},
    {"layer_norm", norm_choose, norm_evaluate, norm_build},
    {"slice", slice_choose, slice_evaluate, slice_build},
    {"permute", permute_choose, permute_evaluate, permute_build},
    {"reshape", reshape_choose, reshape_evaluate, reshape_build},
    {"concat", concat_choose, concat_evaluate, concat_build},
    {"relative_shift", shift_choose, shift_evaluate, shift_build},
    {"add_positions", positions_choose, positions_evaluate, positions_build},
};
const int n_plan_ops_rows = sizeof plan_ops_rows / sizeof plan_ops_rows[0];
