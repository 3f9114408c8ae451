// SPDX-License-Identifier: MIT
//
// Whether all ranks have the same weights: they compute the same updates, so another bit is a fault.

#include "base/alloc.h"
#include "base/try.h"
#include "train/trainer.h"

// FNV-1a.
static uint64_t add_to_hash(uint64_t hash, const float *values, size_t n)
{
    const unsigned char *bytes = (const unsigned char *)values;
    for (size_t i = 0; i < n * sizeof *values; ++i)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

attncl_status attncl__trainer_compare_ranks(attncl_trainer *t)
{
    enum { EVERY = 100 }; // steps: reading all weights takes a part of a step's time
    if (attncl_ranks_size(t->ranks) == 1 || t->step % EVERY != 0)
        return ATTNCL_OK;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < t->n_trained; ++i) {
        const struct trained *trained = &t->trained[i];
        const size_t bytes = trained->count * sizeof(float);
        float *values = attncl__alloc(bytes);
        REQUIRE(values, ATTNCL_ERR_NO_MEMORY, "%zu bytes of %s", bytes, trained->name);
        const attncl_status status =
            attncl_tensor_read(trained->tensor[KEPT_WEIGHT], values, bytes);
        if (status == ATTNCL_OK)
            hash = add_to_hash(hash, values, trained->count);
        attncl__free(values);
        TRY(status);
    }
    return attncl_ranks_compare(t->ranks, "weights", hash);
}
