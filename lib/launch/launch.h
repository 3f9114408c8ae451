// SPDX-License-Identifier: MIT
// Launching kernels.  An op's launch function runs once, when its graph is compiled.  There, each
// attncl__launch() specialises a kernel, sets its arguments and appends one command to the graph's
// command list.  A run only enqueues the commands.
#ifndef ATTNCL_LAUNCH_LAUNCH_H
#define ATTNCL_LAUNCH_LAUNCH_H

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/desc.h"
#include "base/dtype.h"
#include "base/try.h"
#include "device/caps.h"
#include "store/tuning_table.h"

struct command_list; // launch/command_list.h

// The memory of a value.  Opaque to ops, which pass it to arg_mem().
struct storage;
struct span {
    struct storage *storage;
};

// The last refusal of a kernel: the device cannot run its work-groups, or the compiler failed.
struct launch_refusal {
    bool refused;
    size_t max_group; // largest work-group size that the device may run; 0: no size helps
};

// The context of an op's launch function.
struct launcher {
    const struct device_caps *caps;
    struct command_list *command_list;
    const char *gemm;           // ATTNCL_GEMM's value or NULL
    struct joint_launch *joint; // NULL: every part is a launch of its own
    bool is_rehearsal; // only request programs (attncl__program_request()); commands are not used
    double seconds;    // upper estimate of the op's time on a GPU; 0: unknown
    struct launch_refusal refusal;
};

// Returns how many of an op's n equal parts one launch may compute without meeting a driver's watchdog: a
// multiple of `step`, or n.
int64_t attncl__parts_at_once(const struct launcher *l, int64_t n, int64_t step);

// -- a kernel specialisation: source file, entry, and macros

enum { KSPEC_DEFINES_BYTES = 768 };

struct kspec {
    const char *file;   // "norm/softmax.cl"
    const char *kernel; // entry name
    char defines[KSPEC_DEFINES_BYTES];
    size_t used;
};

static inline struct kspec kspec_begin(const char *file, const char *kernel)
{
    return (struct kspec){.file = file, .kernel = kernel};
}

// Keeps lines sorted, so that the same macros in any order give the same program.
static inline void kspec_word(struct kspec *k, const char *name, const char *word)
{
    char line[64];
    const int n = snprintf(line, sizeof line, "#define %s %s\n", name, word);
    size_t at = 0;

    assert(n > 0 && (size_t)n < sizeof line && k->used + (size_t)n < sizeof k->defines);
    while (at < k->used && strcmp(k->defines + at, line) < 0)
        at += strcspn(k->defines + at, "\n") + 1;
    memmove(k->defines + at + n, k->defines + at, k->used - at + 1);
    memcpy(k->defines + at, line, (size_t)n);
    k->used += (size_t)n;
}

static inline void kspec_int(struct kspec *k, const char *name, int64_t value)
{
    char word[24];
    snprintf(word, sizeof word, "%" PRId64, value);
    kspec_word(k, name, word);
}

// Every kernel's macros: VW, the vector width, and LS, the work-group size.
static inline void kspec_set_vw_ls(struct kspec *k, unsigned vw, size_t ls)
{
    kspec_int(k, "VW", (int64_t)vw);
    kspec_int(k, "LS", (int64_t)ls);
}

// The type of stored elements (cl/common/stored.clh, weights.clh): F16, BF16, Q8 or Q4; any other stands for float.
static inline void kspec_set_stored(struct kspec *k, const char *name, attncl_dtype dtype)
{
    const int type = dtype == ATTNCL_F16    ? 1
                     : dtype == ATTNCL_BF16 ? 2
                     : dtype == ATTNCL_Q8   ? 3
                     : dtype == ATTNCL_Q4   ? 4
                                            : 0;
    kspec_int(k, name, type);
}

// WTYPE, the type of weights (cl/common/weights.clh).
static inline void kspec_set_wtype(struct kspec *k, attncl_dtype dtype)
{
    kspec_set_stored(k, "WTYPE", dtype);
}

// Every kernel's macros on devices with shuffles: SHUFFLE and SHUFFLE_LANES (cl/common/shuffle.clh).
static inline void kspec_set_shuffle(struct kspec *k, const struct device_caps *caps)
{
    if (caps->shuffle == SHUFFLE_NONE || caps->variant != VARIANT_GPU)
        return;
    kspec_int(k, "SHUFFLE", caps->shuffle);
    kspec_int(k, "SHUFFLE_LANES", caps->shuffle_lanes);
}

// -- the range: work-groups of a fixed size; never NULL local sizes, never offsets

struct grid {
    size_t groups[3];
    size_t local[3];
    int64_t iterations; // upper bound of a work-item's loop iterations; 0: unknown
};

static inline struct grid grid_1d(int64_t groups, size_t local)
{
    return (struct grid){{(size_t)groups, 1, 1}, {local, 1, 1}, 0};
}

static inline struct grid grid_2d(int64_t groups_x, int64_t groups_y, size_t local_x,
                                  size_t local_y)
{
    return (struct grid){{(size_t)groups_x, (size_t)groups_y, 1}, {local_x, local_y, 1}, 0};
}

static inline struct grid grid_3d(int64_t gx, int64_t gy, int64_t gz, size_t lx, size_t ly)
{
    return (struct grid){{(size_t)gx, (size_t)gy, (size_t)gz}, {lx, ly, 1}, 0};
}

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

static inline int64_t round_up(int64_t x, int64_t to)
{
    return ceil_div(x, to) * to;
}

// -- arguments, in the kernel's order

enum arg_kind { ARG_MEM, ARG_I32, ARG_I64, ARG_F32, ARG_LOCAL };

struct arg {
    enum arg_kind kind;
    bool writes; // MEM: the kernel writes it; needed for joint launches only
    union {
        struct span mem; // an absent span (storage NULL) is passed as a small dummy buffer
        int32_t i32;
        int64_t i64;
        float f32;
        size_t local_bytes;
    } u;
};

static inline struct arg arg_mem(struct span span)
{
    return (struct arg){.kind = ARG_MEM, .u.mem = span};
}
static inline struct arg arg_written(struct span span) // memory that a joint launch's part writes
{
    return (struct arg){.kind = ARG_MEM, .writes = true, .u.mem = span};
}
// A length, stride or flag that the kernel takes as int.  The caller has checked that it fits.
static inline struct arg arg_i32(int64_t x)
{
    assert(x >= INT32_MIN && x <= INT32_MAX);
    return (struct arg){.kind = ARG_I32, .u.i32 = (int32_t)x};
}
static inline struct arg arg_i64(int64_t x) // the kernel takes long
{
    return (struct arg){.kind = ARG_I64, .u.i64 = x};
}
static inline struct arg arg_f32(float x)
{
    return (struct arg){.kind = ARG_F32, .u.f32 = x};
}
static inline struct arg arg_local(size_t bytes)
{
    return (struct arg){.kind = ARG_LOCAL, .u.local_bytes = bytes};
}

#define ARGS(...)                                                                                  \
    (const struct arg[]){__VA_ARGS__},                                                             \
        sizeof((const struct arg[]){__VA_ARGS__}) / sizeof(struct arg)

// A list of arguments to which several functions append.
enum { ARG_LIST_MAX = 96 };
struct arg_list {
    struct arg arg[ARG_LIST_MAX];
    size_t n;
};

static inline void arg_list_add(struct arg_list *list, const struct arg *args, size_t n)
{
    assert(n <= ARG_LIST_MAX - list->n);
    memcpy(list->arg + list->n, args, n * sizeof *args);
    list->n += n;
}

// True when a work-item's `iterations` of all loops stay below the device's cap, if it has one.
static inline bool attncl__loops_fit(const struct device_caps *caps, int64_t iterations)
{
    return caps->max_loop_iterations == 0 || (uint64_t)iterations < caps->max_loop_iterations;
}
// ERR_UNSUPPORTED unless they do.
attncl_status attncl__check_loops(const struct device_caps *caps, const char *kernel,
                                  int64_t iterations);

// Appends one kernel launch; nothing for an empty grid.  ERR_COMPILE when the kernel does not build,
// ERR_UNSUPPORTED when the device cannot run it with work-groups of this size.
attncl_status attncl__launch(struct launcher *l, const struct kspec *spec, struct grid grid,
                             const struct arg *args, size_t n_args);

// -- joint launches: consecutive small ops of one kind become parts of one launch

enum { N_PARTS = 8 };

// The last joint launch, which more parts may join.
struct joint_launch {
    struct kspec spec;
    struct arg_list args; // arguments of the first part's launch
    size_t command;       // index in the command list
    int n_parts;          // 0: there is no joint launch
};

// Launches a kernel that takes `shared`, then N_PARTS times `part` and the part's first work-group
// (cl/common/parts.clh).  The part joins the previous launch if kernel and `shared` are the same and neither writes
// memory of the other.
attncl_status attncl__launch_part(struct launcher *l, const struct kspec *spec, struct grid grid,
                                  const struct arg *shared, size_t n_shared, const struct arg *part,
                                  size_t n_part);

// True when the kernel builds and runs with work-groups of `local` work-items.  no_spills: it must not
// spill registers either, as far as a GPU's driver reports.  Appends nothing; it is for choosing a tile
// configuration before the first launch.
bool attncl__kernel_fits(struct launcher *l, const struct kspec *spec, size_t local,
                         bool no_spills);

// Returns the work-items per row of a row kernel's GPU variant: a power of two, at most caps->max_group and 256.
size_t attncl__group_for_row(const struct device_caps *caps, int64_t width);

// -- launch_size.c: tuned values, looked up before a built-in configuration is used

// Returns the tuned values of this kernel and class, or NULL.  Always NULL on devices with an iteration
// cap, whose tiles follow from exact counts.  Logs the first use.  Thread-safe.
const int *attncl__tuned(const struct device_caps *caps, enum tunable kernel, int class);

// Rejects an entry that does not run on this device: logs it once and does not return it again.
void attncl__tuned_reject(const struct device_caps *caps, enum tunable kernel, int class);

#endif
