// SPDX-License-Identifier: MIT
// Names of inputs: what an architecture does not name is refused, and all that is missing is said at
// once.

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "attncl/describe.h"
#include "support/golden.h"

static void refuse(attncl_model *model, const struct golden *golden, const char *words)
{
    attncl_results *results = NULL;
    ck_fails(attncl_model_run(model, golden->inputs, golden->n_inputs, &results, NULL),
             ATTNCL_ERR_ARGUMENT, words);
    ck_assert_ptr_null(results);
    ck_assert_ptr_null(strchr(attncl_last_error(), '\n'));
}

// The golden file's input, or else one more.
static attncl_array *give_input(struct golden *golden, const char *name)
{
    for (size_t i = 0; i < golden->n_inputs; ++i)
        if (strcmp(golden->inputs[i].name, name) == 0)
            return &golden->inputs[i];
    ck_assert_uint_lt(golden->n_inputs, GOLDEN_MAX_INPUTS);
    golden->inputs[golden->n_inputs] = golden->inputs[0];
    return &golden->inputs[golden->n_inputs++];
}

static void misspell(attncl_model *model, const struct golden *golden, const attncl_entry *entry)
{
    struct golden wrong = *golden;
    char name[128], words[256];
    if (golden->n_inputs == 0)
        return;
    snprintf(name, sizeof name, "q%s", entry->name);
    snprintf(words, sizeof words, "input %s is not known, nearest: %s; inputs: ", name,
             entry->name);
    give_input(&wrong, entry->name)->name = name;
    refuse(model, &wrong, words);
}

// Optional ones that the file leaves out too, which a run with a misspelt one would ignore.
static size_t misspell_all(const char *name)
{
    struct golden golden;
    attncl_description *d = NULL;
    attncl_safetensors *file = NULL;
    const attncl_entry *entry;
    size_t n = 0;
    attncl_model *model = golden_open(&golden, name);
    ck_ok(attncl_safetensors_open(golden.path, &file));
    ck_ok(attncl_description_create_for(file, &d));
    for (size_t i = 0; (entry = attncl_description_at(d, i)) != NULL; ++i) {
        if (entry->kind != ATTNCL_ENTRY_INPUT)
            continue;
        misspell(model, &golden, entry);
        ++n;
    }
    attncl_description_destroy(d);
    attncl_safetensors_close(file);
    golden_close(&golden, model);
    return n;
}

TEST(every_input_of_every_architecture_misspelt_is_refused)
{
    DIR *directory = opendir(ATTNCL_TEST_DATA);
    const struct dirent *entry;
    size_t n = 0;
    ck_assert_ptr_nonnull(directory);
    while ((entry = readdir(directory)) != NULL) {
        char name[sizeof entry->d_name];
        char *end = strstr(strcpy(name, entry->d_name), ".safetensors");
        if (!end)
            continue;
        *end = '\0';
        if (end - name > 5 && strcmp(end - 5, "_grad") == 0)
            end[-5] = '\0'; // cotangents have no names of their own
        n += misspell_all(name);
    }
    closedir(directory);
    ck_assert_uint_gt(n, 100);
}

// Of types that nothing here computes with.
TEST(an_input_of_another_name_is_refused_whatever_its_type)
{
    static const attncl_dtype types[] = {ATTNCL_F4, ATTNCL_F6_E2M3, ATTNCL_C64, ATTNCL_F8_E4M3};
    static const unsigned char data[8];
    struct golden golden;
    attncl_model *model = golden_open(&golden, "softmax");
    attncl_array *another = &golden.inputs[golden.n_inputs++];
    for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i) {
        *another = (attncl_array){
            .name = "another", .dtype = types[i], .rank = 1, .dim = {8}, .data = data, .bytes = 4};
        if (attncl_dtype_bytes(types[i]))
            *another = (attncl_array){.name = "another",
                                      .dtype = types[i],
                                      .rank = 1,
                                      .dim = {8 / (int64_t)attncl_dtype_bytes(types[i])},
                                      .data = data,
                                      .bytes = 8};
        refuse(model, &golden, "input another is not known; inputs: x");
    }
    golden_close(&golden, model);
}

TEST(a_cotangent_of_no_output_is_refused)
{
    struct golden golden;
    attncl_model *model = golden_open(&golden, "dot_product_attention");
    golden.inputs[golden.n_inputs] = golden.inputs[0];
    golden.inputs[golden.n_inputs++].name = "cotangent.outputs";
    refuse(model, &golden,
           "input cotangent.outputs: there is no output outputs, nearest: output; outputs: output, "
           "attention_weights");
    golden_close(&golden, model);
}

TEST(all_missing_inputs_are_named)
{
    struct golden golden;
    attncl_model *model = golden_open(&golden, "mha");
    golden.n_inputs = 0;
    refuse(model, &golden, "inputs query, key, value are missing");
    golden_close(&golden, model);
}

// What only another configuration reads is refused too: without amsgrad it would change nothing.
TEST(an_input_that_this_configuration_ignores_is_refused)
{
    struct golden golden;
    attncl_model *model = golden_open(&golden, "optimizer_step_adam");
    give_input(&golden, "none")->name = "max_exp_avg_sq";
    refuse(model, &golden, "input max_exp_avg_sq is not known, nearest: exp_avg_sq; inputs: ");
    golden_close(&golden, model);
}
