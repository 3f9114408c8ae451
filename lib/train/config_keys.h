// SPDX-License-Identifier: MIT
// Reading the keys of "train", and what "model" says of the data.  Failures name the key.
#ifndef ATTNCL_TRAIN_CONFIG_KEYS_H
#define ATTNCL_TRAIN_CONFIG_KEYS_H

#include "model/config.h"
#include "train/config.h"

// The form of the pairs and the order of axes that the model takes.
attncl_status attncl__train_data_form(const struct arch_class *arch, const struct json *model,
                                      struct train_settings *s);
// The keys that the data need to be opened, and all keys, after what the model implies is set; the padding
// of the settings is the default of that key.
extern const struct key attncl__train_data_keys[], attncl__train_keys[];
attncl_status attncl__train_read_model(const struct arch_class *arch, const struct json *model,
                                       struct train_settings *s);

#endif
