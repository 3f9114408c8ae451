// SPDX-License-Identifier: MIT
//
// seq2seq_transformer: the original transformer, an encoder and a decoder that attends to its output.
//
//     memory = encoder(embed(source));   output = projection(decoder(embed(target), memory))

#include <inttypes.h>

#include "model/block_models.h"

static attncl_status check(void *settings)
{
    struct seq2seq_transformer_settings *s = settings;
    struct mha_settings *mha = &s->encoder.block.mha;
    REQUIRE(mha->d_model % mha->heads == 0, ATTNCL_ERR_FORMAT,
            "d_model = %" PRId64 " cannot be cut into heads = %" PRId64, mha->d_model, mha->heads);
    mha->n_kv_heads = mha->heads;
    mha->head_dim = mha->d_model / mha->heads;
    s->encoder.final_norm_eps = s->encoder.block.norm_eps;
    const int64_t n_layers = s->decoder.n_layers, n_target = s->target.n_vocab;
    s->decoder = s->encoder;
    s->decoder.n_layers = n_layers;
    s->decoder.block.reads_memory = true;
    attncl__embed_set_limit(&s->source, 0);
    s->target = s->source;
    s->target.n_vocab = n_target;
    s->target.name = "tgt_embed";
    return ATTNCL_OK;
}

#define BLOCK(field)  AT(seq2seq_transformer_settings, encoder.block.field)
#define TOKENS        UNLESS("src_vocab_size", "0")
#define VECTORS       WHEN("src_vocab_size", "0")
#define WHOLE(field_) AT(seq2seq_transformer_settings, field_)

const struct key attncl__seq2seq_transformer_keys[] = {
    {"src_vocab_size", KEY_INT, WHOLE(source.n_vocab), OR(0)},
    {"tgt_vocab_size", KEY_INT, WHOLE(target.n_vocab), .min = 1, TOKENS},
    SETTING(KEY_WORD, BLOCK(layer), .otherwise = LAYER_TRANSFORMER),
    {"norm_first", KEY_BOOL, BLOCK(norm_first), OR(true)},
    NORM_EPS_KEY(BLOCK(norm_eps)),
    {"d_model", KEY_INT, BLOCK(mha.d_model), .min = 1},
    {"heads", KEY_INT, BLOCK(mha.heads), .min = 1},
    {"bias", KEY_BOOL, BLOCK(mha.bias), OR(true)},
    {"value_bias", KEY_BOOL, BLOCK(mha.value_bias), OR(true)},
    {"output_bias", KEY_BOOL, BLOCK(mha.output_bias), OR(true)},
    KEYS_OF(attncl__ffn_keys, BLOCK(ffn)),
    {"n_layers", KEY_INT, WHOLE(encoder.n_layers), .min = 1},
    {"n_decoder_layers", KEY_INT, WHOLE(decoder.n_layers), .min = 1, OR_AS("n_layers")},
    FINAL_NORM_KEYS(WHOLE(encoder.final_norm)),
    KEYS_OF(attncl__embed_sized_keys, WHOLE(source), TOKENS),
    {"tie_generator", KEY_BOOL, WHOLE(tied), OR(false), TOKENS},
    {"batch_first", KEY_BOOL, WHOLE(batch_first), OR(false), VECTORS},
    CHECK(check),
    {0},
};

static bool has_tokens(const struct seq2seq_transformer_settings *s)
{
    return s->source.n_vocab > 0;
}

// -- the encoder

attncl_value attncl__seq2seq_encode(struct build *b, const struct seq2seq_transformer_settings *s,
                                    attncl_layout layout, attncl_value *lens_ret)
{
    struct block_call call = {.layout = layout};
    attncl_value x = attncl__input(b, "enc_X");
    attncl__check_length(b, "enc_X", 'S', s->source.limit);
    attncl__check_steps(b, "enc_X", 'S');
    *lens_ret = attncl__input(b, "enc_valid_lens");
    if (has_tokens(s))
        x = attncl__add_embedding(b, &s->source, x, ATTNCL_NONE_VALUE, layout);
    call.valid_lens = *lens_ret;
    attncl__params_enter(&b->params, "encoder");
    x = attncl__add_encoder(b, &s->encoder, &call, x);
    attncl__params_leave(&b->params);
    return x;
}

// -- the decoder

attncl_value attncl__seq2seq_decode(struct build *b, const struct seq2seq_transformer_settings *s,
                                    const struct block_call *call, attncl_value x)
{
    attncl__params_enter(&b->params, "decoder");
    x = attncl__add_encoder(b, &s->decoder, call, x);
    attncl__params_leave(&b->params);
    return has_tokens(s) ? attncl__add_generator(b, &s->target, "generator.projection", s->tied,
                                                 PRESENT_ALWAYS, x)
                         : x;
}

// -- whole sequences

static attncl_value build(struct build *b, const void *settings)
{
    const struct seq2seq_transformer_settings *s = settings;
    struct block_call call = {.causal = true, .layout = ATTNCL_LAYOUT_BATCH_FIRST};
    if (b->for_loss && !has_tokens(s))
        return GRAPH_FAIL(b->graph, ATTNCL_ERR_UNSUPPORTED,
                          "the decoder has no tokens to compare with targets: src_vocab_size is 0");
    if (!has_tokens(s) && !s->batch_first)
        call.layout = ATTNCL_LAYOUT_TIME_FIRST;
    call.memory = attncl__seq2seq_encode(b, s, call.layout, &call.memory_lens);
    attncl_value x = attncl__input(b, "dec_X");
    attncl__check_length(b, "dec_X", 'T', s->target.limit);
    attncl__check_steps(b, "dec_X", 'T');
    if (has_tokens(s))
        x = attncl__add_embedding(b, &s->target, x, ATTNCL_NONE_VALUE, call.layout);
    return attncl__seq2seq_decode(b, s, &call, x);
}

const struct arch_class attncl__arch_seq2seq_transformer = {
    .example = "{\"src_vocab_size\": 90, \"tgt_vocab_size\": 110, \"d_model\": 64, \"heads\": 4, "
               "\"d_ff\": 256, \"n_layers\": 2, \"max_len\": 40}",
    .settings_bytes = sizeof(struct seq2seq_transformer_settings),
    .keys = attncl__seq2seq_transformer_keys,
    .inputs = PORTS(PORT("enc_X", INDEX, "B S", .below = "src_vocab_size", TOKENS),
                    PORT("enc_X", F32, "S B d_model", .batch_first = true, VECTORS),
                    PORT("enc_valid_lens", INT, "B", .optional = true),
                    PORT("dec_X", INDEX, "B T", .below = "tgt_vocab_size", TOKENS),
                    PORT("dec_X", F32, "T B d_model", .batch_first = true, VECTORS)),
    .outputs = PORTS(PORT("output", F32, "B T tgt_vocab_size", TOKENS),
                     PORT("output", F32, "T B d_model", .batch_first = true, VECTORS)),
    .build = build,
    .target = TARGET_SENTENCES,
};
