// SPDX-License-Identifier: MIT
// A trainer inside.
#ifndef ATTNCL_TRAIN_TRAINER_H
#define ATTNCL_TRAIN_TRAINER_H

#include <stdbool.h>

#include "attncl/optim.h"
#include "attncl/parameters.h"
#include "attncl/ranks.h"
#include "attncl/train.h"
#include "exec/exec.h"
#include "model/model.h"
#include "train/config.h"
#include "train/dataset.h"

// What is kept of a trained tensor from step to step.
enum kept {
    KEPT_WEIGHT, // the model's
    KEPT_EXP_AVG,
    KEPT_EXP_AVG_SQ,
    KEPT_MAX_EXP_AVG_SQ,
    KEPT_MOMENTUM_BUFFER,
    KEPT_AVERAGE, // of the weights
    N_KEPT,
};

struct trained {
    const char *name; // of the model
    attncl_shape shape;
    size_t count;                  // elements
    attncl_tensor *tensor[N_KEPT]; // NULL where the optimiser keeps none; all but the weight owned
    attncl_tensor *gradient;       // NULL where one graph takes a step
};

// A compiled graph for batches of certain shapes.
enum graph_kind {
    GRAPH_STEP,     // loss, gradients, update
    GRAPH_GRADIENT, // loss, gradients added to trained.gradient
    GRAPH_UPDATE,   // update from trained.gradient; no batch
    GRAPH_LOSS,     // loss alone, of evaluation
};
struct shaped_graph {
    enum graph_kind kind;
    size_t n;
    attncl_array array[BATCH_MAX_ARRAYS]; // without data
    int64_t begin, total;                 // as of a batch
    attncl_graph *graph;
};

// This rank's part of a batch.
struct part {
    struct batch batch;
    bool is_empty;
    int64_t n_targets, n_all_targets; // that count, here and in all parts
};

// What has been enqueued, and what of the host's it reads and writes meanwhile; it stays where it is.
struct begun_update {
    attncl_graph *graph; // that gives the norm; NULL: none was run
    int32_t step;
    float rate, norm;
    struct early_read read; // of the norm
};
enum { MAX_BEGUN = 2, MAX_BEGUN_STEPS = 2 };
struct begun_batch {
    int64_t index;
    attncl_graph *graph; // NULL: its part is empty
    struct part part;
    bool has_run; // else it is only written
    bool updates; // an update's run was enqueued
    double share; // of its loss in the step's
    int32_t number;
    float weight, loss;
    struct early_read read; // of the loss
    struct begun_update update;
};

struct attncl_trainer {
    attncl_context *context;
    attncl_ranks *ranks; // NULL: one
    struct train_config config;
    char *config_text;
    struct dataset *data;
    attncl_model *model;
    struct trained *trained;
    size_t n_trained;
    struct shaped_graph *graphs;
    size_t n_graphs, graphs_capacity;

    struct part next;   // prepared while a batch ran
    int64_t next_index; // which batch that is; -1: none

    struct begun_batch begun[MAX_BEGUN]; // n_begun of them in a ring, from first_begun on
    size_t n_begun, first_begun;
    int64_t run_end; // batches before it may run; those of steps that were begun
    attncl_tensor
        *fault; // [], 0, or NaN after what was not finite; NULL where steps do not overlap

    int64_t step;    // taken
    double accuracy; // of the last evaluation; NaN: none, or the targets are no labels
    double best_loss;
    int64_t best_step, n_worse;
    bool is_broken; // a step was left half done

    struct grad_sums *grad_sums; // of several ranks
    bool devices_differ;         // of the ranks

    char fault_text[512]; // of attncl_trainer_check()
};

// Whether gradients are summed over batches or ranks, by graphs of their own.
bool attncl__trainer_sums(const attncl_trainer *t);
// Whether a step may begin before the one before it was waited for.
bool attncl__steps_overlap(const attncl_trainer *t);

// -- update.c: what is kept

attncl_status attncl__kept_create(attncl_trainer *t);
void attncl__kept_destroy(attncl_trainer *t);
// Adds clipping, the step of the optimiser and averages to a graph.  What is not finite, here and in earlier
// steps, leaves all as it was.  loss null: known to be finite, or `fault` tells.
attncl_status attncl__update_add(attncl_trainer *t, attncl_graph *g, attncl_value loss,
                                 const attncl_value *weights, const attncl_value *gradients);
// Makes `fault` NaN, for good, where x [] is not finite, and returns it.
attncl_value attncl__update_note_fault(attncl_trainer *t, attncl_graph *g, attncl_value x);

// -- step_graph.c

// The compiled graph for batches of this shape (NULL where there is none), owned by the trainer.
attncl_status attncl__trainer_graph(attncl_trainer *t, enum graph_kind kind,
                                    const struct batch *batch, attncl_graph **ret);
// Loss and gradients of a batch in a graph; each list has n_trained values.
attncl_status attncl__trainer_add_gradients(attncl_trainer *t, attncl_graph *g,
                                            const struct batch *batch, attncl_value *loss_ret,
                                            attncl_value *weights_ret, attncl_value *gradients_ret);
// After attncl__batches_drop().
void attncl__trainer_drop_graphs(attncl_trainer *t);

// -- grad_sums.c: with several ranks

// Whether a gradient graph has gradients as outputs, instead of adding them to trained.gradient.
bool attncl__grad_sums_are_outputs(const attncl_trainer *t);
void attncl__grad_sums_output(attncl_trainer *t, attncl_graph *g, const attncl_value *gradients);
// Runs a gradient graph; then sends its outputs, if it has them, as they are complete (NULL: zeros, of a
// rank without a part); then fills trained.gradient with the sums over the ranks.
attncl_status attncl__grad_sums_run(attncl_trainer *t, attncl_graph *g);
attncl_status attncl__grad_sums_send(attncl_trainer *t, attncl_graph *g);
attncl_status attncl__grad_sums_receive(attncl_trainer *t);
void attncl__grad_sums_free(attncl_trainer *t);

// -- begun.c

// Enqueues, as far as there is space, the runs of batches before run_end and the writes of the next one.
// `oldest` is the first that was not waited for.  On failure the batch oldest + n_begun has not begun.
attncl_status attncl__batches_begin(attncl_trainer *t, int64_t oldest);
// Waits for the oldest, which has run; adds its loss and tokens, and its update's norm; forgets it.
attncl_status attncl__batch_wait(attncl_trainer *t, attncl_train_step *step);
// Waits for all that have begun, and forgets them.
void attncl__batches_drop(attncl_trainer *t);
// Whether the next step is running.
bool attncl__steps_begun(const attncl_trainer *t);
// Enqueues the update from the sums of gradients; waits for its norm.
attncl_status attncl__update_begin(attncl_trainer *t, int64_t step, struct begun_update *update);
attncl_status attncl__update_wait(attncl_trainer *t, struct begun_update *update);

// -- replicas.c: with several ranks

// Gives all ranks rank 0's weights; ERR_STATE where their data or configurations differ.
attncl_status attncl__replicas_begin(attncl_trainer *t);
// ERR_STATE where weights differ; looks only after some steps.
attncl_status attncl__replicas_compare(attncl_trainer *t);

// -- part.c

// This rank's part of batch `index` of the training data.
attncl_status attncl__part_prepare(attncl_trainer *t, int64_t index, struct part *ret);
void attncl__part_free(struct part *part);
// The same into t->next; early: where there is such a batch, and a failure is told later.
attncl_status attncl__batch_prepare(attncl_trainer *t, int64_t index);
void attncl__batch_prepare_early(attncl_trainer *t, int64_t index);
// Targets of a batch that count in the loss.
int64_t attncl__part_count_targets(const attncl_trainer *t, const struct batch *batch);

// Writes the batch and, where the graph has them, the numbers of a step.
attncl_status attncl__trainer_write_batch(attncl_graph *g, const struct batch *batch);

// Targets are labels, whose share of right ones evaluation counts.
static inline bool attncl__trainer_has_labels(const attncl_trainer *t)
{
    return t->config.settings.pair_form != PAIR_SENTENCES;
}

// ERR_STATE after a step that was left half done.
attncl_status attncl__trainer_usable(const attncl_trainer *t);

// -- average.c

// Exchanges weights and averages, where averages are kept: before and after an evaluation.
attncl_status attncl__average_exchange(attncl_trainer *t);

#endif
