// SPDX-License-Identifier: MIT
// A model's parameters.  An architecture's build() visits their names for three purposes: to list them
// with their shapes, which checks a file; to load them when a model is opened; to fetch their values
// when a graph is built.
#ifndef ATTNCL_MODEL_PARAMS_H
#define ATTNCL_MODEL_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attncl/graph.h"
#include "attncl/safetensors.h"
#include "base/alloc.h"
#include "base/name_table.h"
#include "base/try.h"
#include "graph/graph.h"

// -- param_list.c: every parameter that an architecture names, with its shape and, given a file, its
// problem.  Needs no device.

struct listed_param {
    char *name;
    struct tensor_desc desc;
    bool optional; // a file may lack it
    bool fixed;    // a buffer, not trained
    bool is_map;   // attncl__param_matrix()
    bool is_missing;
    char *problem; // "is missing", "has shape [2], expected [3]"; NULL: none, or no file
};

struct param_list {
    const attncl_safetensors *file; // NULL: none
    struct listed_param *list;
    size_t n, capacity, n_problems;
    struct name_table names;
    bool is_cut; // the list ends early, after too many problems
};
void attncl__param_list_free(struct param_list *l);

enum param_kind { PARAM_REQUIRED, PARAM_MAP, PARAM_OPTIONAL_WEIGHT, PARAM_BUFFER };

// Appends a parameter and checks the file's.  ERR_SHAPE for an impossible shape, ERR_FORMAT if the list
// is full.
attncl_status attncl__param_list_add(struct param_list *l, const char *name, int rank,
                                     const int64_t *dim, enum param_kind kind);

// Appends an optional mask BOOL [n, n]; the file's must be |i - j| < window.
attncl_status attncl__param_list_add_window(struct param_list *l, const char *name, int64_t n,
                                            int64_t window);

// ERR_FORMAT if there are problems; the message has the first ones and the number of the others.
attncl_status attncl__param_list_check(const struct param_list *l);

// -- initial.c: initial values of a new model's parameters

// A rule for initial values, as in PyTorch's modules.
struct param_init {
    enum { INIT_KIND_CONSTANT, INIT_KIND_UNIFORM, INIT_KIND_NORMAL } kind;
    double low, high; // a constant: low; normal: mean and standard deviation
};
#define INIT_CONSTANT(value)    ((struct param_init){INIT_KIND_CONSTANT, (value), 0})
#define INIT_UNIFORM(low, high) ((struct param_init){INIT_KIND_UNIFORM, (low), (high)})
#define INIT_NORMAL             ((struct param_init){INIT_KIND_NORMAL, 0, 1})
// Uniform in +-1 / sqrt(n), n the inputs of a linear map or the hidden channels of a recurrent layer.
struct param_init attncl__init_fan_in(int64_t n);
// Xavier: uniform in +-sqrt(6 / (in + out)).
struct param_init attncl__init_xavier(int64_t in, int64_t out);

// The random numbers of a new model: the counter is (i, element) for the i-th parameter in bytewise
// order of names.
struct initial {
    uint64_t seed;
    struct name_table numbers; // names borrowed from the list
};
attncl_status attncl__initial_create(uint64_t seed, const struct param_list *list,
                                     struct initial *ret);
void attncl__initial_free(struct initial *initial);

// Fills in the elements of parameter `name`.
void attncl__initial_fill(const struct initial *initial, const char *name,
                          const struct param_init *init, float *data, size_t count);

// -- param_table.c: an open model's tensors on the device, and the file's parameters among them

// A tensor on the device, in the order of loading.
struct param {
    char *name;
    attncl_tensor *tensor;
    attncl_shape shape;
    bool fixed; // a buffer, not trained
};

// A parameter of the file: a tensor of the table, or rows of one.
struct param_piece {
    char *name;
    size_t param; // index of the tensor
    int64_t first, n_rows;
    attncl_shape shape;
};

struct param_table {
    attncl_context *context;
    struct param *list;
    size_t n, capacity;
    struct param_piece *pieces; // ordered by `param`
    size_t n_pieces, pieces_capacity;
    struct name_table piece_names;
    struct tensor_block block; // of all tensors
};
void attncl__param_table_free(struct param_table *table);

// Appends a tensor and uploads its elements.  It is a parameter of the file unless rows were added.
attncl_status attncl__param_table_add(struct param_table *t, const char *name, attncl_dtype dtype,
                                      int rank, const int64_t *dim, const void *data);
// Appends a tensor with the file's floats, converted to dtype.
attncl_status attncl__param_table_load(struct param_table *t, const char *name, attncl_dtype dtype,
                                       int rank, const int64_t *dim, const attncl_safetensors *file,
                                       const attncl_array *array);
// Appends a parameter of the file that is rows of the next tensor.
attncl_status attncl__param_table_add_rows(struct param_table *t, const char *name, int64_t first,
                                           int rank, const int64_t *dim);

// Whether a parameter of the file is a whole tensor.
bool attncl__param_is_whole(const struct param_table *t, const struct param_piece *piece);
// Reads a parameter as stored in the file; release with attncl__free().  For a quantised one checks
// that the scales are finite, and returns the weights' dtype and dims.
attncl_status attncl__param_read(const attncl_safetensors *file, const attncl_array *a,
                                 attncl_dtype *dtype_ret, int64_t dim_ret[2], void **data_ret);
// Reads a parameter as floats.
attncl_status attncl__param_read_floats(const attncl_safetensors *file, const attncl_array *a,
                                        float *values);
// The parameter of the file called `name`; NULL: none.
const struct param_piece *attncl__param_table_find(const struct param_table *t, const char *name);

// -- params.c

enum { PARAM_NAME_BYTES = 256, PARAM_MAX_DEPTH = 8 };

struct params {
    struct param_list *list;        // listing; else NULL
    struct param_table *table;      // loading, fetching
    const attncl_safetensors *file; // loading, listing; NULL: none
    const struct initial *initial;  // loading a new model, without a file; else NULL
    bool all_floats;      // loading for training: 16 bits become F32; 8 and 4 bits are refused
    attncl_graph *graph;  // fetching; else NULL
    attncl_status status; // listing, loading: the first failure, its message kept
    size_t next;          // fetching: expected index of the next name
    char prefix[PARAM_NAME_BYTES]; // "encoder.layers.3."
    char full[PARAM_NAME_BYTES];   // of attncl__params_name()
    size_t marks[PARAM_MAX_DEPTH];
    int depth;
};

// Prefixes following names with "name." until the matching leave; a graph's nodes get the same scope.
void attncl__params_enter(struct params *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void attncl__params_leave(struct params *p);

// The name with its prefix, valid until the next call.
const char *attncl__params_name(struct params *p, const char *name);
// In a graph: the table's tensor `full`.
attncl_value attncl__params_fetch(struct params *p, const char *full);

// A parameter of exactly this shape, with its rule for a new model.  The null value except in a graph.
attncl_value attncl__param(struct params *p, const char *name, struct param_init init, int rank,
                           const int64_t *dim);
#define PARAM(p, name, init, ...)                                                                  \
    attncl__param((p), (name), (init), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),  \
                  (const int64_t[]){__VA_ARGS__})
// PARAM() if `given`; else the null value.
#define PARAM_IF(given, p, name, init, ...)                                                        \
    ((given) ? PARAM((p), (name), (init), __VA_ARGS__) : ATTNCL_NONE_VALUE)

// A matrix [rows, columns] that only linear maps and embeddings read: on the device it keeps the file's
// type, also with 16, 8 or 4 bits.
attncl_value attncl__param_matrix(struct params *p, const char *name, struct param_init init,
                                  int64_t rows, int64_t columns);

// A parameter that the file may lack and a new model lacks; then its value is null.
attncl_value attncl__param_optional(struct params *p, const char *name, int rank,
                                    const int64_t *dim);
#define PARAM_OPTIONAL(p, name, ...)                                                               \
    attncl__param_optional((p), (name), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                           (const int64_t[]){__VA_ARGS__})
// Whether the file or, in a graph, the table has the parameter.
bool attncl__param_given(struct params *p, const char *name);

// A linear map: name.weight [out, in] and, with `bias`, name.bias [out]; else null.
void attncl__param_linear(struct params *p, const char *name, int64_t out, int64_t in, bool bias,
                          attncl_value *weight_ret, attncl_value *bias_ret);

// A learned position table, [max_len, 1, width] or [max_len, width].
attncl_value attncl__param_positions(struct params *p, const char *name, int64_t max_len,
                                     int64_t width);
// A sinusoidal table: the file's, or n_needed computed rows.
attncl_value attncl__param_sinusoid(struct params *p, const char *name, int64_t max_len,
                                    int64_t n_needed, int64_t width);

// Stacks several of the file's parameters, in the order of the adds, to one value for one GEMM:
// [rows, width], or [rows] if width is 0.  The caller sets p, name and width.
struct param_stack {
    struct params *p;
    const char *name; // of the stack, not in the file
    int64_t width;
    float *rows; // loading
    int64_t n_rows;
    size_t capacity;
};
// Adds a parameter of n_rows rows; name NULL: rows of zeros.
void attncl__param_stack_add(struct param_stack *s, const char *name, struct param_init init,
                             int64_t n_rows);
attncl_value attncl__param_stack_end(struct param_stack *s);

// Checks that the file's optional mask [n, n] is |i - j| < window.
void attncl__param_check_window(struct params *p, const char *name, int64_t n, int64_t window);

// -- gradients.c: the trained tensors (those that are not buffers), and their gradients in a graph

size_t attncl__trained_count(const struct param_table *t);
// The i-th trained tensor; NULL beyond the last.
const struct param *attncl__trained_at(const struct param_table *t, size_t i);

// Adds the trained tensors' values and the gradients of `loss`, attncl__trained_count() of each.
attncl_status attncl__trained_gradient(const struct param_table *t, attncl_graph *g,
                                       attncl_value loss, attncl_value *weights,
                                       attncl_value *gradients);

#endif
