// SPDX-License-Identifier: MIT
// Declarations for the files of device/ only.
#ifndef ATTNCL_DEVICE_INTERNAL_H
#define ATTNCL_DEVICE_INTERNAL_H

#include "device/context.h"

// `variant`: ATTNCL_VARIANT's value or NULL.
void attncl__caps_fill(cl_device_id id, const attncl_device_info *info, const char *variant,
                       struct device_caps *ret);

attncl_status attncl__programs_create(struct program_table **ret);
// Stores programs that were built from source in the program cache; at the context's end.
void attncl__programs_store(attncl_context *ctx);
// Releases the programs.  Accepts NULL.
void attncl__programs_free(struct program_table *table);

#endif
