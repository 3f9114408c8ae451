// SPDX-License-Identifier: MIT
// A model's parameters.  One traversal of their names, an architecture's build(), serves three times: it
// lists them with their shapes, which checks a file; when the model is opened it loads them; when a
// graph is built it gives their values.
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

// -- param_list.c: every parameter that an architecture's build() names, with its shape; with a file, what is wrong with
// each.  Needs no device.

struct listed_param {
    char *name;
    struct tensor_desc desc;
    bool optional; // a file may lack it
    bool fixed;    // a buffer: nothing to train
    bool is_map;   // attncl__param_kept()
    bool is_missing;
    char *problem; // "is missing", "has shape [2], expected [3]"; NULL: none, or there is no file
};

struct param_list {
    const attncl_safetensors *file; // NULL: none
    struct listed_param *list;
    size_t n, capacity, n_problems;
    struct name_table names;
    bool is_cut; // there are more problems than anyone reads: the rest was not listed
};
void attncl__param_list_free(struct param_list *l);

enum param_kind { PARAM_REQUIRED, PARAM_MAP, PARAM_OPTIONAL_WEIGHT, PARAM_BUFFER };

// Appends a parameter and checks the file's.  Errors: ERR_SHAPE for an impossible shape, ERR_FORMAT
// when the list is full.
attncl_status attncl__param_list_add(struct param_list *l, const char *name, int rank,
                                     const int64_t *dim, enum param_kind kind);

// Appends an optional mask BOOL [n, n]; the file's must be |i - j| < window.
attncl_status attncl__param_list_add_window(struct param_list *l, const char *name, int64_t n,
                                            int64_t window);

// ERR_FORMAT with the first problems and the number of the others, ATTNCL_OK when there is none.
attncl_status attncl__param_list_check(const struct param_list *l);

// -- initial.c: initial values of a new model's parameters: the rule that goes with a parameter's name, and the
// elements made by it

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

// -- param_table.c: the parameters of an open model, on the device, and where each one of the file is among them

// A tensor on the device, in the order of loading.
struct param {
    char *name;
    attncl_tensor *tensor;
    attncl_shape shape;
    bool fixed; // a buffer: nothing to train
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

// Uploads elements and appends them under a name: a parameter of the file unless its rows are.
attncl_status attncl__param_table_add(struct param_table *t, const char *name, attncl_dtype dtype,
                                      int rank, const int64_t *dim, const void *data);
// The same with floats of the file's, which become those of the type.
attncl_status attncl__param_table_load(struct param_table *t, const char *name, attncl_dtype dtype,
                                       int rank, const int64_t *dim, const attncl_safetensors *file,
                                       const attncl_array *array);
// Appends a parameter of the file that is rows of the tensor that comes next.
attncl_status attncl__param_table_add_rows(struct param_table *t, const char *name, int64_t first,
                                           int rank, const int64_t *dim);

// Whether a parameter of the file is a whole tensor.
bool attncl__param_is_whole(const struct param_table *t, const struct param_piece *piece);
// A parameter of the file as it is there, released by attncl__free().  In 8 or 4 bits its scales
// are finite, and *dtype_ret and dim_ret are those of its weights.
attncl_status attncl__param_read(const attncl_safetensors *file, const attncl_array *a,
                                 attncl_dtype *dtype_ret, int64_t dim_ret[2], void **data_ret);
// Its elements as floats.
attncl_status attncl__param_read_floats(const attncl_safetensors *file, const attncl_array *a,
                                        float *values);
// The parameter of the file called `name`; NULL: none.
const struct param_piece *attncl__param_table_find(const struct param_table *t, const char *name);

// -- params.c

enum { PARAM_NAME_BYTES = 256, PARAM_MAX_DEPTH = 8 };

struct params {
    struct param_list *list;        // listing; else NULL
    struct param_table *table;      // loading, fetching
    const attncl_safetensors *file; // loading; listing: NULL when there is none
    const struct initial *initial;  // loading a new model, without a file; else NULL
    bool
        all_floats; // loading: what the file has in 16 bits becomes F32, to be trained; 8 and 4 bits are refused
    attncl_graph *graph;           // fetching; else NULL
    attncl_status status;          // listing, loading: the first failure, its message kept
    size_t next;                   // fetching: where the next name is expected
    char prefix[PARAM_NAME_BYTES]; // "encoder.layers.3."
    char full[PARAM_NAME_BYTES];   // of attncl__params_name()
    size_t marks[PARAM_MAX_DEPTH];
    int depth;
};

// Puts "name." before the names that follow, until the matching leave; a graph's nodes get the same
// scope.
void attncl__params_enter(struct params *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void attncl__params_leave(struct params *p);

// The name after those entered, until the next call.
const char *attncl__params_name(struct params *p, const char *name);
// In a graph: the tensor of the table called `full`.
attncl_value attncl__params_fetch(struct params *p, const char *full);

// A parameter of exactly this shape, with its rule for a new model.  The null value except in a graph.
attncl_value attncl__param(struct params *p, const char *name, struct param_init init, int rank,
                           const int64_t *dim);
#define PARAM(p, name, init, ...)                                                                  \
    attncl__param((p), (name), (init), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),  \
                  (const int64_t[]){__VA_ARGS__})
// The same where `given` says whether the model has it; else the null value.
#define PARAM_IF(given, p, name, init, ...)                                                        \
    ((given) ? PARAM((p), (name), (init), __VA_ARGS__) : ATTNCL_NONE_VALUE)

// The same for a matrix [rows, columns] that only linear maps and embeddings read: it stays in 16, 8 or 4 bits on the
// device where the file has it so.
attncl_value attncl__param_kept(struct params *p, const char *name, struct param_init init,
                                int64_t rows, int64_t columns);

// A parameter that the file may lack, and a new model does: then the null value in every graph.
attncl_value attncl__param_optional(struct params *p, const char *name, int rank,
                                    const int64_t *dim);
#define PARAM_OPTIONAL(p, name, ...)                                                               \
    attncl__param_optional((p), (name), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                           (const int64_t[]){__VA_ARGS__})
// Whether the file or, in a graph, the table has the parameter.
bool attncl__param_given(struct params *p, const char *name);

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
// follow each other in the order of the adds; the whole is [rows, width], or with width 0 [rows].  The first three are set.
struct param_stack {
    struct params *p;
    const char *name; // of the whole, not in the file
    int64_t width;
    float *rows; // loading
    int64_t n_rows;
    size_t capacity;
};
// A parameter of `n_rows` rows; name NULL: rows of zeros.
void attncl__param_stack_add(struct param_stack *s, const char *name, struct param_init init,
                             int64_t n_rows);
attncl_value attncl__param_stack_end(struct param_stack *s);

// A stored mask [n, n] must be |i - j| < window.  An absent one is fine.
void attncl__param_check_window(struct params *p, const char *name, int64_t n, int64_t window);

// -- gradients.c: what training changes of a model: the tensors that are no buffers, and their
// gradients in a graph

size_t attncl__trained_count(const struct param_table *t);
// The i-th of them; NULL beyond the last.
const struct param *attncl__trained_at(const struct param_table *t, size_t i);

// Adds their values and the gradients of `loss`, attncl__trained_count() of each.
attncl_status attncl__trained_gradient(const struct param_table *t, attncl_graph *g,
                                       attncl_value loss, attncl_value *weights,
                                       attncl_value *gradients);

#endif
