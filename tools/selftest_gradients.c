// SPDX-License-Identifier: MIT
//
// Checks of attncl selftest: the gradient of a language model's loss by each trained tensor against finite differences.

#include <math.h>
#include <stdlib.h>

#include "attncl/parameters.h"
#include "attncl/tensor.h"
#include "selftest.h"

enum { POSITIONS = 12, BATCH = 2, VOCABULARY = 40, NAME_BYTES = 24 };

// Step and tolerances of a difference; the loss has an error of about 1e-6 and is curved.
static const double step = 0.01, relative = 0.02, absolute = 4e-4;

struct training {
    attncl_model *model;
    attncl_graph *graph; // outputs: loss, and the gradients d0, d1 ... of the trained tensors
    struct outcome *outcome;
};

static attncl_status build_graph(struct training *t, attncl_context *context)
{
    const attncl_array inputs[] = {
        {.name = "tokens", .dtype = ATTNCL_I32, .rank = 2, .dim = {POSITIONS, BATCH}},
        {.name = "targets", .dtype = ATTNCL_I32, .rank = 2, .dim = {POSITIONS, BATCH}}};
    const size_t n = attncl_model_tensor_count(t->model);
    attncl_value *const values = calloc(2 * n, sizeof *values);
    attncl_value loss;
    attncl_status status = ATTNCL_ERR_NO_MEMORY;

    if (values)
        status = attncl_graph_create(context, &t->graph);
    if (status == ATTNCL_OK)
        status = attncl_model_loss(t->model, t->graph, NULL, inputs, 2, &loss);
    if (status == ATTNCL_OK)
        status = attncl_model_gradient(t->model, t->graph, loss, values, values + n);
    if (status == ATTNCL_OK) {
        attncl_graph_output(t->graph, "loss", loss);
        for (size_t i = 0; i < n; i++) {
            char name[NAME_BYTES];
            snprintf(name, sizeof name, "d%zu", i);
            attncl_graph_output(t->graph, name, values[n + i]);
        }
        status = attncl_graph_compile(t->graph, NULL);
    }
    free(values);
    return status;
}

static attncl_status write_tokens(const struct training *t)
{
    int32_t tokens[POSITIONS + 1][BATCH];

    for (int i = 0; i <= POSITIONS; i++)
        for (int b = 0; b < BATCH; b++)
            tokens[i][b] = (i * i + 5 * i + 17 * b) % VOCABULARY;
    const size_t bytes = POSITIONS * sizeof tokens[0];
    const attncl_status status = attncl_graph_write(t->graph, "tokens", tokens[0], bytes);
    return status == ATTNCL_OK ? attncl_graph_write(t->graph, "targets", tokens[1], bytes) : status;
}

static attncl_status run_loss(const struct training *t, float *loss_ret)
{
    const attncl_status status = attncl_graph_run(t->graph);
    return status == ATTNCL_OK ? attncl_graph_read(t->graph, "loss", loss_ret, sizeof *loss_ret)
                               : status;
}

// A pseudorandom sign for element i.
static float sign_at(size_t i)
{
    return (i * 2654435761u >> 16) % 2 ? 1.0f : -1.0f;
}

// Measures the losses by[2] with each of the n elements of x moved by -step and +step times its sign.  moved: [n],
// scratch.
static attncl_status measure_losses(const struct training *t, attncl_tensor *tensor, const float *x,
                                    float *moved, size_t n, float by[2])
{
    attncl_status status = ATTNCL_OK;

    for (int side = 0; side < 2 && status == ATTNCL_OK; side++) {
        for (size_t i = 0; i < n; i++)
            moved[i] = x[i] + (float)(side ? step : -step) * sign_at(i);
        status = attncl_tensor_write(tensor, moved, n * sizeof *moved);
        if (status == ATTNCL_OK)
            status = run_loss(t, &by[side]);
    }
    const attncl_status restored = attncl_tensor_write(tensor, x, n * sizeof *x);
    return status == ATTNCL_OK ? restored : status;
}

static size_t count_elements(const attncl_shape *shape)
{
    size_t n = 1;

    for (int i = 0; i < shape->rank; i++)
        n *= (size_t)shape->dim[i];
    return n;
}

// Checks one tensor, with gradient d, along the direction of the signs.
static attncl_status check_tensor(const struct training *t, const attncl_model_tensor *weight,
                                  const float *d)
{
    const size_t n = count_elements(&weight->shape);
    float *const x = malloc(2 * n * sizeof *x);
    double got = 0, squares = 0;
    float by[2];

    if (!x)
        return ATTNCL_ERR_NO_MEMORY;
    attncl_status status = attncl_tensor_read(weight->tensor, x, n * sizeof *x);
    if (status == ATTNCL_OK)
        status = measure_losses(t, weight->tensor, x, x + n, n, by);
    free(x);
    if (status != ATTNCL_OK)
        return status;
    for (size_t i = 0; i < n; i++) {
        got += (double)d[i] * (double)sign_at(i);
        squares += (double)d[i] * (double)d[i];
    }
    const double want = ((double)by[1] - (double)by[0]) / (2 * step);
    outcome_compare(t->outcome, weight->name, 0, got, want,
                    absolute + relative * (fabs(want) + sqrt(squares)));
    return ATTNCL_OK;
}

// All gradients, one after another; the caller frees them.  NULL: no memory.
static float *read_gradients(const struct training *t, attncl_status *status)
{
    attncl_model_tensor weight = ATTNCL_MODEL_TENSOR_INIT;
    const size_t n = attncl_model_tensor_count(t->model);
    size_t total = 0, at = 0;
    float loss;

    for (size_t i = 0; i < n && attncl_model_tensor_at(t->model, i, &weight) == ATTNCL_OK; i++)
        total += count_elements(&weight.shape);
    float *const d = malloc(total * sizeof *d);
    *status = d ? run_loss(t, &loss) : ATTNCL_ERR_NO_MEMORY;
    for (size_t i = 0; i < n && *status == ATTNCL_OK; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "d%zu", i);
        *status = attncl_model_tensor_at(t->model, i, &weight);
        const size_t count = count_elements(&weight.shape);
        if (*status == ATTNCL_OK)
            *status = attncl_graph_read(t->graph, name, d + at, count * sizeof *d);
        at += count;
    }
    return d;
}

static attncl_status check_tensors(const struct training *t)
{
    attncl_model_tensor weight = ATTNCL_MODEL_TENSOR_INIT;
    attncl_status status = ATTNCL_OK;
    size_t at = 0;
    float *const d = read_gradients(t, &status);

    for (size_t i = 0; i < attncl_model_tensor_count(t->model) && status == ATTNCL_OK; i++) {
        status = attncl_model_tensor_at(t->model, i, &weight);
        if (status == ATTNCL_OK)
            status = check_tensor(t, &weight, d + at);
        at += count_elements(&weight.shape);
    }
    free(d);
    return status;
}

int check_gradients(const struct model_check *d, attncl_context *context, struct outcome *ret)
{
    struct training t = {.outcome = ret};

    *ret = (struct outcome){.worst = 0};
    snprintf(ret->op, sizeof ret->op, "%s", d->op);
    attncl_status status = attncl_model_create(context, "lm", d->config, 1, &t.model);
    if (status == ATTNCL_OK)
        status = build_graph(&t, context);
    if (status == ATTNCL_OK)
        status = write_tokens(&t);
    if (status == ATTNCL_OK)
        status = check_tensors(&t);
    if (status == ATTNCL_ERR_NO_MEMORY)
        snprintf(ret->message, sizeof ret->message, "out of memory");
    else if (status != ATTNCL_OK)
        snprintf(ret->message, sizeof ret->message, "%s", attncl_last_error());
    attncl_graph_destroy(t.graph);
    attncl_model_destroy(t.model);
    return TOOL_OK;
}
