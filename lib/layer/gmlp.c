// SPDX-License-Identifier: MIT
//
// gMLP:  y = x + proj2(SGU(GELU(proj1(LN(x))))),   SGU(z) = z1 * (W' LN(z2) + b)

#include <inttypes.h>

#include "layer/layer.h"

// Splits z's last axis into halves, both views: z1, and u, the normalised z2.
static bool split_halves(attncl_graph *g, const attncl_sgu_params *params, attncl_value z, int rank,
                         attncl_value *z1_ret, attncl_value *u_ret)
{
    struct tensor_desc d;
    if (!attncl__layer_axes(g, z, "z", rank, rank == 3 ? "[T, B, F]" : "[B, F]", &d))
        return false;
    const int64_t width = d.dim[rank - 1];
    if (width % 2 != 0) {
        GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "F = %" PRId64 " is odd, the gating unit halves it", width);
        return false;
    }
    *z1_ret = attncl_slice(g, z, rank - 1, 0, width / 2);
    const attncl_value z2 = attncl_slice(g, z, rank - 1, width / 2, width);

    *u_ret = attncl__layer_normalise(g, "norm", z2, params->norm_weight, params->norm_bias,
                                     params->norm_eps);
    return true;
}

attncl_value attncl_spatial_gating_unit(attncl_graph *g, const attncl_sgu_params *params,
                                        attncl_value z, int causal, attncl_value mask)
{
    const struct spatial_gate_fwd_params gate = {.causal = causal != 0};
    attncl_sgu_params p = ATTNCL_SGU_PARAMS_INIT;
    attncl_value z1, u;
    if (!LAYER_STRUCT(g, attncl_sgu_params, &p, params))
        return ATTNCL_NONE_VALUE;
    if (causal && attncl__given(mask))
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "causal and a mask at once");
    if (!split_halves(g, &p, z, 3, &z1, &u))
        return ATTNCL_NONE_VALUE;
    return attncl__graph_add(g, &attncl__op_spatial_gate_fwd, &gate,
                             IN(p.weight, p.bias, u, z1, mask));
}

// GELU(proj1(LN(x)))
static attncl_value project_hidden(attncl_graph *g, const attncl_gmlp_params *p, attncl_value x)
{
    attncl_linear_desc gelu = ATTNCL_LINEAR_DESC_INIT;
    gelu.activation = ATTNCL_GELU;

    const attncl_value h =
        attncl__layer_normalise(g, "norm", x, p->norm_weight, p->norm_bias, p->norm_eps);
    attncl_graph_push_scope(g, "proj1");
    const attncl_value z = attncl_linear_fused(g, &gelu, h, p->proj1_weight, p->proj1_bias);
    attncl_graph_pop_scope(g);
    return z;
}

attncl_value attncl_gmlp_block(attncl_graph *g, const attncl_gmlp_params *params, attncl_value x,
                               int causal, attncl_value mask)
{
    attncl_gmlp_params p = ATTNCL_GMLP_PARAMS_INIT;
    if (!LAYER_STRUCT(g, attncl_gmlp_params, &p, params))
        return ATTNCL_NONE_VALUE;
    const attncl_value z = project_hidden(g, &p, x);
    attncl_graph_push_scope(g, "sgu");
    const attncl_value s = attncl_spatial_gating_unit(g, p.sgu, z, causal, mask);
    attncl_graph_pop_scope(g);
    return attncl__layer_project(g, "proj2", s, p.proj2_weight, p.proj2_bias, x);
}

// The gating unit for decoding: with a position z is one row, [B, F] -> [B, F/2], else the rows from
// position 0 on, [T, B, F].  State: u of all positions so far, rounded to `dtype`.
static attncl_value add_gate(attncl_graph *g, const attncl_sgu_params *params, attncl_dtype dtype,
                             attncl_value z, attncl_value position)
{
    const struct spatial_gate_fwd_params causal = {.causal = 1};
    attncl_sgu_params p = ATTNCL_SGU_PARAMS_INIT;
    struct tensor_desc u_desc, weight;
    attncl_value z1, u;
    if (!LAYER_STRUCT(g, attncl_sgu_params, &p, params) ||
        !attncl__layer_axes(g, p.weight, "sgu weight", 2, "[n, n]", &weight) ||
        !split_halves(g, &p, z, attncl__given(position) ? 2 : 3, &z1, &u) ||
        !attncl__layer_shape(g, u, "z", &u_desc))
        return ATTNCL_NONE_VALUE;

    const int rank = u_desc.rank;
    const int64_t dim[3] = {weight.dim[0], u_desc.dim[rank - 2], u_desc.dim[rank - 1]};
    const attncl_value history = attncl_graph_state(g, "history", dtype, 3, dim);
    if (attncl__given(position))
        return attncl__graph_add(g, &attncl__op_spatial_gate_step_fwd, NULL,
                                 IN(p.weight, p.bias, u, z1, position, history));
    u = attncl__store_rows(g, u, dtype, history);
    return attncl__graph_add(g, &attncl__op_spatial_gate_fwd, &causal,
                             IN(p.weight, p.bias, u, z1, ATTNCL_NONE_VALUE));
}

attncl_value attncl__gmlp_decode(attncl_graph *g, const attncl_gmlp_params *params,
                                 attncl_dtype dtype, attncl_value x, const struct decode_at *at)
{
    attncl_gmlp_params p = ATTNCL_GMLP_PARAMS_INIT;
    if (!LAYER_STRUCT(g, attncl_gmlp_params, &p, params))
        return ATTNCL_NONE_VALUE;
    const attncl_value z = project_hidden(g, &p, x);
    attncl_graph_push_scope(g, "sgu");
    const attncl_value s = add_gate(g, p.sgu, dtype, z, at->position);
    attncl_graph_pop_scope(g);
    return attncl__layer_project(g, "proj2", attncl__layer_row_at(g, s, at->row), p.proj2_weight,
                                 p.proj2_bias, attncl__layer_row_at(g, x, at->row));
}

attncl_value attncl_gmlp_step(attncl_graph *g, const attncl_gmlp_params *params, attncl_value x,
                              attncl_value position)
{
    const struct decode_at at = {.position = position};
    struct tensor_desc d;
    return attncl__layer_shape(g, position, "position", &d)
               ? attncl__gmlp_decode(g, params, ATTNCL_F32, x, &at)
               : ATTNCL_NONE_VALUE;
}
