// SPDX-License-Identifier: MIT
//
// Sums of gradients over several ranks, in buckets.
//
//   values [all gradients]   in the order in which the backward pass completes them
//   bucket                   consecutive gradients, at least MIN_BUCKET floats, and MIN_PIECE per rank
//
// Without accumulation gradients are outputs, read as soon as they are complete, and a full bucket is
// summed while the backward pass continues.  With accumulation they are read after the last batch.  All
// ranks use rank 0's order, since sums are matched by their order.

#include <string.h>

#include "train/ranks.h"
#include "train/trainer.h"

enum { MIN_BUCKET = 1 << 18, MIN_PIECE = 1 << 14 };

struct grad_sums {
    float *values;  // [count]
    size_t *order;  // [n_trained], indices of trained tensors
    size_t *bucket; // [n_buckets + 1], each bucket's first index in `order`
    size_t n_buckets;
    struct early_read *reads; // [n_trained], into values, in that order
};

bool attncl__outputs_gradients(const attncl_trainer *t)
{
    return t->config.settings.accumulate == 1 && !attncl__is_alone(t);
}

void attncl__free_grad_sums(attncl_trainer *t)
{
    struct grad_sums *s = t->grad_sums;
    if (!s)
        return;
    attncl__free(s->values);
    attncl__free(s->order);
    attncl__free(s->bucket);
    attncl__free(s->reads);
    attncl__free(s);
    t->grad_sums = NULL;
}

// -- order and buckets

static attncl_status alloc_lists(const attncl_trainer *t, struct grad_sums *s)
{
    const size_t n = t->n_trained;
    size_t count = 0;
    for (size_t i = 0; i < n; ++i)
        count += t->trained[i].count;
    s->values = attncl__alloc_array(count, sizeof *s->values);
    s->order = attncl__alloc_array(n, sizeof *s->order);
    s->bucket = attncl__alloc_array(n + 1, sizeof *s->bucket);
    s->reads = attncl__alloc_array(n, sizeof *s->reads);
    REQUIRE(s->values && s->order && s->bucket && s->reads, ATTNCL_ERR_NO_MEMORY, "%zu gradients",
            count);
    return ATTNCL_OK;
}

static struct early_read make_read(const struct trained *trained)
{
    return (struct early_read){.name = trained->output, .bytes = trained->count * sizeof(float)};
}

// The index of the trained tensor whose gradient is read.
static size_t find_trained(const attncl_trainer *t, const struct early_read *read)
{
    return (size_t)(read->name - t->trained[0].output) / sizeof *t->trained;
}

// Finds the order of a graph's gradients; NULL: from the last to the first.
static attncl_status find_order(attncl_trainer *t, const attncl_graph *g, struct grad_sums *s)
{
    const size_t n = t->n_trained;
    for (size_t i = 0; i < n; ++i)
        s->reads[n - 1 - i] = make_read(&t->trained[i]);
    if (g)
        TRY(attncl__early_reads_sort(g, s->reads, n));
    for (size_t i = 0; i < n; ++i)
        s->order[i] = find_trained(t, &s->reads[i]);
    return attncl_ranks_broadcast(t->ranks, s->order, n * sizeof *s->order);
}

static void cut_buckets(const attncl_trainer *t, struct grad_sums *s)
{
    const size_t pieces = (size_t)attncl_ranks_size(t->ranks) * MIN_PIECE;
    const size_t min_count = pieces > MIN_BUCKET ? pieces : MIN_BUCKET;
    size_t in_bucket = 0;
    float *data = s->values;
    for (size_t i = 0; i < t->n_trained; ++i) {
        const size_t count = t->trained[s->order[i]].count;
        s->reads[i] = make_read(&t->trained[s->order[i]]);
        s->reads[i].data = data;
        data += count;
        in_bucket += count;
        if (in_bucket < min_count && i + 1 < t->n_trained)
            continue;
        s->bucket[++s->n_buckets] = i + 1;
        in_bucket = 0;
    }
}

static attncl_status prepare_sums(attncl_trainer *t, const attncl_graph *g)
{
    if (t->grad_sums)
        return ATTNCL_OK;
    t->grad_sums = attncl__alloc_zero(sizeof *t->grad_sums);
    REQUIRE(t->grad_sums, ATTNCL_ERR_NO_MEMORY, "gradients");
    attncl_status status = alloc_lists(t, t->grad_sums);
    if (status == ATTNCL_OK)
        status = find_order(t, g, t->grad_sums);
    if (status == ATTNCL_OK)
        cut_buckets(t, t->grad_sums);
    else
        attncl__free_grad_sums(t);
    return status;
}

// -- sending and receiving

attncl_status attncl__run_gradients(attncl_trainer *t, attncl_graph *g)
{
    TRY(prepare_sums(t, g));
    return attncl__graph_run_reading(g, t->grad_sums->reads, t->n_trained);
}

// Waits for the device while advancing sums in flight.
static attncl_status wait_for_read(attncl_trainer *t, const struct early_read *read)
{
    int pause_us = 0;
    for (bool done = false; !done;) {
        size_t n_left;
        TRY(attncl__early_read_is_done(read, &done));
        TRY(attncl_ranks_sum_poll(t->ranks, &n_left));
        if (!done)
            attncl__ranks_pause(&pause_us); // the cores may be the device's
    }
    return ATTNCL_OK;
}

// g: the graph whose outputs are the gradients; NULL: they are tensors, or zeros on a rank without a part.
static attncl_status send_bucket(attncl_trainer *t, const attncl_graph *g, size_t bucket)
{
    const struct grad_sums *s = t->grad_sums;
    const size_t first = s->bucket[bucket], end = s->bucket[bucket + 1];
    size_t bytes = 0;
    for (size_t i = first; i < end; ++i) {
        if (!attncl__outputs_gradients(t))
            TRY(attncl_tensor_read(t->trained[s->order[i]].gradient, s->reads[i].data,
                                   s->reads[i].bytes));
        else if (!g)
            memset(s->reads[i].data, 0, s->reads[i].bytes);
        bytes += s->reads[i].bytes;
    }
    if (g)
        TRY(wait_for_read(t, &s->reads[end - 1]));
    return attncl_ranks_sum_begin(t->ranks, s->reads[first].data, bytes / sizeof(float));
}

attncl_status attncl__send_gradients(attncl_trainer *t, attncl_graph *g)
{
    if (!attncl__outputs_gradients(t))
        g = NULL;
    TRY(prepare_sums(t, g));
    const struct grad_sums *s = t->grad_sums;
    attncl_status status = ATTNCL_OK;
    for (size_t i = 0; i < s->n_buckets && status == ATTNCL_OK; ++i)
        status = send_bucket(t, g, i);
    if (g && status == ATTNCL_OK)
        return attncl__early_reads_end(g, s->reads, t->n_trained);
    if (g)
        attncl__early_reads_abandon(g, s->reads, t->n_trained);
    return status;
}

attncl_status attncl__receive_gradients(attncl_trainer *t)
{
    const struct grad_sums *s = t->grad_sums;
    for (size_t b = 0; b < s->n_buckets; ++b) {
        TRY(attncl_ranks_sum_wait(t->ranks, s->n_buckets - 1 - b));
        for (size_t i = s->bucket[b]; i < s->bucket[b + 1]; ++i)
            TRY(attncl_tensor_write(t->trained[s->order[i]].gradient, s->reads[i].data,
                                    s->reads[i].bytes));
    }
    return ATTNCL_OK;
}
