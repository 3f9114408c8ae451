// SPDX-License-Identifier: MIT
// A graph under construction for a model, and its inputs: looked up by name, checked against what
// the architecture declares (model/port.h), declared to the graph.
#ifndef ATTNCL_MODEL_INPUTS_H
#define ATTNCL_MODEL_INPUTS_H

#include "attncl/array.h"
#include "attncl/graph.h"
#include "attncl/kinds.h"
#include "model/dropout_sites.h"
#include "model/params.h"
#include "model/port.h"

enum { BUILD_MAX_INPUTS = 8 };
struct build {
    attncl_graph *graph;
    struct params params;
    const attncl_array *inputs; // names, types and shapes; the elements come later
    size_t n_inputs;
    const struct port *ports;    // the architecture's inputs
    struct config_values config; // its configuration
    struct axes axes;            // of the inputs that were declared, which are these
    struct input_shape {
        char name[48], shape[PORT_SHAPE_BYTES];
        struct tensor_desc desc;
    } shapes[BUILD_MAX_INPUTS];
    int n_shapes;
    bool shows_attention; // weights of layers are outputs too
    int64_t n_positions;  // a step of decoding: the maximum number of positions
    attncl_dtype
        state_dtype; // of the keys and values, or rows of gMLP, that decoding keeps: F32, F16, BF16
    bool gradients;  // gradients of this graph will be requested
    bool for_loss;   // "output" becomes `scores`, other outputs are not named
    attncl_value scores;          // of classes, [..., V]
    struct dropout_sites dropout; // training; zeros: nothing is dropped
};

// Before any input: what the architecture declares, and its configuration.
void attncl__inputs_begin(struct build *b, const struct port *ports, struct config_values config);

// Names an output.
void attncl__output(struct build *b, const char *name, attncl_value value);

// The array of that name, NULL when it is absent.
const attncl_array *attncl__input_find(const struct build *b, const char *name);

// Declares an input of the architecture to the graph; null where it is absent and optional.
// ERR_ARGUMENT when it is missing, ERR_SHAPE, ERR_DTYPE.
attncl_status attncl__input(struct build *b, const char *name, attncl_value *ret);
// The extent of a free axis of the inputs declared until here.
int64_t attncl__input_axis(const struct build *b, char letter);

// Inputs of what follows from the graph: cotangents, real, and targets, integers in [0, high).
attncl_status attncl__input_real(struct build *b, const char *name, int rank, const int64_t *dim,
                                 attncl_value *ret);
attncl_status attncl__input_index(struct build *b, const char *name, int rank, const int64_t *dim,
                                  int64_t high, attncl_value *ret);

// ERR_SHAPE when an input is longer than the model takes.
attncl_status attncl__check_length(const char *name, int64_t n_seq, int64_t limit);

#endif
