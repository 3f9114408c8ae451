// SPDX-License-Identifier: MIT
// Declarations for the files of device/ only.
#ifndef ATTNCL_DEVICE_INTERNAL_H
#define ATTNCL_DEVICE_INTERNAL_H

#include "device/context.h"

// `variant`: ATTNCL_VARIANT's value or NULL.
attncl_status attncl__caps_fill(cl_device_id id, const attncl_device_info *info,
                                const char *variant, struct device_caps *ret);

// Builds the program of a kernel file and its macros, from the program cache where it has it.
// *source_ret: the source, the caller's to free, when the program is to be stored, else unchanged.
attncl_status attncl__program_build(attncl_context *ctx, const char *file, const char *defines,
                                    cl_program *cl_ret, char **source_ret);
// Accepts a program that is NULL.
void attncl__program_release(cl_program *cl);
// Stores a program in the program cache, with the source that it was built from.
void attncl__program_store(const attncl_context *ctx, const char *source, cl_program cl);

// What all keys of the program cache begin with: the library, the device, the driver and its
// environment.  The caller's to free; NULL when there is no memory.
char *attncl__program_device_key(const attncl_context *ctx);

// What is kept of this device; logs a warning where attncl selftest failed.
void attncl__verdicts_read_kept(attncl_context *ctx);
// What attncl_context_keep_selftest() does.
attncl_status attncl__selftest_keep(attncl_context *ctx, const char *failed);

attncl_status attncl__programs_create(struct program_table **ret);
// Stores programs that were built from source in the program cache; at the context's end.
void attncl__programs_store(attncl_context *ctx);
// Releases the programs.  Accepts NULL.
void attncl__programs_free(struct program_table *table);

#endif
