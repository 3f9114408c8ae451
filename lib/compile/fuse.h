// SPDX-License-Identifier: MIT
// Fusion replaces several nodes by fewer that compute the same.  To add one: a rule in a new file
// fusion_<name>.c, a line in fuse.c, the op it creates, and tests of graphs that match and that do not
// (tests/compile/test_fuse_<name>.c).
#ifndef ATTNCL_COMPILE_FUSE_H
#define ATTNCL_COMPILE_FUSE_H

#include "compile/lowered.h"
#include "op/fused/fused.h"

enum { FUSION_MAX_NODES = 8, FUSION_PARAMS_BYTES = 64 };

// One match of a rule.
struct fusion {
    int node[FUSION_MAX_NODES], n_nodes; // the matched nodes, in an order that the rule defines
    int last;                            // the node where the fused op's inputs are read
    int kind;                            // meaning defined by the rule
    _Alignas(max_align_t) char params[FUSION_PARAMS_BYTES]; // the fused op's parameters
};

struct fusion_rule {
    // True when `node` and its neighbours form the pattern, and the device supports the fused op at these sizes and
    // gains by it.  Fills *f.
    bool (*match)(const struct lowered *p, int node, struct fusion *fusion);
    // Called only if no node between a matched one and f->last overwrites the matched node's inputs.
    attncl_status (*build)(struct lowered *p, const struct fusion *fusion);
};

extern const struct fusion_rule attncl__fuse_norm, attncl__fuse_sums, attncl__fuse_merge,
    attncl__fuse_clipping;                             // fusion_prologue.c
extern const struct fusion_rule attncl__fuse_add_gemm; // fusion_add_gemm.c
extern const struct fusion_rule attncl__fuse_products; // fusion_products.c
extern const struct fusion_rule attncl__fuse_mixing_step_after, attncl__fuse_mixing_step,
    attncl__fuse_ffn_after; // fusion_step.c

// -- fusion_match.c: helpers of the rules

static inline int input_of(const struct lowered *p, int n, int i)
{
    return p->nodes[n].inputs[i];
}

static inline bool has_input(const struct lowered *p, int n, int i)
{
    return input_of(p, n, i) != 0;
}

// True when node n (-1: no node) is live, of this class, and saves nothing for the backward pass.
static inline bool is_op(const struct lowered *p, int n, const struct op_class *cls)
{
    return n >= 0 && !p->nodes[n].dead && p->nodes[n].cls == cls && !p->nodes[n].save_for_backward;
}

// Returns the node of this class whose first result is input `i` of node n, in the same loop; -1 if there is none.
int attncl__fusion_find_producer(const struct lowered *p, int n, int i, const struct op_class *cls);
// As attncl__fusion_find_producer(), and -1 when the result has another consumer.
int attncl__fusion_find_sole_producer(const struct lowered *p, int n, int i,
                                      const struct op_class *cls);

// A map is a linear_fwd or fused_linear_fwd node.

// True when map n reads the same rows as map `first`, through the same norm or none, and has no activation, gate or
// residual.
bool attncl__fusion_is_plain_map(const struct lowered *p, int n, int first);
// Lists the map's inputs in the order of fused_linear_fwd.
void attncl__fusion_list_map_inputs(const struct lowered *p, int n, int in[N_FUSED_LINEAR_INPUTS]);
// Replaces the map by fused_linear_fwd with these inputs.  *params_ret: a copy of the map's parameters, for the caller
// to complete.
attncl_status attncl__fusion_replace_map(struct lowered *p, int n, const int *in,
                                         struct fused_linear_fwd_params **params_ret);

#endif
