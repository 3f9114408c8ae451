// SPDX-License-Identifier: MIT
// A model inside.
#ifndef ATTNCL_MODEL_MODEL_H
#define ATTNCL_MODEL_MODEL_H

#include "attncl/model.h"
#include "model/arch.h"

struct attncl_model {
    attncl_context *context;
    attncl_graph
        *anchor; // empty: keeps the context from being destroyed under a model without parameters
    const struct arch_class *arch;
    struct json *config;
    void *settings; // the architecture's own, from the configuration
    struct param_table params;
    bool shows_attention;
    char **metadata; // key, value, key, value ...
    size_t n_metadata;
};

// Opening, step by step: metadata from the file, or from these texts; the architecture and its settings from that.
attncl_status attncl__model_copy_metadata(attncl_model *model, const attncl_safetensors *file);
attncl_status attncl__model_set_metadata(attncl_model *model, const char *arch, const char *config);
attncl_status attncl__model_configure(attncl_model *model);
// Lists the parameters, beside those of list->file; their problems are no failure.
attncl_status attncl__model_list_params(const attncl_model *model, struct param_list *list);

// The configuration that was read.
static inline struct config_values attncl__model_values(const attncl_model *model)
{
    return (struct config_values){model->arch->keys, model->settings};
}

// Begins the construction of one of the model's graphs; the graph is the caller's, also on failure.
attncl_status attncl__model_begin(attncl_model *model, const attncl_array *inputs, size_t n,
                                  struct build *ret);

// Writes each input of the graph that is among `inputs`, by name.
attncl_status attncl__model_write_inputs(attncl_graph *g, const attncl_array *inputs, size_t n);

// A decoder that will take at most `n_positions` tokens (0: as many as the model does) and has
// memory for no more; state_dtype as attncl_decoder_options'.
attncl_status attncl__decoder_create_for(attncl_model *model, int64_t batch, int64_t n_positions,
                                         attncl_dtype state_dtype, attncl_decoder **decoder_ret);

#endif
