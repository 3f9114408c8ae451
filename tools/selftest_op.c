// SPDX-License-Identifier: MIT
//
// One check of attncl selftest: an op and its gradients on the device and, in double precision, on the host.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "selftest.h"

// Of results, relative to the largest: the longest sums here have 1100 terms.  Gradients are compared with differences
// of the host's results.
static const double tolerance = 5e-6, gradient_tolerance = 5e-5, step = 1e-4;
enum { N_SAMPLES = 40, NAME_BYTES = 16 };

struct work {
    const struct check *check;
    int n_in;
    double *in[CHECK_MAX_IN];
    double *out, *weights, *shifted; // of the result, of which the gradient is
    float *bytes;                    // of a transfer, the largest
    struct outcome *outcome;
};

static double *new_values(const struct check_array *a, uint64_t *seed)
{
    const int64_t count = check_count(a);
    double *x = malloc((size_t)count * sizeof *x);

    for (int64_t i = 0; x && i < count; i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        const double u = (double)(*seed >> 40) / (1 << 24);
        x[i] = a->dtype == ATTNCL_F32 ? (float)(a->low + u * (a->high - a->low))
                                      : floor(a->low + u * (a->high - a->low));
    }
    return x;
}

static void free_work(struct work *w)
{
    for (int i = 0; i < CHECK_MAX_IN; i++)
        free(w->in[i]);
    free(w->out);
    free(w->weights);
    free(w->shifted);
    free(w->bytes);
}

static bool fill_work(struct work *w, const struct check *c)
{
    const struct check_array weights = {ATTNCL_F32, c->out.rank, {0}, -1, 1};
    struct check_array like_out = weights;
    uint64_t seed = 7;
    int64_t largest = check_count(&c->out);
    bool good = true;

    *w = (struct work){.check = c};
    memcpy(like_out.dim, c->out.dim, sizeof like_out.dim);
    for (; w->n_in < CHECK_MAX_IN && c->in[w->n_in].rank > 0; w->n_in++) {
        const int64_t count = check_count(&c->in[w->n_in]);
        w->in[w->n_in] = new_values(&c->in[w->n_in], &seed);
        good = good && w->in[w->n_in];
        largest = count > largest ? count : largest;
    }
    w->weights = new_values(&like_out, &seed);
    w->out = malloc((size_t)check_count(&c->out) * sizeof *w->out);
    w->shifted = malloc((size_t)check_count(&c->out) * sizeof *w->shifted);
    w->bytes = malloc((size_t)largest * sizeof *w->bytes);
    return good && w->weights && w->out && w->shifted && w->bytes;
}

static void build(const struct work *w, attncl_graph *g)
{
    const struct check *c = w->check;
    attncl_value in[CHECK_MAX_IN] = {ATTNCL_VALUE_INIT}, d[CHECK_MAX_IN];
    int n_float = 0;
    char name[NAME_BYTES];

    for (int i = 0; i < w->n_in; i++) {
        snprintf(name, sizeof name, "x%d", i);
        in[i] = attncl_graph_input(g, name, c->in[i].dtype, c->in[i].rank, c->in[i].dim);
        n_float += c->in[i].dtype == ATTNCL_F32; // the others come last
    }
    const attncl_value y = c->build(g, c, in);
    attncl_graph_output(g, "y", y);
    if (!c->has_gradient)
        return;
    const attncl_shape shape = attncl_graph_shape(g, y);
    const attncl_value dy = attncl_graph_input(g, "dy", ATTNCL_F32, shape.rank, shape.dim);
    attncl_graph_gradient(g, 1, &y, &dy, (size_t)n_float, in, d);
    for (int i = 0; i < n_float; i++) {
        snprintf(name, sizeof name, "d%d", i);
        attncl_graph_output(g, name, d[i]);
    }
}

static attncl_status write_input(struct work *w, attncl_graph *g, const char *name,
                                 const double *values, const struct check_array *a)
{
    const int64_t count = check_count(a);
    unsigned char *const u8 = (unsigned char *)w->bytes;

    for (int64_t i = 0; i < count; i++)
        if (a->dtype == ATTNCL_U8)
            u8[i] = (unsigned char)values[i];
        else if (a->dtype == ATTNCL_I32)
            memcpy(&w->bytes[i], &(int32_t){(int32_t)values[i]}, sizeof(int32_t));
        else
            w->bytes[i] = (float)values[i];
    return attncl_graph_write(g, name, w->bytes,
                              (size_t)count * (a->dtype == ATTNCL_U8 ? 1 : sizeof *w->bytes));
}

static attncl_status run(struct work *w, attncl_graph *g)
{
    char name[NAME_BYTES];

    build(w, g);
    attncl_status status = attncl_graph_compile(g, NULL);
    for (int i = 0; i < w->n_in && status == ATTNCL_OK; i++) {
        snprintf(name, sizeof name, "x%d", i);
        status = write_input(w, g, name, w->in[i], &w->check->in[i]);
    }
    if (status == ATTNCL_OK && w->check->has_gradient) {
        struct check_array dy = w->check->out;
        dy.dtype = ATTNCL_F32;
        status = write_input(w, g, "dy", w->weights, &dy);
    }
    return status == ATTNCL_OK ? attncl_graph_run(g) : status;
}

static void compare(struct work *w, const char *what, int64_t at, double got, double want,
                    double allowed)
{
    outcome_compare(w->outcome, what, at, got, want, allowed);
}

static double largest_of(const double *x, int64_t n)
{
    double largest = 0;

    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(x[i]));
    return largest;
}

static attncl_status compare_result(struct work *w, attncl_graph *g)
{
    const int64_t n = check_count(&w->check->out);
    const attncl_status status = attncl_graph_read(g, "y", w->bytes, (size_t)n * sizeof *w->bytes);

    if (status != ATTNCL_OK)
        return status;
    w->check->reference(w->check, w->in, w->out);
    const double allowed = tolerance * (1e-3 + largest_of(w->out, n));
    for (int64_t i = 0; i < n; i++) {
        int32_t index;
        memcpy(&index, &w->bytes[i], sizeof index);
        compare(w, "result", i, w->check->out.dtype == ATTNCL_I32 ? index : (double)w->bytes[i],
                w->out[i], allowed);
    }
    return ATTNCL_OK;
}

// The sum of the results, weighted, with element `at` of input `i` moved by `by`.
static double shifted_sum(struct work *w, int i, int64_t at, double by)
{
    const double old = w->in[i][at];
    double sum = 0;

    w->in[i][at] = old + by;
    w->check->reference(w->check, w->in, w->shifted);
    w->in[i][at] = old;
    for (int64_t j = 0; j < check_count(&w->check->out); j++)
        sum += w->shifted[j] * w->weights[j];
    return sum;
}

static attncl_status compare_gradient(struct work *w, attncl_graph *g, int i)
{
    const int64_t n = check_count(&w->check->in[i]);
    char name[NAME_BYTES];
    double largest = 0;

    snprintf(name, sizeof name, "d%d", i);
    const attncl_status status = attncl_graph_read(g, name, w->bytes, (size_t)n * sizeof *w->bytes);
    if (status != ATTNCL_OK)
        return status;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t k = 0; k < N_SAMPLES && k < n; k++) {
            const int64_t at = n <= N_SAMPLES ? k : k * (n - 1) / (N_SAMPLES - 1);
            const double want =
                (shifted_sum(w, i, at, step) - shifted_sum(w, i, at, -step)) / (2 * step);
            if (pass == 0)
                largest = fmax(largest, fabs(want));
            else
                compare(w, name, at, w->bytes[at], want, gradient_tolerance * (1e-3 + largest));
        }
    for (int64_t k = 0; k < n; k++) // the others are numbers at least
        if (!isfinite(w->bytes[k]))
            compare(w, name, k, w->bytes[k], 0, 1);
    return ATTNCL_OK;
}

// One element; what is not finite, as what no kernel wrote is not, is the worst and stays.
void outcome_compare(struct outcome *o, const char *what, int64_t at, double got, double want,
                     double allowed)
{
    const bool finite = isfinite(got) && isfinite(want) && isfinite(allowed);
    const double off = finite ? fabs(got - want) / allowed : INFINITY;

    if (off <= o->worst)
        return;
    o->worst = off;
    if (off > 1)
        snprintf(o->message, sizeof o->message, "%s[%lld] is %.9g, expected %.9g", what,
                 (long long)at, got, want);
}

static attncl_status run_and_compare(struct work *w, attncl_context *context)
{
    attncl_graph *g = NULL;
    attncl_status status = attncl_graph_create(context, &g);

    if (status == ATTNCL_OK)
        status = run(w, g);
    if (status == ATTNCL_OK)
        status = compare_result(w, g);
    for (int i = 0; i < w->n_in && status == ATTNCL_OK; i++)
        if (w->check->has_gradient && w->check->in[i].dtype == ATTNCL_F32)
            status = compare_gradient(w, g, i);
    attncl_graph_destroy(g);
    return status;
}

int check_op(const struct check *c, attncl_context *context, struct outcome *ret)
{
    struct work w;
    const bool is_filled = fill_work(&w, c);

    *ret = (struct outcome){.op = c->op};
    w.outcome = ret;
    if (is_filled && run_and_compare(&w, context) != ATTNCL_OK)
        snprintf(ret->message, sizeof ret->message, "%s", attncl_last_error());
    free_work(&w);
    return is_filled ? TOOL_OK : tool_error("out of memory");
}
