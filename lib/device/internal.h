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
    char empty_platforms[128]; // "NVIDIA CUDA, rusticl": their names, as many as fit
};

// Every device of every platform, in the loader's order.  Without any, an empty list and ATTNCL_OK.  One
// that cannot be described is an error: without it, another would be chosen.
// Starts as {0}; released by attncl__devices_free().
attncl_status attncl__devices_list(struct device_list *ret);
void attncl__devices_free(struct device_list *list);

// Fills everything but the two indices.
attncl_status attncl__device_describe(cl_device_id id, attncl_device_info *ret);

// TRY(DEVICE_ANSWER(id, CL_DEVICE_TYPE, &type)) fails with "clGetDeviceInfo of CL_DEVICE_TYPE: ...".
#define DEVICE_ANSWER(id, what, ret)                                                               \
    CL_CODE(clGetDeviceInfo((id), (what), sizeof *(ret), (ret), NULL), "clGetDeviceInfo "          \
                                                                       "of " #what)

// A text property without blanks at its ends; "" when the driver does not know it.  *ret is the
// caller's to attncl__free().
attncl_status attncl__device_text_whole(cl_device_id id, cl_device_info what, char **ret);
// Cut to `capacity` bytes at the end of a character.
attncl_status attncl__platform_text(cl_platform_id id, cl_platform_info what, char *out,
                                    size_t capacity);

// -- select.c: choosing a device by the caller's text

// The index in the list of the device that `wanted` names ("gpu", "cpu", "1:0", part of a device's
// or platform's name; NULL or "": the best).  The message of ERR_NO_DEVICE lists the devices.
attncl_status attncl__device_select(const struct device_list *list, const char *wanted,
                                    size_t *index_ret);

// The device of this index, as attncl_device_get() counts.
attncl_status attncl__device_entry(size_t index, struct device_entry *ret);

// Appends "; a(n) X GPU is there ..." and the cure, for each maker of whose GPUs the machine under the directory `root` ("")
// has one, by its files, and the list has none.
enum { DEVICE_PATH_BYTES = 512 };
struct strbuf;
void attncl__gpus_without_driver(const char *root, const struct device_list *list,
                                 struct strbuf *ret);

// -- caps.c: the FMA peak, estimated.  A compute unit is a multiprocessor or a unit of 8 lanes, as the vendor has it; the
// fewest lanes where that is not known.

double attncl__peak_flop_per_second(const attncl_device_info *info);

// -- quirks.c: facts about devices that their drivers do not report, one table

enum device_vendor attncl__quirks_vendor(const attncl_device_info *info);

// Sets what the device's architecture has, by caps->nv_compute_capability, then applies every matching row, in the table's
// order.
void attncl__quirks_apply(const attncl_device_info *info, struct device_caps *caps);

// -- queues, capabilities, programs, verdicts

// One more in-order queue of the context's OpenCL context.
attncl_status attncl__queue_create(attncl_context *ctx, cl_command_queue *ret);

// `variant`: ATTNCL_VARIANT's value or NULL.
attncl_status attncl__caps_fill(cl_device_id id, const attncl_device_info *info,
                                const char *variant, struct device_caps *ret);

// Builds the program of a kernel file and its macros, from the program cache where it has it.
// *source_ret: the source, the caller's to free, when the program is to be stored, else unchanged.
attncl_status attncl__program_build(attncl_context *ctx, const char *file, const char *defines,
                                    cl_program *cl_ret, char **source_ret);
// Accepts a program that is NULL.
void attncl__program_release(cl_program *cl);
// OpenCL C 1.2, without options that relax arithmetic.  With ATTNCL_GUARD launches check their arguments.
static inline const char *attncl__build_options(const attncl_context *ctx)
{
    return attncl__context_env(ctx, ENV_GUARD) ? "-cl-std=CL1.2 -cl-kernel-arg-info"
                                               : "-cl-std=CL1.2";
}

// What is kept of this device; logs a warning where attncl selftest failed.
void attncl__verdicts_read_kept(attncl_context *ctx);

attncl_status attncl__programs_create(struct program_table **ret);
// Stores programs that were built from source in the program cache; at the context's end.
void attncl__programs_store(attncl_context *ctx);
// Releases the programs.  Accepts NULL.
void attncl__programs_free(struct program_table *table);

#endif
