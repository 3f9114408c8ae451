// SPDX-License-Identifier: MIT

#include "harness/roofline_share.h"

#include <string.h>

#include "base/alloc.h"
#include "harness/json.h"

enum { FIRST_CAPACITY = 64 };

void roofline_shares_add(struct roofline_shares *all, const struct result *x, json_t *json)
{
    if (x->outcome != OUTCOME_OK || x->c->family->suite == SUITE_DEVICE)
        return;
    if (all->n == all->capacity) {
        const size_t capacity = all->capacity ? 2 * all->capacity : FIRST_CAPACITY;
        struct roofline_share *list = attncl__alloc_array(capacity, sizeof *list);
        if (!list)
            return;
        if (all->n > 0)
            memcpy(list, all->list, all->n * sizeof *list);
        attncl__free(all->list);
        all->list = list;
        all->capacity = capacity;
    }
    all->list[all->n++] = (struct roofline_share){*x, json};
}

void roofline_shares_update(struct roofline_shares *all, const struct roofline *roofline)
{
    for (size_t i = 0; i < all->n; ++i) {
        roofline_judge(roofline, &all->list[i].result);
        json_set_shares(all->list[i].json, &all->list[i].result);
    }
}

void roofline_shares_free(struct roofline_shares *all)
{
    attncl__free(all->list);
    *all = (struct roofline_shares){0};
}
