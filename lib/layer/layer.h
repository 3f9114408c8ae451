// SPDX-License-Identifier: MIT
// Shared by the layers.  A layer adds nodes to a graph; it never launches anything.  Activation, gate
// and residual become part of the preceding linear map (attncl_linear_fused()).
#ifndef ATTNCL_LAYER_LAYER_H
#define ATTNCL_LAYER_LAYER_H

#include <stdbool.h>

#include "attncl/aft.h"
#include "attncl/attention.h"
#include "attncl/dropout.h"
#include "attncl/feedback.h"
#include "attncl/gmlp.h"
#include "attncl/ops.h"
#include "attncl/recurrent.h"
#include "graph/graph.h"

// Copies a caller's struct of any version over the defaults in *to.  False: the graph has failed.
bool attncl__layer_struct(attncl_graph *g, const char *type, void *to, size_t size,
                          const void *from);
#define LAYER_STRUCT(g, type, to, from) attncl__layer_struct((g), #type, (to), sizeof(type), (from))

// Copies a struct back to a caller's of any version.
void attncl__layer_struct_write(attncl_graph *g, const char *type, void *to, const void *from,
                                size_t size);
#define LAYER_STRUCT_WRITE(g, type, to, from)                                                      \
    attncl__layer_struct_write((g), #type, (to), (from), sizeof(type))

// Copies an array of n structs, whose stride is the first one's struct_size; defaults are zero.
// Release with attncl__free().  NULL: the graph has failed.
void *attncl__layer_structs(attncl_graph *g, const char *type, size_t size, const void *from,
                            size_t n);
#define LAYER_STRUCTS(g, type, from, n) attncl__layer_structs((g), #type, sizeof(type), (from), (n))

// Fails the graph if the caller gave an input that the layer does not have.
bool attncl__layer_check_absent(attncl_graph *g, attncl_value v, const char *name);

// Fails the graph unless the layout is one of the two.
bool attncl__layer_check_layout(attncl_graph *g, attncl_layout layout);

// Fails the graph unless n_heads divides width.
bool attncl__layer_check_heads(attncl_graph *g, int64_t n_heads, int64_t width);

// Copies the shape of a required input.  False if the graph has failed, or fails now because `v` is
// null; the builder then returns ATTNCL_NONE_VALUE.
bool attncl__layer_shape(attncl_graph *g, attncl_value v, const char *name,
                         struct tensor_desc *ret);

// attncl__layer_shape() that also fails unless the value has `rank` axes; `axes` names them in the
// message: "[T, B, C]".
bool attncl__layer_axes(attncl_graph *g, attncl_value v, const char *name, int rank,
                        const char *axes, struct tensor_desc *ret);

// A linear map in its own scope; the same kernel adds `residual`, if not null.
attncl_value attncl__layer_project(attncl_graph *g, const char *scope, attncl_value x,
                                   attncl_value weight, attncl_value bias, attncl_value residual);

// cap tanh(x / cap), elementwise.
attncl_value attncl__softcap(attncl_graph *g, attncl_value x, float cap);
// attncl_embedding() without a gradient of row `padding`; -1: of all rows.
attncl_value attncl__embedding_padded(attncl_graph *g, attncl_value tokens, attncl_value weight,
                                      float scale, int64_t padding);

// A layer norm in its own scope.  eps 0: the default.
attncl_value attncl__layer_normalise(attncl_graph *g, const char *scope, attncl_value x,
                                     attncl_value weight, attncl_value bias, double eps);

// Copies a caller's dropout (NULL: none) and sets its op's parameters.  False: the graph has failed.
bool attncl__layer_dropout(attncl_graph *g, const attncl_dropout_desc *given,
                           attncl_dropout_desc *ret, struct dropout_fwd_params *params_ret);

// attncl_average_update() that leaves the average unchanged if the scalar `guard` is NaN.
void attncl__layer_average_update(attncl_graph *g, attncl_value average, attncl_value value,
                                  attncl_value guard, double decay);

static inline bool attncl__given(attncl_value v)
{
    return v.id != 0;
}

// Fills table [n_positions, n_channels] with sinusoids, each rounded once from double.
void attncl__sinusoid_fill(float *table, int64_t n_positions, int64_t n_channels);

// -- recurrent.c, also for the attention decoder (bahdanau.c)

// Row `position`, I32 [1], of x [T, ...]; null: all of x.  A null x stays null.
attncl_value attncl__layer_row_at(attncl_graph *g, attncl_value x, attncl_value position);
// Index `at` of axis 0 or 1 of a rank-3 value, as a rank-2 view.
attncl_value attncl__layer_row(attncl_graph *g, attncl_value x, int axis, int64_t at);
// [B, C] reshaped to [1, B, C] (axis 0) or [B, 1, C] (axis 1).
attncl_value attncl__layer_step_axis(attncl_graph *g, attncl_value x, const char *name, int axis);

// One step, from the projected input xi [B, 3 H].
attncl_value attncl__gru_cell(attncl_graph *g, const attncl_gru_params *params, attncl_value xi,
                              attncl_value h);

// The layers, copied; owned by the caller.  NULL: the graph has failed.
attncl_gru_params *attncl__gru_layers_read(attncl_graph *g, const attncl_gru_params *layers,
                                           size_t n_layers, const attncl_value *states);
// Pushes the scope of layer k; the caller pops it.
void attncl__gru_layer_push(attncl_graph *g, size_t k);

// -- decoding layers: a step x [B, C] at a position, or a whole prompt x [T, B, C], which leaves the
// state that steps 0 .. T - 1 would.  Both create their states in the same order with the same shapes,
// so their graphs can share them (attncl__graph_share_state).  residual may be null.

// Position or last is null.
struct decode_at {
    attncl_value position; // a step's position
    // The index of a prompt's last token, I32 [1], at most T - 1.  Padding may follow; its keys and values
    // are not stored, or are overwritten by later steps before they are read.
    attncl_value last;
    // `last` if the result is this row alone, [B, C], as `residual` then is; null: all rows.
    attncl_value row;
};

// dtype: of the rings, F32, F16 or BF16.  Sums stay F32.
attncl_value attncl__aft_decode(attncl_graph *g, const attncl_aft_desc *desc,
                                const attncl_aft_params *params, attncl_dtype dtype, attncl_value x,
                                const struct decode_at *at, attncl_value residual);

// A cache of keys and values, [limit, B, C] each.  Prompts, like steps, attend to the stored, rounded
// rows.
struct cache_desc {
    int64_t limit;      // positions; in a prefill at least T.  Rows are fewer where a window is
    attncl_dtype dtype; // F32, F16 or BF16; with multi-head attention also Q8
    const attncl_attention_desc *desc; // without dropout; causal, time first
    attncl_value last, row;            // of a prompt, as in decode_at
    attncl_value last_position;        // of row `last`, I32 [1]; read with `row`
};
// position: of a step; or [T B], each row's, of a prompt x [T, B, C] that continues a sequence.  Null:
// a prompt from position 0 on.
attncl_value attncl__multi_head_attention_decode(attncl_graph *g, const attncl_mha_params *params,
                                                 int64_t n_heads, const struct cache_desc *cache,
                                                 attncl_value x, attncl_value position,
                                                 attncl_value residual);

// dtype: of the history, F32, F16 or BF16.
attncl_value attncl__gmlp_decode(attncl_graph *g, const attncl_gmlp_params *params,
                                 attncl_dtype dtype, attncl_value x, const struct decode_at *at);

// Stores rows [T, B, C] in a state from position 0 on.  Returns the rounded rows.
attncl_value attncl__store_rows(attncl_graph *g, attncl_value x, attncl_dtype dtype,
                                attncl_value state);

// A prompt's steps run one after another on the device.  cache: of the memories' keys and values,
// [limit - 1, B, C] each.
attncl_value attncl__feedback_transformer_decode(attncl_graph *g,
                                                 const attncl_feedback_transformer_params *params,
                                                 const struct cache_desc *cache, attncl_value x,
                                                 const struct decode_at *at,
                                                 attncl_value *memory_ret);

// -- sampling.c: drawing tokens on the device

enum { SAMPLING_WORDS = 4, SAMPLING_ROWS = 256 };

// Sets the words of input "sampling", which give the top_k best tokens (0: all) the weights
// exp(score / temperature); temperature 0: the best token.
void attncl__sampling_words(double temperature, int64_t top_k, uint64_t seed,
                            int32_t words[SAMPLING_WORDS]);

// Draws a token from each row of logits [B, V] by input "sampling".  State `step`, I32 [1 + B], is a
// position and its tokens, and moves on to the next position with the drawn tokens.  Row (position mod
// SAMPLING_ROWS) of state "drawn" [SAMPLING_ROWS, B] gets them too, -1 where scores are not finite.
// `window`, or null: state [W, B] of the last tokens; it drops the first and takes the new ones.
void attncl__sample(attncl_graph *g, attncl_value logits, attncl_value step, attncl_value window);

#endif
