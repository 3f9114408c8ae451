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

// [2, width]: cosines, and sines with their signs.
static attncl_value rotation_table(attncl_graph *g, int64_t width, double delta)
{
    const int64_t dim[2] = {2, width};
    float *table = attncl__alloc_array(2 * (size_t)width, sizeof *table);
    if (!table)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "table of a shift [2, %" PRId64 "]", width);
    for (int64_t c = 0; c < width; c += 2) {
        const double angle = delta * pow(10000.0, -(double)c / (double)width);
        table[c] = table[c + 1] = (float)cos(angle);
        table[width + c] = (float)sin(angle);
        table[width + c + 1] = -table[width + c];
    }
    const attncl_value rotation = attncl_graph_constant(g, ATTNCL_F32, 2, dim, table);
    attncl__free(table);
    return rotation;
}

attncl_value attncl_relative_shift(attncl_graph *g, attncl_value x, double delta)
{
    struct tensor_desc d;
    if (!attncl__layer_shape(g, x, "x", &d))
        return ATTNCL_NONE_VALUE;
    const int64_t width = d.rank > 0 ? d.dim[d.rank - 1] : 0;
    if (d.rank == 0 || width % 2 != 0 || !isfinite(delta))
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE,
                          "x is %s, delta is %g: expected an even last axis and a finite delta",
                          SHAPE(&d), delta);
    return attncl__graph_add(g, &attncl__op_rotate_fwd, NULL,
                             IN(x, rotation_table(g, width, delta)));
}
