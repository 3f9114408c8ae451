// SPDX-License-Identifier: MIT
//
// Lists the parameters that an architecture names, and checks a file's against them.

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/desc.h"
#include "base/suggest.h"
#include "io/safetensors.h"
#include "model/params.h"

enum {
    MAX_PARAMS = 200000, // as many as a file may have
    MAX_PROBLEMS = 1000,
    MAX_NAMED = 10, // in a message
    MAX_NAMED_BYTES = 700,
    MAX_COMPARED = 10000, // names of a file searched for one like a missing name
};

void attncl__param_list_free(struct param_list *l)
{
    for (size_t i = 0; i < l->n; ++i) {
        attncl__free(l->list[i].name);
        attncl__free(l->list[i].problem);
    }
    attncl__free(l->list);
    attncl__name_table_free(&l->names);
    *l = (struct param_list){0};
}

static attncl_status append_param(struct param_list *l, const char *name,
                                  const struct tensor_desc *want, enum param_kind kind)
{
    REQUIRE(l->n < MAX_PARAMS, ATTNCL_ERR_FORMAT,
            "the configuration asks for more than %d parameters", MAX_PARAMS);
    REQUIRE(GROW_LIST(l->list, l->n, l->capacity), ATTNCL_ERR_NO_MEMORY, "list of %zu parameters",
            l->n + 1);
    struct listed_param *param = &l->list[l->n];
    *param = (struct listed_param){
        .name = attncl__copy_text(name),
        .desc = *want,
        .optional = kind == PARAM_OPTIONAL_WEIGHT || kind == PARAM_BUFFER,
        .is_map = kind == PARAM_MAP,
        .fixed = kind == PARAM_BUFFER,
    };
    REQUIRE(param->name, ATTNCL_ERR_NO_MEMORY, "name of parameter %s", name);
    const attncl_status status = attncl__name_add(&l->names, param->name, (int)l->n);
    if (status != ATTNCL_OK)
        attncl__free(param->name);
    else
        ++l->n;
    return status;
}

// Records a problem of the last parameter.
__attribute__((format(printf, 2, 3))) static attncl_status add_problem(struct param_list *l,
                                                                       const char *fmt, ...)
{
    struct listed_param *last = &l->list[l->n - 1];
    char text[2 * SHAPE_TEXT_BYTES + 64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    last->problem = attncl__copy_text(text);
    REQUIRE(last->problem, ATTNCL_ERR_NO_MEMORY, "parameter %s", last->name);
    l->is_cut = ++l->n_problems >= MAX_PROBLEMS;
    REQUIRE(!l->is_cut, ATTNCL_ERR_FORMAT, "more than %d parameters do not fit", MAX_PROBLEMS);
    return ATTNCL_OK;
}

static attncl_status check_shape(struct param_list *l, attncl_dtype dtype, int rank,
                                 const int64_t *dim, const struct tensor_desc *want)
{
    struct tensor_desc got;
    TRY(attncl__desc_make(dtype, rank, dim, &got));
    if (attncl__desc_same_shape(&got, want))
        return ATTNCL_OK;
    return add_problem(l, "has shape %s, expected %s", SHAPE(&got), SHAPE(want));
}

// A U8 tensor must be the bytes of a quantised parameter.
static attncl_status check_quantised(struct param_list *l, const attncl_array *a,
                                     const struct tensor_desc *want)
{
    attncl_dtype dtype;
    int64_t dim[2];

    if (attncl_safetensors_quantised(l->file, a->name, &dtype, dim) != ATTNCL_OK)
        return add_problem(l, "%s", attncl_last_error());
    if (dtype == ATTNCL_DTYPE_NONE)
        return add_problem(l, "has type U8, expected F32");
    return check_shape(l, dtype, 2, dim, want);
}

attncl_status attncl__param_list_add(struct param_list *l, const char *name, int rank,
                                     const int64_t *dim, enum param_kind kind)
{
    struct tensor_desc want;
    TRY(attncl__prefix_failure(attncl__desc_make(ATTNCL_F32, rank, dim, &want), "parameter %s",
                               name));
    if (attncl__name_find(&l->names, name) >= 0) // a weight that is used twice
        return ATTNCL_OK;
    TRY(append_param(l, name, &want, kind));
    if (!l->file)
        return ATTNCL_OK;
    const attncl_array *a = attncl_safetensors_find(l->file, name);
    if (!a && l->list[l->n - 1].optional)
        return ATTNCL_OK;
    if (!a) {
        l->list[l->n - 1].is_missing = true;
        return add_problem(l, "is missing");
    }
    if (a->dtype == ATTNCL_U8)
        return check_quantised(l, a, &want);
    if (!attncl__is_float(a->dtype))
        return add_problem(l, "has type %s, expected F32", attncl_dtype_name(a->dtype));
    return check_shape(l, a->dtype, a->rank, a->dim, &want);
}

static attncl_status check_window(struct param_list *l, const attncl_array *a, int64_t n,
                                  int64_t window)
{
    attncl_status status = ATTNCL_OK;
    unsigned char *visible = attncl__alloc((size_t)n);

    REQUIRE(visible, ATTNCL_ERR_NO_MEMORY, "%" PRId64 " bytes of %s", n, a->name);
    for (int64_t i = 0; i < n; ++i) {
        TRY_DONE(attncl__st_read(l->file, a, (uint64_t)(i * n), (size_t)n, visible));
        for (int64_t j = 0; j < n; ++j) {
            const bool near = (i > j ? i - j : j - i) < window;
            if ((visible[j] != 0) == near)
                continue;
            status = add_problem(
                l, "disagrees with local_window_size = %" PRId64 " at [%" PRId64 ", %" PRId64 "]",
                window, i, j);
            goto done;
        }
    }

done:
    attncl__free(visible);
    return status;
}

attncl_status attncl__param_list_add_window(struct param_list *l, const char *name, int64_t n,
                                            int64_t window)
{
    const int64_t dim[2] = {n, n};
    struct tensor_desc want;
    TRY(attncl__desc_make(ATTNCL_BOOL, 2, dim, &want));
    TRY(append_param(l, name, &want, PARAM_BUFFER));
    const attncl_array *a = l->file ? attncl_safetensors_find(l->file, name) : NULL;
    if (!a)
        return ATTNCL_OK;
    if (a->dtype != ATTNCL_BOOL && a->dtype != ATTNCL_U8)
        return add_problem(l, "has type %s, expected BOOL", attncl_dtype_name(a->dtype));
    const size_t before = l->n_problems;
    TRY(check_shape(l, a->dtype, a->rank, a->dim, &want));
    return l->n_problems > before ? ATTNCL_OK : check_window(l, a, n, window);
}

// Appends "a, b and 3 more": names of missing parameters, or names with other problems.  Returns how
// many there are.
static size_t add_names(const struct param_list *l, bool missing, struct strbuf *text)
{
    size_t n = 0, n_named = 0;
    for (size_t i = 0; i < l->n; ++i) {
        const struct listed_param *param = &l->list[i];
        if (!param->problem || param->is_missing != missing)
            continue;
        if (n++ < MAX_NAMED && text->used < MAX_NAMED_BYTES) {
            attncl__strbuf_add(text, "%s%s%s%s", text->used ? ", " : "", param->name,
                               missing ? "" : " ", missing ? "" : param->problem);
            ++n_named;
        }
    }
    if (n > n_named)
        attncl__strbuf_add(text, " and %s%zu more", l->is_cut ? "at least " : "", n - n_named);
    return n;
}

static bool ends_with_name(const char *whole, const char *name)
{
    const size_t n = strlen(name), n_whole = strlen(whole);
    return n < n_whole && whole[n_whole - n - 1] == '.' && strcmp(whole + n_whole - n, name) == 0;
}

// Whether the names differ by a module prefix or by one typing error.
static bool is_near(const char *name, const char *missing)
{
    const size_t n = strlen(name), n_missing = strlen(missing);
    if (ends_with_name(name, missing) || ends_with_name(missing, name))
        return true;
    return n + 1 >= n_missing && n <= n_missing + 1 && attncl__edit_distance(name, missing) <= 1;
}

// A name in the file like that of the first missing parameter; NULL: none.
static const char *find_near(const struct param_list *l)
{
    size_t first = 0;
    while (!l->list[first].is_missing)
        ++first;
    const size_t n = attncl_safetensors_count(l->file);
    for (size_t i = 0; i < n && i < MAX_COMPARED; ++i) {
        const char *name = attncl_safetensors_at(l->file, i)->name;
        if (attncl__name_find(&l->names, name) < 0 && is_near(name, l->list[first].name))
            return name;
    }
    return NULL;
}

attncl_status attncl__param_list_check(const struct param_list *l)
{
    struct strbuf text = STRBUF_EMPTY;
    if (l->n_problems == 0)
        return ATTNCL_OK;
    const size_t n = add_names(l, true, &text);
    if (n > 0)
        attncl__strbuf_add(&text, n > 1 ? " are missing" : " is missing");
    const char *near = n > 0 ? find_near(l) : NULL;
    if (near)
        attncl__strbuf_add(&text, "; the file has %.200s", near);
    add_names(l, false, &text);
    const attncl_status status =
        text.failed ? FAIL(ATTNCL_ERR_NO_MEMORY, "%zu parameters do not fit", l->n_problems)
                    : FAIL(ATTNCL_ERR_FORMAT, "parameter%s %s", n > 1 ? "s" : "", text.data);
    attncl__strbuf_free(&text);
    return status;
}
