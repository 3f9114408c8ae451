// SPDX-License-Identifier: MIT
// Reading a configuration: typed keys with their ranges and defaults.  Every failure is ERR_FORMAT
// and names the key.
#ifndef ATTNCL_MODEL_CONFIG_H
#define ATTNCL_MODEL_CONFIG_H

#include "attncl/ops.h"
#include "io/json.h"

// An integer from `min` to 2^31 - 1 that must be there, and one with a default.
attncl_status attncl__config_int(const struct json *config, const char *key, int64_t min,
                                 int64_t *ret);
attncl_status attncl__config_int_or(const struct json *config, const char *key, int64_t min,
                                    int64_t otherwise, int64_t *ret);
attncl_status attncl__config_bool_or(const struct json *config, const char *key, bool otherwise,
                                     bool *ret);

// A number of at least `min` that must be there, and one with a default.
attncl_status attncl__config_number(const struct json *config, const char *key, double min,
                                    double *ret);
attncl_status attncl__config_number_or(const struct json *config, const char *key, double min,
                                       double otherwise, double *ret);

// One of some words.
struct choice {
    const char *word;
    int value;
};
#define N_CHOICES(choices) (sizeof(choices) / sizeof((choices)[0]))

// `otherwise` NULL: the key must be there.
attncl_status attncl__config_choice(const struct json *config, const char *key,
                                    const struct choice *choices, size_t n, const char *otherwise,
                                    int *ret);

// Activations by their PyTorch class ("ReLU") or function name ("relu").
attncl_status attncl__config_activation(const struct json *config, const char *key,
                                        const char *otherwise, attncl_activation *ret);

#endif
