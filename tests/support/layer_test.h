// SPDX-License-Identifier: MIT
// A small graph with host tensors at its ends, for tests of layers.
#ifndef ATTNCL_TEST_LAYER_TEST_H
#define ATTNCL_TEST_LAYER_TEST_H

#include "attncl/graph.h"
#include "support/host.h"
#include "support/test.h"

enum { RIG_MAX = 24 };

struct rig {
    attncl_graph *g;
    struct host *in[RIG_MAX], *out[RIG_MAX];
    int n_in, n_out;
};

void rig_open(struct rig *b);
void rig_close(struct rig *b);

// An input with the host tensor's type and shape; NULL: the null value.
attncl_value rig_in(struct rig *b, struct host *h);
// `v` will be read into `h`, which must have its shape.
void rig_out(struct rig *b, attncl_value v, struct host *h);

attncl_status rig_compile(struct rig *b); // the first failure of the builders, if there was one
void rig_run(struct rig *b); // writes every input, runs, reads every output, checks the canaries
void rig_run_once(struct rig *b); // compiles, runs and closes

// Passes when the graph does not compile, with `expected` and `words`; closes the rig.
#define ck_rig_fails(b, expected, words)                                                           \
    do {                                                                                           \
        ck_fails(rig_compile(b), expected, words);                                                 \
        rig_close(b);                                                                              \
    } while (0)

#endif
