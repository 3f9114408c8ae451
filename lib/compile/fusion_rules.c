// SPDX-License-Identifier: MIT
//
// The fusions.  The op classes know nothing of them.

#include "compile/fuse.h"

const struct fusion_rule *const attncl__fusion_rules[] = {
    &attncl__fuse_norm,        &attncl__fuse_add_gemm,    &attncl__fuse_products,
    &attncl__fuse_merge,       &attncl__fuse_loop_copies, &attncl__fuse_mixing_step_after,
    &attncl__fuse_mixing_step, &attncl__fuse_ffn_after,   NULL,
};
