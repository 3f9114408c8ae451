// SPDX-License-Identifier: MIT
// Settings, parameters and nodes of the building blocks of models.
#ifndef ATTNCL_MODEL_BLOCK_MODELS_H
#define ATTNCL_MODEL_BLOCK_MODELS_H

#include "attncl/feedback.h"
#include "layer/layer.h"
#include "model/arch.h"
#include "model/block_layers.h"

// -- block_embed.c: embedding(tokens) * scale + positions, then an optional layer norm

enum embed_positions { EMBED_FIXED, EMBED_LEARNED, EMBED_NO_POSITIONS };
struct embed_settings {
    const char *name; // NULL: src_embed
    enum embed_positions positions;
    int64_t n_vocab, width;
    int64_t max_len; // rows of the position table
    int64_t limit;   // longest sequence that table and layers take, 0: any
    int64_t padding; // the token whose row has no gradient as an input; -1: none
    double scale;
    bool norm;
    double norm_eps;
    bool dropped; // dropout in training
};

// _plain: without positions, for layers that encode the order of tokens; _sized: without n_vocab.
extern const struct key attncl__embed_keys[], attncl__embed_plain_keys[],
    attncl__embed_sized_keys[];
// layers_limit: the longest sequence that the layers take, 0: any.
void attncl__embed_set_limit(struct embed_settings *s, int64_t layers_limit);

// tokens [T, B] -> [T, B, C] or, by the layout, [B, T] -> [B, T, C].  At a position: [B] -> [B, C].
attncl_value attncl__add_embedding(struct build *b, const struct embed_settings *s,
                                   attncl_value tokens, attncl_value position,
                                   attncl_layout layout);
// Token scores, [..., C] -> [..., V].  tied: the weight is the embedding's.
attncl_value attncl__add_generator(struct build *b, const struct embed_settings *s,
                                   const char *name, bool tied, enum presence has_bias,
                                   attncl_value x);

// -- block_encoder.c: an encoder and its layers: gMLP blocks, or AFT or multi-head attention with a
// feed-forward network

// Values of `layer`: an AFT kind, or one of these.
enum { LAYER_GMLP = 100, LAYER_TRANSFORMER, LAYER_FEEDBACK, LAYER_FEEDBACK_KV };
// The words for them.  The first N_LM_ONLY_LAYERS are not layers of an encoder.
enum { N_LM_ONLY_LAYERS = 2 };
extern const struct choice attncl__lm_layers[];
struct block_settings {
    int layer;
    bool norm_first;   // x + f(LN(x)), else LN(x + f(x))
    bool post_norm;    // x + LN''(f(LN(x)))
    bool parallel;     // x + attn(LN(x)) + FF(LN'(x))
    bool reads_memory; // also attends to an encoder's output; transformer layers only
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
// Whether a step caches every position, so that decoding needs a limit.
bool attncl__block_has_kv_cache(const struct block_settings *s);
// Whether a step's state can have a type other than F32.
bool attncl__block_state_has_type(const struct block_settings *s);

// The input x of layers is [T, B, C] or, by the layout, [B, T, C]; with a position, [B, C] at that
// position.  With `last`, x is a prompt that fills the decoding state (layer/layer.h), and the encoder
// returns its row `last`, [B, C].
struct block_call {
    bool causal;
    attncl_value mask;       // null: none
    attncl_value valid_lens; // [B], how many positions are seen; null: all
    attncl_value position;
    attncl_value last;          // row of a prompt's last token; null: not a prompt
    attncl_value row;           // `last` in the last layer, which returns this row alone
    attncl_value last_position; // of a prompt's last token, I32 [1]
    attncl_layout layout;       // batch first: transformer layers only
    // The memory [S, B, C] or, by the layout, [B, S, C], and its lengths; null: all of it.
    attncl_value memory, memory_lens;
    // At a position: rows of x that share a memory, and the memories' extents [B, S] (block_memory.c).
    int64_t n_beams, memory_dim[2];
};
attncl_value attncl__add_block(struct build *b, const struct block_settings *s,
                               const struct block_call *call, attncl_value x);

// A stack of layers and an optional layer norm.
struct encoder_settings {
    struct block_settings block;
    int64_t n_layers;
    enum presence final_norm;
    double final_norm_eps;
    struct json_flags window_layers, rope_layers; // layers that use the block's window, rotations
    double rope_local_theta;                      // theta of layers with a window; 0: the block's
};
// The rows of key final_norm: layers with norm_first need a norm after the last one.
#define FINAL_NORM_KEYS(at)                                                                        \
    {"final_norm", KEY_PRESENCE, (at), OR(PRESENT_ALWAYS), WHEN("norm_first", "true")},            \
    {                                                                                              \
        "final_norm", KEY_PRESENCE, (at), OR(PRESENT_IF_IN_FILE), WHEN("norm_first", "false")      \
    }
extern const struct key attncl__encoder_keys[];
attncl_value attncl__add_encoder(struct build *b, const struct encoder_settings *s,
                                 const struct block_call *call, attncl_value x);

// -- block_memory.c: attention to a memory in decode steps

// Projects the memory [B, S, C] for each layer of a decoder into state that its steps read.
void attncl__memory_store(struct build *b, const struct encoder_settings *s, attncl_value memory);
// x + attn(z, memory, memory) for rows z, x [B n_beams, C].
attncl_value attncl__memory_attention_step(struct build *b, const struct mha_settings *s,
                                           const struct block_call *call,
                                           const attncl_mha_params *params, attncl_value z,
                                           attncl_value x);

// -- block_feedback.c: a feedback transformer, its layers and its attention

struct feedback_settings {
    int64_t d_model, n_heads, n_layers;
    int64_t n_positions; // rows of key_pos_embeddings, key P
    int split;           // the score is split (lib/op/feedback/feedback_attention.c), else joint
    bool shared;         // one projection of keys and values for all layers
    struct ffn_settings ffn;
    double norm_eps;
};

// _kv: one projection of keys and values for all layers.
extern const struct key attncl__feedback_attention_keys[], attncl__feedback_layer_keys[],
    attncl__feedback_keys[], attncl__feedback_kv_keys[];
int64_t attncl__feedback_limit(const struct feedback_settings *s); // longest sequence
// x [T, B, C] -> [T, B, C] and, with memory_ret, the memories; [B, C] at a position -> [B, C].
// With `last`, x is a prompt that fills the decoding state, and the result is its row `last`, [B, C].
attncl_value attncl__add_feedback(struct build *b, const struct feedback_settings *s,
                                  attncl_value x, struct decode_at at, attncl_value *memory_ret);

enum feedback_keys {
    KEYS_OWN,       // a layer's attention projects keys and values
    KEYS_PROJECTED, // it gets projected ones
};
void attncl__feedback_attention_params(struct params *p, const struct feedback_settings *s,
                                       enum feedback_keys keys, attncl_feedback_params *ret);

// The structs that a layer's parameters point to.
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
    bool norm_first;  // must be true for a feedback transformer
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

// -- arch_seq2seq_transformer.c: an encoder and a decoder of transformer layers

struct seq2seq_transformer_settings {
    struct encoder_settings encoder, decoder;
    struct embed_settings source, target; // n_vocab 0: the inputs are vectors, not tokens
    bool tied;                            // the generator's weight is the target's embedding
    bool batch_first;                     // for vectors; tokens always are
};
extern const struct key attncl__seq2seq_transformer_keys[];

// Declares the source's inputs and adds the encoder; returns [B, S, C] or, by the layout, [S, B, C].
attncl_value attncl__seq2seq_encode(struct build *b, const struct seq2seq_transformer_settings *s,
                                    attncl_layout layout, attncl_value *lens_ret);
// Adds the decoder of x and, if targets are tokens, their scores.
attncl_value attncl__seq2seq_decode(struct build *b, const struct seq2seq_transformer_settings *s,
                                    const struct block_call *call, attncl_value x);

#endif
