// SPDX-License-Identifier: MIT
// A layer norm under a name: its parameters and what it adds to a graph.
#ifndef ATTNCL_MODEL_BLOCK_NORM_H
#define ATTNCL_MODEL_BLOCK_NORM_H

#include "model/config.h"
#include "model/inputs.h"

// The row of key layer_norm_eps: that of all norms of a model, but for an encoder's final_norm_eps.
#define NORM_EPS_KEY(at)                                                                           \
    {                                                                                              \
        "layer_norm_eps", KEY_NUMBER, (at), .min = 1e-30, OR(1e-5)                                 \
    }

struct norm_params {
    attncl_value weight, bias; // [width]
};
struct norm_params attncl__norm_params(struct params *p, const char *name, int64_t width);
// A norm that the file may lack, both null values then.
struct norm_params attncl__norm_optional(struct params *p, const char *name, int64_t width);

attncl_value attncl__norm(struct build *b, const char *name, int64_t width, float eps,
                          attncl_value x);

#endif
