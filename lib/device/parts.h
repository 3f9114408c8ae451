// SPDX-License-Identifier: MIT
// What the files of device/ offer each other and nobody else.
#ifndef ATTNCL_DEVICE_PARTS_H
#define ATTNCL_DEVICE_PARTS_H

#include "device/context.h"

// `form`: ATTNCL_FORM's value or NULL.
void attncl__caps_fill(cl_device_id id, const attncl_device_info *info, const char *form,
                       struct device_caps *ret);

attncl_status attncl__programs_create(struct program_table **ret);
// Puts what was built from source into the disk cache; at the context's end.
void attncl__programs_store(attncl_context *ctx);
// Releases the programs.  NULL is fine.
void attncl__programs_free(struct program_table *table);

#endif
