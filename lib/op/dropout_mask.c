// SPDX-License-Identifier: MIT
//
// The mask of dropout: an element is kept where its word is at least p 2^32.

#include <math.h>

#include "op/dropout_mask.h"

attncl_status attncl__check_dropout(const struct dropout_fwd_params *mask,
                                    const struct tensor_desc *step, int64_t n)
{
    REQUIRE(mask->p >= 0 && mask->p <= 1, ATTNCL_ERR_ARGUMENT, "dropout p is %g, expected 0 to 1",
            mask->p);
    REQUIRE(mask->site >= 0 && mask->site <= UINT32_MAX, ATTNCL_ERR_ARGUMENT,
            "dropout site is %" PRId64 ", expected 0 to %" PRIu32, mask->site, UINT32_MAX);
    REQUIRE(mask->p == 0 || attncl__desc_present(step), ATTNCL_ERR_ARGUMENT,
            "dropout p is %g, step is missing", mask->p);
    if (mask->batch_total == 0 && mask->batch_begin == 0)
        return ATTNCL_OK;
    REQUIRE(mask->batch_begin >= 0 && mask->batch_begin <= mask->batch_total &&
                n <= mask->batch_total - mask->batch_begin,
            ATTNCL_ERR_ARGUMENT,
            "dropout of %" PRId64 " entries from %" PRId64 " on of a batch of %" PRId64, n,
            mask->batch_begin, mask->batch_total);
    return ATTNCL_OK;
}

uint32_t attncl__dropout_threshold(double p)
{
    const double words = ceil(p * 4294967296.0);
    return words < 4294967296.0 ? (uint32_t)words : UINT32_MAX; // p is 1: the factor is 0
}

float attncl__dropout_scale(double p)
{
    return p < 1 ? (float)(1 / (1 - p)) : 0.0f;
}
