// SPDX-License-Identifier: MIT
//
// Dropout as one node, or as none.

#include "layer/layer.h"

bool attncl__layer_dropout(attncl_graph *g, const attncl_dropout_desc *given,
                           attncl_dropout_desc *ret, struct dropout_fwd_params *params_ret)
{
    *ret = (attncl_dropout_desc)ATTNCL_DROPOUT_DESC_INIT;
    *params_ret = (struct dropout_fwd_params){0};
    if (given && !LAYER_STRUCT(g, attncl_dropout_desc, ret, given))
        return false;
    *params_ret = (struct dropout_fwd_params){
        ret->p, ret->seed, ret->site, ret->batch_axis, ret->batch_begin, ret->batch_total,
    };
    return !attncl__graph_failed(g);
}

attncl_value attncl_dropout(attncl_graph *g, attncl_value x, const attncl_dropout_desc *desc)
{
    struct dropout_fwd_params params;
    attncl_dropout_desc d;
    if (!attncl__layer_dropout(g, desc, &d, &params))
        return ATTNCL_NONE_VALUE;
    if (d.p == 0)
        return attncl__given(d.residual) ? attncl_add(g, x, d.residual) : x;
    return attncl__graph_add(g, &attncl__op_dropout_fwd, &params,
                             IN(x, d.step, d.position, d.residual));
}
