// SPDX-License-Identifier: MIT
// An encoder and a decoder of transformer layers: what training and prediction share.
#ifndef ATTNCL_MODEL_BLOCK_SEQ2SEQ_H
#define ATTNCL_MODEL_BLOCK_SEQ2SEQ_H

#include "model/block_models.h"

struct seq2seq_transformer_settings {
    struct encoder_settings encoder, decoder;
    struct embed_settings source, target; // n_vocab 0: the inputs are vectors, not tokens
    bool tied;                            // the generator's weight is the target's embedding
    bool batch_first;                     // of vectors; tokens are
};
extern const struct key attncl__seq2seq_transformer_keys[];

// Declares the source's inputs and computes the encoder's result: [B, S, C], or of vectors as the layout says.
attncl_status attncl__seq2seq_encode(struct build *b, const struct seq2seq_transformer_settings *s,
                                     attncl_layout layout, attncl_value *memory_ret,
                                     attncl_value *lens_ret);
// Vectors of target tokens, as attncl__embed().
attncl_value attncl__seq2seq_embed_target(struct build *b,
                                          const struct seq2seq_transformer_settings *s,
                                          attncl_value tokens, attncl_value position);
// The decoder of x, and scores of its target's tokens where it has tokens.
attncl_value attncl__seq2seq_decode(struct build *b, const struct seq2seq_transformer_settings *s,
                                    const struct block_call *call, attncl_value x);

#endif
