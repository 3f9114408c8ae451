// SPDX-License-Identifier: MIT
// Fusion: nodes replaced by fewer ones that compute the same.  Adding one: a rule in a file of its
// own, fusion_<name>.c, a line in fuse.c, the op it creates, and tests that the pattern
// matches and that it does not (tests/compile/test_fuse_<name>.c).
#ifndef ATTNCL_COMPILE_FUSE_H
#define ATTNCL_COMPILE_FUSE_H

#include "compile/lowered.h"
#include "op/fused/fused.h"

enum { FUSION_MAX_NODES = 8, FUSION_PARAMS_BYTES = 64 };

// A place where a rule applies.
struct fusion {
    int node[FUSION_MAX_NODES], n_nodes; // in the rule's own order
    int last;                            // the last node that reads what is fused
    int kind;                            // the rule's own
    _Alignas(max_align_t) char params[FUSION_PARAMS_BYTES]; // of the fused op
};

struct fusion_rule {
    // Whether `node` and its neighbours form the pattern, and the device has the fused op for these sizes and gains by it;
    // fills the fusion.
    bool (*match)(const struct lowered *p, int node, struct fusion *f);
    // Called unless a node between one of the fusion and the last writes what it reads.
    attncl_status (*build)(struct lowered *p, const struct fusion *f);
};

extern const struct fusion_rule attncl__fuse_norm, attncl__fuse_merge,
    attncl__fuse_clipping;                             // fusion_prologue.c
extern const struct fusion_rule attncl__fuse_add_gemm; // fusion_add_gemm.c
extern const struct fusion_rule attncl__fuse_products; // fusion_products.c
extern const struct fusion_rule attncl__fuse_mixing_step_after, attncl__fuse_mixing_step,
    attncl__fuse_ffn_after; // fusion_step.c

// -- fusion_match.c: matching over producer and consumer links, for the rules

static inline int input_of(const struct lowered *p, int n, int i)
{
    return p->nodes[n].inputs[i];
}

static inline bool has_input(const struct lowered *p, int n, int i)
{
    return input_of(p, n, i) != 0;
}

// Whether node n, -1: none, is of this class and alive, and no gradient reads what it saves.
static inline bool is_op(const struct lowered *p, int n, const struct op_class *cls)
{
    return n >= 0 && !p->nodes[n].dead && p->nodes[n].cls == cls && !p->nodes[n].save_for_backward;
}

// The node of this class whose first result is input `i` of node n, in the same loop; -1: none.
int attncl__fusion_producer_of(const struct lowered *p, int n, int i, const struct op_class *cls);
// The same where nothing else reads the result.
int attncl__fusion_sole_producer_of(const struct lowered *p, int n, int i,
                                    const struct op_class *cls);

// A map is a node of linear_fwd or fused_linear_fwd.

// Whether it reads the same rows as map `first`, with the same norm or none, and has no activation, gate or residual.
bool attncl__fusion_is_plain_map(const struct lowered *p, int n, int first);
// Its inputs as those of fused_linear_fwd.
void attncl__fusion_map_inputs(const struct lowered *p, int n, int in[N_FUSED_LINEAR_INPUTS]);
// It becomes fused_linear_fwd with these inputs.  *params_ret: a copy of its parameters, to be completed.
attncl_status attncl__fusion_replace_map(struct lowered *p, int n, const int *in,
                                         struct fused_linear_fwd_params **params_ret);

#endif
