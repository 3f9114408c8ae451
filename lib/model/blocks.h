// SPDX-License-Identifier: MIT
// The building blocks of several architectures: settings from the configuration, parameters,
// forward and step.
#ifndef ATTNCL_MODEL_BLOCKS_H
#define ATTNCL_MODEL_BLOCKS_H

#include "attncl/aft.h"
#include "attncl/attention.h"
#include "attncl/feedback.h"
#include "attncl/gmlp.h"
#include "attncl/transformer.h"
#include "io/json.h"
#include "model/inputs.h"

// -- an AFT layer (arch_aft.c)
struct aft_settings {
    attncl_aft_kind kind;
    int64_t d_model;
    int64_t seq_len; // 0: no limit
    int64_t window;
    int64_t heads, filter; // AFT-conv: biases [heads, filter]
    bool bias;
};
attncl_status attncl__aft_configure(const struct json *config, attncl_aft_kind kind,
                                    struct aft_settings *ret);
void attncl__aft_params(struct params *p, const struct aft_settings *s, attncl_aft_params *ret);
attncl_aft_desc attncl__aft_desc(const struct aft_settings *s, bool causal);

// -- a gMLP block (arch_gmlp.c)
struct gmlp_settings {
    int64_t d_model, d_ffn, seq_len;
};
attncl_status attncl__gmlp_configure(const struct json *config, struct gmlp_settings *ret);
// ret->sgu becomes `gate`.
void attncl__gmlp_params(struct params *p, const struct gmlp_settings *s, attncl_sgu_params *gate,
                         attncl_gmlp_params *ret);

// -- multi-head attention (arch_mha.c)
struct mha_settings {
    int64_t d_model, heads;
    bool bias; // of queries and keys; values always have one
};
attncl_status attncl__mha_configure(const struct json *config, struct mha_settings *ret);
void attncl__mha_params(struct params *p, const struct mha_settings *s, attncl_mha_params *ret);

// -- a feed-forward network (arch_transformer.c)
struct ffn_settings {
    int64_t d_model, d_ff;
    attncl_activation activation;
    bool gated, bias1, bias2, bias_gate;
};
attncl_status attncl__ffn_configure(const struct json *config, struct ffn_settings *ret);
void attncl__ffn_params(struct params *p, const struct ffn_settings *s, attncl_ffn_params *ret);

// -- a feedback transformer (arch_feedback.c)
struct feedback_settings {
    int64_t d_model, n_heads, n_layers;
    int64_t n_positions; // P
    bool split;          // scores
    bool shared;         // one projection of keys and values for all layers
    struct ffn_settings ffn;
};
attncl_status attncl__feedback_configure(const struct json *config, bool shared,
                                         struct feedback_settings *ret);
void attncl__feedback_load(struct params *p, const struct feedback_settings *s);
int64_t attncl__feedback_limit(const struct feedback_settings *s); // longest sequence
// x [T, B, C] -> [T, B, C] and, with memory_ret, the memories; [B, C] at a position -> [B, C].
attncl_status attncl__feedback(struct build *b, const struct feedback_settings *s, attncl_value x,
                               attncl_value *y_ret, attncl_value *memory_ret);
attncl_status attncl__feedback_step(struct build *b, const struct feedback_settings *s,
                                    attncl_value x, attncl_value position, attncl_value *y_ret);

// -- a layer of an encoder: a gMLP block, or an AFT layer or multi-head attention and a
// feed-forward network (block.c)
enum block_kind { BLOCK_AFT, BLOCK_GMLP, BLOCK_TRANSFORMER };
struct block_settings {
    enum block_kind kind;
    struct gmlp_settings gmlp;
    struct aft_settings aft;
    struct mha_settings mha;
    struct ffn_settings ffn;
};
attncl_status attncl__block_configure(const struct json *config, struct block_settings *ret);
void attncl__block_load(struct params *p, const struct block_settings *s);
int64_t attncl__block_width(const struct block_settings *s);
int64_t attncl__block_limit(const struct block_settings *s); // longest sequence, 0: none
// Whether a step keeps something of every position before it, so that decoding needs a limit.
bool attncl__block_keeps_all(const struct block_settings *s);
int64_t attncl__block_mask_batch(const struct block_settings *s, int64_t n_batch);
attncl_value attncl__block(struct build *b, const struct block_settings *s, attncl_value x,
                           bool causal, attncl_value mask);
attncl_value attncl__block_step(struct build *b, const struct block_settings *s, attncl_value x,
                                attncl_value position);

// -- a stack of them and a layer norm (block.c)
struct encoder_settings {
    struct block_settings block;
    int64_t n_layers;
};
attncl_status attncl__encoder_configure(const struct json *config, struct encoder_settings *ret);
void attncl__encoder_load(struct params *p, const struct encoder_settings *s);
attncl_value attncl__encoder(struct build *b, const struct encoder_settings *s, attncl_value x,
                             bool causal, attncl_value mask);
attncl_value attncl__encoder_step(struct build *b, const struct encoder_settings *s, attncl_value x,
                                  attncl_value position);

#endif
