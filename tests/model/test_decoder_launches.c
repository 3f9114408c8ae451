// SPDX-License-Identifier: MIT
// How many commands a layer adds to a step of decoding: in the GPU variant, where launches bound a step.

#include <string.h>

#include "compile/program.h"
#include "graph/graph.h"
#include "model/decoder.h"
#include "support/golden.h"
#include "support/test.h"

// Of two layers.  Steps of attention and of a spatial gate are two: parts, and merging them.
static const struct {
    const char *name;
    int of_a_layer;
} models[] = {
    {"lm_aft_local", 5},
    {"lm_aft_full", 5},
    {"lm_transformer", 5},
    {"lm_gmlp", 5},
};

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
    struct golden golden;
    attncl_model *model = NULL;
    attncl_decoder *decoder = NULL;

    golden_load(&golden, models[_i].name);
    ck_ok(attncl_model_open(test_context(), golden.path, &model));
    ck_ok(attncl_decoder_create(model, 1, &decoder));
    if (test_context()->caps.variant == VARIANT_GPU && !test_context()->caps.max_loop_iterations)
        ck_assert_int_eq(layer_commands(decoder->graph), 2 * models[_i].of_a_layer);
    attncl_decoder_destroy(decoder);
    attncl_model_close(model);
    golden_free(&golden);
}

FIXTURE_ONCE(device_up, device_down);
