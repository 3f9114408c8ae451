// SPDX-License-Identifier: MIT
// The configuration of training: {"arch", "model", "train"}.
#ifndef ATTNCL_TRAIN_CONFIG_H
#define ATTNCL_TRAIN_CONFIG_H

#include "attncl/train.h"
#include "model/arch.h"
#include "model/block_layers.h"
#include "train/dataset.h"

struct train_settings {
    struct dataset_options data; // the trainer sets seed, accumulate and the vocabularies
    attncl_train_plan plan;      // the trainer sets the numbers of batches
    struct optim_settings optimizer;
    double grad_norm_clip, grad_value_clip; // 0: none
    attncl_clip_style clip;
    double dropout, label_smoothing;
    int64_t pad; // -1: none
    int64_t accumulate;
    double ema; // 0: none
    int64_t seed;
    bool clones_layers;         // all layers of a new model begin as copies of layer 0
    struct {                    // from the model's configuration
        int64_t seq_len;        // 0: not given
        int64_t longest_window; // that the model takes
        int64_t width;          // 0: not given
        int64_t limit;          // longest sequence, set by attncl__train_config_end(); 0: any
    } model;
};

// A configuration, read in two parts: first the keys needed to open the data; then all keys, given the
// sizes of the vocabularies.
struct train_config {
    struct json *root;          // owned
    struct json *model, *train; // of the root
    const char *arch_name;      // in the root
    const struct arch_class *arch;
    struct train_settings settings;
};
void attncl__train_config_free(struct train_config *c);

// Parses the text, replaces steps and seed unless NULL, and reads the settings needed to open the data.
attncl_status attncl__train_config_begin(struct train_config *c, const char *text,
                                         const int64_t *steps, const uint64_t *seed);

// Sets the sizes of the vocabularies (0: unknown) and the padding if the configuration lacks them, reads
// and checks all keys, and writes every default to c->root.
attncl_status attncl__train_config_end(struct train_config *c, int64_t source_vocabulary,
                                       int64_t target_vocabulary, int64_t pad);

// Adds the defaults of the model's keys.  *limit_ret: its longest sequence, 0: any.
attncl_status attncl__train_fill_model(const struct arch_class *arch, struct json *model,
                                       int64_t *limit_ret);

#endif
