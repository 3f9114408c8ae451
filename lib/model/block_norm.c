// SPDX-License-Identifier: MIT
//
// The parameters of layer norms.

#include "model/block_layers.h"

struct norm_params attncl__norm_params(struct params *p, const char *name, int64_t width)
{
    struct norm_params norm = {.name = name};
    attncl__params_enter(p, "%s", name);
    norm.weight = PARAM(p, "weight", INIT_CONSTANT(1), width);
    norm.bias = PARAM(p, "bias", INIT_CONSTANT(0), width);
    attncl__params_leave(p);
    return norm;
}

struct norm_params attncl__norm_optional(struct params *p, const char *name, int64_t width)
{
    struct norm_params norm = {.name = name};
    attncl__params_enter(p, "%s", name);
    const bool half = attncl__param_given(p, "weight") != attncl__param_given(p, "bias");
    const struct param_init none = INIT_CONSTANT(0); // a new model has no such norm
    norm.weight = half ? PARAM(p, "weight", none, width) : PARAM_OPTIONAL(p, "weight", width);
    norm.bias = half ? PARAM(p, "bias", none, width) : PARAM_OPTIONAL(p, "bias", width);
    attncl__params_leave(p);
    return norm;
}

attncl_value attncl__norm(struct build *b, struct norm_params norm, double eps, attncl_value x)
{
    attncl_graph_push_scope(b->graph, norm.name);
    const attncl_value y = attncl_layer_norm(b->graph, x, norm.weight, norm.bias, (float)eps);
    attncl_graph_pop_scope(b->graph);
    return y;
}
