// SPDX-License-Identifier: MIT
/**
 * @file attncl/context.h
 * OpenCL devices and the context that everything else belongs to.
 *
 * A context owns one device's OpenCL context, an in-order command queue and the programs built for
 * it.
 *
 * Threads: any; objects that nothing changes may be shared.
 */
#ifndef ATTNCL_CONTEXT_H
#define ATTNCL_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "attncl/export.h"
#include "attncl/kinds.h"
#include "attncl/status.h"

ATTNCL_BEGIN

typedef struct attncl_context attncl_context;

typedef enum attncl_device_type {
    ATTNCL_DEVICE_CPU = 1,
    ATTNCL_DEVICE_GPU = 2,
    ATTNCL_DEVICE_OTHER = 3, /**< accelerators and custom devices */
} attncl_device_type;

/**
 * What a device says of itself.  Text fields are zero-terminated UTF-8, cut where too long.  Start
 * from ATTNCL_DEVICE_INFO_INIT.
 */
typedef struct attncl_device_info {
    size_t struct_size;
    int platform;                 /**< index among the platforms that have a device */
    int device;                   /**< index among that platform's devices */
    attncl_device_type type;      /**< GPU, CPU, other */
    char platform_name[128];      /**< "Portable Computing Language" ... */
    char name[128];               /**< the device's own name */
    char vendor[128];             /**< the device's vendor */
    char driver_version[128];     /**< the driver's version */
    char opencl_version[128];     /**< "OpenCL 3.0 ..." */
    char opencl_c_version[128];   /**< "OpenCL C 1.2 ..." */
    uint32_t compute_units;       /**< cores or multiprocessors */
    uint32_t clock_mhz;           /**< 0 when the device does not say */
    uint64_t global_memory_bytes; /**< device memory */
    uint64_t max_buffer_bytes;    /**< largest single buffer */
    uint64_t local_memory_bytes;  /**< of one work-group */
    uint64_t max_work_group;      /**< work-items in one work-group */
    uint32_t vector_width;        /**< native float vector width as reported */
    int available;                /**< 0: the device cannot be used now */
} attncl_device_info;

#define ATTNCL_DEVICE_INFO_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_device_info), 0, 0, ATTNCL_DEVICE_OTHER, "", "", "", "", "", "", 0, 0, 0, 0, \
            0, 0, 0, 0                                                                             \
    }

/**
 * How many OpenCL devices there are, over all platforms; a platform without a device is skipped.  0
 * devices is success. Any thread.
 * Errors: ERR_ARGUMENT, ERR_OPENCL.
 */
ATTNCL_API attncl_status attncl_device_count(size_t *count_ret);

/**
 * Describes device `index` (0 .. count-1, platforms in the loader's order).  ERR_NO_DEVICE when
 * there is no such device.  Any thread.
 * Errors: ERR_ARGUMENT, ERR_NO_DEVICE.
 */
ATTNCL_API attncl_status attncl_device_get(size_t index, attncl_device_info *info_ret);

/**
 * Reports the progress of a compiling graph, in the compiling thread: first with `done` 0, then as its programs
 * of kernels are built or found in the program cache, until `done` is `total`.  Comparisons at
 * first use come before that and count their own programs.  It must not call the library.
 */
typedef void (*attncl_compile_progress_fn)(size_t done, size_t total, void *user);

/** How to create a context.  Start from ATTNCL_CONTEXT_OPTIONS_INIT; zero means default. */
typedef struct attncl_context_options {
    size_t struct_size; /**< set by the initializer */
    const char *device; /**< "gpu", "cpu", "1:0" (platform:device) or part of a name, case ignored,
                           not ""; NULL: ATTNCL_DEVICE, else the best GPU, else the best CPU */
    const char *cache_dir;  /**< directory of the program cache; NULL: from the environment */
    int ignore_environment; /**< 1: ignore ATTNCL_ variables; else a wrong value is ERR_ARGUMENT */
    int profile;            /**< 1: the queue records device times (attncl/profile.h) */
    attncl_compile_progress_fn compile_progress; /**< NULL: none */
    void *user;                                  /**< passed to compile_progress */
    attncl_precision precision;                  /**< of the context's graphs */
} attncl_context_options;

#define ATTNCL_CONTEXT_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_context_options), NULL, NULL, 0, 0, NULL, NULL, ATTNCL_PRECISION_DEFAULT     \
    }

/**
 * Opens a device.
 *
 * @param options      borrowed for the call; NULL means all defaults
 * @param context_ret  owned by the caller, released by attncl_context_destroy()
 *
 * ERR_NO_DEVICE if no device matches (the message lists the devices), ERR_OPENCL if the driver
 * refuses.  The context is thread-safe.  After fork(), the child gets ERR_STATE from every call
 * with it.
 * Errors: ERR_ARGUMENT, ERR_NO_DEVICE, ERR_OPENCL.
 */
ATTNCL_API attncl_status attncl_context_create(const attncl_context_options *options,
                                               attncl_context **context_ret);

/**
 * Releases the device.  NULL is fine.  ERR_STATE, without effect, while the context still has a tensor, graph
 * or model; the message names one.  Waits for queued commands.  If one of them failed, the log gets a warning
 * (attncl_log_set()), and the device is released.
 * Errors: ERR_STATE.
 */
ATTNCL_API attncl_status attncl_context_destroy(attncl_context *context);

/** Describes the context's device.  Any thread.
 * Errors: ERR_ARGUMENT, ERR_STATE. */
ATTNCL_API attncl_status attncl_context_device(const attncl_context *context,
                                               attncl_device_info *info_ret);

/** Waits until the context's queue is empty.  Any thread.
 * Errors: ERR_ARGUMENT, ERR_STATE, ERR_OPENCL. */
ATTNCL_API attncl_status attncl_context_finish(attncl_context *context);

/**
 * Stores the result of `attncl selftest`, or of your own test, for this device: beside the program cache, under
 * a digest of the kernel sources, device, driver and kernel variant.  Later contexts log a warning
 * (attncl_log_set()) if a test failed.
 *
 * @param failed  the failed tests, at most 511 bytes; "": none
 *
 * ERR_STATE if ATTNCL_CACHE is "off" or "ro", if there is no directory, or with ATTNCL_CL_DIR.  Any
 * thread.
 * Errors: ERR_ARGUMENT, ERR_STATE, ERR_IO.
 */
ATTNCL_API attncl_status attncl_context_keep_selftest(attncl_context *context, const char *failed);

/**
 * Says what computes GEMMs on device `index` (as attncl_device_get() counts), and reads the stored test results of the
 * device and its driver: those of `attncl selftest`, and of the kernel comparisons that compiling graphs made.  One line
 * each, for people: "GEMMs: native kernels (CLBlast is slow on this device)", "shuffles: passed", or "softmax gpu:
 * failed: " and the reason.
 *
 * @param text      receives the lines that fit, each with a line end
 * @param capacity  bytes at text, at least 1
 *
 * Any thread.
 * Errors: ERR_ARGUMENT, ERR_NO_DEVICE.
 */
ATTNCL_API attncl_status attncl_device_findings(size_t index, char *text, size_t capacity);

/** Checks the names and values of ATTNCL_ environment variables, as attncl_context_create() does, for programs that
 * do other work before they open a device.  Any thread.
 * Errors: ERR_ARGUMENT for a value that is not accepted and for a misspelt name. */
ATTNCL_API attncl_status attncl_environment_check(void);

ATTNCL_END

#endif
