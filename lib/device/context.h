// SPDX-License-Identifier: MIT
// struct attncl_context: one device, its in-order queues, its programs.  Also buffers, programs,
// kernels and events, and a count of every OpenCL object created.
#ifndef ATTNCL_DEVICE_CONTEXT_H
#define ATTNCL_DEVICE_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "attncl/context.h"
#include "base/env.h"
#include "device/caps.h"
#include "device/cl.h"

// Most queues that the commands of one graph go to.
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

// OpenCL objects by kind, in the process.  Tests check that none leaks and that a run creates none.
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
    double created_s;         // by attncl__clock_seconds()
    double compiling_s;       // processor time that building the programs to be stored took
    pid_t pid;                // of the creator: a forked child must not use the driver
    atomic_ulong n_faults;    // waits that told of a fault: of any command before them
    char *cache_directory;    // of the program cache; NULL: none, or no cache is wanted
    struct disk_cache *cache; // NULL: none
    struct program_table *programs;
    // Of gemm/clblast.c, the one file above that keeps something; NULL: nothing yet.
    void (*on_destroy)(void *user);
    void *destroy_user;
    pthread_mutex_t probe_lock; // guards the next two, while kernels are compared too
    struct known_verdict *verdicts;
    int n_verdicts;
    pthread_mutex_t lock;        // guards children and side queues
    long n_children;             // tensors, graphs, models alive
    const char *last_child_kind; // "graph", for the message of a refused destroy
};

// attncl_context_create().  tunes: ATTNCL_TUNE may name a file that is not there yet.
attncl_status attncl__context_create(const attncl_context_options *options, bool tunes,
                                     attncl_context **context_ret);

// DEFAULT changes nothing.
static inline void attncl__caps_set_precision(struct device_caps *caps, attncl_precision precision)
{
    if (precision != ATTNCL_PRECISION_DEFAULT)
        caps->precision = (enum gemm_precision)(precision - ATTNCL_PRECISION_FLOAT32);
}

// The environment variable's value for this context: NULL when it ignores the environment.
static inline const char *attncl__context_env(const attncl_context *ctx, enum env_var var)
{
    return ctx->ignore_environment ? NULL : attncl__env_get(var);
}

// ERR_ARGUMENT where it is none of the values.
attncl_status attncl__precision_check(attncl_precision precision);

// ERR_STATE in a forked child.
attncl_status attncl__context_usable(const attncl_context *ctx);

void attncl__context_add_child(attncl_context *ctx, const char *kind); // kind: static text
void attncl__context_remove_child(attncl_context *ctx);

// -- buffers (device/buffer.c).  Sizes are in bytes; size 0 gives a small buffer.  Releasers set
// their argument to NULL, and accept NULL.
attncl_status attncl__buffer_create(attncl_context *ctx, size_t bytes, cl_mem *ret);
// A zeroed buffer; `bytes` is a multiple of 4.  On devices that use the host's memory, pages that are never written take
// none.  is_dense: the caller writes all of it, so huge pages are used.
attncl_status attncl__buffer_create_zeroed(attncl_context *ctx, size_t bytes, bool is_dense,
                                           cl_mem *ret);
// Part of `parent`; origin a multiple of caps.align_bytes.
attncl_status attncl__buffer_part(attncl_context *ctx, cl_mem parent, size_t origin, size_t bytes,
                                  cl_mem *ret);
// Another reference to `mem`, in *ret.
attncl_status attncl__buffer_retain(cl_mem mem, cl_mem *ret);
void attncl__buffer_release(cl_mem *mem);
// Non-blocking: `data` must stay valid until the queue has finished.
attncl_status attncl__buffer_write_queued(attncl_context *ctx, cl_mem mem, size_t offset,
                                          const void *data, size_t bytes);
// Blocking.
attncl_status attncl__buffer_write(attncl_context *ctx, cl_mem mem, size_t offset, const void *data,
                                   size_t bytes);
attncl_status attncl__buffer_read(attncl_context *ctx, cl_mem mem, size_t offset, void *data,
                                  size_t bytes);
// Waits, and gives the buffer's memory to be written, until attncl__buffer_unmap(), which leaves the last error's text.
attncl_status attncl__buffer_map(attncl_context *ctx, cl_mem mem, size_t bytes, void **ret);
cl_int attncl__buffer_unmap(attncl_context *ctx, cl_mem mem, void *mapped);
// Non-blocking: `data` is complete when the event is.
attncl_status attncl__buffer_read_queued(attncl_context *ctx, cl_mem mem, size_t offset, void *data,
                                         size_t bytes, cl_event *event_ret);
// Rows of a buffer, `pitch` bytes apart from `offset` on, which is less than `pitch`.
struct buffer_rows {
    cl_mem mem;
    size_t offset, pitch;
};
// n rows of so many bytes, which do not overlap.
attncl_status attncl__buffer_copy_rows(attncl_context *ctx, const struct buffer_rows *from,
                                       const struct buffer_rows *to, size_t bytes, size_t n);
// Non-blocking: sets every 4-byte word of [offset, offset + bytes), multiples of 4, to `word`.
attncl_status attncl__buffer_fill(attncl_context *ctx, cl_mem mem, uint32_t word, size_t offset,
                                  size_t bytes);

// -- programs (device/program.c)
struct kernel_program; // one built program; belongs to the context
// Finds or builds.  `file` is a path below cl/, "norm/softmax.cl"; `defines` is text of "#define
// NAME VALUE" lines, put before it.  Together they are the key.  A build failure is ERR_COMPILE
// with the compiler's first error line.  Every failure is remembered until attncl__programs_retry(), so that a list of
// variants does not compile twice.
attncl_status attncl__program_get(attncl_context *ctx, const char *file, const char *defines,
                                  struct kernel_program **ret);
// A graph begins to compile: what failed before it is tried again.
void attncl__programs_retry(attncl_context *ctx);
// The next attncl__programs_build() builds it, unless it was tried.
attncl_status attncl__program_want(attncl_context *ctx, const char *file, const char *defines);
// Builds what is wanted, on GPUs by several threads, and tells the progress.  attncl__program_get() tells of failures.
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
attncl_status attncl__kernel_arg(cl_kernel kernel, cl_uint i, struct kernel_arg *ret);
// The kernel's maximum work-group size on this device, its local memory and its private (spill)
// memory, in bytes.
attncl_status attncl__kernel_limits(attncl_context *ctx, cl_kernel kernel, size_t *group_ret,
                                    size_t *local_ret, size_t *private_ret);

// The size of a caller's buffer.  ERR_ARGUMENT when it belongs to another OpenCL context.
attncl_status attncl__buffer_query(attncl_context *ctx, cl_mem mem, size_t *bytes_ret);

// -- events.  An enqueue function that creates one calls attncl__object_created(OBJECT_EVENT).
void attncl__event_release(cl_event *event);
attncl_status attncl__event_is_complete(cl_event event, bool *ret);
// Counts a fault, as blocking transfers do.
attncl_status attncl__event_wait(attncl_context *ctx, cl_event event);
// Waits for the event and returns its device times in ns.  Needs a profiling queue.
attncl_status attncl__event_times(cl_event event, uint64_t *start_ret, uint64_t *end_ret);

// Passes the code of a blocking transfer on, and counts what may be a fault of commands before it.
attncl_status attncl__transfer_check(attncl_context *ctx, cl_int code, const char *call);

// -- queues (device/context_use.c).  Queue 0 is that of transfers and of all that has no reason for another;
// the rest are in order too.
static inline cl_command_queue attncl__queue(const attncl_context *ctx, int i)
{
    return i == 0 ? ctx->queue : ctx->side_queues[i - 1];
}
// Has n queues from now on, or more.
attncl_status attncl__queues_open(attncl_context *ctx, int n);

// Waits, for all queues, at the end of something, when a fault is no one's failure any more, or another failure is to be
// told: the thread's last message stays.
void attncl__queue_drain(attncl_context *ctx);

// attncl_context_finish() without the checks of its argument: waits for all queues.
attncl_status attncl__queue_finish(attncl_context *ctx);

// Of all but queue 0.  What is read waits for it: queue 0 waits for the others, but a driver may tell a fault of
// theirs only there.
attncl_status attncl__side_queues_finish(attncl_context *ctx);

// -- query.c: limits of the device that launches ask for only where they may be met

// The least that a device may allow, that of the embedded profile.
enum { MIN_ARGUMENT_BYTES = 256 };

// Bytes that the arguments of one kernel may take together.
attncl_status attncl__device_argument_bytes(attncl_context *ctx, size_t *ret);

#endif
