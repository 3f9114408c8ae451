// SPDX-License-Identifier: MIT
// Describing an architecture's inputs and outputs: its graph is built for inputs that are made up
// as it declares them, twice, with other sizes of the free axes.  How an extent differs between the
// two tells which axis it follows.
#ifndef ATTNCL_MODEL_PROBE_H
#define ATTNCL_MODEL_PROBE_H

#include <stdbool.h>

#include "attncl/array.h"
#include "model/symbols.h"

// A free axis has a letter: B batch, T queries or positions, S keys or source positions, K keys,
// Q queries, C channels ...  AXIS_TIMES: an extent that is a multiple of `n`, n times the letter.
#define AXIS_TIMES(letter, n) (-(int64_t)(letter)-256 * ((int64_t)(n)-1))
#define AXIS(letter)          AXIS_TIMES(letter, 1)
#define AXES                  '.' // any number of axes: "..."

enum { PROBE_MAX = 16, PROBE_PASSES = 2 };

struct probe_value {
    const char *name, *type;
    bool optional;
    unsigned or_one;      // bit i: axis i may be 1 as well
    const char *or_shape; // "[B]": another shape; NULL: none
    attncl_array array;
};

struct probe {
    int pass;             // 0 or 1
    bool is_short;        // T and S are 1 in both passes: a limit forbids more
    bool only_required;   // no optional input is given
    const char *optional; // the input that is asked for and may be absent
    struct probe_value inputs[PROBE_MAX], outputs[PROBE_MAX];
    size_t n_inputs, n_outputs;
};

const attncl_array *attncl__probe_find(const struct probe *probe, const char *name);

// Makes up an input, or an output of what is no graph.  Extents may be axes; rank -1: any.  `name`
// is static text.
struct probe_value *attncl__probe_input(struct probe *probe, const char *name, attncl_dtype dtype,
                                        int rank, const int64_t *dim);
struct probe_value *attncl__probe_output(struct probe *probe, const char *name, attncl_dtype dtype,
                                         int rank, const int64_t *dim);

// An extent as text: "12", "T", "4*B", "...".
enum { AXIS_TEXT_BYTES = 24 };
const char *attncl__axis_text(int64_t dim, char text[AXIS_TEXT_BYTES]);

// Adds the shape of a value as text, from its two probes: "[T, B, 64]" or, with symbols, "[T, B,
// d_model]".
void attncl__probe_shape(struct strbuf *text, const struct probe_value *first,
                         const struct probe_value *second, bool is_short,
                         const struct symbols *symbols);

#endif
