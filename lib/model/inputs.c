// SPDX-License-Identifier: MIT
//
// Inputs and outputs of a model's graph, and its dropouts.

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/inputs.h"

const attncl_array *attncl__input_find(const attncl_array *inputs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; ++i)
        if (inputs[i].name && strcmp(inputs[i].name, name) == 0)
            return &inputs[i];
    return NULL;
}

void attncl__inputs_begin(struct build *b, const struct port *ports, struct config_values config)
{
    b->ports = ports;
    b->config = config;
    b->n_shapes = 0;
    attncl__axes_init(&b->axes);
}

int64_t attncl__input_axis(const struct build *b, char letter)
{
    const int64_t extent = attncl__graph_failed(b->graph) ? 1 : b->axes.of[(unsigned char)letter];
    assert(extent >= 0);
    return extent;
}

static bool accepts_type(enum port_type type, attncl_dtype dtype)
{
    if (type == PORT_F32)
        return attncl__is_float(dtype);
    if (type == PORT_MASK)
        return dtype == ATTNCL_BOOL || dtype == ATTNCL_U8;
    return dtype == ATTNCL_I32 || dtype == ATTNCL_I64;
}

static attncl_status read_shape(const attncl_array *a, struct tensor_desc *ret)
{
    return attncl__prefix_failure(attncl__desc_make(a->dtype, a->rank, a->dim, ret), "input %s",
                                  a->name);
}

static attncl_status match_shape(struct build *b, const struct port *port, const attncl_array *a)
{
    const bool is_wildcard = strchr(port->name, '*') != NULL; // its inputs share no axes
    struct input_shape own, *shape = is_wildcard ? &own : &b->shapes[b->n_shapes++];
    struct axes own_axes, *axes = is_wildcard ? &own_axes : &b->axes;

    assert(b->n_shapes <= BUILD_MAX_INPUTS);
    TRY(read_shape(a, &shape->desc));
    if (is_wildcard)
        attncl__axes_init(axes);
    snprintf(shape->name, sizeof shape->name, "input %s", a->name);
    attncl__port_shape(port, b->config, a->rank, shape->shape);
    return attncl__axes_match(axes, shape->shape, shape->name, &shape->desc);
}

// The shape has been checked.  below: bound of an index.
static attncl_status add_input(struct build *b, const attncl_array *a, enum port_type type,
                               int64_t below, attncl_value *ret)
{
    static const attncl_dtype dtypes[] = {
        [PORT_F32] = ATTNCL_F32, [PORT_INT] = ATTNCL_I32, [PORT_MASK] = ATTNCL_U8};

    REQUIRE(accepts_type(type, a->dtype), ATTNCL_ERR_DTYPE, "input %s has type %s, expected %s",
            a->name, attncl_dtype_name(a->dtype), attncl__port_type_text(type));
    *ret = type == PORT_INDEX
               ? attncl_graph_index_input(b->graph, a->name, a->rank, a->dim, 0, below)
               : attncl_graph_input(b->graph, a->name, dtypes[type], a->rank, a->dim);
    return ATTNCL_OK;
}

static attncl_status declare_input(struct build *b, const struct port *port, const attncl_array *a,
                                   attncl_value *ret)
{
    TRY(match_shape(b, port, a));
    return add_input(b, a, port->type, attncl__port_below(port, b->config, &b->axes), ret);
}

attncl_value attncl__input(struct build *b, const char *name)
{
    attncl_value value = ATTNCL_NONE_VALUE;
    if (attncl__graph_failed(b->graph))
        return value;
    const struct port *port = attncl__port_find(b->ports, b->config, name);
    const attncl_array *a = attncl__input_find(b->inputs, b->n_inputs, name);
    assert(port);
    if (!a)
        return port->optional
                   ? value
                   : GRAPH_FAIL(b->graph, ATTNCL_ERR_ARGUMENT, "input %s is missing", name);
    const attncl_status status = declare_input(b, port, a, &value);
    return status == ATTNCL_OK ? value : attncl__graph_keep_failure(b->graph, status);
}

// -- inputs that no architecture declares

attncl_status attncl__input_exact(struct build *b, const char *name, int rank, const int64_t *dim,
                                  int64_t below, attncl_value *ret)
{
    const attncl_array *a = attncl__input_find(b->inputs, b->n_inputs, name);
    struct tensor_desc d, want;
    REQUIRE(a, ATTNCL_ERR_ARGUMENT, "input %s is missing", name);
    TRY(read_shape(a, &d));
    TRY(attncl__desc_make(a->dtype, rank, dim, &want));
    REQUIRE(attncl__desc_same_shape(&d, &want), ATTNCL_ERR_SHAPE, "input %s is %s, must be %s",
            name, SHAPE(&d), SHAPE(&want));
    return add_input(b, a, below > 0 ? PORT_INDEX : PORT_F32, below, ret);
}

void attncl__check_length(struct build *b, const char *name, char axis, int64_t limit)
{
    const int64_t n = attncl__input_axis(b, axis);
    if (limit > 0 && n > limit)
        GRAPH_FAIL(b->graph, ATTNCL_ERR_SHAPE,
                   "input %s has length %" PRId64 ", the model takes at most %" PRId64, name, n,
                   limit);
}

void attncl__check_steps(struct build *b, const char *name, char axis)
{
    if (attncl__input_axis(b, axis) < 1)
        GRAPH_FAIL(b->graph, ATTNCL_ERR_SHAPE, "input %s has length 0, must be at least 1", name);
}

attncl_value attncl__build_fail(struct build *b, attncl_status status)
{
    if (!b->graph)
        b->params.status = b->params.status != ATTNCL_OK ? b->params.status : status;
    else if (!attncl__graph_failed(b->graph))
        attncl__graph_keep_failure(b->graph, status);
    return ATTNCL_NONE_VALUE;
}

// -- dropout

attncl_dropout_desc attncl__next_dropout(attncl_dropout_desc *next, int batch_axis)
{
    attncl_dropout_desc desc = ATTNCL_DROPOUT_DESC_INIT;
    if (next->p == 0)
        return desc;
    desc = *next;
    desc.batch_axis = batch_axis;
    ++next->site;
    return desc;
}

attncl_value attncl__add_dropout(attncl_graph *g, attncl_dropout_desc *next, int batch_axis,
                                 attncl_value y, attncl_value residual)
{
    attncl_dropout_desc desc = attncl__next_dropout(next, batch_axis);
    desc.residual = residual;
    return attncl_dropout(g, y, &desc);
}
