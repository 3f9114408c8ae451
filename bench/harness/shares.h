// SPDX-License-Identifier: MIT
// The results of a device whose shares are of its roofline: set again whenever more of that is
// known.
#ifndef BENCH_SHARES_H
#define BENCH_SHARES_H

#include <jansson.h>

#include "harness/roofline.h"

struct share {
    struct result result;
    json_t *json; // the result in the report, borrowed
};

// Starts zeroed.
struct shares {
    struct share *list;
    size_t n, room;
};

// Without memory the result keeps the shares that it has.
void shares_add(struct shares *all, const struct result *x, json_t *json);
void shares_judge(struct shares *all, const struct roofline *roofline);
void shares_free(struct shares *all);

#endif
