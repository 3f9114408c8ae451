// SPDX-License-Identifier: MIT
// The configuration of training: defaults, ranges, keys that are not known.

#include <stdio.h>
#include <string.h>

#include "attncl/model.h"
#include "base/alloc.h"
#include "support/test.h"
#include "train/config.h"

NO_DEVICE;

enum { N_VOCAB = 11, TEXT_BYTES = 1024 };

static const char lm[] = "\"arch\": \"lm\", \"model\": {\"d_model\": 8, \"n_layers\": 1, "
                         "\"layer\": \"transformer\", \"heads\": 2, \"d_ff\": 12}";

static attncl_status read_text(const char *text, struct train_config *c)
{
    attncl_status status = attncl__train_config_begin(c, text, NULL, NULL);
    if (status != ATTNCL_OK)
        return status;
    status = attncl__train_config_end(c, N_VOCAB, 0, -1);
    if (status != ATTNCL_OK)
        attncl__train_config_free(c);
    return status;
}

static attncl_status read_train(const char *keys, struct train_config *c)
{
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "{%s, \"train\": {%s}}", lm, keys);
    return read_text(text, c);
}

static size_t heap_before;

static void up(void)
{
    heap_before = attncl__alloc_live();
}

static void down(void)
{
    ck_assert_uint_eq(attncl__alloc_live(), heap_before);
}

FIXTURE(up, down);

static const struct bad_case {
    const char *keys, *words;
} bad_cases[] = {
    {"\"batch_sise\": 3", "configuration: train: key batch_sise is not known, nearest: batch_size"},
    {"\"batch_size\": 0", "train: batch_size is 0, must be at least 1"},
    {"\"batch_size\": 2.5", "train: batch_size is a number with a fraction"},
    {"\"steps\": 0", "steps is 0"},
    {"\"seed\": -1", "seed is -1"},
    {"\"seq_len\": 0", "train: seq_len is 0, must be at least 1"},
    {"\"seq_len\": \"8\"", "seq_len is a string, expected an integer or an array of pairs"},
    {"\"seq_len\": []", "seq_len has 0 entries, possible are 1 to 32"},
    {"\"seq_len\": [8, 16]", "seq_len[0] is not a pair of integers"},
    {"\"seq_len\": [[0, 8], [1, 2, 3]]", "seq_len[1] is not a pair of integers"},
    {"\"seq_len\": [[0, 8], [1, 2.5]]", "seq_len[1] is not a pair of integers"},
    {"\"seq_len\": [[1, 8]]", "seq_len begins at step 1, must begin at step 0"},
    {"\"seq_len\": [[0, 8], [5, 9], [5, 7]]", "seq_len has step 5 after step 5, steps must rise"},
    {"\"seq_len\": [[0, 8], [5, 0]]", "train: seq_len is 0 from step 5 on, must be at least 1"},
    {"\"seq_len\": [[0, 8], [5, 5001]]",
     "train: seq_len is 5001 from step 5 on, the model takes at most 5000"},
    {"\"valid_fraction\": 1", "valid_fraction is 1, must be less than 1"},
    {"\"dropout\": 1.5", "dropout is 1.5, must be at most 1"},
    {"\"label_smoothing\": 1", "label_smoothing is 1"},
    {"\"ema\": 1", "ema is 1"},
    {"\"accumulate\": 0", "accumulate is 0"},
    {"\"clip\": \"tensorflow\"", "clip tensorflow is not known; choices: torch, d2l"},
    {"\"batches\": \"shuffle\"", "batches shuffle is not known, nearest: shuffled"},
    {"\"optimizer\": {\"learning_rate\": 1e39}", "learning_rate is 1e+39, must be at most 3.4"},
    {"\"schedule\": {\"min_learning_rate\": 1e39}", "min_learning_rate is 1e+39, must be at most"},
    {"\"schedule\": {\"min_lr\": 1e39}", "min_lr is 1e+39, must be at most 3.4"},
    {"\"optimizer\": {\"eps\": 1e39}", "optimizer: eps is 1e+39, must be at most 3.4"},
    {"\"optimizer\": {\"kind\": \"sgd\", \"momentum\": 1e39}",
     "momentum is 1e+39, must be at most"},
    {"\"grad_value_clip\": 1e39", "grad_value_clip is 1e+39, must be at most 3.4"},
    {"\"optimizer\": 3", "optimizer is an integer, expected an object"},
    {"\"optimizer\": {\"kind\": \"adan\"}", "optimizer: kind adan is not known, nearest: adam"},
    {"\"optimizer\": {\"kind\": 5}", "train: optimizer: kind is an integer, expected a string"},
    {"\"optimizer\": {\"beta\": [1, 2]}", "optimizer: key beta is not known, nearest: betas"},
    {"\"optimizer\": {\"betas\": [1, 2]}", "optimizer: betas[0] is 1"},
    {"\"optimizer\": {\"kind\": \"sgd\", \"nesterov\": true}", "nesterov is true, momentum is 0"},
    {"\"optimizer\": {\"kind\": \"sgd\", \"nesterov\": true, \"momentum\": 0.9, \"dampening\": "
     "0.1}",
     "dampening 0.1"},
    {"\"optimizer\": {\"momentum\": 0.9}", "optimizer: key momentum is not known"},
    {"\"schedule\": {\"kind\": \"cosin\"}", "schedule: kind cosin is not known, nearest: cosine"},
    {"\"schedule\": {\"warmup\": -1}", "schedule: warmup is -1"},
    {"\"schedule\": {\"gamma\": 1}", "schedule: key gamma is not known"},
    {"\"optimizer\": {\"kind\": \"noam\"}, \"schedule\": {\"kind\": \"linear\"}",
     "optimizer noam has its own schedule"},
};

TABLE_TEST(bad_keys_are_named, bad_cases)
{
    struct train_config c;
    ck_fails(read_train(bad_cases[_i].keys, &c), ATTNCL_ERR_FORMAT, bad_cases[_i].words);
}

static const struct bad_case bad_texts[] = {
    {"{}", "arch is missing"},
    {"{\"arch\": \"ml\"}", "arch ml is not known"},
    {"{\"arch\": \"lm\"}", "model is missing"},
    {"{\"arch\": \"gmlp_block\", \"model\": {}}", "arch gmlp_block has no loss"},
    {"{\"arch\": \"lm\", \"model\": {\"layer\": \"gmlp\", \"d_modl\": 3}}",
     "model: key d_modl is not known"},
    {"{\"arch\": \"lm\", \"model\": {}, \"training\": {}}", "key training is not known"},
    {"{\"arch\": \"lm\", \"model\": {\"n_vocab\": 10}}",
     "n_vocab is 10, the data have a vocabulary of 11"},
    {"[", "configuration: "},
    {"", "configuration: "},
};

TABLE_TEST(bad_texts_are_refused, bad_texts)
{
    struct train_config c;
    ck_fails(read_text(bad_texts[_i].keys, &c), ATTNCL_ERR_FORMAT, bad_texts[_i].words);
}

static void holds(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "%s lacks %s", text, part);
}

// The longest one is the model's and that of held-out windows.
TEST(lengths_change_with_the_step)
{
    struct train_config c;
    char *text = NULL;
    ck_ok(read_train("\"seq_len\": [[0, 8], [5, 5000], [9, 3]]", &c));
    const struct json_pairs *lengths = &c.settings.data.lengths;
    ck_assert_uint_eq(lengths->n, 3);
    ck_assert(lengths->list[1][0] == 5 && lengths->list[1][1] == 5000);
    ck_assert_int_eq(c.settings.data.seq_len, 5000);
    ck_assert_int_eq(c.settings.data.valid_len, 5000);
    ck_assert_int_eq(c.settings.model.seq_len, 5000);
    ck_ok(attncl__json_write(c.root, JSON_ONE_LINE, &text));
    holds(text, "\"seq_len\": [[0, 8], [5, 5000], [9, 3]]");
    attncl__free(text);
    attncl__train_config_free(&c);
}

// What is written reads back as the same.
TEST(defaults_are_filled_in)
{
    struct train_config c, again;
    char *text = NULL, *second = NULL;
    ck_ok(read_train("\"optimizer\": {\"kind\": \"noam\"}", &c));
    ck_ok(attncl__json_write(c.root, JSON_LINES, &text));
    holds(text, "\"n_vocab\": 11");
    holds(text, "\"embed_scale\": 2.8284271247461903"); // the square root of 8
    holds(text, "\"betas\": [0.9, 0.999]");
    holds(text, "\"learning_rate\": 1.0");
    holds(text, "\"d_model\": 8");
    holds(text, "\"kind\": \"noam\"");
    holds(text, "\"warmup\": 2000.0");
    holds(text, "\"seq_len\": 256");
    holds(text, "\"pad\": -1");
    ck_assert(strstr(text, "\"seq_len\": 256") < strstr(text, "\"train\"")); // the model's
    ck_ok(read_text(text, &again));
    ck_ok(attncl__json_write(again.root, JSON_LINES, &second));
    ck_assert_str_eq(text, second);
    ck_assert(again.settings.optimizer.schedule.kind == ATTNCL_RATE_INVERSE_SQRT);
    ck_assert_double_eq(again.settings.optimizer.schedule.d_model, 8);
    ck_assert_double_eq(again.settings.optimizer.schedule.warmup, 2000);
    attncl__free(text);
    attncl__free(second);
    attncl__train_config_free(&c);
    attncl__train_config_free(&again);
}

LOOP_TEST(a_schedule_knows_the_model_and_the_steps, 0, 2)
{
    static const char *const keys[] = {
        "\"steps\": 30, \"schedule\": {\"kind\": \"noam\", \"min_learning_rate\": 0.5}",
        "\"steps\": 30, \"schedule\": {\"kind\": \"noam\", \"min_lr\": 0.5}"};
    struct train_config c;
    ck_ok(read_train(keys[_i], &c));
    const attncl_schedule_desc *s = &c.settings.optimizer.schedule;
    ck_assert(s->kind == ATTNCL_RATE_INVERSE_SQRT && s->warmup == 2000 && s->d_model == 8);
    ck_assert(s->n_steps == 30 && s->min_rate == 0.5);
    ck_assert_double_eq(c.settings.optimizer.read.learning_rate, 1e-3);
    attncl__train_config_free(&c);
}

static const struct form_case {
    const char *model; // without its end
    enum pair_form form;
    bool time_first, with_lens;
    int64_t seq_len, valid_len;
} form_cases[] = {
    {"\"lm\", \"model\": {", PAIR_SENTENCES, true, false, 256, 256},
    {"\"lm\", \"model\": {\"max_len\": 300", PAIR_SENTENCES, true, false, 256, 256},
    {"\"lm\", \"model\": {\"seq_len\": 50, \"max_len\": 20", PAIR_SENTENCES, true, false, 50, 20},
    {"\"lm\", \"model\": {\"P\": 99", PAIR_SENTENCES, true, false, 256, 100},
    {"\"seq2seq_bahdanau\", \"model\": {", PAIR_SENTENCES, false, false, 10, 10},
    {"\"encoder\", \"model\": {", PAIR_CLASS, true, false, 64, 64},
    {"\"encoder\", \"model\": {\"pool\": \"first\", \"layer\": \"transformer\", \"max_len\": 12",
     PAIR_CLASS, true, true, 12, 12},
    {"\"encoder\", \"model\": {\"pool\": \"none\", \"batch_first\": true", PAIR_TAGS, false, false,
     64, 64},
};

TABLE_TEST(the_model_says_what_pairs_are, form_cases)
{
    const struct form_case *f = &form_cases[_i];
    char text[TEXT_BYTES];
    struct train_config c;
    snprintf(text, sizeof text, "{\"arch\": %s}, \"train\": {}}", f->model);
    ck_ok(attncl__train_config_begin(&c, text, NULL, NULL));
    ck_assert_int_eq(c.settings.data.pair_form, f->form);
    ck_assert_int_eq(c.settings.data.time_first, f->time_first);
    ck_assert_int_eq(c.settings.data.with_lens, f->with_lens);
    ck_assert_int_eq(c.settings.data.seq_len, f->seq_len);
    ck_assert_int_eq(c.settings.data.valid_len, f->valid_len);
    attncl__train_config_free(&c);
}

TEST(labels_are_the_classes_of_an_encoder)
{
    static const char text[] =
        "{\"arch\": \"encoder\", \"model\": {\"d_model\": 8, \"n_layers\": 1, \"layer\": "
        "\"transformer\", \"heads\": 2, \"d_ff\": 12, \"pool\": \"first\"}}";
    struct train_config c;
    char *written = NULL;
    ck_ok(attncl__train_config_begin(&c, text, NULL, NULL));
    ck_ok(attncl__train_config_end(&c, N_VOCAB, 3, 1));
    ck_ok(attncl__json_write(c.root, JSON_LINES, &written));
    ck_assert_int_eq(c.settings.pad, 1);
    holds(written, "\"n_vocab\": 11");
    holds(written, "\"n_classes\": 3");
    attncl__free(written);
    attncl__train_config_free(&c);
}

TEST(the_caller_replaces_steps_and_seed)
{
    const int64_t steps = 7;
    const uint64_t seed = 5, large = UINT64_C(1) << 40;
    char text[TEXT_BYTES];
    struct train_config c;
    snprintf(text, sizeof text, "{%s, \"train\": {\"steps\": 2, \"seed\": 3}}", lm);
    ck_ok(attncl__train_config_begin(&c, text, &steps, &seed));
    ck_assert_int_eq(c.settings.plan.steps, 7);
    ck_assert_int_eq(c.settings.seed, 5);
    attncl__train_config_free(&c);
    ck_fails(attncl__train_config_begin(&c, text, NULL, &large), ATTNCL_ERR_ARGUMENT,
             "seed is 1099511627776, must be at most 2147483647");
}
