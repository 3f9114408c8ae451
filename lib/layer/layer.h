// SPDX-License-Identifier: MIT
// Shared by the layers.  A layer adds nodes to a graph; it never launches anything.  Activation, gate and
// residual go into the linear map that precedes them (attncl_linear_fused()).
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

// The same for an array whose elements lie as far apart as the first one's struct_size; defaults are
// zero.  Released with attncl__free(); NULL: the graph has failed.
void *attncl__layer_structs(attncl_graph *g, const char *type, size_t size, const void *from,
                            size_t n);
#define LAYER_STRUCTS(g, type, from, n) attncl__layer_structs((g), #type, sizeof(type), (from), (n))

// Fails the graph when an input is given that the layer does not have.
bool attncl__layer_absent(attncl_graph *g, attncl_value v, const char *name);

// Fails the graph unless n_heads cut width into equal parts.
bool attncl__layer_heads(attncl_graph *g, int64_t n_heads, int64_t width);

// Copies the shape of an input that must be there.  False when the graph has failed, or fails now
// because `v` is the null value: the builder then returns ATTNCL_NONE_VALUE.
bool attncl__layer_shape(attncl_graph *g, attncl_value v, const char *name,
                         struct tensor_desc *ret);

// attncl__layer_shape(), and fails the graph unless the value has `rank` axes; `axes` names them,
// "[T, B, C]".
bool attncl__layer_axes(attncl_graph *g, attncl_value v, const char *name, int rank,
                        const char *axes, struct tensor_desc *ret);

// A linear map under a scope of its own, `residual` (or null) added by the same kernel.
attncl_value attncl__layer_project(attncl_graph *g, const char *scope, attncl_value x,
                                   attncl_value weight, attncl_value bias, attncl_value residual);

// cap tanh(x / cap), elementwise.
attncl_value attncl__softcap(attncl_graph *g, attncl_value x, float cap);

// A layer norm under a scope of its own.  eps 0: the default.
attncl_value attncl__layer_normalise(attncl_graph *g, const char *scope, attncl_value x,
                                     attncl_value weight, attncl_value bias, double eps);

// Copies a caller's dropout, NULL: none, with what its op takes.  False: the graph has failed.
bool attncl__layer_dropout(attncl_graph *g, const attncl_dropout_desc *given,
                           attncl_dropout_desc *ret, struct dropout_fwd_params *params_ret);

// attncl_average_update(), which leaves the average as it is where `guard` [] is not a number.
void attncl__layer_average_update(attncl_graph *g, attncl_value average, attncl_value value,
                                  attncl_value guard, double decay);

static inline bool attncl__given(attncl_value v)
{
    return v.id != 0;
}

// Fills table [n_positions, n_channels] with sinusoids, each rounded once from double.
void attncl__sinusoid_fill(float *table, int64_t n_positions, int64_t n_channels);

// -- recurrent.c, for the attention decoder (bahdanau.c) too

// Row `position`, I32 [1], of x [T, ...]; null: null.
attncl_value attncl__layer_row_at(attncl_graph *g, attncl_value x, attncl_value position);
// Index `at` of an axis of a value of three, as a view of two.
attncl_value attncl__layer_row(attncl_graph *g, attncl_value x, int axis, int64_t at);
// [B, C] as [1, B, C], or [B, 1, C]: the memory layout is the same either way.
attncl_value attncl__layer_step_axis(attncl_graph *g, attncl_value x, const char *name, int axis);

// A step, from the projected input xi [B, 3 H].
attncl_value attncl__gru_cell(attncl_graph *g, const attncl_gru_params *params, attncl_value xi,
                              attncl_value h);

// The layers, copied; owned by the caller.  NULL: the graph has failed.
attncl_gru_params *attncl__gru_layers_read(attncl_graph *g, const attncl_gru_params *layers,
                                           size_t n_layers, const attncl_value *states);
// The scope of layer k, for the caller to pop.
void attncl__gru_layer_push(attncl_graph *g, size_t k);

// -- layers that decode: a step x [B, C] at a position, or a prompt x [T, B, C] at once, which leaves in the state of the
// layer's step what steps 0 .. T - 1 would.  The states are created in the same order and of the same shapes, so that both
// graphs can share them (attncl__graph_share_state).  residual may be null.

// One of them is null.
struct decode_at {
    attncl_value position; // of a step
    // I32 [1]: a prompt's last token has this position, at most T - 1.  Padding follows it, whose keys and values are
    // not kept, or are overwritten by steps before they are read.
    attncl_value last;
};

// With rings of a type: F32, F16, BF16.  Sums stay F32.
attncl_value attncl__aft_decode(attncl_graph *g, const attncl_aft_desc *desc,
                                const attncl_aft_params *params, attncl_dtype dtype, attncl_value x,
                                const struct decode_at *at, attncl_value residual);

// Of keys and values, [limit, B, C] each.  limit: positions, in a prefill at least T.  Prompts attend to what
// is stored, as steps do.
struct cache_desc {
    int64_t limit;
    attncl_dtype dtype; // F32, F16, BF16, of a step or prompt of multi-head attention Q8
    const attncl_attention_desc *desc; // without dropout; causal, time first
};
// position: of a step, or [T B] of each row of a prompt x [T, B, C] behind tokens that were taken.  Null: a prompt from 0 on.
attncl_value attncl__multi_head_attention_decode(attncl_graph *g, const attncl_mha_params *params,
                                                 int64_t n_heads, const struct cache_desc *cache,
                                                 attncl_value x, attncl_value position,
                                                 attncl_value residual);

// With a history of a type: F32, F16, BF16.  position null: a prompt.
attncl_value attncl__gmlp_decode(attncl_graph *g, const attncl_gmlp_params *params,
                                 attncl_dtype dtype, attncl_value x, attncl_value position);

// Stores rows [T, B, C] from position 0 of a state on; gives them as they are stored.
attncl_value attncl__store_rows(attncl_graph *g, attncl_value x, attncl_dtype dtype,
                                attncl_value state);

// A prompt's steps run one after another, without the host between them.  cache: of the keys and values of memories,
// [limit - 1, B, C] each.
attncl_value attncl__feedback_transformer_decode(attncl_graph *g,
                                                 const attncl_feedback_transformer_params *params,
                                                 const struct cache_desc *cache, attncl_value x,
                                                 const struct decode_at *at,
                                                 attncl_value *memory_ret);

// -- sampling.c: drawing tokens on the device, a step of decoding each

enum { SAMPLING_WORDS = 4, SAMPLING_ROWS = 256 };

// The input "sampling" for weights exp(score / temperature) of the top_k best tokens; top_k 0: all;
// temperature 0: the best one.
void attncl__sampling_words(double temperature, int64_t top_k, uint64_t seed,
                            int32_t words[SAMPLING_WORDS]);

// A token for each row of logits [B, V], by input "sampling" and the position in state `step`, I32
// [1 + B], the position and the tokens of a step: the step of the next position, and row (position
// mod SAMPLING_ROWS) of state "drawn" [SAMPLING_ROWS, B], -1 where scores are not finite.
// `window`: state [W, B], the last tokens, which drops the first and takes the new one; or none.
void attncl__sample(attncl_graph *g, attncl_value logits, attncl_value step, attncl_value window);

#endif
