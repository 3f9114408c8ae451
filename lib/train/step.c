// SPDX-License-Identifier: MIT
//
// A training step: K batches in, one update, the loss out.  A batch goes through these states:
//
//   prepare   read the batch; each rank keeps its share of the sequences (part.c)
//   write     enqueue its inputs
//   run       enqueue the forward and backward pass (step_graph.c), which adds its gradients to the step's.  With one
//             rank, the update follows the last batch: clip, optimizer, averages
//   finish    wait for the loss.  Several ranks add their gradients (grad_sums.c), then update
//
// The first three run ahead of the wait, so that the device computes while the host waits, reads and reports.  The
// queue is in order.  With one rank, the next step's batches may run ahead too: if a loss or norm is not finite,
// `fault` becomes NaN on the device, which disables later updates.  With several ranks the next weights need the host,
// so of the next step only a batch's inputs are written.
//
// The loss L of a step is the mean over its batches; a batch's loss is the mean over its targets on all ranks (batch k,
// rank r, n_kr targets):
//
//   L = 1/K sum_k  sum_r n_kr L_kr / sum_r n_kr

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/struct.h"
#include "train/trainer.h"

static struct batch_in_flight *in_flight_at(attncl_trainer *t, int64_t index)
{
    return &t->in_flight[index % N_SLOTS];
}

static attncl_status check_whole(const attncl_trainer *t)
{
    REQUIRE(!t->is_broken, ATTNCL_ERR_STATE,
            "step %" PRId64 " failed half done: resume from a checkpoint", t->progress.step + 1);
    return ATTNCL_OK;
}

attncl_status attncl__check_usable(const attncl_trainer *t)
{
    TRY(check_whole(t));
    for (size_t i = 0; i < N_SLOTS; ++i)
        REQUIRE(t->in_flight[i].state != BATCH_RUNNING, ATTNCL_ERR_STATE,
                "step %" PRId64 " has begun: attncl_trainer_step() comes first",
                t->progress.step + 1);
    return ATTNCL_OK;
}

// -- prepare

static attncl_status prepare_batch(attncl_trainer *t, int64_t index)
{
    const double n_batches = (double)t->config.settings.accumulate;
    struct batch_in_flight *b = in_flight_at(t, index);
    if (b->state != BATCH_FREE)
        return ATTNCL_OK;
    *b = (struct batch_in_flight){.index = index, .share = 1};
    b->loss_read = (struct early_read){.name = "loss", .data = &b->loss, .bytes = sizeof b->loss};
    b->norm_read =
        (struct early_read){.name = "grad_norm", .data = &b->norm, .bytes = sizeof b->norm};
    TRY(attncl__prepare_part(t, index, &b->part));
    const struct part *p = &b->part;
    if (attncl__sums_gradients(t))
        b->share =
            p->n_all_targets > 0 ? (double)p->n_targets / (double)p->n_all_targets / n_batches : 0;
    b->state = BATCH_PREPARED;
    return ATTNCL_OK;
}

static void free_batch(struct batch_in_flight *b)
{
    attncl__batch_free(&b->part.batch);
    *b = (struct batch_in_flight){0};
}

// -- write

attncl_status attncl__write_inputs(const attncl_trainer *t, struct batch_in_flight *b)
{
    TRY(attncl__write_arrays(b->graph, &b->part.batch));
    b->number = (int32_t)(b->index & INT32_MAX);
    b->weight = (float)b->share;
    if (t->config.settings.dropout > 0)
        TRY(attncl__graph_write_queued(b->graph, "batch_number", &b->number, sizeof b->number));
    if (!attncl__sums_gradients(t))
        return ATTNCL_OK;
    return attncl__graph_write_queued(b->graph, "loss_weight", &b->weight, sizeof b->weight);
}

static attncl_status find_rate(const attncl_trainer *t, int64_t step, double *ret)
{
    const struct optim_settings *o = &t->config.settings.optimizer;
    return attncl_schedule_rate(&o->schedule, o->read.learning_rate, step, ret);
}

static attncl_status write_rate(attncl_trainer *t, struct batch_in_flight *b, attncl_graph *g)
{
    const int64_t step = b->index / t->config.settings.accumulate;
    double rate;
    TRY(find_rate(t, step, &rate));
    b->step = (int32_t)step;
    b->rate = (float)rate;
    TRY(attncl__graph_write_queued(g, "step", &b->step, sizeof b->step));
    return attncl__graph_write_queued(g, "learning_rate", &b->rate, sizeof b->rate);
}

static attncl_status write_batch(attncl_trainer *t, struct batch_in_flight *b)
{
    const enum graph_kind kind = attncl__sums_gradients(t) ? GRAPH_GRADIENT : GRAPH_STEP;
    if (b->part.is_empty) {
        b->state = BATCH_WRITTEN;
        return ATTNCL_OK;
    }
    TRY(attncl__find_step_graph(t, kind, &b->part.batch, &b->graph));
    attncl_status status = attncl__write_inputs(t, b);
    if (status == ATTNCL_OK && kind == GRAPH_STEP)
        status = write_rate(t, b, b->graph);
    if (status == ATTNCL_OK)
        b->state = BATCH_WRITTEN;
    else
        attncl__graph_drain(b->graph); // it will be written again
    return status;
}

// -- run

static bool is_last_of_step(const attncl_trainer *t, const struct batch_in_flight *b)
{
    return (b->index + 1) % t->config.settings.accumulate == 0;
}

static attncl_status enqueue_update(attncl_trainer *t, struct batch_in_flight *b)
{
    TRY(attncl__find_step_graph(t, GRAPH_UPDATE, &(struct batch){0}, &b->update_graph));
    TRY(write_rate(t, b, b->update_graph));
    b->updates = true;
    TRY(attncl_graph_run(b->update_graph));
    return attncl__read_enqueue(b->update_graph, &b->norm_read);
}

// One graph takes the whole step.
static attncl_status enqueue_step(struct batch_in_flight *b)
{
    b->update_graph = b->graph;
    b->updates = true;
    TRY(attncl_graph_run(b->graph));
    TRY(attncl__read_enqueue(b->graph, &b->loss_read));
    return attncl__read_enqueue(b->graph, &b->norm_read);
}

static attncl_status enqueue_passes(attncl_trainer *t, struct batch_in_flight *b)
{
    if (!attncl__sums_gradients(t))
        return enqueue_step(b);
    if (attncl__outputs_gradients(t)) // finish_batch() reads the loss after them
        return b->graph ? attncl__run_gradients(t, b->graph) : ATTNCL_OK;
    if (b->index % t->config.settings.accumulate == 0)
        for (size_t i = 0; i < t->n_trained; ++i)
            TRY(attncl__tensor_clear(t->trained[i].gradient));
    if (b->graph) {
        TRY(attncl_graph_run(b->graph));
        TRY(attncl__read_enqueue(b->graph, &b->loss_read));
    }
    return is_last_of_step(t, b) && attncl__is_alone(t) ? enqueue_update(t, b) : ATTNCL_OK;
}

static attncl_status run_batch(attncl_trainer *t, struct batch_in_flight *b)
{
    const attncl_status status = enqueue_passes(t, b);
    if (status == ATTNCL_OK) {
        b->state = BATCH_RUNNING;
        return ATTNCL_OK;
    }
    t->is_broken |= b->updates;
    if (b->update_graph)
        attncl__early_reads_abandon(b->update_graph, &b->norm_read, 1);
    if (b->graph)
        attncl__early_reads_abandon(b->graph, &b->loss_read, 1);
    free_batch(b);
    return status;
}

// -- ahead of the wait

static attncl_status begin_batch(attncl_trainer *t, int64_t index)
{
    struct batch_in_flight *b = in_flight_at(t, index);
    TRY(prepare_batch(t, index));
    if (b->state == BATCH_PREPARED)
        TRY(write_batch(t, b));
    return b->state == BATCH_WRITTEN && index < t->run_end ? run_batch(t, b) : ATTNCL_OK;
}

// Runs the batches before run_end, writes the next one, and prepares one more, as far as slots allow; `oldest` is the
// first batch not yet waited for.  Ignores failures of batches from `needed_end` on: they will recur when needed.
static attncl_status begin_batches(attncl_trainer *t, int64_t oldest, int64_t needed_end)
{
    const int64_t n_batches = t->config.settings.plan.steps * t->config.settings.accumulate;
    int64_t index = oldest;
    for (bool runs = true; runs && index < oldest + MAX_ENQUEUED; ++index) {
        runs = index < t->run_end;
        if (!runs && (index >= n_batches || attncl__queued_writes_block(t->context)))
            break;
        const attncl_status status = begin_batch(t, index);
        if (status != ATTNCL_OK)
            return index < needed_end ? status : ATTNCL_OK;
    }
    if (index < n_batches)
        (void)prepare_batch(t, index);
    return ATTNCL_OK;
}

attncl_status attncl_trainer_begin(attncl_trainer *trainer)
{
    REQUIRE(trainer, ATTNCL_ERR_ARGUMENT, "trainer is NULL");
    const int64_t n = trainer->config.settings.accumulate, oldest = trainer->progress.step * n;
    const int64_t first = trainer->run_end > oldest ? trainer->run_end : oldest;
    if (trainer->is_broken || !attncl__is_alone(trainer) || first >= oldest + MAX_STEPS_BEGUN * n ||
        first >= trainer->config.settings.plan.steps * n)
        return ATTNCL_OK;
    trainer->run_end = first + n;
    return begin_batches(trainer, oldest, oldest);
}

// -- finish

static attncl_status update_from_sums(attncl_trainer *t, struct batch_in_flight *b,
                                      attncl_train_step *step)
{
    TRY(attncl__receive_gradients(t));
    TRY(attncl_ranks_sum_double(t->ranks, &step->loss, 1));
    return isfinite(step->loss) ? enqueue_update(t, b) : ATTNCL_OK;
}

static attncl_status finish_batch(attncl_trainer *t, struct batch_in_flight *b,
                                  attncl_train_step *step)
{
    const bool sends = is_last_of_step(t, b) && !attncl__is_alone(t);
    if (sends)
        TRY(attncl__send_gradients(t, b->graph));
    if (b->graph && attncl__outputs_gradients(t))
        TRY(attncl__read_enqueue(b->graph, &b->loss_read));
    if (b->graph)
        TRY(attncl__read_wait(b->graph, &b->loss_read));
    step->loss += b->share * (double)b->loss;
    step->n_tokens += b->part.n_all_targets;
    if (sends)
        TRY(update_from_sums(t, b, step));
    if (b->update_graph)
        TRY(attncl__read_wait(b->update_graph, &b->norm_read));
    step->grad_norm = (double)b->norm;
    free_batch(b);
    return ATTNCL_OK;
}

void attncl__drop_batches(attncl_trainer *t)
{
    for (size_t i = 0; i < N_SLOTS; ++i) {
        struct batch_in_flight *b = &t->in_flight[i];
        if (b->graph)
            attncl__graph_drain(b->graph);
        if (b->graph && attncl__read_wait(b->graph, &b->loss_read) != ATTNCL_OK)
            t->is_broken |= b->updates;
        if (b->update_graph && attncl__read_wait(b->update_graph, &b->norm_read) != ATTNCL_OK)
            t->is_broken |= b->updates;
        free_batch(b);
    }
    t->run_end = 0;
}

// -- the step

static attncl_status take_batches(attncl_trainer *t, attncl_train_step *step)
{
    const int64_t n = t->config.settings.accumulate, first = t->progress.step * n, end = first + n;
    if (t->run_end < end)
        t->run_end = end;
    for (int64_t i = first; i < end; ++i) {
        TRY(begin_batches(t, i, end));
        TRY(finish_batch(t, in_flight_at(t, i), step));
    }
    return ATTNCL_OK;
}

// A NaN's sign means nothing, so messages omit it.
static double unsigned_nan(double x)
{
    return isnan(x) ? fabs(x) : x;
}

static attncl_status check_finite(const attncl_train_step *step)
{
    REQUIRE(isfinite(step->loss), ATTNCL_ERR_STATE, "step %" PRId64 ": the loss is %g", step->step,
            unsigned_nan(step->loss));
    REQUIRE(isfinite(step->grad_norm), ATTNCL_ERR_STATE,
            "step %" PRId64 ": the norm of the gradients is %g", step->step,
            unsigned_nan(step->grad_norm));
    return ATTNCL_OK;
}

// Drops everything enqueued after a failed step; keeps the failure's message.
static attncl_status stop_training(attncl_trainer *t, attncl_status status, bool has_run_failed)
{
    char message[1024];
    snprintf(message, sizeof message, "%s", attncl_last_error());
    for (size_t i = 0; i < N_SLOTS && has_run_failed; ++i)
        t->is_broken |= t->in_flight[i].updates; // these may or may not have run
    attncl__drop_batches(t);
    if (t->fault && attncl__tensor_clear(t->fault) != ATTNCL_OK)
        t->is_broken = true; // updates would do nothing
    if (has_run_failed)
        attncl__drop_step_graphs(t); // a graph whose run failed refuses further runs
    return FAIL(status, "%s", message);
}

attncl_status attncl_trainer_step(attncl_trainer *trainer, attncl_train_step *step_ret)
{
    REQUIRE(trainer && step_ret, ATTNCL_ERR_ARGUMENT, "trainer or step_ret is NULL");
    TRY(STRUCT_CHECK(attncl_train_step, step_ret));
    TRY(check_whole(trainer));
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    step.step = trainer->progress.step + 1;
    TRY(find_rate(trainer, trainer->progress.step, &step.learning_rate));
    const attncl_status status = take_batches(trainer, &step);
    if (attncl__prefix_failure(status, "step %" PRId64, step.step) != ATTNCL_OK)
        return stop_training(trainer, status, true);
    const attncl_status finite = check_finite(&step);
    if (finite != ATTNCL_OK)
        return stop_training(trainer, finite, false);
    trainer->progress.step = step.step;
    const attncl_status compared = attncl__compare_replicas(trainer);
    if (compared != ATTNCL_OK) {
        trainer->is_broken = true; // the weights have been updated
        trainer->progress.step = step.step - 1;
        return compared;
    }
    return STRUCT_WRITE(attncl_train_step, step_ret, &step);
}
