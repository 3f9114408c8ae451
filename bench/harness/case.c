// SPDX-License-Identifier: MIT
//
// Cases get their data from a generator seeded by the array's name, so that every device and every
// run of the program multiplies the same numbers.

#define _POSIX_C_SOURCE 200809L // setenv

#include "harness/case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/gradient.h"
#include "base/alloc.h"
#include "base/try.h"
#include "device/context.h"

// splitmix64
static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// In [0, 1).
static double next_unit(uint64_t *state)
{
    return (double)(next_bits(state) >> 11) / 9007199254740992.0;
}

static uint64_t seed_of(const char *name)
{
    uint64_t seed = 14695981039346656037u; // FNV-1a

    for (; *name; ++name)
        seed = (seed ^ (unsigned char)*name) * 1099511628211u;
    return seed;
}

static struct case_array *new_array(struct case_data *t, const char *name, attncl_dtype dtype,
                                    int rank, const int64_t *dim)
{
    if (t->status != ATTNCL_OK)
        return NULL;
    if (t->n_arrays == MAX_CASE_ARRAYS) {
        t->status =
            FAIL(ATTNCL_ERR_ARGUMENT, "%s has more than %d arrays", t->c->name, MAX_CASE_ARRAYS);
        return NULL;
    }
    struct case_array *a = &t->arrays[t->n_arrays];
    *a = (struct case_array){.dtype = dtype, .rank = rank, .count = 1};
    snprintf(a->name, sizeof a->name, "%s", name);
    for (int i = 0; i < rank; ++i) {
        a->dim[i] = dim[i];
        a->count *= dim[i];
    }
    a->data = attncl__alloc_array((size_t)a->count, attncl_dtype_bytes(dtype));
    if (!a->data) {
        t->status = FAIL(ATTNCL_ERR_NO_MEMORY, "%lld elements of %s", (long long)a->count, name);
        return NULL;
    }
    ++t->n_arrays;
    return a;
}

struct case_array *case_array_add(struct case_data *t, const char *name, double spread, int rank,
                                  const int64_t *dim)
{
    struct case_array *a = new_array(t, name, ATTNCL_F32, rank, dim);
    uint64_t state = seed_of(name);

    for (int64_t i = 0; a && spread != 0 && i < a->count; ++i)
        ((float *)a->data)[i] = (float)(spread * (2 * next_unit(&state) - 1));
    return a;
}

struct case_array *case_array_find(const struct case_data *t, const char *name)
{
    for (int i = 0; i < t->n_arrays; ++i)
        if (strcmp(t->arrays[i].name, name) == 0)
            return (struct case_array *)&t->arrays[i];
    return NULL;
}

struct case_array *case_array_indices(struct case_data *t, const char *name, int64_t low,
                                      int64_t high, int rank, const int64_t *dim)
{
    struct case_array *a = new_array(t, name, ATTNCL_I32, rank, dim);
    uint64_t state = seed_of(name);

    for (int64_t i = 0; a && i < a->count; ++i)
        ((int32_t *)a->data)[i] =
            (int32_t)(low + (int64_t)((double)(high - low) * next_unit(&state)));
    return a;
}

size_t case_array_bytes(const struct case_array *a)
{
    return (size_t)a->count * attncl_dtype_bytes(a->dtype);
}

attncl_value case_input(struct case_data *t, const char *name, double spread, int rank,
                        const int64_t *dim)
{
    struct case_array *a = case_array_add(t, name, spread, rank, dim);

    if (!a)
        return ATTNCL_NONE_VALUE;
    a->is_input = true;
    return a->value = attncl_graph_input(t->graph, name, ATTNCL_F32, rank, dim);
}

attncl_value case_indices(struct case_data *t, const char *name, int64_t low, int64_t high,
                          int rank, const int64_t *dim)
{
    struct case_array *a = case_array_indices(t, name, low, high, rank, dim);

    if (!a)
        return ATTNCL_NONE_VALUE;
    a->is_input = true;
    return attncl_graph_index_input(t->graph, name, rank, dim, low, high);
}

attncl_value case_weight(struct case_data *t, const char *name, double spread, int rank,
                         const int64_t *dim)
{
    struct case_array *a = case_array_add(t, name, spread, rank, dim);

    if (!a)
        return ATTNCL_NONE_VALUE;
    t->status =
        attncl_tensor_create(t->ctx, ATTNCL_F32, rank, dim, ATTNCL_F32, a->data, &a->tensor);
    if (t->status == ATTNCL_OK)
        a->value = attncl_graph_tensor(t->graph, a->tensor);
    return a->value;
}

attncl_value case_map(struct case_data *t, const char *name, int64_t out, int64_t in)
{
    return case_weight(t, name, sqrt(3.0 / (double)in), DIMS(out, in));
}

// Capacity for the result, once its shape is known.
static attncl_status add_result(struct case_data *t)
{
    attncl_shape shape;

    REQUIRE(attncl_graph_output_name(t->graph, 0, &shape), ATTNCL_ERR_ARGUMENT,
            "%s names no output", t->c->name);
    case_array_add(t, "y", 0, shape.rank, shape.dim);
    return t->status;
}

// With the case's provider of GEMMs, where it names one.  CLBlast on CPUs compiles and runs for seconds, and the
// library never takes it: one small product shows why.
static attncl_status compile(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const bool shows_why = t->c->family->quantity == QUANTITY_GEMM && s->N <= 512 && s->B == 0;

    REQUIRE(!s->provider || strcmp(s->provider, "clblast") != 0 || shows_why ||
                t->ctx->caps.clblast_candidate,
            ATTNCL_ERR_UNSUPPORTED, "skipped: CLBlast is slow on CPUs (see the 512 case)");

    const char *given = getenv("ATTNCL_GEMM");
    char *before = given ? attncl__copy_text(given) : NULL;
    const double start = clock_now();

    if (s->provider)
        setenv("ATTNCL_GEMM", s->provider, 1);
    const attncl_status status = attncl_graph_compile(t->graph, NULL);
    t->compile_s = clock_now() - start;
    if (before)
        setenv("ATTNCL_GEMM", before, 1);
    else
        unsetenv("ATTNCL_GEMM");
    attncl__free(before);
    return status;
}

// Of the sum of y dy, for every float input and weight that build has added.
static attncl_status add_gradients(struct case_data *t, attncl_value y)
{
    attncl_value x[MAX_CASE_ARRAYS], dx[MAX_CASE_ARRAYS];
    const struct case_array *of[MAX_CASE_ARRAYS];
    const attncl_shape shape = attncl_graph_shape(t->graph, y);
    char name[sizeof t->arrays[0].name + 8];
    size_t n = 0;

    for (int i = 0; i < t->n_arrays; ++i)
        if (t->arrays[i].dtype == ATTNCL_F32) {
            x[n] = t->arrays[i].value;
            of[n++] = &t->arrays[i];
        }
    const attncl_value dy = case_input(t, "dy", 1, shape.rank, shape.dim);
    attncl_graph_gradient(t->graph, 1, &y, &dy, n, x, dx);
    for (size_t i = 0; i < n; ++i) {
        snprintf(name, sizeof name, "grad.%s", i ? of[i]->name : "first");
        attncl_graph_output(t->graph, name, dx[i]);
    }
    t->gradient = case_array_add(t, "grad.first", 0, of[0]->rank, of[0]->dim);
    return t->status;
}

static attncl_status open_graph(struct case_data *t)
{
    TRY(attncl_graph_create(t->ctx, &t->graph));
    const attncl_value y = t->c->family->build(t, &t->c->sizes);
    TRY(t->status);
    attncl_graph_output(t->graph, "y", y);
    TRY(attncl_graph_status(t->graph));
    if (t->c->sizes.backward)
        TRY(add_gradients(t, y));

    TRY(compile(t));
    for (int i = 0; i < t->n_arrays; ++i)
        if (t->arrays[i].is_input)
            TRY(attncl_graph_write(t->graph, t->arrays[i].name, t->arrays[i].data,
                                   case_array_bytes(&t->arrays[i])));
    return add_result(t);
}

attncl_status case_open(struct case_data *t)
{
    t->repeats = 1;
    return t->c->family->open ? t->c->family->open(t) : open_graph(t);
}

attncl_status case_prepare(struct case_data *t)
{
    return t->c->family->prepare ? t->c->family->prepare(t) : ATTNCL_OK;
}

attncl_status case_run(struct case_data *t)
{
    return t->c->family->run ? t->c->family->run(t) : attncl_graph_run(t->graph);
}

attncl_status case_read(struct case_data *t)
{
    if (t->c->family->read)
        return t->c->family->read(t);
    struct case_array *y = case_array_find(t, "y");
    if (t->gradient)
        TRY(attncl_graph_read(t->graph, t->gradient->name, t->gradient->data,
                              case_array_bytes(t->gradient)));
    return attncl_graph_read(t->graph, t->c->family->output ? t->c->family->output : "y", y->data,
                             case_array_bytes(y));
}

attncl_status case_settle(struct case_data *t)
{
    return t->c->family->settle ? t->c->family->settle(t) : case_read(t);
}

void case_close(struct case_data *t)
{
    if (t->c->family->close)
        t->c->family->close(t);
    attncl_graph_destroy(t->graph);
    for (int i = 0; i < t->n_arrays; ++i) {
        attncl_tensor_destroy(t->arrays[i].tensor);
        attncl__free(t->arrays[i].data);
    }
    t->graph = NULL;
    t->n_arrays = 0;
}

struct part part_spread(int64_t count, int64_t extent)
{
    if (count >= extent)
        return ALL;
    if (count == 1)
        return part_one(extent - 1);
    const int64_t step = (extent - 1) / (count - 1);
    return (struct part){extent - 1 - step * (count - 1), count, step};
}

static double element(const struct case_array *a, int64_t i)
{
    return a->dtype == ATTNCL_I32 ? ((const int32_t *)a->data)[i] : ((const float *)a->data)[i];
}

struct host *case_part(const struct case_data *t, const char *name, const struct part *parts)
{
    const struct case_array *a = case_array_find(t, name);
    int64_t dim[ATTNCL_MAX_RANK], at[ATTNCL_MAX_RANK] = {0};

    for (int axis = 0; axis < a->rank; ++axis)
        dim[axis] = parts[axis].count ? parts[axis].count : a->dim[axis];
    struct host *h = host_new(a->dtype, a->rank, dim);
    for (int64_t i = 0; i < h->count; ++i) {
        int64_t from = 0;
        for (int axis = 0; axis < a->rank; ++axis)
            from = from * a->dim[axis] +
                   (parts[axis].begin < 0 ? a->dim[axis] - 1 : parts[axis].begin) +
                   at[axis] * parts[axis].step;
        h->data[i] = element(a, from);
        for (int axis = a->rank - 1; axis >= 0 && ++at[axis] == dim[axis]; --axis)
            at[axis] = 0;
    }
    return h;
}

struct host *case_whole(const struct case_data *t, const char *name)
{
    struct part parts[ATTNCL_MAX_RANK];

    for (int axis = 0; axis < ATTNCL_MAX_RANK; ++axis)
        parts[axis] = ALL;
    return case_part(t, name, parts);
}

void check_compare(struct check *c, double sum_length, const struct host *got,
                   const struct host *want)
{
    c->sum_length = sum_length;
    if (got->count != want->count)
        c->difference = INFINITY;
    for (int64_t i = 0; i < got->count && i < want->count; ++i) {
        const double difference = fabs(got->data[i] - want->data[i]);
        if (!(difference <= c->difference)) // true for NaN
            c->difference = isfinite(difference) ? difference : INFINITY;
        c->magnitude = fmax(c->magnitude, fabs(want->data[i]));
    }
    c->n += got->count;
}

double check_error(const struct check *c)
{
    if (c->n == 0 || !isfinite(c->magnitude))
        return INFINITY;
    return c->magnitude > 0 ? c->difference / c->magnitude : c->difference;
}

double check_limit(const struct check *c)
{
    // A float sum of n terms is off by at most n u, u = 2^-24, times the sum of the terms'
    // magnitudes.  Terms of both signs make that sum larger than the result by about sqrt(n), but
    // their rounding errors cancel in the same way, so n u of the largest result is a generous
    // limit, and a missing or doubled term is far beyond it.  16 u are for exp, erf, division.
    return (16 + c->sum_length) * 0x1p-24;
}
