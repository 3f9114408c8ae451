// SPDX-License-Identifier: MIT
// What parameters begin as: copies of a layer, a transformer's values in a feedback transformer.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attncl/parameters.h"
#include "attncl/train.h"
#include "train/files.h"

enum { CONFIG_BYTES = 1024, NAME_BYTES = 128, MAX_COUNT = 1000 };

#define SIZES "\"d_model\": 8, \"heads\": 2, \"d_ff\": 12, "

static attncl_status create(const char *model, const char *train, const char *init,
                            attncl_trainer **ret)
{
    char config[CONFIG_BYTES], data[FILE_BYTES], first[FILE_BYTES];
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    snprintf(config, sizeof config,
             "{\"arch\": \"lm\", \"model\": {%s}, \"train\": {\"batch_size\": 4, \"seq_len\": 6, "
             "\"optimizer\": {\"learning_rate\": 0.05}%s}}",
             model, train);
    options.data = directory_path("text", data);
    options.init = init ? directory_path(init, first) : NULL;
    return attncl_trainer_create(test_context(), config, &options, ret);
}

static attncl_trainer *start(const char *model, const char *train, const char *init)
{
    attncl_trainer *trainer = NULL;
    ck_ok(create(model, train, init, &trainer));
    return trainer;
}

static attncl_train_step take(attncl_trainer *trainer, int n)
{
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    for (int i = 0; i < n; ++i)
        ck_ok(attncl_trainer_step(trainer, &step));
    return step;
}

// Returns the number of elements.
static size_t read_param(attncl_trainer *trainer, const char *name, float values[MAX_COUNT])
{
    attncl_model *model = attncl_trainer_model(trainer);
    attncl_param param = ATTNCL_PARAM_INIT;
    size_t i = 0, count = 1;
    do
        ck_ok(attncl_model_param_at(model, i++, &param));
    while (strcmp(param.name, name) != 0);
    for (int k = 0; k < param.shape.rank; ++k)
        count *= (size_t)param.shape.dim[k];
    ck_assert_uint_le(count, MAX_COUNT);
    ck_ok(attncl_model_param_read(model, name, values, count * sizeof *values));
    return count;
}

static void up(void)
{
    directory_begin();
    directory_write("text", "abcdefghijkabcdefghijkabcdefghijkabcdefghijkabcdefghijkabcdefghijk"
                            "abcdefghijkabcdefghijkabcdefghijkabcdefghijkabcdefghijkabcdefghijk");
}

FIXTURE(up, directory_down);

// -- copies of a layer

static const char *const cloned[] = {
    SIZES "\"layer\": \"transformer\", \"max_len\": 8, \"n_layers\": 3",
    SIZES "\"layer\": \"feedback\", \"n_layers\": 3, \"P\": 8",
    "\"d_model\": 8, \"d_ff\": 12, \"max_len\": 8, \"layer\": \"aft_conv\", \"heads\": 2, "
    "\"window_size\": 3, "
    "\"n_layers\": 12",
    "\"d_model\": 8, \"d_ffn\": 12, \"max_len\": 8, \"layer\": \"gmlp\", \"seq_len\": 6, "
    "\"n_layers\": 2",
};

// Those of `trainer` are those of `plain`, of layer 0 where they are a layer's and `clones`.  Returns how many then
// differ from those of their own layer.
static int compare(attncl_trainer *trainer, attncl_trainer *plain, bool clones)
{
    attncl_param param = ATTNCL_PARAM_INIT;
    float got[MAX_COUNT], want[MAX_COUNT], own[MAX_COUNT];
    int n_other = 0;
    for (size_t i = 0; i < attncl_model_param_count(attncl_trainer_model(plain)); ++i) {
        char from[NAME_BYTES];
        int layer = 0, begin = 0, end = 0;
        ck_ok(attncl_model_param_at(attncl_trainer_model(plain), i, &param));
        snprintf(from, sizeof from, "%s", param.name);
        if (clones && sscanf(param.name, "%*[a-z].layers.%n%d%n", &begin, &layer, &end) == 1)
            snprintf(from + begin, sizeof from - (size_t)begin, "0%s", param.name + end);
        const size_t count = read_param(trainer, param.name, got);
        ck_assert_uint_eq(read_param(plain, from, want), count);
        ck_assert_msg(memcmp(got, want, count * sizeof *got) == 0, "%s", param.name);
        read_param(plain, param.name, own);
        n_other += memcmp(got, own, count * sizeof *got) != 0;
    }
    return n_other;
}

// What a file gives stays as it is.
TABLE_TEST(all_layers_begin_as_the_first_on_request, cloned)
{
    static const char clones[] = ", \"clone_layers\": true";
    attncl_trainer *plain = start(cloned[_i], "", NULL), *trainer = start(cloned[_i], clones, NULL);
    ck_assert_int_ge(compare(trainer, plain, true), 4);
    attncl_trainer_destroy(trainer);
    ck_ok(attncl_trainer_save_model(plain, IN_DIRECTORY("model")));
    trainer = start(cloned[_i], clones, "model");
    ck_assert_int_eq(compare(trainer, plain, false), 0);
    attncl_trainer_destroy(trainer);
    attncl_trainer_destroy(plain);
}

static attncl_trainer *start_pairs(const char *clones)
{
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    char config[CONFIG_BYTES], data[FILE_BYTES];
    attncl_trainer *trainer = NULL;
    snprintf(config, sizeof config,
             "{\"arch\": \"seq2seq_transformer\", \"model\": {" SIZES
             "\"max_len\": 8, \"n_layers\": 2, \"n_decoder_layers\": 3}, \"train\": {"
             "\"batch_size\": 2, \"seq_len\": 4, \"clone_layers\": %s}}",
             clones);
    directory_write("pairs", "a b\tc d\nb a\td c\na a\tc c\nb b\td d\n");
    options.pairs = directory_path("pairs", data);
    ck_ok(attncl_trainer_create(test_context(), config, &options, &trainer));
    return trainer;
}

TEST(an_encoder_and_a_decoder_copy_each_their_own)
{
    attncl_trainer *plain = start_pairs("false"), *trainer = start_pairs("true");
    ck_assert_int_ge(compare(trainer, plain, true), 4 + 2 * 6);
    attncl_trainer_destroy(trainer);
    attncl_trainer_destroy(plain);
}

TEST(a_translator_has_no_layers_to_copy)
{
    static const char config[] =
        "{\"arch\": \"seq2seq_bahdanau\", \"model\": {\"embed_size\": 2, \"num_hiddens\": 2, "
        "\"num_layers\": 1}, \"train\": {\"clone_layers\": true}}";
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    char data[FILE_BYTES];
    attncl_trainer *trainer = NULL;
    options.pairs = directory_path("text", data);
    ck_fails(attncl_trainer_create(test_context(), config, &options, &trainer), ATTNCL_ERR_FORMAT,
             "train: clone_layers is true, arch seq2seq_bahdanau has no layers to copy");
}

TEST(ready_batches_and_pairs_have_one_length)
{
    static const char *const archs[] = {"encoder", "lm"};
    for (int i = 0; i < 2; ++i) {
        char config[CONFIG_BYTES], data[FILE_BYTES];
        attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
        attncl_trainer *trainer = NULL;
        snprintf(config, sizeof config,
                 "{\"arch\": \"%s\", \"model\": {\"layer\": \"transformer\"}, \"train\": "
                 "{\"seq_len\": [[0, 2], [1, 3]]}}",
                 archs[i]);
        options.batches = directory_path("text", data);
        *(i ? &options.data : &options.pairs) = data;
        ck_fails(attncl_trainer_create(test_context(), config, &options, &trainer),
                 ATTNCL_ERR_FORMAT,
                 "train: seq_len has 2 lengths, pairs and ready batches have one");
    }
}

// -- a transformer as the beginning of a feedback transformer

#define TRANSFORMER SIZES "\"layer\": \"transformer\", \"max_len\": 8, \"n_layers\": 2"
#define FEEDBACK    SIZES "\"layer\": \"feedback\", \"P\": 8, \"n_layers\": 2"

// #: each layer.
static const struct {
    const char *own, *source; // NULL: zeros
} mapping[] = {
    {"transformer.layers.#.norm_self_attn.weight", "encoder.layers.#.norm_self_attn.weight"},
    {"transformer.layers.#.norm_self_attn.bias", "encoder.layers.#.norm_self_attn.bias"},
    {"transformer.layers.#.attn.query.linear.weight",
     "encoder.layers.#.self_attn.query.linear.weight"},
    {"transformer.layers.#.attn.query_pos_bias", "encoder.layers.#.self_attn.query.linear.bias"},
    {"transformer.layers.#.attn.key.linear.weight", "encoder.layers.#.self_attn.key.linear.weight"},
    {"transformer.layers.#.attn.value.linear.weight",
     "encoder.layers.#.self_attn.value.linear.weight"},
    {"transformer.layers.#.attn.value.linear.bias", "encoder.layers.#.self_attn.value.linear.bias"},
    {"transformer.layers.#.attn.output.weight", "encoder.layers.#.self_attn.output.weight"},
    {"transformer.layers.#.attn.output.bias", "encoder.layers.#.self_attn.output.bias"},
    {"transformer.layers.#.attn.key_pos_embeddings", NULL},
    {"transformer.layers.#.norm_ff.weight", "encoder.layers.#.norm_ff.weight"},
    {"transformer.layers.#.norm_ff.bias", "encoder.layers.#.norm_ff.bias"},
    {"transformer.layers.#.feed_forward.layer1.weight",
     "encoder.layers.#.feed_forward.layer1.weight"},
    {"transformer.layers.#.feed_forward.layer1.bias", "encoder.layers.#.feed_forward.layer1.bias"},
    {"transformer.layers.#.feed_forward.layer2.weight",
     "encoder.layers.#.feed_forward.layer2.weight"},
    {"transformer.layers.#.feed_forward.layer2.bias", "encoder.layers.#.feed_forward.layer2.bias"},
    {"transformer.norm.weight", "encoder.norm.weight"},
    {"transformer.norm.bias", "encoder.norm.bias"},
    {"generator.weight", "generator.projection.weight"},
    {"generator.bias", "generator.projection.bias"},
};

static void name_of(const char *pattern, int layer, char ret[NAME_BYTES])
{
    snprintf(ret, NAME_BYTES, "%s", pattern);
    char *number = strchr(ret, '#');
    if (number)
        *number = (char)('0' + layer);
}

// Keys and values are divided by `size`.
static void check_values(attncl_trainer *trainer, const attncl_safetensors *source, size_t row,
                         int layer, double size)
{
    static const float zeros[MAX_COUNT] = {0};
    char own[NAME_BYTES], name[NAME_BYTES];
    float got[MAX_COUNT];
    const float *want = zeros;
    name_of(mapping[row].own, layer, own);
    const size_t count = read_param(trainer, own, got);
    if (mapping[row].source) {
        name_of(mapping[row].source, layer, name);
        const attncl_array *a = attncl_safetensors_find(source, name);
        ck_assert_msg(a != NULL, "%s", name);
        ck_assert_uint_eq(a->bytes, count * sizeof *got);
        want = a->data;
    }
    const bool reads_memory =
        strstr(own, ".key.linear.weight") || strstr(own, ".value.linear.weight");
    const double tolerance = reads_memory ? 1e-6 : 0;
    for (size_t i = 0; i < count; ++i) {
        const double expected = (double)want[i] / (reads_memory ? size : 1);
        ck_assert_msg(fabs((double)got[i] - expected) <= tolerance * fabs(expected), "%s", own);
    }
}

// Of a text that each character alone predicts, both know as much.
TEST(a_transformer_becomes_a_feedback_transformer)
{
    attncl_safetensors *source = NULL;
    float got[MAX_COUNT];
    double squares = 0;
    attncl_trainer *trainer = start(TRANSFORMER, "", NULL);
    const size_t n_rows = COUNT_OF(mapping);
    const double loss = take(trainer, 40).loss;
    ck_ok(attncl_trainer_save_model(trainer, IN_DIRECTORY("model")));
    attncl_trainer_destroy(trainer);
    trainer = start(FEEDBACK, "", "model");
    ck_ok(attncl_safetensors_open(IN_DIRECTORY("model"), &source));
    // The embedding as layers see it, by the factors that both have by default.
    const float *embedding = attncl_safetensors_find(source, "src_embed.linear.weight")->data;
    const size_t count = read_param(trainer, "src_embed.weight", got);
    for (size_t i = 0; i < count; ++i) {
        ck_assert_float_eq(got[i], (float)(sqrt(8) * (double)embedding[i]));
        squares += (double)got[i] * (double)got[i];
    }
    for (size_t i = 0; i < 2 * n_rows; ++i)
        check_values(trainer, source, i % n_rows, (int)(i / n_rows), sqrt(squares / (double)count));
    ck_assert_uint_eq(read_param(trainer, "transformer.weights", got), 3);
    ck_assert(got[0] == 1 && got[1] == 1 && got[2] == 1);
    ck_assert_uint_eq(attncl_model_param_count(attncl_trainer_model(trainer)), 2 * 16 + 6);
    ck_assert_double_lt(take(trainer, 1).loss, loss + 0.5);
    attncl_safetensors_close(source);
    attncl_trainer_destroy(trainer);
}

// A vocabulary without positions has another name; a model without biases of queries leaves those of heads 0.  The
// size of an embedded token is that with the model's own factor.
TEST(a_transformer_may_lack_biases_and_positions)
{
    static const char *const names[] = {"encoder.layers.1.self_attn.value.linear.weight",
                                        "transformer.layers.1.attn.value.linear.weight"};
    float got[MAX_COUNT], want[MAX_COUNT];
    double squares = 0;
    attncl_trainer *source = start(TRANSFORMER ", \"bias\": false, \"pos\": \"no_pos\"", "", NULL);
    ck_ok(attncl_trainer_save_model(source, IN_DIRECTORY("model")));
    attncl_trainer *trainer =
        start(FEEDBACK ", \"score\": \"split\", \"embed_scale\": 2", "", "model");
    ck_assert_uint_eq(read_param(trainer, "src_embed.weight", got), 11 * 8);
    read_param(source, "src_embed.weight", want);
    for (int i = 0; i < 11 * 8; ++i) {
        ck_assert_float_eq(got[i], want[i] / 2);
        squares += (double)want[i] * (double)want[i];
    }
    read_param(source, names[0], want);
    ck_assert_uint_eq(read_param(trainer, names[1], got), 8 * 8);
    for (int i = 0; i < 8 * 8; ++i)
        ck_assert_double_eq_tol((double)got[i], (double)want[i] / sqrt(squares / (11 * 8)), 1e-6);
    ck_assert_uint_eq(read_param(trainer, "transformer.layers.1.attn.query_pos_bias", got), 8);
    for (int i = 0; i < 8; ++i)
        ck_assert_float_eq(got[i], 0);
    attncl_trainer_destroy(trainer);

    // Behind a norm a token has the size 1.
    attncl_trainer_destroy(source);
    source = start(TRANSFORMER ", \"embed_norm\": true", "", NULL);
    ck_ok(attncl_trainer_save_model(source, IN_DIRECTORY("model")));
    trainer = start(FEEDBACK ", \"embed_norm\": true", "", "model");
    read_param(source, names[0], want);
    read_param(trainer, names[1], got);
    ck_assert_mem_eq(got, want, 8 * 8 * sizeof *got);
    attncl_trainer_destroy(trainer);
    attncl_trainer_destroy(source);
}

static const struct other {
    const char *source, *own, *words;
    attncl_status status;
} others[] = {
    {TRANSFORMER, SIZES "\"layer\": \"feedback\", \"n_layers\": 1",
     "model: the model's n_layers is 1, the file's is 2", ATTNCL_ERR_STATE},
    {TRANSFORMER,
     "\"d_model\": 8, \"heads\": 4, \"d_ff\": 12, \"layer\": \"feedback\", \"n_layers\": 2",
     "the model's heads is 4, the file's is 2", ATTNCL_ERR_STATE},
    {TRANSFORMER, FEEDBACK ", \"activation\": \"GELU\"",
     "the model's activation is \"GELU\", the file's is \"ReLU\"", ATTNCL_ERR_STATE},
    {TRANSFORMER ", \"norm_first\": false", FEEDBACK, "norm_first is true, the file's is false",
     ATTNCL_ERR_STATE},
    {TRANSFORMER ", \"tie_generator\": true", FEEDBACK ", \"tie_generator\": true",
     "embed_scale is 1.0, the file's is 2.82", ATTNCL_ERR_STATE},
    {TRANSFORMER,
     "\"d_model\": 8, \"heads\": 2, \"d_ff\": 16, \"max_len\": 8, \"layer\": \"transformer\", "
     "\"n_layers\": 2",
     "feed_forward.layer1.weight has shape [12, 8], the configuration's is [16, 8]",
     ATTNCL_ERR_SHAPE},
    {"\"d_model\": 8, \"d_ff\": 12, \"max_len\": 8, \"layer\": \"aft_simple\", \"n_layers\": 2",
     FEEDBACK, "parameter src_embed.weight is missing", ATTNCL_ERR_FORMAT},
    {TRANSFORMER ", \"final_norm\": false", FEEDBACK, "parameter encoder.norm.weight is missing",
     ATTNCL_ERR_FORMAT},
    {TRANSFORMER, SIZES "\"layer\": \"feedback_kv\", \"n_layers\": 2",
     "parameter src_embed.weight is missing", ATTNCL_ERR_FORMAT},
};

TABLE_TEST(other_models_are_refused, others)
{
    attncl_trainer *trainer = start(others[_i].source, "", NULL);
    ck_ok(attncl_trainer_save_model(trainer, IN_DIRECTORY("model")));
    attncl_trainer_destroy(trainer);
    ck_fails(create(others[_i].own, "", "model", &trainer), others[_i].status, others[_i].words);
}
