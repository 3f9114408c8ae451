// SPDX-License-Identifier: MIT

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/desc.h"
#include "base/dtype.h"
#include "support/compare.h"
#include "support/golden.h"

static const char input_prefix[] = "input.", expected_prefix[] = "expected.";

// The name after the prefix, NULL when it does not begin so.
static const char *after(const char *name, const char *prefix)
{
    const size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

void golden_load(struct golden *ret, const char *name)
{
    const attncl_array *a;
    *ret = (struct golden){.file = NULL};
    snprintf(ret->path, sizeof ret->path, "%s/%s.safetensors", ATTNCL_TEST_DATA, name);
    if (access(ret->path, F_OK) != 0) {
        snprintf(ret->path, sizeof ret->path, "%s/%s_grad.safetensors", ATTNCL_TEST_DATA, name);
        ret->leaves_gradients = true;
    }
    ck_ok(attncl_safetensors_open(ret->path, &ret->file));
    for (size_t i = 0; (a = attncl_safetensors_at(ret->file, i)) != NULL; ++i) {
        const char *short_name = after(a->name, input_prefix);
        if (!short_name || (ret->leaves_gradients && after(short_name, "cotangent.")))
            continue;
        ck_assert_uint_lt(ret->n_inputs, GOLDEN_MAX_INPUTS);
        ret->inputs[ret->n_inputs] = *a;
        ret->inputs[ret->n_inputs++].name = short_name;
    }
}

void golden_free(struct golden *golden)
{
    attncl_safetensors_close(golden->file);
    golden->file = NULL;
}

attncl_model *golden_open(struct golden *ret, const char *name)
{
    attncl_model *model = NULL;
    golden_load(ret, name);
    ck_ok(attncl_model_open(test_context(), ret->path, NULL, &model));
    return model;
}

void golden_close(struct golden *golden, attncl_model *model)
{
    attncl_model_destroy(model);
    golden_free(golden);
}

attncl_array *golden_input(struct golden *golden, const char *name)
{
    for (size_t i = 0; i < golden->n_inputs; ++i)
        if (strcmp(golden->inputs[i].name, name) == 0)
            return &golden->inputs[i];
    ck_abort_msg("%s has no input %s", golden->path, name);
    return NULL;
}

attncl_array *golden_give(struct golden *golden, const char *name)
{
    for (size_t i = 0; i < golden->n_inputs; ++i)
        if (strcmp(golden->inputs[i].name, name) == 0)
            return &golden->inputs[i];
    ck_assert_uint_lt(golden->n_inputs, GOLDEN_MAX_INPUTS);
    golden->inputs[golden->n_inputs] = golden->inputs[0];
    golden->inputs[golden->n_inputs].name = name;
    return &golden->inputs[golden->n_inputs++];
}

const attncl_array *golden_expected(const struct golden *golden, const char *name)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s", expected_prefix, name);
    const attncl_array *a = attncl_safetensors_find(golden->file, full);
    ck_assert_msg(a != NULL, "%s does not expect %s", golden->path, name);
    return a;
}

static size_t count_of(const attncl_array *a)
{
    return a->bytes / attncl_dtype_bytes(a->dtype);
}

static double *as_double(const attncl_array *a)
{
    const size_t n = count_of(a);
    double *x = malloc((n + 1) * sizeof *x);
    ck_assert_ptr_nonnull(x);
    if (attncl__is_float(a->dtype)) {
        ck_ok(attncl__convert(a->dtype, a->data, ATTNCL_F64, x, n));
        return x;
    }
    int64_t *ints = malloc((n + 1) * sizeof *ints);
    ck_assert_ptr_nonnull(ints);
    ck_ok(attncl__convert(a->dtype, a->data, ATTNCL_I64, ints, n));
    for (size_t i = 0; i < n; ++i)
        x[i] = (double)ints[i];
    free(ints);
    return x;
}

// Golden files have neither NaN nor infinities.
static double largest_in(const attncl_array *a)
{
    double *x = as_double(a), largest = 0;
    for (size_t i = 0; i < count_of(a); ++i) {
        ck_assert(isfinite(x[i]));
        largest = fmax(largest, fabs(x[i]));
    }
    free(x);
    return largest;
}

static void check_one(const char *path, const attncl_array *got, const attncl_array *want,
                      double tolerance)
{
    ck_assert_msg(got->rank == want->rank, "%s: %s has rank %d, expected %d", path, got->name,
                  got->rank, want->rank);
    for (int i = 0; i < got->rank; ++i)
        ck_assert_msg(got->dim[i] == want->dim[i], "%s: axis %d of %s is %lld, expected %lld", path,
                      i, got->name, (long long)got->dim[i], (long long)want->dim[i]);
    double *x = as_double(got), *y = as_double(want);
    struct worst w = {0};
    for (size_t i = 0; i < count_of(want); ++i)
        worst_add(&w, (int64_t)i, x[i], y[i], tolerance);
    if (w.n > 0)
        ck_worst(&w, 1, "%s: %s", path, got->name);
    free(x);
    free(y);
}

// Some gradients cancel, a key's bias to 0: what is left of each sum is the roundings of its terms,
// which are as large as other gradients.
static double cancelled(const struct golden *golden)
{
    enum { TERMS = 32 };
    const attncl_array *a;
    double largest = 0;
    for (size_t i = 0; (a = attncl_safetensors_at(golden->file, i)) != NULL; ++i)
        if (after(a->name, "expected.grad."))
            largest = fmax(largest, largest_in(a));
    return TERMS * 6e-8 * largest;
}

void golden_check_one(const struct golden *golden, const attncl_array *got, double tolerance)
{
    const attncl_array *want = golden_expected(golden, got->name);
    const double scale = tolerance * largest_in(want);
    check_one(golden->path, got, want,
              after(got->name, "grad.") ? scale + cancelled(golden) : scale);
}

void golden_check(const struct golden *golden, const attncl_results *results, double tolerance)
{
    const attncl_array *a;
    size_t n = 0;
    for (size_t i = 0; (a = attncl_safetensors_at(golden->file, i)) != NULL; ++i)
        n += after(a->name, expected_prefix) &&
             !(golden->leaves_gradients && after(a->name, "expected.grad."));
    ck_assert_uint_eq(attncl_results_count(results), n);
    for (size_t i = 0; (a = attncl_results_at(results, i)) != NULL; ++i)
        golden_check_one(golden, a, tolerance);
}

void golden_rewrite(const struct golden *golden, const char *path, struct golden_change change)
{
    const char *metadata[5] = {NULL};
    const attncl_array *a;
    size_t n = 0, n_metadata = 0;
    attncl_array *arrays = calloc(attncl_safetensors_count(golden->file) + 1, sizeof *arrays);
    ck_assert_ptr_nonnull(arrays);
    for (size_t i = 0; (a = attncl_safetensors_at(golden->file, i)) != NULL; ++i) {
        const bool this_one = change.parameter && strcmp(a->name, change.parameter) == 0;
        if (!this_one)
            arrays[n++] = *a;
        else if (change.with) {
            arrays[n] = *change.with;
            arrays[n++].name = a->name;
        }
    }
    if (!change.arch || *change.arch) {
        metadata[n_metadata++] = "attncl.arch";
        metadata[n_metadata++] =
            change.arch ? change.arch : attncl_safetensors_metadata(golden->file, "attncl.arch");
    }
    if (!change.config || *change.config) {
        metadata[n_metadata++] = "attncl.config";
        metadata[n_metadata++] = change.config
                                     ? change.config
                                     : attncl_safetensors_metadata(golden->file, "attncl.config");
    }
    ck_ok(attncl_safetensors_write(path, arrays, n, metadata));
    free(arrays);
}

void golden_each(void (*visit)(const char *name, void *user), void *user)
{
    struct dirent **list; // sorted: who takes every second one takes the same ones everywhere
    const int n_entries = scandir(ATTNCL_TEST_DATA, &list, NULL, alphasort);
    int n = 0;

    ck_assert_int_ge(n_entries, 0);
    for (int i = 0; i < n_entries; ++i) {
        char *const name = list[i]->d_name, *const end = strstr(name, ".safetensors");
        if (end) {
            *end = '\0';
            visit(name, user);
            ++n;
        }
        free(list[i]);
    }
    free(list);
    ck_assert_int_ge(n, 100);
}

// FNV-1a of all results.
static uint64_t digest(const attncl_results *results)
{
    const attncl_array *a;
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; (a = attncl_results_at(results, i)) != NULL; ++i)
        for (size_t k = 0; k < a->bytes; ++k)
            hash = (hash ^ ((const unsigned char *)a->data)[k]) * 0x100000001b3u;
    return hash;
}

static uint64_t run_once(const char *name, double tolerance)
{
    struct golden golden;
    attncl_model *model = golden_open(&golden, name);
    attncl_results *results = NULL;

    ck_ok(attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL));
    golden_check(&golden, results, tolerance);
    const uint64_t ret = digest(results);
    attncl_results_destroy(results);
    golden_close(&golden, model);
    return ret;
}

static void run_twice(const char *name, double tolerance)
{
    const uint64_t first = run_once(name, tolerance);

    ck_assert_msg(run_once(name, tolerance) == first, "%s: other bits in a second run", name);
}

void golden_run(const char *name, double tolerance)
{
    char without[64];
    const char *gradients = strstr(name, "_grad");

    run_twice(name, tolerance);
    if (!gradients || strcmp(gradients, "_grad") != 0) // clip_grad_norm has it too
        return;
    snprintf(without, sizeof without, "%.*s", (int)(gradients - name), name);
    run_twice(without, tolerance);
}
