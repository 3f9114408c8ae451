// SPDX-License-Identifier: MIT
// One architecture of model files: how its configuration reads, which parameters it has, how its
// graph is built.
//
// Adding an architecture: one class in a file arch_X.c and one line in arch_list.def.
#ifndef ATTNCL_MODEL_ARCH_H
#define ATTNCL_MODEL_ARCH_H

#include "attncl/model.h"
#include "model/inputs.h"

// The classes that its output scores, which are the targets of attncl_model_loss() and of training.
enum target_kind { TARGET_NONE, TARGET_NEXT_TOKENS, TARGET_SENTENCES, TARGET_LABELS };

// The graphs of a decoder, of `batch` sequences.
enum decoding {
    // A token each: input "step" [1 + batch], the position and the tokens in one; output "logits".
    // `b->n_positions` bounds the positions it will be asked for.
    DECODE_STEP,
    // The same at a position for each sequence: input "step" [2 batch], positions and tokens.  A negative position is that
    // of an idle sequence, whose state stays and whose logits mean nothing.
    DECODE_SLOTS,
    // A step whose position and tokens are state, and which draws the next ones (layer/layer.h).
    DECODE_SAMPLING,
    // The first n_tokens of each sequence at once: input "tokens" [n_tokens, batch] and "last" [1], the
    // position of the last token that counts; output "logits" after that one.  Fills the step's states.
    DECODE_PREFILL,
    // The next n_tokens of each sequence at once, at input "positions" [n_tokens batch] of each; "tokens", "last", the row of
    // the last one that counts, and "logits" as above.
    DECODE_APPEND,
    // The last n_tokens of a longer text, as state "window" [n_tokens, batch], computed as the first ones: output
    // "logits" of the next token, which is also drawn and moves the window on.
    DECODE_CROPPED,
};

struct arch_class {      // its name is in the list
    const char *example; // a small configuration; its integers differ, so that shapes can be read
    size_t settings_bytes;

    const struct key *keys; // of the configuration, into the settings; NULL: there are none
    const struct port *inputs, *outputs; // up to {0}; inputs NULL: there are none
    // Adds the inputs, the parameters, the layers and the outputs; the graph keeps a failure.  The
    // one output is returned and gets its port's name; several have their names already, and null
    // is returned.  Without a graph it gives every parameter's name and shape alone; b->params
    // keeps a failure.
    attncl_value (*build)(struct build *b, const void *settings);
    // For an architecture that is more than one graph: runs it.  `build` then only names the parameters, or is NULL.
    // All inputs that it needs are there.
    attncl_status (*run)(attncl_model *model, const attncl_array *inputs, size_t n,
                         attncl_results *results);

    // Language models only.  ERR_UNSUPPORTED where states cannot be of b->state_dtype.
    attncl_status (*build_decoding)(struct build *b, const void *settings, enum decoding kind,
                                    int64_t n_tokens, int64_t batch);
    int64_t (*vocabulary)(const void *settings);
    int64_t (*limit)(const void *settings); // maximum number of positions of a decoder, 0: any

    enum target_kind target;
    bool no_gradients;    // cotangents are refused
    const char *detached; // an output whose cotangent is ignored; NULL: none
};

extern const struct key attncl__seq2seq_keys[];

// attncl__arch_X of each line of the list.
#define ARCH(file, name) extern const struct arch_class attncl__arch_##name;
#include "model/arch_list.def"
#undef ARCH

// The class of that name.  ERR_FORMAT for an unknown one: its message names all.
attncl_status attncl__arch_find(const char *name, const struct arch_class **ret);

// Reads a configuration.  ERR_FORMAT for a key that no configuration of the architecture reads.
attncl_status attncl__arch_configure(const struct arch_class *arch, const struct json *object,
                                     void *settings);

#endif
