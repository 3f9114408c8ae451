// SPDX-License-Identifier: MIT
// Gradients of attention-free mixing against their reference (tests/ref/aft_bwd.c), and that against
// differences; odd loops take biases of heads by distance.

#include <math.h>

#include "ref/ref.h"
#include "support/derivative.h"
#include "support/op_test.h"

// Relative to the sum of the sizes of all terms.  As for the forward op 1e-5, and what the rounding
// of a logarithm, a key, a bias, their sums and a maximum does to an exponent.
static double tolerance(const struct ref_aft_data *x, const struct host *log)
{
    double largest = 0;

    for (int64_t i = 0; i < log->count; ++i)
        largest = fmax(largest, fabs(log->data[i]));
    for (int64_t i = 0; i < x->k->count; ++i)
        if (x->k->data[i] > -INFINITY)
            largest = fmax(largest, fabs(x->k->data[i]));
    return 1e-5 + 5 * 6e-8 * largest;
}

static const double tiny = 1e-30; // size of what float's exponents cannot tell from 0

static void check(const struct ref_aft_data *x)
{
    const struct aft_bwd_params params = {{x->per_head, x->window, x->causal}};
    struct host *y = host_like(x->q), *scale = host_like(x->q), *log = host_like(x->q);
    struct host *in[] = {x->q, x->k, x->v, x->pos_bias}, *got[4], *want[4], *size[4];
    static const char *const names[] = {"dq", "dk", "dv", "dw"};
    const int n_out = x->pos_bias ? 4 : 3;

    for (int i = 0; i < 4; ++i) {
        got[i] = in[i] ? host_like(in[i]) : NULL;
        want[i] = in[i] ? host_like(in[i]) : NULL;
        size[i] = in[i] ? host_like(in[i]) : NULL;
    }
    ref_aft_fwd(x, y, scale);
    ref_aft_bwd(x, true, log, size[0], size[1], size[2], size[3]);
    ref_aft_bwd(x, false, log, want[0], want[1], want[2], want[3]);
    ck_ok(run_op("aft_bwd", &params, HOSTS(x->q, x->k, x->v, x->pos_bias, x->mask, y, log, x->g),
                 got, n_out));
    for (int i = 0; i < n_out; ++i)
        ck_terms(got[i], want[i], size[i], tolerance(x, log), tiny, names[i]);
}

// With heads `window` is the filters' size, made odd.
static struct ref_aft_data random_problem(int steps, int batch, int channels, int window,
                                          int causal, bool per_head)
{
    const int heads = channels % 3 == 0 ? 3 : 1;

    return (struct ref_aft_data){
        .q = host_random(1, DIMS(steps, batch, channels)),
        .k = host_random(2, DIMS(steps, batch, per_head ? heads : channels)),
        .v = host_random(3, DIMS(steps, batch, channels)),
        .g = host_random(4, DIMS(steps, batch, channels)),
        .pos_bias = per_head     ? host_random(5, DIMS(heads, window | 1))
                    : window > 0 ? host_random(5, DIMS(steps + 2, steps + 2))
                                 : NULL,
        .window = per_head ? 0 : window,
        .causal = causal,
        .per_head = per_head,
    };
}

static const struct {
    int steps, batch, channels, window;
} shapes[] = {
    {1, 1, 1, 1},   {5, 2, 3, 3},   {13, 1, 17, 4},    {29, 2, 6, 0},
    {40, 1, 33, 7}, {97, 2, 9, 20}, {130, 1, 20, 200}, {200, 1, 5, 30},
};

static void add(struct host *x, int64_t from, int64_t to, double value)
{
    for (int64_t i = from; i < to; ++i)
        x->data[i] = (float)(x->data[i] + value);
}

// Ways of summing that ordinary data do not choose: rows of far apart sums, in blocks of their own
// (1) or side by side (2), cannot be multiplied as factors.
static void force(const struct ref_aft_data *x, int way)
{
    const int64_t width = x->pos_bias ? x->pos_bias->dim[1] : 0, block = 12;

    for (int64_t i = 0; i < width && way && !x->per_head; ++i)
        if (way == 1 ? i / block % 2 : i % 8 == 0)
            add(x->pos_bias, i * width, (i + 1) * width, 100);
    if (way && x->per_head)
        host_scale(x->k, 60);
    if (way == 2 && x->per_head)
        host_scale(x->pos_bias, 30);
}

LOOP_TEST(matches_the_reference, 0, 12)
{
    for (int i = on_simulator() ? 1 : 0; i < (on_simulator() ? 3 : (int)COUNT_OF(shapes)); ++i) {
        const struct ref_aft_data x =
            random_problem(shapes[i].steps, shapes[i].batch, shapes[i].channels, shapes[i].window,
                           _i / 2 % 2, _i % 2);
        force(&x, _i / 4);
        check(&x);
    }
}

LOOP_TEST(masks, 0, 2)
{
    for (int i = 1; i < (on_simulator() ? 2 : 7); ++i) {
        const int t = shapes[i].steps, b = shapes[i].batch;
        struct ref_aft_data x = random_problem(t, b, shapes[i].channels, shapes[i].window, 0, _i);
        x.mask = i % 3 == 0   ? host_mask(6, 0.5, DIMS(t, t, b))
                 : i % 3 == 1 ? host_mask(6, 0.1, DIMS(t, t, 1))
                              : host_mask(6, 0.5, DIMS(1, t, b));
        check(&x);
    }
}

// A late key, keys and biases far apart, keys that are absent.
LOOP_TEST(extremes, 0, 16)
{
    const struct ref_aft_data x =
        random_problem(on_simulator() ? 14 : 131, 1, 9, 9, _i / 2 % 2, _i % 2);
    const int64_t row = x.k->count / x.k->dim[0], last = x.k->count;

    if (on_simulator() && _i / 2 % 3 != 0)
        return;
    switch (_i / 4) {
    case 0:
        add(x.k, last - row, last, 400);
        break;
    case 1:
        add(x.k, last / 2, last, -80);
        add(x.pos_bias, 0, x.pos_bias->count / 2, 80);
        break;
    case 2:
        for (int64_t i = 0; i < last; ++i)
            x.k->data[i] = i / row % 3 == 1 ? -INFINITY : (float)(20 * x.k->data[i]);
        break;
    default:
        host_scale(x.pos_bias, 30);
        host_scale(x.k, 60);
    }
    check(&x);
}

// Several blocks of queries and chunks of channels in a work-item, one channel that no product fits.
LOOP_TEST(long_and_wide, 0, 4)
{
    const struct ref_aft_data x = random_problem(397, 1, 281, _i / 2 ? 397 : 40, _i % 2, 0);

    if (on_simulator())
        return;
    for (int64_t t = 0; t < 397; t += 3)
        x.k->data[t * 281 + 261] -= 200;
    check(&x);
}

LOOP_TEST(empty_is_fine, 0, 2)
{
    const struct ref_aft_data x = random_problem(0, 2, 3, 3, 0, _i);
    const struct ref_aft_data z = random_problem(3, 0, 3, 3, 1, _i);

    check(&x);
    check(&z);
}

static double loss(void *context)
{
    const struct ref_aft_data *x = context;
    struct host *y = host_like(x->q), *scale = host_like(x->q);

    ref_aft_fwd(x, y, scale);
    return host_dot(y, x->g);
}

LOOP_TEST(the_definition_meets_differences, 0, 6)
{
    struct ref_aft_data x = random_problem(5, 2, 3, 3, _i / 2 == 1, _i % 2);
    struct host *dq = host_like(x.q), *dk = host_like(x.k), *dv = host_like(x.v);
    struct host *dw = host_like(x.pos_bias);

    if (_i / 2 == 2)
        x.mask = host_mask(7, 0.6, DIMS(5, 5, 2));
    ref_aft_bwd(&x, false, host_like(x.q), dq, dk, dv, dw);
    ck_derivative(loss, &x, x.q, dq, "q");
    ck_derivative(loss, &x, x.k, dk, "k");
    ck_derivative(loss, &x, x.v, dv, "v");
    ck_derivative(loss, &x, x.pos_bias, dw, "w");
}
