// SPDX-License-Identifier: MIT
// Launching kernels.  An op's launch function runs once, when its graph is compiled.  There each
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

// Whether a kernel was refused because the device cannot run its work-groups or its compiler failed,
// for the last reason.
struct launch_refusal {
    bool refused;
    size_t max_group; // the largest that the device runs of this kernel; 0: no size would help
};

// The context of an op's launch function.
struct launcher {
    const struct device_caps *caps;
    struct command_list *command_list;
    const char *gemm;           // ATTNCL_GEMM's value or NULL
    struct joint_launch *joint; // of parts; NULL: each is a launch
    // Programs are noted (attncl__program_want()) that the first choices of configurations need; the commands are
    // good for nothing.
    bool is_rehearsal;
    double seconds; // that the op may take, on a GPU: a high guess; 0: not known
    struct launch_refusal refusal;
};

// How many of n equal parts of an op's work one launch may do before a driver's watchdog ends it: a
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

// Lines are sorted: whatever order launches set macros in, the same ones are the same program.
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

// VW and LS, macros of every kernel: vector width and work-group size.
static inline void kspec_set_vw_ls(struct kspec *k, unsigned vw, size_t ls)
{
    kspec_int(k, "VW", (int64_t)vw);
    kspec_int(k, "LS", (int64_t)ls);
}

// A type of stored elements (cl/common/stored.clh, weights.clh): F16, BF16, Q8, Q4, or any other for float.
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

// SHUFFLE and SHUFFLE_LANES, of every kernel where the device shuffles (cl/common/shuffle.clh).
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
    int64_t iterations; // of all loops of a work-item, at most; 0: not known
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
    bool writes; // MEM of a part
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
static inline struct arg arg_written(struct span span) // by a part
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

// Arguments that several functions append.
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

// Whether the device's iteration cap, if any, is higher than those of all loops of one work-item, at most.
static inline bool attncl__loops_fit(const struct device_caps *caps, int64_t iterations)
{
    return caps->max_loop_iterations == 0 || (uint64_t)iterations < caps->max_loop_iterations;
}
// ERR_UNSUPPORTED unless they fit.
attncl_status attncl__check_loops(const struct device_caps *caps, const char *kernel,
                                  int64_t iterations);

// Appends one kernel launch.  An empty grid appends nothing.  ERR_COMPILE when the kernel does not
// build.  ERR_UNSUPPORTED when the device cannot run it with work-groups of this size.
attncl_status attncl__launch(struct launcher *l, const struct kspec *spec, struct grid grid,
                             const struct arg *args, size_t n_args);

// -- parts: small ops of one kind, one after another, are one launch

enum { N_PARTS = 8 };

// The last launch of parts, which more may join.
struct joint_launch {
    struct kspec spec;
    struct arg_list args; // as it began
    size_t command;       // its index
    int n_parts;          // 0: there is none
};

// attncl__launch() of a kernel that takes `shared`, then N_PARTS times `part` and the part's first work-group
// (cl/common/parts.clh).  A part joins the launch in front of it where kernel and `shared` are the same, and neither
// writes memory of the other.
attncl_status attncl__launch_part(struct launcher *l, const struct kspec *spec, struct grid grid,
                                  const struct arg *shared, size_t n_shared, const struct arg *part,
                                  size_t n_part);

// True when the kernel builds and a work-group of `local` work-items is within its limits; with
// no_spills, which a choice prefers and does not require, when in addition a work-item's values fit in
// registers on a GPU, as far as the driver reports.  Appends nothing: for choosing a tile configuration
// before the first launch.
bool attncl__kernel_fits(struct launcher *l, const struct kspec *spec, size_t local,
                         bool no_spills);

// Work-items per row for a row kernel, GPU variant: a power of two, at most caps->max_group and
// 256.
size_t attncl__group_for_row(const struct device_caps *caps, int64_t width);

// -- launch_size.c: tuned values, which kernels' host code asks for before it uses a built-in configuration

// The values for this kernel and class, or NULL.  Always NULL on devices with an iteration cap,
// whose tiles follow from exact counts.  The first use is logged.  Any thread.
const int *attncl__tuned(const struct device_caps *caps, enum tunable kernel, int class);

// The entry does not run on this device: logged once, not returned again.
void attncl__tuned_reject(const struct device_caps *caps, enum tunable kernel, int class);

#endif
