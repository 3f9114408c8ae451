// SPDX-License-Identifier: MIT
//
// Steps that have begun: enqueued, and not waited for.  The device goes on with the next while the host
// reads and reports what one gave.
//
// The queue is in order.  Where a loss or norm is not a number, `fault` becomes NaN on the device, which
// makes the updates of the steps behind it do nothing, as that step's own.

#include <inttypes.h>

#include "attncl/optim.h"
#include "base/try.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "train/trainer.h"

static attncl_status write_numbers(attncl_trainer *t, struct begun_step *s)
{
    const struct optim_settings *o = &t->config.settings.optimizer;
    double rate;
    TRY(attncl_schedule_rate(&o->schedule, o->learning_rate, s->index, &rate));
    s->number = (int32_t)s->index;
    s->rate = (float)rate;
    if (t->config.settings.dropout > 0)
        TRY(attncl__graph_write_queued(s->graph, "batch_number", &s->number, sizeof s->number));
    TRY(attncl__graph_write_queued(s->graph, "step", &s->number, sizeof s->number));
    return attncl__graph_write_queued(s->graph, "learning_rate", &s->rate, sizeof s->rate);
}

static attncl_status write_batch(struct begun_step *s)
{
    for (size_t i = 0; i < s->part.batch.n; ++i) {
        const attncl_array *a = &s->part.batch.array[i];
        TRY(attncl__graph_write_queued(s->graph, a->name, a->data, a->bytes));
    }
    return ATTNCL_OK;
}

static struct begun_step *begun_at(attncl_trainer *t, size_t i)
{
    return &t->begun[(t->first_begun + i) % MAX_BEGUN];
}

static void forget(struct begun_step *s)
{
    attncl__part_free(&s->part);
    *s = (struct begun_step){0};
}

void attncl__steps_drop(attncl_trainer *t)
{
    for (; t->n_begun > 0; --t->n_begun) {
        struct begun_step *s = begun_at(t, 0);
        (void)attncl__reads_wait(s->graph, s->reads, N_STEP_READS);
        forget(s);
        t->first_begun = (t->first_begun + 1) % MAX_BEGUN;
    }
}

// The host's data are the step's until it was waited for, whatever fails.
attncl_status attncl__step_begin(attncl_trainer *t, int64_t index)
{
    struct begun_step *s = begun_at(t, t->n_begun);
    attncl_status status = ATTNCL_OK;
    *s = (struct begun_step){.index = index};
    TRY(attncl__batch_prepare(t, index));
    TRY(attncl__trainer_graph(t, GRAPH_STEP, &t->next.batch, &s->graph));
    s->part = t->next;
    t->next = (struct part){0};
    t->next_index = -1;
    s->reads[0] = (struct early_read){.name = "loss", .data = &s->loss, .bytes = sizeof s->loss};
    s->reads[1] =
        (struct early_read){.name = "grad_norm", .data = &s->norm, .bytes = sizeof s->norm};
    bool ran = false;
    TRY_DONE(write_batch(s));
    TRY_DONE(write_numbers(t, s));
    ran = true;
    TRY_DONE(attncl_graph_run(s->graph));
    TRY_DONE(attncl__reads_enqueue(s->graph, s->reads, N_STEP_READS));
    ++t->n_begun;
    return ATTNCL_OK;
done:
    t->is_broken |= ran;
    attncl__early_reads_abandon(s->graph, s->reads, N_STEP_READS);
    forget(s);
    return status;
}

attncl_status attncl__step_wait(attncl_trainer *t, attncl_train_step *step)
{
    struct begun_step *s = begun_at(t, 0);
    t->is_broken = true; // until its results are here
    TRY(attncl__reads_wait(s->graph, s->reads, N_STEP_READS));
    t->is_broken = false;
    step->loss = (double)s->loss;
    step->grad_norm = (double)s->norm;
    step->n_tokens = s->part.n_targets;
    forget(s);
    t->first_begun = (t->first_begun + 1) % MAX_BEGUN;
    --t->n_begun;
    return ATTNCL_OK;
}

attncl_status attncl_trainer_begin(attncl_trainer *trainer)
{
    REQUIRE(trainer, ATTNCL_ERR_ARGUMENT, "trainer is NULL");
    const int64_t index = trainer->step + (int64_t)trainer->n_begun;
    if (trainer->is_broken || trainer->n_begun == MAX_BEGUN || !attncl__steps_overlap(trainer) ||
        index >= trainer->config.settings.steps)
        return ATTNCL_OK;
    if (attncl__step_begin(trainer, index) == ATTNCL_OK)
        attncl__batch_prepare_early(trainer, index + 1);
    return ATTNCL_OK; // a failure is that of the call that needs the step
}
