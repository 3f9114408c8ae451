// SPDX-License-Identifier: MIT
// A layer of an encoder: a gMLP block, or an AFT layer or multi-head attention and a feed-forward
// network; and the encoder.
#ifndef ATTNCL_MODEL_BLOCK_ENCODER_H
#define ATTNCL_MODEL_BLOCK_ENCODER_H

#include "model/block_aft.h"
#include "model/block_ffn.h"
#include "model/block_gmlp.h"
#include "model/block_mha.h"
#include "model/config.h"
#include "model/inputs.h"

enum block_kind { BLOCK_AFT, BLOCK_GMLP, BLOCK_TRANSFORMER };
// What `layer` may be: an AFT layer's kind, or one of these.
enum { LAYER_GMLP = 100, LAYER_TRANSFORMER, LAYER_FEEDBACK, LAYER_FEEDBACK_KV };
// Their words.  The first are layers of a language model that no encoder has.
enum { N_LM_ONLY_LAYERS = 2 };
extern const struct choice attncl__lm_layers[];
struct block_settings {
    int layer;
    enum block_kind kind;
    bool norm_first; // x + f(LN(x)), else LN(x + f(x))
    double norm_eps;
    struct gmlp_settings gmlp;
    struct aft_settings aft;
    struct mha_settings mha;
    struct ffn_settings ffn;
};
extern const struct key attncl__block_keys[];
void attncl__block_load(struct params *p, const struct block_settings *s);
const char *
attncl__block_name(const struct block_settings *s); // the configuration's word for its layer
int64_t attncl__block_width(const struct block_settings *s);
int64_t attncl__block_limit(const struct block_settings *s); // longest sequence, 0: none
// Whether a step keeps something of every position before it, so that decoding needs a limit.
bool attncl__block_keeps_all(const struct block_settings *s);
// Whether its step keeps state of the type that is asked for; else F32.
bool attncl__block_state_has_type(const struct block_settings *s);
int64_t attncl__block_mask_batch(const struct block_settings *s, int64_t n_batch);

// What layers work on: x [T, B, C] or, by the layout, [B, T, C]; with a position, [B, C] of one
// position of a causal sequence.  With `last`, x is a prompt that fills the state of decoding
// (layer/prefill.h), and the encoder's result is its row `last`, [B, C].
struct block_call {
    bool causal;
    attncl_value mask;       // null: none
    attncl_value valid_lens; // [B], how many positions are seen; null: all.  As `layout`
    attncl_value position;
    attncl_value last;    // of a prompt, for decoding: the position of its last token; null: none
    attncl_layout layout; // batch first: layers of kind BLOCK_TRANSFORMER alone
};
attncl_value attncl__block(struct build *b, const struct block_settings *s,
                           const struct block_call *call, attncl_value x);

// A stack of them and, where there is one, a layer norm.
struct encoder_settings {
    struct block_settings block;
    int64_t n_layers;
    enum presence final_norm;
    double final_norm_eps;
};
extern const struct key attncl__encoder_keys[];
void attncl__encoder_load(struct params *p, const struct encoder_settings *s);
attncl_value attncl__encoder(struct build *b, const struct encoder_settings *s,
                             const struct block_call *call, attncl_value x);

#endif
