// SPDX-License-Identifier: MIT
// A trainer inside.
#ifndef ATTNCL_TRAIN_TRAINER_H
#define ATTNCL_TRAIN_TRAINER_H

#include <stdbool.h>

#include "attncl/train.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "model/model.h"
#include "train/config.h"

// -- the batches in flight: a ring by batch index.  A slot owns everything that enqueued commands read and write on the
// host, so it stays where it is until its batch was waited for.

// This rank's share of a batch.
struct part {
    struct batch batch;
    bool is_empty;
    int64_t n_targets, n_all_targets; // that count, here and on all ranks
};

enum batch_state {
    BATCH_FREE,
    BATCH_PREPARED, // on the host
    BATCH_WRITTEN,  // its inputs are enqueued
    BATCH_RUNNING,  // its passes are enqueued, and the update where one follows it
};

struct batch_in_flight {
    enum batch_state state;
    int64_t index;
    struct part part;
    double share;                       // of its loss in the step's
    attncl_graph *graph, *update_graph; // NULL: none, since its part is empty, or no update follows
    bool updates;                       // an update was enqueued, at least in part
    int32_t number, step;               // inputs
    float weight, rate;
    float loss, norm; // outputs
    struct early_read loss_read, norm_read;
};

// So many are enqueued at once; one more is prepared meanwhile.
enum { MAX_ENQUEUED = 2, MAX_STEPS_BEGUN = 2, N_SLOTS = MAX_ENQUEUED + 1 };

// -- the trainer

// What is kept of a trained tensor from step to step.
enum kept {
    KEPT_WEIGHT, // the model's
    KEPT_STATES, // the optimiser's, as attncl__optim_states() names them
    KEPT_AVERAGE = KEPT_STATES + OPTIM_MAX_STATES, // of the weights
    N_KEPT,
};

struct trained {
    const char *name; // of the model
    char output[32];  // of its gradient, where that is an output
    attncl_shape shape;
    size_t count;                  // elements
    attncl_tensor *tensor[N_KEPT]; // NULL where the optimiser keeps none; all but the weight owned
    attncl_tensor *gradient;       // NULL where one graph takes a step
};

// A compiled graph for batches of certain shapes.
enum graph_kind {
    GRAPH_STEP,     // loss, gradients, update
    GRAPH_GRADIENT, // loss, gradients added to trained.gradient
    GRAPH_UPDATE,   // update from trained.gradient; its batch has no arrays
    GRAPH_LOSS,     // loss alone, of evaluation
};
struct shaped_graph {
    enum graph_kind kind;
    struct batch shape; // its arrays' data are gone
    attncl_graph *graph;
};

struct attncl_trainer {
    attncl_context *context;
    attncl_ranks *ranks; // NULL: one
    struct train_config config;
    char *config_text;
    struct dataset *data;
    attncl_model *model;
    const char *states[OPTIM_MAX_STATES]; // the optimiser's
    size_t n_states;
    struct trained *trained;
    size_t n_trained, largest;                   // elements of the largest
    attncl_value *weights, *gradients, *clipped; // [n_trained], of the graph that is being built
    struct shaped_graph *graphs;
    size_t n_graphs, graphs_capacity;

    struct batch_in_flight in_flight[N_SLOTS];
    int64_t run_end; // batches before it may run: those of steps that were begun
    // [], 0, or NaN after a loss or norm that is not finite; NULL with several ranks.
    attncl_tensor *fault;

    attncl_train_state progress;
    bool is_broken; // a step was left half done

    struct grad_sums *grad_sums; // of several ranks
    bool devices_differ;         // of the ranks

    char fault_text[512]; // of attncl_trainer_check()
};

static inline bool attncl__is_alone(const attncl_trainer *t)
{
    return attncl_ranks_size(t->ranks) == 1;
}
// Whether gradients are summed over batches or ranks, by graphs of their own.
static inline bool attncl__sums_gradients(const attncl_trainer *t)
{
    return t->config.settings.accumulate > 1 || !attncl__is_alone(t);
}
// Targets are labels, whose share of right ones evaluation counts.
static inline bool attncl__has_labels(const attncl_trainer *t)
{
    return t->config.settings.data.pair_form != PAIR_SENTENCES;
}

// -- first_values.c: what the parameters of a new model begin as

// The file's, under the same names; a transformer's become a feedback transformer's.
attncl_status attncl__write_first_values(attncl_trainer *t, const attncl_safetensors *init);
// Copies of layer 0's.
attncl_status attncl__clone_layers(attncl_trainer *t);

// -- step.c

// ERR_STATE after a step that was left half done, and while one is running.
attncl_status attncl__check_usable(const attncl_trainer *t);
// Enqueues the inputs of a batch's graph except those of an update.
attncl_status attncl__write_inputs(const attncl_trainer *t, struct batch_in_flight *b);
// Waits for everything that is enqueued, and forgets it.
void attncl__drop_batches(attncl_trainer *t);

// -- part.c

// This rank's part of batch `index` of the training data.
attncl_status attncl__prepare_part(attncl_trainer *t, int64_t index, struct part *ret);
// Targets of a batch that count in the loss.
int64_t attncl__count_targets(const attncl_trainer *t, const struct batch *batch);
// Enqueues the writes of a batch's arrays, which stay as they are until the queue was waited for.
attncl_status attncl__write_arrays(attncl_graph *g, const struct batch *batch);

// -- step_graph.c

// The compiled graph for batches of this shape, owned by the trainer.
attncl_status attncl__find_step_graph(attncl_trainer *t, enum graph_kind kind,
                                      const struct batch *batch, attncl_graph **ret);
// Adds loss and gradients of a batch to a graph; they are t->weights and t->gradients then.
attncl_status attncl__add_gradients(attncl_trainer *t, attncl_graph *g, const struct batch *batch,
                                    attncl_value *loss_ret);
// After attncl__drop_batches().
void attncl__drop_step_graphs(attncl_trainer *t);

// -- trained.c

attncl_status attncl__create_trained(attncl_trainer *t);
void attncl__destroy_trained(attncl_trainer *t);
// Exchanges weights and averages, if averages are kept: before and after an evaluation.
attncl_status attncl__exchange_averages(attncl_trainer *t);
// Gives all ranks rank 0's weights; ERR_STATE where their data or configurations differ.
attncl_status attncl__begin_replicas(attncl_trainer *t);
// ERR_STATE where weights differ; looks only after some steps.
attncl_status attncl__compare_replicas(attncl_trainer *t);

// -- grad_sums.c: with several ranks

// Whether a gradient graph has gradients as outputs, instead of adding them to trained.gradient.
bool attncl__outputs_gradients(const attncl_trainer *t);
// Runs a gradient graph that has them as outputs.
attncl_status attncl__run_gradients(attncl_trainer *t, attncl_graph *g);
// Sends a step's gradients as they are complete, those of this graph if they are outputs (NULL: zeros, of a rank
// without a part); then fills trained.gradient with the sums over the ranks.
attncl_status attncl__send_gradients(attncl_trainer *t, attncl_graph *g);
attncl_status attncl__receive_gradients(attncl_trainer *t);
void attncl__free_grad_sums(attncl_trainer *t);

// -- checkpoint.c: one safetensors file.
//
//   NAME                          a parameter of the model; with averages, its average
//   optimizer.param.NAME          with averages: the parameter
//   optimizer.exp_avg.NAME ...    what the optimiser keeps for it
//   metadata                      a model file's, and attncl.train: JSON of the trainer

// ERR_STATE, "WHAT KEY is 2, WHOSE is 3", where the values of a key differ.
attncl_status attncl__compare_value(const struct json *saved, const struct json *own,
                                    const char *what, const char *key, const char *whose);

#endif
