// SPDX-License-Identifier: MIT
// The settings, parameters and nodes of what models consist of.
#ifndef ATTNCL_MODEL_BLOCK_MODELS_H
#define ATTNCL_MODEL_BLOCK_MODELS_H

#include "attncl/feedback.h"
#include "layer/layer.h"
#include "model/arch.h"
#include "model/block_layers.h"

// -- block_embed.c: tokens to vectors: embedding(tokens) * scale + positions, then a layer norm where there is one

enum embed_positions { EMBED_FIXED, EMBED_LEARNED, EMBED_NO_POSITIONS };
struct embed_settings {
    const char *name; // NULL: src_embed
    enum embed_positions positions;
    int64_t n_vocab, width;
    int64_t max_len; // rows of the table of positions
    int64_t limit;   // longest sequence of positions and layers, 0: any
    double scale;
    bool norm;
    double norm_eps;
    bool dropped; // in training, as the first place of dropout
};

// The keys; _plain: without positions, for layers that know the order of tokens themselves; _sized: without n_vocab.
extern const struct key attncl__embed_keys[], attncl__embed_plain_keys[],
    attncl__embed_sized_keys[];
// `layers_limit`: the longest sequence that the layers take, 0: any.
void attncl__embed_set_limit(struct embed_settings *s, int64_t layers_limit);

// tokens [T, B] -> [T, B, C] or, by the layout, [B, T] -> [B, T, C].  At a position: [B] -> [B, C].
attncl_value attncl__embed(struct build *b, const struct embed_settings *s, attncl_value tokens,
                           attncl_value position, attncl_layout layout);
// Scores of tokens, [..., C] -> [..., V].  A tied weight is the embedding's, no parameter of its own.
attncl_value attncl__generator(struct build *b, const struct embed_settings *s, const char *name,
                               bool tied, enum presence has_bias, attncl_value x);

// -- block_encoder.c: a layer of an encoder, which is a gMLP block, or an AFT layer or multi-head attention and a
// feed-forward network; and the encoder

// What `layer` may be: an AFT layer's kind, or one of these.
enum { LAYER_GMLP = 100, LAYER_TRANSFORMER, LAYER_FEEDBACK, LAYER_FEEDBACK_KV };
// Their words.  The first are layers of a language model that no encoder has.
enum { N_LM_ONLY_LAYERS = 2 };
extern const struct choice attncl__lm_layers[];
struct block_settings {
    int layer;
    bool norm_first;   // x + f(LN(x)), else LN(x + f(x))
    bool post_norm;    // x + LN''(f(LN(x)))
    bool parallel;     // x + attn(LN(x)) + FF(LN'(x)), layer norms of the same x
    bool reads_memory; // attends to an encoder's result too: a transformer's alone
    enum norm_kind norm;
    double norm_eps;
    struct gmlp_settings gmlp;
    struct aft_settings aft;
    struct mha_settings mha;
    struct ffn_settings ffn;
};
extern const struct key attncl__block_keys[];
const char *attncl__layer_word(int layer);
int64_t attncl__block_width(const struct block_settings *s);
int64_t attncl__block_limit(const struct block_settings *s); // longest sequence, 0: none
// Whether a step keeps something of every position before it, so that decoding needs a limit.
bool attncl__block_keeps_all(const struct block_settings *s);
// Whether its step keeps state of the type that is asked for; else F32.
bool attncl__block_state_has_type(const struct block_settings *s);

// What layers work on: x [T, B, C] or, by the layout, [B, T, C]; with a position, [B, C] of one
// position of a causal sequence.  With `last`, x is a prompt that fills the state of decoding
// (layer/layer.h), and the encoder's result is its row `last`, [B, C].
struct block_call {
    bool causal;
    attncl_value mask;       // null: none
    attncl_value valid_lens; // [B], how many positions are seen; null: all.  As `layout`
    attncl_value position;
    attncl_value last;    // of a prompt, for decoding: the position of its last token; null: none
    attncl_layout layout; // batch first: layers of a transformer alone
    // Of layers that read a memory: [S, B, C] or, by the layout, [B, S, C], and the length of each; null: all of it.
    attncl_value memory, memory_lens;
    // At a position: rows of x that share a memory, and the memories' extents [B, S] (block_memory.c).
    int64_t n_beams, memory_dim[2];
};
attncl_value attncl__block(struct build *b, const struct block_settings *s,
                           const struct block_call *call, attncl_value x);

// A stack of them and, where there is one, a layer norm.
struct encoder_settings {
    struct block_settings block;
    int64_t n_layers;
    enum presence final_norm;
    double final_norm_eps;
    // Which layers have the block's window and turn by position, and theta of those with a window; 0: the block's.
    struct json_flags window_layers, rope_layers;
    double rope_local_theta;
};
// The rows of key final_norm: layers whose norms come first need one behind the last.
#define FINAL_NORM_KEYS(at)                                                                        \
    {"final_norm", KEY_PRESENCE, (at), OR(PRESENT_ALWAYS), WHEN("norm_first", "true")},            \
    {                                                                                              \
        "final_norm", KEY_PRESENCE, (at), OR(PRESENT_IF_IN_FILE), WHEN("norm_first", "false")      \
    }
extern const struct key attncl__encoder_keys[];
attncl_value attncl__encoder(struct build *b, const struct encoder_settings *s,
                             const struct block_call *call, attncl_value x);

// -- block_memory.c: layers that read a memory at a position: its keys and values are state, computed once

// Projects the memory [B, S, C] for each layer of a decoder, whose step then finds it.
void attncl__memory_store(struct build *b, const struct encoder_settings *s, attncl_value memory);
// x + attn(z, memory, memory) for rows z, x [B n_beams, C].
attncl_value attncl__memory_attention_step(struct build *b, const struct mha_settings *s,
                                           const struct block_call *call,
                                           const attncl_mha_params *params, attncl_value z,
                                           attncl_value x);

// -- block_feedback.c: a feedback transformer, its layers and its attention

struct feedback_settings {
    int64_t d_model, n_heads, n_layers;
    int64_t n_positions; // P
    int split;           // scores
    bool shared;         // one projection of keys and values for all layers
    struct ffn_settings ffn;
    double norm_eps;
};

// One projection of keys and values for all layers: _kv.
extern const struct key attncl__feedback_attention_keys[], attncl__feedback_layer_keys[],
    attncl__feedback_keys[], attncl__feedback_kv_keys[];
int64_t attncl__feedback_limit(const struct feedback_settings *s); // longest sequence
// x [T, B, C] -> [T, B, C] and, with memory_ret, the memories; [B, C] at a position -> [B, C].
// With `last`, x is a prompt that fills the state of steps, and the result is its row `last`,
// [B, C] (layer/layer.h).
attncl_value attncl__feedback(struct build *b, const struct feedback_settings *s, attncl_value x,
                              struct decode_at at, attncl_value *memory_ret);

// What the attention of a layer has parameters for.
enum feedback_keys {
    KEYS_OWN,       // projects keys and values itself
    KEYS_PROJECTED, // is given projected ones
};
void attncl__feedback_attention_params(struct params *p, const struct feedback_settings *s,
                                       enum feedback_keys keys, attncl_feedback_params *ret);

// What a layer's parameters point to.
struct feedback_parts {
    attncl_feedback_params attn;
    attncl_ffn_params ffn;
};
// `ret` points into `parts`.
void attncl__feedback_layer_params(struct params *p, const struct feedback_settings *s,
                                   enum feedback_keys keys, struct feedback_parts *parts,
                                   attncl_feedback_layer_params *ret);

// -- arch_lm.c: a language model

struct lm_settings {
    int layer;
    bool norm_first;  // of a feedback transformer; it knows no other order
    bool is_feedback; // a feedback transformer, else an encoder with a causal mask
    struct encoder_settings encoder;
    struct feedback_settings feedback;
    struct embed_settings embed;
    bool tied;            // the generator's weight is the embedding's
    double logit_softcap; // 0: none
    enum presence generator_bias;
};

extern const struct key attncl__lm_keys[];
int64_t attncl__lm_limit(const void *settings); // longest sequence, 0: any

// -- arch_seq2seq_transformer.c: an encoder and a decoder of transformer layers, of which training and prediction are made

struct seq2seq_transformer_settings {
    struct encoder_settings encoder, decoder;
    struct embed_settings source, target; // n_vocab 0: the inputs are vectors, not tokens
    bool tied;                            // the generator's weight is the target's embedding
    bool batch_first;                     // of vectors; tokens are
};
extern const struct key attncl__seq2seq_transformer_keys[];

// Declares the source's inputs and computes the encoder's result: [B, S, C], or of vectors as the layout says.
attncl_value attncl__seq2seq_encode(struct build *b, const struct seq2seq_transformer_settings *s,
                                    attncl_layout layout, attncl_value *lens_ret);
// The decoder of x, and scores of its target's tokens where it has tokens.
attncl_value attncl__seq2seq_decode(struct build *b, const struct seq2seq_transformer_settings *s,
                                    const struct block_call *call, attncl_value x);

#endif
