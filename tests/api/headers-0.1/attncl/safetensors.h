// SPDX-License-Identifier: MIT
#ifndef ATTNCL_SAFETENSORS_H
#define ATTNCL_SAFETENSORS_H
#include "attncl/array.h"
#include "attncl/export.h"
#include "attncl/status.h"
ATTNCL_BEGIN
typedef struct attncl_safetensors attncl_safetensors;
ATTNCL_API attncl_status attncl_safetensors_open(const char *path, attncl_safetensors **file_ret);
ATTNCL_API attncl_status attncl_safetensors_parse(const void *data, size_t bytes,
                                                  attncl_safetensors **file_ret);
ATTNCL_API void attncl_safetensors_close(attncl_safetensors *file);
ATTNCL_API size_t attncl_safetensors_count(const attncl_safetensors *file);
ATTNCL_API const attncl_array *attncl_safetensors_at(const attncl_safetensors *file, size_t i);
ATTNCL_API const attncl_array *attncl_safetensors_find(const attncl_safetensors *file,
                                                       const char *name);
ATTNCL_API const char *attncl_safetensors_metadata(const attncl_safetensors *file, const char *key);
ATTNCL_API const char *attncl_safetensors_metadata_at(const attncl_safetensors *file, size_t i,
                                                      const char **value_ret);
ATTNCL_API attncl_status attncl_safetensors_check_finite(const attncl_safetensors *file);
ATTNCL_API attncl_status attncl_safetensors_write(const char *path, const attncl_array *arrays,
                                                  size_t n, const char *const *metadata);
ATTNCL_END
#endif
