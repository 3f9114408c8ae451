// SPDX-License-Identifier: MIT
// A model's parameters.  One traversal of their names serves three times: it lists them with their
// shapes, which checks a file; when the model is opened it loads them; when a graph is built it
// gives their values.
#ifndef ATTNCL_MODEL_PARAMS_H
#define ATTNCL_MODEL_PARAMS_H

#include <stdbool.h>

#include "attncl/graph.h"
#include "attncl/safetensors.h"
#include "model/initial.h"
#include "model/param_list.h"
#include "model/param_table.h"

enum { PARAM_NAME_BYTES = 256, PARAM_MAX_DEPTH = 8 };

struct params {
    struct param_list *list;        // listing; else NULL
    struct param_table *table;      // loading, fetching; NULL: the graph's weights are placeholders
    const attncl_safetensors *file; // loading; listing: NULL when there is none
    const struct initial *initial;  // loading a new model, without a file; else NULL
    bool all_floats;      // loading: what the file has in 16 bits becomes F32, to be trained
    attncl_graph *graph;  // fetching; else NULL
    attncl_status status; // listing, loading: the first failure, its message kept
    size_t next;          // fetching: where the next name is expected
    char prefix[PARAM_NAME_BYTES]; // "encoder.layers.3."
    size_t marks[PARAM_MAX_DEPTH];
    int depth;
};

// Puts "name." before the names that follow, until the matching leave; a graph's nodes get the same
// scope.
void attncl__params_enter(struct params *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void attncl__params_leave(struct params *p);

// The name after those entered.
void attncl__params_name(const struct params *p, const char *name, char ret[PARAM_NAME_BYTES]);
// In a graph: the tensor of the table called `full`, or a placeholder.
attncl_value attncl__params_fetch(struct params *p, const char *full, int rank, const int64_t *dim);

// A parameter of exactly this shape, with its rule for a new model.  The null value except in a graph.
attncl_value attncl__param(struct params *p, const char *name, struct param_init init, int rank,
                           const int64_t *dim);
#define PARAM(p, name, init, ...)                                                                  \
    attncl__param((p), (name), (init), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),  \
                  (const int64_t[]){__VA_ARGS__})
// The same where `given` says whether the model has it; else the null value.
#define PARAM_IF(given, p, name, init, ...)                                                        \
    ((given) ? PARAM((p), (name), (init), __VA_ARGS__) : ATTNCL_NONE_VALUE)

// The same for a matrix [rows, columns] that only linear maps and embeddings read: it stays in 16 bits on the
// device where the file has it so.
attncl_value attncl__param_kept(struct params *p, const char *name, struct param_init init,
                                int64_t rows, int64_t columns);

// A parameter that the file may lack, and a new model does: then the null value in every graph.
attncl_value attncl__param_optional(struct params *p, const char *name, int rank,
                                    const int64_t *dim);
#define PARAM_OPTIONAL(p, name, ...)                                                               \
    attncl__param_optional((p), (name), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                           (const int64_t[]){__VA_ARGS__})
// Whether the file or, in a graph, the table has the parameter; true for placeholders.
bool attncl__param_given(const struct params *p, const char *name);

// A linear map: name.weight [out, in] and, where it has one, name.bias [out]; else the null value.
void attncl__param_linear(struct params *p, const char *name, int64_t out, int64_t in, bool bias,
                          attncl_value *weight_ret, attncl_value *bias_ret);

// A learned table of positions, [max_len, 1, width] or [max_len, width].
attncl_value attncl__param_positions(struct params *p, const char *name, int64_t max_len,
                                     int64_t width);
// The sinusoidal table: the file's own when it holds one, else computed, `n_needed` rows of it.
attncl_value attncl__param_sinusoid(struct params *p, const char *name, int64_t max_len,
                                    int64_t n_needed, int64_t width);

// Several of the file's parameters as one value, so that one GEMM computes them together.  Rows
// follow each other in the order of the adds; the whole is [rows, width], or with width 0 [rows].
struct param_stack {
    struct params *p;
    const char *name; // of the whole, not in the file
    int64_t width;
    float *rows; // loading
    int64_t n_rows;
    size_t capacity;
};
struct param_stack attncl__param_stack_begin(struct params *p, const char *name, int64_t width);
// A parameter of `n_rows` rows; name NULL: rows of zeros.
void attncl__param_stack_add(struct param_stack *s, const char *name, struct param_init init,
                             int64_t n_rows);
attncl_value attncl__param_stack_end(struct param_stack *s);

// A stored mask [n, n] must be |i - j| < window.  An absent one is fine.
void attncl__param_check_window(struct params *p, const char *name, int64_t n, int64_t window);

#endif
