// SPDX-License-Identifier: MIT
// The declarations of 0.1, header by header.
#ifndef ATTNCL_ATTNCL_H
#define ATTNCL_ATTNCL_H
#include <stddef.h>
#include <stdint.h>
// export.h
#if defined(_WIN32) && !defined(ATTNCL_STATIC)
#ifdef ATTNCL_BUILDING
#define ATTNCL_API __declspec(dllexport)
#else
#define ATTNCL_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define ATTNCL_API __attribute__((visibility("default")))
#else
#define ATTNCL_API
#endif
#ifdef __cplusplus
#define ATTNCL_BEGIN extern "C" {
#define ATTNCL_END   }
#else
#define ATTNCL_BEGIN
#define ATTNCL_END
#endif
ATTNCL_BEGIN
// status.h
#define ATTNCL_STATUS_LIST(X)                                                                      \
    X(OK, 0, "success")                                                                            \
    X(ERR_ARGUMENT, 1, "an argument is not acceptable")                                            \
    X(ERR_SHAPE, 2, "shapes disagree")                                                             \
    X(ERR_DTYPE, 3, "element types disagree")                                                      \
    X(ERR_STATE, 4, "the object is not in a state that allows this call")                          \
    X(ERR_UNSUPPORTED, 5, "not supported by this library or device")                               \
    X(ERR_NO_DEVICE, 6, "no OpenCL device matches")                                                \
    X(ERR_NO_MEMORY, 7, "out of host memory")                                                      \
    X(ERR_DEVICE_MEMORY, 8, "out of device memory")                                                \
    X(ERR_COMPILE, 9, "a kernel did not compile")                                                  \
    X(ERR_OPENCL, 10, "an OpenCL call failed")                                                     \
    X(ERR_BLAS, 11, "a CLBlast call failed")                                                       \
    X(ERR_IO, 12, "a file could not be read or written")                                           \
    X(ERR_FORMAT, 13, "a file's content is malformed")
typedef enum attncl_status {
#define ATTNCL_STATUS_ENUM(name, value, text) ATTNCL_##name = value,
    ATTNCL_STATUS_LIST(ATTNCL_STATUS_ENUM)
#undef ATTNCL_STATUS_ENUM
} attncl_status;
ATTNCL_API const char *attncl_status_name(attncl_status status);
ATTNCL_API const char *attncl_status_text(attncl_status status);
ATTNCL_API const char *attncl_last_error(void);
ATTNCL_API const char *attncl_last_error_where(void);
// context.h
typedef struct attncl_context attncl_context;
typedef enum attncl_device_type {
    ATTNCL_DEVICE_CPU = 1,
    ATTNCL_DEVICE_GPU = 2,
    ATTNCL_DEVICE_OTHER = 3,
} attncl_device_type;
typedef struct attncl_device_info {
    size_t struct_size;
    int platform;
    int device;
    attncl_device_type type;
    char platform_name[128];
    char name[128];
    char vendor[128];
    char driver_version[128];
    char opencl_version[128];
    char opencl_c_version[128];
    uint32_t compute_units;
    uint32_t clock_mhz;
    uint64_t global_memory_bytes;
    uint64_t max_buffer_bytes;
    uint64_t local_memory_bytes;
    uint64_t max_work_group;
    uint32_t vector_width;
    int available;
} attncl_device_info;
#define ATTNCL_DEVICE_INFO_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_device_info), 0, 0, ATTNCL_DEVICE_OTHER, "", "", "", "", "", "", 0, 0, 0, 0, \
            0, 0, 0, 0                                                                             \
    }
ATTNCL_API attncl_status attncl_device_count(size_t *count_ret);
ATTNCL_API attncl_status attncl_device_get(size_t index, attncl_device_info *info_ret);
typedef struct attncl_context_options {
    size_t struct_size;
    const char *device;
    const char *cache_dir;
    int ignore_environment;
    int profile;
} attncl_context_options;
#define ATTNCL_CONTEXT_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_context_options), NULL, NULL, 0, 0                                           \
    }
ATTNCL_API attncl_status attncl_context_create(const attncl_context_options *options,
                                               attncl_context **context_ret);
ATTNCL_API attncl_status attncl_context_destroy(attncl_context *context);
ATTNCL_API attncl_status attncl_context_device(const attncl_context *context,
                                               attncl_device_info *info_ret);
ATTNCL_API attncl_status attncl_context_finish(attncl_context *context);
// dtype.h
#define ATTNCL_DTYPE_LIST(X)                                                                       \
    X(F32, 1, 32)                                                                                  \
    X(F16, 2, 16)                                                                                  \
    X(BF16, 3, 16)                                                                                 \
    X(F64, 4, 64)                                                                                  \
    X(I32, 5, 32)                                                                                  \
    X(I64, 6, 64)                                                                                  \
    X(BOOL, 7, 8)                                                                                  \
    X(U8, 8, 8)                                                                                    \
    X(I8, 9, 8)                                                                                    \
    X(I16, 10, 16)                                                                                 \
    X(U16, 11, 16)                                                                                 \
    X(U32, 12, 32)                                                                                 \
    X(U64, 13, 64)                                                                                 \
    X(C64, 14, 64)                                                                                 \
    X(F8_E5M2, 15, 8)                                                                              \
    X(F8_E4M3, 16, 8)                                                                              \
    X(F8_E8M0, 17, 8)                                                                              \
    X(F8_E4M3FNUZ, 18, 8)                                                                          \
    X(F8_E5M2FNUZ, 19, 8)                                                                          \
    X(F6_E2M3, 20, 6)                                                                              \
    X(F6_E3M2, 21, 6)                                                                              \
    X(F4, 22, 4)
typedef enum attncl_dtype {
    ATTNCL_DTYPE_NONE = 0,
#define ATTNCL_DTYPE_ENUM(name, value, bits) ATTNCL_##name = value,
    ATTNCL_DTYPE_LIST(ATTNCL_DTYPE_ENUM)
#undef ATTNCL_DTYPE_ENUM
} attncl_dtype;
#define ATTNCL_MAX_RANK 8
ATTNCL_API const char *attncl_dtype_name(attncl_dtype dtype);
ATTNCL_API size_t attncl_dtype_bytes(attncl_dtype dtype);
// tensor.h
typedef struct attncl_tensor attncl_tensor;
ATTNCL_API attncl_status attncl_tensor_create(attncl_context *context, attncl_dtype dtype, int rank,
                                              const int64_t *dim, attncl_dtype data_dtype,
                                              const void *data, attncl_tensor **tensor_ret);
ATTNCL_API void attncl_tensor_destroy(attncl_tensor *tensor);
ATTNCL_API attncl_status attncl_tensor_read(attncl_tensor *tensor, void *data, size_t bytes);
// graph.h
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
// kinds.h
typedef enum attncl_activation {
    ATTNCL_IDENTITY = 0,
    ATTNCL_GELU = 1,
    ATTNCL_RELU = 2,
    ATTNCL_SIGMOID = 3,
    ATTNCL_TANH = 4,
    ATTNCL_SILU = 5,
} attncl_activation;
typedef enum attncl_layout {
    ATTNCL_LAYOUT_TIME_FIRST = 0,
    ATTNCL_LAYOUT_BATCH_FIRST = 1,
} attncl_layout;
typedef enum attncl_reduction {
    ATTNCL_REDUCE_MEAN = 0,
    ATTNCL_REDUCE_SUM = 1,
    ATTNCL_REDUCE_NONE = 2,
} attncl_reduction;
// attention.h
typedef struct attncl_attention_desc {
    size_t struct_size;
    float scale;
    int causal;
    int64_t window;
    attncl_layout layout;
} attncl_attention_desc;
#define ATTNCL_ATTENTION_DESC_INIT                                                                 \
    {                                                                                              \
        sizeof(attncl_attention_desc), 0.0f, 0, 0, ATTNCL_LAYOUT_TIME_FIRST                        \
    }
typedef struct attncl_attention_inputs {
    size_t struct_size;
    attncl_value query, key, value;
    attncl_value mask;
    attncl_value valid_lens;
    attncl_value residual;
} attncl_attention_inputs;
#define ATTNCL_ATTENTION_INPUTS_INIT                                                               \
    {                                                                                              \
        sizeof(attncl_attention_inputs), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,  \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                                \
    }
ATTNCL_API attncl_value attncl_attention(attncl_graph *g, const attncl_attention_desc *desc,
                                         const attncl_attention_inputs *inputs,
                                         attncl_value *weights_ret);
ATTNCL_API attncl_value attncl_additive_attention(attncl_graph *g, attncl_value q, attncl_value k,
                                                  attncl_value v, attncl_value w,
                                                  attncl_value valid_lens,
                                                  attncl_value *weights_ret);
ATTNCL_API attncl_value attncl_split_heads(attncl_graph *g, attncl_value x, int64_t n_heads,
                                           attncl_layout layout);
ATTNCL_API attncl_value attncl_merge_heads(attncl_graph *g, attncl_value x, attncl_layout layout);
typedef struct attncl_mha_params {
    size_t struct_size;
    attncl_value query_weight, query_bias;
    attncl_value key_weight, key_bias;
    attncl_value value_weight, value_bias;
    attncl_value output_weight, output_bias;
} attncl_mha_params;
#define ATTNCL_MHA_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_mha_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,            \
            ATTNCL_VALUE_INIT                                                                      \
    }
ATTNCL_API attncl_value attncl_multi_head_attention(
    attncl_graph *g, const attncl_attention_desc *desc, const attncl_mha_params *params,
    int64_t n_heads, const attncl_attention_inputs *inputs, attncl_value *weights_ret);
ATTNCL_API attncl_value attncl_multi_head_attention_step(attncl_graph *g,
                                                         const attncl_mha_params *params,
                                                         int64_t n_heads, int64_t limit,
                                                         attncl_value x, attncl_value position,
                                                         attncl_value residual);
typedef enum attncl_pooling_kernel {
    ATTNCL_POOL_GAUSSIAN = 0,
    ATTNCL_POOL_BOXCAR = 1,
    ATTNCL_POOL_CONSTANT = 2,
    ATTNCL_POOL_EPANECHIKOV = 3,
} attncl_pooling_kernel;
ATTNCL_API attncl_value attncl_attention_pooling(attncl_graph *g, attncl_pooling_kernel kind,
                                                 float sigma, attncl_value x_train,
                                                 attncl_value y_train, attncl_value x_val,
                                                 attncl_value *weights_ret);
// aft.h
typedef enum attncl_aft_kind {
    ATTNCL_AFT_LOCAL = 0,
    ATTNCL_AFT_FULL = 1,
    ATTNCL_AFT_SIMPLE = 2,
    ATTNCL_AFT_CONV = 3,
} attncl_aft_kind;
typedef struct attncl_aft_desc {
    size_t struct_size;
    attncl_aft_kind kind;
    int64_t window;
    int causal;
} attncl_aft_desc;
#define ATTNCL_AFT_DESC_INIT                                                                       \
    {                                                                                              \
        sizeof(attncl_aft_desc), ATTNCL_AFT_LOCAL, 0, 0                                            \
    }
ATTNCL_API attncl_value attncl_aft_mix(attncl_graph *g, const attncl_aft_desc *desc, attncl_value q,
                                       attncl_value k, attncl_value v, attncl_value pos_bias,
                                       attncl_value mask);
typedef struct attncl_aft_params {
    size_t struct_size;
    attncl_value query_weight, query_bias;
    attncl_value key_weight, key_bias;
    attncl_value value_weight, value_bias;
    attncl_value pos_bias;
    attncl_value output_weight, output_bias;
} attncl_aft_params;
#define ATTNCL_AFT_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_aft_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,            \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                                                   \
    }
ATTNCL_API attncl_value attncl_aft(attncl_graph *g, const attncl_aft_desc *desc,
                                   const attncl_aft_params *params,
                                   const attncl_attention_inputs *inputs);
ATTNCL_API attncl_value attncl_aft_step(attncl_graph *g, const attncl_aft_desc *desc,
                                        const attncl_aft_params *params, attncl_value x,
                                        attncl_value position, attncl_value residual);
// array.h
typedef struct attncl_array {
    const char *name;
    attncl_dtype dtype;
    int rank;
    int64_t dim[ATTNCL_MAX_RANK];
    const void *data;
    size_t bytes;
} attncl_array;
// ops.h
ATTNCL_API attncl_value attncl_softmax(attncl_graph *g, attncl_value x, int axis);
ATTNCL_API attncl_value attncl_masked_softmax(attncl_graph *g, attncl_value x,
                                              attncl_value valid_lens);
ATTNCL_API attncl_value attncl_layer_norm(attncl_graph *g, attncl_value x, attncl_value weight,
                                          attncl_value bias, float eps);
ATTNCL_API attncl_value attncl_activate(attncl_graph *g, attncl_value x, attncl_activation kind);
ATTNCL_API attncl_value attncl_bias_activate(attncl_graph *g, attncl_value x, attncl_value bias,
                                             attncl_activation kind);
ATTNCL_API attncl_value attncl_add(attncl_graph *g, attncl_value a, attncl_value b);
ATTNCL_API attncl_value attncl_mul(attncl_graph *g, attncl_value a, attncl_value b);
ATTNCL_API attncl_value attncl_linear(attncl_graph *g, attncl_value x, attncl_value weight,
                                      attncl_value bias);
typedef struct attncl_linear_desc {
    size_t struct_size;
    attncl_activation activation;
    attncl_value gate;
    attncl_value residual;
} attncl_linear_desc;
#define ATTNCL_LINEAR_DESC_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_linear_desc), ATTNCL_IDENTITY, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT          \
    }
ATTNCL_API attncl_value attncl_linear_fused(attncl_graph *g, const attncl_linear_desc *desc,
                                            attncl_value x, attncl_value weight, attncl_value bias);
ATTNCL_API attncl_value attncl_bmm(attncl_graph *g, attncl_value a, attncl_value b);
ATTNCL_API attncl_value attncl_embedding(attncl_graph *g, attncl_value tokens, attncl_value weight,
                                         float scale);
ATTNCL_API attncl_value attncl_sinusoid(attncl_graph *g, int64_t n_positions, int64_t n_channels);
ATTNCL_API attncl_value attncl_add_positions(attncl_graph *g, attncl_value x, attncl_value table,
                                             attncl_layout layout);
ATTNCL_API attncl_value attncl_add_position_at(attncl_graph *g, attncl_value x, attncl_value table,
                                               attncl_value position);
ATTNCL_API attncl_value attncl_relative_shift(attncl_graph *g, attncl_value x, double delta);
ATTNCL_API attncl_value attncl_cross_entropy(attncl_graph *g, attncl_value logits,
                                             attncl_value targets, attncl_reduction reduction,
                                             int64_t pad);
ATTNCL_API attncl_value attncl_argmax(attncl_graph *g, attncl_value x);
ATTNCL_API attncl_value attncl_concat(attncl_graph *g, size_t n, const attncl_value *values,
                                      int axis);
ATTNCL_API attncl_value attncl_reshape(attncl_graph *g, attncl_value x, int rank,
                                       const int64_t *dim);
ATTNCL_API attncl_value attncl_slice(attncl_graph *g, attncl_value x, int axis, int64_t begin,
                                     int64_t end);
ATTNCL_API attncl_value attncl_permute(attncl_graph *g, attncl_value x, const int *order);
// transformer.h
typedef struct attncl_ffn_params {
    size_t struct_size;
    attncl_value layer1_weight, layer1_bias;
    attncl_value gate_weight, gate_bias;
    attncl_value layer2_weight, layer2_bias;
} attncl_ffn_params;
#define ATTNCL_FFN_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_ffn_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                                \
    }
ATTNCL_API attncl_value attncl_feed_forward(attncl_graph *g, const attncl_ffn_params *params,
                                            attncl_activation activation, attncl_value x,
                                            attncl_value residual);
// feedback.h
typedef struct attncl_feedback_params {
    size_t struct_size;
    attncl_value query_weight;
    attncl_value key_weight;
    attncl_value value_weight, value_bias;
    attncl_value output_weight, output_bias;
    attncl_value key_pos_embeddings;
    attncl_value query_pos_bias;
    attncl_value key_pos_bias;
} attncl_feedback_params;
#define ATTNCL_FEEDBACK_PARAMS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_feedback_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,   \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,            \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                                                   \
    }
ATTNCL_API attncl_value attncl_feedback_attention(attncl_graph *g,
                                                  const attncl_feedback_params *params,
                                                  int64_t n_heads,
                                                  const attncl_attention_inputs *inputs,
                                                  attncl_value *weights_ret);
typedef struct attncl_feedback_layer_params {
    size_t struct_size;
    attncl_value norm_attn_weight, norm_attn_bias;
    const attncl_feedback_params *attn;
    attncl_value norm_ffn_weight, norm_ffn_bias;
    const attncl_ffn_params *ffn;
    attncl_activation activation;
} attncl_feedback_layer_params;
#define ATTNCL_FEEDBACK_LAYER_PARAMS_INIT                                                          \
    {                                                                                              \
        sizeof(attncl_feedback_layer_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, NULL,          \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, NULL, ATTNCL_IDENTITY                            \
    }
ATTNCL_API attncl_value attncl_feedback_layer(attncl_graph *g,
                                              const attncl_feedback_layer_params *params,
                                              int64_t n_heads, attncl_value x, attncl_value memory);
typedef struct attncl_feedback_transformer_params {
    size_t struct_size;
    const attncl_feedback_layer_params *layers;
    size_t n_layers;
    int64_t n_heads;
    attncl_value weights;
    attncl_value key_value_weight;
    attncl_value key_value_bias;
    attncl_value norm_weight, norm_bias;
} attncl_feedback_transformer_params;
#define ATTNCL_FEEDBACK_TRANSFORMER_PARAMS_INIT                                                    \
    {                                                                                              \
        sizeof(attncl_feedback_transformer_params), NULL, 0, 0, ATTNCL_VALUE_INIT,                 \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT             \
    }
ATTNCL_API attncl_value
attncl_feedback_transformer(attncl_graph *g, const attncl_feedback_transformer_params *params,
                            attncl_value x, attncl_value *memory_ret);
ATTNCL_API attncl_value attncl_feedback_transformer_step(
    attncl_graph *g, const attncl_feedback_transformer_params *params, int64_t limit,
    attncl_value x, attncl_value position, attncl_value *memory_ret);
// gmlp.h
typedef struct attncl_sgu_params {
    size_t struct_size;
    attncl_value norm_weight, norm_bias;
    attncl_value weight;
    attncl_value bias;
} attncl_sgu_params;
#define ATTNCL_SGU_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_sgu_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT                                                                      \
    }
ATTNCL_API attncl_value attncl_spatial_gating_unit(attncl_graph *g, const attncl_sgu_params *params,
                                                   attncl_value z, int causal, attncl_value mask);
typedef struct attncl_gmlp_params {
    size_t struct_size;
    attncl_value norm_weight, norm_bias;
    attncl_value proj1_weight, proj1_bias;
    const attncl_sgu_params *sgu;
    attncl_value proj2_weight, proj2_bias;
} attncl_gmlp_params;
#define ATTNCL_GMLP_PARAMS_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_gmlp_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,       \
            ATTNCL_VALUE_INIT, NULL, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                          \
    }
ATTNCL_API attncl_value attncl_gmlp_block(attncl_graph *g, const attncl_gmlp_params *params,
                                          attncl_value x, int causal, attncl_value mask);
ATTNCL_API attncl_value attncl_gmlp_step(attncl_graph *g, const attncl_gmlp_params *params,
                                         attncl_value x, attncl_value position);
// gradient.h
ATTNCL_API void attncl_graph_gradient(attncl_graph *g, size_t n_y, const attncl_value *y,
                                      const attncl_value *dy, size_t n_x, const attncl_value *x,
                                      attncl_value *dx);
// log.h
typedef enum attncl_log_level {
    ATTNCL_LOG_ERROR = 1,
    ATTNCL_LOG_WARN = 2,
    ATTNCL_LOG_INFO = 3,
    ATTNCL_LOG_DEBUG = 4,
} attncl_log_level;
typedef void (*attncl_log_fn)(attncl_log_level level, const char *text, void *user);
ATTNCL_API void attncl_log_set(attncl_log_fn fn, void *user, attncl_log_level level);
// model.h
typedef struct attncl_model attncl_model;
ATTNCL_API attncl_status attncl_model_open(attncl_context *context, const char *path,
                                           attncl_model **model_ret);
ATTNCL_API void attncl_model_close(attncl_model *model);
ATTNCL_API const char *attncl_model_arch(const attncl_model *model);
ATTNCL_API const char *attncl_model_metadata(const attncl_model *model, const char *key);
ATTNCL_API int64_t attncl_model_config_int(const attncl_model *model, const char *key,
                                           int64_t otherwise);
ATTNCL_API attncl_status attncl_model_graph(attncl_model *model, const attncl_array *inputs,
                                            size_t n, attncl_graph **graph_ret);
ATTNCL_API void attncl_model_show_attention(attncl_model *model, int shown);
typedef struct attncl_results attncl_results;
ATTNCL_API size_t attncl_results_count(const attncl_results *results);
ATTNCL_API const attncl_array *attncl_results_at(const attncl_results *results, size_t i);
ATTNCL_API void attncl_results_destroy(attncl_results *results);
ATTNCL_API attncl_status attncl_model_run(attncl_model *model, const attncl_array *inputs, size_t n,
                                          attncl_results **results_ret, attncl_graph **graph_ret);
typedef struct attncl_decoder attncl_decoder;
ATTNCL_API attncl_status attncl_decoder_create(attncl_model *model, int64_t batch,
                                               attncl_decoder **decoder_ret);
ATTNCL_API void attncl_decoder_destroy(attncl_decoder *decoder);
ATTNCL_API attncl_status attncl_decoder_reset(attncl_decoder *decoder);
ATTNCL_API int64_t attncl_decoder_position(const attncl_decoder *decoder);
ATTNCL_API int64_t attncl_decoder_limit(const attncl_decoder *decoder);
ATTNCL_API int64_t attncl_decoder_vocabulary(const attncl_decoder *decoder);
ATTNCL_API attncl_status attncl_decoder_step(attncl_decoder *decoder, const int32_t *tokens,
                                             float *logits);
ATTNCL_API attncl_graph *attncl_decoder_graph(attncl_decoder *decoder);
// optim.h
typedef struct attncl_adam_desc {
    size_t struct_size;
    double learning_rate;
    double beta1, beta2;
    double eps;
    double weight_decay;
    int decoupled;
    int optimized;
} attncl_adam_desc;
#define ATTNCL_ADAM_DESC_INIT                                                                      \
    {                                                                                              \
        sizeof(attncl_adam_desc), 0, 0.9, 0.999, 1e-8, 0, 1, 1                                     \
    }
typedef enum attncl_rate_schedule {
    ATTNCL_RATE_CONSTANT = 0,
    ATTNCL_RATE_INVERSE_SQRT = 1,
} attncl_rate_schedule;
typedef struct attncl_schedule_desc {
    size_t struct_size;
    attncl_rate_schedule kind;
    double d_model;
    double warmup;
} attncl_schedule_desc;
#define ATTNCL_SCHEDULE_DESC_INIT                                                                  \
    {                                                                                              \
        sizeof(attncl_schedule_desc), ATTNCL_RATE_CONSTANT, 0, 2000                                \
    }
typedef struct attncl_adam_values {
    size_t struct_size;
    attncl_value param, exp_avg, exp_avg_sq, max_exp_avg_sq;
} attncl_adam_values;
#define ATTNCL_ADAM_VALUES_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_adam_values), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,       \
            ATTNCL_VALUE_INIT                                                                      \
    }
ATTNCL_API attncl_value attncl_adam_rates(attncl_graph *g, const attncl_adam_desc *desc,
                                          const attncl_schedule_desc *schedule, attncl_value step);
ATTNCL_API void attncl_adam_step(attncl_graph *g, const attncl_adam_desc *desc, attncl_value rates,
                                 attncl_value grad, const attncl_adam_values *before,
                                 attncl_adam_values *after_ret);
ATTNCL_API void attncl_adam_update(attncl_graph *g, const attncl_adam_desc *desc,
                                   attncl_value rates, attncl_value grad,
                                   const attncl_adam_values *values);
typedef enum attncl_clip_style {
    ATTNCL_CLIP_EPSILON = 0,
    ATTNCL_CLIP_EXACT = 1,
} attncl_clip_style;
ATTNCL_API attncl_value attncl_clip_grad_norm(attncl_graph *g, size_t n, const attncl_value *grads,
                                              double max_norm, attncl_clip_style style,
                                              attncl_value *clipped_ret);
// profile.h
typedef struct attncl_profile_row {
    size_t struct_size;
    const char *op;
    const char *scope;
    size_t n_commands;
    size_t runs;
    uint64_t total_ns;
    uint64_t min_ns;
    double flop;
    double bytes;
} attncl_profile_row;
ATTNCL_API attncl_status attncl_graph_run_profiled(attncl_graph *g);
ATTNCL_API const attncl_profile_row *attncl_graph_profile_row(const attncl_graph *g, size_t i);
ATTNCL_API attncl_status attncl_graph_write_trace(const attncl_graph *g, const char *path);
// recurrent.h
typedef struct attncl_gru_params {
    size_t struct_size;
    attncl_value weight_ih, bias_ih;
    attncl_value weight_hh, bias_hh;
} attncl_gru_params;
#define ATTNCL_GRU_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_gru_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT                                                                      \
    }
ATTNCL_API attncl_value attncl_gru_cell(attncl_graph *g, const attncl_gru_params *params,
                                        attncl_value xi, attncl_value h);
ATTNCL_API attncl_value attncl_gru(attncl_graph *g, const attncl_gru_params *params, attncl_value x,
                                   attncl_value h0, attncl_layout layout, attncl_value *last_ret);
ATTNCL_API attncl_value attncl_gru_layers(attncl_graph *g, const attncl_gru_params *layers,
                                          size_t n_layers, attncl_value x, attncl_layout layout,
                                          attncl_value *states);
typedef struct attncl_bahdanau_params {
    size_t struct_size;
    attncl_value query_weight;
    attncl_value key_weight;
    attncl_value score_weight;
    const attncl_gru_params *layers;
    size_t n_layers;
} attncl_bahdanau_params;
#define ATTNCL_BAHDANAU_PARAMS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_bahdanau_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,   \
            NULL, 0                                                                                \
    }
typedef struct attncl_bahdanau_source {
    size_t struct_size;
    attncl_value keys;
    attncl_value values;
    attncl_value valid_lens;
} attncl_bahdanau_source;
#define ATTNCL_BAHDANAU_SOURCE_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_bahdanau_source), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT    \
    }
ATTNCL_API void attncl_bahdanau_attend(attncl_graph *g, const attncl_bahdanau_params *params,
                                       attncl_value outputs, attncl_value valid_lens,
                                       attncl_bahdanau_source *source_ret);
ATTNCL_API attncl_value attncl_bahdanau_input(attncl_graph *g, const attncl_bahdanau_params *params,
                                              attncl_value embedded);
ATTNCL_API attncl_value attncl_bahdanau_step(attncl_graph *g, const attncl_bahdanau_params *params,
                                             const attncl_bahdanau_source *source,
                                             attncl_value input, attncl_value *states,
                                             attncl_value *weights_ret);
ATTNCL_API attncl_value attncl_bahdanau_decoder(attncl_graph *g,
                                                const attncl_bahdanau_params *params,
                                                const attncl_bahdanau_source *source,
                                                attncl_value embedded, attncl_value *states,
                                                attncl_value *weights_ret);
// safetensors.h
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
// tune.h
typedef struct attncl_tune_result {
    size_t struct_size;
    const char *kernel;
    const char *shapes;
    const char *workload;
    double built_in_ms;
    double best_ms;
    double gain;
    const char *row;
    int kept;
    size_t n_tried, n_rows;
    const char *note;
} attncl_tune_result;
typedef struct attncl_tune_options {
    size_t struct_size;
    double seconds;
    const char *kernel;
    int check;
    void (*report)(const attncl_tune_result *result, void *user);
    void (*progress)(double share, void *user);
    void *user;
} attncl_tune_options;
#define ATTNCL_TUNE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(attncl_tune_options), 0.0, NULL, 0, NULL, NULL, NULL                                \
    }
typedef struct attncl_tune_summary {
    size_t struct_size;
    size_t n_measured;
    size_t n_kept;
    char file[1024];
} attncl_tune_summary;
#define ATTNCL_TUNE_SUMMARY_INIT                                                                   \
    {                                                                                              \
        sizeof(attncl_tune_summary), 0, 0, ""                                                      \
    }
ATTNCL_API attncl_status attncl_device_tune(const attncl_context_options *device,
                                            const attncl_tune_options *options,
                                            attncl_tune_summary *summary_ret);
// version.h
#define ATTNCL_VERSION_MAJOR  0
#define ATTNCL_VERSION_MINOR  1
#define ATTNCL_VERSION_PATCH  0
#define ATTNCL_VERSION_STRING "0.1.0"
ATTNCL_API const char *attncl_version(void);
ATTNCL_END
#endif
