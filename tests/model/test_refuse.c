// SPDX-License-Identifier: MIT
// Bad models and bad inputs: each is refused with the right status, in words that name what is
// wrong.

#include <stdio.h>
#include <string.h>

#include "support/directory.h"
#include "support/golden.h"

// -- model files

struct bad_model {
    const char *golden;
    struct golden_change change;
    attncl_status status;
    const char *words;
};

static const float zeros[4096];

#define ARRAY(type, each, r, n, ...)                                                               \
    (&(const attncl_array){.name = "",                                                             \
                           .dtype = (type),                                                        \
                           .rank = (r),                                                            \
                           .dim = {__VA_ARGS__},                                                   \
                           .data = zeros,                                                          \
                           .bytes = (size_t)(n) * (each)})

#define TRAIN_CONFIG(more)                                                                         \
    "{\"model\": {\"arch\": \"lm\", \"layer\": \"gmlp\", \"d_model\": 6, \"d_ffn\": 8, "           \
    "\"seq_len\": 8, \"n_layers\": 2, \"n_vocab\": 7, \"pos\": \"no_pos\"}" more "}"
#define ADAM ", \"optimizer\": {\"kind\": \"adam\", \"learning_rate\": 1}"

static const struct bad_model bad_models[] = {
    // names
    {"lm_gmlp", {.arch = "train"}, ATTNCL_ERR_FORMAT, "model is missing"},
    {"lm_gmlp", {.arch = "perceptron"}, ATTNCL_ERR_FORMAT, "arch perceptron is not known"},
    {"lm_gmlp", {.arch = "LM"}, ATTNCL_ERR_FORMAT, "arch LM is not known"},
    {"lm_gmlp", {.arch = ""}, ATTNCL_ERR_FORMAT, "attncl.arch is missing"},
    {"lm_gmlp", {.config = ""}, ATTNCL_ERR_FORMAT, "attncl.config is missing"},
    // configurations that are none
    {"lm_gmlp", {.config = "{"}, ATTNCL_ERR_FORMAT, "attncl.config"},
    {"lm_gmlp", {.config = "[1, 2]"}, ATTNCL_ERR_FORMAT, "attncl.config"},
    {"lm_gmlp",
     {.config = "{\"layer\": {\"a\": {\"b\": [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}}}"},
     ATTNCL_ERR_FORMAT,
     "attncl.config"},
    {"linear",
     {.config = "{\"in_features\": 7, \"in_features\": 7, \"out_features\": 3}"},
     ATTNCL_ERR_FORMAT,
     "in_features"},
    // keys
    {"linear", {.config = "{\"in_features\": 7}"}, ATTNCL_ERR_FORMAT, "out_features"},
    {"linear",
     {.config = "{\"in_features\": \"7\", \"out_features\": 3}"},
     ATTNCL_ERR_FORMAT,
     "in_features"},
    {"linear",
     {.config = "{\"in_features\": 0, \"out_features\": 3}"},
     ATTNCL_ERR_FORMAT,
     "in_features is 0"},
    {"linear", {.config = "{\"in_features\": -7, \"out_features\": 3}"}, ATTNCL_ERR_FORMAT, "-7"},
    {"linear",
     {.config = "{\"in_features\": 99999999999, \"out_features\": 3}"},
     ATTNCL_ERR_FORMAT,
     "99999999999"},
    {"linear",
     {.config = "{\"in_features\": 2147483647, \"out_features\": 2147483647}"},
     ATTNCL_ERR_SHAPE,
     "2^48"},
    {"linear",
     {.config = "{\"in_features\": 7, \"out_features\": 3, \"bias\": \"yes\"}"},
     ATTNCL_ERR_FORMAT,
     "bias"},
    {"gelu", {.config = "{\"kind\": \"elu\"}"}, ATTNCL_ERR_FORMAT, "kind elu is not known"},
    {"gelu", {.config = "{}"}, ATTNCL_ERR_FORMAT, "kind"},
    {"softmax", {.config = "{\"dim\": 1.5}"}, ATTNCL_ERR_FORMAT, "dim"},
    {"layer_norm", {.config = "{\"normalized_shape\": []}"}, ATTNCL_ERR_FORMAT, "normalized_shape"},
    {"layer_norm", {.config = "{\"normalized_shape\": [4, -6]}"}, ATTNCL_ERR_FORMAT, "-6"},
    {"layer_norm",
     {.config = "{\"normalized_shape\": [4, 6], \"eps\": -1}"},
     ATTNCL_ERR_FORMAT,
     "eps is -1"},
    {"cross_entropy", {.config = "{\"reduction\": \"median\"}"}, ATTNCL_ERR_FORMAT, "median"},
    {"positional_encoding",
     {.config = "{\"layout\": \"rows\", \"num_hiddens\": 5}"},
     ATTNCL_ERR_FORMAT,
     "layout rows"},
    {"feed_forward",
     {.config = "{\"d_model\": 6, \"d_ff\": 10, \"activation\": \"Mish\"}"},
     ATTNCL_ERR_FORMAT,
     "activation Mish"},
    {"aft_local",
     {.config = "{\"d_model\": 6, \"local_window_size\": 3}"},
     ATTNCL_ERR_FORMAT,
     "seq_len"},
    {"aft_local",
     {.config = "{\"d_model\": 6, \"seq_len\": 9}"},
     ATTNCL_ERR_FORMAT,
     "local_window_size"},
    {"aft_full", {.config = "{\"d_model\": 6}"}, ATTNCL_ERR_FORMAT, "seq_len"},
    {"aft_conv",
     {.config = "{\"d_model\": 6, \"heads\": 4, \"window_size\": 3}"},
     ATTNCL_ERR_FORMAT,
     "d_model is 6, not a multiple of heads, 4"},
    {"aft_conv",
     {.config = "{\"d_model\": 6, \"heads\": 3, \"window_size\": 4}"},
     ATTNCL_ERR_FORMAT,
     "window_size is 4, expected an odd number"},
    {"aft_conv", {.config = "{\"d_model\": 6, \"heads\": 3}"}, ATTNCL_ERR_FORMAT, "window_size"},
    {"spatial_gating_unit",
     {.config = "{\"d_z\": 9, \"seq_len\": 9}"},
     ATTNCL_ERR_FORMAT,
     "d_z is 9, expected an even number"},
    {"gmlp_block",
     {.config = "{\"d_model\": 6, \"d_ffn\": 11, \"seq_len\": 9}"},
     ATTNCL_ERR_FORMAT,
     "d_ffn is 11"},
    {"encoder_transformer",
     {.config = "{\"layer\": \"transformer\", \"d_model\": 6, \"d_ff\": 10, \"n_layers\": 2}"},
     ATTNCL_ERR_FORMAT,
     "heads"},
    {"encoder_transformer",
     {.config = "{\"layer\": \"transformer\", \"d_model\": 6, \"heads\": 4, \"d_ff\": 10, "
                "\"n_layers\": 2}"},
     ATTNCL_ERR_FORMAT,
     "d_model = 6 cannot be cut into heads = 4"},
    {"mha",
     {.config = "{\"d_model\": 6, \"heads\": 5}"},
     ATTNCL_ERR_FORMAT,
     "d_model = 6 cannot be cut into heads = 5"},
    {"mha", {.config = "{\"d_model\": 6, \"heads\": 0}"}, ATTNCL_ERR_FORMAT, "heads is 0"},
    {"multi_head_attention",
     {.config = "{\"num_hiddens\": 12, \"num_heads\": 5}"},
     ATTNCL_ERR_FORMAT,
     "num_hiddens = 12 cannot be cut into num_heads = 5"},
    {"raschka_multi_head", {.config = "{\"d\": 5}"}, ATTNCL_ERR_FORMAT, "heads"},
    {"encoder_gmlp",
     {.config = "{\"layer\": \"mamba\", \"d_model\": 8, \"n_layers\": 2}"},
     ATTNCL_ERR_FORMAT,
     "layer mamba is not known"},
    {"encoder_gmlp",
     {.config = "{\"layer\": \"gmlp\", \"d_model\": 8, \"d_ffn\": 12, \"n_layers\": 2}"},
     ATTNCL_ERR_FORMAT,
     "seq_len"},
    {"encoder_gmlp",
     {.config = "{\"layer\": \"gmlp\", \"d_model\": 8, \"d_ffn\": 12, \"seq_len\": 9}"},
     ATTNCL_ERR_FORMAT,
     "n_layers"},
    {"lm_gmlp",
     {.config = "{\"layer\": \"gmlp\", \"d_model\": 8, \"d_ffn\": 14, \"seq_len\": 12, "
                "\"n_layers\": 2, \"n_vocab\": 11, \"pos\": \"rope\"}"},
     ATTNCL_ERR_FORMAT,
     "pos rope"},
    {"encoder_gmlp",
     {.config = "{\"layer\": \"feedback\", \"d_model\": 8, \"n_layers\": 2}"},
     ATTNCL_ERR_FORMAT,
     "layer feedback is not known"},
    {"lm_gmlp",
     {.config = "{\"layer\": \"feedback\", \"d_model\": 8, \"heads\": 3}"},
     ATTNCL_ERR_FORMAT,
     "heads = 3 does not divide d_model = 8"},
    // parameters
    {"linear", {.parameter = "weight"}, ATTNCL_ERR_FORMAT, "parameter weight is missing"},
    {"aft_full",
     {.parameter = "query.weight"},
     ATTNCL_ERR_FORMAT,
     "parameter query.weight is missing"},
    {"mha",
     {.parameter = "value.linear.bias"},
     ATTNCL_ERR_FORMAT,
     "parameter value.linear.bias is missing"},
    {"multi_head_attention",
     {.parameter = "W_q.bias"},
     ATTNCL_ERR_FORMAT,
     "parameter W_q.bias is missing"},
    {"multi_head_attention",
     {"multi_head_attention", NULL, "W_v.weight", ARRAY(ATTNCL_F32, 4, 2, 72, 12, 6)},
     ATTNCL_ERR_FORMAT,
     "W_v.weight has shape [12, 6], expected [12, 5]"},
    {"additive_attention",
     {"additive_attention", NULL, "w_v.weight", ARRAY(ATTNCL_F32, 4, 1, 9, 9)},
     ATTNCL_ERR_FORMAT,
     "w_v.weight has shape [9], expected [1, 9]"},
    {"raschka_multi_head",
     {"raschka_multi_head", NULL, "multihead_U_key", ARRAY(ATTNCL_F32, 4, 3, 50, 2, 5, 5)},
     ATTNCL_ERR_FORMAT,
     "multihead_U_key has shape [2, 5, 5], expected [3, 5, 5]"},
    {"lm_transformer",
     {.parameter = "encoder.layers.1.self_attn.query.linear.bias"},
     ATTNCL_ERR_FORMAT,
     "parameter encoder.layers.1.self_attn.query.linear.bias is missing"},
    {"lm_aft_local",
     {.parameter = "encoder.layers.1.self_attn.pos_bias"},
     ATTNCL_ERR_FORMAT,
     "parameter encoder.layers.1.self_attn.pos_bias is missing"},
    {"lm_aft_simple",
     {.parameter = "src_embed.positional_encodings"},
     ATTNCL_ERR_FORMAT,
     "src_embed.positional_encodings is missing"},
    {"lm_aft_local",
     {"lm", NULL, "encoder.norm.weight", ARRAY(ATTNCL_F32, 4, 1, 3, 3)},
     ATTNCL_ERR_FORMAT,
     "encoder.norm.weight has shape [3], expected [8]"},
    {"lm_aft_local",
     {"lm", NULL, "src_embed.positional_encodings", ARRAY(ATTNCL_F32, 4, 3, 80, 10, 1, 8)},
     ATTNCL_ERR_FORMAT,
     "src_embed.positional_encodings has shape [10, 1, 8], expected [20, 1, 8]"},
    {"aft_conv",
     {"aft_conv", NULL, "w", ARRAY(ATTNCL_F32, 4, 2, 12, 3, 4)},
     ATTNCL_ERR_FORMAT,
     "w has shape [3, 4], expected [3, 5]"},
    {"aft_conv",
     {"aft_conv", NULL, "key.weight", ARRAY(ATTNCL_F32, 4, 2, 36, 6, 6)},
     ATTNCL_ERR_FORMAT,
     "key.weight has shape [6, 6], expected [3, 6]"},
    {"linear",
     {"linear", NULL, "weight", ARRAY(ATTNCL_F32, 4, 2, 21, 7, 3)},
     ATTNCL_ERR_FORMAT,
     "weight has shape [7, 3], expected [3, 7]"},
    {"linear",
     {"linear", NULL, "bias", ARRAY(ATTNCL_I32, 4, 1, 3, 3)},
     ATTNCL_ERR_FORMAT,
     "parameter bias has type I32"},
    {"aft_local",
     {"aft_local", NULL, "local_mask", ARRAY(ATTNCL_BOOL, 1, 2, 81, 9, 9)},
     ATTNCL_ERR_FORMAT,
     "local_mask disagrees with local_window_size = 3 at [0, 0]"},
    {"aft_local",
     {"aft_local", NULL, "local_mask", ARRAY(ATTNCL_BOOL, 1, 2, 63, 9, 7)},
     ATTNCL_ERR_FORMAT,
     "local_mask has shape [9, 7]"},
    // recurrent
    {"gru", {.config = "{\"input_size\": 4, \"hidden_size\": 6}"}, ATTNCL_ERR_FORMAT, "num_layers"},
    {"gru",
     {.config = "{\"input_size\": 4, \"hidden_size\": 6, \"num_layers\": 2147483647}"},
     ATTNCL_ERR_FORMAT,
     "parameter weight_ih_l2 is missing"},
    {"gru",
     {.config = "{\"input_size\": 5, \"hidden_size\": 6, \"num_layers\": 2}"},
     ATTNCL_ERR_FORMAT,
     "parameter weight_ih_l0 has shape [18, 4], expected [18, 5]"},
    {"gru",
     {.parameter = "weight_hh_l1", .with = ARRAY(ATTNCL_F32, 4, 2, 72, 12, 6)},
     ATTNCL_ERR_FORMAT,
     "parameter weight_hh_l1 has shape [12, 6], expected [18, 6]"},
    // d2l's pieces
    {"relative_shift",
     {.config = "{\"num_hiddens\": 5, \"delta\": 1}"},
     ATTNCL_ERR_FORMAT,
     "num_hiddens is 5"},
    {"relative_shift", {.config = "{\"num_hiddens\": 6}"}, ATTNCL_ERR_FORMAT, "delta is missing"},
    {"attention_pooling_boxcar",
     {.config = "{\"kernel\": \"box\"}"},
     ATTNCL_ERR_FORMAT,
     "kernel box is not known"},
    {"attention_pooling_boxcar", {.config = "{}"}, ATTNCL_ERR_FORMAT, "kernel is missing"},
    {"attention_pooling_gaussian",
     {.config = "{\"kernel\": \"gaussian\", \"sigma\": 0}"},
     ATTNCL_ERR_FORMAT,
     "sigma is 0"},
    {"transpose_qkv", {.config = "{\"num_heads\": 0}"}, ATTNCL_ERR_FORMAT, "num_heads is 0"},
    {"subsequent_mask", {.config = "{\"seq_len\": -1}"}, ATTNCL_ERR_FORMAT, "seq_len is -1"},
    {"local_mask_3",
     {.config = "{\"seq_len\": 7, \"local_window_size\": -1}"},
     ATTNCL_ERR_FORMAT,
     "local_window_size is -1"},
    {"optimizer_step_adam",
     {.config = "{\"kind\": \"sgd\", \"learning_rate\": 1}"},
     ATTNCL_ERR_FORMAT,
     "kind sgd is not known"},
    {"optimizer_step_adam", {.config = "{\"kind\": \"adam\"}"}, ATTNCL_ERR_FORMAT, "learning_rate"},
    {"optimizer_step_adam",
     {.config = "{\"kind\": \"adam\", \"learning_rate\": 1, \"betas\": [0.9, 1]}"},
     ATTNCL_ERR_FORMAT,
     "betas[1] is 1"},
    {"optimizer_step_adam",
     {.config = "{\"kind\": \"adam\", \"learning_rate\": 1, \"betas\": [0.9]}"},
     ATTNCL_ERR_FORMAT,
     "betas has 1 entries, expected 2"},
    {"optimizer_step_noam",
     {.config = "{\"kind\": \"noam\", \"learning_rate\": 1}"},
     ATTNCL_ERR_FORMAT,
     "d_model is missing"},
    {"clip_grad_norm_d2l", {.config = "{\"max_norm\": -1}"}, ATTNCL_ERR_FORMAT, "max_norm is -1"},
    {"clip_grad_norm_d2l",
     {.config = "{\"max_norm\": 1, \"style\": \"value\"}"},
     ATTNCL_ERR_FORMAT,
     "style value is not known"},
    {"seq2seq_bahdanau",
     {.parameter = "encoder.rnn.weight_ih_l0"},
     ATTNCL_ERR_FORMAT,
     "parameter encoder.rnn.weight_ih_l0 is missing"},
    {"seq2seq_bahdanau",
     {.parameter = "decoder.rnn.weight_ih_l0", .with = ARRAY(ATTNCL_F32, 4, 2, 105, 21, 5)},
     ATTNCL_ERR_FORMAT,
     "expected [21, 12]"},
    {"seq2seq_bahdanau",
     {.parameter = "decoder.attention.w_v.weight", .with = ARRAY(ATTNCL_F32, 4, 1, 7, 7)},
     ATTNCL_ERR_FORMAT,
     "expected [1, 7]"},
    {"seq2seq_predict",
     {.config = "{\"src_vocab_size\": 11, \"tgt_vocab_size\": 9, \"embed_size\": 5, "
                "\"num_hiddens\": 7, \"num_layers\": 2, \"bos\": 9, \"num_steps\": 11}"},
     ATTNCL_ERR_FORMAT,
     "bos is 9, tgt_vocab_size is 9"},
    {"seq2seq_predict",
     {.config = "{\"src_vocab_size\": 11, \"tgt_vocab_size\": 9, \"embed_size\": 5, "
                "\"num_hiddens\": 7, \"num_layers\": 2, \"bos\": 4, \"num_steps\": 0}"},
     ATTNCL_ERR_FORMAT,
     "num_steps is 0"},
    // feedback
    {"feedback_attention_joint",
     {.config = "{\"d_model\": 6, \"heads\": 4}"},
     ATTNCL_ERR_FORMAT,
     "heads = 4 does not divide d_model = 6"},
    {"feedback_attention_joint",
     {.config = "{\"d_model\": 6, \"heads\": 7}"},
     ATTNCL_ERR_FORMAT,
     "heads = 7 does not divide d_model = 6"},
    {"feedback_attention_joint",
     {.config = "{\"d_model\": 6, \"heads\": 2, \"P\": 0}"},
     ATTNCL_ERR_FORMAT,
     "P is 0"},
    {"feedback_attention_joint",
     {.config = "{\"d_model\": 6, \"heads\": 2, \"P\": 8}"},
     ATTNCL_ERR_FORMAT,
     "parameter key_pos_embeddings has shape [9, 2, 3], expected [8, 2, 3]"},
    {"feedback_attention_joint",
     {.config = "{\"d_model\": 6, \"heads\": 2, \"P\": 9, \"score\": \"both\"}"},
     ATTNCL_ERR_FORMAT,
     "score both is not known"},
    {"feedback_attention_joint",
     {.config = "{\"d_model\": 6, \"heads\": 2, \"P\": 9, \"score\": \"split\"}"},
     ATTNCL_ERR_FORMAT,
     "parameter key_pos_bias is missing"},
    {"feedback_attention_split",
     {.config = "{\"d_model\": 6, \"heads\": 2, \"P\": 9, \"score\": \"split\"}"},
     ATTNCL_ERR_FORMAT,
     "parameter key.linear.weight is missing"},
    {"feedback_transformer",
     {.arch = "feedback_transformer_kv"},
     ATTNCL_ERR_FORMAT,
     "parameter key.linear.weight is missing"},
    {"feedback_transformer_kv",
     {.arch = "feedback_transformer"},
     ATTNCL_ERR_FORMAT,
     "parameter layers.0.attn.key.linear.weight is missing"},
    {"feedback_transformer",
     {.parameter = "layers.1.attn.value.linear.bias", .with = ARRAY(ATTNCL_F32, 4, 1, 7, 7)},
     ATTNCL_ERR_FORMAT,
     "parameter layers.1.attn.value.linear.bias has shape [7], expected [6]"},
    {"feedback_transformer",
     {.parameter = "weights", .with = ARRAY(ATTNCL_F32, 4, 1, 2, 2)},
     ATTNCL_ERR_FORMAT,
     "parameter weights has shape [2], expected [3]"},
    {"feedback_transformer",
     {.config = "{\"d_model\": 6, \"heads\": 2, \"d_ff\": 10, \"P\": 8, "
                "\"n_layers\": 2147483647, \"score\": \"split\"}"},
     ATTNCL_ERR_FORMAT,
     "parameter layers.2."},
    // training
    {"train_lm_gmlp", {.config = "{}"}, ATTNCL_ERR_FORMAT, "model is missing"},
    {"train_lm_gmlp", {.config = "{\"model\": \"lm\"}"}, ATTNCL_ERR_FORMAT, "model"},
    {"train_lm_gmlp", {.config = "{\"model\": {}}"}, ATTNCL_ERR_FORMAT, "model: arch is missing"},
    {"train_lm_gmlp",
     {.config = "{\"model\": {\"arch\": \"encoder\"}}"},
     ATTNCL_ERR_UNSUPPORTED,
     "model: arch encoder cannot be trained"},
    {"train_lm_gmlp",
     {.config = "{\"model\": {\"arch\": \"train\"}}"},
     ATTNCL_ERR_UNSUPPORTED,
     "model: arch train cannot be trained"},
    {"train_lm_gmlp",
     {.config = "{\"model\": {\"arch\": \"lm\"}}"},
     ATTNCL_ERR_FORMAT,
     "model: layer is missing"},
    {"train_lm_gmlp", {.config = TRAIN_CONFIG("")}, ATTNCL_ERR_FORMAT, "optimizer is missing"},
    {"train_lm_gmlp",
     {.config = TRAIN_CONFIG(", \"optimizer\": {\"kind\": \"sgd\", \"learning_rate\": 1}")},
     ATTNCL_ERR_FORMAT,
     "optimizer: kind sgd is not known"},
    {"train_lm_gmlp",
     {.config = TRAIN_CONFIG(", \"optimizer\": {\"kind\": \"adam\"}")},
     ATTNCL_ERR_FORMAT,
     "optimizer: learning_rate is missing"},
    {"train_lm_gmlp",
     {.config = TRAIN_CONFIG(", \"optimizer\": {\"kind\": \"noam\", \"learning_rate\": 1}")},
     ATTNCL_ERR_FORMAT,
     "optimizer: d_model is missing"},
    {"train_lm_gmlp",
     {.config = TRAIN_CONFIG(ADAM ", \"clip\": \"value\"")},
     ATTNCL_ERR_FORMAT,
     "clip value is not known"},
    {"train_lm_gmlp",
     {.config = TRAIN_CONFIG(ADAM ", \"grad_norm_clip\": -1")},
     ATTNCL_ERR_FORMAT,
     "grad_norm_clip is -1"},
    {"train_lm_gmlp", {.config = TRAIN_CONFIG(ADAM ", \"pad\": \"no\"")}, ATTNCL_ERR_FORMAT, "pad"},
    {"train_lm_gmlp",
     {.parameter = "encoder.layers.1.proj2.bias"},
     ATTNCL_ERR_FORMAT,
     "parameter encoder.layers.1.proj2.bias is missing"},
};
enum { N_BAD_MODELS = sizeof bad_models / sizeof bad_models[0] };

FIXTURE(directory_begin, directory_down);

LOOP_TEST(a_bad_model_is_refused, 0, N_BAD_MODELS)
{
    const struct bad_model *bad = &bad_models[_i];
    struct golden golden;
    attncl_model *model = NULL;
    golden_load(&golden, bad->golden);
    const char *path = IN_DIRECTORY("bad.safetensors");
    golden_rewrite(&golden, path, bad->change);
    ck_fails(attncl_model_open(test_context(), path, &model), bad->status, bad->words);
    ck_assert_ptr_null(model);
    ck_assert_ptr_null(strchr(attncl_last_error(), '\n'));
    golden_free(&golden);
}

// 2^31 - 1 positions of 8 channels take 64 GiB.
TEST(a_table_no_buffer_holds_is_refused)
{
    const struct golden_change change = {
        .config = "{\"layer\": \"aft_simple\", \"d_model\": 8, \"d_ff\": 12, \"n_layers\": 2, "
                  "\"n_vocab\": 11, \"max_len\": 2147483647}"};
    struct golden golden;
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
    attncl_model *model = NULL;
    ck_ok(attncl_context_device(test_context(), &info));
    if (info.max_buffer_bytes > UINT64_C(1) << 35)
        return;
    golden_load(&golden, "lm_gmlp");
    const char *path = IN_DIRECTORY("large.safetensors");
    golden_rewrite(&golden, path, change);
    ck_fails(attncl_model_open(test_context(), path, &model), ATTNCL_ERR_DEVICE_MEMORY,
             "takes 68719476704 bytes");
    golden_free(&golden);
}

TEST(what_is_no_model_file_is_refused)
{
    attncl_model *model = NULL;
    directory_write_bytes("text", "no tensors here", 15);
    ck_fails(attncl_model_open(test_context(), IN_DIRECTORY("text"), &model), ATTNCL_ERR_FORMAT,
             "");
    ck_fails(attncl_model_open(test_context(), IN_DIRECTORY("absent"), &model), ATTNCL_ERR_IO, "");
    ck_fails(attncl_model_open(test_context(), NULL, &model), ATTNCL_ERR_ARGUMENT, "NULL");
    ck_assert_ptr_null(model);
}

// Buffers of a checkpoint may be absent, and tensors of other names are ignored.
TEST(what_may_be_absent_or_extra_is_tolerated)
{
    static const char *const buffers[][2] = {
        {"aft_local", "local_mask"},
        {"lm_aft_local", "src_embed.positional_encodings"},
        {"lm_aft_local", "encoder.layers.1.self_attn.local_mask"},
    };
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; ++i) {
        struct golden golden;
        attncl_model *model = NULL;
        attncl_results *results = NULL;
        golden_load(&golden, buffers[i][0]);
        const char *path = IN_DIRECTORY("good.safetensors");
        golden_rewrite(&golden, path, (struct golden_change){.parameter = buffers[i][1]});
        ck_ok(attncl_model_open(test_context(), path, &model));
        ck_ok(attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL));
        golden_check(&golden, results, 1e-4);
        attncl_results_destroy(results);
        attncl_model_close(model);
        golden_free(&golden);
    }
}

// -- inputs

struct bad_input {
    const char *golden;
    const char *input;        // this input ...
    const attncl_array *with; // ... becomes this, or is left out
    attncl_status status;
    const char *words;
};

static const int64_t minus_one[30] = {-1}, eleven[30] = {[29] = 11}, huge[30] = {INT64_C(1) << 40};
#define TOKENS(values)                                                                             \
    (&(const attncl_array){                                                                        \
        .dtype = ATTNCL_I64, .rank = 2, .dim = {10, 3}, .data = (values), .bytes = 240})
#define REAL(r, n, ...)  ARRAY(ATTNCL_F32, 4, r, n, __VA_ARGS__)
#define BOOLS(r, n, ...) ARRAY(ATTNCL_BOOL, 1, r, n, __VA_ARGS__)
#define INTS(r, n, ...)  ARRAY(ATTNCL_I32, 4, r, n, __VA_ARGS__)

// Four batches, the last of which ends in a token that there is not.
static const int32_t seven[56] = {[55] = 7};
#define BATCHES(values)                                                                            \
    (&(const attncl_array){                                                                        \
        .dtype = ATTNCL_I32, .rank = 3, .dim = {4, 7, 2}, .data = (values), .bytes = 224})

static const struct bad_input bad_inputs[] = {
    // missing
    {"softmax", "x", NULL, ATTNCL_ERR_ARGUMENT, "input x is missing"},
    {"aft_local", "key", NULL, ATTNCL_ERR_ARGUMENT, "input key is missing"},
    {"lm_gmlp", "tokens", NULL, ATTNCL_ERR_ARGUMENT, "input tokens is missing"},
    {"lm_sample", "tokens", NULL, ATTNCL_ERR_ARGUMENT, "input tokens is missing"},
    // wrong type
    {"linear", "x", INTS(2, 14, 2, 7), ATTNCL_ERR_DTYPE, "input x has type I32, expected F32"},
    {"lm_gmlp", "tokens", REAL(2, 30, 10, 3), ATTNCL_ERR_DTYPE, "input tokens has type F32"},
    {"lm_gmlp", "targets", REAL(2, 30, 10, 3), ATTNCL_ERR_DTYPE, "input targets has type F32"},
    {"lm_sample", "tokens", REAL(2, 12, 4, 3), ATTNCL_ERR_DTYPE, "input tokens has type F32"},
    {"embedding", "tokens", BOOLS(2, 3, 1, 3), ATTNCL_ERR_DTYPE, "input tokens has type BOOL"},
    {"aft_local", "mask", REAL(3, 98, 7, 7, 2), ATTNCL_ERR_DTYPE, "input mask has type F32"},
    {"aft_local", "mask", INTS(3, 98, 7, 7, 2), ATTNCL_ERR_DTYPE, "input mask has type I32"},
    {"masked_softmax", "valid_lens", REAL(1, 2, 2), ATTNCL_ERR_DTYPE,
     "input valid_lens has type F32"},
    // wrong features, axes, rank, batch
    {"linear", "x", REAL(2, 12, 2, 6), ATTNCL_ERR_SHAPE,
     "input x has shape [2, 6], expected [any, 7]"},
    {"linear", "x", REAL(0, 1, 0), ATTNCL_ERR_SHAPE, "input x has shape [], expected [7]"},
    {"layer_norm", "x", REAL(2, 30, 6, 5), ATTNCL_ERR_SHAPE, "expected [4, 6]"},
    {"softmax", "x", REAL(1, 4, 4), ATTNCL_ERR_SHAPE, "dim is 1, input x has 1 axes"},
    {"bmm", "b", REAL(3, 40, 2, 5, 4), ATTNCL_ERR_SHAPE, "expected [2, 4, any]"},
    {"bmm", "a", REAL(2, 12, 3, 4), ATTNCL_ERR_SHAPE, "expected [any, any, any]"},
    {"masked_softmax", "valid_lens", INTS(1, 3, 3), ATTNCL_ERR_SHAPE, "expected [2]"},
    {"masked_softmax", "valid_lens", INTS(2, 4, 2, 2), ATTNCL_ERR_SHAPE, "expected [2, 3]"},
    {"masked_softmax", "valid_lens", INTS(3, 6, 2, 3, 1), ATTNCL_ERR_SHAPE, "valid_lens"},
    {"masked_softmax", "X", REAL(2, 15, 3, 5), ATTNCL_ERR_SHAPE, "expected [any, any, any]"},
    {"cross_entropy", "targets", INTS(1, 4, 4), ATTNCL_ERR_SHAPE, "expected [4, 3]"},
    {"aft_local", "query", REAL(3, 70, 7, 2, 5), ATTNCL_ERR_SHAPE, "expected [any, any, 6]"},
    {"aft_local", "query", REAL(2, 42, 7, 6), ATTNCL_ERR_SHAPE, "expected [any, any, 6]"},
    {"aft_local", "key", REAL(3, 60, 5, 2, 6), ATTNCL_ERR_SHAPE, "expected [7, 2, 6]"},
    {"aft_local", "value", REAL(3, 42, 7, 1, 6), ATTNCL_ERR_SHAPE, "expected [7, 2, 6]"},
    {"aft_local", "mask", BOOLS(3, 28, 2, 7, 2), ATTNCL_ERR_SHAPE, "expected [7 or 1, 7, 2 or 1]"},
    {"aft_local", "mask", BOOLS(3, 12, 1, 6, 2), ATTNCL_ERR_SHAPE,
     "input mask has shape [1, 6, 2]"},
    {"aft_local", "mask", BOOLS(3, 147, 7, 7, 3), ATTNCL_ERR_SHAPE,
     "input mask has shape [7, 7, 3]"},
    {"aft_local", "mask", BOOLS(2, 49, 7, 7), ATTNCL_ERR_SHAPE, "input mask has shape [7, 7]"},
    {"spatial_gating_unit", "mask", BOOLS(3, 98, 7, 7, 2), ATTNCL_ERR_SHAPE,
     "expected [7 or 1, 7, 1]"},
    {"encoder_gmlp", "mask", BOOLS(3, 98, 7, 7, 2), ATTNCL_ERR_SHAPE, "expected [7 or 1, 7, 1]"},
    {"encoder_aft_local", "x", REAL(3, 98, 7, 2, 7), ATTNCL_ERR_SHAPE, "expected [any, any, 8]"},
    {"lm_gmlp", "tokens", INTS(1, 10, 10), ATTNCL_ERR_SHAPE, "input tokens has shape [10]"},
    {"lm_gmlp", "targets", INTS(2, 20, 10, 2), ATTNCL_ERR_SHAPE, "expected [10, 3]"},
    {"lm_sample", "tokens", INTS(1, 4, 4), ATTNCL_ERR_SHAPE, "tokens"},
    {"lm_sample", "tokens", INTS(2, 0, 0, 3), ATTNCL_ERR_SHAPE, "length 0"},
    {"basic_self_attention", "x", REAL(1, 5, 5), ATTNCL_ERR_SHAPE, "expected [any, any, any]"},
    {"raschka_self_attention", "x", REAL(3, 70, 2, 7, 5), ATTNCL_ERR_SHAPE, "expected [any, 5]"},
    {"raschka_multi_head", "x", REAL(2, 42, 7, 6), ATTNCL_ERR_SHAPE, "expected [any, 5]"},
    {"dot_product_attention", "queries", REAL(2, 24, 4, 6), ATTNCL_ERR_SHAPE,
     "expected [any, any, any]"},
    {"dot_product_attention", "keys", REAL(3, 84, 2, 7, 6), ATTNCL_ERR_SHAPE,
     "expected [3, any, any]"},
    {"dot_product_attention", "keys", REAL(3, 105, 3, 7, 5), ATTNCL_ERR_SHAPE,
     "input keys has width 5, queries has width 6"},
    {"dot_product_attention", "values", REAL(3, 90, 3, 6, 5), ATTNCL_ERR_SHAPE,
     "input values has shape [3, 6, 5], expected [3, 7, any]"},
    {"dot_product_attention", "valid_lens", INTS(2, 21, 3, 7), ATTNCL_ERR_SHAPE, "expected [3, 4]"},
    {"dot_product_attention", "valid_lens", INTS(1, 4, 4), ATTNCL_ERR_SHAPE, "expected [3]"},
    {"dot_product_attention", "valid_lens", INTS(3, 12, 3, 4, 1), ATTNCL_ERR_SHAPE,
     "expected [3, 4]"},
    {"dot_product_attention", "valid_lens", BOOLS(1, 3, 3), ATTNCL_ERR_DTYPE, "type BOOL"},
    {"additive_attention", "queries", REAL(3, 60, 3, 4, 5), ATTNCL_ERR_SHAPE,
     "expected [any, any, 6]"},
    {"additive_attention", "keys", REAL(3, 126, 3, 7, 6), ATTNCL_ERR_SHAPE, "expected [3, any, 5]"},
    {"additive_attention", "valid_lens", INTS(2, 3, 3, 1), ATTNCL_ERR_SHAPE, "expected [3, 4]"},
    {"multi_head_attention", "keys", NULL, ATTNCL_ERR_ARGUMENT, "input keys is missing"},
    {"multi_head_attention", "values", REAL(3, 126, 3, 7, 6), ATTNCL_ERR_SHAPE,
     "expected [3, 7, 5]"},
    {"multi_head_attention", "valid_lens", REAL(1, 3, 3), ATTNCL_ERR_DTYPE,
     "input valid_lens has type F32"},
    {"mha", "key", REAL(3, 84, 7, 2, 6), ATTNCL_ERR_SHAPE, "expected [any, 3, 6]"},
    {"mha", "value", REAL(3, 108, 6, 3, 6), ATTNCL_ERR_SHAPE, "expected [7, 3, 6]"},
    {"mha", "query", REAL(3, 60, 4, 3, 5), ATTNCL_ERR_SHAPE, "expected [any, any, 6]"},
    {"mha", "mask", BOOLS(3, 84, 7, 4, 3), ATTNCL_ERR_SHAPE,
     "input mask has shape [7, 4, 3], expected [4 or 1, 7, 3 or 1]"},
    {"mha", "mask", BOOLS(3, 12, 4, 1, 3), ATTNCL_ERR_SHAPE, "[4 or 1, 7, 3 or 1]"},
    {"mha", "mask", BOOLS(3, 56, 4, 7, 2), ATTNCL_ERR_SHAPE, "[4 or 1, 7, 3 or 1]"},
    {"mha", "mask", BOOLS(2, 28, 4, 7), ATTNCL_ERR_SHAPE, "expected [any, any, any]"},
    {"mha", "mask", REAL(3, 84, 4, 7, 3), ATTNCL_ERR_DTYPE, "input mask has type F32"},
    {"layer_transformer", "mask", BOOLS(3, 147, 7, 7, 3), ATTNCL_ERR_SHAPE, "[7 or 1, 7, 2 or 1]"},
    {"encoder_transformer", "x", REAL(3, 98, 7, 2, 7), ATTNCL_ERR_SHAPE, "expected [any, any, 6]"},
    // recurrent
    {"relative_shift", "x", REAL(2, 15, 3, 5), ATTNCL_ERR_SHAPE, "expected [any, 6]"},
    {"attention_pooling_gaussian", "y_train", REAL(1, 7, 7), ATTNCL_ERR_SHAPE, "expected [11]"},
    {"attention_pooling_gaussian", "x_val", REAL(2, 7, 7, 1), ATTNCL_ERR_SHAPE, "expected [any]"},
    {"attention_pooling_gaussian", "x_train", NULL, ATTNCL_ERR_ARGUMENT, "x_train is missing"},
    {"transpose_qkv", "X", REAL(3, 110, 2, 5, 11), ATTNCL_ERR_SHAPE, "11 channels, num_heads = 3"},
    {"transpose_output", "X", REAL(3, 80, 4, 5, 4), ATTNCL_ERR_SHAPE, "batch of 4, num_heads = 3"},
    {"optimizer_step_adam", "grad", REAL(2, 30, 5, 6), ATTNCL_ERR_SHAPE, "expected [5, 7]"},
    {"optimizer_step_adam", "step", NULL, ATTNCL_ERR_ARGUMENT, "input step is missing"},
    {"optimizer_step_adam", "step", REAL(0, 1, 0), ATTNCL_ERR_DTYPE, "input step has type F32"},
    {"optimizer_step_adam", "step", INTS(1, 1, 1), ATTNCL_ERR_SHAPE, "expected []"},
    {"optimizer_step_adam_amsgrad", "max_exp_avg_sq", NULL, ATTNCL_ERR_ARGUMENT, "max_exp_avg_sq"},
    {"clip_grad_norm_d2l", "g.b", INTS(1, 3, 3), ATTNCL_ERR_DTYPE, "input g.b has type"},
    {"gru", "input", NULL, ATTNCL_ERR_ARGUMENT, "input input is missing"},
    {"gru", "input", REAL(3, 75, 5, 3, 5), ATTNCL_ERR_SHAPE, "expected [any, any, 4]"},
    {"gru", "input", REAL(2, 20, 5, 4), ATTNCL_ERR_SHAPE, "expected [any, any, 4]"},
    {"gru", "input", REAL(3, 0, 0, 3, 4), ATTNCL_ERR_SHAPE, "length 0, must be at least 1"},
    {"gru", "h0", REAL(3, 18, 1, 3, 6), ATTNCL_ERR_SHAPE,
     "input h0 has shape [1, 3, 6], expected [2, 3, 6]"},
    {"gru", "h0", REAL(3, 24, 2, 2, 6), ATTNCL_ERR_SHAPE, "expected [2, 3, 6]"},
    {"gru", "h0", REAL(2, 18, 3, 6), ATTNCL_ERR_SHAPE, "expected [2, 3, 6]"},
    {"seq2seq_bahdanau", "enc_X", NULL, ATTNCL_ERR_ARGUMENT, "input enc_X is missing"},
    {"seq2seq_bahdanau", "dec_X", NULL, ATTNCL_ERR_ARGUMENT, "input dec_X is missing"},
    {"seq2seq_bahdanau", "enc_X", REAL(2, 30, 10, 3), ATTNCL_ERR_DTYPE, "input enc_X has type F32"},
    {"seq2seq_bahdanau", "enc_X", INTS(2, 0, 10, 0), ATTNCL_ERR_SHAPE, "length 0"},
    {"seq2seq_bahdanau", "enc_X", TOKENS(eleven), ATTNCL_ERR_ARGUMENT, "enc_X: element 29 is 11"},
    {"seq2seq_bahdanau", "dec_X", TOKENS(minus_one), ATTNCL_ERR_ARGUMENT, "dec_X: element 0 is -1"},
    {"seq2seq_bahdanau", "dec_X", INTS(2, 27, 9, 3), ATTNCL_ERR_SHAPE,
     "input dec_X has shape [9, 3], expected [10, any]"},
    {"seq2seq_bahdanau", "dec_X", INTS(2, 0, 10, 0), ATTNCL_ERR_SHAPE, "length 0"},
    {"seq2seq_bahdanau", "enc_valid_lens", INTS(1, 9, 9), ATTNCL_ERR_SHAPE, "expected [10]"},
    {"seq2seq_bahdanau", "enc_valid_lens", INTS(2, 30, 10, 3), ATTNCL_ERR_SHAPE, "expected [10]"},
    {"seq2seq_predict", "enc_valid_lens", REAL(1, 10, 10), ATTNCL_ERR_DTYPE, "type F32"},
    {"seq2seq_predict", "enc_X", TOKENS(eleven), ATTNCL_ERR_ARGUMENT, "enc_X: element 29 is 11"},
    // feedback
    {"feedback_attention_joint", "key", REAL(3, 120, 10, 2, 6), ATTNCL_ERR_SHAPE,
     "input key has 10 memories, P = 9 are possible"},
    {"feedback_attention_joint", "key", REAL(3, 90, 5, 3, 6), ATTNCL_ERR_SHAPE,
     "expected [any, 2, 6]"},
    {"feedback_attention_joint", "value", REAL(3, 48, 4, 2, 6), ATTNCL_ERR_SHAPE,
     "input value has shape [4, 2, 6], expected [5, 2, 6]"},
    {"feedback_attention_joint", "query", REAL(2, 10, 2, 5), ATTNCL_ERR_SHAPE, "expected [any, 6]"},
    {"feedback_attention_split", "key", REAL(3, 60, 5, 2, 6), ATTNCL_ERR_SHAPE,
     "input key has shape [5, 2, 6], expected [any, 2, 2, 3]"},
    {"feedback_layer", "mem", REAL(3, 72, 6, 2, 6), ATTNCL_ERR_SHAPE,
     "input mem has 6 memories, P = 5 are possible"},
    {"feedback_layer", "mem", REAL(3, 90, 5, 3, 6), ATTNCL_ERR_SHAPE, "expected [any, 2, 6]"},
    {"feedback_transformer", "x_seq", REAL(3, 120, 10, 2, 6), ATTNCL_ERR_SHAPE,
     "length 10, the model takes at most 9"},
    {"feedback_transformer_kv", "x_seq", REAL(3, 90, 9, 2, 5), ATTNCL_ERR_SHAPE,
     "expected [any, any, 6]"},
    {"lm_feedback", "tokens", INTS(2, 39, 13, 3), ATTNCL_ERR_SHAPE,
     "length 13, the model takes at most 12"},
    {"lm_feedback_kv", "tokens", TOKENS(eleven), ATTNCL_ERR_ARGUMENT, "tokens: element 29 is 11"},
    // too long
    {"lm_transformer", "tokens", INTS(2, 39, 13, 3), ATTNCL_ERR_SHAPE,
     "length 13, the model takes at most 12"},
    {"aft_local", "query", REAL(3, 120, 10, 2, 6), ATTNCL_ERR_SHAPE,
     "length 10, the model takes at most 9"},
    {"aft_full", "query", REAL(3, 120, 10, 2, 6), ATTNCL_ERR_SHAPE, "at most 9"},
    {"spatial_gating_unit", "z", REAL(3, 200, 10, 2, 10), ATTNCL_ERR_SHAPE, "at most 9"},
    {"gmlp_block", "x", REAL(3, 120, 10, 2, 6), ATTNCL_ERR_SHAPE, "at most 9"},
    {"transformer_layer", "x", REAL(3, 108, 9, 2, 6), ATTNCL_ERR_SHAPE, "at most 8"},
    {"lm_aft_local", "tokens", INTS(2, 39, 13, 3), ATTNCL_ERR_SHAPE,
     "length 13, the model takes at most 12"},
    {"lm_aft_simple", "tokens", INTS(2, 39, 13, 3), ATTNCL_ERR_SHAPE, "at most 12"},
    {"lm_sample", "tokens", INTS(2, 15, 5, 3), ATTNCL_ERR_SHAPE, "at most 12"},
    {"positional_encoding", "x", REAL(3, 1001 * 0, 0, 1001, 5), ATTNCL_ERR_SHAPE, "at most 1000"},
    // out of range
    {"lm_aft_local", "tokens", TOKENS(minus_one), ATTNCL_ERR_ARGUMENT, "element 0 is -1"},
    {"lm_aft_local", "tokens", TOKENS(eleven), ATTNCL_ERR_ARGUMENT, "element 29 is 11"},
    {"lm_aft_local", "tokens", TOKENS(huge), ATTNCL_ERR_ARGUMENT, "tokens"},
    {"lm_aft_local", "targets", TOKENS(eleven), ATTNCL_ERR_ARGUMENT, "targets: element 29 is 11"},
    // training
    {"train_lm_gmlp", "tokens", NULL, ATTNCL_ERR_ARGUMENT, "input tokens is missing"},
    {"train_lm_gmlp", "targets", NULL, ATTNCL_ERR_ARGUMENT, "input targets is missing"},
    {"train_lm_gmlp", "tokens", REAL(3, 56, 4, 7, 2), ATTNCL_ERR_DTYPE, "tokens has type F32"},
    {"train_lm_gmlp", "targets", REAL(3, 56, 4, 7, 2), ATTNCL_ERR_DTYPE, "targets has type F32"},
    {"train_lm_gmlp", "tokens", INTS(0, 1, 0), ATTNCL_ERR_SHAPE, "no axis of steps"},
    {"train_lm_gmlp", "tokens", INTS(2, 28, 4, 7), ATTNCL_ERR_SHAPE, "tokens has shape [7]"},
    {"train_lm_gmlp", "tokens", INTS(3, 0, 0, 7, 2), ATTNCL_ERR_SHAPE,
     "input targets has N = 4 steps, input tokens has 0"},
    {"train_lm_gmlp", "targets", INTS(3, 42, 3, 7, 2), ATTNCL_ERR_SHAPE,
     "input targets has N = 3 steps, input tokens has 4"},
    {"train_lm_gmlp", "targets", INTS(3, 84, 4, 7, 3), ATTNCL_ERR_SHAPE, "expected [7, 2]"},
    {"train_lm_gmlp", "targets", INTS(2, 56, 4, 14), ATTNCL_ERR_SHAPE, "expected [7, 2]"},
    {"train_lm_gmlp", "tokens", BATCHES(seven), ATTNCL_ERR_ARGUMENT, "tokens: element 13 is 7"},
    {"train_lm_gmlp", "targets", BATCHES(seven), ATTNCL_ERR_ARGUMENT, "targets: element 13 is 7"},
    {"train_lm_gmlp", "tokens", INTS(3, 72, 4, 9, 2), ATTNCL_ERR_SHAPE,
     "length 9, the model takes at most 8"},
    {"train_lm_transformer", "tokens", INTS(3, 80, 4, 10, 2), ATTNCL_ERR_SHAPE,
     "length 10, the model takes at most 9"},
    {"train_lm_feedback_kv", "tokens", INTS(3, 88, 4, 11, 2), ATTNCL_ERR_SHAPE,
     "length 11, the model takes at most 10"},
    {"train_seq2seq_bahdanau", "dec_X", NULL, ATTNCL_ERR_ARGUMENT, "input dec_X is missing"},
    {"train_seq2seq_bahdanau", "enc_X", INTS(3, 36, 3, 3, 4), ATTNCL_ERR_SHAPE,
     "input dec_X has N = 4 steps, input enc_X has 3"},
    {"train_seq2seq_bahdanau", "enc_valid_lens", INTS(2, 8, 4, 2), ATTNCL_ERR_SHAPE,
     "expected [3]"},
    {"train_seq2seq_bahdanau", "enc_valid_lens", REAL(2, 12, 4, 3), ATTNCL_ERR_DTYPE,
     "enc_valid_lens has type F32"},
    {"train_seq2seq_bahdanau", "targets", INTS(3, 48, 4, 3, 4), ATTNCL_ERR_SHAPE,
     "input targets has shape [3, 4], expected [3, 5]"},
    // more axes than there can be, more elements than fit, a size that is not the shape's
    {"softmax", "x", REAL(8, 1, 1, 1, 1, 1, 1, 1, -1, 1), ATTNCL_ERR_SHAPE, "-1"},
    {"softmax", "x", REAL(3, 0, 1 << 30, 1 << 30, 1 << 30), ATTNCL_ERR_SHAPE, "2^48"},
    {"softmax", "x", REAL(2, 5, 2, 3), ATTNCL_ERR_ARGUMENT, "has 20 bytes, expected 24"},
};
enum { N_BAD_INPUTS = sizeof bad_inputs / sizeof bad_inputs[0] };

LOOP_TEST(a_bad_input_is_refused, 0, N_BAD_INPUTS)
{
    const struct bad_input *bad = &bad_inputs[_i];
    struct golden golden;
    attncl_model *model = NULL;
    attncl_results *results = NULL;
    golden_load(&golden, bad->golden);
    attncl_array *input = golden_input(&golden, bad->input);
    if (bad->with)
        *input = *bad->with;
    input->name = bad->with ? bad->input : "another";
    ck_ok(attncl_model_open(test_context(), golden.path, &model));
    ck_fails(attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL), bad->status,
             bad->words);
    ck_assert_ptr_null(results);
    ck_assert_ptr_null(strchr(attncl_last_error(), '\n'));
    attncl_model_close(model);
    golden_free(&golden);
}

TEST(gradients_that_cannot_be)
{
    struct golden golden;
    attncl_model *model = NULL;
    attncl_results *results = NULL;
    attncl_graph *g = NULL;
    golden_load(&golden, "transpose_qkv");
    ck_ok(attncl_model_open(test_context(), golden.path, &model));
    golden.inputs[golden.n_inputs] = golden.inputs[0];
    golden.inputs[golden.n_inputs++].name = "cotangent.output";
    ck_fails(attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL),
             ATTNCL_ERR_UNSUPPORTED,
             "arch transpose_qkv has no gradients, input cotangent.output asks for them");
    ck_fails(attncl_model_graph(model, golden.inputs, golden.n_inputs, &g), ATTNCL_ERR_UNSUPPORTED,
             "cotangent.output");
    attncl_model_close(model);
    golden_free(&golden);

    golden_load(&golden, "linear");
    ck_ok(attncl_model_open(test_context(), golden.path, &model));
    golden.inputs[golden.n_inputs] = golden.inputs[0];
    golden.inputs[golden.n_inputs++].name = "cotangent.weight";
    ck_fails(attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL),
             ATTNCL_ERR_ARGUMENT, "there is no output weight");
    golden.inputs[golden.n_inputs - 1].name = "cotangent.output";
    ck_fails(attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL),
             ATTNCL_ERR_SHAPE, "cotangent.output");
    golden.inputs[golden.n_inputs - 1].name = NULL;
    ck_fails(attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL),
             ATTNCL_ERR_ARGUMENT, "input 1 has no name");
    ck_assert_ptr_null(results);
    ck_assert_ptr_null(g);
    attncl_model_close(model);
    golden_free(&golden);
}

TEST(sampling_is_not_one_graph)
{
    struct golden golden;
    attncl_model *model = NULL;
    attncl_graph *g = NULL;
    golden_load(&golden, "lm_sample");
    ck_ok(attncl_model_open(test_context(), golden.path, &model));
    ck_fails(attncl_model_graph(model, golden.inputs, golden.n_inputs, &g), ATTNCL_ERR_UNSUPPORTED,
             "lm_sample");
    attncl_model_close(model);
    golden_free(&golden);
}
