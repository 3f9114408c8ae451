// SPDX-License-Identifier: MIT
// A list of commands ready to enqueue: kernels with their arguments set, copies, CLBlast calls.
// Owned by a compiled graph.  Knows storage, not values.
#ifndef ATTNCL_LAUNCH_COMMAND_LIST_H
#define ATTNCL_LAUNCH_COMMAND_LIST_H

#include "device/context.h"
#include "launch/launch.h"

// Device memory that kernel arguments refer to.  After `mem` is exchanged (a caller's buffer is
// bound), attncl__command_list_rebind() sets the arguments again.
struct storage {
    cl_mem mem; // released by the owner of the storage
    size_t bytes;
    size_t begin,
        end; // in the graph's arena, where others may be at other times; both 0: not in it
};

// SIGNAL: event slot `slot` is complete when the queue's commands before it are.  WAIT: the queue's
// commands after it begin when that event is complete.
enum command_kind { COMMAND_KERNEL, COMMAND_COPY, COMMAND_CALL, COMMAND_SIGNAL, COMMAND_WAIT };

struct mem_arg {
    cl_uint index;
    struct storage *storage;
    bool writes; // of a part
};

// A command that enqueues by itself (CLBlast).  Called at each run; `event` as in clEnqueue*.
typedef attncl_status (*command_fn)(attncl_context *ctx, void *user, cl_event *event);

struct command {
    enum command_kind kind;
    int node;         // index for profiles; set from command_list.node
    int queue;        // of the context
    int slot;         // SIGNAL, WAIT: of command_list.events
    const char *name; // static text: "softmax_rows_fwd"
    cl_kernel kernel;
    size_t global[3], local[3];
    struct mem_arg *mem_args;
    size_t n_mem_args;
    struct storage *from, *to; // COPY
    size_t from_offset, to_offset, bytes;
    command_fn call; // CALL
    void *user;
    void (*user_free)(void *user);
    size_t loop_first, trip_count; // trip_count > 0: ends a loop that begins with loop_first
    double seconds;                // it may take, on a GPU; 0: not known
};

struct command_list {
    attncl_context *ctx;
    struct command *commands;
    size_t n_commands, capacity;
    int node;         // the node being launched
    int queue;        // its queue
    int n_queues;     // that commands go to; 0 and 1: all to queue 0
    cl_event *events; // slots: NULL outside of a run
    size_t n_events;
    bool has_calls;           // which know queue 0 only, and share memory: all commands go there
    bool has_callers_buffers; // which may overlap: likewise
    cl_mem dummy;             // passed for absent spans
};

// Appends a command of the current node.
attncl_status attncl__command_list_append(struct command_list *list, struct command command);
// The only caller of clSetKernelArg.
attncl_status attncl__command_list_set_arg(cl_kernel kernel, cl_uint index, size_t bytes,
                                           const void *value);
attncl_status attncl__command_list_begin(attncl_context *ctx, struct command_list *list);
void attncl__command_list_free(struct command_list *list);
attncl_status attncl__command_list_add_copy(struct command_list *list, const char *name,
                                            struct storage *from, size_t from_offset,
                                            struct storage *to, size_t to_offset, size_t bytes);
// On success the command list owns `user`.
attncl_status attncl__command_list_add_call(struct command_list *list, const char *name,
                                            command_fn call, void *user,
                                            void (*user_free)(void *user));
// Commands go to n_queues queues, which n_events slots of events join.
attncl_status attncl__command_list_use_queues(struct command_list *list, int n_queues,
                                              size_t n_events);
attncl_status attncl__command_list_add_sync(struct command_list *list, enum command_kind kind,
                                            int queue, int slot);
// Whether a kernel of `list` is of a program that `other` has no kernel of.
bool attncl__command_list_has_new_program(const struct command_list *list,
                                          const struct command_list *other);
// Whether the command is a SIGNAL or a WAIT, which computes nothing.
bool attncl__command_is_sync(const struct command *c);
// The commands from `first` to the last are executed `trip_count` times in each run.
void attncl__command_list_loop(struct command_list *list, size_t first, int64_t trip_count);
// The commands from `first` on take that many seconds together, each as long as the others: a high
// guess.  A run flushes the queue where what it enqueued since the last flush passes
// COMMAND_LIST_FLUSH_SECONDS, so that drivers which end what runs for seconds are given it in parts.
#define COMMAND_LIST_FLUSH_SECONDS 0.2
void attncl__command_list_estimate(struct command_list *list, size_t first, double seconds);
// How many commands a run enqueues, and an iterator: the index of the command after command `i`.
// *iteration is the iterator's state, 0 at first.
size_t attncl__command_list_length(const struct command_list *list);
size_t attncl__command_list_next(const struct command_list *list, size_t i, size_t *iteration);
// Sets every kernel argument that refers to `storage` again.
attncl_status attncl__command_list_rebind(struct command_list *list, const struct storage *storage);
// Enqueues all commands, in order, each into its queue, and flushes the queues.  Where there are several,
// all begin after what queue 0 holds, and queue 0 goes on when all are complete; on failure what was
// enqueued is waited for.  The first command
// waits for `wait`.  `events`, when not NULL, receives one event per enqueued command (NULL where
// the command gave none); `last_ret`, when not NULL, an event of the end.  The caller owns them: it
// calls attncl__event_release(), or passes it to the application and calls attncl__object_released().
attncl_status attncl__command_list_enqueue(struct command_list *list, cl_uint n_wait,
                                           const cl_event *wait, cl_event *events,
                                           cl_event *last_ret);

// A part of a run in queue 0, without events: the commands from *first on of nodes up to `last_node`, which ends
// no loop halfway.  *first becomes the command after them.  Flushes the queue.
attncl_status attncl__command_list_enqueue_nodes(struct command_list *list, size_t *first,
                                                 int last_node);

#endif
