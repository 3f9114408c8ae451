// SPDX-License-Identifier: MIT
#ifndef ATTNCL_MODEL_H
#define ATTNCL_MODEL_H
#include "attncl/array.h"
#include "attncl/graph.h"
ATTNCL_BEGIN
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
ATTNCL_END
#endif
