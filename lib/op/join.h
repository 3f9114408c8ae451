// SPDX-License-Identifier: MIT
// Inputs of join_fwd, for the rules that make it.
#ifndef ATTNCL_OP_JOIN_H
#define ATTNCL_OP_JOIN_H

enum { JOIN_PARTS, JOIN_BIAS, JOIN_RESIDUAL, N_JOIN_INPUTS };

#endif
