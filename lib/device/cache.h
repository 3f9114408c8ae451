// SPDX-License-Identifier: MIT
// Programs that outlive the process.  Every failure means: build from source.
#ifndef ATTNCL_DEVICE_CACHE_H
#define ATTNCL_DEVICE_CACHE_H

#include "device/context.h"

// `directory` and mode as the options and the environment say; NULL when programs are not kept,
// which is no failure.
struct disk_cache *attncl__cache_open(const attncl_context *ctx, const char *directory);
// NULL is fine.
void attncl__cache_close(struct disk_cache *cache);

// The program of this source and these options, built, or NULL.
cl_program attncl__cache_load(const attncl_context *ctx, const char *source, const char *options);

// True when attncl__cache_store() would try.
bool attncl__cache_stores(const attncl_context *ctx);
void attncl__cache_store(const attncl_context *ctx, const char *source, const char *options,
                         cl_program program);

#endif
