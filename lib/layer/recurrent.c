// SPDX-License-Identifier: MIT
//
// Recurrent units.

#include <stdio.h>

#include "base/alloc.h"
#include "layer/layer.h"

attncl_value attncl__layer_row(attncl_graph *g, attncl_value x, int axis, int64_t at)
{
    struct tensor_desc d;
    if (!attncl__layer_shape(g, x, "x", &d))
        return ATTNCL_NONE_VALUE;
    const int other = 1 - axis;
    const struct tensor_desc view = {
        .dtype = d.dtype,
        .rank = 2,
        .dim = {d.dim[other], d.dim[2]},
        .stride = {d.stride[other], d.stride[2]},
        .start = at * d.stride[axis],
    };
    return attncl__graph_view(g, x, &view);
}

attncl_value attncl__layer_step_axis(attncl_graph *g, attncl_value x, const char *name, int axis)
{
    struct tensor_desc d;
    if (!attncl__layer_axes(g, x, name, 2, "[B, C]", &d))
        return ATTNCL_NONE_VALUE;
    const int64_t dim[3] = {axis == 0 ? 1 : d.dim[0], axis == 0 ? d.dim[0] : 1, d.dim[1]};
    return attncl_reshape(g, x, 3, dim);
}

static attncl_value add_gru(attncl_graph *g, const attncl_gru_params *params, attncl_value xi,
                            attncl_value h0, attncl_value lens, attncl_layout layout)
{
    const struct gru_fwd_params gru = {.layout = (int32_t)layout,
                                       .reversed = params->reversed != 0,
                                       .plain = (int32_t)params->plain};
    return attncl__graph_add(g, &attncl__op_gru_fwd, &gru,
                             IN(xi, params->weight_hh, params->bias_hh, h0, lens));
}

attncl_value attncl__gru_cell(attncl_graph *g, const attncl_gru_params *params, attncl_value xi,
                              attncl_value h)
{
    const attncl_value y = add_gru(g, params, attncl__layer_step_axis(g, xi, "xi", 0), h,
                                   ATTNCL_NONE_VALUE, ATTNCL_LAYOUT_TIME_FIRST);
    return attncl__layer_row(g, y, 0, 0);
}

attncl_value attncl_gru_cell(attncl_graph *g, const attncl_gru_params *params, attncl_value xi,
                             attncl_value h)
{
    attncl_gru_params p = ATTNCL_GRU_PARAMS_INIT;
    return LAYER_STRUCT(g, attncl_gru_params, &p, params) ? attncl__gru_cell(g, &p, xi, h)
                                                          : ATTNCL_NONE_VALUE;
}

static attncl_value drop_sequence(attncl_graph *g, const attncl_dropout_desc *desc, attncl_value x,
                                  attncl_layout layout)
{
    struct dropout_fwd_params params;
    attncl_dropout_desc d;
    if (!attncl__layer_dropout(g, desc, &d, &params))
        return x;
    d.batch_axis = layout == ATTNCL_LAYOUT_BATCH_FIRST ? 0 : 1;
    return attncl_dropout(g, x, &d);
}

attncl_value attncl_gru(attncl_graph *g, const attncl_gru_params *params, attncl_value x,
                        attncl_value h0, attncl_layout layout, attncl_value *last_ret)
{
    const int steps = layout == ATTNCL_LAYOUT_BATCH_FIRST ? 1 : 0;
    attncl_gru_params p = ATTNCL_GRU_PARAMS_INIT;
    struct tensor_desc d;
    if (last_ret)
        *last_ret = ATTNCL_NONE_VALUE;
    if (!LAYER_STRUCT(g, attncl_gru_params, &p, params) ||
        !attncl__layer_axes(g, x, "x", 3, steps ? "[B, T, I]" : "[T, B, I]", &d))
        return ATTNCL_NONE_VALUE;
    if (d.dim[steps] < 1)
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "x is %s, T must be at least 1", SHAPE(&d));

    x = drop_sequence(g, p.dropout, x, layout);
    const attncl_value xi = attncl_linear(g, x, p.weight_ih, p.bias_ih);
    const attncl_value y = add_gru(g, &p, xi, h0, p.lens, layout);
    if (last_ret)
        *last_ret = attncl__layer_row(g, y, steps, p.reversed ? 0 : d.dim[steps] - 1);
    return p.lens.id ? attncl__graph_result(g, y, 2) : y;
}

attncl_gru_params *attncl__gru_layers_read(attncl_graph *g, const attncl_gru_params *layers,
                                           size_t n_layers, const attncl_value *states)
{
    if (attncl__graph_failed(g))
        return NULL;
    if (n_layers < 1 || !layers || !states) {
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%zu recurrent layers, must be at least 1",
                   layers && states ? n_layers : 0);
        return NULL;
    }
    return LAYER_STRUCTS(g, attncl_gru_params, layers, n_layers);
}

void attncl__gru_layer_push(attncl_graph *g, size_t k)
{
    char name[24];
    snprintf(name, sizeof name, "l%zu", k);
    attncl_graph_push_scope(g, name);
}

attncl_value attncl_gru_layers(attncl_graph *g, const attncl_gru_params *layers, size_t n_layers,
                               attncl_value x, attncl_layout layout, attncl_value *states)
{
    attncl_gru_params *list = attncl__gru_layers_read(g, layers, n_layers, states);
    if (!list)
        return ATTNCL_NONE_VALUE;
    for (size_t k = 0; k < n_layers;) {
        const bool paired = k + 1 < n_layers && !list[k].reversed && list[k + 1].reversed;
        attncl_value y[2];
        for (int i = 0; i <= paired; ++i, ++k) {
            attncl__gru_layer_push(g, k);
            y[i] = attncl_gru(g, &list[k], x, states[k], layout, &states[k]);
            attncl_graph_pop_scope(g);
        }
        x = paired ? attncl_concat(g, 2, y, 2) : y[0];
    }
    attncl__free(list);
    return x;
}
