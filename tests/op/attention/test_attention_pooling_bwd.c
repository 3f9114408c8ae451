// SPDX-License-Identifier: MIT
// Gradients of kernel regression against their reference (tests/ref/attention_pooling_bwd.c), and
// that against differences.

#include <math.h>

#include "ref/ref.h"
#include "support/derivative.h"
#include "support/op_test.h"

enum { X, Y, Z, G, C, N_IN };
enum { GAUSSIAN, BOXCAR, CONSTANT, EPANECHIKOV, N_KINDS };

// As for the forward op, relative to the sum of the sizes of all terms; an Epanechikov weight near
// its support's end is known to a rounding of its distance.
static const double relative = 200 * 6e-8, absolute = 4 * 6e-8;

static void fill(struct host **in, int n, int m, bool weights)
{
    in[X] = host_uniform(1, 0, 5, DIMS(n));
    in[Y] = host_random(2, DIMS(n));
    in[Z] = host_uniform(3, -1, 6, DIMS(m));
    in[G] = host_random(4, DIMS(m));
    in[C] = weights ? host_random(5, DIMS(n, m)) : NULL;
}

static void check(int kind, double sigma, struct host *const *in)
{
    const struct attention_pooling_bwd_params params = {{kind, (float)sigma, false}};
    static const char *const names[] = {"dx", "dy", "dz"};
    struct host *got[3], *want[3], *size[3];

    for (int i = 0; i < 3; ++i) {
        got[i] = host_like(in[i]);
        want[i] = host_like(in[i]);
        size[i] = host_like(in[i]);
    }
    ref_attention_pooling_bwd(kind, (float)sigma, in, false, want);
    ref_attention_pooling_bwd(kind, (float)sigma, in, true, size);
    ck_ok(run_op("attention_pooling_bwd", &params, in, N_IN, got, 3));
    for (int i = 0; i < 3; ++i)
        ck_terms(got[i], want[i], size[i], relative, absolute, names[i]);
}

LOOP_TEST(matches_the_reference, 0, N_KINDS)
{
    static const int sizes[][2] = {{1, 1}, {3, 2}, {40, 50}, {65, 16}, {130, 33}};
    struct host *in[N_IN];

    for (unsigned i = 0; i < COUNT_OF(sizes); ++i) {
        fill(in, sizes[i][0], sizes[i][1], i % 2);
        check(_i, 1, in);
        if (_i == GAUSSIAN)
            check(_i, -20, in);
    }
}

LOOP_TEST(empty_is_fine, 0, N_KINDS)
{
    struct host *in[N_IN];

    fill(in, 0, 3, true);
    check(_i, 1, in);
    fill(in, 3, 0, false);
    check(_i, 1, in);
}

struct difference {
    int kind;
    struct host *in[N_IN];
};

static double loss(void *context)
{
    struct difference *d = context;
    struct host *y = host_like(d->in[Z]), *w = host_like(d->in[C]);

    ref_attention_pooling_fwd(d->kind, 1, d->in[X], d->in[Y], d->in[Z], y, w);
    return host_dot(y, d->in[G]) + host_dot(w, d->in[C]);
}

LOOP_TEST(the_definition_meets_differences, 0, N_KINDS)
{
    static const char *const names[] = {"x", "y", "z"};
    struct difference d = {.kind = _i};
    struct host *out[3];

    fill(d.in, 6, 4, true);
    for (int i = 0; i < 3; ++i)
        out[i] = host_like(d.in[i]);
    ref_attention_pooling_bwd(_i, 1, d.in, false, out);
    for (int i = 0; i < 3; ++i)
        ck_derivative(loss, &d, d.in[i], out[i], names[i]);
}
