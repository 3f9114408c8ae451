// SPDX-License-Identifier: MIT
// New models: initial values against an implementation of their definition and against what PyTorch's
// modules are documented to have; every architecture is created, saved and opened.

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attncl/attncl.h"
#include "support/directory.h"
#include "support/test.h"

FIXTURE(directory_begin, directory_down);

enum { MAX_ELEMENTS = 1 << 19 };
static float first[MAX_ELEMENTS], second[MAX_ELEMENTS];

static size_t count_of(attncl_shape shape)
{
    size_t count = 1;
    for (int i = 0; i < shape.rank; ++i)
        count *= (size_t)shape.dim[i];
    ck_assert_uint_le(count, MAX_ELEMENTS);
    return count;
}

static attncl_model *create(const char *arch, const char *config, uint64_t seed)
{
    attncl_model *model = NULL;
    ck_ok(attncl_model_create(test_context(), arch, config, seed, &model));
    return model;
}

static size_t read_param(attncl_model *model, const char *name, float *data)
{
    attncl_param param = ATTNCL_PARAM_INIT;
    for (size_t i = 0; i < attncl_model_param_count(model); ++i) {
        ck_ok(attncl_model_param_at(model, i, &param));
        if (strcmp(param.name, name) != 0)
            continue;
        const size_t count = count_of(param.shape);
        ck_ok(attncl_model_param_read(model, name, data, count * sizeof *data));
        return count;
    }
    ck_abort_msg("there is no parameter %s", name);
    return 0;
}

// -- exact values

// Philox 4x32-10 as its paper writes it: words (c0, c1, c2, 0) under a key.
static void philox(uint32_t c0, uint32_t c1, uint64_t seed, uint32_t ret[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32), x[4] = {c0, c1, 0, 0};
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = (uint64_t)0xD2511F53 * x[0], b = (uint64_t)0xCD9E8D57 * x[2];
        const uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k0, (uint32_t)b,
                               (uint32_t)(a >> 32) ^ x[3] ^ k1, (uint32_t)a};
        memcpy(x, y, sizeof x);
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    memcpy(ret, x, sizeof x);
}

static void ck_uniform(attncl_model *model, uint32_t number, const char *name, uint64_t seed,
                       double low, double high)
{
    const size_t count = read_param(model, name, first);
    for (size_t i = 0; i < count; ++i) {
        uint32_t word[4];
        philox(number, (uint32_t)i, seed, word);
        const float want = (float)(low + (high - low) * ((word[0] >> 8) / 16777216.0));
        ck_assert_msg(first[i] == want, "%s[%zu] is %.9g, expected %.9g", name, i, (double)first[i],
                      (double)want);
    }
}

TEST(uniform_values_are_those_of_the_definition)
{
    const uint64_t seed = 0x123456789abcdef0;
    attncl_model *model = create("linear", "{\"in_features\": 16, \"out_features\": 5}", seed);
    ck_uniform(model, 0, "bias", seed, -0.25, 0.25); // names in bytewise order
    ck_uniform(model, 1, "weight", seed, -0.25, 0.25);
    attncl_model_destroy(model);
}

TEST(normal_values_are_those_of_the_definition)
{
    attncl_model *model = create("embedding", "{\"num_embeddings\": 50, \"embedding_dim\": 20}", 7);
    const size_t count = read_param(model, "weight", first);
    ck_assert_uint_eq(count, 1000);
    for (size_t i = 0; i < count; ++i) {
        uint32_t word[4];
        philox(0, (uint32_t)i, 7, word);
        const double angle = 2 * 3.14159265358979323846 * (word[1] / 4294967296.0);
        const float want = (float)(sqrt(-2 * log((word[0] + 1.0) / 4294967296.0)) * cos(angle));
        ck_assert_msg(first[i] == want, "[%zu] is %.9g, expected %.9g", i, (double)first[i],
                      (double)want);
    }
    attncl_model_destroy(model);
}

// encoder.layers.10 comes before encoder.layers.2.  Number of layers.2's proj1.bias: src_embed comes
// after encoder, and each of 11 layers has 10 parameters.
TEST(parameters_are_numbered_in_bytewise_order)
{
    attncl_model *model = create("lm",
                                 "{\"layer\": \"gmlp\", \"d_model\": 4, \"d_ffn\": 8, \"seq_len\": "
                                 "3, \"n_layers\": 11, \"n_vocab\": 5, \"max_len\": 3}",
                                 1);
    // layers 0, 1, 10, 2; in each norm.bias, norm.weight, proj1.bias
    ck_uniform(model, 3 * 10 + 2, "encoder.layers.2.proj1.bias", 1, -0.5, 0.5);
    attncl_model_destroy(model);
}

// -- rules

struct rule {
    const char *arch, *name; // patterns
    enum { CONSTANT, UNIFORM, NORMAL } kind;
    double low, high;
};

// 1 / sqrt(n)
#define BOUND(n) UNIFORM, -1 / sqrt(n), 1 / sqrt(n)

struct created {
    const char *arch, *config;
    struct rule rules[12];
};

static void ck_constant(const struct rule *rule, const char *name, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        ck_assert_msg(first[i] == (float)rule->low, "%s[%zu] is %g, expected %g", name, i,
                      (double)first[i], rule->low);
}

// Mean and variance within six standard deviations of theirs, all elements within the bounds.
static void ck_distributed(const struct rule *rule, const char *name, size_t count)
{
    const bool uniform = rule->kind == UNIFORM;
    const double mean = uniform ? (rule->low + rule->high) / 2 : 0;
    const double variance = uniform ? pow(rule->high - rule->low, 2) / 12 : 1;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; ++i) {
        ck_assert_msg(!uniform || (first[i] >= (float)rule->low && first[i] <= (float)rule->high),
                      "%s[%zu] is %g, expected %g to %g", name, i, (double)first[i], rule->low,
                      rule->high);
        sum += first[i] - mean;
        squares += pow(first[i] - mean, 2);
    }
    const double n = (double)count;
    ck_assert_msg(fabs(sum / n) <= 6 * sqrt(variance / n), "%s has mean %g, expected %g", name,
                  mean + sum / n, mean);
    // The variance of x^2: 4/5 of the variance's square for uniform x, twice that square for normal.
    const double spread = variance * sqrt((uniform ? 0.8 : 2) / n);
    ck_assert_msg(fabs(squares / n - variance) <= 6 * spread, "%s has variance %g, expected %g",
                  name, squares / n, variance);
}

static void ck_rules(const struct created *c)
{
    attncl_model *model = create(c->arch, c->config, 3);
    attncl_param param = ATTNCL_PARAM_INIT;
    for (size_t i = 0; i < attncl_model_param_count(model); ++i) {
        const struct rule *rule = c->rules;
        ck_ok(attncl_model_param_at(model, i, &param));
        if (!param.trainable)
            continue;
        while (rule->name && fnmatch(rule->name, param.name, 0) != 0)
            ++rule;
        ck_assert_msg(rule->name != NULL, "no rule for %s", param.name);
        const size_t count = read_param(model, param.name, first);
        if (rule->kind == CONSTANT)
            ck_constant(rule, param.name, count);
        else
            ck_distributed(rule, param.name, count);
    }
    attncl_model_destroy(model);
}

#define RULE(name, ...)                                                                            \
    {                                                                                              \
        NULL, name, __VA_ARGS__                                                                    \
    }
#define NORMS RULE("*norm*.weight", CONSTANT, 1, 0), RULE("*norm*.bias", CONSTANT, 0, 0)

TEST(rules_of_language_models)
{
    const struct created created[] = {
        {"lm",
         "{\"layer\": \"aft_local\", \"d_model\": 64, \"n_layers\": 2, \"seq_len\": 20, "
         "\"local_window_size\": 4, \"d_ff\": 256, \"n_vocab\": 50, \"max_len\": 20, \"pos\": "
         "\"learned_pos\"}",
         {NORMS, RULE("src_embed.linear.weight", NORMAL, 0, 0),
          RULE("src_embed.positional_encodings", CONSTANT, 0, 0),
          RULE("*.pos_bias", CONSTANT, 0, 0), RULE("*.layer2.*", BOUND(256)),
          RULE("*", BOUND(64))}},
        {"lm",
         "{\"layer\": \"gmlp\", \"d_model\": 64, \"n_layers\": 2, \"seq_len\": 20, \"d_ffn\": 128, "
         "\"n_vocab\": 50}",
         {NORMS, RULE("src_embed.linear.weight", NORMAL, 0, 0),
          RULE("*.sgu.weight", UNIFORM, -0.01, 0.01), RULE("*.sgu.bias", CONSTANT, 1, 0),
          RULE("*", BOUND(64))}},
        {"lm",
         "{\"layer\": \"feedback\", \"d_model\": 64, \"heads\": 4, \"n_layers\": 2, \"d_ff\": 64, "
         "\"n_vocab\": 50, \"P\": 10, \"score\": \"split\", \"tie_generator\": true}",
         {NORMS, RULE("src_embed.weight", NORMAL, 0, 0), RULE("*_pos_*", CONSTANT, 0, 0),
          RULE("transformer.weights", CONSTANT, 1, 0), RULE("*", BOUND(64))}},
        {"lm",
         "{\"layer\": \"feedback_kv\", \"d_model\": 64, \"heads\": 4, \"n_layers\": 1, \"d_ff\": "
         "64, \"n_vocab\": 50, \"P\": 10}",
         {NORMS, RULE("src_embed.weight", NORMAL, 0, 0), RULE("*_pos_*", CONSTANT, 0, 0),
          RULE("transformer.weights", CONSTANT, 1, 0), RULE("*", BOUND(64))}},
    };
    for (size_t i = 0; i < COUNT_OF(created); ++i)
        ck_rules(&created[i]);
}

// Xavier's uniform of the whole weights of d2l's recurrent layers; the rest has its modules' defaults.
TEST(rules_of_other_architectures)
{
    const double embed = 60, hidden = 64;
    const double xavier = sqrt(6 / (embed + 3 * hidden)), wide = sqrt(6 / (embed + 4 * hidden)),
                 square = sqrt(6 / (4 * hidden));
    const struct created created[] = {
        {"seq2seq_bahdanau",
         "{\"src_vocab_size\": 50, \"tgt_vocab_size\": 60, \"embed_size\": 60, \"num_hiddens\": "
         "64, \"num_layers\": 2}",
         {RULE("*.embedding.weight", NORMAL, 0, 0),
          RULE("encoder.rnn.weight_ih_l0", UNIFORM, -xavier, xavier),
          RULE("decoder.rnn.weight_ih_l0", UNIFORM, -wide, wide),
          RULE("*.rnn.weight_*", UNIFORM, -square, square), RULE("*", BOUND(64))}},
        {"gru",
         "{\"input_size\": 60, \"hidden_size\": 64, \"num_layers\": 2}",
         {RULE("*", BOUND(64))}},
        {"raschka_multi_head",
         "{\"d\": 16, \"heads\": 4}",
         {RULE("*_U_*", UNIFORM, 0, 1), RULE("*", BOUND(64))}},
        {"aft_conv",
         "{\"d_model\": 64, \"heads\": 4, \"window_size\": 5}",
         {RULE("w", CONSTANT, 0, 0), RULE("*", BOUND(64))}},
        {"layer_norm",
         "{\"normalized_shape\": [3, 4]}",
         {RULE("weight", CONSTANT, 1, 0), RULE("bias", CONSTANT, 0, 0)}},
    };
    for (size_t i = 0; i < COUNT_OF(created); ++i)
        ck_rules(&created[i]);
}

// -- models

static void ck_same(attncl_model *a, attncl_model *b)
{
    attncl_param param = ATTNCL_PARAM_INIT;
    ck_assert_uint_eq(attncl_model_param_count(a), attncl_model_param_count(b));
    for (size_t i = 0; i < attncl_model_param_count(a); ++i) {
        ck_ok(attncl_model_param_at(a, i, &param));
        const size_t count = read_param(a, param.name, first);
        ck_assert_uint_eq(read_param(b, param.name, second), count);
        ck_assert_msg(memcmp(first, second, count * sizeof first[0]) == 0, "%s differs",
                      param.name);
    }
}

TEST(every_architecture_is_created_and_saved)
{
    const char *path = IN_DIRECTORY("model.safetensors"), *name;
    size_t n_trained = 0;
    for (size_t i = 0; (name = attncl_arch_name(i)) != NULL; ++i) {
        attncl_description *d = NULL;
        attncl_model *opened = NULL;
        ck_ok(attncl_description_create(name, NULL, 0, &d));
        attncl_model *model = create(name, attncl_description_config(d), i);
        n_trained += attncl_model_tensor_count(model) > 0;
        ck_ok(attncl_model_save(model, path, NULL));
        ck_ok(attncl_model_open(test_context(), path, NULL, &opened));
        ck_assert_str_eq(attncl_model_arch(opened), name);
        ck_same(model, opened);
        attncl_model_destroy(opened);
        const attncl_model_options as = {sizeof as, name, attncl_description_config(d)};
        ck_ok(attncl_model_open(test_context(), path, &as, &opened));
        ck_same(model, opened);
        attncl_model_destroy(opened);
        attncl_model_destroy(model);
        attncl_description_destroy(d);
    }
    ck_assert_uint_ge(n_trained, 25);
}

static const char small[] = "{\"layer\": \"transformer\", \"d_model\": 8, \"heads\": 2, \"d_ff\": "
                            "16, \"n_layers\": 1, \"n_vocab\": 5, \"max_len\": 6}";

TEST(the_seed_decides)
{
    attncl_model *a = create("lm", small, 1), *b = create("lm", small, 1),
                 *c = create("lm", small, (uint64_t)1 << 32 | 1);
    ck_same(a, b);
    const size_t count = read_param(a, "generator.projection.weight", first);
    read_param(c, "generator.projection.weight", second);
    for (size_t i = 0; i < count; ++i)
        ck_assert(first[i] != second[i]);
    attncl_model_destroy(a);
    attncl_model_destroy(b);
    attncl_model_destroy(c);
}

TEST(bad_models_are_refused)
{
    attncl_context *context = test_context();
    attncl_model *model = NULL;
    ck_fails(attncl_model_create(context, "ln", "{}", 1, &model), ATTNCL_ERR_FORMAT, "arch ln");
    ck_fails(attncl_model_create(context, "lm", "{", 1, &model), ATTNCL_ERR_FORMAT,
             "attncl.config");
    ck_fails(attncl_model_create(context, "linear", "{\"in_features\": 3}", 1, &model),
             ATTNCL_ERR_FORMAT, "out_features");
    ck_fails(attncl_model_create(context, "linear", NULL, 1, &model), ATTNCL_ERR_ARGUMENT, "NULL");
    const attncl_model_options as = {sizeof as, "linear",
                                     "{\"in_features\": 3, \"out_features\": 2}"},
                               half = {sizeof half, "linear", NULL};
    ck_fails(attncl_model_open(context, IN_DIRECTORY("none"), &as, &model), ATTNCL_ERR_IO, "none");
    ck_fails(attncl_model_open(context, IN_DIRECTORY("none"), &half, &model), ATTNCL_ERR_ARGUMENT,
             "arch is given, config NULL: both or neither");
    ck_assert_ptr_null(model);
}
