// SPDX-License-Identifier: MIT
// A model's graph under construction, and its inputs: looked up by name, checked against the
// architecture's declaration, declared to the graph.
#ifndef ATTNCL_MODEL_INPUTS_H
#define ATTNCL_MODEL_INPUTS_H

#include "attncl/array.h"
#include "attncl/dropout.h"
#include "attncl/kinds.h"
#include "base/shape_spec.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "model/params.h"

// -- inputs.c: dropout in training.  Sites are numbered from 0 in the order of the forward pass; in a
// layer: attention weights, attention's result, hidden channels, feed-forward network's result.  All
// steps of a layer that runs step by step share a site.

// The next site's dropout, whose batch is axis `batch_axis`.  If p is not 0, advances *next.
attncl_dropout_desc attncl__next_dropout(attncl_dropout_desc *next, int batch_axis);

// dropout(y) + residual at the next site.
attncl_value attncl__add_dropout(attncl_graph *g, attncl_dropout_desc *next, int batch_axis,
                                 attncl_value y, attncl_value residual);

// -- port.c: tables of an architecture's inputs and outputs, with types and shapes.  A shape is a text
// with a word per axis:
//
//     T            a free axis, with the same extent everywhere
//     d_model      an integer or list of integers of the configuration; or a number: 2
//     num_heads*B  a product, quotient or sum (T+steps) of these
//     T|1          T, or 1
//     ...          (first) any axes, the same everywhere
//     B Q; B       one of two shapes, by the number of axes

enum port_type {
    PORT_END,
    PORT_F32,
    PORT_INDEX, // I32 or I64, from 0 to `below`
    PORT_INT,   // I32 or I64
    PORT_MASK,  // BOOL or U8
    PORT_I32,   // this and the following: outputs only
    PORT_I64,
    PORT_BOOL,
};

struct port {
    const char *name; // "g.*": all names that begin with "g."
    enum port_type type;
    const char *shape;
    bool optional;     // an output: present if the optional inputs are
    bool batch_first;  // swap the first two axes if the key batch_first is true
    const char *below; // bound of an index, a word of a shape; NULL: 2^31 - 1
    struct condition when;
};

// The rows of a table.
#define PORTS(...) ((const struct port[]){__VA_ARGS__, {0}})
#define PORT(name_, type_, ...)                                                                    \
    {                                                                                              \
        .name = (name_), .type = PORT_##type_, .shape = __VA_ARGS__                                \
    }

// A configuration.
struct config_values {
    const struct key *keys;
    const void *settings;
};

// Whether the port applies to the configuration.
bool attncl__port_applies(const struct port *port, struct config_values config);
// Whether the name is the port's, or matches its "g.*".
bool attncl__port_is_named(const struct port *port, const char *name);
// The applicable port with the name; NULL: none.
const struct port *attncl__port_find(const struct port *table, struct config_values config,
                                     const char *name);
const char *attncl__port_type_text(enum port_type type);

// Appends a shape, keys as numbers or, with `symbols`, as names: "[T or 1, T, 64]", "[B, Q] or [B]".
void attncl__port_write_shape(const struct port *port, struct config_values config, bool symbols,
                              struct strbuf *text);
// The expected shape of an array of this rank, as letters (base/shape_spec.h).
enum { PORT_SHAPE_BYTES = 160 };
const char *attncl__port_shape(const struct port *port, struct config_values config, int rank,
                               char text[PORT_SHAPE_BYTES]);
// The bound of an index.
int64_t attncl__port_below(const struct port *port, struct config_values config,
                           const struct axes *axes);

// -- inputs.c

enum { BUILD_MAX_INPUTS = 8 };
struct build {
    // NULL: only visits the parameters, to list or load them in the order of their use.  Then inputs
    // are null values, free axes 1, and builders add nothing.
    attncl_graph *graph;
    struct params params;
    const attncl_array *inputs; // only names, types and shapes are read
    size_t n_inputs;
    const struct port *ports;    // the architecture's inputs
    struct config_values config; // its configuration
    struct axes axes;            // of the inputs declared so far, `shapes`
    struct input_shape {
        char name[48], shape[PORT_SHAPE_BYTES];
        struct tensor_desc desc;
    } shapes[BUILD_MAX_INPUTS];
    int n_shapes;
    bool show_attention;         // attention weights of layers are outputs too
    int64_t n_positions;         // of a decode step: the number of positions
    attncl_dtype state_dtype;    // of decoding's keys, values and gMLP rows
    bool for_loss;               // the only output is the class scores
    attncl_dropout_desc dropout; // of the next site in training; p 0: none
    attncl_value rotary[2];      // tables of rotations, null until used: global, local
};

// Call before any input.
void attncl__inputs_begin(struct build *b, const struct port *ports, struct config_values config);

// The array with the name; NULL: none.
const attncl_array *attncl__input_find(const attncl_array *inputs, size_t n, const char *name);

// Declares an input of the architecture to the graph; null if it is optional and absent.  Fails the
// graph if it is missing or has a wrong shape or type.
attncl_value attncl__input(struct build *b, const char *name);
// The extent of a free axis of the inputs declared so far.
int64_t attncl__input_axis(const struct build *b, char letter);

// Declares an input whose shape follows from the graph: a float cotangent if `below` is 0, else integer
// targets in [0, below).
attncl_status attncl__input_exact(struct build *b, const char *name, int rank, const int64_t *dim,
                                  int64_t below, attncl_value *ret);

// Fail the graph with ERR_SHAPE if an input is longer than `limit` (0: none) along its free axis; if it
// is empty.
void attncl__check_length(struct build *b, const char *name, char axis, int64_t limit);
void attncl__check_steps(struct build *b, const char *name, char axis);

// Records a failure, in the graph if there is one, else in b->params.  Returns the null value.
attncl_value attncl__build_fail(struct build *b, attncl_status status);

#endif
