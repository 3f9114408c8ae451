// SPDX-License-Identifier: MIT
// Matching over producer and consumer links, for the rules of fusions.
#ifndef ATTNCL_COMPILE_FUSION_MATCH_H
#define ATTNCL_COMPILE_FUSION_MATCH_H

#include "compile/fuse.h"

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

#endif
