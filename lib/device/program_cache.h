// SPDX-License-Identifier: MIT
// The program cache: binaries of built programs on disk (files: store/cache_file.h).  On every
// failure the program is built from source.
#ifndef ATTNCL_DEVICE_PROGRAM_CACHE_H
#define ATTNCL_DEVICE_PROGRAM_CACHE_H

#include "device/context.h"

// The directory: the options' (or NULL), else the environment's.  The caller's to free; NULL when
// there is none, or the environment wants no cache.
char *attncl__cache_directory(const attncl_context *ctx, const char *given);
// Opens the cache in the context's directory, with the mode that the environment says.  NULL when
// there is no cache, which is not an error.
struct disk_cache *attncl__cache_open(const attncl_context *ctx);
// Accepts NULL.
void attncl__cache_close(struct disk_cache *cache);

// The built program for this source and these options, or NULL.
cl_program attncl__cache_load(const attncl_context *ctx, const char *source, const char *options);

// True when the cache is writable.
bool attncl__cache_stores(const attncl_context *ctx);
// The seconds that a context which lived for so many may spend before it begins to store its last program.
double attncl__cache_budget(const attncl_context *ctx, double lifetime);
void attncl__cache_store(const attncl_context *ctx, const char *source, const char *options,
                         cl_program program);

#endif
