// SPDX-License-Identifier: MIT
//
// Descriptions: the parameters that build() names, the keys, inputs and outputs that are declared.

#include <inttypes.h>
#include <string.h>

#include "graph/graph.h"
#include "model/describe.h"
#include "model/model.h"

struct attncl_description {
    attncl_model *model; // without a context: metadata, configuration and settings
    struct param_list params;
    struct symbols *symbols; // NULL: extents are numbers
    struct entry_list entries;
};

// -- parameters

static attncl_status add_tensor(attncl_description *d, attncl_entry entry, int rank,
                                const int64_t *dim)
{
    struct strbuf shape = STRBUF_EMPTY;
    attncl__strbuf_add(&shape, "[");
    for (int i = 0; i < rank; ++i) {
        entry.dim[i] = dim[i];
        attncl__strbuf_add(&shape, "%s", i ? ", " : "");
        attncl__symbols_write(d->symbols, dim[i], &shape);
    }
    attncl__strbuf_add(&shape, "]");
    entry.rank = rank;
    return attncl__entry_add_shaped(&d->entries, &entry, &shape);
}

static attncl_status add_params(attncl_description *d)
{
    for (size_t i = 0; i < d->params.n; ++i) {
        const struct listed_param *param = &d->params.list[i];
        const attncl_entry entry = {.kind =
                                        param->fixed ? ATTNCL_ENTRY_BUFFER : ATTNCL_ENTRY_PARAMETER,
                                    .optional = param->optional,
                                    .name = param->name,
                                    .type = param->type,
                                    .problem = param->problem};
        TRY(add_tensor(d, entry, param->rank, param->dim));
    }
    return ATTNCL_OK;
}

static attncl_status add_extra(attncl_description *d, const attncl_safetensors *file)
{
    for (size_t i = 0; i < attncl_safetensors_count(file); ++i) {
        const attncl_array *a = attncl_safetensors_at(file, i);
        const attncl_entry entry = {.kind = ATTNCL_ENTRY_EXTRA,
                                    .optional = 1,
                                    .name = a->name,
                                    .type = attncl_dtype_name(a->dtype)};
        if (attncl__name_find(&d->params.names, a->name) < 0)
            TRY(add_tensor(d, entry, a->rank, a->dim));
    }
    return ATTNCL_OK;
}

// -- inputs and outputs

static attncl_status add_ports(attncl_description *d, attncl_entry_kind kind,
                               const struct port *table)
{
    const struct config_values config = attncl__model_values(d->model);
    for (const struct port *port = table; port && port->type; ++port) {
        struct strbuf shape = STRBUF_EMPTY;
        attncl_entry entry = {.kind = kind,
                              .optional = port->optional,
                              .name = port->name,
                              .type = attncl__port_type_text(port->type),
                              .rank = -1};
        if (!attncl__port_applies(port, config))
            continue;
        attncl__port_write_shape(port, config, d->symbols != NULL, &shape);
        TRY(attncl__entry_add_shaped(&d->entries, &entry, &shape));
    }
    return ATTNCL_OK;
}

// -- the description

static attncl_status fill(attncl_description *d, const attncl_safetensors *file)
{
    TRY(attncl__model_configure(d->model));
    if (d->symbols)
        attncl__symbols_read(d->symbols, d->model->config);
    TRY(attncl__describe_keys(d->model->arch, &d->entries));
    d->params.file = file;
    TRY(attncl__model_list_params(d->model, &d->params));
    TRY(add_params(d));
    TRY(add_ports(d, ATTNCL_ENTRY_INPUT, d->model->arch->inputs));
    TRY(add_ports(d, ATTNCL_ENTRY_OUTPUT, d->model->arch->outputs));
    if (file)
        TRY(add_extra(d, file));
    d->params.file = NULL; // the caller's
    return ATTNCL_OK;
}

// Of a file, or else of an architecture and a configuration.
static attncl_status create(const attncl_safetensors *file, const char *arch, const char *config,
                            bool symbols, attncl_description **description_ret)
{
    attncl_status status = ATTNCL_OK;
    attncl_description *d = attncl__alloc_zero(sizeof *d);
    REQUIRE(d, ATTNCL_ERR_NO_MEMORY, "description");
    d->model = attncl__alloc_zero(sizeof *d->model);
    if (symbols)
        d->symbols = attncl__alloc_zero(sizeof *d->symbols);
    if (!d->model || (symbols && !d->symbols)) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "description");
        goto done;
    }
    TRY_DONE(file ? attncl__model_copy_metadata(d->model, file)
                  : attncl__model_set_metadata(d->model, arch, config));
    TRY_DONE(fill(d, file));
    *description_ret = d;
    d = NULL; // ownership has passed to the caller
done:
    attncl_description_destroy(d);
    return status;
}

attncl_status attncl_description_create(const char *arch, const char *config, int symbols,
                                        attncl_description **description_ret)
{
    const struct arch_class *found;
    REQUIRE(arch && description_ret, ATTNCL_ERR_ARGUMENT, "arch or description_ret is NULL");
    TRY(attncl__arch_find(arch, &found));
    return create(NULL, arch, config ? config : found->example, symbols != 0, description_ret);
}

attncl_status attncl_description_create_for(const attncl_safetensors *file,
                                            attncl_description **description_ret)
{
    REQUIRE(file && description_ret, ATTNCL_ERR_ARGUMENT, "file or description_ret is NULL");
    return create(file, NULL, NULL, false, description_ret);
}

void attncl_description_destroy(attncl_description *description)
{
    if (!description)
        return;
    attncl__entry_list_free(&description->entries);
    attncl__free(description->symbols);
    attncl__param_list_free(&description->params);
    attncl_model_destroy(description->model);
    attncl__free(description);
}

const char *attncl_arch_name(size_t i)
{
    const struct arch_class *arch = attncl__arch_at(i);
    return arch ? arch->name : NULL;
}

const char *attncl_description_arch(const attncl_description *description)
{
    return description ? description->model->arch->name : NULL;
}

const char *attncl_description_config(const attncl_description *description)
{
    return description ? attncl_model_metadata(description->model, "attncl.config") : NULL;
}

size_t attncl_description_count(const attncl_description *description)
{
    return description ? description->entries.n : 0;
}

const attncl_entry *attncl_description_at(const attncl_description *description, size_t i)
{
    return description ? attncl__entry_at(&description->entries, i) : NULL;
}

attncl_status attncl_description_check(const attncl_description *description)
{
    REQUIRE(description, ATTNCL_ERR_ARGUMENT, "description is NULL");
    return attncl__param_list_check(&description->params);
}
