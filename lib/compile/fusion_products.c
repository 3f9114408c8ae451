// SPDX-License-Identifier: MIT
//
// Three linear maps of the same rows -> attention or AFT step: the maps become one node with three
// results, at the position of the last map.  All maps have the same norm in front, or none.

#include "compile/fuse.h"

enum { N_MAPS = 1 + GEMM_MAX_OTHERS };

// Returns the map whose result input i of node n is, or -1.
static int find_map(const struct lowered *p, int n, int i)
{
    const int map = attncl__fusion_find_sole_producer(p, n, i, &attncl__op_linear_fwd);
    return map >= 0 ? map
                    : attncl__fusion_find_sole_producer(p, n, i, &attncl__op_fused_linear_fwd);
}

static void list_inputs(const struct lowered *p, const struct fusion *fusion,
                        int in[N_FUSED_LINEAR_INPUTS])
{
    attncl__fusion_list_map_inputs(p, fusion->node[0], in);
    for (int i = 1; i < N_MAPS; ++i)
        memcpy(&in[FUSED_LINEAR_MORE + 2 * (i - 1)],
               &p->nodes[fusion->node[i]].inputs[LINEAR_WEIGHT], 2 * sizeof in[0]);
}

static bool products_are_profitable(const struct lowered *p, const struct fusion *fusion)
{
    int in[N_FUSED_LINEAR_INPUTS];
    struct op_sig sig;

    list_inputs(p, fusion, in);
    attncl__lowered_fill_class_sig(p, &attncl__op_fused_linear_fwd, in, &sig);
    return attncl__fused_linear_supported(&sig);
}

static bool match_products(const struct lowered *p, int step, struct fusion *fusion)
{
    if (!is_op(p, step, &attncl__op_aft_step_fwd) &&
        !is_op(p, step, &attncl__op_attention_step_fwd))
        return false;
    for (int i = 0; i < N_MAPS; ++i) {
        fusion->node[i] = find_map(p, step, i);
        if (fusion->node[i] < 0 ||
            !attncl__fusion_is_plain_map(p, fusion->node[i], fusion->node[0]))
            return false;
        fusion->last = fusion->node[i] > fusion->last ? fusion->node[i] : fusion->last;
    }
    fusion->n_nodes = N_MAPS;
    return products_are_profitable(p, fusion);
}

// Makes f->last the producer of all maps' results and removes the other maps.
static void take_results(struct lowered *p, const struct fusion *fusion)
{
    const int own = p->nodes[fusion->last].outputs[0];

    for (int i = 0; i < fusion->n_nodes; ++i) {
        const int n = fusion->node[i], result = n == fusion->last ? own : p->nodes[n].outputs[0];
        p->nodes[fusion->last].outputs[i] = result;
        p->values[result].producer = fusion->last;
        if (n != fusion->last)
            attncl__lowered_remove(p, n);
    }
}

static attncl_status build_products(struct lowered *p, const struct fusion *fusion)
{
    struct fused_linear_fwd_params *params;
    int in[N_FUSED_LINEAR_INPUTS];

    list_inputs(p, fusion, in);
    TRY(attncl__fusion_replace_map(p, fusion->last, in, &params));
    take_results(p, fusion);
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_products = {match_products, build_products};
