// SPDX-License-Identifier: MIT
//
// dweight[v, :] = scale sum over r with tokens[r] = v of dy[r, :]

#include "ref/ref.h"

void ref_embedding_bwd(const struct host *tokens, const struct host *dy, double scale,
                       struct host *dweight)
{
    const int64_t width = dweight->dim[1];

    for (int64_t i = 0; i < dweight->count; ++i)
        dweight->data[i] = 0;
    for (int64_t i = 0; i < dy->count; ++i)
        dweight->data[(int64_t)tokens->data[i / width] * width + i % width] += scale * dy->data[i];
}
