// SPDX-License-Identifier: MIT
// Checkpoints: one safetensors file.
//
//   NAME                          a parameter of the model; with averages, its average
//   optimizer.param.NAME          with averages: the parameter
//   optimizer.exp_avg.NAME ...    what the optimiser keeps for it
//   metadata                      a model file's, and attncl.train: JSON of the trainer
#ifndef ATTNCL_TRAIN_CHECKPOINT_H
#define ATTNCL_TRAIN_CHECKPOINT_H

#include "train/trainer.h"

enum { CHECKPOINT_NAME_BYTES = PARAM_NAME_BYTES + 40 };

// The name in a file of what is kept of a parameter.
void attncl__checkpoint_name(enum kept kept, bool has_averages, const char *name,
                             char ret[CHECKPOINT_NAME_BYTES]);

// Where a parameter of the file is among the trained tensors.
struct place {
    size_t trained; // index
    size_t offset;  // of its first element
    size_t count;
};
// False for one that is not trained.
bool attncl__checkpoint_place(const attncl_trainer *t, const struct param_piece *piece,
                              struct place *ret);

#endif
