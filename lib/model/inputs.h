// SPDX-License-Identifier: MIT
// A graph under construction for a model, and its inputs: looked up by name, checked against what
// the architecture declares, declared to the graph.
#ifndef ATTNCL_MODEL_INPUTS_H
#define ATTNCL_MODEL_INPUTS_H

#include "attncl/array.h"
#include "attncl/dropout.h"
#include "attncl/kinds.h"
#include "base/shape_spec.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "model/params.h"

// -- inputs.c: where a model drops elements in training.  Places are numbered from 0 as the forward pass meets
// them: of a layer its attention weights, what its attention adds, its hidden channels, what its feed-forward network
// adds; a layer that is run step by step has one number for all steps.

// Of the next place, where the batch is axis `batch_axis`; where p is not 0, *next becomes that of
// the place after it.
attncl_dropout_desc attncl__dropout_next(attncl_dropout_desc *next, int batch_axis);

// dropout(y) + residual at the next place.
attncl_value attncl__dropout_add(attncl_graph *g, attncl_dropout_desc *next, int batch_axis,
                                 attncl_value y, attncl_value residual);

// -- port.c: inputs and outputs of an architecture, declared: a table names each with its type and its shape, as text
// of one axis after another:
//
//     T            a free axis, the same wherever the letter stands
//     d_model      an integer of the configuration, or its list of them; 1, 2 ... itself
//     num_heads*B  a product, a quotient by a number or a sum, T+steps, of such parts
//     T|1          that, or 1
//     ...          first: any axes, the same wherever they stand
//     B Q; B       one shape or another, by the number of axes

enum port_type {
    PORT_END,
    PORT_F32,
    PORT_INDEX, // I32 or I64, from 0 to `below`
    PORT_INT,   // I32 or I64
    PORT_MASK,  // BOOL or U8
    PORT_I32,   // of outputs
    PORT_I64,
    PORT_BOOL,
};

struct port {
    const char *name; // "g.*": any number of them, whose names begin so
    enum port_type type;
    const char *shape;
    bool optional;     // of an output: there with the optional inputs
    bool batch_first;  // the first two axes change places where the key of that name is true
    const char *below; // of an index: a part of a shape; NULL: 2^31 - 1
    struct condition when;
};

// The rows of a table.
#define PORTS(...) ((const struct port[]){__VA_ARGS__, {0}})
#define PORT(name_, type_, ...)                                                                    \
    {                                                                                              \
        .name = (name_), .type = PORT_##type_, .shape = __VA_ARGS__                                \
    }

// A configuration that was read.
struct config_values {
    const struct key *keys;
    const void *settings;
};

// Whether a configuration has the port.
bool attncl__port_applies(const struct port *port, struct config_values config);
// Whether an array of that name belongs to the port, also by "g.*".
bool attncl__port_is_named(const struct port *port, const char *name);
// The port of that name that applies; NULL: none.
const struct port *attncl__port_find(const struct port *table, struct config_values config,
                                     const char *name);
const char *attncl__port_type_text(enum port_type type);

// Adds a shape, keys by their numbers or with `symbols` by their names: "[T or 1, T, 64]",
// "[B, Q] or [B]".
void attncl__port_write_shape(const struct port *port, struct config_values config, bool symbols,
                              struct strbuf *text);
// The shape for base/shape_spec.h that an array of so many axes should have.
enum { PORT_SHAPE_BYTES = 160 };
const char *attncl__port_shape(const struct port *port, struct config_values config, int rank,
                               char text[PORT_SHAPE_BYTES]);
// The bound of an index.
int64_t attncl__port_below(const struct port *port, struct config_values config,
                           const struct axes *axes);

// -- inputs.c

enum { BUILD_MAX_INPUTS = 8 };
struct build {
    // NULL: the parameters are listed or loaded, in the order in which the graph asks for them.  Inputs
    // are then null values, free axes 1, and builders add nothing.
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
    bool for_loss;   // the one output is the scores of classes, whatever else a run has
    attncl_dropout_desc dropout; // of the next place in training; zeros: nothing is dropped
    attncl_value rotary[2];      // attncl__rotary_table(), once it is made: of all positions, local
};

// Before any input: what the architecture declares, and its configuration.
void attncl__inputs_begin(struct build *b, const struct port *ports, struct config_values config);

// The array of that name, NULL when it is absent.
const attncl_array *attncl__input_find(const attncl_array *inputs, size_t n, const char *name);

// Declares an input of the architecture to the graph; null where it is absent and optional.  One that is missing, or
// whose shape or type is wrong, fails the graph.
attncl_value attncl__input(struct build *b, const char *name);
// The extent of a free axis of the inputs declared until here.
int64_t attncl__input_axis(const struct build *b, char letter);

// Inputs that follow from the graph: cotangents, real, where `below` is 0, and targets, integers in [0, below).
attncl_status attncl__input_exact(struct build *b, const char *name, int rank, const int64_t *dim,
                                  int64_t below, attncl_value *ret);

// Fail the graph with ERR_SHAPE when an input, along its free axis, is longer than the model takes;
// when it is empty.
void attncl__check_length(struct build *b, const char *name, char axis, int64_t limit);
void attncl__check_steps(struct build *b, const char *name, char axis);

// Keeps a failure of the construction that is no builder's: in the graph, without one in the
// parameters.  The null value.
attncl_value attncl__build_fail(struct build *b, attncl_status status);

#endif
