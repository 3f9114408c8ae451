// SPDX-License-Identifier: MIT
/**
 * @file attncl/describe.h
 * What an architecture of model files consists of: the keys of its configuration, its parameters,
 * inputs and outputs, from the code that loads and builds it; and what a file lacks.  Needs no
 * device.
 *
 * Threads: any; a description is never changed.
 */
#ifndef ATTNCL_DESCRIBE_H
#define ATTNCL_DESCRIBE_H

#include <stddef.h>
#include <stdint.h>

#include "attncl/dtype.h"
#include "attncl/safetensors.h"

ATTNCL_BEGIN

typedef struct attncl_description attncl_description;

/** What an entry of a description is. */
typedef enum attncl_entry_kind {
    ATTNCL_ENTRY_KEY,       /**< of the configuration, "optimizer.eps" inside an object */
    ATTNCL_ENTRY_PARAMETER, /**< a tensor of the model file that is trained */
    ATTNCL_ENTRY_BUFFER,    /**< one that follows from the configuration; a file may lack it */
    ATTNCL_ENTRY_INPUT,
    ATTNCL_ENTRY_OUTPUT,
    ATTNCL_ENTRY_EXTRA /**< a tensor of the file that the architecture ignores */
} attncl_entry_kind;

/** One entry.  Texts are borrowed from the description. */
typedef struct attncl_entry {
    size_t struct_size;
    attncl_entry_kind kind;
    int optional; /**< 1: a file or a call may lack it; of an output: only with an optional input */
    const char *name;      /**< "encoder.layers.0.norm_ff.weight" */
    const char *type;      /**< "F32", "I64 or I32", "BOOL or U8"; of a key "integer", "word" ... */
    const char *shape;     /**< "[T, B, 64]": letters are free axes, "..." any number of them */
    const char *problem;   /**< of a file: "is missing", "has shape [3], expected [4]"; else NULL */
    const char *standard;  /**< a key's default; NULL: it is required, or follows from other keys */
    const char *choices;   /**< the words that a key may be, "a, b, c"; else NULL */
    const char *condition; /**< when a key is read: "layer is aft_local, gmlp"; NULL: always */
    int rank;              /**< of parameters, buffers and extra tensors; else -1 */
    int64_t dim[ATTNCL_MAX_RANK];
    int is_map; /**< of a parameter: 1: only linear maps and embeddings read it, which take 8 and 4 bits */
} attncl_entry;

#define ATTNCL_ENTRY_INIT                                                                          \
    {                                                                                              \
        sizeof(attncl_entry), ATTNCL_ENTRY_KEY, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, 0                  \
    }

/** The name of architecture `i`, static; NULL beyond the last.
 * Errors: none. */
ATTNCL_API const char *attncl_arch_name(size_t i);

/**
 * Describes an architecture with a configuration.
 *
 * @param arch    its name, "lm"
 * @param config  a JSON object as in metadata attncl.config; NULL: a small example
 * @param symbols  1: extents are named after the configuration's integers, "[T, B, d_model]",
 * "num_heads*D"; equal integers are taken for one another
 * @param description_ret  owned by the caller, released by attncl_description_destroy()
 * Errors: ERR_FORMAT for an unknown architecture and a configuration that it does not accept,
 * ERR_UNSUPPORTED, ERR_SHAPE, ERR_ARGUMENT, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_description_create(const char *arch, const char *config,
                                                   int symbols,
                                                   attncl_description **description_ret);

/**
 * Describes a model file by its own metadata, with the problem of each entry and the tensors that
 * it has besides.  A file with problems is described too: attncl_description_check().
 *
 * @param file  borrowed during the call
 * @param description_ret  owned by the caller, released by attncl_description_destroy()
 * Errors: as attncl_description_create(), ERR_FORMAT when metadata is missing.
 */
ATTNCL_API attncl_status attncl_description_create_for(const attncl_safetensors *file,
                                                       attncl_description **description_ret);

/** NULL is fine.
 * Errors: none. */
ATTNCL_API void attncl_description_destroy(attncl_description *description);

/** The architecture's name.  Borrowed.
 * Errors: none. */
ATTNCL_API const char *attncl_description_arch(const attncl_description *description);

/** The configuration that it was described with: a JSON object.  Borrowed.
 * Errors: none. */
ATTNCL_API const char *attncl_description_config(const attncl_description *description);

/** Number of entries.
 * Errors: none. */
ATTNCL_API size_t attncl_description_count(const attncl_description *description);

/** Entry `i`, borrowed; NULL beyond the last.  In the order of the enumeration of kinds, parameters
 * and buffers mixed as they are loaded.
 * Errors: none. */
ATTNCL_API const attncl_entry *attncl_description_at(const attncl_description *description,
                                                     size_t i);

/** Whether the file can be opened as a model: its problems in one message, the first ten named.
 * Errors: ERR_FORMAT, ERR_NO_MEMORY. */
ATTNCL_API attncl_status attncl_description_check(const attncl_description *description);

ATTNCL_END

#endif
