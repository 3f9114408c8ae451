// SPDX-License-Identifier: MIT
#ifndef ATTNCL_CONTEXT_H
#define ATTNCL_CONTEXT_H
#include "attncl/export.h"
#include "attncl/status.h"
#include <stddef.h>
#include <stdint.h>
ATTNCL_BEGIN
typedef struct attncl_context attncl_context;
typedef enum attncl_device_type {
    ATTNCL_DEVICE_CPU = 1,
    ATTNCL_DEVICE_GPU = 2,
    ATTNCL_DEVICE_OTHER = 3,
} attncl_device_type;
typedef struct attncl_device_info {
    size_t struct_size;
    int platform;
    int device;
    attncl_device_type type;
    char platform_name[128];
    char name[128];
    char vendor[128];
    char driver_version[128];
    char opencl_version[128];
    char opencl_c_version[128];
    uint32_t compute_units;
    uint32_t clock_mhz;
    uint64_t global_memory_bytes;
    uint64_t max_buffer_bytes;
    uint64_t local_memory_bytes;
    uint64_t max_work_group;
    uint32_t vector_width;
    int available;
} attncl_device_info;
#define ATTNCL_DEVICE_INFO_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_device_info), 0, 0, ATTNCL_DEVICE_OTHER, "", "", "", "", "", "", 0, 0, 0, 0, \
            0, 0, 0, 0                                                                             \
    }
ATTNCL_API attncl_status attncl_device_count(size_t *count_ret);
ATTNCL_API attncl_status attncl_device_get(size_t index, attncl_device_info *info_ret);
typedef struct attncl_context_options {
    size_t struct_size;
    const char *device;
    const char *cache_dir;
    int ignore_environment;
    int profile;
} attncl_context_options;
#define ATTNCL_CONTEXT_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_context_options), NULL, NULL, 0, 0                                           \
    }
ATTNCL_API attncl_status attncl_context_create(const attncl_context_options *options,
                                               attncl_context **context_ret);
ATTNCL_API attncl_status attncl_context_destroy(attncl_context *context);
ATTNCL_API attncl_status attncl_context_device(const attncl_context *context,
                                               attncl_device_info *info_ret);
ATTNCL_API attncl_status attncl_context_finish(attncl_context *context);
ATTNCL_END
#endif
