// SPDX-License-Identifier: MIT
// Initial values of a new model's parameters: the rule that goes with a parameter's name, and the
// elements made by it.
#ifndef ATTNCL_MODEL_INITIAL_H
#define ATTNCL_MODEL_INITIAL_H

#include <stddef.h>
#include <stdint.h>

#include "model/param_list.h"

// As PyTorch's modules have them.
struct param_init {
    enum { INIT_KIND_CONSTANT, INIT_KIND_UNIFORM, INIT_KIND_NORMAL } kind;
    double low, high; // a constant: low; normal: mean and standard deviation
};
#define INIT_CONSTANT(value)    ((struct param_init){INIT_KIND_CONSTANT, (value), 0})
#define INIT_UNIFORM(low, high) ((struct param_init){INIT_KIND_UNIFORM, (low), (high)})
#define INIT_NORMAL             ((struct param_init){INIT_KIND_NORMAL, 0, 1})
// Of a linear map or a recurrent layer: +-1 / sqrt(n), n the number of inputs or of hidden channels.
struct param_init attncl__init_fan_in(int64_t n);
// Xavier's: +-sqrt(6 / (in + out)).
struct param_init attncl__init_xavier(int64_t in, int64_t out);

// Numbers of a new model: the i-th of its parameters in bytewise order of their names has word
// counters (i, element).
struct initial {
    uint64_t seed;
    struct name_table numbers; // names borrowed from the list
};
attncl_status attncl__initial_create(uint64_t seed, const struct param_list *list,
                                     struct initial *ret);
void attncl__initial_free(struct initial *initial);

// The elements of parameter `name`.
void attncl__initial_fill(const struct initial *initial, const char *name,
                          const struct param_init *init, float *data, size_t count);

#endif
