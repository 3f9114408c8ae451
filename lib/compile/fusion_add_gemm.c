// SPDX-License-Identifier: MIT
//
// Gradient GEMM -> add: a value with several consumers has the sum of several GEMMs as its gradient.
// The GEMM takes the other addend, which saves the addition's launch and memory.

#include "compile/fuse.h"

enum { PRODUCT, SUM };

static const struct op_class *const gemms[] = {&attncl__op_linear_bwd_input,
                                               &attncl__op_linear_bwd_weight};

// Returns the GEMM whose result is addend `i` of node n and has no other consumer, if it has no addend yet; else -1.
static int find_gemm(const struct lowered *p, int n, int i)
{
    for (size_t k = 0; k < sizeof gemms / sizeof gemms[0]; ++k) {
        const int gemm = attncl__fusion_find_sole_producer(p, n, i, gemms[k]);
        if (gemm >= 0 && !has_input(p, gemm, LINEAR_BWD_ADDEND))
            return gemm;
    }
    return -1;
}

// If both addends are GEMMs, the later one adds, so that the earlier one's operands can be freed.  The addend must be
// computed before the GEMM; otherwise the GEMM's operands would have to live until it is.
static bool match_add_gemm(const struct lowered *p, int sum, struct fusion *fusion)
{
    if (!is_op(p, sum, &attncl__op_add_fwd) || input_of(p, sum, 0) == input_of(p, sum, 1))
        return false;
    const int first = find_gemm(p, sum, 0), second = find_gemm(p, sum, 1);

    fusion->kind = second > first ? 0 : 1; // index of the other addend
    fusion->node[PRODUCT] = second > first ? second : first;
    fusion->node[SUM] = fusion->last = sum;
    fusion->n_nodes = 2;
    const int addend = p->values[input_of(p, sum, fusion->kind)].base;
    return fusion->node[PRODUCT] >= 0 && p->values[addend].producer < fusion->node[PRODUCT];
}

static attncl_status build_add_gemm(struct lowered *p, const struct fusion *fusion)
{
    const struct lowered_node *product = &p->nodes[fusion->node[PRODUCT]];
    const int in[N_LINEAR_BWD_INPUTS] = {
        [LINEAR_BWD_D] = product->inputs[LINEAR_BWD_D],
        [LINEAR_BWD_FACTOR] = product->inputs[LINEAR_BWD_FACTOR],
        [LINEAR_BWD_ADDEND] = input_of(p, fusion->node[SUM], fusion->kind),
    };

    TRY(attncl__lowered_replace(p, fusion->node[SUM], product->cls, product->params, in));
    attncl__lowered_remove(p, fusion->node[PRODUCT]);
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_add_gemm = {match_add_gemm, build_add_gemm};
