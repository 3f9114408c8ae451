// SPDX-License-Identifier: MIT
// Filling the results of a run.
#ifndef ATTNCL_MODEL_RESULTS_H
#define ATTNCL_MODEL_RESULTS_H

#include "attncl/model.h"

// Results with space for `capacity` arrays.
attncl_status attncl__results_create(size_t capacity, attncl_results **ret);

// Appends an array; on success `data` (from attncl__alloc) belongs to the results.
attncl_status attncl__results_add(attncl_results *results, const char *name, attncl_dtype dtype,
                                  int rank, const int64_t *dim, void *data);

#endif
