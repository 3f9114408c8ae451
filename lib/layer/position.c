// SPDX-License-Identifier: MIT
//
// Sinusoidal positions (Vaswani et al. 2017, 3.5):
//
//     P[p, 2i] = sin(p / 10000^(2i / C)),   P[p, 2i + 1] = cos(same)

#include <inttypes.h>
#include <math.h>

#include "base/alloc.h"
#include "layer/layer.h"

void attncl__sinusoid_fill(float *table, int64_t n_positions, int64_t n_channels)
{
    for (int64_t c = 0; c < n_channels; c += 2) {
        const double frequency = pow(10000.0, -(double)c / (double)n_channels);
        for (int64_t p = 0; p < n_positions; ++p) {
            float *pair = table + p * n_channels + c;
            pair[0] = (float)sin((double)p * frequency);
            if (c + 1 < n_channels) // an odd width has no last cosine
                pair[1] = (float)cos((double)p * frequency);
        }
    }
}

attncl_value attncl_sinusoid(attncl_graph *g, int64_t n_positions, int64_t n_channels)
{
    const int64_t dim[2] = {n_positions, n_channels};
    struct tensor_desc d;
    if (attncl__graph_failed(g))
        return ATTNCL_NONE_VALUE;
    const attncl_status status = attncl__desc_make(ATTNCL_F32, 2, dim, &d);
    if (status != ATTNCL_OK)
        return GRAPH_FAIL(g, status, "%s", attncl_last_error());
    float *table = attncl__alloc_array((size_t)attncl__desc_count(&d), sizeof *table);
    if (!table)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "positional table %s", SHAPE(&d));
    attncl__sinusoid_fill(table, n_positions, n_channels);
    const attncl_value value = attncl_graph_constant(g, ATTNCL_F32, 2, dim, table);
    attncl__free(table);
    return value;
}

attncl_value attncl_add_positions(attncl_graph *g, attncl_value x, attncl_value table,
                                  attncl_layout layout)
{
    const struct add_positions_fwd_params params = {(int32_t)layout};
    return attncl__graph_add(g, &attncl__op_add_positions_fwd, &params, IN(x, table));
}

attncl_value attncl_add_position_at(attncl_graph *g, attncl_value x, attncl_value table,
                                    attncl_value position)
{
    return attncl__graph_add(g, &attncl__op_add_position_at_fwd, NULL, IN(x, table, position));
}
