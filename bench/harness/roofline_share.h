// SPDX-License-Identifier: MIT
// The results of a device with their shares of its roofline, updated whenever more of that is
// known.
#ifndef BENCH_ROOFLINE_SHARE_H
#define BENCH_ROOFLINE_SHARE_H

#include <jansson.h>

#include "harness/roofline.h"

struct roofline_share {
    struct result result;
    json_t *json; // the result in the report, borrowed
};

// Starts zeroed.
struct roofline_shares {
    struct roofline_share *list;
    size_t n, capacity;
};

// Without memory the result keeps the shares that it has.
void roofline_shares_add(struct roofline_shares *all, const struct result *x, json_t *json);
void roofline_shares_update(struct roofline_shares *all, const struct roofline *roofline);
void roofline_shares_free(struct roofline_shares *all);

#endif
