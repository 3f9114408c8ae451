// SPDX-License-Identifier: MIT
//
// Opens a model file or creates a new model: metadata, configuration, parameters on the device.

#include <stdlib.h>
#include <string.h>

#include "base/struct.h"
#include "io/safetensors.h"
#include "model/model.h"

static const char eos_key[] = "attncl.eos"; // "[2, 5]"
static const char digits[] = "0123456789";

static attncl_status check_eos(const char *text)
{
    enum { MAX_DIGITS = 9 }; // below 2^31
    struct json_members list = attncl__json_elements((struct json_span){text, strlen(text)});
    bool are_numbers = true;

    while (are_numbers && attncl__json_next_member(&list))
        are_numbers =
            list.value.bytes <= MAX_DIGITS && strspn(list.value.text, digits) >= list.value.bytes;
    REQUIRE(are_numbers && list.status == ATTNCL_OK, ATTNCL_ERR_FORMAT,
            "%s is %.40s, expected a list of token numbers such as [2, 5]", eos_key, text);
    return ATTNCL_OK;
}

attncl_status attncl__model_add_metadata(attncl_model *model, const char *key, const char *value)
{
    const size_t n = model->n_metadata;
    if (strcmp(key, eos_key) == 0)
        TRY(check_eos(value));
    char **list = attncl__grow_array(model->metadata, n + 2, sizeof *list);
    REQUIRE(list, ATTNCL_ERR_NO_MEMORY, "metadata %s", key);
    model->metadata = list;
    list[n] = attncl__copy_text(key);
    list[n + 1] = attncl__copy_text(value);
    model->n_metadata += 2; // first, so that the model frees both
    REQUIRE(list[n] && list[n + 1], ATTNCL_ERR_NO_MEMORY, "metadata %s", key);
    return ATTNCL_OK;
}

attncl_status attncl__model_copy_metadata(attncl_model *model, const attncl_safetensors *file)
{
    const char *key, *value;
    for (size_t i = 0; (key = attncl_safetensors_metadata_at(file, i, &value)) != NULL; ++i)
        TRY(attncl__model_add_metadata(model, key, value));
    return ATTNCL_OK;
}

const char *attncl_model_metadata(const attncl_model *model, const char *key)
{
    if (!model || !key)
        return NULL;
    for (size_t i = 0; i + 1 < model->n_metadata; i += 2)
        if (strcmp(model->metadata[i], key) == 0)
            return model->metadata[i + 1];
    return NULL;
}

int attncl_model_ends_text(const attncl_model *model, int32_t token)
{
    const char *at = attncl_model_metadata(model, eos_key);

    while (at && (at = strpbrk(at, digits)) != NULL) {
        char *end;
        if (strtol(at, &end, 10) == token)
            return 1;
        at = end;
    }
    return 0;
}

attncl_status attncl__model_configure(attncl_model *model)
{
    const char *arch = attncl_model_metadata(model, "attncl.arch");
    const char *config = attncl_model_metadata(model, "attncl.config");
    REQUIRE(arch, ATTNCL_ERR_FORMAT,
            "metadata attncl.arch is missing: a file of weights becomes a model file by "
            "attncl-convert, see docs/model-files.md");
    REQUIRE(config, ATTNCL_ERR_FORMAT, "metadata attncl.config is missing");
    TRY(attncl__arch_find(arch, &model->arch));
    model->arch_name = arch;

    model->settings = attncl__alloc_zero(model->arch->settings_bytes);
    REQUIRE(model->settings, ATTNCL_ERR_NO_MEMORY, "settings of arch %s", arch);
    attncl_status status =
        attncl__json_parse(config, strlen(config), JSON_CONFIG_LIMITS, &model->config);
    if (status == ATTNCL_OK)
        status = attncl__arch_configure(model->arch, model->config, model->settings);
    return attncl__prefix_failure(status, "attncl.config");
}

// Lists or loads the parameters, depending on `params`.
static attncl_status visit_params(const attncl_model *model, struct params params)
{
    struct build b = {.params = params};
    if (model->arch->build)
        model->arch->build(&b, model->settings);
    return b.params.status;
}

attncl_status attncl__model_list_params(const attncl_model *model, struct param_list *list)
{
    const attncl_status status =
        visit_params(model, (struct params){.list = list, .file = list->file});
    return list->is_cut ? ATTNCL_OK : status;
}

// Loads the parameters of a file; NULL: creates a new model's by the seed.
static attncl_status load_parameters(attncl_model *model, const attncl_safetensors *file,
                                     uint64_t seed)
{
    attncl_status status = ATTNCL_OK;
    struct param_list list = {.file = file};
    struct initial initial = {0};
    struct params params = {.table = &model->params, .file = file};

    TRY_DONE(attncl__model_list_params(model, &list));
    TRY_DONE(attncl__param_list_check(&list));
    if (!file) {
        TRY_DONE(attncl__initial_create(seed, &list, &initial));
        params.initial = &initial;
    }
    TRY_DONE(visit_params(model, params));
    status = attncl__tensor_block_end(model->context, &model->params.block);
done:
    attncl__initial_free(&initial);
    attncl__param_list_free(&list);
    return status;
}

attncl_status attncl__model_set_metadata(attncl_model *model, const char *arch, const char *config)
{
    TRY(attncl__model_add_metadata(model, "attncl.arch", arch));
    return attncl__model_add_metadata(model, "attncl.config", config);
}

// arch NULL: from the file's metadata.  file NULL: a new model.
static attncl_status fill_model(attncl_model *model, const attncl_safetensors *file,
                                const char *arch, const char *config, uint64_t seed)
{
    TRY(arch ? attncl__model_set_metadata(model, arch, config)
             : attncl__model_copy_metadata(model, file));
    TRY(attncl__model_configure(model));
    return load_parameters(model, file, seed);
}

// path NULL: a new model.
static attncl_status open_model(attncl_context *context, const char *path, const char *arch,
                                const char *config, uint64_t seed, attncl_model **model_ret)
{
    attncl_status status = ATTNCL_OK;
    attncl_safetensors *file = NULL;
    attncl_model *model = attncl__alloc_zero(sizeof *model);
    REQUIRE(model, ATTNCL_ERR_NO_MEMORY, "model");

    model->context = context;
    model->params.context = context;
    TRY_DONE(attncl_graph_create(context, &model->anchor));
    if (path)
        TRY_DONE(attncl_safetensors_open_header(path, &file));
    status = fill_model(model, file, arch, config, seed);
    if (status == ATTNCL_OK && path)
        status = attncl__st_check_size(file);
    TRY_DONE(path ? attncl__prefix_failure(status, "%s", path) : status);
    *model_ret = model;
    model = NULL; // ownership has passed to the caller

done:
    attncl_safetensors_close(file);
    attncl_model_destroy(model);
    return status;
}

attncl_status attncl_model_open(attncl_context *context, const char *path,
                                const attncl_model_options *options, attncl_model **model_ret)
{
    attncl_model_options o = ATTNCL_MODEL_OPTIONS_INIT;

    REQUIRE(context && path && model_ret, ATTNCL_ERR_ARGUMENT,
            "context, path or model_ret is NULL");
    if (options)
        TRY(STRUCT_READ(attncl_model_options, &o, options));
    REQUIRE(!o.arch == !o.config, ATTNCL_ERR_ARGUMENT, "arch is %s, config %s: both or neither",
            o.arch ? "given" : "NULL", o.config ? "given" : "NULL");
    return open_model(context, path, o.arch, o.config, 0, model_ret);
}

attncl_status attncl_model_create(attncl_context *context, const char *arch, const char *config,
                                  uint64_t seed, attncl_model **model_ret)
{
    REQUIRE(context && arch && config && model_ret, ATTNCL_ERR_ARGUMENT,
            "context, arch, config or model_ret is NULL");
    return open_model(context, NULL, arch, config, seed, model_ret);
}

void attncl_model_destroy(attncl_model *model)
{
    if (!model)
        return;
    attncl__param_table_free(&model->params);
    attncl_graph_destroy(model->anchor);
    attncl__json_free(model->config);
    attncl__free(model->settings);
    for (size_t i = 0; i < model->n_metadata; ++i)
        attncl__free(model->metadata[i]);
    attncl__free(model->metadata);
    attncl__free(model);
}

const char *attncl_model_arch(const attncl_model *model)
{
    return model ? model->arch_name : NULL;
}

int64_t attncl_model_config_int(const attncl_model *model, const char *key, int64_t otherwise)
{
    int64_t value = otherwise;
    bool present = false;
    if (!model || !key || attncl__json_int(model->config, key, &present, &value) != ATTNCL_OK)
        return otherwise;
    return present ? value : otherwise;
}
