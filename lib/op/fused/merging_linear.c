// SPDX-License-Identifier: MIT

#include "op/fused/merging_linear.h"

#include <string.h>

// The linear map by itself, of a result like the query.
struct map {
    struct op_sig sig;
    struct tensor_desc in[N_LINEAR_INPUTS];
};

static void map_of(const struct op_sig *sig, const struct merging_linear *m, struct map *map)
{
    map->sig = *sig;
    map->sig.params = m->params;
    map->sig.n_in = N_LINEAR_INPUTS;
    map->sig.in = map->in;
    map->in[LINEAR_X] = sig->in[m->query];
    memcpy(&map->in[LINEAR_WEIGHT], &sig->in[m->weight],
           (N_LINEAR_INPUTS - LINEAR_WEIGHT) * sizeof map->in[0]);
}

attncl_status attncl__merging_linear_infer(struct op_sig *sig, const struct merging_linear *m)
{
    struct map map;

    map_of(sig, m, &map);
    return attncl__op_linear_fwd.infer(&map.sig);
}

// Sizes, no operands.
static struct gemm merging_gemm(const struct op_sig *sig, const struct merging_linear *m)
{
    const struct tensor_desc *q = &sig->in[m->query], *weight = &sig->in[m->weight];

    return GEMM_OF(
        1, q->dim[0], weight->dim[0], weight->dim[1], .b_dtype = weight->dtype, .trans_b = true,
        .merge = {.n_heads = m->n_heads,
                  .n_parts = attncl__step_parts(sig->caps, q->dim[0] * m->n_heads, m->limit),
                  .limit = m->limit,
                  .own_keys = m->stores});
}

bool attncl__merging_linear_supported(const struct op_sig *sig, const struct merging_linear *m)
{
    const struct gemm g = merging_gemm(sig, m);
    return attncl__gemm_merges(sig->caps, &g);
}

attncl_status attncl__merging_linear_launch(struct launcher *l, const struct op_call *call,
                                            const struct merging_linear *m,
                                            const struct attention_split *parts)
{
    struct gemm g = merging_gemm(&call->sig, m);

    REQUIRE(attncl__gemm_merges(l->caps, &g), ATTNCL_ERR_UNSUPPORTED,
            "a GEMM of [%" PRId64 ", %" PRId64 "] and [%" PRId64 ", %" PRId64
            "] cannot merge %" PRId64 " parts of %" PRId64 " heads on this device",
            g.m, g.k, g.k, g.n, g.merge.n_parts, g.merge.n_heads);
    if (g.m == 0)
        return ATTNCL_OK;
    TRY(attncl__attention_parts_launch(l, parts));

    g.a.span = call->scratch;
    g.merge.position = call->in[m->position];
    g.b = attncl__linear_rows(call, m->weight);
    g.c = (struct gemm_matrix){.span = call->out[0], .ld = g.n};
    g.bias = call->in[m->weight + LINEAR_BIAS - LINEAR_WEIGHT];
    g.bias_kind = g.bias.storage ? GEMM_BIAS_COLUMN : GEMM_BIAS_NONE;
    g.activation = (enum gemm_activation)m->params->activation;
    g.gate = attncl__linear_rows(call, m->weight + LINEAR_GATE - LINEAR_WEIGHT);
    g.residual = attncl__linear_rows(call, m->weight + LINEAR_RESIDUAL - LINEAR_WEIGHT);
    return attncl__gemm(l, &g);
}

void attncl__merging_linear_cost(const struct op_sig *sig, const struct merging_linear *m,
                                 double *flop_ret, double *bytes_ret)
{
    struct map map;

    map_of(sig, m, &map);
    attncl__op_linear_fwd.cost(&map.sig, flop_ret, bytes_ret);
}
