// SPDX-License-Identifier: MIT
//
// Opening a model file: metadata, configuration, parameters to the device.  The file's copy in host
// memory is gone when the model is open.

#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "model/model.h"

attncl_status attncl__model_copy_metadata(attncl_model *model, const attncl_safetensors *file)
{
    const char *key, *value;
    size_t n = 0;
    while (attncl_safetensors_metadata_at(file, n, &value))
        ++n;
    model->metadata = attncl__alloc_array(2 * n, sizeof *model->metadata);
    REQUIRE(model->metadata, ATTNCL_ERR_NO_MEMORY, "%zu metadata values", n);
    model->n_metadata = 2 * n;
    for (size_t i = 0; i < n; ++i) {
        key = attncl_safetensors_metadata_at(file, i, &value);
        model->metadata[2 * i] = attncl__copy_text(key);
        model->metadata[2 * i + 1] = attncl__copy_text(value);
        REQUIRE(model->metadata[2 * i] && model->metadata[2 * i + 1], ATTNCL_ERR_NO_MEMORY,
                "metadata %s", key);
    }
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

attncl_status attncl__model_configure(attncl_model *model)
{
    const char *arch = attncl_model_metadata(model, "attncl.arch");
    const char *config = attncl_model_metadata(model, "attncl.config");
    REQUIRE(arch, ATTNCL_ERR_FORMAT,
            "metadata attncl.arch is missing: a file of weights becomes a model file by "
            "attncl-convert, see docs/model-files.md");
    REQUIRE(config, ATTNCL_ERR_FORMAT, "metadata attncl.config is missing");
    TRY(attncl__arch_find(arch, &model->arch));

    model->settings = attncl__alloc_zero(model->arch->settings_bytes);
    REQUIRE(model->settings, ATTNCL_ERR_NO_MEMORY, "settings of arch %s", arch);
    attncl_status status =
        attncl__json_parse(config, strlen(config), JSON_CONFIG_LIMITS, &model->config);
    if (status == ATTNCL_OK)
        status = attncl__arch_configure(model->arch, model->config, model->settings);
    if (status != ATTNCL_OK)
        attncl__error_prefix("attncl.config");
    return status;
}

attncl_status attncl__model_list_params(const attncl_model *model, struct param_list *list)
{
    struct params params = {.list = list, .file = list->file};
    if (model->arch->load)
        model->arch->load(&params, model->settings);
    return list->is_cut ? ATTNCL_OK : params.status;
}

static attncl_status load_parameters(attncl_model *model, const attncl_safetensors *file)
{
    if (!model->arch->load)
        return ATTNCL_OK;
    struct param_list list = {.file = file};
    attncl_status status = attncl__model_list_params(model, &list);
    if (status == ATTNCL_OK)
        status = attncl__param_list_check(&list);
    attncl__param_list_free(&list);
    TRY(status);
    struct params params = {.table = &model->params, .file = file};
    model->arch->load(&params, model->settings);
    return params.status;
}

static attncl_status fill(attncl_model *model, const attncl_safetensors *file)
{
    TRY(attncl__model_copy_metadata(model, file));
    TRY(attncl__model_configure(model));
    return load_parameters(model, file);
}

attncl_status attncl_model_open(attncl_context *context, const char *path, attncl_model **model_ret)
{
    REQUIRE(context && path && model_ret, ATTNCL_ERR_ARGUMENT,
            "context, path or model_ret is NULL");

    attncl_status status = ATTNCL_OK;
    attncl_safetensors *file = NULL;
    attncl_model *model = attncl__alloc_zero(sizeof *model);
    REQUIRE(model, ATTNCL_ERR_NO_MEMORY, "model");
    model->context = context;
    model->params.context = context;

    TRY_DONE(attncl_graph_create(context, &model->anchor));
    TRY_DONE(attncl_safetensors_open(path, &file));
    status = fill(model, file);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("%s", path);
        goto done;
    }
    *model_ret = model;
    model = NULL; // ownership has passed to the caller

done:
    attncl_safetensors_close(file);
    attncl_model_close(model);
    return status;
}

void attncl_model_close(attncl_model *model)
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
    return model ? model->arch->name : NULL;
}

int64_t attncl_model_config_int(const attncl_model *model, const char *key, int64_t otherwise)
{
    int64_t value = otherwise;
    bool present = false;
    if (!model || !key || attncl__json_int(model->config, key, &present, &value) != ATTNCL_OK)
        return otherwise;
    return present ? value : otherwise;
}
