// SPDX-License-Identifier: MIT
//
// A step: batches in, gradients, an update.  While the device computes, the host prepares the next
// batch; steps in one graph may begin before the one before them was waited for (begun.c).
//
// With accumulation or several ranks the loss L of a step is
//
//   L = 1/K sum_k  sum_r n_kr L_kr / sum_r n_kr        batch k of K, rank r, its n_kr targets
//
// so a batch's loss is the mean over its targets, whichever rank has them, and a step's the mean over
// its batches.

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "attncl/optim.h"
#include "base/struct.h"
#include "base/try.h"
#include "graph/graph.h"
#include "train/trainer.h"

static attncl_status check_whole(const attncl_trainer *t)
{
    REQUIRE(!t->is_broken, ATTNCL_ERR_STATE,
            "step %" PRId64 " failed half done: resume from a checkpoint", t->step + 1);
    return ATTNCL_OK;
}

attncl_status attncl__trainer_usable(const attncl_trainer *t)
{
    TRY(check_whole(t));
    REQUIRE(t->n_begun == 0, ATTNCL_ERR_STATE,
            "step %" PRId64 " has begun: attncl_trainer_step() comes first", t->step + 1);
    return ATTNCL_OK;
}

static attncl_status write_int(attncl_graph *g, const char *name, int64_t value)
{
    const int32_t number = (int32_t)value;
    return attncl_graph_write(g, name, &number, sizeof number);
}

static attncl_status write_float(attncl_graph *g, const char *name, double value)
{
    const float number = (float)value;
    return attncl_graph_write(g, name, &number, sizeof number);
}

static attncl_status read_float(attncl_graph *g, const char *name, double *ret)
{
    float number;
    TRY(attncl_graph_read(g, name, &number, sizeof number));
    *ret = (double)number;
    return ATTNCL_OK;
}

static attncl_status write_dropout(attncl_trainer *t, attncl_graph *g, int64_t index)
{
    return t->config.settings.dropout > 0 ? write_int(g, "batch_number", index & INT32_MAX)
                                          : ATTNCL_OK;
}

static attncl_status write_update(attncl_trainer *t, attncl_graph *g, double rate)
{
    TRY(write_int(g, "step", t->step));
    return write_float(g, "learning_rate", rate);
}

// -- one graph

static attncl_status step_at_once(attncl_trainer *t, attncl_train_step *step)
{
    if (t->n_begun == 0)
        TRY(attncl__step_begin(t, t->step));
    attncl__batch_prepare_early(t, t->step + (int64_t)t->n_begun);
    return attncl__step_wait(t, step);
}

// -- sums of gradients

static attncl_status clear_gradients(attncl_trainer *t)
{
    for (size_t i = 0; i < t->n_trained; ++i)
        TRY(attncl__tensor_clear(t->trained[i].gradient));
    return ATTNCL_OK;
}

// Adds the gradients of a batch, and its loss.
static attncl_status add_batch(attncl_trainer *t, int64_t index, attncl_train_step *step)
{
    const double n_batches = (double)t->config.settings.accumulate;
    attncl_graph *g;
    double loss;
    TRY(attncl__batch_prepare(t, index));
    const struct part *part = &t->next;
    const double share = part->n_all_targets > 0
                             ? (double)part->n_targets / (double)part->n_all_targets / n_batches
                             : 0;
    step->n_tokens += part->n_all_targets;
    if (part->is_empty) {
        attncl__batch_prepare_early(t, index + 1);
        return attncl__grad_sums_send(t, NULL);
    }
    TRY(attncl__trainer_graph(t, GRAPH_GRADIENT, &part->batch, &g));
    TRY(attncl__trainer_write_batch(g, &part->batch));
    TRY(write_dropout(t, g, index));
    TRY(write_float(g, "loss_weight", share));
    TRY(attncl__grad_sums_run(t, g));
    attncl__batch_prepare_early(t, index + 1);
    TRY(attncl__grad_sums_send(t, g));
    TRY(read_float(g, "loss", &loss));
    step->loss += share * loss;
    return ATTNCL_OK;
}

static attncl_status step_by_sums(attncl_trainer *t, attncl_train_step *step)
{
    const int64_t n_batches = t->config.settings.accumulate;
    attncl_graph *g;
    if (!attncl__grad_sums_are_outputs(t))
        TRY(clear_gradients(t));
    for (int64_t i = 0; i < n_batches; ++i)
        TRY(add_batch(t, t->step * n_batches + i, step));
    TRY(attncl__grad_sums_receive(t));
    TRY(attncl_ranks_sum_double(t->ranks, &step->loss, 1));
    if (!isfinite(step->loss))
        return ATTNCL_OK;
    TRY(attncl__trainer_graph(t, GRAPH_UPDATE, NULL, &g));
    TRY(write_update(t, g, step->learning_rate));
    t->is_broken = true;
    TRY(attncl_graph_run(g));
    TRY(read_float(g, "grad_norm", &step->grad_norm));
    t->is_broken = false;
    return ATTNCL_OK;
}

// -- a step

// Apart from the update, for a step whose loss is known to be finite; no wait.
static attncl_status update_averages(attncl_trainer *t)
{
    attncl_graph *g;
    if (!(t->config.settings.ema > 0))
        return ATTNCL_OK;
    t->is_broken = true;
    TRY(attncl__trainer_graph(t, GRAPH_AVERAGE, NULL, &g));
    TRY(attncl_graph_run(g));
    t->is_broken = false;
    return ATTNCL_OK;
}

// The sign of a NaN means nothing and is not shown.
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

// Nothing goes on behind a step that failed; its message stays.
static attncl_status stop(attncl_trainer *t, attncl_status status, bool drop_graphs)
{
    char message[1024];
    snprintf(message, sizeof message, "%s", attncl_last_error());
    attncl__steps_drop(t);
    if (t->fault && attncl__tensor_clear(t->fault) != ATTNCL_OK)
        t->is_broken = true; // updates would do nothing
    if (drop_graphs)
        attncl__trainer_drop_graphs(t);
    return FAIL(status, "%s", message);
}

attncl_status attncl_trainer_step(attncl_trainer *trainer, attncl_train_step *step_ret)
{
    REQUIRE(trainer && step_ret, ATTNCL_ERR_ARGUMENT, "trainer or step_ret is NULL");
    TRY(check_whole(trainer));
    const struct optim_settings *o = &trainer->config.settings.optimizer;
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    step.step = trainer->step + 1;
    TRY(attncl_schedule_rate(&o->schedule, o->learning_rate, trainer->step, &step.learning_rate));
    const attncl_status status =
        attncl__trainer_sums(trainer) ? step_by_sums(trainer, &step) : step_at_once(trainer, &step);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("step %" PRId64, step.step);
        return stop(trainer, status, true); // graphs whose runs failed refuse others
    }
    const attncl_status finite = check_finite(&step);
    if (finite != ATTNCL_OK)
        return stop(trainer, finite, false);
    TRY(update_averages(trainer));
    trainer->step = step.step;
    const attncl_status compared = attncl__replicas_compare(trainer);
    if (compared != ATTNCL_OK) {
        trainer->is_broken = true; // the weights have had their step
        trainer->step = step.step - 1;
        return compared;
    }
    return STRUCT_WRITE(attncl_train_step, step_ret, &step);
}
