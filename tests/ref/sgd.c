// SPDX-License-Identifier: MIT

#include "ref/ref.h"

void ref_sgd_step(const struct ref_sgd *s, int64_t taken, struct host *p, const struct host *g,
                  struct host *buffer)
{
    for (int64_t i = 0; i < p->count; ++i) {
        double d = g->data[i] + (s->weight_decay != 0 ? s->weight_decay * p->data[i] : 0);
        if (s->momentum != 0) {
            buffer->data[i] =
                taken == 0 ? d : s->momentum * buffer->data[i] + (1 - s->dampening) * d;
            d = s->nesterov ? d + s->momentum * buffer->data[i] : buffer->data[i];
        }
        p->data[i] -= s->learning_rate * d;
    }
}
