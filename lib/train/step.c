// SPDX-License-Identifier: MIT
//
// A step: batches in, gradients, an update.  While the device computes a batch, the host prepares and enqueues the
// next; on one rank steps may begin before the one before them was waited for (begun.c).
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
    REQUIRE(!attncl__steps_begun(t), ATTNCL_ERR_STATE,
            "step %" PRId64 " has begun: attncl_trainer_step() comes first", t->step + 1);
    return ATTNCL_OK;
}

// -- batches

static attncl_status take_batches(attncl_trainer *t, attncl_train_step *step)
{
    const int64_t n = t->config.settings.accumulate, first = t->step * n, end = first + n;
    if (t->run_end < end)
        t->run_end = end;
    for (int64_t i = first; i < end; ++i) {
        const attncl_status status = attncl__batches_begin(t, i);
        const int64_t next = i + (int64_t)t->n_begun;
        if (status != ATTNCL_OK && next < end)
            return status; // the next step tells what is the next step's
        attncl__batch_prepare_early(t, next);
        TRY(attncl__batch_wait(t, step));
    }
    return ATTNCL_OK;
}

// Several ranks update when they have the sums.
static attncl_status update_from_sums(attncl_trainer *t, attncl_train_step *step)
{
    struct begun_update update;
    TRY(attncl__grad_sums_receive(t));
    TRY(attncl_ranks_sum_double(t->ranks, &step->loss, 1));
    if (!isfinite(step->loss))
        return ATTNCL_OK;
    TRY(attncl__update_begin(t, t->step, &update));
    TRY(attncl__update_wait(t, &update));
    step->grad_norm = (double)update.norm;
    return ATTNCL_OK;
}

static attncl_status take_step(attncl_trainer *t, attncl_train_step *step)
{
    TRY(take_batches(t, step));
    return attncl_ranks_size(t->ranks) > 1 ? update_from_sums(t, step) : ATTNCL_OK;
}

// -- a step

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
    attncl__batches_drop(t);
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
    const attncl_status status = take_step(trainer, &step);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("step %" PRId64, step.step);
        return stop(trainer, status, true); // graphs whose runs failed refuse others
    }
    const attncl_status finite = check_finite(&step);
    if (finite != ATTNCL_OK)
        return stop(trainer, finite, false);
    trainer->step = step.step;
    const attncl_status compared = attncl__replicas_compare(trainer);
    if (compared != ATTNCL_OK) {
        trainer->is_broken = true; // the weights have had their step
        trainer->step = step.step - 1;
        return compared;
    }
    return STRUCT_WRITE(attncl_train_step, step_ret, &step);
}
