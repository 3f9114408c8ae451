// SPDX-License-Identifier: MIT
//
// grad.NAME = d/dNAME of the sum over outputs o of sum(o * cotangent.o), an output without a
// cotangent counting 0.

#include "model/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "attncl/gradient.h"
#include "graph/graph.h"

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

// The values to differentiate, y, and those to differentiate by, x: one allocation, which begins at `y`.
struct lists {
    attncl_value *y, *dy, *x, *dx;
    size_t n_y, n_x, n_inputs; // n_inputs: of the x; the parameters follow
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

// Float inputs first, then every parameter's tensor.
static void list_x(const struct build *b, struct lists *l)
{
    attncl_shape shape;

    for (size_t i = 0; attncl_graph_input_name(b->graph, i, &shape); ++i)
        if (shape.dtype == ATTNCL_F32)
            l->x[l->n_x++] = attncl__graph_input_value(b->graph, i);
    l->n_inputs = l->n_x;
    for (size_t i = 0; i < b->params.table->n; ++i)
        if (!b->params.table->list[i].fixed)
            l->x[l->n_x++] = attncl_graph_tensor(b->graph, b->params.table->list[i].tensor);
}

// A detached output has no gradient.
static bool is_detached(const struct arch_class *arch, const char *name)
{
    return arch->detached && strcmp(arch->detached, name) == 0;
}

static attncl_status list_y(struct build *b, const struct arch_class *arch, struct lists *l)
{
    for (size_t i = 0; i < b->n_inputs; ++i) {
        const attncl_array *a = &b->inputs[i];
        const char *name = attncl__gradients_output(a->name);
        if (!name)
            continue;
        const attncl_value y = attncl__graph_output_named(b->graph, name);
        REQUIRE(y.id, ATTNCL_ERR_ARGUMENT, "input %s: there is no output %s", a->name, name);
        const attncl_shape shape = attncl_graph_shape(b->graph, y);
        TRY(attncl__input_exact(b, a->name, shape.rank, shape.dim, 0, &l->dy[l->n_y]));
        if (!is_detached(arch, name))
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

// A parameter that stands for several of the file's is cut into theirs.
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

    TRY(attncl__trained_check(b->params.table));
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
