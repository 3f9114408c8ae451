// SPDX-License-Identifier: MIT
// Inputs and outputs of an architecture, declared: a table names each with its type and its shape, as
// text of one axis after another:
//
//     T            a free axis, the same wherever the letter stands
//     d_model      an integer of the configuration, or its list of them; 1, 2 ... itself
//     num_heads*B  a product, a quotient by a number or a sum, T+steps, of such parts
//     T|1          that, or 1
//     ...          first: any axes, the same wherever they stand
//     B Q; B       one shape or another, by the number of axes
#ifndef ATTNCL_MODEL_PORT_H
#define ATTNCL_MODEL_PORT_H

#include "attncl/array.h"
#include "base/shape_spec.h"
#include "base/strbuf.h"
#include "model/config.h"

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
// The port of that name that applies, also by "g.*"; NULL: none.
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

#endif
