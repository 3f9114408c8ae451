// SPDX-License-Identifier: MIT

#include "harness/shares.h"

#include <string.h>

#include "base/alloc.h"
#include "harness/json.h"

enum { FIRST_ROOM = 64 };

void shares_add(struct shares *all, const struct result *x, json_t *json)
{
    if (x->outcome != OUTCOME_OK || x->c->family->suite == SUITE_DEVICE)
        return;
    if (all->n == all->room) {
        const size_t room = all->room ? 2 * all->room : FIRST_ROOM;
        struct share *list = attncl__alloc_array(room, sizeof *list);
        if (!list)
            return;
        if (all->n > 0)
            memcpy(list, all->list, all->n * sizeof *list);
        attncl__free(all->list);
        all->list = list;
        all->room = room;
    }
    all->list[all->n++] = (struct share){*x, json};
}

void shares_judge(struct shares *all, const struct roofline *roofline)
{
    for (size_t i = 0; i < all->n; ++i) {
        roofline_judge(roofline, &all->list[i].result);
        json_set_shares(all->list[i].json, &all->list[i].result);
    }
}

void shares_free(struct shares *all)
{
    attncl__free(all->list);
    *all = (struct shares){0};
}
