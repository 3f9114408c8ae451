// SPDX-License-Identifier: MIT
// A graph under construction for a model, and its inputs: looked up by name, checked against what
// the architecture expects, declared to the graph.
#ifndef ATTNCL_MODEL_INPUTS_H
#define ATTNCL_MODEL_INPUTS_H

#include "attncl/array.h"
#include "attncl/graph.h"
#include "attncl/kinds.h"
#include "model/dropout_sites.h"
#include "model/params.h"
#include "model/probe.h"

struct build {
    attncl_graph *graph;
    struct params params;
    const attncl_array *inputs; // names, types and shapes; the elements come later
    size_t n_inputs;
    struct probe *probe;  // describing: the inputs are made up; else NULL
    bool shows_attention; // weights of layers are outputs too
    int64_t n_positions;  // a step of decoding: the maximum number of positions
    attncl_dtype
        state_dtype; // of the keys and values, or rows of gMLP, that decoding keeps: F32, F16, BF16
    bool gradients;  // gradients of this graph will be requested
    bool for_loss;   // "output" becomes `scores`, other outputs are not named
    attncl_value scores;          // of classes, [..., V]
    struct dropout_sites dropout; // training; zeros: nothing is dropped
};

// Names an output.
void attncl__output(struct build *b, const char *name, attncl_value value);

// A rank that may be anything, and an extent where its axis needs no letter (model/probe.h).
enum { ANY = -1 };

// Whether an optional input is given: asked before it is declared.
bool attncl__input_given(const struct build *b, const char *name);

// The input's array, NULL when it is absent.
const attncl_array *attncl__input_find(const struct build *b, const char *name);

// Declares an input of the given shape.  ERR_ARGUMENT when it is missing, ERR_SHAPE, ERR_DTYPE.
attncl_status attncl__input_real(struct build *b, const char *name, int rank, const int64_t *dim,
                                 attncl_value *ret);
// [..., dim]: any axes in front of the `n` given ones.
attncl_status attncl__input_trailing(struct build *b, const char *name, int n, const int64_t *dim,
                                     attncl_value *ret);
// Integers in [0, high), I32 or I64 in the file: tokens and targets.
attncl_status attncl__input_index(struct build *b, const char *name, int rank, const int64_t *dim,
                                  int64_t high, attncl_value *ret);
// Any integers, I32 or I64 in the file.
attncl_status attncl__input_int(struct build *b, const char *name, int rank, const int64_t *dim,
                                attncl_value *ret);
// An optional mask [T or 1, T, B or 1], BOOL or U8; a batch axis of 1 only when n_batch is 1.
// Absent: the null value.
attncl_status attncl__input_mask(struct build *b, int64_t n_seq, int64_t n_batch,
                                 attncl_value *ret);
// The same for queries and keys of different numbers: [T or 1, S, B or 1].
attncl_status attncl__input_pair_mask(struct build *b, int64_t n_queries, int64_t n_keys,
                                      int64_t n_batch, attncl_value *ret);
// Optional lengths, input valid_lens: [B] or [B, Q].  Absent: the null value.
attncl_status attncl__input_lens(struct build *b, int64_t n_batch, int64_t n_queries,
                                 attncl_value *ret);
// [T, B, width] or, by the layout, [B, T, width], with T at most `limit` (0: any).
attncl_status attncl__input_sequence(struct build *b, attncl_layout layout, const char *name,
                                     int64_t width, int64_t limit, attncl_value *ret);

// ERR_SHAPE when an input is longer than the model takes.
attncl_status attncl__check_length(const char *name, int64_t n_seq, int64_t limit);

#endif
