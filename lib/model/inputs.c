// SPDX-License-Identifier: MIT
//
// Inputs of a model's graph.

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/desc.h"
#include "base/try.h"
#include "model/inputs.h"

const attncl_array *attncl__input_find(const struct build *b, const char *name)
{
    for (size_t i = 0; i < b->n_inputs; ++i)
        if (b->inputs[i].name && strcmp(b->inputs[i].name, name) == 0)
            return &b->inputs[i];
    return NULL;
}

int64_t attncl__input_axis(const struct build *b, char letter)
{
    assert(b->axes.bound[letter - 'A']);
    return b->axes.extent[letter - 'A'];
}

static attncl_status refuse_shape(const struct build *b, const struct port *port,
                                  const attncl_array *a, const struct tensor_desc *d)
{
    struct strbuf expected = STRBUF_EMPTY;
    attncl__port_write_expected(port, b->config, &b->axes, a->rank, &expected);
    const attncl_status status = expected.failed
                                     ? FAIL(ATTNCL_ERR_NO_MEMORY, "the shape of input %s", a->name)
                                     : FAIL(ATTNCL_ERR_SHAPE, "input %s has shape %s, expected %s",
                                            a->name, SHAPE(d), expected.data);
    attncl__strbuf_free(&expected);
    return status;
}

static bool takes(enum port_type type, attncl_dtype dtype)
{
    if (type == PORT_F32)
        return attncl__is_float(dtype);
    if (type == PORT_MASK)
        return dtype == ATTNCL_BOOL || dtype == ATTNCL_U8;
    return dtype == ATTNCL_I32 || dtype == ATTNCL_I64;
}

static attncl_status declare(struct build *b, const struct port *port, const attncl_array *a,
                             attncl_value *ret)
{
    static const attncl_dtype dtypes[] = {
        [PORT_F32] = ATTNCL_F32, [PORT_INT] = ATTNCL_I32, [PORT_MASK] = ATTNCL_U8};
    struct tensor_desc d;
    const attncl_status status = attncl__desc_make(a->dtype, a->rank, a->dim, &d);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("input %s", a->name);
        return status;
    }
    if (!attncl__port_fits(port, b->config, a, &b->axes))
        return refuse_shape(b, port, a, &d);
    REQUIRE(takes(port->type, a->dtype), ATTNCL_ERR_DTYPE, "input %s has type %s, expected %s",
            a->name, attncl_dtype_name(a->dtype), attncl__port_type_text(port->type));
    if (port->type == PORT_INDEX)
        *ret = attncl_graph_index_input(b->graph, a->name, a->rank, a->dim, 0,
                                        attncl__port_below(port, b->config, &b->axes));
    else
        *ret = attncl_graph_input(b->graph, a->name, dtypes[port->type], a->rank, a->dim);
    return ATTNCL_OK;
}

attncl_status attncl__input(struct build *b, const char *name, attncl_value *ret)
{
    const struct port *port = attncl__port_find(b->ports, b->config, name);
    const attncl_array *a = attncl__input_find(b, name);
    assert(port);
    *ret = ATTNCL_NONE_VALUE;
    REQUIRE(a || port->optional, ATTNCL_ERR_ARGUMENT, "input %s is missing", name);
    return a ? declare(b, port, a, ret) : ATTNCL_OK;
}

// -- inputs that no architecture declares

static attncl_status declare_exact(struct build *b, enum port_type type, const char *name, int rank,
                                   const int64_t *dim, const attncl_array **ret)
{
    const attncl_array *a = *ret = attncl__input_find(b, name);
    struct tensor_desc d, want;
    REQUIRE(a, ATTNCL_ERR_ARGUMENT, "input %s is missing", name);
    attncl_status status = attncl__desc_make(a->dtype, a->rank, a->dim, &d);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("input %s", name);
        return status;
    }
    TRY(attncl__desc_make(a->dtype, rank, dim, &want));
    REQUIRE(attncl__desc_same_shape(&d, &want), ATTNCL_ERR_SHAPE,
            "input %s has shape %s, expected %s", name, SHAPE(&d), SHAPE(&want));
    REQUIRE(takes(type, a->dtype), ATTNCL_ERR_DTYPE, "input %s has type %s, expected %s", name,
            attncl_dtype_name(a->dtype), attncl__port_type_text(type));
    return ATTNCL_OK;
}

attncl_status attncl__input_real(struct build *b, const char *name, int rank, const int64_t *dim,
                                 attncl_value *ret)
{
    const attncl_array *a;
    TRY(declare_exact(b, PORT_F32, name, rank, dim, &a));
    *ret = attncl_graph_input(b->graph, name, ATTNCL_F32, a->rank, a->dim);
    return ATTNCL_OK;
}

attncl_status attncl__input_index(struct build *b, const char *name, int rank, const int64_t *dim,
                                  int64_t high, attncl_value *ret)
{
    const attncl_array *a;
    TRY(declare_exact(b, PORT_INDEX, name, rank, dim, &a));
    *ret = attncl_graph_index_input(b->graph, name, a->rank, a->dim, 0, high);
    return ATTNCL_OK;
}

attncl_status attncl__check_length(const char *name, int64_t n_seq, int64_t limit)
{
    REQUIRE(limit == 0 || n_seq <= limit, ATTNCL_ERR_SHAPE,
            "input %s has length %" PRId64 ", the model takes at most %" PRId64, name, n_seq,
            limit);
    return ATTNCL_OK;
}

void attncl__output(struct build *b, const char *name, attncl_value value)
{
    if (!b->for_loss)
        attncl_graph_output(b->graph, name, value);
    else if (strcmp(name, "output") == 0)
        b->scores = value;
}
