// SPDX-License-Identifier: MIT
// Matrices of queries times keys, one per batch entry and head.
#ifndef ATTNCL_TOOL_MATRIX_STACK_H
#define ATTNCL_TOOL_MATRIX_STACK_H

#include "picture.h"

struct matrix_stack {
    const char *name;
    const float *data;
    int64_t n_batch, n_heads, n_queries, n_keys;
    int64_t batch_step, head_step, query_step, key_step;
    double low, high; // where the colours begin and end
};

double stack_max_abs(const struct matrix_stack *s);

// Draws them into DIRECTORY/NAME.png, or into several files where they are many.  Returns an exit
// status; a failure is reported.
int stack_draw(const struct matrix_stack *s, const char *directory);

#endif
