// SPDX-License-Identifier: MIT
/**
 * @file attncl/safetensors.h
 * Reading and writing safetensors files, strictly: every rule of the format is checked, with
 * checked arithmetic, before a byte of data is handed out.
 *
 * Threads: any; objects that nothing changes may be shared.
 */
#ifndef ATTNCL_SAFETENSORS_H
#define ATTNCL_SAFETENSORS_H

#include "attncl/array.h"
#include "attncl/export.h"
#include "attncl/status.h"

ATTNCL_BEGIN

typedef struct attncl_safetensors attncl_safetensors;

/**
 * Opens a file for reading.  Its content is read into memory, so that a later change of the file
 * has no effect.
 *
 * @param file_ret  owned by the caller, released by attncl_safetensors_close()
 *
 * ERR_IO when it cannot be read or is no regular file, ERR_FORMAT with the rule it breaks.  Any
 * thread; an open file may be read by several threads.
 * Errors: ERR_IO, ERR_FORMAT, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_safetensors_open(const char *path, attncl_safetensors **file_ret);

/**
 * The same, but the tensors stay in the file, which stays open: their `data` is NULL, and attncl_safetensors_read() reads
 * them, one or many times.  For files that are larger than memory.
 * Errors: ERR_IO, ERR_FORMAT, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_safetensors_open_header(const char *path,
                                                        attncl_safetensors **file_ret);

/**
 * Reads a tensor's elements, of any open file.
 *
 * @param bytes  of the tensor, and of space at `to`
 *
 * Errors: ERR_ARGUMENT without such a tensor or with another number of bytes, ERR_IO when the file is shorter than it was.
 */
ATTNCL_API attncl_status attncl_safetensors_read(const attncl_safetensors *file, const char *name,
                                                 void *to, size_t bytes);

/** As attncl_safetensors_open(), from memory, which is copied; the file is owned by the caller as well.
 * Errors: ERR_FORMAT, ERR_NO_MEMORY. */
ATTNCL_API attncl_status attncl_safetensors_parse(const void *data, size_t bytes,
                                                  attncl_safetensors **file_ret);

/** NULL is fine.
 * Errors: none. */
ATTNCL_API void attncl_safetensors_close(attncl_safetensors *file);

/** Tensors in the file.  Errors: none. */
ATTNCL_API size_t attncl_safetensors_count(const attncl_safetensors *file);

/** Tensor `i` in order of name; name and data are borrowed from the file.  NULL beyond the last.
 * Errors: none. */
ATTNCL_API const attncl_array *attncl_safetensors_at(const attncl_safetensors *file, size_t i);

/** The tensor of that name, or NULL.  Borrowed.
 * Errors: none. */
ATTNCL_API const attncl_array *attncl_safetensors_find(const attncl_safetensors *file,
                                                       const char *name);

/** The metadata value of `key`, or NULL.  Borrowed.
 * Errors: none. */
ATTNCL_API const char *attncl_safetensors_metadata(const attncl_safetensors *file, const char *key);

/** Metadata entry `i`: its key, value in *value_ret; NULL beyond the last.  Borrowed.
 * Errors: none. */
ATTNCL_API const char *attncl_safetensors_metadata_at(const attncl_safetensors *file, size_t i,
                                                      const char **value_ret);

/** Metadata of a tensor of U8 that holds weights in 8 or 4 bits: this and its name; the value "q8 [7, 64]". */
#define ATTNCL_QUANTISED_KEY "attncl.quantised."

/**
 * Whether a tensor holds weights in 8 or 4 bits (docs/model-files.md), whose bytes attncl_dequantise() takes.
 *
 * @param dtype_ret  Q8 or Q4; ATTNCL_DTYPE_NONE where it has another type or the metadata do not say so
 * @param dim_ret    2 extents, n and k
 *
 * The message has what is wrong without the tensor's name.
 * Errors: ERR_FORMAT where metadata and tensor do not agree, ERR_ARGUMENT without such a tensor.
 */
ATTNCL_API attncl_status attncl_safetensors_quantised(const attncl_safetensors *file,
                                                      const char *name, attncl_dtype *dtype_ret,
                                                      int64_t *dim_ret);

/**
 * ERR_FORMAT, naming the first, when an element of a F32, F16, BF16 or F64 tensor is infinite or no
 * number.  The format allows such elements; opening a file does not look for them.
 * Errors: ERR_FORMAT.
 */
ATTNCL_API attncl_status attncl_safetensors_check_finite(const attncl_safetensors *file);

/**
 * Writes a file, replacing an old one of that name in one step: into a temporary file beside it,
 * then renamed.  On failure (ERR_IO, ERR_ARGUMENT for a double or unusable name) nothing is left
 * behind and the old file is as it was.
 *
 * @param arrays    `n` arrays, borrowed; those of Q8 and Q4, [n, k] with the bytes of attncl_quantise(), become
 *                  tensors of U8 with metadata (docs/model-files.md)
 * @param metadata  key, value, key, value ... NULL; or NULL
 * Errors: ERR_IO, ERR_ARGUMENT, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_safetensors_write(const char *path, const attncl_array *arrays,
                                                  size_t n, const char *const *metadata);

/**
 * Gives the elements of array `i` of attncl_safetensors_write_from(): as many bytes as the array has, which stay until the
 * next call.  Another status than OK ends the writing; its message is that of the last call of the library that failed.
 */
typedef attncl_status (*attncl_array_source)(void *user, size_t i, const void **data_ret);

/**
 * attncl_safetensors_write() of arrays that are not in memory at once: their `data` is not looked at, `source` is asked for
 * each, in the file's order.
 * Errors: those of attncl_safetensors_write(), and those of `source`.
 */
ATTNCL_API attncl_status attncl_safetensors_write_from(const char *path, const attncl_array *arrays,
                                                       size_t n, const char *const *metadata,
                                                       attncl_array_source source, void *user);

ATTNCL_END

#endif
