// SPDX-License-Identifier: MIT
// A model's implementation.
#ifndef ATTNCL_MODEL_MODEL_H
#define ATTNCL_MODEL_MODEL_H

#include "attncl/describe.h"
#include "attncl/model.h"
#include "attncl/parameters.h"
#include "model/arch.h"

struct attncl_model {
    attncl_context *context;
    attncl_graph *anchor;  // an empty graph that keeps the context alive
    const char *arch_name; // points into the metadata
    const struct arch_class *arch;
    struct json *config;
    void *settings; // the architecture's settings, read from the configuration
    struct param_table params;
    bool show_attention;
    char **metadata; // key, value, key, value ...
    size_t n_metadata;
};

// Copies both texts.
attncl_status attncl__model_add_metadata(attncl_model *model, const char *key, const char *value);
// Steps of opening: set the metadata, from a file or from texts; then the architecture and its settings.
attncl_status attncl__model_copy_metadata(attncl_model *model, const attncl_safetensors *file);
attncl_status attncl__model_set_metadata(attncl_model *model, const char *arch, const char *config);
attncl_status attncl__model_configure(attncl_model *model);
// Lists the parameters and checks them against list->file; their problems are not a failure.
attncl_status attncl__model_list_params(const attncl_model *model, struct param_list *list);

static inline struct config_values attncl__model_values(const attncl_model *model)
{
    return (struct config_values){model->arch->keys, model->settings};
}

// -- parameters.c: saving parameters

// Byte offset of a parameter in its tensor of floats.
size_t attncl__param_offset(const struct param_piece *piece);

// Adds a parameter's elements, read from `tensor`, which has its tensor's shape; names them `prefix` +
// the parameter's name.
attncl_status attncl__results_add_param(attncl_results *results, const struct param_piece *piece,
                                        const char *prefix, attncl_tensor *tensor);
// Writes the results to a file with the model's metadata, overridden by `metadata`.
attncl_status attncl__results_save(const attncl_results *results, const attncl_model *model,
                                   const char *const *metadata, const char *path, bool durably);

// Begins one of the model's graphs, which the caller owns.
attncl_status attncl__model_begin(attncl_model *model, const attncl_array *inputs, size_t n,
                                  struct build *ret);
// Compiles the graph if `status` is ATTNCL_OK; destroys it on failure.
attncl_status attncl__model_end(struct build *b, attncl_status status, attncl_graph **graph_ret);

// Writes the graph's inputs that are among `inputs`, by name.
attncl_status attncl__model_write_inputs(attncl_graph *g, const attncl_array *inputs, size_t n);

// ERR_ARGUMENT unless all n tokens are in [0, n_vocab).
attncl_status attncl__check_tokens(int64_t n_vocab, int64_t n, const int32_t *tokens);

// Creates a decoder for at most n_positions tokens, per slot if there are slots (0: the model's limit), and at first with
// room for `capacity` in KV caches; of slots, for all.  The options have been checked and have a state_dtype.
attncl_status attncl__decoder_create_for(attncl_model *model, int64_t batch, int64_t n_positions,
                                         int64_t capacity, const attncl_decoder_options *options,
                                         attncl_decoder **decoder_ret);

// -- run.c: filling the results of a run

struct attncl_results { // starts zeroed
    attncl_array *list; // they own their names and data
    size_t n, capacity;
};
// Frees the list.
void attncl__results_clear(attncl_results *results);
// Appends an array; the caller fills in its elements.
attncl_status attncl__results_add(attncl_results *results, const char *name, attncl_dtype dtype,
                                  int rank, const int64_t *dim, void **data_ret);

// -- gradients.c: inputs cotangent.OUTPUT request outputs grad.NAME

// OUTPUT of a name cotangent.OUTPUT; NULL for other names.
const char *attncl__gradients_output(const char *name);

// Whether the inputs request gradients.
bool attncl__gradients_asked(const attncl_array *inputs, size_t n);

// Adds to a built graph an input for each cotangent, with the shape of its output, and an output for
// each float input and trainable parameter.
attncl_status attncl__gradients_build(struct build *b, const struct arch_class *arch);

// -- loss.c: cross entropy of a classifying model's output with input "targets"

// Adds an architecture's nodes and loss for the inputs of `b`, among them "targets" [...].  *scores_ret:
// the class scores [..., n_classes].
attncl_status attncl__loss_build(struct build *b, const struct arch_class *arch,
                                 const void *settings, const attncl_loss_desc *desc,
                                 attncl_value *loss_ret, attncl_value *scores_ret);

// attncl_model_loss() with checked arguments; also returns the scores.
attncl_status attncl__model_scores_loss(attncl_model *model, attncl_graph *g,
                                        const attncl_loss_desc *desc, const attncl_array *inputs,
                                        size_t n, attncl_value *loss_ret, attncl_value *scores_ret);

// -- describe.c, describe_keys.c: descriptions of model files

// The entries of a description; they own their texts except `type` and `problem`.
struct entry_list {
    attncl_entry *list; // owned
    size_t n, capacity;
};
// Copies the entry and its texts.
attncl_status attncl__entry_add(struct entry_list *entries, const attncl_entry *entry);
void attncl__entries_free(struct entry_list *entries);

// The keys of a table and of its inner tables, in order.
enum { CONFIG_MAX_ROWS = 240, CONFIG_MAX_NESTING = 6 };
struct config_row {
    const struct key *key;
    const char *object;                               // name of the inner object; NULL: outermost
    const struct condition *when[CONFIG_MAX_NESTING]; // the row is read if all hold
    int n_when;
};
size_t attncl__config_rows(const struct key *table, struct config_row rows[CONFIG_MAX_ROWS]);

// Adds the keys of the architecture's configuration.
attncl_status attncl__describe_keys(const struct arch_class *arch, struct entry_list *entries);

#endif
