// SPDX-License-Identifier: MIT
#ifndef ATTNCL_GRAPH_H
#define ATTNCL_GRAPH_H
#include "attncl/context.h"
#include "attncl/dtype.h"
#include "attncl/tensor.h"
#include <stddef.h>
#include <stdint.h>
ATTNCL_BEGIN
typedef struct attncl_graph attncl_graph;
typedef struct attncl_value {
    int32_t id;
    uint32_t graph;
} attncl_value;
#define ATTNCL_VALUE_INIT                                                                          \
    {                                                                                              \
        0, 0                                                                                       \
    }
#define ATTNCL_NONE_VALUE (attncl_value_none())
static inline attncl_value attncl_value_none(void)
{
    attncl_value none = ATTNCL_VALUE_INIT;
    return none;
}
typedef struct attncl_shape {
    attncl_dtype dtype;
    int rank;
    int64_t dim[ATTNCL_MAX_RANK];
} attncl_shape;
ATTNCL_API attncl_status attncl_graph_create(attncl_context *context, attncl_graph **graph_ret);
ATTNCL_API void attncl_graph_destroy(attncl_graph *graph);
ATTNCL_API attncl_value attncl_graph_input(attncl_graph *g, const char *name, attncl_dtype dtype,
                                           int rank, const int64_t *dim);
ATTNCL_API attncl_value attncl_graph_index_input(attncl_graph *g, const char *name, int rank,
                                                 const int64_t *dim, int64_t low, int64_t high);
ATTNCL_API attncl_value attncl_graph_weight(attncl_graph *g, attncl_tensor *tensor);
ATTNCL_API attncl_value attncl_graph_constant(attncl_graph *g, attncl_dtype dtype, int rank,
                                              const int64_t *dim, const void *data);
ATTNCL_API attncl_value attncl_graph_state(attncl_graph *g, const char *name, attncl_dtype dtype,
                                           int rank, const int64_t *dim);
ATTNCL_API void attncl_graph_output(attncl_graph *g, const char *name, attncl_value value);
ATTNCL_API void attncl_graph_push_scope(attncl_graph *g, const char *name);
ATTNCL_API void attncl_graph_pop_scope(attncl_graph *g);
ATTNCL_API attncl_shape attncl_graph_shape(const attncl_graph *g, attncl_value value);
ATTNCL_API attncl_status attncl_graph_status(const attncl_graph *g);
typedef struct attncl_memory_report {
    size_t struct_size;
    size_t weights_bytes;
    size_t state_bytes;
    size_t io_bytes;
    size_t activations_bytes;
    size_t scratch_bytes;
    size_t arena_bytes;
    size_t unshared_bytes;
} attncl_memory_report;
#define ATTNCL_MEMORY_REPORT_INIT                                                                  \
    {                                                                                              \
        sizeof(attncl_memory_report), 0, 0, 0, 0, 0, 0, 0                                          \
    }
typedef struct attncl_compile_options {
    size_t struct_size;
    size_t memory_limit;
} attncl_compile_options;
#define ATTNCL_COMPILE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_compile_options), 0                                                          \
    }
ATTNCL_API attncl_status attncl_graph_memory(const attncl_graph *g,
                                             attncl_memory_report *report_ret);
ATTNCL_API attncl_status attncl_graph_compile(attncl_graph *g,
                                              const attncl_compile_options *options);
ATTNCL_API attncl_status attncl_graph_write(attncl_graph *g, const char *name, const void *data,
                                            size_t bytes);
ATTNCL_API attncl_status attncl_graph_write_as(attncl_graph *g, const char *name,
                                               attncl_dtype data_dtype, const void *data,
                                               size_t count);
ATTNCL_API attncl_status attncl_graph_run(attncl_graph *g);
ATTNCL_API attncl_status attncl_graph_read(attncl_graph *g, const char *name, void *data,
                                           size_t bytes);
ATTNCL_API attncl_status attncl_graph_reset(attncl_graph *g);
ATTNCL_API size_t attncl_graph_input_count(const attncl_graph *g);
ATTNCL_API size_t attncl_graph_output_count(const attncl_graph *g);
ATTNCL_API const char *attncl_graph_input_name(const attncl_graph *g, size_t i,
                                               attncl_shape *shape_ret);
ATTNCL_API const char *attncl_graph_output_name(const attncl_graph *g, size_t i,
                                                attncl_shape *shape_ret);
ATTNCL_END
#endif
