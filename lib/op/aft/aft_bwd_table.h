// SPDX-License-Identifier: MIT
// The gradient of the mixing op's biases: sums over channels for each pair of a query and a key.
#ifndef ATTNCL_OP_AFT_AFT_BWD_TABLE_H
#define ATTNCL_OP_AFT_AFT_BWD_TABLE_H

#include "op/aft/aft_channel_block.h"

// One series in both directions, and where its dw goes.
struct aft_series {
    struct aft_channel_block forward, backward;
    struct aft_matrix q, log, y, g;
    struct span table;
    int64_t table_start, table_row;
};

// CPU variant: adds the channel block of `forward`, whose scratch is overwritten.  GPU variant: adds
// all channels.
attncl_status attncl__aft_bwd_table(struct launcher *l, const struct aft_series *s);
attncl_status attncl__aft_bwd_pairs(struct launcher *l, const struct aft_series *s);

#endif
