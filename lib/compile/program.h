// SPDX-License-Identifier: MIT
// A compiled graph: its memory and its commands, all that exec/ sees of it.
#ifndef ATTNCL_COMPILE_PROGRAM_H
#define ATTNCL_COMPILE_PROGRAM_H

#include "attncl/graph.h"
#include "base/name_table.h"
#include "base/worst_error.h" // CANARY_WORD
#include "launch/command_list.h"

// With ATTNCL_GUARD, at least this many constant bytes lie on both sides of every value and scratch.
enum { CANARY_BYTES = 1024 };

// The canary's size, such that a sub-buffer may begin behind it.  Both numbers are powers of two.
static inline size_t canary_pad(const struct device_caps *caps)
{
    return caps->align_bytes > CANARY_BYTES ? caps->align_bytes : CANARY_BYTES;
}

// Rounds up to 4-byte words, by which buffers are filled.
static inline size_t round_up_to_words(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

// A caller's buffer bound to an input or output.
struct callers_buffer {
    cl_mem mem;             // retained; NULL: none
    struct storage *copied; // source or target of the copy, if the buffer cannot be used in place
    size_t offset;          // bytes
};

// An input or output, and the caller's buffer bound to it.
struct io_binding {
    const char *name;
    struct tensor_desc desc;
    bool ranged; // elements of an input must lie in [low, high)
    int64_t low, high;
    int last_node;           // the last node that writes an output; -1: none
    struct storage *storage; // used by the commands
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
    bool poisoned; // poison it before each run; not in the arena, which is poisoned as a whole
    const char *name, *scope;
};

// A node's row in profiles.
struct program_node {
    const char *op, *scope; // op NULL: the node has no commands
    double flop, bytes;     // per run
};

struct profile; // exec/profile.c

struct program {
    attncl_context *ctx;
    struct io_list inputs, outputs;
    struct state *states;
    int n_states;
    const struct program *state_owner; // during compilation; NULL: none
    struct program_node *nodes;
    int n_nodes;

    struct storage *storages; // by value, then scratch by node
    size_t n_storages;
    cl_mem arena;
    size_t arena_bytes;
    struct storage **parts; // storages in the arena, in order of creation
    size_t n_parts;
    cl_mem empty; // memory of values without elements
    struct guarded *guarded;
    size_t n_guarded;

    struct command_list command_list;
    bool args_stale; // binding a buffer failed: some kernels' arguments are another buffer's
    bool updates;    // a run changes state or weights

    // exec/failure.c
    bool needs_reset, outputs_undefined; // after a failed run
    bool is_pending;                     // a run was not waited for
    unsigned long n_faults_before;       // the context's count when that run began

    struct profile *profile;
    void (*profile_free)(struct profile *profile);
};

void attncl__program_free(struct program *p); // NULL is fine

// The graph's program; NULL before attncl_graph_compile().
struct program *attncl__graph_program(const attncl_graph *g);

#endif
