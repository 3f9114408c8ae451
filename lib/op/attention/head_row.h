// SPDX-License-Identifier: MIT
// How heads of queries and keys are prepared before they meet a cache (cl/attention/head_row.clh): normalised where their norm
// is present, rotated where there is a table.
#ifndef ATTNCL_OP_ATTENTION_HEAD_ROW_H
#define ATTNCL_OP_ATTENTION_HEAD_ROW_H

#include "op/op.h"

// A class's inputs from `i` on, in this order.
#define HEAD_FORM_INPUTS                                                                           \
    {"query_norm", F32 | OPTIONAL, "D"}, {"key_norm", F32 | OPTIONAL, "D"},                        \
    {                                                                                              \
        "table", F32 | OPTIONAL, "A 2 F"                                                           \
    }
enum { HEAD_QUERY_NORM, HEAD_KEY_NORM, HEAD_TABLE, N_HEAD_FORMS };

struct head_forms {
    struct span mem[N_HEAD_FORMS];
    int64_t n_positions, pairs;
    bool half;
    float eps;
};
#define HEAD_FORM_ARGS(f)                                                                          \
    arg_mem((f)->mem[HEAD_QUERY_NORM]), arg_mem((f)->mem[HEAD_KEY_NORM]), arg_f32((f)->eps),       \
        arg_mem((f)->mem[HEAD_TABLE]), arg_i32((f)->n_positions), arg_i32((f)->pairs)

attncl_status attncl__check_head_forms(const struct op_sig *sig, int i, int64_t width, float eps);
struct head_forms attncl__head_forms(const struct op_call *call, int i, bool half, float eps);
void attncl__set_head_forms(struct kspec *spec, const struct head_forms *f);

#endif
