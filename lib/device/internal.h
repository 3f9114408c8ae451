// SPDX-License-Identifier: MIT
// Declarations for the files of device/ only.
#ifndef ATTNCL_DEVICE_INTERNAL_H
#define ATTNCL_DEVICE_INTERNAL_H

#include "base/alloc.h"
#include "device/clerr.h"
#include "device/context.h"

// -- platform.c: the list of OpenCL devices

struct device_entry {
    cl_platform_id platform;
    cl_device_id id;
    attncl_device_info info;
};

struct device_list {
    struct device_entry *entries;
    size_t n;
    char empty_platforms[128]; // "NVIDIA CUDA, rusticl": platforms without devices, as many as fit
};

// Lists every device of every platform, in the loader's order; the list may be empty.  Fails if a device
// cannot be described, because otherwise another one would be chosen silently.  Starts as {0}; released
// by attncl__devices_free().
attncl_status attncl__devices_list(struct device_list *ret);
void attncl__devices_free(struct device_list *list);

// Fills everything but the indices of platform and device.
attncl_status attncl__device_describe(cl_device_id id, attncl_device_info *ret);

// TRY(DEVICE_QUERY(id, CL_DEVICE_TYPE, &type)) fails with "clGetDeviceInfo of CL_DEVICE_TYPE: ...".
#define DEVICE_QUERY(id, what, ret)                                                                \
    CL_CODE(clGetDeviceInfo((id), (what), sizeof *(ret), (ret), NULL), "clGetDeviceInfo "          \
                                                                       "of " #what)

// Queries a text and trims it; "" when the driver does not know it.  The caller frees *ret.
attncl_status attncl__device_query_text(cl_device_id id, cl_device_info what, char **ret);
// Queries a text, cut to `capacity` bytes at a character's end.
attncl_status attncl__platform_query_text(cl_platform_id id, cl_platform_info what, char *out,
                                          size_t capacity);

// -- select.c

// Finds the device that `wanted` names: "gpu", "cpu", "1:0", part of a device's or platform's name, or
// NULL or "" for the best.  The message of ERR_NO_DEVICE lists the devices.
attncl_status attncl__device_select(const struct device_list *list, const char *wanted,
                                    size_t *index_ret);

// Returns the device with this index, as attncl_device_get() counts.
attncl_status attncl__device_get_entry(size_t index, struct device_entry *ret);

// Appends "; a(n) X GPU is there ..." and a remedy for each vendor whose GPU has files under `root` ("" except in
// tests) but is not in the list.
enum { DEVICE_PATH_BYTES = 512 };
struct strbuf;
void attncl__list_gpus_without_driver(const char *root, const struct device_list *list,
                                      struct strbuf *ret);

// -- caps.c

// Estimates the FMA peak.  A compute unit has the vendor's number of lanes, or 8 if that is unknown.
double attncl__estimate_peak_flop_per_second(const attncl_device_info *info);

// -- quirks.c

enum device_vendor attncl__quirks_find_vendor(const attncl_device_info *info);

// Sets the features of the device's architecture, then applies every matching quirk, in the table's order.
void attncl__quirks_apply(const attncl_device_info *info, struct device_caps *caps);

// -- queues, capabilities, programs, verdicts

// Creates another in-order queue.
attncl_status attncl__queue_create(attncl_context *ctx, cl_command_queue *ret);

// `variant`: ATTNCL_VARIANT's value or NULL.
attncl_status attncl__caps_fill(cl_device_id id, const attncl_device_info *info,
                                const char *variant, struct device_caps *ret);

// Loads the program of a kernel file and its macros from the program cache, else builds it.
// *source_ret: if the program should be stored in the cache, its source, which the caller frees; else
// unchanged.
attncl_status attncl__program_build(attncl_context *ctx, const char *file, const char *defines,
                                    cl_program *cl_ret, char **source_ret);
// Accepts a program that is NULL.
void attncl__program_release(cl_program *program);
// Never includes options that relax arithmetic.  With ATTNCL_GUARD, launches check their arguments' types.
static inline const char *attncl__build_options(const attncl_context *ctx)
{
    return attncl__context_env(ctx, ENV_GUARD) ? "-cl-std=CL1.2 -cl-kernel-arg-info"
                                               : "-cl-std=CL1.2";
}

// Loads the stored verdicts of this device; logs a warning if attncl selftest failed.
void attncl__verdicts_load(attncl_context *ctx);

attncl_status attncl__programs_create(struct program_table **ret);
// At the context's end: stores programs that were built from source in the program cache.
void attncl__programs_store(attncl_context *ctx);
// Releases the programs.  Accepts NULL.
void attncl__programs_free(struct program_table *table);

#endif
