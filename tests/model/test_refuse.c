// SPDX-License-Identifier: MIT
// Bad models and bad inputs: each is refused with the right status, in words that name what is
// wrong.

#include <stdio.h>
#include <string.h>

#include "attncl/describe.h"
#include "support/directory.h"
#include "support/golden.h"

// Arrays of zeros; SIZED: with another number of bytes than the shape's.
static const float zeros[4096];
#define SIZED(type, n_bytes, ...)                                                                  \
    (&(const attncl_array){.dtype = ATTNCL_##type,                                                 \
                           .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),             \
                           .dim = {__VA_ARGS__},                                                   \
                           .data = zeros,                                                          \
                           .bytes = (n_bytes)})
#define F32(...)     SIZED(F32, 0, __VA_ARGS__)
#define I32(...)     SIZED(I32, 0, __VA_ARGS__)
#define BOOL(...)    SIZED(BOOL, 0, __VA_ARGS__)
#define SCALAR(type) (&(const attncl_array){.dtype = ATTNCL_##type, .data = zeros})
#define NONE         NULL

// The array with the bytes of its shape, where that has a size.
static attncl_array sized(const attncl_array *a)
{
    attncl_array ret = *a;
    double n = (double)attncl_dtype_bytes(a->dtype);

    for (int i = 0; i < a->rank && a->rank <= ATTNCL_MAX_RANK; ++i)
        n *= (double)a->dim[i];
    if (a->bytes == 0 && n >= 0 && n <= (double)sizeof zeros)
        ret.bytes = (size_t)n;
    return ret;
}

// -- model files

struct bad_model {
    const char *golden;
    struct golden_change change;
    attncl_status status;
    const char *words;
};

#define ARCH(golden, name, status, words)   {#golden, {.arch = name}, ATTNCL_ERR_##status, words},
#define CONFIG(golden, json, status, words) {#golden, {.config = json}, ATTNCL_ERR_##status, words},
#define PARAM(golden, name, value, status, words)                                                  \
    {#golden, {.parameter = name, .with = value}, ATTNCL_ERR_##status, words},
#define TRAIN_MODEL                                                                                \
    "{'model': {'arch': 'lm', 'layer': 'gmlp', 'd_model': 6, 'd_ffn': 8, 'seq_len': 8, "           \
    "'n_layers': 2, 'n_vocab': 7, 'pos': 'no_pos'}"

static const struct bad_model bad_models[] = {
#include "bad_models.def"
};
enum { N_BAD_MODELS = sizeof bad_models / sizeof bad_models[0] };

FIXTURE(directory_begin, directory_down);

static const char *double_quoted(const char *text, char ret[512])
{
    for (size_t i = 0; i < strlen(text); ++i)
        ret[i] = text[i] == '\'' ? '"' : text[i];
    return ret;
}

LOOP_TEST(a_bad_model_is_refused, 0, N_BAD_MODELS)
{
    const struct bad_model *bad = &bad_models[_i];
    struct golden golden;
    struct golden_change change = bad->change;
    char json[512] = "";
    attncl_array with;
    attncl_model *model = NULL;

    if (change.config)
        change.config = double_quoted(change.config, json);
    if (change.with) {
        with = sized(change.with);
        change.with = &with;
    }
    golden_load(&golden, bad->golden);
    const char *path = IN_DIRECTORY("bad.safetensors");
    golden_rewrite(&golden, path, change);
    ck_fails(attncl_model_open(test_context(), path, NULL, &model), bad->status, bad->words);
    ck_assert_ptr_null(model);
    ck_assert_ptr_null(strchr(attncl_last_error(), '\n'));
    golden_free(&golden);
}

// 2^31 - 1 positions of 8 channels take 64 GiB.
TEST(a_table_no_buffer_holds_is_refused)
{
    const struct golden_change change = {
        .config = "{\"layer\": \"aft_conv\", \"heads\": 2, \"window_size\": 7, \"d_model\": 8, "
                  "\"d_ff\": 6, \"n_layers\": 1, \"n_vocab\": 11, \"max_len\": 2147483647}",
        .parameter = "src_embed.positional_encodings"};
    struct golden golden;
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
    attncl_model *model = NULL;
    ck_ok(attncl_context_device(test_context(), &info));
    if (info.max_buffer_bytes > UINT64_C(1) << 35)
        return;
    golden_load(&golden, "lm_aft_conv");
    const char *path = IN_DIRECTORY("large.safetensors");
    golden_rewrite(&golden, path, change);
    ck_fails(attncl_model_open(test_context(), path, NULL, &model), ATTNCL_ERR_DEVICE_MEMORY,
             "takes 68719476704 bytes");
    golden_free(&golden);
}

TEST(what_is_no_model_file_is_refused)
{
    attncl_model *model = NULL;
    directory_write_bytes("text", "no tensors here", 15);
    ck_fails(attncl_model_open(test_context(), IN_DIRECTORY("text"), NULL, &model),
             ATTNCL_ERR_FORMAT, "");
    ck_fails(attncl_model_open(test_context(), IN_DIRECTORY("absent"), NULL, &model), ATTNCL_ERR_IO,
             "");
    ck_fails(attncl_model_open(test_context(), NULL, NULL, &model), ATTNCL_ERR_ARGUMENT, "NULL");
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
        ck_ok(attncl_model_open(test_context(), path, NULL, &model));
        ck_ok(attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL));
        golden_check(&golden, results, 1e-4);
        attncl_results_destroy(results);
        golden_close(&golden, model);
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

static const int64_t minus_one[15] = {-1}, eleven[15] = {[14] = 11}, huge[15] = {INT64_C(1) << 40};
#define TOKENS(values)                                                                             \
    (&(const attncl_array){                                                                        \
        .dtype = ATTNCL_I64, .rank = 2, .dim = {5, 3}, .data = (values), .bytes = 120})

// Four batches, the last of which ends in a token that there is not.
static const int32_t seven[56] = {[55] = 7};
#define BATCHES(values)                                                                            \
    (&(const attncl_array){                                                                        \
        .dtype = ATTNCL_I32, .rank = 3, .dim = {4, 7, 2}, .data = (values), .bytes = 224})

#define INPUT(golden, name, value, status, words)                                                  \
    {#golden, #name, value, ATTNCL_ERR_##status, words},

static const struct bad_input bad_inputs[] = {
#include "bad_inputs.def"
};
enum { N_BAD_INPUTS = sizeof bad_inputs / sizeof bad_inputs[0] };

LOOP_TEST(a_bad_input_is_refused, 0, N_BAD_INPUTS)
{
    const struct bad_input *bad = &bad_inputs[_i];
    struct golden golden;
    attncl_model *model = NULL;
    attncl_results *results = NULL;
    golden_load(&golden, bad->golden);
    attncl_array *input =
        bad->with ? golden_give(&golden, bad->input) : golden_input(&golden, bad->input);
    if (bad->with) {
        *input = sized(bad->with);
        input->name = bad->input;
    } else {
        *input = golden.inputs[--golden.n_inputs];
    }
    ck_ok(attncl_model_open(test_context(), golden.path, NULL, &model));
    ck_fails(attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL), bad->status,
             bad->words);
    ck_assert_ptr_null(results);
    ck_assert_ptr_null(strchr(attncl_last_error(), '\n'));
    golden_close(&golden, model);
}

static void refuse(attncl_model *model, const struct golden *golden, const char *words)
{
    attncl_results *results = NULL;
    ck_fails(attncl_model_run(model, golden->inputs, golden->n_inputs, &results, NULL),
             ATTNCL_ERR_ARGUMENT, words);
    ck_assert_ptr_null(results);
}

// Each input of a file's architecture; optional ones that the file leaves out too, which a run with a
// misspelt one would ignore.
static void misspell_all(const char *name, void *user)
{
    struct golden golden;
    attncl_description *d = NULL;
    const attncl_entry *entry;
    char without[GOLDEN_PATH_BYTES], misspelt[128], words[256];
    const char *gradients = strstr(name, "_grad");

    (void)user;
    snprintf(without, sizeof without, "%.*s", // cotangents have no names of their own
             (int)(gradients && !gradients[5] ? gradients - name : (int)strlen(name)), name);
    attncl_model *model = golden_open(&golden, without);
    ck_ok(attncl_description_create_for(golden.file, &d));
    for (size_t i = 0; (entry = attncl_description_at(d, i)) != NULL; ++i) {
        struct golden wrong = golden;
        if (entry->kind != ATTNCL_ENTRY_INPUT || golden.n_inputs == 0)
            continue;
        snprintf(misspelt, sizeof misspelt, "q%s", entry->name);
        snprintf(words, sizeof words, "input %s is not known, nearest: %s; inputs: ", misspelt,
                 entry->name);
        golden_give(&wrong, entry->name)->name = misspelt;
        refuse(model, &wrong, words);
    }
    attncl_description_destroy(d);
    golden_close(&golden, model);
}

TEST(every_input_of_every_architecture_misspelt_is_refused)
{
    golden_each(misspell_all, NULL);
}

TEST(all_missing_inputs_are_named)
{
    struct golden golden;
    attncl_model *model = golden_open(&golden, "mha");
    golden.n_inputs = 0;
    refuse(model, &golden, "inputs query, key, value are missing");
    golden_close(&golden, model);
}

TEST(an_input_without_a_name_is_refused)
{
    struct golden golden;
    attncl_model *model = golden_open(&golden, "linear");
    golden_give(&golden, "another")->name = NULL;
    refuse(model, &golden, "input 1 has no name");
    golden_close(&golden, model);
}

LOOP_TEST(an_input_and_a_cotangent_are_given_once, 0, 2)
{
    struct golden golden;
    attncl_model *model = golden_open(&golden, "softmax");
    for (int i = 0; i < 4; ++i)
        golden_give(&golden, "another")->name = _i ? "cotangent.output" : "x";
    refuse(model, &golden, _i ? "cotangent.output is given twice" : "input x is given twice");
    golden_close(&golden, model);
}

TEST(some_models_are_not_one_graph)
{
    struct golden golden;
    attncl_graph *g = NULL;
    attncl_model *model = golden_open(&golden, "lm_sample");
    ck_fails(attncl_model_graph(model, golden.inputs, golden.n_inputs, &g), ATTNCL_ERR_UNSUPPORTED,
             "lm_sample");
    golden_close(&golden, model);
    model = golden_open(&golden, "transpose_qkv");
    golden_give(&golden, "cotangent.output");
    ck_fails(attncl_model_graph(model, golden.inputs, golden.n_inputs, &g), ATTNCL_ERR_UNSUPPORTED,
             "cotangent.output");
    golden_close(&golden, model);
}
