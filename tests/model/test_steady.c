// SPDX-License-Identifier: MIT
// The steady state: weights reach the device once, and repeated runs create nothing and keep no
// memory.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "device/context.h"
#include "support/golden.h"

static const char *const names[] = {"lm_aft_local",  "lm_gmlp",        "lm_aft_full",
                                    "lm_aft_simple", "lm_transformer", "lm_feedback",
                                    "lm_feedback_kv"};
enum { N_NAMES = sizeof names / sizeof names[0], N_RUNS = 100 };

// Pages of this process in memory; 0 where the system does not say, and where a sanitizer keeps
// freed memory.
static long resident_pages(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 0;
#endif
    long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f)
        return 0;
    if (fscanf(f, "%ld %ld", &total, &resident) != 2)
        resident = 0;
    fclose(f);
    return resident;
}

// What must not grow.
struct level {
    long buffers, programs, kernels, events_alive, pages;
    size_t heap;
};

static struct level level_now(void)
{
    struct object_counts counts;
    attncl__objects_count(&counts);
    return (struct level){
        .buffers = counts.created[OBJECT_BUFFER],
        .programs = counts.created[OBJECT_PROGRAM],
        .kernels = counts.created[OBJECT_KERNEL],
        .events_alive = counts.live[OBJECT_EVENT],
        .pages = resident_pages(),
        .heap = attncl__alloc_live(),
    };
}

static void ck_same_level(struct level before, struct level after)
{
    const long slack = 256; // pages: 1 MiB, for the driver's own threads
    ck_assert_int_eq(after.buffers, before.buffers);
    ck_assert_int_eq(after.programs, before.programs);
    ck_assert_int_eq(after.kernels, before.kernels);
    ck_assert_int_eq(after.events_alive, before.events_alive);
    ck_assert_uint_eq(after.heap, before.heap);
    ck_assert_int_le(after.pages, before.pages + slack);
}

LOOP_TEST(repeated_runs_create_nothing, 0, N_NAMES)
{
    struct golden golden;
    attncl_model *model = NULL;
    attncl_graph *g = NULL;
    float output[5 * 3 * 11];
    golden_load(&golden, names[_i]);
    const attncl_array *tokens = golden_input(&golden, "tokens");
    const attncl_array *targets = golden_input(&golden, "targets");
    const size_t n = tokens->bytes / sizeof(int64_t);

    ck_ok(attncl_model_open(test_context(), golden.path, NULL, &model));
    ck_ok(attncl_model_graph(model, golden.inputs, golden.n_inputs, &g));
    struct level before = {0};
    for (int i = 0; i <= N_RUNS; ++i) {
        ck_ok(attncl_graph_write_as(g, "tokens", ATTNCL_I64, tokens->data, n));
        ck_ok(attncl_graph_write_as(g, "targets", ATTNCL_I64, targets->data, n));
        ck_ok(attncl_graph_run(g));
        ck_ok(attncl_graph_read(g, "output", output, sizeof output));
        if (i == 0)
            before = level_now();
    }
    ck_same_level(before, level_now());
    attncl_graph_destroy(g);
    golden_close(&golden, model);
}

static void take_step(attncl_decoder *decoder, int i)
{
    const int32_t tokens[3] = {1, 2, 3};
    float logits[3 * 11];
    (void)i;
    if (attncl_decoder_position(decoder) == attncl_decoder_limit(decoder))
        ck_ok(attncl_decoder_reset(decoder));
    ck_ok(attncl_decoder_step(decoder, tokens, logits));
}

static void take_prompt(attncl_decoder *decoder, int i)
{
    const int32_t tokens[7 * 3] = {1, 2, 3};
    float logits[3 * 11];
    ck_ok(attncl_decoder_reset(decoder));
    ck_ok(attncl_decoder_prefill(decoder, i % 2 ? 7 : 4, tokens, logits));
}

static void draw(attncl_decoder *decoder, int i)
{
    static int32_t tokens[5 * 3] = {1, 2, 3};
    const attncl_sampling sampling = ATTNCL_SAMPLING_INIT;
    (void)i;
    ck_ok(attncl_decoder_reset(decoder));
    ck_ok(attncl_decoder_sample(decoder, 5, tokens, &sampling, tokens));
}

static const struct {
    void (*act)(attncl_decoder *decoder, int i);
    int n, n_first; // of which the first may create something
} acts[] = {
    {take_step, N_RUNS, 12},      // one whole sequence and a reset
    {take_prompt, N_RUNS / 4, 4}, // both lengths, and resets
    {draw, N_RUNS / 4, 1},
};

LOOP_TEST(repeated_decoding_creates_nothing, 0, N_NAMES *(int)COUNT_OF(acts))
{
    struct golden golden;
    attncl_decoder *decoder = NULL;
    const int k = _i / N_NAMES;
    attncl_model *model = golden_open(&golden, names[_i % N_NAMES]);
    ck_ok(attncl_decoder_create(model, 3, NULL, &decoder));
    struct level before = {0};
    for (int i = 0; i <= acts[k].n; ++i) {
        acts[k].act(decoder, i);
        if (i == acts[k].n_first)
            before = level_now();
    }
    ck_same_level(before, level_now());
    attncl_decoder_destroy(decoder);
    golden_close(&golden, model);
}

// A tensor is a child of its context: opening makes one for each parameter, a graph adds itself and
// nothing else.
LOOP_TEST(weights_are_uploaded_once, 0, N_NAMES)
{
    struct golden golden;
    attncl_model *model = NULL;
    attncl_graph *first = NULL, *second = NULL;
    golden_load(&golden, names[_i]);
    const attncl_context *context = test_context();
    const long none = context->n_children;
    ck_ok(attncl_model_open(test_context(), golden.path, NULL, &model));
    const long opened = context->n_children;
    ck_assert_int_gt(opened - none, 20);
    ck_ok(attncl_model_graph(model, golden.inputs, golden.n_inputs, &first));
    ck_assert_int_eq(context->n_children, opened + 1);
    ck_ok(attncl_model_graph(model, golden.inputs, golden.n_inputs, &second));
    ck_assert_int_eq(context->n_children, opened + 2);

    attncl_graph_destroy(second);
    ck_ok(attncl_graph_run(first)); // the other graph's end took no weights along
    attncl_graph_destroy(first);
    ck_assert_int_eq(context->n_children, opened);
    attncl_model_destroy(model);
    ck_assert_int_eq(context->n_children, none);
    golden_free(&golden);
}
