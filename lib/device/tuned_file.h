// SPDX-License-Identifier: MIT
// The file of tuned rows, for contexts and the tuner.
#ifndef ATTNCL_DEVICE_TUNED_FILE_H
#define ATTNCL_DEVICE_TUNED_FILE_H

#include "device/context.h"
#include "device/tuned.h"

// Fills ctx->caps.tuned, where a file has rows for the device.  Cannot fail: what is wrong is
// logged.
void attncl__tuned_open(attncl_context *ctx);
void attncl__tuned_close(attncl_context *ctx);

// ERR_IO when there is no place for the file: known before an hour of measuring.
attncl_status attncl__tuned_check_place(const attncl_context *ctx);

// Puts the table's rows for everything `measured` into the file, creates file and directory when
// they are missing.  *path_ret, the file, is the caller's (attncl__free).  ERR_IO when there is no
// place for it.
attncl_status attncl__tuned_store(const attncl_context *ctx, const struct tune_table *table,
                                  const bool measured[N_TUNABLES][TUNE_MAX_CLASSES],
                                  char **path_ret);

#endif
