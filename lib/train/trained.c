// SPDX-License-Identifier: MIT
//
// Trained tensors: their optimizer states and averages, and keeping replicas equal.  Each rank updates its own weights
// with the same gradients; hashes show whether they stay equal.  Devices of the same kind compute the same bits.
// Different devices round differently, so rank 0's weights then replace the others' at intervals.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "train/trainer.h"

enum { COMPARE_EVERY = 100 }; // steps, since reading all weights takes time

static bool is_kept(const attncl_trainer *t, int kept)
{
    return kept == KEPT_AVERAGE ? t->config.settings.ema > 0
                                : kept >= KEPT_STATES && kept < KEPT_STATES + (int)t->n_states;
}

static attncl_status read_weight(const void *from, uint64_t offset, size_t bytes, void *to)
{
    attncl_tensor *const *weight = from;
    return attncl__tensor_read_part(*weight, offset, to, bytes);
}

// Averages begin as the weights, states as zeros.
static attncl_status create_tensor(attncl_trainer *t, struct trained *trained, enum kept kept)
{
    struct tensor_source source = {.dtype = ATTNCL_F32};
    if (kept == KEPT_AVERAGE)
        source =
            (struct tensor_source){ATTNCL_F32, read_weight, &trained->tensor[KEPT_WEIGHT], NULL};
    return attncl__tensor_create_from(t->context, ATTNCL_F32, trained->shape.rank,
                                      trained->shape.dim, &source, &trained->tensor[kept]);
}

static attncl_status create_trained(attncl_trainer *t, const struct param *weight)
{
    const attncl_shape *shape = &weight->shape;
    struct trained *trained = &t->trained[t->n_trained];
    struct tensor_desc desc;
    TRY(attncl__desc_make(ATTNCL_F32, shape->rank, shape->dim, &desc));
    *trained = (struct trained){.name = weight->name,
                                .shape = *shape,
                                .count = (size_t)attncl__desc_count(&desc),
                                .tensor = {[KEPT_WEIGHT] = weight->tensor}};
    snprintf(trained->output, sizeof trained->output, "gradient.%zu", t->n_trained++);
    if (trained->count > t->largest)
        t->largest = trained->count;
    for (int kept = 0; kept < N_KEPT; ++kept)
        if (is_kept(t, kept))
            TRY(create_tensor(t, trained, (enum kept)kept));
    return attncl__sums_gradients(t)
               ? attncl_tensor_create(t->context, ATTNCL_F32, shape->rank, shape->dim, ATTNCL_F32,
                                      NULL, &trained->gradient)
               : ATTNCL_OK;
}

attncl_status attncl__create_trained(attncl_trainer *t)
{
    if (attncl__is_alone(t))
        TRY(attncl_tensor_create(t->context, ATTNCL_F32, 0, NULL, ATTNCL_F32, NULL, &t->fault));
    const size_t n = attncl_model_tensor_count(t->model);
    t->n_states = attncl__optim_states(&t->config.settings.optimizer, t->states);
    t->trained = attncl__alloc_array(n, sizeof *t->trained);
    t->weights = attncl__alloc_array(n, 3 * sizeof *t->weights);
    REQUIRE(t->trained && t->weights, ATTNCL_ERR_NO_MEMORY, "%zu trained tensors", n);
    t->gradients = t->weights + n;
    t->clipped = t->gradients + n;
    for (size_t i = 0; i < t->model->params.n; ++i)
        if (!t->model->params.list[i].fixed)
            TRY(create_trained(t, &t->model->params.list[i]));
    return ATTNCL_OK;
}

void attncl__destroy_trained(attncl_trainer *t)
{
    for (size_t i = 0; i < t->n_trained; ++i) {
        for (int kept = KEPT_WEIGHT + 1; kept < N_KEPT; ++kept)
            attncl_tensor_destroy(t->trained[i].tensor[kept]);
        attncl_tensor_destroy(t->trained[i].gradient);
    }
    attncl_tensor_destroy(t->fault);
    attncl__free(t->trained);
    attncl__free(t->weights);
}

// Memory for two copies of the largest tensor.
static attncl_status alloc_values(const attncl_trainer *t, float **ret)
{
    *ret = attncl__alloc_array(t->largest, 2 * sizeof **ret);
    REQUIRE(*ret, ATTNCL_ERR_NO_MEMORY, "%zu weights", t->largest);
    return ATTNCL_OK;
}

// -- averages

static attncl_status exchange_average(const struct trained *trained, float *values)
{
    const size_t bytes = trained->count * sizeof *values;
    float *const weight = values, *const average = values + trained->count;
    TRY(attncl_tensor_read(trained->tensor[KEPT_WEIGHT], weight, bytes));
    TRY(attncl_tensor_read(trained->tensor[KEPT_AVERAGE], average, bytes));
    TRY(attncl_tensor_write(trained->tensor[KEPT_WEIGHT], average, bytes));
    return attncl_tensor_write(trained->tensor[KEPT_AVERAGE], weight, bytes);
}

attncl_status attncl__exchange_averages(attncl_trainer *t)
{
    float *values = NULL;
    if (!(t->config.settings.ema > 0))
        return ATTNCL_OK;
    TRY(alloc_values(t, &values));
    attncl_status status = ATTNCL_OK;
    for (size_t i = 0; i < t->n_trained && status == ATTNCL_OK; ++i)
        status = exchange_average(&t->trained[i], values);
    t->is_broken |= status != ATTNCL_OK; // some were exchanged
    attncl__free(values);
    return status;
}

// -- ranks

static uint64_t hash_bytes(uint64_t h, const void *data, size_t bytes)
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

// Replaces all ranks' weights, states and averages by rank 0's.
static attncl_status broadcast_kept(attncl_trainer *t)
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
        *ret = hash_bytes(*ret, values, bytes);
    }
done:
    attncl__free(values);
    return status;
}

attncl_status attncl__begin_replicas(attncl_trainer *t)
{
    if (attncl__is_alone(t))
        return ATTNCL_OK;
    attncl_device_info device = ATTNCL_DEVICE_INFO_INIT;
    char text[sizeof device.name + sizeof device.driver_version + 1];
    TRY(attncl_ranks_compare(t->ranks, "the configuration's hash",
                             hash_bytes(0, t->config_text, strlen(t->config_text))));
    TRY(attncl_ranks_compare(t->ranks, "the data's hash", attncl__dataset_hash(t->data)));
    TRY(attncl_ranks_compare(t->ranks, "the number of steps taken", (uint64_t)t->progress.step));
    TRY(attncl_context_device(t->context, &device));
    snprintf(text, sizeof text, "%s/%s", device.name, device.driver_version);
    t->devices_differ = attncl_ranks_compare(t->ranks, "devices",
                                             hash_bytes(0, text, strlen(text))) == ATTNCL_ERR_STATE;
    return broadcast_kept(t);
}

attncl_status attncl__compare_replicas(attncl_trainer *t)
{
    uint64_t h;
    if (attncl__is_alone(t) || t->progress.step % COMPARE_EVERY != 0)
        return ATTNCL_OK;
    if (t->devices_differ)
        return broadcast_kept(t);
    TRY(hash_weights(t, &h));
    return attncl__prefix_failure(attncl_ranks_compare(t->ranks, "the weights' hash", h),
                                  "after step %" PRId64, t->progress.step);
}
