// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"

// Where the formula has infinity times 0, the limit.
static bool has_limit(double x, int kind)
{
    return isinf(x) && (kind == ATTNCL_GELU || kind == ATTNCL_SILU || kind == ATTNCL_GELU_TANH);
}

double ref_activate(double x, int kind)
{
    if (has_limit(x, kind))
        return fmax(x, 0);
    switch (kind) {
    case ATTNCL_GELU:
        return 0.5 * x * erfc(-x / sqrt(2));
    case ATTNCL_RELU:
        return x < 0 ? 0 : x;
    case ATTNCL_SIGMOID:
        return 1 / (1 + exp(-x));
    case ATTNCL_TANH:
        return tanh(x);
    case ATTNCL_SILU:
        return x / (1 + exp(-x));
    case ATTNCL_GELU_TANH:
        return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    default:
        return x;
    }
}

void ref_activation_fwd(const struct host *x, int kind, struct host *y)
{
    for (int64_t i = 0; i < x->count; ++i)
        y->data[i] = ref_activate(x->data[i], kind);
}
