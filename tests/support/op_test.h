// SPDX-License-Identifier: MIT
// Runs one op as a graph of one node, poisoned and with canaries.
#ifndef ATTNCL_TEST_OP_TEST_H
#define ATTNCL_TEST_OP_TEST_H

#include "op/op.h"
#include "support/host.h"
#include "support/test.h"

// Of one op in a test.
enum { TEST_MAX_VALUES = 24, OP_GRAPH_TEXT_BYTES = 256 };

#define HOSTS(...)                                                                                 \
    (struct host *const[]){__VA_ARGS__},                                                           \
        (int)(sizeof((struct host *const[]){__VA_ARGS__}) / sizeof(struct host *))

// Inputs in the class's order, NULL for an absent one; outputs receive the results and must have
// the op's output shapes (checked).  Inputs at a class's state positions are state: they start with
// the given values, and receive what the run left in them.  Canaries are checked.  Fails the test
// on a shape mismatch, returns the library's status otherwise.
attncl_status run_op(const char *name, const void *params, struct host *const *in, int n_in,
                     struct host *const *out, int n_out);

// run_op() of an op that saves outputs for its gradients, which are there too; `out` may be NULL
// where an output is absent.
attncl_status run_op_saving(const char *name, const void *params, struct host *const *in, int n_in,
                            struct host *const *out, int n_out);

// run_op(), each result within tolerance of `want`.
void ck_op(const char *name, const void *params, struct host *const *in, int n_in,
           struct host *const *want, int n_out, double rtol, double atol);

// The op refuses these inputs (HOSTS) with that status and a message that contains `words`.
#define ck_refused(name, params, hosts, status, words)                                             \
    ck_fails(run_op(name, params, hosts, NULL, 0), status, words)

// An op and, where `wanted` has bits, the gradients of these inputs, as a compiled graph: run as often as needed.
struct op_graph {
    const struct op_class *cls; // NULL: what `build` builds
    void (*build)(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out);
    int n_in, n_out;
    struct host
        *in[TEST_MAX_VALUES]; // NULL: absent; at a class's state positions: what a run begins with
    struct host *out[TEST_MAX_VALUES]; // their shapes; NULL: not an output of the graph
    struct host *dy[TEST_MAX_VALUES];  // NULL: the output has no gradient
    unsigned wanted;
    bool saving; // outputs for gradients too

    attncl_graph *g;
    attncl_value value[TEST_MAX_VALUES]; // outputs
};

// Builds and compiles it, with the shapes of in, out and dy.  With n_out = 0 and `wanted`: makes out and random dy of all
// outputs of the class, which are then no outputs of the graph.
attncl_status op_graph_open(struct op_graph *t, const void *params);
// False: an output has another shape or type than `out` says; `text` says how.
bool op_graph_has_shapes(const struct op_graph *t, char text[OP_GRAPH_TEXT_BYTES]);
// Writes `in` and `dy`, runs, checks canaries.
attncl_status op_graph_run(const struct op_graph *t);
// "out": output i; "dx": the gradient of input i; "in": the state at input i.
attncl_status op_graph_read(const struct op_graph *t, const char *prefix, int i, struct host *h);
void op_graph_close(struct op_graph *t);

// A position, or another index: I32 [1].
struct host *host_index(double value);

// True on devices that take minutes for what others do in seconds (Oclgrind, llvmpipe): a test
// gives them a few small shapes.
bool on_simulator(void);

#endif
