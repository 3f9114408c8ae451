// SPDX-License-Identifier: MIT
// Tokens to vectors: embedding(tokens) * scale + positions, then a layer norm where there is one.
#ifndef ATTNCL_MODEL_BLOCK_EMBED_H
#define ATTNCL_MODEL_BLOCK_EMBED_H

#include "attncl/kinds.h"
#include "model/config.h"
#include "model/inputs.h"

enum embed_positions { EMBED_FIXED, EMBED_LEARNED, EMBED_NO_POSITIONS };
struct embed_settings {
    enum embed_positions positions;
    int64_t n_vocab, width;
    int64_t max_len; // rows of the table of positions
    int64_t limit;   // longest sequence of positions and layers, 0: any
    double scale;
    bool norm;
    double norm_eps;
};

// The keys; _plain: without positions, for layers that know the order of tokens themselves.
extern const struct key attncl__embed_keys[], attncl__embed_plain_keys[];
// `layers_limit`: the longest sequence that the layers take, 0: any.
void attncl__embed_set_limit(struct embed_settings *s, int64_t layers_limit);

void attncl__embed_load(struct params *p, const struct embed_settings *s);

// tokens [T, B] -> [T, B, C] or, by the layout, [B, T] -> [B, T, C].  At a position: [B] -> [B, C].
attncl_value attncl__embed(struct build *b, const struct embed_settings *s, attncl_value tokens,
                           attncl_value position, attncl_layout layout);
// The embedding's own weight [V, C], once more.
attncl_value attncl__embed_weight(struct build *b, const struct embed_settings *s);

#endif
