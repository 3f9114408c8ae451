// SPDX-License-Identifier: MIT
#ifndef ATTNCL_TUNE_H
#define ATTNCL_TUNE_H
#include "attncl/context.h"
ATTNCL_BEGIN
typedef struct attncl_tune_result {
    size_t struct_size;
    const char *kernel;
    const char *shapes;
    const char *workload;
    double built_in_ms;
    double best_ms;
    double gain;
    const char *row;
    int kept;
    size_t n_tried, n_rows;
    const char *note;
} attncl_tune_result;
typedef struct attncl_tune_options {
    size_t struct_size;
    double seconds;
    const char *kernel;
    int check;
    void (*report)(const attncl_tune_result *result, void *user);
    void (*progress)(double share, void *user);
    void *user;
} attncl_tune_options;
#define ATTNCL_TUNE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(attncl_tune_options), 0.0, NULL, 0, NULL, NULL, NULL                                \
    }
typedef struct attncl_tune_summary {
    size_t struct_size;
    size_t n_measured;
    size_t n_kept;
    char file[1024];
} attncl_tune_summary;
#define ATTNCL_TUNE_SUMMARY_INIT                                                                   \
    {                                                                                              \
        sizeof(attncl_tune_summary), 0, 0, ""                                                      \
    }
ATTNCL_API attncl_status attncl_device_tune(const attncl_context_options *device,
                                            const attncl_tune_options *options,
                                            attncl_tune_summary *summary_ret);
ATTNCL_END
#endif
