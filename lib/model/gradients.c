// SPDX-License-Identifier: MIT
//
// Gradients of a model: of a loss by its trained tensors, and those that inputs of a run request:
//
//     grad.NAME = d/dNAME of the sum over outputs o with a cotangent of sum(o * cotangent.o)

#include "model/model.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "base/quantised.h"
#include "base/struct.h"
#include "base/suggest.h"
#include "graph/graph.h"

// -- trained tensors.  A stack may have rows that no parameter of the file fills.  They must stay zero,
// so their gradient is zero.

size_t attncl__trained_count(const struct param_table *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; ++i)
        n += !t->list[i].fixed;
    return n;
}

const struct param *attncl__trained_at(const struct param_table *t, size_t i)
{
    for (size_t k = 0; k < t->n; ++k)
        if (!t->list[k].fixed && i-- == 0)
            return &t->list[k];
    return NULL;
}

// ERR_UNSUPPORTED if a parameter has 8 or 4 bits.
static attncl_status check_trained(const struct param_table *t)
{
    for (size_t i = 0; i < t->n; ++i)
        REQUIRE(!attncl__is_quantised(t->list[i].shape.dtype), ATTNCL_ERR_UNSUPPORTED,
                "parameter %s is in %s, which has no gradient; attncl convert --dtype f32 makes "
                "floats of it",
                t->list[i].name, attncl_dtype_name(t->list[i].shape.dtype));
    return ATTNCL_OK;
}

static attncl_value zero_rows(attncl_graph *g, attncl_shape like, int64_t n_rows)
{
    like.dim[0] = n_rows;
    return attncl__graph_zeros(g, like.rank, like.dim);
}

// Whether the tensor has rows outside all pieces.
static bool has_filler(attncl_shape shape, const struct param_piece *pieces, size_t n)
{
    int64_t n_rows = 0;
    for (size_t i = 0; i < n; ++i)
        n_rows += pieces[i].n_rows;
    return shape.rank > 0 && n_rows < shape.dim[0];
}

// Zeros the gradient's rows outside all pieces, which are in order.
static attncl_status zero_filler(attncl_graph *g, attncl_shape shape,
                                 const struct param_piece *pieces, size_t n_pieces,
                                 attncl_value *gradient)
{
    attncl_value *parts = attncl__alloc_array(2 * n_pieces + 1, sizeof *parts);
    int64_t next = 0;
    size_t n = 0;

    REQUIRE(parts, ATTNCL_ERR_NO_MEMORY, "gradients of %zu parameters", n_pieces);
    for (size_t i = 0; i < n_pieces; ++i) {
        const struct param_piece *piece = &pieces[i];
        assert(piece->first >= next);
        if (piece->first > next)
            parts[n++] = zero_rows(g, shape, piece->first - next);
        next = piece->first + piece->n_rows;
        parts[n++] = attncl_slice(g, *gradient, 0, piece->first, next);
    }
    if (next < shape.dim[0])
        parts[n++] = zero_rows(g, shape, shape.dim[0] - next);
    *gradient = attncl_concat(g, n, parts, 0);
    attncl__free(parts);
    return attncl_graph_status(g);
}

attncl_status attncl__trained_gradient(const struct param_table *t, attncl_graph *g,
                                       attncl_value loss, attncl_value *weights,
                                       attncl_value *gradients)
{
    size_t n = 0, piece = 0;

    TRY(check_trained(t));
    for (size_t i = 0; i < t->n; ++i)
        if (!t->list[i].fixed)
            weights[n++] = attncl_graph_tensor(g, t->list[i].tensor);
    attncl_graph_gradient(g, 1, &loss, NULL, n, weights, gradients);
    TRY(attncl_graph_status(g));
    n = 0;
    for (size_t i = 0; i < t->n; ++i) {
        const size_t first = piece;
        while (piece < t->n_pieces && t->pieces[piece].param == i)
            ++piece;
        const struct param_piece *pieces = t->pieces + first;
        if (!t->list[i].fixed && has_filler(t->list[i].shape, pieces, piece - first))
            TRY(zero_filler(g, t->list[i].shape, pieces, piece - first, &gradients[n]));
        n += !t->list[i].fixed;
    }
    return ATTNCL_OK;
}

size_t attncl_model_tensor_count(const attncl_model *model)
{
    return model ? attncl__trained_count(&model->params) : 0;
}

attncl_status attncl_model_tensor_at(const attncl_model *model, size_t i,
                                     attncl_model_tensor *tensor_ret)
{
    REQUIRE(model && tensor_ret, ATTNCL_ERR_ARGUMENT, "model or tensor_ret is NULL");
    const struct param *param = attncl__trained_at(&model->params, i);
    REQUIRE(param, ATTNCL_ERR_ARGUMENT, "trained tensor %zu: the model has %zu, counted from 0", i,
            attncl__trained_count(&model->params));
    const attncl_model_tensor tensor = {.struct_size = sizeof tensor,
                                        .name = param->name,
                                        .tensor = param->tensor,
                                        .shape = param->shape};
    return STRUCT_WRITE(attncl_model_tensor, tensor_ret, &tensor);
}

attncl_status attncl_model_gradient(attncl_model *model, attncl_graph *g, attncl_value loss,
                                    attncl_value *values_ret, attncl_value *gradients_ret)
{
    REQUIRE(model && g && values_ret && gradients_ret, ATTNCL_ERR_ARGUMENT,
            "model, g, values_ret or gradients_ret is NULL");
    return attncl__trained_gradient(&model->params, g, loss, values_ret, gradients_ret);
}

// -- gradients that inputs request

static const char prefix[] = "cotangent.";
enum { PREFIX_LENGTH = sizeof prefix - 1, NAME_BYTES = PARAM_NAME_BYTES + 16 };

const char *attncl__gradients_output(const char *name)
{
    return strncmp(name, prefix, PREFIX_LENGTH) == 0 ? name + PREFIX_LENGTH : NULL;
}

bool attncl__gradients_asked(const attncl_array *inputs, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        if (attncl__gradients_output(inputs[i].name))
            return true;
    return false;
}

// The values to differentiate, y, and those to differentiate by, x: one allocation, at `y`.
struct lists {
    attncl_value *y, *dy, *x, *dx;
    size_t n_y, n_x;
};

static attncl_status make_lists(const struct build *b, struct lists *l)
{
    const size_t n_y = b->n_inputs; // a cotangent each, at most
    const size_t n_x = attncl_graph_input_count(b->graph) + b->params.table->n;
    attncl_value *values = attncl__alloc_array(n_y + n_x, 2 * sizeof *values);

    REQUIRE(values, ATTNCL_ERR_NO_MEMORY, "gradients of %zu values", n_x);
    *l = (struct lists){
        .y = values, .dy = values + n_y, .x = values + 2 * n_y, .dx = values + 2 * n_y + n_x};
    return ATTNCL_OK;
}

// Lists float inputs first, then every trained tensor.
static void list_x(const struct build *b, struct lists *l)
{
    attncl_shape shape;

    for (size_t i = 0; attncl_graph_input_name(b->graph, i, &shape); ++i)
        if (shape.dtype == ATTNCL_F32)
            l->x[l->n_x++] = attncl__graph_input_value(b->graph, i);
    for (size_t i = 0; i < b->params.table->n; ++i)
        if (!b->params.table->list[i].fixed)
            l->x[l->n_x++] = attncl_graph_tensor(b->graph, b->params.table->list[i].tensor);
}

static attncl_status refuse_output(const struct build *b, const char *input, const char *output)
{
    struct suggestion s = {.word = output};
    const char *name;
    for (size_t i = 0; (name = attncl_graph_output_name(b->graph, i, NULL)) != NULL; ++i)
        attncl__suggestion_add(&s, name);
    return FAIL(ATTNCL_ERR_ARGUMENT, "input %.200s: there is no output %.200s%s", input, output,
                attncl__suggestion_text(&s, "outputs"));
}

static attncl_status list_y(struct build *b, const struct arch_class *arch, struct lists *l)
{
    for (size_t i = 0; i < b->n_inputs; ++i) {
        const attncl_array *a = &b->inputs[i];
        const char *name = attncl__gradients_output(a->name);
        if (!name)
            continue;
        const attncl_value y = attncl__graph_find_output(b->graph, name);
        if (!y.id)
            return refuse_output(b, a->name, name);
        const attncl_shape shape = attncl_graph_shape(b->graph, y);
        TRY(attncl__input_exact(b, a->name, shape.rank, shape.dim, 0, &l->dy[l->n_y]));
        if (!arch->detached || strcmp(arch->detached, name) != 0)
            l->y[l->n_y++] = y;
    }
    return ATTNCL_OK;
}

static void name_gradient(attncl_graph *g, const char *name, attncl_value value)
{
    char full[NAME_BYTES];

    snprintf(full, sizeof full, "grad.%s", name);
    attncl_graph_output(g, full, value);
}

// Names a tensor's gradient, or its pieces if it stacks several parameters of the file.
static void name_parameter(const struct build *b, size_t index, attncl_value gradient)
{
    const struct param_table *t = b->params.table;

    for (size_t i = 0; i < t->n_pieces; ++i) {
        const struct param_piece *piece = &t->pieces[i];
        if (piece->param != index)
            continue;
        const int64_t end = piece->first + piece->n_rows;
        name_gradient(b->graph, piece->name,
                      attncl__param_is_whole(t, piece)
                          ? gradient
                          : attncl_slice(b->graph, gradient, 0, piece->first, end));
    }
}

static void name_results(const struct build *b, const struct lists *l, size_t n_inputs)
{
    attncl_shape shape;
    const char *name;
    int k = 0;

    for (size_t i = 0; i < n_inputs; ++i) {
        name = attncl_graph_input_name(b->graph, i, &shape);
        if (shape.dtype == ATTNCL_F32)
            name_gradient(b->graph, name, l->dx[k++]);
    }
    for (size_t i = 0; i < b->params.table->n; ++i)
        if (!b->params.table->list[i].fixed)
            name_parameter(b, i, l->dx[k++]);
}

attncl_status attncl__gradients_build(struct build *b, const struct arch_class *arch)
{
    attncl_status status = ATTNCL_OK;
    const size_t n_inputs = attncl_graph_input_count(b->graph);
    struct lists l = {0};

    TRY(check_trained(b->params.table));
    TRY_DONE(make_lists(b, &l));
    list_x(b, &l);
    TRY_DONE(list_y(b, arch, &l));
    attncl_graph_gradient(b->graph, l.n_y, l.y, l.dy, l.n_x, l.x, l.dx);
    TRY_DONE(attncl_graph_status(b->graph));
    name_results(b, &l, n_inputs);
    status = attncl_graph_status(b->graph);
done:
    attncl__free(l.y);
    return status;
}
