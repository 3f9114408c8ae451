// SPDX-License-Identifier: MIT
//
// Batches that have begun: written to the device and, where the weights allow it, run, without a wait.  The
// device goes on with the next while the host waits for one, reads and reports what it gave.
//
//   write    the batch's inputs, after the run before
//   run      loss and gradients; of a step's last batch the update too, where one rank takes it
//   wait     for the loss and the norm
//
// The queue is in order.  Where a loss or norm is not finite, `fault` becomes NaN on the device, which
// makes the updates after it do nothing, as that step's own.  Several ranks update when the host has the
// sums of their gradients: of the next step's first batch only the inputs are written before.

#include <inttypes.h>

#include "attncl/optim.h"
#include "base/try.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "train/trainer.h"

static struct begun_batch *begun_at(attncl_trainer *t, size_t i)
{
    return &t->begun[(t->first_begun + i) % MAX_BEGUN];
}

bool attncl__steps_begun(const attncl_trainer *t)
{
    return t->n_begun > 0 && t->begun[t->first_begun].has_run;
}

static void forget(struct begun_batch *b)
{
    attncl__part_free(&b->part);
    *b = (struct begun_batch){0};
}

// -- updates

static attncl_status write_update(attncl_trainer *t, attncl_graph *g, int64_t step,
                                  struct begun_update *u)
{
    const struct optim_settings *o = &t->config.settings.optimizer;
    double rate;
    TRY(attncl_schedule_rate(&o->schedule, o->learning_rate, step, &rate));
    u->step = (int32_t)step;
    u->rate = (float)rate;
    u->read = (struct early_read){.name = "grad_norm", .data = &u->norm, .bytes = sizeof u->norm};
    TRY(attncl__graph_write_queued(g, "step", &u->step, sizeof u->step));
    return attncl__graph_write_queued(g, "learning_rate", &u->rate, sizeof u->rate);
}

attncl_status attncl__update_begin(attncl_trainer *t, int64_t step, struct begun_update *u)
{
    attncl_status status = ATTNCL_OK;
    attncl_graph *g;
    bool ran = false;
    *u = (struct begun_update){0};
    TRY(attncl__trainer_graph(t, GRAPH_UPDATE, NULL, &g));
    TRY_DONE(write_update(t, g, step, u));
    ran = true;
    TRY_DONE(attncl_graph_run(g));
    TRY_DONE(attncl__reads_enqueue(g, &u->read, 1));
    u->graph = g;
    return ATTNCL_OK;
done:
    t->is_broken |= ran;
    attncl__early_reads_abandon(g, &u->read, 1);
    return status;
}

attncl_status attncl__update_wait(attncl_trainer *t, struct begun_update *u)
{
    const attncl_status status = attncl__reads_wait(u->graph, &u->read, 1);
    t->is_broken |= status != ATTNCL_OK;
    return status;
}

// -- writing

// Its part of the step's loss, which is the mean over batches and over the targets of all ranks.
static double share_of(const attncl_trainer *t, const struct part *part)
{
    if (!attncl__trainer_sums(t))
        return 1;
    return part->n_all_targets > 0 ? (double)part->n_targets / (double)part->n_all_targets /
                                         (double)t->config.settings.accumulate
                                   : 0;
}

static attncl_status write_inputs(attncl_trainer *t, struct begun_batch *b)
{
    for (size_t i = 0; i < b->part.batch.n; ++i) {
        const attncl_array *a = &b->part.batch.array[i];
        TRY(attncl__graph_write_queued(b->graph, a->name, a->data, a->bytes));
    }
    b->number = (int32_t)(b->index & INT32_MAX);
    b->weight = (float)b->share;
    if (t->config.settings.dropout > 0)
        TRY(attncl__graph_write_queued(b->graph, "batch_number", &b->number, sizeof b->number));
    if (!attncl__trainer_sums(t))
        return write_update(t, b->graph, b->index, &b->update);
    return attncl__graph_write_queued(b->graph, "loss_weight", &b->weight, sizeof b->weight);
}

// The host's data are the batch's until it was waited for, whatever fails.
static attncl_status write_batch(attncl_trainer *t, int64_t index)
{
    const enum graph_kind kind = attncl__trainer_sums(t) ? GRAPH_GRADIENT : GRAPH_STEP;
    struct begun_batch *b = begun_at(t, t->n_begun);
    attncl_graph *g = NULL;
    TRY(attncl__batch_prepare(t, index));
    if (!t->next.is_empty)
        TRY(attncl__trainer_graph(t, kind, &t->next.batch, &g));
    *b = (struct begun_batch){
        .index = index, .graph = g, .part = t->next, .share = share_of(t, &t->next)};
    t->next = (struct part){0};
    t->next_index = -1;
    b->read = (struct early_read){.name = "loss", .data = &b->loss, .bytes = sizeof b->loss};
    const attncl_status status = g ? write_inputs(t, b) : ATTNCL_OK;
    if (status == ATTNCL_OK) {
        ++t->n_begun;
        return ATTNCL_OK;
    }
    attncl__graph_drain(g);
    forget(b);
    return status;
}

// -- running

static attncl_status clear_gradients(attncl_trainer *t)
{
    for (size_t i = 0; i < t->n_trained; ++i)
        TRY(attncl__tensor_clear(t->trained[i].gradient));
    return ATTNCL_OK;
}

static attncl_status run_graph(attncl_trainer *t, struct begun_batch *b)
{
    b->updates = !attncl__trainer_sums(t);
    TRY(attncl__grad_sums_run(t, b->graph));
    if (attncl__grad_sums_are_outputs(t))
        return ATTNCL_OK; // the loss is read after them
    TRY(attncl__reads_enqueue(b->graph, &b->read, 1));
    if (!b->updates)
        return ATTNCL_OK;
    b->update.graph = b->graph;
    return attncl__reads_enqueue(b->graph, &b->update.read, 1);
}

static attncl_status run(attncl_trainer *t, struct begun_batch *b)
{
    const int64_t n_batches = t->config.settings.accumulate;
    const bool adds = attncl__trainer_sums(t) && !attncl__grad_sums_are_outputs(t);
    if (adds && b->index % n_batches == 0)
        TRY(clear_gradients(t));
    if (b->graph)
        TRY(run_graph(t, b));
    if (!adds || !attncl__steps_overlap(t) || (b->index + 1) % n_batches != 0)
        return ATTNCL_OK;
    b->updates = true;
    return attncl__update_begin(t, b->index / n_batches, &b->update);
}

// Runs the last batch that was written.
static attncl_status run_batch(attncl_trainer *t)
{
    struct begun_batch *b = begun_at(t, t->n_begun - 1);
    const attncl_status status = run(t, b);
    if (status == ATTNCL_OK) {
        b->has_run = true;
        return ATTNCL_OK;
    }
    t->is_broken |= b->updates && !attncl__trainer_sums(t);
    if (b->graph) {
        attncl__early_reads_abandon(b->graph, &b->update.read, 1);
        attncl__early_reads_abandon(b->graph, &b->read, 1);
    }
    forget(b);
    --t->n_begun;
    return status;
}

attncl_status attncl__batches_begin(attncl_trainer *t, int64_t oldest)
{
    const int64_t n_batches = t->config.settings.steps * t->config.settings.accumulate;
    for (size_t i = 0; i < MAX_BEGUN; ++i) {
        const int64_t index = oldest + (int64_t)i;
        const bool runs = index < t->run_end;
        if (!runs && (index >= n_batches || attncl__queued_writes_wait(t->context)))
            return ATTNCL_OK;
        if (i == t->n_begun)
            TRY(write_batch(t, index));
        if (!runs)
            return ATTNCL_OK;
        if (!begun_at(t, i)->has_run)
            TRY(run_batch(t));
    }
    return ATTNCL_OK;
}

// -- waiting

// After a failure neither read is left, although the second was not waited for.
static attncl_status wait_for(attncl_trainer *t, struct begun_batch *b)
{
    attncl_status status = ATTNCL_OK;

    if (b->graph && attncl__grad_sums_are_outputs(t))
        TRY_DONE(attncl__reads_enqueue(b->graph, &b->read, 1));
    if (b->graph)
        TRY_DONE(attncl__reads_wait(b->graph, &b->read, 1));
    return b->update.graph ? attncl__update_wait(t, &b->update) : ATTNCL_OK;
done:
    if (b->update.graph)
        attncl__early_reads_abandon(b->update.graph, &b->update.read, 1);
    return status;
}

static void pop(attncl_trainer *t)
{
    forget(begun_at(t, 0));
    t->first_begun = (t->first_begun + 1) % MAX_BEGUN;
    --t->n_begun;
}

attncl_status attncl__batch_wait(attncl_trainer *t, attncl_train_step *step)
{
    struct begun_batch *b = begun_at(t, 0);
    attncl_status status = attncl__grad_sums_send(t, b->graph);
    if (status == ATTNCL_OK)
        status = wait_for(t, b);
    for (size_t i = 0; status != ATTNCL_OK && i < t->n_begun; ++i)
        t->is_broken |= begun_at(t, i)->updates; // whether these were done is not known
    TRY(status);
    step->loss += b->share * (double)b->loss;
    step->grad_norm = (double)b->update.norm;
    step->n_tokens += b->part.n_all_targets;
    pop(t);
    return ATTNCL_OK;
}

void attncl__batches_drop(attncl_trainer *t)
{
    for (; t->n_begun > 0; pop(t)) {
        struct begun_batch *b = begun_at(t, 0);
        if (b->has_run && wait_for(t, b) != ATTNCL_OK)
            t->is_broken |= b->updates;
        if (!b->has_run && b->graph)
            attncl__graph_drain(b->graph);
    }
    t->run_end = 0;
}

attncl_status attncl_trainer_begin(attncl_trainer *trainer)
{
    REQUIRE(trainer, ATTNCL_ERR_ARGUMENT, "trainer is NULL");
    const int64_t n = trainer->config.settings.accumulate, oldest = trainer->step * n;
    const int64_t first = trainer->run_end > oldest ? trainer->run_end : oldest;
    if (trainer->is_broken || !attncl__steps_overlap(trainer) ||
        first >= oldest + MAX_BEGUN_STEPS * n || first >= trainer->config.settings.steps * n)
        return ATTNCL_OK;
    trainer->run_end = first + n;
    const attncl_status status = attncl__batches_begin(trainer, oldest);
    const int64_t next = oldest + (int64_t)trainer->n_begun;
    if (status != ATTNCL_OK && next <= first)
        trainer->run_end = first;
    if (status == ATTNCL_OK)
        attncl__batch_prepare_early(trainer, next);
    return ATTNCL_OK; // a failure is that of the call that needs the step
}
