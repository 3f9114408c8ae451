// SPDX-License-Identifier: MIT
// The configuration of training: {"arch", "model", "train"}.
#ifndef ATTNCL_TRAIN_CONFIG_H
#define ATTNCL_TRAIN_CONFIG_H

#include "attncl/train.h"
#include "model/arch.h"
#include "model/block_layers.h"
#include "train/dataset.h"

struct train_settings {
    struct dataset_options
        data;               // without what trainers add: the seed, `accumulate`, the vocabularies
    attncl_train_plan plan; // without batches
    struct optim_settings optimizer;
    double grad_norm_clip, grad_value_clip; // 0: none
    attncl_clip_style clip;
    double dropout, label_smoothing;
    int64_t pad; // -1: none
    int64_t accumulate;
    double ema; // 0: none
    int64_t seed;
    bool clones_layers;         // a new model's layers all begin as layer 0
    struct {                    // what the model says
        int64_t seq_len;        // 0: nothing
        int64_t longest_window; // that it takes
        int64_t width;          // 0: nothing
        int64_t limit; // of a sequence, once all of the model is read; 0: any, or not known
    } model;
};

// A configuration being read, in two parts: what the data need to be opened; then the rest, with
// what the data say.
struct train_config {
    struct json *root;          // owned
    struct json *model, *train; // of the root
    const char *arch_name;      // in the root
    const struct arch_class *arch;
    struct train_settings settings;
};
void attncl__train_config_free(struct train_config *c);

// Parses the text; what the caller gives replaces the configuration's (NULL: it stays).  The
// settings that the data need are read: batch_size, seq_len ...
attncl_status attncl__train_config_begin(struct train_config *c, const char *text,
                                         const int64_t *steps, const uint64_t *seed);

// Sets the sizes of the vocabularies (0: unknown) and the padding where the configuration has none,
// reads and checks all keys, and puts every default into c->root.
attncl_status attncl__train_config_end(struct train_config *c, int64_t source_vocabulary,
                                       int64_t target_vocabulary, int64_t pad);

// Gives the keys that this very model reads their defaults.  *limit_ret: its longest sequence, 0: any.
attncl_status attncl__train_fill_model(const struct arch_class *arch, struct json *model,
                                       int64_t *limit_ret);

#endif
