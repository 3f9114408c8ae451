// SPDX-License-Identifier: MIT
// A model inside.
#ifndef ATTNCL_MODEL_MODEL_H
#define ATTNCL_MODEL_MODEL_H

#include "attncl/describe.h"
#include "attncl/model.h"
#include "attncl/parameters.h"
#include "model/arch.h"

struct attncl_model {
    attncl_context *context;
    attncl_graph
        *anchor; // empty: keeps the context from being destroyed under a model without parameters
    const char *arch_name; // in the metadata
    const struct arch_class *arch;
    struct json *config;
    void *settings; // the architecture's own, from the configuration
    struct param_table params;
    bool shows_attention;
    char **metadata; // key, value, key, value ...
    size_t n_metadata;
};

// The texts are copied.
attncl_status attncl__model_add_metadata(attncl_model *model, const char *key, const char *value);
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

// -- parameters.c: parameters on their way to a file

// The byte of its tensor's floats at which a parameter begins.
size_t attncl__param_offset(const struct param_piece *piece);

// Reads the elements that `tensor`, one of the shape of the parameter's, has in its place.  Their name
// is the parameter's after `prefix`.
attncl_status attncl__results_add_param(attncl_results *results, const struct param_piece *piece,
                                        const char *prefix, attncl_tensor *tensor);
// Writes a file of the results, with the model's metadata but for keys that `metadata` has.
attncl_status attncl__results_save(const attncl_results *results, const attncl_model *model,
                                   const char *const *metadata, const char *path, bool durably);

// Begins the construction of one of the model's graphs, which the caller owns.
attncl_status attncl__model_begin(attncl_model *model, const attncl_array *inputs, size_t n,
                                  struct build *ret);
// Compiles the graph where `status`, the construction's, is no failure; after one it is destroyed.
attncl_status attncl__model_end(struct build *b, attncl_status status, attncl_graph **graph_ret);

// Writes each input of the graph that is among `inputs`, by name.
attncl_status attncl__model_write_inputs(attncl_graph *g, const attncl_array *inputs, size_t n);

// ERR_ARGUMENT unless tokens [n] are of the vocabulary.
attncl_status attncl__check_tokens(int64_t n_vocab, int64_t n, const int32_t *tokens);

// A decoder that will take at most `n_positions` tokens (0: as many as the model does) and has
// memory for no more, or with slots each of them.  The options have been checked, with a state_dtype.
attncl_status attncl__decoder_create_for(attncl_model *model, int64_t batch, int64_t n_positions,
                                         const attncl_decoder_options *options,
                                         attncl_decoder **decoder_ret);

// -- run.c: filling the results of a run

struct attncl_results { // starts zeroed
    attncl_array *list; // they own their names and data
    size_t n, capacity;
};
// Frees what they own.
void attncl__results_clear(attncl_results *results);
// Appends an array, whose elements are the caller's to fill.
attncl_status attncl__results_add(attncl_results *results, const char *name, attncl_dtype dtype,
                                  int rank, const int64_t *dim, void **data_ret);

// -- gradients.c: gradients of a model: inputs called cotangent.OUTPUT ask for outputs called grad.NAME

// The output that an input of this name is the cotangent of; NULL: none.
const char *attncl__gradients_output(const char *name);

// True when the inputs ask for gradients.
bool attncl__gradients_asked(const attncl_array *inputs, size_t n);

// Adds to the built graph an input for each cotangent, which must have the shape of its output, and
// an output for each float input and trainable parameter.
attncl_status attncl__gradients_build(struct build *b, const struct arch_class *arch);

// -- loss.c: the loss of a model that tells classes apart: cross entropy of its output with input "targets"

// Adds an architecture's computation for the inputs of `b`, "targets" among them, its loss and the
// scores of classes, [..., n_classes] for targets [...].
attncl_status attncl__loss_build(struct build *b, const struct arch_class *arch,
                                 const void *settings, const attncl_loss_desc *desc,
                                 attncl_value *loss_ret, attncl_value *scores_ret);

// attncl_model_loss(), whose arguments the caller has checked, and the scores.
attncl_status attncl__model_scores_loss(attncl_model *model, attncl_graph *g,
                                        const attncl_loss_desc *desc, const attncl_array *inputs,
                                        size_t n, attncl_value *loss_ret, attncl_value *scores_ret);

// -- describe.c, describe_keys.c: descriptions of model files

// The entries of a description, which own their texts but `type` and `problem`.
struct entry_list {
    attncl_entry *list; // owned
    size_t n, capacity;
};
// Copies the entry and its texts.
attncl_status attncl__entry_add(struct entry_list *entries, const attncl_entry *entry);
void attncl__entries_free(struct entry_list *entries);

// The keys of a table and of those inside it, in order.
enum { CONFIG_MAX_ROWS = 240, CONFIG_MAX_NESTING = 6 };
struct config_row {
    const struct key *key;
    const char *object;                               // that it is in; NULL: the whole
    const struct condition *when[CONFIG_MAX_NESTING]; // all hold where it is read
    int n_when;
};
size_t attncl__config_rows(const struct key *table, struct config_row rows[CONFIG_MAX_ROWS]);

// Adds the keys of the architecture's configuration.
attncl_status attncl__describe_keys(const struct arch_class *arch, struct entry_list *entries);

#endif
