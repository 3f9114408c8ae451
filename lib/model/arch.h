// SPDX-License-Identifier: MIT
// One architecture of model files: its configuration, its parameters, and how its graph is built.
//
// Adding an architecture: one class in a file arch_X.c and one line in arch_list.def.
#ifndef ATTNCL_MODEL_ARCH_H
#define ATTNCL_MODEL_ARCH_H

#include "attncl/model.h"
#include "model/inputs.h"

// The kind of targets that the output's scores are compared with, in attncl_model_loss() and in training.
enum target_kind { TARGET_NONE, TARGET_NEXT_TOKENS, TARGET_SENTENCES, TARGET_LABELS };

// The graphs of a decoder, for `batch` sequences.
enum decoding {
    // One token per sequence: input "step" [1 + batch], position and tokens; output "logits".
    // Positions are below `b->n_positions`.
    DECODE_STEP,
    // A step with a position per sequence: input "step" [2 batch], positions and tokens.  A negative
    // position marks an idle sequence: its state stays, its logits are undefined.
    DECODE_SLOTS,
    // A step whose position and tokens are state, and which draws the next tokens (layer/layer.h).
    DECODE_SAMPLING,
    // The first n_tokens of each sequence at once: input "tokens" [n_tokens, batch]; "last" [1], the
    // position of the last token before padding; output "logits" after it.  Fills the step's states.
    DECODE_PREFILL,
    // The next n_tokens of each sequence at once: like DECODE_PREFILL, with inputs "positions" [n_tokens
    // batch] and "last_position" [1]; "last" is a row of "tokens".
    DECODE_APPEND,
    // The last n_tokens of a longer text, state "window" [n_tokens, batch], computed at positions from 0
    // on: output "logits" of the next token.  Also draws that token and appends it to the window.
    DECODE_CROPPED,
};

struct arch_class {      // its name is in the list
    const char *example; // a small configuration with distinct integers, so that shapes can be read
    size_t settings_bytes;

    const struct key *keys;              // of the configuration, into the settings; NULL: none
    const struct port *inputs, *outputs; // end with {0}; inputs NULL: none
    // Adds inputs, parameters, layers and outputs; failures stay in the graph.  Returns the only
    // output, which gets its port's name; or null if it has named several.  Without a graph it only
    // visits every parameter's name and shape; failures stay in b->params.
    attncl_value (*build)(struct build *b, const void *settings);
    // Runs an architecture with more than one graph; `build` then only visits the parameters, or is
    // NULL.  All required inputs are present.
    attncl_status (*run)(attncl_model *model, const attncl_array *inputs, size_t n,
                         attncl_results *results);

    // Language models only.  ERR_UNSUPPORTED if states cannot have type b->state_dtype.
    attncl_status (*build_decoding)(struct build *b, const void *settings, enum decoding kind,
                                    int64_t n_tokens, int64_t batch);
    int64_t (*vocabulary)(const void *settings);
    int64_t (*limit)(const void *settings);     // maximum number of positions of a decoder, 0: any
    bool (*has_kv_cache)(const void *settings); // all state is caches with a row for each position

    enum target_kind target;
    bool no_gradients;    // cotangents are refused
    const char *detached; // an output whose cotangent is ignored; NULL: none
};

extern const struct key attncl__seq2seq_keys[];

// attncl__arch_X of each line of the list.
#define ARCH(file, name) extern const struct arch_class attncl__arch_##name;
#include "model/arch_list.def"
#undef ARCH

// Finds the class by name.  ERR_FORMAT for an unknown name; the message lists all names.
attncl_status attncl__arch_find(const char *name, const struct arch_class **ret);

// Reads a configuration.  ERR_FORMAT for a key that the architecture never reads.
attncl_status attncl__arch_configure(const struct arch_class *arch, const struct json *object,
                                     void *settings);

#endif
