// SPDX-License-Identifier: MIT
// A list of commands ready to enqueue: kernels with their arguments set, copies, CLBlast calls.
#ifndef ATTNCL_LAUNCH_COMMAND_LIST_H
#define ATTNCL_LAUNCH_COMMAND_LIST_H

#include "device/context.h"
#include "launch/launch.h"

// Device memory that kernel arguments refer to.  When `mem` changes (a caller's buffer is bound),
// attncl__command_list_rebind() sets the arguments again.
struct storage {
    cl_mem mem; // released by the owner of the storage
    size_t bytes;
    size_t begin, end; // bytes of the graph's arena, which others may use too; both 0: not in it
};

// SIGNAL completes an event once the queue's earlier commands are complete.  WAIT delays the queue's
// later commands until that event is complete.
enum command_kind { COMMAND_KERNEL, COMMAND_COPY, COMMAND_CALL, COMMAND_SIGNAL, COMMAND_WAIT };

struct mem_arg {
    cl_uint index;
    struct storage *storage;
    bool writes; // set for joint launches only
};

// A function that enqueues its own commands (CLBlast).  Called at each run; `event` as in clEnqueue*.
typedef attncl_status (*command_fn)(attncl_context *ctx, void *user, cl_event *event);

struct command {
    enum command_kind kind;
    int node;         // the graph's node, for profiles
    int queue;        // index of the context's queue
    int slot;         // SIGNAL, WAIT: index into command_list.events
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
    double seconds;                // estimated time on a GPU; 0: unknown
};

struct command_list {
    attncl_context *ctx;
    struct command *commands;
    size_t n_commands, capacity;
    int node;         // the node being launched
    int queue;        // its queue
    int n_queues;     // number of queues used; 0 and 1: queue 0 only
    cl_event *events; // by slot; NULL outside a run
    size_t n_events;
    bool has_calls;           // calls use queue 0 and share memory, so everything goes to queue 0
    bool has_callers_buffers; // callers' buffers may overlap, so everything goes to queue 0
    cl_mem dummy;             // argument for absent spans
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
// Makes the list use n_queues queues, synchronised through n_events event slots.
attncl_status attncl__command_list_use_queues(struct command_list *list, int n_queues,
                                              size_t n_events);
attncl_status attncl__command_list_add_sync(struct command_list *list, enum command_kind kind,
                                            int queue, int slot);
// True when `list` uses a program that `other` does not.
bool attncl__command_list_has_new_program(const struct command_list *list,
                                          const struct command_list *other);
// True for SIGNAL and WAIT.
bool attncl__command_is_sync(const struct command *c);
// Makes a loop of the commands from `first` to the last: each run executes them `trip_count` times.
void attncl__command_list_add_loop(struct command_list *list, size_t first, int64_t trip_count);
// Sets the estimated time of the commands from `first` on: `seconds` in total, equal shares.  A run
// flushes the queue whenever commands of more than COMMAND_LIST_FLUSH_SECONDS were enqueued since the
// last flush, so that drivers that kill long-running work get it in parts.
#define COMMAND_LIST_FLUSH_SECONDS 0.2
void attncl__command_list_set_seconds(struct command_list *list, size_t first, double seconds);
// Iterates over the commands of a run, loops unrolled: their number, and the index of the command after
// command `i`.  *iteration is the iterator's state, initially 0.
size_t attncl__command_list_length(const struct command_list *list);
size_t attncl__command_list_next(const struct command_list *list, size_t i, size_t *iteration);
// Sets again every kernel argument that refers to `storage`.
attncl_status attncl__command_list_rebind(struct command_list *list, const struct storage *storage);
// Enqueues all commands, each into its queue, and flushes the queues.  Several queues start after the
// earlier commands of queue 0, which continues when all of them are complete; a failure waits for what
// was enqueued.  The first command waits for `wait`.  `events`, if not NULL, receives one event per
// enqueued command (NULL if a command has none); `last_ret`, if not NULL, the run's last event.  The
// caller releases them by attncl__event_release(), or passes them to the application and calls
// attncl__object_released().
attncl_status attncl__command_list_enqueue(struct command_list *list, cl_uint n_wait,
                                           const cl_event *wait, cl_event *events,
                                           cl_event *last_ret);

// Enqueues a part of a run into queue 0, without events, and flushes it: the commands from *first on of nodes up to
// `last_node`, which must not split a loop.  *first becomes the next command.
attncl_status attncl__command_list_enqueue_nodes(struct command_list *list, size_t *first,
                                                 int last_node);

#endif
