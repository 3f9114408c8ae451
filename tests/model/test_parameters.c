// SPDX-License-Identifier: MIT
// A model's parameters: listed, read and written in the file's names and shapes, saved; its loss and
// gradients in a caller's graph.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/attncl.h"
#include "support/compare.h"
#include "support/directory.h"
#include "support/golden.h"
#include "support/loss_graph.h"

// lm_feedback stacks keys and values of its layers in one tensor.
static const char *const names[] = {"lm_feedback", "lm_aft_local", "lm_gpt2", "seq2seq_bahdanau"};

FIXTURE(directory_begin, directory_down);

static const attncl_array *in_file(const struct golden *golden, const char *name)
{
    const attncl_array *a = attncl_safetensors_find(golden->file, name);
    ck_assert_msg(a != NULL, "%s has no %s", golden->path, name);
    return a;
}

// Every parameter is the file's, bit for bit.
static void check_parameters(attncl_model *model, const struct golden *golden)
{
    static float data[1 << 16];
    attncl_param param = ATTNCL_PARAM_INIT;
    for (size_t i = 0; i < attncl_model_param_count(model); ++i) {
        ck_ok(attncl_model_param_at(model, i, &param));
        if (!param.trainable)
            continue;
        const attncl_array *a = in_file(golden, param.name);
        ck_assert_int_eq(param.shape.rank, a->rank);
        for (int k = 0; k < a->rank; ++k)
            ck_assert_int_eq(param.shape.dim[k], a->dim[k]);
        ck_ok(attncl_model_param_read(model, param.name, data, a->bytes));
        ck_assert_msg(memcmp(data, a->data, a->bytes) == 0, "%s differs", param.name);
    }
}

TABLE_TEST(parameters_are_those_of_the_file, names)
{
    struct golden golden;
    attncl_model *model = golden_open(&golden, names[_i]);
    check_parameters(model, &golden);
    golden_close(&golden, model);
}

TABLE_TEST(a_saved_model_is_the_same, names)
{
    static const char *const metadata[] = {"attncl.vocab", "abc", "note", "new", NULL};
    struct golden golden;
    const char *path = IN_DIRECTORY("saved.safetensors");
    attncl_model *model = golden_open(&golden, names[_i]);
    ck_ok(attncl_model_save(model, path, NULL));
    ck_ok(attncl_model_save(model, path, metadata)); // replaces
    attncl_model_destroy(model);
    ck_ok(attncl_model_open(test_context(), path, NULL, &model));
    check_parameters(model, &golden);
    ck_assert_str_eq(attncl_model_metadata(model, "note"), "new");
    ck_assert_str_eq(attncl_model_metadata(model, "attncl.vocab"), "abc");
    ck_assert_str_eq(attncl_model_metadata(model, "attncl.config"),
                     attncl_safetensors_metadata(golden.file, "attncl.config"));
    ck_fails(attncl_model_save(model, IN_DIRECTORY("none/x"), NULL), ATTNCL_ERR_IO, "none/x");
    golden_close(&golden, model);
}

TEST(a_written_parameter_is_read_back)
{
    static const char value[] = "transformer.layers.0.attn.value.linear.weight",
                      key[] = "transformer.layers.0.attn.key.linear.weight";
    struct golden golden;
    attncl_model *model = NULL;
    float data[1024], got[1024];
    golden_load(&golden, "lm_feedback");
    const attncl_array *a = in_file(&golden, value);
    ck_assert_uint_le(a->bytes, sizeof data);
    for (size_t i = 0; i < a->bytes / sizeof data[0]; ++i)
        data[i] = (float)i;
    ck_ok(attncl_model_open(test_context(), golden.path, NULL, &model));
    ck_ok(attncl_model_param_write(model, value, data, a->bytes));
    ck_ok(attncl_model_param_read(model, value, got, a->bytes));
    ck_assert_int_eq(memcmp(data, got, a->bytes), 0);
    ck_ok(attncl_model_param_read(model, key, got, a->bytes)); // its neighbour in the tensor
    ck_assert_int_eq(memcmp(in_file(&golden, key)->data, got, a->bytes), 0);

    ck_fails(attncl_model_param_write(model, value, data, 4), ATTNCL_ERR_ARGUMENT, "4 were given");
    ck_fails(attncl_model_param_read(model, "none", got, 4), ATTNCL_ERR_ARGUMENT, "none");
    attncl_param param = ATTNCL_PARAM_INIT;
    ck_fails(attncl_model_param_at(model, 1000, &param), ATTNCL_ERR_ARGUMENT, "1000");
    golden_close(&golden, model);
}

// -- weights of 16 bits

// Converts a matrix to memory that *kept then owns.
static void *converted(const attncl_array *a, attncl_dtype from, const void *data, attncl_dtype to,
                       void **kept)
{
    const size_t count = a->bytes / attncl_dtype_bytes(a->dtype);
    *kept = malloc(count * attncl_dtype_bytes(to));
    ck_assert(*kept != NULL);
    ck_ok(attncl_elements_convert(from, data, to, *kept, count));
    return *kept;
}

// The golden file with its matrices in another type, and the same values as F32.
static void write_stored(const struct golden *golden, attncl_dtype dtype, const char *stored,
                         const char *floats)
{
    enum { MAX_ARRAYS = 128, MAX_KEYS = 8 };
    attncl_array narrow[MAX_ARRAYS], wide[MAX_ARRAYS];
    void *kept[2 * MAX_ARRAYS] = {NULL};
    const char *metadata[2 * MAX_KEYS + 1] = {NULL};
    const size_t n = attncl_safetensors_count(golden->file);

    ck_assert_uint_le(n, MAX_ARRAYS);
    for (size_t i = 0; i < MAX_KEYS; ++i)
        metadata[2 * i] = attncl_safetensors_metadata_at(golden->file, i, &metadata[2 * i + 1]);
    for (size_t i = 0; i < n; ++i) {
        const attncl_array *a = attncl_safetensors_at(golden->file, i);
        narrow[i] = wide[i] = *a;
        if (a->dtype != ATTNCL_F32 || a->rank < 2)
            continue;
        narrow[i].data = converted(a, a->dtype, a->data, dtype, &kept[2 * i]);
        narrow[i].dtype = dtype;
        narrow[i].bytes = a->bytes / 2;
        wide[i].data = converted(a, dtype, narrow[i].data, ATTNCL_F32, &kept[2 * i + 1]);
    }
    ck_ok(attncl_safetensors_write(stored, narrow, n, metadata));
    ck_ok(attncl_safetensors_write(floats, wide, n, metadata));
    for (size_t i = 0; i < 2 * n; ++i)
        free(kept[i]);
}

static attncl_results *run_model(attncl_model *model, const struct golden *golden)
{
    attncl_results *results = NULL;
    ck_ok(attncl_model_run(model, golden->inputs, golden->n_inputs, &results, NULL));
    return results;
}

// Outputs and gradients of a model whose weights stay in 16 bits, against the same weights as floats.
static const struct {
    const char *name;
    attncl_dtype dtype;
} stored_models[] = {{"lm_aft_local", ATTNCL_F16},
                     {"lm_gpt2", ATTNCL_BF16},
                     {"feedback_transformer_grad", ATTNCL_F16},
                     {"seq2seq_bahdanau_grad", ATTNCL_BF16},
                     {"lm_gpt2_grad", ATTNCL_F16}};

TABLE_TEST(weights_of_16_bits_stay_so, stored_models)
{
    static float data[1 << 16], other[1 << 16];
    attncl_param param = ATTNCL_PARAM_INIT;
    struct golden golden;
    char stored[FILE_BYTES], floats[FILE_BYTES];
    attncl_model *a = NULL, *b = NULL;
    size_t n_stored = 0;

    golden_load(&golden, stored_models[_i].name);
    directory_path("stored.safetensors", stored);
    directory_path("floats.safetensors", floats);
    write_stored(&golden, stored_models[_i].dtype, stored, floats);
    ck_ok(attncl_model_open(test_context(), stored, NULL, &a));
    ck_ok(attncl_model_open(test_context(), floats, NULL, &b));

    for (size_t i = 0; i < attncl_model_param_count(a); ++i) {
        ck_ok(attncl_model_param_at(a, i, &param));
        size_t bytes = sizeof(float);
        for (int k = 0; k < param.shape.rank; ++k)
            bytes *= (size_t)param.shape.dim[k];
        n_stored += param.shape.dtype == stored_models[_i].dtype;
        ck_ok(attncl_model_param_read(a, param.name, data, bytes));
        ck_ok(attncl_model_param_read(b, param.name, other, bytes));
        ck_assert_msg(memcmp(data, other, bytes) == 0, "%s differs", param.name);
        ck_ok(attncl_model_param_write(a, param.name, other, bytes)); // and is written as read
    }
    ck_assert_uint_ge(n_stored, 2);

    attncl_results *got = run_model(a, &golden), *want = run_model(b, &golden);
    ck_assert_uint_eq(attncl_results_count(got), attncl_results_count(want));
    for (size_t i = 0; i < attncl_results_count(want); ++i) {
        const attncl_array *x = attncl_results_at(got, i), *y = attncl_results_at(want, i);
        ck_assert_int_eq(x->dtype, y->dtype);
        ck_assert_uint_eq(x->bytes, y->bytes);
        const int64_t n = (int64_t)(x->bytes / sizeof(float));
        if (x->dtype == ATTNCL_F32)
            ck_floats(x->data, y->data, n, 0, 1e-5 * largest_of(y->data, n), "%s", x->name);
    }
    attncl_results_destroy(got);
    attncl_results_destroy(want);
    attncl_model_destroy(b);
    golden_close(&golden, a);
}

// -- loss and gradients

static attncl_array ints(const char *name, const int32_t *data, int rank, const int64_t *dim)
{
    attncl_array a = {.name = name, .dtype = ATTNCL_I32, .rank = rank, .data = data, .bytes = 4};
    for (int i = 0; i < rank; ++i) {
        a.dim[i] = dim[i];
        a.bytes *= (size_t)dim[i];
    }
    return a;
}

enum { T = 5, B = 3 };
static const int64_t shape_tb[] = {T, B};
static const int32_t tokens[T * B] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 2, 3, 4};
static const int32_t targets[T * B] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 2, 3, 4, 5};

// A step of gradient descent through the public functions lowers the loss, and the file's loss is
// that of the model's own output "loss".
TEST(a_step_along_the_gradient_lowers_the_loss)
{
    static float x[1 << 16];
    struct loss_graph p;
    attncl_model_tensor weight;
    const attncl_array in[] = {ints("tokens", tokens, 2, shape_tb),
                               ints("targets", targets, 2, shape_tb)};
    loss_graph_open(&p, "lm_feedback");
    loss_graph_build(&p, NULL, in, 2);
    const float before = loss_graph_run(&p);
    for (size_t i = 0; i < p.n_weights; ++i) {
        float *dx;
        const size_t count = loss_graph_gradient(&p, i, &weight, &dx);
        ck_ok(attncl_tensor_read(weight.tensor, x, count * sizeof x[0]));
        for (size_t k = 0; k < count; ++k)
            x[k] -= 0.05f * dx[k];
        ck_ok(attncl_tensor_write(weight.tensor, x, count * sizeof x[0]));
        free(dx);
    }
    const float after = loss_graph_run(&p);
    ck_assert_msg(after < before, "the loss was %g and became %g", (double)before, (double)after);

    attncl_results *results = NULL;
    ck_ok(attncl_model_run(p.model, in, 2, &results, NULL));
    for (size_t i = 0; i < attncl_results_count(results); ++i) {
        const attncl_array *a = attncl_results_at(results, i);
        if (strcmp(a->name, "loss") == 0)
            ck_floats(a->data, &after, 1, 0, 1e-5 * after, "%s", a->name);
    }
    attncl_results_destroy(results);
    loss_graph_close(&p);
}

// Calls attncl_model_loss() in a graph of its own.
static attncl_status try_loss(attncl_model *model, const attncl_loss_desc *desc,
                              const attncl_array *inputs, size_t n)
{
    attncl_value loss;
    attncl_graph *g = test_graph();
    const attncl_status status = attncl_model_loss(model, g, desc, inputs, n, &loss);
    attncl_graph_destroy(g);
    return status;
}

TEST(a_loss_refuses_what_it_cannot_compute)
{
    struct golden golden;
    attncl_loss_desc desc = ATTNCL_LOSS_DESC_INIT;
    const attncl_array in[] = {ints("tokens", tokens, 2, shape_tb),
                               ints("targets", targets, 2, shape_tb),
                               ints("target", targets, 2, shape_tb)};
    attncl_model *model = golden_open(&golden, "lm_feedback");
    ck_ok(try_loss(model, &desc, in, 2));
    ck_fails(try_loss(model, &desc, in, 1), ATTNCL_ERR_ARGUMENT, "targets is missing");
    ck_fails(try_loss(model, &desc, in, 3), ATTNCL_ERR_ARGUMENT, "input target is not known");
    ck_fails(try_loss(NULL, &desc, in, 2), ATTNCL_ERR_ARGUMENT, "NULL");
    desc.label_smoothing = 1;
    ck_fails(try_loss(model, &desc, in, 2), ATTNCL_ERR_ARGUMENT, "label_smoothing is 1");
    desc.label_smoothing = 0;
    desc.dropout = -0.5;
    ck_fails(try_loss(model, &desc, in, 2), ATTNCL_ERR_ARGUMENT, "dropout is -0.5");
    golden_close(&golden, model);
    model = golden_open(&golden, "mha");
    ck_fails(try_loss(model, NULL, in, 2), ATTNCL_ERR_UNSUPPORTED, "arch mha has no loss");
    golden_close(&golden, model);
}

// Keys have no bias: their rows of the stacked one stay zero, in models of any depth.
TEST(rows_without_a_parameter_have_no_gradient)
{
    enum { LAYERS = 9, C = 4, ROWS = 2 * LAYERS * C };
    static const char config[] =
        "{\"layer\": \"feedback\", \"d_model\": 4, \"heads\": 2, \"d_ff\": 4, "
        "\"n_layers\": 9, \"n_vocab\": 11, \"P\": 6}";
    attncl_model *model = NULL;
    attncl_value loss, *weights, *gradients;
    attncl_model_tensor weight = ATTNCL_MODEL_TENSOR_INIT;
    const attncl_array in[] = {ints("tokens", tokens, 2, shape_tb),
                               ints("targets", targets, 2, shape_tb)};
    float got[ROWS];
    int n_found = 0;
    ck_ok(attncl_model_create(test_context(), "lm", config, 1, &model));
    attncl_graph *g = test_graph();
    const size_t n = attncl_model_tensor_count(model);
    weights = malloc(2 * n * sizeof *weights);
    ck_assert_ptr_nonnull(weights);
    gradients = weights + n;
    ck_ok(attncl_model_loss(model, g, NULL, in, 2, &loss));
    ck_ok(attncl_model_gradient(model, g, loss, weights, gradients));
    for (size_t i = 0; i < n; ++i) {
        ck_ok(attncl_model_tensor_at(model, i, &weight));
        if (strstr(weight.name, "key_value.bias")) {
            attncl_graph_output(g, "bias", gradients[i]);
            ++n_found;
        }
    }
    ck_assert_int_eq(n_found, 1);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_write(g, "tokens", tokens, sizeof tokens));
    ck_ok(attncl_graph_write(g, "targets", targets, sizeof targets));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "bias", got, sizeof got));
    for (int i = 0; i < ROWS; ++i)
        ck_assert_msg((got[i] == 0) == (i / C % 2 == 0), "row %d has gradient %g", i,
                      (double)got[i]);
    free(weights);
    attncl_graph_destroy(g);
    attncl_model_destroy(model);
}
