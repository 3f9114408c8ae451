// SPDX-License-Identifier: MIT
// Internals of the safetensors format (public interface: attncl/safetensors.h).
//
//   u64 little-endian N | N bytes: a JSON object | the tensors' bytes, without gaps, to the end of the file
//
// The JSON maps each tensor's name to {"dtype", "shape", "data_offsets": [begin, end]}, with offsets from
// the end of the JSON, and "__metadata__" to an object of strings.
#ifndef ATTNCL_IO_SAFETENSORS_H
#define ATTNCL_IO_SAFETENSORS_H

#include "attncl/safetensors.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/try.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors data is used as it is in the file: little-endian machines only"
#endif

#define ST_METADATA_KEY "__metadata__"

enum {
    ST_LENGTH_BYTES = 8, // of N
    ST_ALIGN = 8,        // of the first tensor in files that we write
    ST_MAX_HEADER_BYTES = 100000000,
    ST_MAX_TENSORS = 200000,
    ST_MAX_METADATA = 100000, // entries
    ST_MAX_NAME_BYTES = 4096,
    ST_FOREIGN_BYTES = 256, // enough to recognise another format
    ST_QUANTISED_KEY_BYTES = sizeof ATTNCL_QUANTISED_KEY + ST_MAX_NAME_BYTES,
    ST_QUANTISED_TEXT_BYTES = 48,
};

struct st_entry {
    const char *key, *value;
};

struct st_tensor {
    attncl_array array; // .data NULL: in the file only
    size_t begin;       // offset in the tensors' bytes
};

struct attncl_safetensors {
    char *strings;            // names, keys and values, zero-terminated
    unsigned char *data;      // all tensors; NULL: in the file only
    struct st_tensor *tensor; // sorted by name; names and data point into the two above
    size_t n_tensors;
    struct st_entry *metadata; // in the file's order
    size_t n_metadata;
    int fd; // -1: closed
    uint64_t file_bytes, data_at;
};

// Reads `bytes` of a tensor's data from byte `offset` on, from the file or from memory.
attncl_status attncl__st_read(const attncl_safetensors *file, const attncl_array *array,
                              uint64_t offset, size_t bytes, void *to);

// ERR_IO if the size of a file of attncl_safetensors_open_header() has changed since it was opened.
attncl_status attncl__st_check_size(const attncl_safetensors *file);

// Fails with status `blame` unless the name is 1 to ST_MAX_NAME_BYTES bytes of UTF-8 without control
// characters, and not ST_METADATA_KEY.
attncl_status attncl__st_check_name(const char *name, attncl_status blame);

// Computes the bytes of a tensor of this type and shape; fails with status `blame` for invalid ones.
// Messages do not name the tensor.
attncl_status attncl__st_compute_bytes(const attncl_array *array, attncl_status blame,
                                       size_t *bytes_ret);

// Reads N from the first `n` bytes (at most ST_FOREIGN_BYTES) of a file of `total` bytes.  ERR_FORMAT names
// other formats that it recognises.
attncl_status attncl__st_read_header_bytes(const unsigned char *first, size_t n, uint64_t total,
                                           size_t *bytes_ret);

// Fills `file`, except for the tensors' data, from the header's JSON.  The tensors must take `data_bytes`.  The
// caller closes `file` after a failure too.
attncl_status attncl__st_read_header(struct attncl_safetensors *file, const char *text,
                                     size_t bytes, size_t data_bytes);

// *stored_ret: the array as stored in a file: quantised weights as U8, others unchanged.  Messages do not name the
// tensor.
attncl_status attncl__st_describe_stored(const attncl_array *array, attncl_array *stored_ret);

// Writes the metadata key and value of quantised weights.
void attncl__st_describe_quantised(const attncl_array *array, char key_ret[ST_QUANTISED_KEY_BYTES],
                                   char text_ret[ST_QUANTISED_TEXT_BYTES]);

// As attncl_safetensors_write().  durably: the file is on disk when the call returns.
attncl_status attncl__st_write(const char *path, const attncl_array *arrays, size_t n,
                               const char *const *metadata, bool durably);

#endif
