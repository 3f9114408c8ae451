// SPDX-License-Identifier: MIT
// A compiled graph: its memory and its commands.  exec/ sees this and no nodes or values.
#ifndef ATTNCL_COMPILE_PROGRAM_H
#define ATTNCL_COMPILE_PROGRAM_H

#include "attncl/graph.h"
#include "base/name_table.h"
#include "base/worst_error.h" // CANARY_WORD
#include "launch/command_list.h"

// With ATTNCL_GUARD a canary of this many constant bytes lies on both sides of every value and
// scratch.
enum { CANARY_BYTES = 1024 };

// Where what follows a canary begins: where the device lets a part of a buffer begin.  Both are powers of two.
static inline size_t canary_pad(const struct device_caps *caps)
{
    return caps->align_bytes > CANARY_BYTES ? caps->align_bytes : CANARY_BYTES;
}

// Buffers are filled by words of 4 bytes.
static inline size_t whole_words(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

// A caller's buffer in the place of the graph's own.
struct callers_buffer {
    cl_mem mem;             // retained; NULL: none
    struct storage *copied; // it is not usable in place: the source or target of the copy
    size_t offset;          // bytes
};

// An input or output, and the caller's buffer bound to it.
struct io_binding {
    const char *name;
    struct tensor_desc desc;
    bool ranged; // elements of an input must lie in [low, high)
    int64_t low, high;
    int last_node;           // of an output: the last that writes it; -1: none
    struct storage *storage; // what the commands use
    cl_mem own;              // the graph's own buffer
    struct callers_buffer bound;
};

// The inputs or the outputs.
struct io_list {
    struct io_binding *list;
    int n;
    const struct name_table *names; // the graph's
    struct command_list copies;     // to or from the callers' buffers
};

struct state {
    const char *name;
    struct tensor_desc desc;
    struct storage *storage;
};

// A value between two canaries, in the arena or in a buffer of its own.
struct guarded {
    cl_mem whole; // the program's arena, or owned
    size_t start, bytes;
    bool poisoned; // before each run; the arena is poisoned as a whole
    const char *name, *scope;
};

// A node, for profiles; op NULL: it has no commands.
struct program_node {
    const char *op, *scope;
    double flop, bytes; // of one run
};

struct profile; // exec/profile.c

struct program {
    attncl_context *ctx;
    struct io_list inputs, outputs;
    struct state *states;
    int n_states;
    const struct program *state_owner; // while it is compiled; NULL: none
    struct program_node *nodes;
    int n_nodes;

    struct storage *storages; // of values, then of the nodes' scratch
    size_t n_storages;
    cl_mem arena;
    size_t arena_bytes;
    struct storage **parts; // those in the arena, as they were created
    size_t n_parts;
    cl_mem empty; // stands for values without elements
    struct guarded *guarded;
    size_t n_guarded;

    struct command_list command_list;
    bool has_mixed; // binding a buffer has failed: kernels' arguments may be of another
    bool updates;   // it has state, or updates weights in place

    // exec/failure.c
    bool needs_reset, outputs_undefined; // a run has failed
    bool is_pending;                     // a run was not waited for
    unsigned long n_faults_before;       // of the context, when it began

    struct profile *profile;
    void (*profile_free)(struct profile *profile);
};

void attncl__program_free(struct program *p); // NULL is fine

// The graph's program; NULL before attncl_graph_compile().
struct program *attncl__graph_program(const attncl_graph *g);

#endif
