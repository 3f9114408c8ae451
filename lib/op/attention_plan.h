// SPDX-License-Identifier: MIT
// How attention is cut up on a device: tiles of keys, blocks of queries, scratch.
#ifndef ATTNCL_OP_ATTENTION_PLAN_H
#define ATTNCL_OP_ATTENTION_PLAN_H

#include "op/op.h"

enum attention_input { ATT_IN_Q, ATT_IN_K, ATT_IN_V, ATT_IN_MASK, ATT_IN_LENS };

// What hides keys beside the range; MASKING of cl/common/attention.clh.
enum attention_masking { MASKING_NONE, MASKING_MASK, MASKING_LENS };

struct attention_plan {
    int64_t heads; // of all batch entries
    int64_t n_queries, n_keys, width, value_width;
    int64_t behind, ahead; // query i sees keys i + S - T - behind .. i + S - T + ahead
    enum attention_masking masking;
    unsigned vw;
    bool grouped;        // GPU form
    int key_tile, block; // keys and queries at a time
    int sum_vectors;     // NE of the kernels
    // CPU form, see the macro table of cl/op/attention.cl.
    int score_rows, score_vectors;
    int64_t value_pitch; // values padded to whole panels
    bool copy_values;    // into scratch, after the keys
    int64_t key_floats, value_floats;
    int64_t row_floats; // GPU form with weights: maximum and total of each row
};

// Shapes of a group in cl/op/attention_groups.cl.
enum { ATT_GROUP = 128, ATT_GROUP_ROWS = 32, ATT_GROUP_KEYS = 64, ATT_GROUP_COLUMNS = 64 };

// ERR_UNSUPPORTED when the device cannot hold a block or would stop counting.
attncl_status attncl__attention_plan(const struct op_sig *sig, struct attention_plan *ret);

// Pairs of query and key in range, of one head.
double attncl__attention_pairs(const struct op_sig *sig);

#endif
