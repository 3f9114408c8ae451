// SPDX-License-Identifier: MIT
// struct attncl_context: one device, its in-order queues and its programs.  Also the functions for
// buffers, programs, kernels and events, which count every OpenCL object.
#ifndef ATTNCL_DEVICE_CONTEXT_H
#define ATTNCL_DEVICE_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "attncl/context.h"
#include "base/env.h"
#include "device/caps.h"
#include "device/cl.h"

// The largest number of queues that a graph uses.
enum { MAX_QUEUES = 4 };

enum object_kind {
    OBJECT_CONTEXT,
    OBJECT_QUEUE,
    OBJECT_BUFFER,
    OBJECT_PROGRAM,
    OBJECT_KERNEL,
    OBJECT_EVENT,
    N_OBJECT_KINDS
};

// Counts of the process's OpenCL objects.  Tests check that none leaks and that a run creates none.
struct object_counts {
    long live[N_OBJECT_KINDS];
    long created[N_OBJECT_KINDS];
};
void attncl__objects_count(struct object_counts *ret);
void attncl__object_created(enum object_kind kind);
void attncl__object_released(enum object_kind kind);

struct program_table; // device/program.c
struct disk_cache;    // device/program_cache.c
struct known_verdict; // device/probe.c

struct attncl_context {
    cl_context cl;
    cl_device_id device;
    cl_command_queue queue;                       // in order
    cl_command_queue side_queues[MAX_QUEUES - 1]; // device/context_use.c
    atomic_int n_side_queues;
    struct device_caps caps;
    attncl_device_info info;
    bool profile;
    bool ignore_environment;
    attncl_compile_progress_fn compile_progress; // may be NULL
    void *progress_user;
    double created_s;         // attncl__clock_seconds() at creation
    double compiling_s;       // CPU time spent building the programs to be stored
    pid_t pid;                // the creator: a forked child must not use the driver
    atomic_ulong n_faults;    // waits that reported a fault, of any earlier command
    char *cache_directory;    // the program cache's; NULL: no cache
    struct disk_cache *cache; // NULL: no cache
    struct program_table *programs;
    // Releases what gemm/clblast.c keeps for the context; NULL: nothing yet.
    void (*on_destroy)(void *user);
    void *destroy_user;
    pthread_mutex_t probe_lock; // guards the next two; held while kernels are compared
    struct known_verdict *verdicts;
    int n_verdicts;
    pthread_mutex_t lock;        // guards children and side queues
    long n_children;             // live tensors, graphs and models
    const char *last_child_kind; // "graph", for the message of a refused destroy
};

// As attncl_context_create().  tunes: ATTNCL_TUNE may name a file that does not exist yet.
attncl_status attncl__context_create(const attncl_context_options *options, bool tunes,
                                     attncl_context **context_ret);

// ATTNCL_PRECISION_DEFAULT changes nothing.
static inline void attncl__caps_set_precision(struct device_caps *caps, attncl_precision precision)
{
    if (precision != ATTNCL_PRECISION_DEFAULT)
        caps->precision = (enum gemm_precision)(precision - ATTNCL_PRECISION_FLOAT32);
}

// Returns the environment variable's value; NULL when it is unset or the context ignores the environment.
static inline const char *attncl__context_env(const attncl_context *ctx, enum env_var var)
{
    return ctx->ignore_environment ? NULL : attncl__env_get(var);
}

// ERR_ARGUMENT unless it is one of the enum's values.
attncl_status attncl__check_precision(attncl_precision precision);

// ERR_STATE in a forked child.
attncl_status attncl__context_check_usable(const attncl_context *ctx);

void attncl__context_add_child(attncl_context *ctx, const char *kind); // kind: static text
void attncl__context_remove_child(attncl_context *ctx);

// -- buffers (device/buffer.c).  Sizes are in bytes; size 0 gives a small buffer.  Releasers set
// their argument to NULL, and accept NULL.
attncl_status attncl__buffer_create(attncl_context *ctx, size_t bytes, cl_mem *ret);
// Creates a zeroed buffer; `bytes` is a multiple of 4.  On devices that use host memory, untouched pages take no
// physical memory.  is_dense: the caller will write all of it, so huge pages are used.
attncl_status attncl__buffer_create_zeroed(attncl_context *ctx, size_t bytes, bool is_dense,
                                           cl_mem *ret);
// Creates a sub-buffer of `parent`; `origin` is a multiple of caps.align_bytes.
attncl_status attncl__buffer_create_part(attncl_context *ctx, cl_mem parent, size_t origin,
                                         size_t bytes, cl_mem *ret);
// *ret: another reference to `mem`.
attncl_status attncl__buffer_retain(cl_mem mem, cl_mem *ret);
void attncl__buffer_release(cl_mem *mem);
// Returns the size and the flags of a caller's buffer.  ERR_ARGUMENT when it belongs to another OpenCL context.
attncl_status attncl__buffer_query(attncl_context *ctx, cl_mem mem, size_t *bytes_ret,
                                   cl_mem_flags *flags_ret);
// Non-blocking: `data` must stay valid until the queue has finished.
attncl_status attncl__buffer_write_queued(attncl_context *ctx, cl_mem mem, size_t offset,
                                          const void *data, size_t bytes);
// Blocking.
attncl_status attncl__buffer_write(attncl_context *ctx, cl_mem mem, size_t offset, const void *data,
                                   size_t bytes);
attncl_status attncl__buffer_read(attncl_context *ctx, cl_mem mem, size_t offset, void *data,
                                  size_t bytes);
// Waits, then maps the buffer for writing until attncl__buffer_unmap(), which does not change the last error's message.
attncl_status attncl__buffer_map(attncl_context *ctx, cl_mem mem, size_t bytes, void **ret);
cl_int attncl__buffer_unmap(attncl_context *ctx, cl_mem mem, void *mapped);
// Non-blocking: `data` is complete when the event is.
attncl_status attncl__buffer_read_queued(attncl_context *ctx, cl_mem mem, size_t offset, void *data,
                                         size_t bytes, cl_event *event_ret);
// Rows of a buffer, `pitch` bytes apart; the first is at `offset` bytes.
struct buffer_rows {
    cl_mem mem;
    size_t offset, pitch;
};
// Copies n rows of `bytes` bytes, which must not overlap.
attncl_status attncl__buffer_copy_rows(attncl_context *ctx, const struct buffer_rows *from,
                                       const struct buffer_rows *to, size_t bytes, size_t n);
// Non-blocking: sets every 4-byte word of [offset, offset + bytes), multiples of 4, to `word`.
attncl_status attncl__buffer_fill(attncl_context *ctx, cl_mem mem, uint32_t word, size_t offset,
                                  size_t bytes);

// -- programs (device/program.c)
struct kernel_program; // one built program; belongs to the context
// Finds or builds a program.  `file` is a path below cl/, "norm/softmax.cl"; `defines` is a text of
// "#define NAME VALUE" lines.  Together they are the key.  ERR_COMPILE with the compiler's first error
// line if it does not build.  A failure is remembered until attncl__programs_retry(), so that nothing
// compiles twice in vain.
attncl_status attncl__program_get(attncl_context *ctx, const char *file, const char *defines,
                                  struct kernel_program **ret);
// Makes failed programs build again.  Called when a graph's compilation begins.
void attncl__programs_retry(attncl_context *ctx);
// Makes the next attncl__programs_build() build the program, unless that was tried before.
attncl_status attncl__program_request(attncl_context *ctx, const char *file, const char *defines);
// Builds the requested programs, on GPUs by several threads, and reports progress.  attncl__program_get() reports
// failures.
void attncl__programs_build(attncl_context *ctx);
attncl_status attncl__kernel_create(struct kernel_program *program, const char *name,
                                    cl_kernel *ret);
void attncl__kernel_release(cl_kernel *kernel);
// A kernel's argument as its source declares it.  Some drivers do not know it if the program came from a binary; then
// both texts are empty.
struct kernel_arg {
    char name[64]; // "scale"
    char kind[64]; // "memory", "local memory" or the type: "float"
};
attncl_status attncl__kernel_query_arg(cl_kernel kernel, cl_uint i, struct kernel_arg *ret);
// Queries the kernel's maximum work-group size on this device, and its local and private (spill) memory in bytes.
attncl_status attncl__kernel_query_limits(attncl_context *ctx, cl_kernel kernel, size_t *group_ret,
                                          size_t *local_ret, size_t *private_ret);
// Queries the device's limit of a kernel's total argument size, in bytes.
attncl_status attncl__device_max_argument_bytes(attncl_context *ctx, size_t *ret);
enum { MIN_ARGUMENT_BYTES = 256 }; // OpenCL's smallest limit, below which no query is needed

// -- events.  An enqueue function that creates one calls attncl__object_created(OBJECT_EVENT).
void attncl__event_release(cl_event *event);
attncl_status attncl__event_is_complete(cl_event event, bool *ret);
// Waits for the event; counts a fault, as blocking transfers do.
attncl_status attncl__event_wait(attncl_context *ctx, cl_event event);
// Waits for the event and returns its device times in ns.  Needs a profiling queue.
attncl_status attncl__event_times(cl_event event, uint64_t *start_ret, uint64_t *end_ret);

// Turns a blocking transfer's code into a status and counts it if an earlier command's fault may be the cause.
attncl_status attncl__check_transfer(attncl_context *ctx, cl_int code, const char *call);

// -- queues (device/context_use.c), all in order.  Queue 0 gets transfers and everything that needs no other queue.
static inline cl_command_queue attncl__queue(const attncl_context *ctx, int i)
{
    return i == 0 ? ctx->queue : ctx->side_queues[i - 1];
}
// Opens queues until there are at least n.
attncl_status attncl__queues_open(attncl_context *ctx, int n);

// Waits for all queues, ignoring faults and keeping the last error's message: for clean-up, or after another failure.
void attncl__queue_drain(attncl_context *ctx);

// attncl_context_finish() without the checks of its argument: waits for all queues.
attncl_status attncl__queue_finish(attncl_context *ctx);

// Waits for all queues but queue 0.  Reads need it: queue 0 waits for the others on the device, but a driver may report
// their faults only here.
attncl_status attncl__side_queues_finish(attncl_context *ctx);

#endif
