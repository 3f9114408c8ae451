// SPDX-License-Identifier: MIT
// How many commands a layer adds to a step of decoding: in the GPU variant, where launches bound a step.  And how many
// programs the bundled model has built when its first text begins, or its first step of training ends, and how many commands
// such a step is.

#include <stdatomic.h>
#include <string.h>

#include "attncl/log.h"
#include "attncl/train.h"
#include "compile/program.h"
#include "graph/graph.h"
#include "model/decoder.h"
#include "support/golden.h"
#include "support/launch_mock.h"
#include "support/sources.h"
#include "support/test.h"
#include "train/trainer.h"

// Steps of attention and of a spatial gate are two: parts, and merging them.  A gated network is three.
static const struct {
    const char *name;
    int of_a_layer;
} models[] = {
    {"lm_aft_local", 5}, {"lm_aft_full", 5},    {"lm_transformer", 5}, {"lm_gmlp", 5},
    {"lm_feedback", 5},  {"lm_feedback_kv", 5}, {"lm_shared", 5},      {"lm_rotary", 6},
};
static const int batches[] = {1, 4, 5, 8, 16, 32};

static int layer_commands(const attncl_graph *g)
{
    const struct program *p = attncl__graph_program(g);
    const struct command_list *list = &p->command_list;
    int n = 0;

    for (size_t i = 0; i < list->n_commands; ++i) {
        const char *scope = p->nodes[list->commands[i].node].scope;
        n += !attncl__command_is_sync(&list->commands[i]) && strstr(scope, "layers.") != NULL;
    }
    return n;
}

TABLE_TEST(launches_of_a_step, models)
{
    enum { N_LAYERS = 2 };
    const struct device_caps *caps = &test_context()->caps;
    struct golden golden;
    attncl_model *model = NULL;

    golden_load(&golden, models[_i].name);
    ck_ok(attncl_model_open(test_context(), golden.path, NULL, &model));
    for (size_t i = 0; i < COUNT_OF(batches); ++i) {
        const int want = models[_i].of_a_layer;
        attncl_decoder *decoder = NULL;
        ck_ok(attncl_decoder_create(model, batches[i], NULL, &decoder));
        if (caps->variant == VARIANT_GPU && !caps->max_loop_iterations)
            ck_assert_msg(layer_commands(decoder->graph) == N_LAYERS * want,
                          "%d layers of %d sequences are %d commands, expected %d each", N_LAYERS,
                          batches[i], layer_commands(decoder->graph), want);
        attncl_decoder_destroy(decoder);
    }
    attncl_model_destroy(model);
    golden_free(&golden);
}

// A layer stores keys and values, and rotates and normalises heads, in one launch of a prompt.
TEST(launches_of_a_prompt)
{
    enum { N_LAYERS = 2 };
    static const int lengths[] = {2, 8}; // from 0; the least behind others
    const int32_t tokens[8] = {0};
    struct golden golden;
    attncl_model *model = golden_open(&golden, "lm_rotary");
    attncl_decoder *decoder = NULL;

    ck_ok(attncl_decoder_create(model, 1, NULL, &decoder));
    for (int n = 0; n < 2; ++n) {
        int n_appends = 0;
        ck_ok(attncl_decoder_prefill(decoder, lengths[n], tokens, NULL));
        for (int i = 0; i < N_PREFILLS; ++i) {
            const attncl_graph *g = decoder->prefills[i].graph;
            for (size_t k = 0; g && k < attncl__graph_program(g)->command_list.n_commands; ++k) {
                const char *name = attncl__graph_program(g)->command_list.commands[k].name;
                n_appends += strcmp(name, "attention_append_fwd") == 0;
                ck_assert_str_ne(name, "rotate_rows");
            }
        }
        ck_assert_int_eq(n_appends, (n + 1) * N_LAYERS);
    }
    attncl_decoder_destroy(decoder);
    golden_close(&golden, model);
}

static double scope_flop(const attncl_graph *g, const char *scope)
{
    const struct program *p = attncl__graph_program(g);
    double flop = 0;

    for (int i = 0; i < p->n_nodes; ++i)
        if (p->nodes[i].op && strstr(p->nodes[i].scope, scope))
            flop += p->nodes[i].flop;
    return flop;
}

static const struct {
    const char *name, *maps;
} prompts[] = {{"lm_transformer", "feed_forward"},
               {"lm_transformer", "self_attn.output"},
               {"lm_parallel", "feed_forward"},
               {"lm_aft_local", "self_attn.output"},
               {"lm_gmlp", "proj2"}};

// What follows attention in the last layer is computed for the prompt's last token alone.
TABLE_TEST(rows_of_the_last_layer, prompts)
{
    enum { LENGTH = 8 };
    const int32_t tokens[LENGTH] = {0};
    char scopes[2][64];
    struct golden golden;
    attncl_model *model = golden_open(&golden, prompts[_i].name);
    attncl_decoder *decoder = NULL;

    for (int i = 0; i < 2; ++i)
        snprintf(scopes[i], sizeof scopes[i], "layers.%d.%s", i, prompts[_i].maps);
    ck_ok(attncl_decoder_create(model, 1, NULL, &decoder));
    ck_ok(attncl_decoder_prefill(decoder, LENGTH, tokens, NULL));
    const attncl_graph *g = decoder->prefills[0].graph;
    ck_assert_double_gt(scope_flop(g, scopes[1]), 0);
    ck_assert_double_eq(LENGTH * scope_flop(g, scopes[1]), scope_flop(g, scopes[0]));
    attncl_decoder_destroy(decoder);
    golden_close(&golden, model);
}

static atomic_size_t n_built; // several threads build

static void count_built(attncl_log_level level, const char *text, void *user)
{
    (void)level;
    (void)user;
    n_built += strstr(text, " built") != NULL;
}

// A context whose device may be a GPU's likeness, which compares its kernels and shuffles.  Smoke runs leave it out: it
// compiles for a minute.
static attncl_context *open_first(bool like_gpu)
{
    attncl_context *ctx = NULL;

    ck_ok(attncl_context_create(NULL, &ctx));
    launch_mock_spills_nothing = sources_emulate = like_gpu;
    if (like_gpu) {
        ctx->caps.is_gpu = true;
        ctx->caps.variant = VARIANT_GPU;
        ctx->caps.vector_width = 4;
        ctx->caps.compute_units = 16;
        ctx->caps.shuffle_candidate = SHUFFLE_KHR;
        ctx->caps.shuffle_lanes = 32;
    }
    n_built = 0;
    attncl_log_set(count_built, NULL, ATTNCL_LOG_DEBUG);
    return ctx;
}

static const char bundled[] = ATTNCL_TEST_DATA "/../../examples/models/shakespeare.safetensors";

static const char training[] =
    "{\"arch\": \"lm\", \"model\": {\"layer\": \"aft_local\", \"d_model\": 128, \"n_layers\": 4, "
    "\"seq_len\": 128, \"local_window_size\": 32, \"d_ff\": 256}, \"train\": {\"batch_size\": 8}}";

// The most programs, and commands of a step.  A GPU compares its kernels first, by 10 programs that the model has no use
// for; a step of training takes a command more for each gradient of a weight, whose few tiles share the compute units by
// parts of the sum.
static const struct {
    bool like_gpu;
    size_t text[2]; // in the CPU and the GPU variant
    size_t step, commands;
} starts[] = {{false, {4, 7}, 26, 275}, {true, {0, 20}, 32, 300}};

TABLE_TEST(programs_before_the_first_text, starts)
{
    if (starts[_i].like_gpu && !test_has_full_sizes())
        return;
    attncl_context *ctx = open_first(starts[_i].like_gpu);
    attncl_model *model = NULL;
    attncl_decoder *decoder = NULL;

    ck_ok(attncl_model_open(ctx, bundled, NULL, &model));
    ck_ok(attncl_decoder_create(model, 1, NULL, &decoder));
    attncl_log_set(NULL, NULL, ATTNCL_LOG_ERROR);
    ck_assert_uint_gt(n_built, 0);
    ck_assert_msg(n_built <= starts[_i].text[ctx->caps.variant == VARIANT_GPU], "%zu programs",
                  (size_t)n_built);
    attncl_decoder_destroy(decoder);
    attncl_model_destroy(model);
    ck_ok(attncl_context_destroy(ctx));
}

TABLE_TEST(programs_before_the_first_step, starts)
{
    if (starts[_i].like_gpu && !test_has_full_sizes())
        return;
    attncl_context *ctx = open_first(starts[_i].like_gpu);
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    attncl_trainer *trainer = NULL;

    options.data = ATTNCL_TEST_DATA "/../../examples/romeo_and_juliet.txt";
    ck_ok(attncl_trainer_create(ctx, training, &options, &trainer));
    ck_ok(attncl_trainer_step(trainer, &step));
    attncl_log_set(NULL, NULL, ATTNCL_LOG_ERROR);
    ck_assert_msg(n_built <= starts[_i].step, "%zu programs", (size_t)n_built);
    // 531 where each of the 65 weights is squared, summed, scaled and updated by itself.
    const size_t n = attncl__graph_program(trainer->graphs[0].graph)->command_list.n_commands;
    // Where a device ends loops, long sums of GEMMs are several commands.
    const size_t split_sums = ctx->caps.max_loop_iterations ? 85 : 0;
    ck_assert_msg(n <= starts[_i].commands + split_sums, "%zu commands", n);
    attncl_trainer_destroy(trainer);
    ck_ok(attncl_context_destroy(ctx));
}

FIXTURE_ONCE(device_up, device_down);
