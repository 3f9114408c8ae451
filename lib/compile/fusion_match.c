// SPDX-License-Identifier: MIT

#include "compile/fusion_match.h"

int attncl__fusion_producer_of(const struct lowered *p, int n, int i, const struct op_class *cls)
{
    const int value = input_of(p, n, i), producer = p->values[value].producer;

    return is_op(p, producer, cls) && p->nodes[producer].outputs[0] == value &&
                   p->nodes[producer].loop == p->nodes[n].loop
               ? producer
               : -1;
}

int attncl__fusion_sole_producer_of(const struct lowered *p, int n, int i,
                                    const struct op_class *cls)
{
    const struct lowered_value *v = &p->values[input_of(p, n, i)];

    return v->n_uses == 1 && !v->is_output ? attncl__fusion_producer_of(p, n, i, cls) : -1;
}

bool attncl__fusion_overwritten_before(const struct lowered *p, int n, int end)
{
    for (int i = 0; i < p->nodes[n].cls->n_in; ++i) {
        const struct lowered_value *base = &p->values[p->values[input_of(p, n, i)].base];
        if (base->n_writes == 0)
            continue;
        for (const struct use *use = base->first_use; use; use = use->next)
            if (use->writes && n < use->node && use->node < end)
                return true;
    }
    return false;
}
