// SPDX-License-Identifier: MIT
// Models whose maps are in 8 and 4 bits compute as the same numbers in F32, at once and step by step; files that are not
// right and gradients are refused.  tests/tools/convert.py makes such files.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/attncl.h"
#include "support/compare.h"
#include "support/directory.h"
#include "support/golden.h"

FIXTURE(directory_begin, directory_down);

#define KEYS                                                                                       \
    "\"layer\": \"transformer\", \"heads\": 2, \"d_ff\": 96, \"d_model\": 32, \"n_layers\": 2, "   \
    "\"n_vocab\": 19, \"max_len\": 40, \"tie_generator\": true"
enum { MAX_ARRAYS = 64, T = 5, V = 19, TEXT_BYTES = 160 };
static const int32_t tokens[T] = {3, 18, 0, 7, 7};

// A new model's file with its maps in 8 or 4 bits.  `change` 1: the shape in metadata is wrong.
static size_t write_stored(const char *path, attncl_dtype dtype, int change)
{
    static const char config[] = "{" KEYS "}";
    static char text[MAX_ARRAYS][2][TEXT_BYTES];
    attncl_array arrays[MAX_ARRAYS];
    void *kept[MAX_ARRAYS];
    const char *metadata[2 * MAX_ARRAYS + 5] = {"attncl.arch", "lm", "attncl.config", config};
    attncl_model *model = NULL;
    attncl_safetensors *file = NULL;
    attncl_description *d = NULL;
    const attncl_entry *e;
    size_t n = 0, n_maps = 0;

    ck_ok(attncl_model_create(test_context(), "lm", config, 1, &model));
    ck_ok(attncl_model_save(model, path, NULL));
    attncl_model_destroy(model);
    ck_ok(attncl_safetensors_open(path, &file));
    ck_ok(attncl_description_create_for(file, &d));
    for (size_t i = 0; (e = attncl_description_at(d, i)) != NULL; ++i) {
        const attncl_array *a =
            e->kind == ATTNCL_ENTRY_PARAMETER ? attncl_safetensors_find(file, e->name) : NULL;
        if (!a)
            continue;
        arrays[n++] = *a;
        if (!e->is_map)
            continue;
        const size_t bytes = attncl_quantised_bytes(dtype, a->dim[0], a->dim[1]);
        kept[n_maps] = malloc(bytes);
        ck_ok(attncl_quantise(dtype, a->dim[0], a->dim[1], a->data, kept[n_maps]));
        snprintf(text[n_maps][0], TEXT_BYTES, ATTNCL_QUANTISED_KEY "%s", a->name);
        snprintf(text[n_maps][1], TEXT_BYTES, "%s [%d, %d]", dtype == ATTNCL_Q8 ? "q8" : "q4",
                 (int)a->dim[0], (int)a->dim[1] + 64 * change);
        metadata[2 * n_maps + 4] = text[n_maps][0];
        metadata[2 * n_maps + 5] = text[n_maps][1];
        arrays[n - 1] = (attncl_array){
            .name = a->name,
            .dtype = ATTNCL_U8,
            .rank = 3,
            .dim = {(a->dim[0] + 15) / 16, (a->dim[1] + 32) / 64, dtype == ATTNCL_Q8 ? 1088 : 576},
            .data = kept[n_maps++],
            .bytes = bytes};
    }
    ck_ok(attncl_safetensors_write(path, arrays, n, metadata));
    for (size_t i = 0; i < n_maps; ++i)
        free(kept[i]);
    attncl_description_destroy(d);
    attncl_safetensors_close(file);
    return n_maps;
}

static void run(attncl_model *model, float logits[T * V])
{
    const attncl_array in = {.name = "tokens",
                             .dtype = ATTNCL_I32,
                             .rank = 2,
                             .dim = {T, 1},
                             .data = tokens,
                             .bytes = sizeof tokens};
    attncl_results *results = NULL;

    ck_ok(attncl_model_run(model, &in, 1, &results, NULL));
    memcpy(logits, attncl_results_at(results, 0)->data, T * V * sizeof *logits);
    attncl_results_destroy(results);
}

static void decode(attncl_model *model, float logits[T * V])
{
    attncl_decoder *decoder = NULL;

    ck_ok(attncl_decoder_create(model, 1, NULL, &decoder));
    for (int t = 0; t < T; ++t)
        ck_ok(attncl_decoder_step(decoder, &tokens[t], logits + (ptrdiff_t)t * V));
    attncl_decoder_destroy(decoder);
}

static const attncl_dtype types[] = {ATTNCL_Q8, ATTNCL_Q4};

TABLE_TEST(results_are_those_of_the_same_numbers, types)
{
    const char *path = IN_DIRECTORY("stored"), *floats = IN_DIRECTORY("floats");
    float want[T * V], got[T * V];
    attncl_param param = ATTNCL_PARAM_INIT;
    attncl_model *a = NULL, *b = NULL;
    size_t n_kept = 0;

    const size_t n_maps = write_stored(path, types[_i], 0);
    ck_ok(attncl_model_open(test_context(), path, NULL, &a));
    ck_ok(attncl_model_save(a, floats, NULL)); // of F32
    ck_ok(attncl_model_open(test_context(), floats, NULL, &b));
    for (size_t i = 0; i < attncl_model_param_count(a); ++i) {
        ck_ok(attncl_model_param_at(a, i, &param));
        n_kept += param.shape.dtype == types[_i];
    }
    ck_assert_uint_eq(n_kept, n_maps);
    ck_assert_uint_eq(n_maps, 13);
    run(b, want);
    run(a, got);
    ck_floats(got, want, T * V, 0, 1e-5 * largest_of(want, T * V), "at once");
    decode(a, got);
    ck_floats(got, want, T * V, 0, 1e-5 * largest_of(want, T * V), "step by step");
    ck_fails(attncl_model_param_write(a, "src_embed.linear.weight", want, 19 * 32 * sizeof(float)),
             ATTNCL_ERR_UNSUPPORTED, types[_i] == ATTNCL_Q8 ? "is in Q8" : "is in Q4");
    attncl_model_destroy(a);
    attncl_model_destroy(b);
}

TEST(what_is_not_right_is_refused)
{
    static const float dy[T * V] = {1};
    static const char train[] = "{\"model\": {\"arch\": \"lm\", " KEYS
                                "}, \"optimizer\": {\"kind\": \"sgd\", \"learning_rate\": 0.1}}";
    const char *path = IN_DIRECTORY("stored");
    const attncl_array in[] = {{.name = "tokens",
                                .dtype = ATTNCL_I32,
                                .rank = 2,
                                .dim = {T, 1},
                                .data = tokens,
                                .bytes = sizeof tokens},
                               {.name = "cotangent.output",
                                .dtype = ATTNCL_F32,
                                .rank = 3,
                                .dim = {T, 1, V},
                                .data = dy,
                                .bytes = sizeof dy}};
    const attncl_model_options as = {sizeof as, "train", train};
    attncl_results *results = NULL;
    attncl_model *model = NULL;

    write_stored(path, ATTNCL_Q4, 1);
    ck_fails(attncl_model_open(test_context(), path, NULL, &model), ATTNCL_ERR_FORMAT,
             "another shape, but q4 [19, 96] is [2, 2, 576]");
    write_stored(path, ATTNCL_Q8, 0);
    ck_fails(attncl_model_open(test_context(), path, &as, &model), ATTNCL_ERR_UNSUPPORTED,
             "in 8 or 4 bits, which are not trained");
    ck_ok(attncl_model_open(test_context(), path, NULL, &model));
    ck_fails(attncl_model_run(model, in, 2, &results, NULL), ATTNCL_ERR_UNSUPPORTED,
             "is in Q8, which has no gradient");
    attncl_model_destroy(model);
}
