// SPDX-License-Identifier: MIT

#include "support/grad_test.h"

#include <math.h>
#include <stdlib.h>

#include "attncl/gradient.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "support/derivative.h"

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

struct gradients {
    const struct op_class *cls;
    attncl_graph *g;
    attncl_value in[TEST_MAX_VALUES], y[TEST_MAX_VALUES], dy[TEST_MAX_VALUES];
    int n_y;
    struct host *out[TEST_MAX_VALUES],
        *cotangent[TEST_MAX_VALUES]; // NULL: the output has no gradient
    int n_in;
    unsigned wanted;
};

static void build(struct gradients *t, const void *params, struct host *const *in, int n_in)
{
    char name[16];

    for (int i = 0; i < n_in; ++i) {
        snprintf(name, sizeof name, "in%d", i);
        if (in[i])
            t->in[i] = attncl_graph_input(t->g, name, in[i]->dtype, in[i]->rank, in[i]->dim);
    }
    const attncl_value first = attncl__graph_add(t->g, t->cls, params, t->in, n_in);
    for (int i = 0; i < t->cls->n_out; ++i) {
        const attncl_value y = attncl__graph_result(t->g, first, i);
        const attncl_shape shape = attncl_graph_shape(t->g, y);
        if (shape.rank < 0 || shape.dtype == ATTNCL_DTYPE_NONE)
            continue;
        t->out[i] = host_new(shape.dtype, shape.rank, shape.dim);
        if (shape.dtype != ATTNCL_F32)
            continue;
        snprintf(name, sizeof name, "dy%d", i);
        t->cotangent[i] = host_random(97u + (unsigned)i, shape.rank, shape.dim);
        t->dy[t->n_y] = attncl_graph_input(t->g, name, shape.dtype, shape.rank, shape.dim);
        t->y[t->n_y++] = y;
    }
}

static void ask(struct gradients *t, unsigned wanted)
{
    attncl_value x[TEST_MAX_VALUES], dx[TEST_MAX_VALUES];
    char name[16];
    int n = 0;

    for (int i = 0; i < TEST_MAX_VALUES; ++i)
        if (wanted >> i & 1)
            x[n++] = t->in[i];
    attncl_graph_gradient(t->g, t->n_y, t->y, t->dy, n, x, dx);
    n = 0;
    for (int i = 0; i < TEST_MAX_VALUES; ++i) {
        snprintf(name, sizeof name, "dx%d", i);
        if (wanted >> i & 1)
            attncl_graph_output(t->g, name, dx[n++]);
    }
}

static void write_one(const struct gradients *t, const char *prefix, int i, const struct host *h)
{
    char name[16];

    if (!h || h->count == 0)
        return;
    snprintf(name, sizeof name, "%s%d", prefix, i);
    ck_ok(attncl_graph_write(t->g, name, host_pack(h), host_bytes(h)));
}

struct gradients *gradients_new(const char *name, const void *params, struct host *const *in,
                                int n_in, unsigned wanted)
{
    struct gradients *t = calloc(1, sizeof *t);

    ck_assert_ptr_nonnull(t);
    *t = (struct gradients){.cls = attncl__op_find(name), .n_in = n_in, .wanted = wanted};
    ck_assert_msg(t->cls != NULL, "there is no op %s", name);
    ck_ok(attncl_graph_create(test_context(), &t->g));
    build(t, params, in, n_in);
    ask(t, wanted);
    ck_ok(attncl_graph_compile(t->g, NULL));
    return t;
}

void gradients_run(struct gradients *t, struct host *const *in, const struct host *dy,
                   struct host *const *dx)
{
    char name[16];

    for (int i = 0; i < t->n_in; ++i)
        write_one(t, "in", i, in[i]);
    for (int i = 0; i < t->cls->n_out; ++i)
        write_one(t, "dy", i, i == 0 && dy ? dy : t->cotangent[i]);
    ck_ok(attncl_graph_run(t->g));
    ck_ok(attncl__graph_check_canaries(t->g));
    for (int i = 0; i < t->n_in; ++i) {
        if (!(t->wanted >> i & 1))
            continue;
        snprintf(name, sizeof name, "dx%d", i);
        void *got = host_pack(dx[i]);
        ck_ok(attncl_graph_read(t->g, name, got, host_bytes(dx[i])));
        host_unpack(dx[i], got);
    }
}

void gradients_free(struct gradients *t)
{
    attncl_graph_destroy(t->g);
    free(t);
}

// The largest |got - want| in units of the largest |want|.
static double compare(const struct host *got, const struct host *want)
{
    double worst = 0, largest = 0;

    for (int64_t k = 0; k < want->count; ++k) {
        const double error = fabs(got->data[k] - want->data[k]);
        if (!(error <= worst) && !isnan(worst)) // NaN stays
            worst = error;
        largest = fmax(largest, fabs(want->data[k]));
    }
    return largest > 0 ? worst / largest : worst;
}

void ck_gradients(const char *name, const void *params, struct host *const *in, int n_in,
                  unsigned wanted, ref_forward forward, double tolerance)
{
    struct gradients *t = gradients_new(name, params, in, n_in, wanted);
    struct host *dx[TEST_MAX_VALUES] = {NULL};

    for (int i = 0; i < n_in; ++i)
        dx[i] = in[i] ? host_like(in[i]) : NULL;
    gradients_run(t, in, NULL, dx);
    for (int i = 0; i < n_in; ++i) {
        if (!(wanted >> i & 1))
            continue;
        const double error = compare(
            dx[i], finite_differences(forward, params, in, t->out, t->cotangent, t->cls->n_out, i));
        ck_assert_msg(error <= tolerance, "%s: the gradient of input %d is off by %g", name, i,
                      error);
    }
    gradients_free(t);
}
