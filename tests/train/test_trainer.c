// SPDX-License-Identifier: MIT
// The trainer against PyTorch: losses and norms of the golden files of arch train.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attncl/parameters.h"
#include "attncl/train.h"
#include "support/golden.h"
#include "train/files.h"

static const char *const cases[] = {
    "train_lm_transformer", "train_lm_aft_local",     "train_lm_gmlp",
    "train_lm_tied",        "train_lm_sgd",           "train_lm_adamw",
    "train_lm_feedback_kv", "train_seq2seq_bahdanau", "train_seq2seq_transformer"};

static const char *config_of(const struct golden *golden)
{
    return attncl_safetensors_metadata(golden->file, "attncl.train");
}

static void near(const char *file, const attncl_array *want, int64_t i, double got)
{
    const double tolerance = 2e-5; // of float arithmetic through a model, relative
    const double expected = (double)((const float *)want->data)[i];

    ck_assert_int_eq(want->dtype, ATTNCL_F32);
    ck_assert_msg(fabs(got - expected) <= tolerance * fabs(expected),
                  "%s: %s[%lld] is %.9g, expected %.9g", file, want->name, (long long)i, got,
                  expected);
}

static void write_batches(struct golden *golden)
{
    ck_ok(
        attncl_safetensors_write(IN_DIRECTORY("batches"), golden->inputs, golden->n_inputs, NULL));
}

FIXTURE(directory_begin, directory_down);

TABLE_TEST(follows_pytorch, cases)
{
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    char batches[FILE_BYTES];
    attncl_trainer *trainer = NULL;
    struct golden golden;
    golden_load(&golden, cases[_i]);
    write_batches(&golden);
    options.batches = directory_path("batches", batches);
    options.init = golden.path;
    ck_ok(attncl_trainer_create(test_context(), config_of(&golden), &options, &trainer));
    const attncl_array *losses = golden_expected(&golden, "losses");
    const attncl_array *norms = golden_expected(&golden, "grad_norms");
    for (int64_t i = 0; i < losses->dim[0]; ++i) {
        attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
        ck_ok(attncl_trainer_step(trainer, &step));
        near(cases[_i], losses, i, step.loss);
        near(cases[_i], norms, i, step.grad_norm);
        ck_assert_int_eq(step.step, i + 1);
    }
    attncl_trainer_destroy(trainer);
    golden_free(&golden);
}

// Learnt from ready batches, evaluated on the end of a text.
TEST(batches_stand_for_those_of_a_text)
{
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    char batches[FILE_BYTES], text[FILE_BYTES];
    attncl_trainer *trainer = NULL;
    struct golden golden;
    double loss;
    golden_load(&golden, cases[1]);
    write_batches(&golden);
    directory_write("text",
                    "abcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefg"
                    "gfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcba");
    options.batches = directory_path("batches", batches);
    options.data = directory_path("text", text);
    options.init = golden.path;
    ck_ok(attncl_trainer_create(test_context(), config_of(&golden), &options, &trainer));
    ck_ok(attncl_trainer_step(trainer, &step));
    near(cases[1], golden_expected(&golden, "losses"), 0, step.loss);
    ck_ok(attncl_trainer_evaluate(trainer, &loss));
    ck_assert(loss > 0 && loss < 10);
    attncl_trainer_destroy(trainer);

    options.tokens = options.data;
    ck_fails(attncl_trainer_create(test_context(), config_of(&golden), &options, &trainer),
             ATTNCL_ERR_ARGUMENT, "2 of data, tokens and pairs are given");
    options = (attncl_trainer_options)ATTNCL_TRAINER_OPTIONS_INIT;
    ck_fails(attncl_trainer_create(test_context(), config_of(&golden), &options, &trainer),
             ATTNCL_ERR_ARGUMENT, "none of data");
    golden_free(&golden);
}

// Before the first step, not when an evaluation is due.  Ready batches have their own length.
TEST(windows_that_the_model_cannot_take_are_refused)
{
    static const struct {
        const char *keys, *words;
    } rows[] = {
        {"\"seq_len\": 8", "train: seq_len is 8, the model takes at most 7"},
        {"\"valid_len\": 8", "train: valid_len is 8, the model takes at most 7"},
        {"\"valid_len\": 8, \"valid_fraction\": 0", NULL},
        {"\"seq_len\": 7, \"valid_len\": 7", NULL},
    };
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    attncl_trainer *trainer = NULL;
    char config[256], text[FILE_BYTES];
    directory_write("text",
                    "abcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefg"
                    "gfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcba");
    options.data = directory_path("text", text);
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        snprintf(
            config, sizeof config,
            "{\"arch\": \"lm\", \"model\": {\"layer\": \"gmlp\", \"d_model\": 4, \"n_layers\": 1, "
            "\"d_ffn\": 4, \"seq_len\": 7}, \"train\": {\"batch_size\": 2, %s}}",
            rows[i].keys);
        const attncl_status status =
            attncl_trainer_create(test_context(), config, &options, &trainer);
        if (rows[i].words)
            ck_fails(status, ATTNCL_ERR_FORMAT, rows[i].words);
        else
            ck_ok(status);
        attncl_trainer_destroy(trainer);
        trainer = NULL;
    }
}

// A text begins with <s>.  Token 9 is beyond the golden model's 7.
static const char tokenizer[] =
    "{\"model\": {\"type\": \"BPE\", \"merges\": [\"a b\"],\n"
    "  \"vocab\": {\"<s>\": 0, \"a\": 1, \"b\": 2, \"ab\": 3, \"\\\"\": 4, \" \": 5, \"c\": 9}},\t"
    "\"added_tokens\": [{\"id\": 0, \"content\": \"<s>\", \"special\": true}],\r\n"
    "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
    "{\"id\": \"<s>\"}}, {\"Sequence\": {\"id\": \"A\"}}], \"special_tokens\": {\"<s>\": "
    "{\"ids\": [0]}}}}";

// The golden model's file with these two entries of metadata, null: none.
static void write_init(const struct golden *golden, const char *rules, const char *eos)
{
    enum { MAX_TENSORS = 100 };
    attncl_array tensors[MAX_TENSORS];
    const size_t n = attncl_safetensors_count(golden->file);
    ck_assert_uint_le(n, MAX_TENSORS);
    for (size_t i = 0; i < n; ++i)
        tensors[i] = *attncl_safetensors_at(golden->file, i);
    const char *const metadata[] = {"attncl.arch",
                                    attncl_safetensors_metadata(golden->file, "attncl.arch"),
                                    "attncl.config",
                                    attncl_safetensors_metadata(golden->file, "attncl.config"),
                                    "attncl.eos",
                                    eos,
                                    rules ? "attncl.tokenizer" : NULL,
                                    rules,
                                    NULL};
    ck_ok(attncl_safetensors_write(IN_DIRECTORY("init"), tensors, n, metadata));
}

// Also of a training by tokens.
TEST(a_tokenizer_is_kept)
{
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    char batches[FILE_BYTES], init[FILE_BYTES];
    attncl_trainer *trainer = NULL;
    struct golden golden;
    golden_load(&golden, cases[1]);
    write_batches(&golden);
    write_init(&golden, "{}", "[2, 0]");
    options.batches = directory_path("batches", batches);
    options.init = directory_path("init", init);
    ck_ok(attncl_trainer_create(test_context(), config_of(&golden), &options, &trainer));
    ck_assert_str_eq(attncl_model_metadata(attncl_trainer_model(trainer), "attncl.tokenizer"),
                     "{}");
    const attncl_model *model = attncl_trainer_model(trainer);
    for (int32_t token = -1; token < 30; ++token)
        ck_assert_int_eq(attncl_model_ends_text(model, token), token == 0 || token == 2);
    ck_assert_int_eq(attncl_model_ends_text(NULL, 2), 0);
    attncl_trainer_destroy(trainer);
    static const char *const wrong[] = {"2",     "[2",         "[-1]",        "[1.5]",
                                        "[[2]]", "{\"a\": 2}", "[1234567890]"};
    for (size_t i = 0; i < COUNT_OF(wrong); ++i) {
        write_init(&golden, "{}", wrong[i]);
        ck_fails(attncl_trainer_create(test_context(), config_of(&golden), &options, &trainer),
                 ATTNCL_ERR_FORMAT, "expected a list of token numbers such as [2, 5]");
    }
    golden_free(&golden);
}

static attncl_status train_on_text(const struct golden *golden, const char *config,
                                   const char *tokenizer_name, attncl_trainer **ret)
{
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    char text[FILE_BYTES], init[FILE_BYTES], rules[FILE_BYTES];
    options.data = directory_path("text", text);
    options.init = golden ? directory_path("init", init) : NULL;
    options.tokenizer = tokenizer_name ? directory_path(tokenizer_name, rules) : NULL;
    return attncl_trainer_create(test_context(), config, &options, ret);
}

// The same loss as that of the tokens; the tokenizer of the option replaces that of the model, and both are data.
TEST(a_text_by_a_tokenizer)
{
    static const int32_t ids[] = {0, 3, 5, 1, 5, 3, 3, 4, 1, 3, 2, 5,
                                  3, 5, 1, 5, 3, 3, 2, 4, 1, 3, 5};
    static const char sized[] = "{\"arch\": \"lm\", \"model\": {\"layer\": \"aft_simple\", "
                                "\"d_model\": 8, \"n_layers\": 1, \"d_ff\": 8, \"n_vocab\": 9}, "
                                "\"train\": {\"batch_size\": 2, \"seq_len\": 5}}";
    const attncl_array tokens = {.name = "tokens",
                                 .dtype = ATTNCL_I32,
                                 .rank = 1,
                                 .dim = {COUNT_OF(ids)},
                                 .bytes = sizeof ids,
                                 .data = ids};
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    attncl_train_step want = ATTNCL_TRAIN_STEP_INIT, got = ATTNCL_TRAIN_STEP_INIT;
    char path[FILE_BYTES], init[FILE_BYTES], config[1024];
    attncl_trainer *trainer = NULL;
    struct golden golden;
    golden_load(&golden, cases[1]);
    const char *whole = config_of(&golden);
    snprintf(config, sizeof config,
             "%.*s{\"batch_size\": 2, \"seq_len\": 5, \"valid_fraction\": 0}}",
             (int)(strstr(whole, "{\"optimizer\"") - whole), whole);
    directory_write("text", "ab a abab\"aabb ab a ababb\"aab ");
    directory_write("rules", tokenizer);
    write_init(&golden, NULL, "[0]");
    ck_ok(attncl_safetensors_write(IN_DIRECTORY("tokens"), &tokens, 1, NULL));
    options.tokens = directory_path("tokens", path);
    options.init = directory_path("init", init);
    ck_ok(attncl_trainer_create(test_context(), config, &options, &trainer));
    ck_ok(attncl_trainer_step(trainer, &want));
    attncl_trainer_destroy(trainer);

    ck_ok(train_on_text(&golden, config, "rules", &trainer));
    ck_ok(attncl_trainer_step(trainer, &got));
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("checkpoint")));
    ck_assert(got.loss == want.loss);
    const char *kept = attncl_model_metadata(attncl_trainer_model(trainer), "attncl.tokenizer");
    ck_assert_ptr_nonnull(strstr(kept, "{\"model\":{\"type\":\"BPE\","));
    ck_assert_ptr_nonnull(strstr(kept, "\"\\\"\":4,\" \":5,\"c\":9}},\"added"));
    write_init(&golden, kept, "[0]");
    attncl_trainer_destroy(trainer);
    ck_ok(train_on_text(&golden, config, NULL, &trainer));
    ck_ok(attncl_trainer_resume(trainer, IN_DIRECTORY("checkpoint")));
    attncl_trainer_destroy(trainer);
    write_init(&golden,
               "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1, \"b\": 2}, \"merges\": []}}",
               "[0]");
    ck_ok(train_on_text(&golden, config, NULL, &trainer));
    ck_fails(attncl_trainer_resume(trainer, IN_DIRECTORY("checkpoint")), ATTNCL_ERR_STATE,
             "the data have hash");
    attncl_trainer_destroy(trainer);

    // A new model has all of the tokenizer's tokens; one to begin from, at least those of the text.
    ck_fails(train_on_text(NULL, sized, "rules", &trainer), ATTNCL_ERR_FORMAT,
             "n_vocab is 9, the data have a vocabulary of 10");
    directory_write("text", "ababababababababababababababababc");
    ck_fails(train_on_text(&golden, config, "rules", &trainer), ATTNCL_ERR_FORMAT,
             "n_vocab is 7, the data have a vocabulary of 10");
    directory_write("text", "abab\xc3(");
    ck_fails(train_on_text(&golden, config, "rules", &trainer), ATTNCL_ERR_ARGUMENT,
             "text: the text is not UTF-8 at byte 4");
    directory_write_bytes("text", "abab\0ab", 7);
    ck_fails(train_on_text(&golden, config, "rules", &trainer), ATTNCL_ERR_FORMAT,
             "text: a zero byte at byte 4");
    directory_write("rules", "{\"model\": ");
    ck_fails(train_on_text(&golden, config, "rules", &trainer), ATTNCL_ERR_FORMAT,
             "tokenizer.json");
    options.tokenizer = options.tokens;
    ck_fails(attncl_trainer_create(test_context(), config, &options, &trainer), ATTNCL_ERR_ARGUMENT,
             "a tokenizer is for a text in data");
    golden_free(&golden);
}

// The golden file with one element of a parameter replaced, as first values.
static void spoil(const struct golden *golden, const char *name, float value)
{
    float values[256];
    attncl_array with = *attncl_safetensors_find(golden->file, name);
    ck_assert_uint_le(with.bytes, sizeof values);
    memcpy(values, with.data, with.bytes);
    values[1] = value;
    with.data = values;
    golden_rewrite(golden, IN_DIRECTORY("init"),
                   (struct golden_change){.parameter = name, .with = &with});
}

static const char *const optimizers[] = {
    "\"optimizer\": {\"kind\": \"adam\"}",
    "\"optimizer\": {\"kind\": \"sgd\", \"momentum\": 0.9}, \"accumulate\": 2",
    "\"ema\": 0.5",
};

static attncl_trainer *start_spoilt(const struct golden *golden, const char *keys)
{
    const char *whole = config_of(golden);
    char config[1024], batches[FILE_BYTES], init[FILE_BYTES];
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    attncl_trainer *trainer = NULL;
    snprintf(config, sizeof config, "%.*s{%s}}", (int)(strstr(whole, "{\"optimizer\"") - whole),
             whole, keys);
    options.batches = directory_path("batches", batches);
    options.init = directory_path("init", init);
    ck_ok(attncl_trainer_create(test_context(), config, &options, &trainer));
    return trainer;
}

static void write_param(attncl_trainer *trainer, const char *name, size_t n, float value)
{
    float values[64];
    ck_assert_uint_le(n, COUNT_OF(values));
    for (size_t i = 0; i < n; ++i)
        values[i] = value;
    ck_ok(
        attncl_model_param_write(attncl_trainer_model(trainer), name, values, n * sizeof *values));
}

// What comes behind it changes something again.
TABLE_TEST(a_loss_that_is_not_finite_changes_nothing, optimizers)
{
    static const char name[] = "encoder.layers.1.feed_forward.layer1.bias";
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    attncl_train_fault fault = ATTNCL_TRAIN_FAULT_INIT;
    struct golden golden;
    golden_load(&golden, cases[0]);
    write_batches(&golden);
    spoil(&golden, name, INFINITY);
    attncl_trainer *trainer = start_spoilt(&golden, optimizers[_i]);
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("before")));
    for (int i = 0; i < 2; ++i)
        ck_fails(attncl_trainer_step(trainer, &step), ATTNCL_ERR_STATE, "step 1: the loss is ");
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("after")));
    ck_assert_int_eq(n_differing("before", "after"), 0);
    ck_ok(attncl_trainer_check(trainer, &fault));
    ck_assert_str_eq(fault.op, "parameter");
    ck_assert_str_eq(fault.scope, name);
    ck_assert_int_eq(fault.element, 1);
    write_param(trainer, name, 8, 0);
    ck_ok(attncl_trainer_step(trainer, &step));
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("after")));
    ck_assert_int_gt(n_differing("before", "after"), 2);
    attncl_trainer_destroy(trainer);
    golden_free(&golden);
}

// The loss is log 7; six gradients are nearly as large as a number can be.
TEST(a_norm_that_is_not_finite_changes_nothing)
{
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    struct golden golden;
    float weight[7 * 6] = {0};
    golden_load(&golden, cases[0]);
    attncl_array *targets = golden_input(&golden, "targets");
    targets->data = calloc(1, targets->bytes); // all 0
    write_batches(&golden);
    free((void *)targets->data);
    spoil(&golden, "generator.projection.bias", 0);
    attncl_trainer *trainer = start_spoilt(
        &golden,
        "\"optimizer\": {\"kind\": \"sgd\", \"weight_decay\": 0.1, \"learning_rate\": 0.1}");
    for (int i = 0; i < 6; ++i)
        weight[i] = 3.4e38f;
    ck_ok(attncl_model_param_write(attncl_trainer_model(trainer), "generator.projection.weight",
                                   weight, sizeof weight));
    write_param(trainer, "generator.projection.bias", 7, 0);
    write_param(trainer, "encoder.norm.weight", 6, 0);
    write_param(trainer, "encoder.norm.bias", 6, 0);
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("before")));
    ck_fails(attncl_trainer_step(trainer, &step), ATTNCL_ERR_STATE,
             "step 1: the norm of the gradients is inf");
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("after")));
    ck_assert_int_eq(n_differing("before", "after"), 0);
    attncl_trainer_destroy(trainer);
    golden_free(&golden);
}

static attncl_trainer *start_tagging(const char *pairs, const char *init)
{
    static const char config[] =
        "{\"arch\": \"encoder\", \"model\": {\"d_model\": 6, \"n_layers\": 1, \"layer\": "
        "\"transformer\", \"heads\": 2, \"d_ff\": 8, \"pool\": \"none\"}, \"train\": "
        "{\"batch_size\": "
        "2, \"seq_len\": 3, \"min_frequency\": 1, \"valid_fraction\": 0.5}}";
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    char data[FILE_BYTES], first[FILE_BYTES];
    attncl_trainer *trainer = NULL;
    directory_write("pairs", pairs);
    options.pairs = directory_path("pairs", data);
    options.init = init ? directory_path(init, first) : NULL;
    ck_ok(attncl_trainer_create(test_context(), config, &options, &trainer));
    return trainer;
}

// Of three targets in two sentences one is "Y"; padding counts neither among them nor as right.
TEST(padding_is_no_target)
{
    static const char text[] = "a b\tX Y\nc\tX\na b\tX Y\nc\tX\n";
    static const float scores[] = {1e6f, 0, 0};
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    attncl_train_state state = ATTNCL_TRAIN_STATE_INIT;
    double loss;
    attncl_trainer *trainer = start_tagging(text, NULL);
    attncl_model *model = attncl_trainer_model(trainer);
    ck_ok(attncl_trainer_step(trainer, &step));
    ck_assert_int_eq(step.n_tokens, 3);
    ck_ok(attncl_trainer_save_model(trainer, IN_DIRECTORY("model")));
    for (int i = 0; i < 2; ++i) { // always padding, always "Y"
        const float bias[] = {scores[i], 0, scores[!i]};
        ck_ok(attncl_model_param_write(model, "classifier.bias", bias, sizeof bias));
        ck_ok(attncl_trainer_evaluate(trainer, &loss));
        ck_ok(attncl_trainer_state(trainer, &state));
        ck_assert_double_eq_tol(state.accuracy, i / 3.0, 1e-12);
    }
    attncl_trainer_destroy(trainer);

    // A model to begin with has the numbers of words and labels that are not in the data.
    trainer = start_tagging("b\tY\nb\tY\n", "model");
    model = attncl_trainer_model(trainer);
    ck_assert_str_eq(attncl_model_metadata(model, "attncl.labels"), "<pad>\nX\nY");
    ck_assert_str_eq(attncl_model_metadata(model, "attncl.source_vocab"),
                     "<unk>\n<pad>\n<bos>\n<eos>\na\nb\nc");
    attncl_trainer_destroy(trainer);
}

TEST(check_names_the_first_op)
{
    attncl_train_fault fault = ATTNCL_TRAIN_FAULT_INIT;
    struct golden golden;
    golden_load(&golden, cases[0]);
    write_batches(&golden);
    spoil(&golden, "encoder.norm.weight", 3e38f); // finite, and its products are not
    attncl_trainer *trainer = start_spoilt(&golden, "");
    ck_ok(attncl_trainer_check(trainer, &fault));
    ck_assert_ptr_nonnull(fault.op);
    ck_assert_msg(strstr(fault.scope, "encoder.norm") || strstr(fault.scope, "generator"), "%s: %s",
                  fault.scope, fault.op);
    attncl_trainer_destroy(trainer);
    golden_free(&golden);
}
