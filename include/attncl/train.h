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

/** The data, and values that replace the configuration's.  Set one of data, tokens and pairs.  `batches`, alone
 * or beside it, replaces the training batches; the held-out part still comes from the data.  Start from
 * ATTNCL_TRAINER_OPTIONS_INIT. */
typedef struct attncl_trainer_options {
    size_t struct_size;
    const char *data;      /**< UTF-8 text, by the tokenizer if there is one, else by characters */
    const char *tokens;    /**< safetensors file: "tokens" [n] */
    const char *pairs;     /**< TSV file: source, target; of arch encoder: source, labels */
    const char *batches;   /**< safetensors file: the model's inputs and "targets", steps first */
    const char *init;      /**< safetensors file: initial values of the parameters; NULL: random */
    const int64_t *steps;  /**< NULL: the configuration's */
    const uint64_t *seed;  /**< NULL: the configuration's */
    attncl_ranks *ranks;   /**< NULL: one; borrowed until the trainer is destroyed */
    const char *tokenizer; /**< tokenizer.json for data; NULL: that of init, if any */
} attncl_trainer_options;

#define ATTNCL_TRAINER_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_trainer_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL       \
    }

/** The plan of a training run: values from the configuration and the data. */
typedef struct attncl_train_plan {
    size_t struct_size;
    int64_t steps;            /**< in total */
    int64_t eval_every;       /**< steps, 0: never */
    int64_t checkpoint_every; /**< steps, 0: never */
    int64_t keep;             /**< checkpoints */
    int64_t patience;         /**< evaluations without improvement before it stops, 0: never */
    int64_t sample;           /**< tokens to sample at each evaluation, 0: none */
    int64_t n_train_batches;  /**< per epoch, of the longest windows */
    int64_t n_valid_batches;  /**< of the held-out part, 0: there is none */
} attncl_train_plan;

#define ATTNCL_TRAIN_PLAN_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_train_plan), 0, 0, 0, 0, 0, 0, 0, 0                                          \
    }

/** The progress of a training run. */
typedef struct attncl_train_state {
    size_t struct_size;
    int64_t step;      /**< steps taken */
    double best_loss;  /**< lowest held-out loss; infinite before the first evaluation */
    int64_t best_step; /**< steps taken at that evaluation */
    int64_t n_worse;   /**< evaluations since then */
    double
        accuracy; /**< at the last evaluation, the share of held-out targets whose class had the highest
                          score; NaN before it, and if the targets are no labels */
} attncl_train_state;

#define ATTNCL_TRAIN_STATE_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_train_state), 0, 0, 0, 0, 0                                                  \
    }

/** The result of a step. */
typedef struct attncl_train_step {
    size_t struct_size;
    int64_t step;         /**< from 1 on */
    double loss;          /**< before the step */
    double grad_norm;     /**< before clipping */
    double learning_rate; /**< of this step */
    int64_t n_tokens;     /**< targets that are not padding, over all ranks */
} attncl_train_step;

#define ATTNCL_TRAIN_STEP_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_train_step), 0, 0, 0, 0, 0                                                   \
    }

/** The first element of a step that is not finite.  Strings are borrowed until the next call with the
 * trainer. */
typedef struct attncl_train_fault {
    size_t struct_size;
    const char *op;    /**< "softmax_fwd", or "parameter"; NULL: everything is finite */
    const char *scope; /**< "encoder.layers.3.attn", or the parameter's name */
    int64_t element;   /**< of the op's result, in C order */
    double value;      /**< infinity or NaN */
} attncl_train_fault;

#define ATTNCL_TRAIN_FAULT_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_train_fault), NULL, NULL, 0, 0                                               \
    }

/**
 * Reads the configuration, opens the data and creates the model, with parameters drawn from the seed or read from
 * options->init.  The first step compiles the kernels.
 *
 * ERR_FORMAT for an unknown key (the message names the nearest and all known keys) or a value out of range;
 * ERR_SHAPE if a parameter of options->init has another shape.
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

/** The configuration as JSON, with all defaults and with the values that the data and the options set.  Borrowed.
 * Errors: none. */
ATTNCL_API const char *attncl_trainer_config(const attncl_trainer *trainer);

/** Errors: ERR_ARGUMENT. */
ATTNCL_API attncl_status attncl_trainer_plan(const attncl_trainer *trainer,
                                             attncl_train_plan *plan_ret);
/** Errors: ERR_ARGUMENT. */
ATTNCL_API attncl_status attncl_trainer_state(const attncl_trainer *trainer,
                                              attncl_train_state *state_ret);

/** The model in training, borrowed; each step changes its weights.  Averaged weights (`ema`) are only in the
 * files of attncl_trainer_save_model().
 * Errors: none. */
ATTNCL_API attncl_model *attncl_trainer_model(attncl_trainer *trainer);

/**
 * Takes a step: `accumulate` batches, one update.  The loss is the mean over the batches.  A batch's loss is the
 * mean over its targets that are not `pad`, over all ranks, so N ranks compute the same as one.  Steps may go beyond
 * the plan's; only ready batches end.
 *
 * ERR_STATE if the loss or the gradient norm is not finite: the message names the step, the weights are unchanged,
 * and the next call tries the same step again.  So it is after other failures, unless weights may have changed:
 * then steps, evaluation and checkpoints return ERR_STATE until attncl_trainer_resume().
 * Errors: ERR_STATE, ERR_ARGUMENT (no ready batch is left), ERR_IO, those of attncl_graph_compile() and
 * attncl_graph_run().
 */
ATTNCL_API attncl_status attncl_trainer_step(attncl_trainer *trainer, attncl_train_step *step_ret);

/**
 * Enqueues the next step, so that the device works while the host reads the previous step's results;
 * attncl_trainer_step() waits for it.  Call it twice first, then once before each attncl_trainer_step(): one
 * step is then always in flight behind the one waited for.  Results have the same bits.
 *
 * With accumulation two batches are enqueued at a time.  Does nothing if two steps are in flight, if the plan has
 * no further step, or with several ranks.  While steps are in flight, evaluation, checks and checkpoints return ERR_STATE.  A step whose
 * loss is not finite cancels the steps behind it.
 * Errors: ERR_ARGUMENT; attncl_trainer_step() reports the failures of the step.
 */
ATTNCL_API attncl_status attncl_trainer_begin(attncl_trainer *trainer);

/**
 * Computes the mean loss over all held-out targets, in nats per target, without dropout and label smoothing.  With
 * `ema`, it uses the averaged weights.  attncl_train_state keeps the best loss, and the accuracy of labels.
 * Errors: ERR_STATE (no held-out part, or as attncl_trainer_step()), those of
 * attncl_graph_compile() and attncl_graph_run().
 */
ATTNCL_API attncl_status attncl_trainer_evaluate(attncl_trainer *trainer, double *loss_ret);

/**
 * Computes the next step's loss and gradients, reads every op's result, and reports the first element that is not
 * finite.  Updates nothing.  Slow; needs memory for all results at once.
 * Errors: ERR_STATE, those of attncl_graph_compile() and attncl_graph_run().
 */
ATTNCL_API attncl_status attncl_trainer_check(attncl_trainer *trainer,
                                              attncl_train_fault *fault_ret);

/**
 * Writes a checkpoint: a model file with the optimiser's state, the steps taken, the seed, the configuration and the
 * best loss.  It is on disk when the call returns.  An existing file is replaced atomically.  With several ranks,
 * rank 0 writes.
 * Errors: ERR_IO, ERR_STATE, ERR_NO_MEMORY, ERR_OPENCL.
 */
ATTNCL_API attncl_status attncl_trainer_save(attncl_trainer *trainer, const char *path);

/** Writes only the model, with the weights that evaluation uses: with `ema`, the averaged ones.
 * Errors: as attncl_trainer_save(). */
ATTNCL_API attncl_status attncl_trainer_save_model(attncl_trainer *trainer, const char *path);

/**
 * Continues from a checkpoint.  On the same device, the next steps are bit-identical to those of the uninterrupted
 * run.
 *
 * ERR_STATE, naming both values, if the architecture, the model's configuration, the optimiser, the precision or the
 * data differ from the checkpoint's.  A failure changes nothing, unless the device fails.
 * Errors: ERR_IO, ERR_FORMAT, ERR_STATE, ERR_SHAPE, ERR_NO_MEMORY, ERR_OPENCL.
 */
ATTNCL_API attncl_status attncl_trainer_resume(attncl_trainer *trainer, const char *path);

ATTNCL_END

#endif
