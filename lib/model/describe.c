// SPDX-License-Identifier: MIT
//
// Descriptions of architectures and model files: keys, parameters, inputs and outputs.

#include <inttypes.h>

#include "graph/graph.h"
#include "model/model.h"

enum { MAX_SYMBOLS = 24 };

// A configuration's integers.  Extents are written by their names: 128 as "d_ffn/2".
struct symbols {
    struct symbol {
        const char *name; // of the configuration
        int64_t value;
    } list[MAX_SYMBOLS];
    size_t n;
};

struct attncl_description {
    attncl_model *model; // without a context: metadata, configuration and settings
    struct param_list params;
    bool has_symbols; // false: extents are numbers
    struct symbols symbols;
    struct entry_list entries;
};

// -- entries

// Adds the entry with this shape; frees the shape.
static attncl_status add_shaped(attncl_description *d, attncl_entry *entry, struct strbuf *shape)
{
    entry->shape = shape->data;
    const attncl_status status = shape->failed
                                     ? FAIL(ATTNCL_ERR_NO_MEMORY, "shape of %s", entry->name)
                                     : attncl__entry_add(&d->entries, entry);
    attncl__strbuf_free(shape);
    return status;
}

// -- symbols.  Extents of parameters are k, k/2 (a gating unit), 2*k and 3*k (a GRU's directions and
// gates), k*l, k/l (heads and their width), k + l (an attention decoder's input) or k + 1 (a feedback
// transformer).

static void add_symbol(struct symbols *symbols, const char *name, int64_t value)
{
    if (symbols->n < MAX_SYMBOLS && value > 1)
        symbols->list[symbols->n++] = (struct symbol){name, value};
}

static void read_symbols(struct symbols *symbols, const struct json *config)
{
    const char *key = NULL;
    while ((key = attncl__json_next(config, key)) != NULL) {
        const struct json *inner;
        int64_t value;
        size_t n;
        bool present;
        if (attncl__json_int(config, key, &present, &value) == ATTNCL_OK)
            add_symbol(symbols, key, value);
        else if (attncl__json_ints(config, key, &present, 1, &value, &n) == ATTNCL_OK && n == 1)
            add_symbol(symbols, key, value);
        else if (attncl__json_object(config, key, &present, &inner) == ATTNCL_OK)
            read_symbols(symbols, inner);
    }
}

static bool write_single(const struct symbols *symbols, int64_t value, struct strbuf *text)
{
    static const struct {
        int64_t times, over;
        const char *before, *after;
    } forms[] = {{1, 1, "", ""}, {3, 1, "3*", ""}, {1, 2, "", "/2"}, {2, 1, "2*", ""}};
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; ++form) {
        for (size_t i = 0; i < symbols->n; ++i) {
            const struct symbol *k = &symbols->list[i];
            if (value * forms[form].over != k->value * forms[form].times)
                continue;
            attncl__strbuf_add(text, "%s%s%s", forms[form].before, k->name, forms[form].after);
            return true;
        }
    }
    return false;
}

static bool write_pair(const struct symbols *symbols, int64_t value, struct strbuf *text)
{
    static const char forms[] = "*/+";
    for (int form = 0; form < 3; ++form) {
        for (size_t i = 0; i < symbols->n * symbols->n; ++i) {
            const struct symbol *k = &symbols->list[i / symbols->n];
            const struct symbol *l = &symbols->list[i % symbols->n];
            const int64_t results[] = {k->value * l->value,
                                       k->value % l->value ? -1 : k->value / l->value,
                                       k->value + l->value};
            if (k == l || results[form] != value)
                continue;
            attncl__strbuf_add(text, form == 2 ? "%s %c %s" : "%s%c%s", k->name, forms[form],
                               l->name);
            return true;
        }
    }
    return false;
}

static void write_extent(const struct symbols *symbols, int64_t value, struct strbuf *text)
{
    if (value > 1) {
        if (write_single(symbols, value, text) || write_pair(symbols, value, text))
            return;
        for (size_t i = 0; i < symbols->n; ++i) {
            if (symbols->list[i].value + 1 == value) {
                attncl__strbuf_add(text, "%s + 1", symbols->list[i].name);
                return;
            }
        }
    }
    attncl__strbuf_add(text, "%" PRId64, value);
}

// -- parameters

static attncl_status add_tensor(attncl_description *d, attncl_entry entry, int rank,
                                const int64_t *dim)
{
    struct strbuf shape = STRBUF_EMPTY;
    attncl__strbuf_add(&shape, "[");
    for (int i = 0; i < rank; ++i) {
        entry.dim[i] = dim[i];
        attncl__strbuf_add(&shape, "%s", i ? ", " : "");
        write_extent(&d->symbols, dim[i], &shape);
    }
    attncl__strbuf_add(&shape, "]");
    entry.rank = rank;
    return add_shaped(d, &entry, &shape);
}

static attncl_status add_params(attncl_description *d)
{
    for (size_t i = 0; i < d->params.n; ++i) {
        const struct listed_param *param = &d->params.list[i];
        const attncl_entry entry = {.kind =
                                        param->fixed ? ATTNCL_ENTRY_BUFFER : ATTNCL_ENTRY_PARAMETER,
                                    .optional = param->optional,
                                    .name = param->name,
                                    .type = attncl_dtype_name(param->desc.dtype),
                                    .is_map = param->is_map,
                                    .problem = param->problem};
        TRY(add_tensor(d, entry, param->desc.rank, param->desc.dim));
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
        attncl__port_write_shape(port, config, d->has_symbols, &shape);
        TRY(add_shaped(d, &entry, &shape));
    }
    return ATTNCL_OK;
}

// -- the description

static attncl_status fill_description(attncl_description *d, const attncl_safetensors *file)
{
    TRY(attncl__model_configure(d->model));
    if (d->has_symbols)
        read_symbols(&d->symbols, d->model->config);
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

// Describes a file or, if it is NULL, an architecture with a configuration.
static attncl_status create_description(const attncl_safetensors *file, const char *arch,
                                        const char *config, bool symbols,
                                        attncl_description **description_ret)
{
    attncl_status status = ATTNCL_OK;
    attncl_description *d = attncl__alloc_zero(sizeof *d);
    REQUIRE(d, ATTNCL_ERR_NO_MEMORY, "description");
    d->model = attncl__alloc_zero(sizeof *d->model);
    d->has_symbols = symbols;
    if (!d->model)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "description"));
    TRY_DONE(file ? attncl__model_copy_metadata(d->model, file)
                  : attncl__model_set_metadata(d->model, arch, config));
    TRY_DONE(fill_description(d, file));
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
    return create_description(NULL, arch, config ? config : found->example, symbols != 0,
                              description_ret);
}

attncl_status attncl_description_create_for(const attncl_safetensors *file,
                                            attncl_description **description_ret)
{
    REQUIRE(file && description_ret, ATTNCL_ERR_ARGUMENT, "file or description_ret is NULL");
    return create_description(file, NULL, NULL, false, description_ret);
}

void attncl_description_destroy(attncl_description *description)
{
    if (!description)
        return;
    attncl__entries_free(&description->entries);
    attncl__param_list_free(&description->params);
    attncl_model_destroy(description->model);
    attncl__free(description);
}

const char *attncl_description_arch(const attncl_description *description)
{
    return description ? description->model->arch_name : NULL;
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
    return description && i < description->entries.n ? &description->entries.list[i] : NULL;
}

attncl_status attncl_description_check(const attncl_description *description)
{
    REQUIRE(description, ATTNCL_ERR_ARGUMENT, "description is NULL");
    return attncl__param_list_check(&description->params);
}
