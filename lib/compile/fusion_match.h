// SPDX-License-Identifier: MIT
// Matching over producer and consumer links, for the rules of fusions.
#ifndef ATTNCL_COMPILE_FUSION_MATCH_H
#define ATTNCL_COMPILE_FUSION_MATCH_H

#include "compile/fuse.h"
#include "op/fused/fused_linear.h"

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

// Whether a node between n and `end` writes to what node n reads.
bool attncl__fusion_overwritten_before(const struct lowered *p, int n, int end);

// A map is a node of linear_fwd or fused_linear_fwd.

// Whether it reads the same rows as map `first`, with the same norm or none, and has no activation, gate or residual.
bool attncl__fusion_is_plain_map(const struct lowered *p, int n, int first);
// Its inputs as those of fused_linear_fwd.
void attncl__fusion_map_inputs(const struct lowered *p, int n, int in[N_FUSED_LINEAR_INPUTS]);
// It becomes fused_linear_fwd with these inputs.  *params_ret: a copy of its parameters, to be completed.
attncl_status attncl__fusion_replace_map(struct lowered *p, int n, const int *in,
                                         struct fused_linear_fwd_params **params_ret);

#endif
