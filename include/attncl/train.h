// SPDX-License-Identifier: MIT
/**
 * @file attncl/train.h
 * Training a model: a configuration, data and a seed in; steps, held-out loss and checkpoints out.
 *
 *     attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
 *     options.data = "text.txt";
 *     attncl_trainer_create(context, config_json, &options, &trainer);
 *     while (attncl_trainer_step(trainer, &step) == ATTNCL_OK && step.step < plan.steps)
 *         if (step.step % plan.eval_every == 0)
 *             attncl_trainer_evaluate(trainer, &loss);
 *     attncl_trainer_save(trainer, "checkpoint.safetensors");
 *
 * The configuration is a JSON object {"arch", "model", "train"}: `model` has the keys of a model
 * file's attncl.config, `train` those that docs/training.md lists; all of `train` is optional.
 *
 * Threads: one at a time per trainer.
 */
#ifndef ATTNCL_TRAIN_H
#define ATTNCL_TRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "attncl/context.h"
#include "attncl/model.h"
#include "attncl/ranks.h"

ATTNCL_BEGIN

typedef struct attncl_trainer attncl_trainer;

/** What to train on, and what replaces the configuration's.  One of data, tokens and pairs is a path;
 * batches, alone or with it, are what is learnt from instead, while the rest is still held out of the
 * data.  Start from ATTNCL_TRAINER_OPTIONS_INIT. */
typedef struct attncl_trainer_options {
    size_t struct_size;
    const char *data;     /**< UTF-8 text, by characters */
    const char *tokens;   /**< safetensors file: "tokens" [n] */
    const char *pairs;    /**< TSV file: source, target; of arch encoder: source, labels */
    const char *batches;  /**< safetensors file: the model's inputs and "targets", steps first */
    const char *init;     /**< safetensors file: the first values of the parameters; NULL: drawn */
    const int64_t *steps; /**< NULL: the configuration's */
    const uint64_t *seed; /**< NULL: the configuration's */
    attncl_ranks *ranks;  /**< NULL: one; borrowed until the trainer is destroyed */
} attncl_trainer_options;

#define ATTNCL_TRAINER_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_trainer_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL             \
    }

/** How training is to go: values of the configuration and of the data. */
typedef struct attncl_train_plan {
    size_t struct_size;
    int64_t steps;            /**< to be taken in all */
    int64_t eval_every;       /**< steps, 0: never */
    int64_t checkpoint_every; /**< steps, 0: never */
    int64_t keep;             /**< checkpoints */
    int64_t patience;         /**< evaluations without a better one until it stops, 0: no stop */
    int64_t sample;           /**< tokens at each evaluation, 0: none */
    int64_t n_train_batches;  /**< of an epoch */
    int64_t n_valid_batches;  /**< of the held-out part, 0: there is none */
} attncl_train_plan;

#define ATTNCL_TRAIN_PLAN_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_train_plan), 0, 0, 0, 0, 0, 0, 0, 0                                          \
    }

/** Where training is. */
typedef struct attncl_train_state {
    size_t struct_size;
    int64_t step;      /**< steps taken */
    double best_loss;  /**< of all evaluations; infinite before the first */
    int64_t best_step; /**< steps taken at it */
    int64_t n_worse;   /**< evaluations since */
    double accuracy; /**< at the last evaluation, the share of the held-out targets whose class had
                            the highest score; NaN where the targets are no labels, and before it */
} attncl_train_state;

#define ATTNCL_TRAIN_STATE_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_train_state), 0, 0, 0, 0, 0                                                  \
    }

/** A step that was taken. */
typedef struct attncl_train_step {
    size_t struct_size;
    int64_t step;         /**< from 1 on */
    double loss;          /**< before the step */
    double grad_norm;     /**< before clipping */
    double learning_rate; /**< of this step */
    int64_t n_tokens;     /**< targets that counted, of all ranks */
} attncl_train_step;

#define ATTNCL_TRAIN_STEP_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_train_step), 0, 0, 0, 0, 0                                                   \
    }

/** Where a step's first element that is not finite arises.  All strings are borrowed, until the next
 * call with the trainer. */
typedef struct attncl_train_fault {
    size_t struct_size;
    const char *op;    /**< "softmax_fwd", or "parameter"; NULL: everything is finite */
    const char *scope; /**< "encoder.layers.3.attn", or the parameter's name */
    int64_t element;   /**< of the op's result, in C order */
    double value;      /**< infinite or no number */
} attncl_train_fault;

#define ATTNCL_TRAIN_FAULT_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_train_fault), NULL, NULL, 0, 0                                               \
    }

/**
 * Reads the configuration, opens the data and makes the model: parameters drawn from the seed, or
 * from options->init.  Kernels are compiled by the first step.
 *
 * ERR_FORMAT for a key that is not known (the message names the nearest and all) or a value out of
 * its range; ERR_SHAPE where a parameter of options->init has another shape.
 *
 * @param config_json  borrowed for the call
 * @param trainer_ret  owned by the caller, released by attncl_trainer_destroy() before the context
 * Errors: ERR_FORMAT, ERR_ARGUMENT, ERR_IO, ERR_SHAPE, ERR_DEVICE_MEMORY, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_trainer_create(attncl_context *context, const char *config_json,
                                               const attncl_trainer_options *options,
                                               attncl_trainer **trainer_ret);
/** NULL is fine.
 * Errors: none. */
ATTNCL_API void attncl_trainer_destroy(attncl_trainer *trainer);

/** The configuration with every default and what the data and the options said, JSON.  Borrowed.
 * Errors: none. */
ATTNCL_API const char *attncl_trainer_config(const attncl_trainer *trainer);

/** Errors: ERR_ARGUMENT. */
ATTNCL_API attncl_status attncl_trainer_plan(const attncl_trainer *trainer,
                                             attncl_train_plan *plan_ret);
/** Errors: ERR_ARGUMENT. */
ATTNCL_API attncl_status attncl_trainer_state(const attncl_trainer *trainer,
                                              attncl_train_state *state_ret);

/** The model that is trained, borrowed; its weights change with each step.  With moving averages,
 * these are in the files of attncl_trainer_save_model() alone.
 * Errors: none. */
ATTNCL_API attncl_model *attncl_trainer_model(attncl_trainer *trainer);

/**
 * Takes a step: `accumulate` batches, one update.  The loss is the mean over the batches, a batch's
 * the mean over its targets that are not `pad`, with several ranks over those of all of them; so N
 * ranks compute what one does.
 *
 * ERR_STATE when the loss or the norm is not finite: the message names the step, the weights stay
 * as they were, and a further call tries the same step.  After another failure all is as before, and a
 * further call tries the same step; or it came when weights may have changed: then the trainer refuses
 * steps, evaluation and checkpoints with ERR_STATE until attncl_trainer_resume().
 * Errors: ERR_STATE, ERR_ARGUMENT (no batch is left), ERR_IO, those of attncl_graph_compile() and
 * attncl_graph_run().
 */
ATTNCL_API attncl_status attncl_trainer_step(attncl_trainer *trainer, attncl_train_step *step_ret);

/**
 * Begins the next step that has not begun: it is enqueued, and attncl_trainer_step() waits for it.  So the
 * device need not wait while the host reads what a step gave: with two calls first, and one before each
 * attncl_trainer_step(), there is always a step after the one that is waited for.  With accumulation two
 * batches are enqueued at a time, and more as attncl_trainer_step() waits for them.  Results are the
 * same bits.  Does nothing where two steps have begun or none is left, and with several ranks.  Until attncl_trainer_step() has returned all that have begun, the
 * weights are being changed, and evaluation, checks and checkpoints are refused with ERR_STATE.  After
 * a step whose loss is not finite, those behind it are as if they had not begun.
 * Errors: ERR_ARGUMENT; what fails is told by the attncl_trainer_step() that needs it.
 */
ATTNCL_API attncl_status attncl_trainer_begin(attncl_trainer *trainer);

/**
 * The mean loss in nats per target of the held-out part, every target once, without dropout and label
 * smoothing, and remembers the best, and of labels the accuracy (attncl_train_state).  With `ema`, of the averaged weights.
 * Errors: ERR_STATE (no held-out part, or as attncl_trainer_step()), those of
 * attncl_graph_compile() and attncl_graph_run().
 */
ATTNCL_API attncl_status attncl_trainer_evaluate(attncl_trainer *trainer, double *loss_ret);

/**
 * Computes the next step's loss and gradients with every op's result read, and says which is the
 * first that holds an element that is not finite.  Nothing is updated.  Slow; takes memory for all
 * results at once.
 * Errors: ERR_STATE, those of attncl_graph_compile() and attncl_graph_run().
 */
ATTNCL_API attncl_status attncl_trainer_check(attncl_trainer *trainer,
                                              attncl_train_fault *fault_ret);

/**
 * Writes a checkpoint, which is on disk when the call returns: a model file that holds the
 * optimiser's state, the steps taken, the seed, the configuration and the best loss too.  A file of
 * that name is replaced in one step or stays as it was.  With several ranks, rank 0 writes.
 * Errors: ERR_IO, ERR_STATE, ERR_NO_MEMORY, ERR_OPENCL.
 */
ATTNCL_API attncl_status attncl_trainer_save(attncl_trainer *trainer, const char *path);

/** Writes the model alone, as evaluations use it: with `ema`, the averaged weights.
 * Errors: as attncl_trainer_save(). */
ATTNCL_API attncl_status attncl_trainer_save_model(attncl_trainer *trainer, const char *path);

/**
 * Continues from a checkpoint: the steps that follow are, bit for bit on one device, those that
 * would have followed there.
 *
 * ERR_STATE, naming both, when the architecture, the model's configuration, the optimiser's kind, the
 * precision or the data are not the checkpoint's.  On failure nothing has changed, except where a device fails.
 * Errors: ERR_IO, ERR_FORMAT, ERR_STATE, ERR_SHAPE, ERR_NO_MEMORY, ERR_OPENCL.
 */
ATTNCL_API attncl_status attncl_trainer_resume(attncl_trainer *trainer, const char *path);

ATTNCL_END

#endif
