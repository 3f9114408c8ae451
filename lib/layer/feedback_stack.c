// SPDX-License-Identifier: MIT
//
// The key and value maps of all layers of a feedback transformer, stacked.
//
//   [key of layer 0; value of layer 0; key of layer 1 ...]   [2 N C, C], biases [2 N C]
//
// A step's memory is then projected by one GEMM instead of 2 N.  Worth a copy of the weights where
// many steps share it.

#include "base/alloc.h"
#include "layer/feedback_internal.h"

static bool has_biases(const struct feedback_model *p)
{
    for (int64_t i = 0; i < p->n_layers; ++i)
        if (attncl__given(p->layers[i].attn.value_bias))
            return true;
    return false;
}

static void fill(attncl_graph *g, const struct feedback_model *p, int64_t width,
                 attncl_value *weights, attncl_value *biases)
{
    const attncl_value none = has_biases(p) ? attncl__graph_zeros(g, 1, &width) : ATTNCL_NONE_VALUE;

    for (int64_t i = 0; i < p->n_layers; ++i) {
        const attncl_feedback_params *attn = &p->layers[i].attn;
        weights[2 * i] = attn->key_weight;
        weights[2 * i + 1] = attn->value_weight;
        biases[2 * i] = none;
        biases[2 * i + 1] = attncl__given(attn->value_bias) ? attn->value_bias : none;
    }
}

void attncl__feedback_stack(attncl_graph *g, struct feedback_model *p, int64_t width)
{
    const int64_t n = 2 * p->n_layers;
    attncl_value *list = attncl__alloc_array((size_t)(2 * n), sizeof *list);

    if (!list) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "maps of %lld layers", (long long)p->n_layers);
        return;
    }
    fill(g, p, width, list, list + n);
    p->key_value_weight = attncl_concat(g, (size_t)n, list, 0);
    if (has_biases(p))
        p->key_value_bias = attncl_concat(g, (size_t)n, list + n, 0);
    attncl__free(list);
}
