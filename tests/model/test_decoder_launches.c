// SPDX-License-Identifier: MIT
// How many commands a layer adds to a step of decoding: in the GPU variant, where launches bound a step.

#include <string.h>

#include "compile/program.h"
#include "graph/graph.h"
#include "model/decoder.h"
#include "support/golden.h"
#include "support/test.h"

// Steps of attention and of a spatial gate are two: parts, and merging them.
static const struct {
    const char *name;
    int of_a_layer;
} models[] = {
    {"lm_aft_local", 5}, {"lm_aft_full", 5}, {"lm_transformer", 5},
    {"lm_gmlp", 5},      {"lm_feedback", 5}, {"lm_feedback_kv", 5},
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

FIXTURE_ONCE(device_up, device_down);
