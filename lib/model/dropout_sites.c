// SPDX-License-Identifier: MIT
// Numbers the places where a model drops elements in training.

#include "model/inputs.h"

attncl_dropout_desc attncl__dropout_next(struct dropout_sites *sites, int batch_axis)
{
    attncl_dropout_desc desc = ATTNCL_DROPOUT_DESC_INIT;
    if (sites->p == 0)
        return desc;
    desc.p = sites->p;
    desc.seed = sites->seed;
    desc.site = sites->n++;
    desc.step = sites->step;
    desc.batch_axis = batch_axis;
    desc.batch_begin = sites->batch_begin;
    desc.batch_total = sites->batch_total;
    return desc;
}

attncl_value attncl__dropout_add(attncl_graph *g, struct dropout_sites *sites, int batch_axis,
                                 attncl_value y, attncl_value residual)
{
    attncl_dropout_desc desc = attncl__dropout_next(sites, batch_axis);
    desc.residual = residual;
    return attncl_dropout(g, y, &desc);
}
