// SPDX-License-Identifier: MIT
// A trainer's implementation.
#ifndef ATTNCL_TRAIN_TRAINER_H
#define ATTNCL_TRAIN_TRAINER_H

#include <stdbool.h>

#include "attncl/train.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "model/model.h"
#include "train/config.h"

// -- the batches in flight, a ring by batch index.  A slot owns all host memory that enqueued commands read and write,
// so it must not move before its batch is complete.

// This rank's share of a batch.
struct part {
    struct batch batch;
    bool is_empty;
    int64_t n_targets, n_all_targets; // without padding; on this rank, on all ranks
};

enum batch_state {
    BATCH_FREE,
    BATCH_PREPARED, // on the host
    BATCH_WRITTEN,  // its inputs are enqueued
    BATCH_RUNNING,  // its passes, and the update if one follows, are enqueued
};

struct batch_in_flight {
    enum batch_state state;
    int64_t index;
    struct part part;
    double share;                       // weight of its loss in the step's loss
    attncl_graph *graph, *update_graph; // NULL: its part is empty; no update follows
    bool updates;                       // an update was enqueued, maybe only in part
    int32_t number, step;               // inputs
    float weight, rate;
    float loss, norm; // outputs
    struct early_read loss_read, norm_read;
};

// Besides MAX_ENQUEUED batches, one more is prepared.
enum { MAX_ENQUEUED = 2, MAX_STEPS_BEGUN = 2, N_SLOTS = MAX_ENQUEUED + 1 };

// -- the trainer

// Values kept for a trained tensor from step to step.
enum kept {
    KEPT_WEIGHT, // the model's
    KEPT_STATES, // the optimiser's, in the order of attncl__optim_states()
    KEPT_AVERAGE = KEPT_STATES + OPTIM_MAX_STATES, // of the weights
    N_KEPT,
};

struct trained {
    const char *name; // the model's
    char output[32];  // name of its gradient as an output
    attncl_shape shape;
    size_t count;                  // elements
    attncl_tensor *tensor[N_KEPT]; // NULL: not kept; owned except the weight
    attncl_tensor *gradient;       // NULL if one graph takes a step
};

// A compiled graph for one batch shape.
enum graph_kind {
    GRAPH_STEP,     // loss, gradients, update
    GRAPH_GRADIENT, // loss, gradients added to trained.gradient
    GRAPH_UPDATE,   // update from trained.gradient; its batch has no arrays
    GRAPH_LOSS,     // loss only, for evaluation
};
struct shaped_graph {
    enum graph_kind kind;
    struct batch shape; // its data pointers are invalid
    attncl_graph *graph;
};

struct attncl_trainer {
    attncl_context *context;
    attncl_ranks *ranks; // NULL: one rank
    struct train_config config;
    char *config_text;
    struct dataset *data;
    attncl_model *model;
    const char *states[OPTIM_MAX_STATES]; // the optimiser's
    size_t n_states;
    struct trained *trained;
    size_t n_trained, largest;                   // largest: elements of the largest tensor
    attncl_value *weights, *gradients, *clipped; // [n_trained], of the graph under construction
    struct shaped_graph *graphs;
    size_t n_graphs, graphs_capacity;

    struct batch_in_flight in_flight[N_SLOTS];
    int64_t run_end; // batches before this index may run; their steps have begun
    attncl_tensor
        *fault; // scalar: 0, or NaN after a loss or norm that is not finite; NULL with ranks

    attncl_train_state progress;
    bool is_broken; // a step was left half done

    struct grad_sums *grad_sums; // only with several ranks
    bool devices_differ;         // between ranks

    char fault_text[512]; // result of attncl_trainer_check()
};

static inline bool attncl__is_alone(const attncl_trainer *t)
{
    return attncl_ranks_size(t->ranks) == 1;
}
// Whether gradients are summed over batches or ranks, in separate graphs.
static inline bool attncl__sums_gradients(const attncl_trainer *t)
{
    return t->config.settings.accumulate > 1 || !attncl__is_alone(t);
}
// Whether targets are labels, for which evaluation reports an accuracy.
static inline bool attncl__has_labels(const attncl_trainer *t)
{
    return t->config.settings.data.pair_form != PAIR_SENTENCES;
}

// -- first_values.c: initial values of a new model's parameters

// Writes a file's values, by name; a transformer can initialise a feedback transformer.
attncl_status attncl__write_first_values(attncl_trainer *t, const attncl_safetensors *init);
// Copies layer 0 to all layers.
attncl_status attncl__clone_layers(attncl_trainer *t);

// -- step.c

// ERR_STATE if a step was left half done or is running.
attncl_status attncl__check_usable(const attncl_trainer *t);
// Enqueues the inputs of a batch's graph except those of an update.
attncl_status attncl__write_inputs(const attncl_trainer *t, struct batch_in_flight *b);
// Waits for all batches in flight and drops them.
void attncl__drop_batches(attncl_trainer *t);

// -- part.c

// Reads this rank's part of training batch `index`.
attncl_status attncl__prepare_part(attncl_trainer *t, int64_t index, struct part *ret);
// Targets of a batch without padding.
int64_t attncl__count_targets(const attncl_trainer *t, const struct batch *batch);
// Enqueues writes of a batch's arrays, which must not change until they complete.
attncl_status attncl__write_arrays(attncl_graph *g, const struct batch *batch);

// -- step_graph.c

// Finds or compiles the graph for batches of this shape; the trainer owns it.
attncl_status attncl__find_step_graph(attncl_trainer *t, enum graph_kind kind,
                                      const struct batch *batch, attncl_graph **ret);
// Adds loss and gradients of a batch to a graph; sets t->weights and t->gradients.
attncl_status attncl__add_gradients(attncl_trainer *t, attncl_graph *g, const struct batch *batch,
                                    attncl_value *loss_ret);
// Call attncl__drop_batches() first.
void attncl__drop_step_graphs(attncl_trainer *t);

// -- trained.c

attncl_status attncl__create_trained(attncl_trainer *t);
void attncl__destroy_trained(attncl_trainer *t);
// Swaps weights and averages, if averages are kept; called before and after an evaluation.
attncl_status attncl__exchange_averages(attncl_trainer *t);
// Gives all ranks rank 0's weights; ERR_STATE if their data or configurations differ.
attncl_status attncl__begin_replicas(attncl_trainer *t);
// ERR_STATE if the ranks' weights differ; compares only every COMPARE_EVERY steps.
attncl_status attncl__compare_replicas(attncl_trainer *t);

// -- grad_sums.c: with several ranks

// Whether a gradient graph outputs the gradients, instead of adding them to trained.gradient.
bool attncl__outputs_gradients(const attncl_trainer *t);
// Runs a gradient graph that outputs the gradients.
attncl_status attncl__run_gradients(attncl_trainer *t, attncl_graph *g);
// send: begins the sums of a step's gradients as they complete; g: the graph that outputs them, NULL on a rank without
// a part.  receive: fills trained.gradient with the sums over the ranks.
attncl_status attncl__send_gradients(attncl_trainer *t, attncl_graph *g);
attncl_status attncl__receive_gradients(attncl_trainer *t);
void attncl__free_grad_sums(attncl_trainer *t);

// -- checkpoint.c: one safetensors file.
//
//   NAME                          a parameter of the model; with averages, its average
//   optimizer.param.NAME          with averages: the parameter
//   optimizer.exp_avg.NAME ...    the optimiser's states for it
//   metadata                      a model file's, and attncl.train: JSON of the trainer

// ERR_STATE, "WHAT KEY is 2, WHOSE is 3", if the values of a key differ.
attncl_status attncl__compare_value(const struct json *saved, const struct json *own,
                                    const char *what, const char *key, const char *whose);

#endif
