// SPDX-License-Identifier: MIT
/**
 * @file attncl/tune.h
 * Measuring tiles and work-group sizes on a device, and keeping those that beat the built-in ones.
 *
 * What is kept is a row of text in a file of the user's, $XDG_CONFIG_HOME/attncl/tune.txt or
 * ~/.config/attncl/tune.txt (ATTNCL_TUNE names another, or "off"), which every context of that
 * device and driver reads when it is created.
 *
 * Threads: any; objects that nothing changes may be shared.
 */
#ifndef ATTNCL_TUNE_H
#define ATTNCL_TUNE_H

#include "attncl/context.h"

ATTNCL_BEGIN

/** What was measured of one kernel and class of shapes.  Texts are borrowed for the call.  Filled
 * by the
 * library: fields are added at its end. */
typedef struct attncl_tune_result {
    size_t struct_size;   /**< of this library's struct */
    const char *kernel;   /**< "gemm_cpu" */
    const char *shapes;   /**< the class: "large" */
    const char *workload; /**< what was timed: "1024x1024x512 NN, 2048x512x512 NT" */
    double built_in_ms; /**< the built-in choice, fastest runs, added over the workload; 0: none */
    double best_ms;     /**< the best other one, measured interleaved with it */
    double gain;        /**< how much faster, 0.07: 7 %, by the lesser of minimum and median */
    const char *row;    /**< that other one, "TM=192 TN=128 TK=256"; NULL: there was none */
    int kept;           /**< 1: better by 5 % or more, and nowhere worse by 2 % */
    size_t n_tried, n_rows; /**< of n_rows candidates the time was enough for n_tried */
    const char *note;       /**< why nothing was measured; NULL: it was */
} attncl_tune_result;

/** How to tune.  Start from ATTNCL_TUNE_OPTIONS_INIT; zero means default. */
typedef struct attncl_tune_options {
    size_t struct_size;
    double seconds;     /**< for the whole device, compiling included, roughly; 0: 20 */
    const char *kernel; /**< this one alone; NULL: all that the device uses */
    int check;          /**< 1: measure only, write nothing */
    /** Called after each kernel and class; must not call the library.  NULL: not called. */
    void (*report)(const attncl_tune_result *result, void *user);
    /** Called now and then with the share that is done, 0 to 1.  NULL: not called. */
    void (*progress)(double share, void *user);
    void *user;
} attncl_tune_options;

#define ATTNCL_TUNE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(attncl_tune_options), 0.0, NULL, 0, NULL, NULL, NULL                                \
    }

/** What tuning came to.  Start from ATTNCL_TUNE_SUMMARY_INIT. */
typedef struct attncl_tune_summary {
    size_t struct_size;
    size_t n_measured;
    size_t n_kept;
    char file[1024]; /**< the file that was written; "" when none was */
} attncl_tune_summary;

#define ATTNCL_TUNE_SUMMARY_INIT                                                                   \
    {                                                                                              \
        sizeof(attncl_tune_summary), 0, 0, ""                                                      \
    }

/**
 * Measures one device in a context of its own, without the rows it may have.  A candidate counts
 * only when its result agrees with the built-in one's.  Unless `check` is set, the rows kept
 * replace the file's for what was measured; where none is kept the built-in choice is used again.
 *
 * @param device       which device, as for attncl_context_create(); NULL: the default one
 * @param options      NULL: all defaults
 * @param summary_ret  NULL, or receives the counts
 *
 * ERR_ARGUMENT for an unknown kernel, ERR_UNSUPPORTED on devices that end loops early, ERR_IO when
 * the file cannot be written, else what contexts and graphs return.  Any thread; other work on the
 * device meanwhile spoils the measurement.
 * Errors: ERR_ARGUMENT, ERR_UNSUPPORTED, ERR_IO, and those of contexts and graphs.
 */
ATTNCL_API attncl_status attncl_device_tune(const attncl_context_options *device,
                                            const attncl_tune_options *options,
                                            attncl_tune_summary *summary_ret);

/**
 * Writes all entries of the user's file, of every device, into another file, to be given away.
 *
 * @param path   the file; it is replaced, in one step
 * @param n_ret  NULL, or receives the number of entries
 *
 * Errors: ERR_ARGUMENT, ERR_STATE when there is no entry, ERR_IO, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_tuning_export(const char *path, size_t *n_ret);

/**
 * Takes the entries of such files into the user's.  Where two say something of the same device, driver,
 * kernel and class, the later file counts, and any of them before the user's own.
 *
 * @param paths    `n_paths` files; with one that is not right nothing is taken
 * @param n_ret    NULL, or receives the number of entries taken
 *
 * Errors: ERR_ARGUMENT, ERR_FORMAT for files of another version of the library and lines that are no
 * entry, ERR_IO, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_tuning_import(const char *const *paths, size_t n_paths,
                                              size_t *n_ret);

ATTNCL_END

#endif
