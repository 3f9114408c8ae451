// SPDX-License-Identifier: MIT
//
// What all ranks have in common: the data, the configuration, the weights.  Each rank updates its own
// weights with the same gradients; a hash tells whether they stay the same.
//
// Devices of one kind compute the same bits.  Those of different kinds round differently, and then rank
// 0's weights replace the others' from time to time.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "train/trainer.h"

enum { COMPARE_EVERY = 100 }; // steps: reading all weights takes a part of a step's time

static uint64_t hash(uint64_t h, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t word;
    for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    for (; bytes > 0; --bytes)
        h = (h ^ *at++) * UINT64_C(0x100000001b3);
    return h;
}

// Memory for the largest tensor.
static attncl_status alloc_values(const attncl_trainer *t, float **ret)
{
    size_t largest = 1;
    for (size_t i = 0; i < t->n_trained; ++i)
        largest = t->trained[i].count > largest ? t->trained[i].count : largest;
    *ret = attncl__alloc_array(largest, sizeof **ret);
    REQUIRE(*ret, ATTNCL_ERR_NO_MEMORY, "%zu weights", largest);
    return ATTNCL_OK;
}

// Rank 0's weights and what its optimiser keeps.
static attncl_status broadcast(attncl_trainer *t)
{
    attncl_status status = ATTNCL_OK;
    float *values = NULL;
    TRY(alloc_values(t, &values));
    for (size_t i = 0; i < t->n_trained * N_KEPT; ++i) {
        const struct trained *trained = &t->trained[i / N_KEPT];
        attncl_tensor *tensor = trained->tensor[i % N_KEPT];
        const size_t bytes = trained->count * sizeof *values;
        if (!tensor)
            continue;
        TRY_DONE(attncl_tensor_read(tensor, values, bytes));
        TRY_DONE(attncl_ranks_broadcast(t->ranks, values, bytes));
        if (attncl_ranks_rank(t->ranks) > 0)
            TRY_DONE(attncl_tensor_write(tensor, values, bytes));
    }
done:
    attncl__free(values);
    return status;
}

static attncl_status hash_weights(attncl_trainer *t, uint64_t *ret)
{
    attncl_status status = ATTNCL_OK;
    float *values = NULL;
    *ret = 0;
    TRY(alloc_values(t, &values));
    for (size_t i = 0; i < t->n_trained; ++i) {
        const size_t bytes = t->trained[i].count * sizeof *values;
        TRY_DONE(attncl_tensor_read(t->trained[i].tensor[KEPT_WEIGHT], values, bytes));
        *ret = hash(*ret, values, bytes);
    }
done:
    attncl__free(values);
    return status;
}

attncl_status attncl__replicas_begin(attncl_trainer *t)
{
    if (attncl_ranks_size(t->ranks) == 1)
        return ATTNCL_OK;
    attncl_device_info device = ATTNCL_DEVICE_INFO_INIT;
    char text[sizeof device.name + sizeof device.driver_version + 1];
    TRY(attncl_ranks_compare(t->ranks, "the configuration's hash",
                             hash(0, t->config_text, strlen(t->config_text))));
    TRY(attncl_ranks_compare(t->ranks, "the data's hash", attncl__dataset_hash(t->data)));
    TRY(attncl_ranks_compare(t->ranks, "the number of steps taken", (uint64_t)t->step));
    TRY(attncl_context_device(t->context, &device));
    snprintf(text, sizeof text, "%s/%s", device.name, device.driver_version);
    t->devices_differ =
        attncl_ranks_compare(t->ranks, "devices", hash(0, text, strlen(text))) == ATTNCL_ERR_STATE;
    return broadcast(t);
}

attncl_status attncl__replicas_compare(attncl_trainer *t)
{
    uint64_t h;
    if (attncl_ranks_size(t->ranks) == 1 || t->step % COMPARE_EVERY != 0)
        return ATTNCL_OK;
    if (t->devices_differ)
        return broadcast(t);
    TRY(hash_weights(t, &h));
    attncl_status status = attncl_ranks_compare(t->ranks, "the weights' hash", h);
    if (status != ATTNCL_OK)
        attncl__error_prefix("after step %" PRId64, t->step);
    return status;
}
