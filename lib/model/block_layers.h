// SPDX-License-Identifier: MIT
// Settings and parameters of layers, and of an optimiser.
#ifndef ATTNCL_MODEL_BLOCK_LAYERS_H
#define ATTNCL_MODEL_BLOCK_LAYERS_H

#include "attncl/aft.h"
#include "attncl/attention.h"
#include "attncl/gmlp.h"
#include "attncl/optim.h"
#include "attncl/recurrent.h"
#include "attncl/transformer.h"
#include "model/inputs.h"

// -- block_layers.c

// A layer norm with a name.

// The row of key layer_norm_eps, for all norms of a model except an encoder's final norm.
#define NORM_EPS_KEY(at)                                                                           \
    {                                                                                              \
        "layer_norm_eps", KEY_NUMBER, (at), .min = 1e-30, OR(1e-5)                                 \
    }

enum norm_kind { NORM_LAYER, NORM_RMS }; // RMS norm has no bias
struct norm_params {
    const char *name;
    enum norm_kind kind;
    attncl_value weight, bias; // [width]
};
struct norm_params attncl__norm_params(struct params *p, const char *name, enum norm_kind kind,
                                       int64_t width);
// A norm that the file may lack; then both values are null.
struct norm_params attncl__norm_optional(struct params *p, const char *name, int64_t width);

attncl_value attncl__add_norm(struct build *b, struct norm_params norm, double eps, attncl_value x);

// A feed-forward network.

// Activations by their PyTorch class ("ReLU") or function name ("relu"), for any_case.
extern const struct choice attncl__activation_choices[];

struct ffn_settings {
    int64_t d_model, d_ff;
    attncl_activation activation;
    bool gated, bias1, bias2, bias_gate;
};
extern const struct key attncl__ffn_keys[];
void attncl__ffn_params(struct params *p, const struct ffn_settings *s, attncl_ffn_params *ret);

// An AFT layer.

struct aft_settings {
    attncl_aft_kind kind;
    int64_t d_model;
    int64_t seq_len; // 0: no limit
    int64_t window;
    int64_t heads, filter; // AFT-conv: biases [heads, filter]
    bool bias;
};
extern const struct key attncl__aft_local_keys[], attncl__aft_full_keys[],
    attncl__aft_simple_keys[], attncl__aft_conv_keys[];
void attncl__aft_params(struct params *p, const struct aft_settings *s, attncl_aft_params *ret);
attncl_aft_desc attncl__aft_desc(const struct aft_settings *s, bool causal);

// Multi-head attention.

struct mha_settings {
    int64_t d_model, heads, n_kv_heads;
    int64_t head_dim;
    bool bias, value_bias, output_bias; // bias: of queries and keys
    bool qk_norm;                       // RMS norm of each head's queries and keys
    bool rope;                          // queries and keys are rotated by their positions
    attncl_rotary_desc rotary;
    bool rope_truncate; // the desc's truncate, an int
    bool is_local;      // uses the rotation table of layers with a window
    int64_t window;     // a query sees keys at distances below this; 0: all
    double scale;       // of the scores; 0: 1 / sqrt(head_dim)
    double softcap;     // of the scores; 0: none
    bool alibi;         // adds slopes times distances to the scores
    double alibi_max;   // attncl_alibi_slopes()'s `max`
    // The desc's factors for short texts and for long ones.
    struct json_numbers rope_short, rope_long;
};
extern const struct key attncl__mha_keys[];
void attncl__mha_params(struct params *p, const struct mha_settings *s, attncl_mha_params *ret);
// Scale, soft cap, window, slopes, and rotations for positions below n.
attncl_attention_desc attncl__mha_desc(struct build *b, const struct mha_settings *s, int64_t n);

// A spatial gating unit and a gMLP block.

struct sgu_settings {
    int64_t d_z, seq_len;
    double norm_eps;
};
extern const struct key attncl__sgu_keys[];
void attncl__sgu_params(struct params *p, const struct sgu_settings *s, attncl_sgu_params *ret);

struct gmlp_settings {
    int64_t d_model, d_ffn, seq_len;
    double norm_eps;
};
extern const struct key attncl__gmlp_keys[];
// Sets ret->sgu to `gate`.
void attncl__gmlp_params(struct params *p, const struct gmlp_settings *s, attncl_sgu_params *gate,
                         attncl_gmlp_params *ret);

// -- block_rnn.c: recurrent layers

struct rnn_settings {
    int64_t input, hidden, n_layers;
    bool xavier;             // how a new model's weights are initialised
    bool bidirectional;      // every layer is two, the second reversed
    attncl_activation plain; // as in attncl_gru_params
};

// n layers, each with a state.  Without a graph all layers share one.
struct rnn {
    size_t n;
    attncl_gru_params *layers;
    attncl_value *states; // null values: zeros
    attncl_dropout_desc *dropped;
};
// False: the build has failed, and there is nothing to free.
bool attncl__rnn_create(struct build *b, int64_t n_layers, struct rnn *ret);
void attncl__rnn_free(struct rnn *rnn);

// Parameters named weight_ih_l0 and so on, weight_ih_l0_reverse of reversed layers.
void attncl__rnn_params(struct params *p, const struct rnn_settings *s, struct rnn *rnn);

// Gives every layer but the first a dropout of its input.
void attncl__rnn_set_dropout(struct rnn *rnn, attncl_dropout_desc *next);

// The states as [L, B, H].
attncl_value attncl__rnn_stack_states(attncl_graph *g, const struct rnn *rnn);

// -- block_optim.c: an optimiser, and clipping

// An optimiser of any kind: adam, noam, adamw, sgd.
enum optim_kind { OPTIM_ADAM, OPTIM_ADAMW, OPTIM_SGD, OPTIM_NOAM };
struct optim_settings {
    struct optim_values { // as read from the configuration
        enum optim_kind kind;
        double learning_rate, betas[2], eps, weight_decay, momentum, dampening, warmup;
        bool optimized, decoupled, amsgrad, nesterov;
        int64_t d_model;
    } read;
    bool is_sgd, is_noam; // else Adam
    attncl_adam_desc adam;
    attncl_sgd_desc sgd;
    attncl_schedule_desc schedule; // Noam's, or a constant rate
};
extern const struct key attncl__optim_keys[];

// The names of an optimiser's states per parameter, as in PyTorch ("exp_avg"); returns their number.
enum { OPTIM_MAX_STATES = 3 };
size_t attncl__optim_states(const struct optim_settings *s,
                            const char *names_ret[OPTIM_MAX_STATES]);

// The rates that a step's parameters share.  learning_rate: F32 []; null: as configured.
attncl_value attncl__optim_rates(attncl_graph *g, const struct optim_settings *s,
                                 attncl_value learning_rate, attncl_value step);

// Replaces a parameter and its states by their values after a step.  `states` are in the order of
// attncl__optim_states(), then null; SGD's may be null before the first step.
void attncl__optim_step(attncl_graph *g, const struct optim_settings *s, attncl_value rates,
                        attncl_value grad, attncl_value *param, attncl_value *states);
// A step in place.
void attncl__optim_update(attncl_graph *g, const struct optim_settings *s, attncl_value rates,
                          attncl_value grad, attncl_value param, const attncl_value *states);

// "torch" and "d2l".
extern const struct choice attncl__clip_choices[];

#endif
