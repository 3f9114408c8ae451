// SPDX-License-Identifier: MIT
//
// Averaged weights in the place of the trained ones, and back.

#include "base/alloc.h"
#include "base/try.h"
#include "train/trainer.h"

static attncl_status exchange(const struct trained *trained, float *values)
{
    const size_t bytes = trained->count * sizeof *values;
    float *const weight = values, *const average = values + trained->count;
    TRY(attncl_tensor_read(trained->tensor[KEPT_WEIGHT], weight, bytes));
    TRY(attncl_tensor_read(trained->tensor[KEPT_AVERAGE], average, bytes));
    TRY(attncl_tensor_write(trained->tensor[KEPT_WEIGHT], average, bytes));
    return attncl_tensor_write(trained->tensor[KEPT_AVERAGE], weight, bytes);
}

attncl_status attncl__average_exchange(attncl_trainer *t)
{
    if (!(t->config.settings.ema > 0))
        return ATTNCL_OK;
    size_t largest = 0;
    for (size_t i = 0; i < t->n_trained; ++i)
        largest = t->trained[i].count > largest ? t->trained[i].count : largest;
    float *values = attncl__alloc_array(largest, 2 * sizeof *values);
    REQUIRE(values, ATTNCL_ERR_NO_MEMORY, "averages of %zu weights", largest);
    attncl_status status = ATTNCL_OK;
    for (size_t i = 0; i < t->n_trained && status == ATTNCL_OK; ++i)
        status = exchange(&t->trained[i], values);
    t->is_broken |= status != ATTNCL_OK; // some are exchanged
    attncl__free(values);
    return status;
}
