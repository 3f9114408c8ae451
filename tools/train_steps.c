// SPDX-License-Identifier: MIT
//
// The steps of attncl train.
//
// Each step writes, in this order: its line in the log; if an evaluation is due, its line and the best model; if a
// checkpoint is due, that and the last model.  So everything before a checkpoint is on the disk when it is, and a resumed
// training writes everything after it again.

#include <math.h>
#include <signal.h>

#include "train.h"

enum { CURVE_SECONDS = 30 }; // between two drawings of the curve

int64_t training_step(const struct training *t)
{
    return t->progress.best.step;
}

int training_update(struct training *t)
{
    t->progress.best = (attncl_train_state)ATTNCL_TRAIN_STATE_INIT;
    return tool_status(attncl_trainer_state(t->trainer, &t->progress.best));
}

// -- files

static int save_model(struct training *t, const char *name)
{
    return tool_status(attncl_trainer_save_model(t->trainer, IN_RUN(&t->run, name)));
}

static int save_checkpoint(struct training *t)
{
    const int64_t step = training_step(t);

    if (step == t->saved)
        return TOOL_OK;
    if (t->writes && run_log_sync(&t->run) != TOOL_OK)
        return TOOL_FAILED;
    TOOL_TRY(tool_status(attncl_trainer_save(t->trainer, CHECKPOINT_IN_RUN(&t->run, step))));
    t->saved = step;
    TOOL_TRY(save_model(t, "model.safetensors"));
    return t->writes ? run_prune(&t->run, t->plan.keep) : TOOL_OK;
}

// If the curve cannot be drawn, the training goes on without it.
static void draw_curve(struct training *t)
{
    if (!t->writes || !t->draws_curve)
        return;
    t->curve_time = seconds_now();
    t->draws_curve = run_draw_curve(&t->run) == TOOL_OK;
}

// -- evaluation

static int print_sample(struct training *t)
{
    if (!t->prints_samples || t->plan.sample == 0)
        return TOOL_OK;
    TOOL_TRY(save_model(t, "model.safetensors"));
    if (t->writes && !t->request->json)
        t->prints_samples =
            train_print_sample(&t->progress, t->context, IN_RUN(&t->run, "model.safetensors"),
                               t->request->prompt, t->plan.sample) == TOOL_OK;
    return TOOL_OK;
}

static int log_evaluation(struct training *t)
{
    const struct train_progress *p = &t->progress;
    json_t *line = json_pack("{sI so}", "step", (json_int_t)p->last.step, "valid_loss",
                             json_number(p->valid_loss));

    if (isfinite(p->best.accuracy))
        json_object_set_new(line, "valid_accuracy", json_number(p->best.accuracy));
    return run_log(&t->run, line);
}

static int evaluate(struct training *t)
{
    struct train_progress *p = &t->progress;

    TOOL_TRY(tool_status(attncl_trainer_evaluate(t->trainer, &p->valid_loss)));
    TOOL_TRY(training_update(t));
    if (t->writes && log_evaluation(t) != TOOL_OK)
        return TOOL_FAILED;
    if (p->best.best_step == p->last.step && save_model(t, "best.safetensors") != TOOL_OK)
        return TOOL_FAILED;
    if (t->writes && !t->request->json)
        train_print_evaluation(p);
    TOOL_TRY(print_sample(t));
    if (seconds_now() - t->curve_time > CURVE_SECONDS)
        draw_curve(t);
    return TOOL_OK;
}

// -- steps

// Reports a loss that is not finite, and with --check the op that caused it.
static int explain_failure(struct training *t)
{
    char message[1024], last[RUN_PATH_BYTES] = "no checkpoint was written";
    attncl_train_fault fault = ATTNCL_TRAIN_FAULT_INIT;

    snprintf(message, sizeof message, "%s", attncl_last_error());
    if (t->saved >= 0)
        snprintf(last, sizeof last, "the last checkpoint is %s",
                 CHECKPOINT_IN_RUN(&t->run, t->saved));
    if (!t->request->check)
        return tool_error("%s; %s; --resume --check finds the operation", message, last);
    if (attncl_trainer_check(t->trainer, &fault) != ATTNCL_OK || !fault.op)
        return tool_error("%s; %s; the results of all operations are finite", message, last);
    return tool_error("%s: op %s%s%s gave %g as element %lld; %s", message, fault.op,
                      fault.scope && *fault.scope ? " in " : "", fault.scope ? fault.scope : "",
                      fault.value, (long long)fault.element, last);
}

static bool is_due(int64_t step, int64_t every, int64_t n_steps)
{
    return every > 0 && (step % every == 0 || step == n_steps);
}

static bool is_evaluation_due(const struct training *t, int64_t step)
{
    return t->plan.n_valid_batches > 0 && is_due(step, t->plan.eval_every, t->plan.steps);
}

// Begins the next step, and the one after it if nothing needs the weights between the two.
static void begin_steps(struct training *t)
{
    const int64_t next = training_step(t) + 1;
    const bool alone = is_evaluation_due(t, next) ||
                       is_due(next, t->plan.checkpoint_every, t->plan.steps) ||
                       next >= t->plan.steps;

    if (t->begun < next - 1)
        t->begun = next - 1;
    for (; t->begun < next + !alone; ++t->begun)
        (void)attncl_trainer_begin(t->trainer); // attncl_trainer_step() reports a failure
}

static int take_step(struct training *t)
{
    struct train_progress *p = &t->progress;
    const double begin = seconds_now();

    if (!t->is_ending)
        begin_steps(t);
    p->last = (attncl_train_step)ATTNCL_TRAIN_STEP_INIT;
    const attncl_status status = attncl_trainer_step(t->trainer, &p->last);
    if (status == ATTNCL_ERR_STATE)
        return explain_failure(t);
    if (status != ATTNCL_OK || training_update(t) != TOOL_OK)
        return tool_failed();
    p->tokens_per_s = (double)p->last.n_tokens / (seconds_now() - begin);
    if (!t->writes)
        return TOOL_OK;
    train_show_step(p);
    return run_log(&t->run, json_pack("{sI sf sf sf sf}", "step", (json_int_t)p->last.step, "loss",
                                      p->last.loss, "grad_norm", p->last.grad_norm, "learning_rate",
                                      p->last.learning_rate, "tokens_per_s", p->tokens_per_s));
}

static bool stops_early(const struct training *t)
{
    return t->plan.patience > 0 && t->progress.best.n_worse >= t->plan.patience;
}

// Returns the exit status for a signal that any rank received, so that all ranks stop after the same step; 0: none.
static int agree_on_interruption(struct training *t, int *status)
{
    double signalled = output_interrupted() ? 1 : 0;

    if (attncl_ranks_size(t->ranks) > 1 &&
        attncl_ranks_sum_double(t->ranks, &signalled, 1) != ATTNCL_OK)
        *status = tool_failed();
    if (signalled == 0)
        return 0;
    const int own = output_take_interrupt();
    return own ? own : 128 + SIGINT;
}

// Takes one step, and evaluates and saves if due.
static int advance(struct training *t, bool *ended)
{
    const attncl_train_plan *plan = &t->plan;

    TOOL_TRY(take_step(t));
    const int64_t step = training_step(t);
    if (is_evaluation_due(t, step))
        TOOL_TRY(evaluate(t));
    *ended = step >= plan->steps || stops_early(t);
    return *ended || is_due(step, plan->checkpoint_every, plan->steps) ? save_checkpoint(t)
                                                                       : TOOL_OK;
}

int training_take_steps(struct training *t)
{
    bool ended = training_step(t) >= t->plan.steps || stops_early(t), waits = false;
    int status = TOOL_OK, interrupted = 0;

    while (!ended && status == TOOL_OK && interrupted == 0) {
        status = advance(t, &ended);
        if (!waits) // from now on a signal waits for a checkpoint
            output_file_begin();
        waits = true;
        if (status == TOOL_OK)
            interrupted = agree_on_interruption(t, &status);
    }
    t->is_ending = true; // finish the steps begun, begin no others
    while (status == TOOL_OK && interrupted && training_step(t) < t->begun)
        status = advance(t, &ended);
    if (status == TOOL_OK && interrupted)
        status = save_checkpoint(t);
    if (status == TOOL_OK && interrupted) {
        tool_error("interrupted after step %lld; --resume continues", (long long)training_step(t));
        status = interrupted;
    }
    if (waits)
        output_file_end();
    return status;
}

int training_finish(struct training *t)
{
    TOOL_TRY(save_checkpoint(t));
    TOOL_TRY(save_model(t, "model.safetensors"));
    if (!t->writes)
        return TOOL_OK;
    if (run_prune(&t->run, t->plan.keep) != TOOL_OK) // a killed run may not have pruned
        return TOOL_FAILED;
    draw_curve(t);
    return train_print_end(&t->progress, t->request, training_step(t) < t->plan.steps,
                           IN_RUN(&t->run, "model.safetensors"), t->context);
}
