// SPDX-License-Identifier: MIT
//
// A ratio is B's least time over A's.  Two runs of one program differ by chance too: a difference
// counts only where the quartiles of the two sides do not overlap, and is marked.

#define _GNU_SOURCE // strsep

#include "harness/compare.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/machine.h"

// The text of a field; "" when there is none.
static const char *text(const json_t *object, const char *field)
{
    const char *value = json_string_value(json_object_get(object, field));

    return value ? value : "";
}

static bool same(const json_t *a, const json_t *b, const char *field)
{
    return strcmp(text(a, field), text(b, field)) == 0;
}

static bool same_name(const json_t *a, const json_t *b)
{
    return same(a, b, "kind") && same(a, b, "name") && same(a, b, "platform");
}

// Runs of the same thing: a device with another driver or other settings is another one.
static bool same_setup(const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "settings"), *y = json_object_get(b, "settings");

    return same_name(a, b) && same(a, b, "device") && same(a, b, "driver") &&
           (x == y || json_equal(x, y));
}

static bool is_ok(const json_t *result)
{
    return strcmp(text(result, "outcome"), "ok") == 0;
}

// A time of a result's `wall`; the nearest one that is known when a report does not give it.
static double wall(const json_t *result, const char *field)
{
    static const char *const fallback[] = {"median_s", "min_s"};
    const json_t *times = json_object_get(result, "wall");
    const json_t *value = json_object_get(times, field);

    for (size_t i = 0; i < 2 && !json_is_number(value); ++i)
        value = json_object_get(times, fallback[i]);
    return json_number_value(value);
}

// Of several runs of a case the fastest counts, or the one that was wrong.
static void add_result(json_t *results, json_t *x)
{
    size_t i;
    json_t *old;

    json_array_foreach (results, i, old) {
        if (!same(old, x, "case") || !same(old, x, "variant"))
            continue;
        if (is_ok(old) && (!is_ok(x) || wall(x, "min_s") < wall(old, "min_s")))
            json_array_set(results, i, x);
        return;
    }
    json_array_append(results, x);
}

static void add_device(json_t *devices, json_t *x)
{
    size_t i;
    json_t *old = NULL, *result;

    json_array_foreach (devices, i, old) {
        if (same_setup(old, x))
            break;
    }
    if (i == json_array_size(devices)) {
        old = json_copy(x);
        json_object_set_new(old, "results", json_array());
        json_array_append_new(devices, old);
    }
    json_array_foreach (json_object_get(x, "results"), i, result) {
        add_result(json_object_get(old, "results"), result);
    }
}

static bool add_file(json_t *devices, const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error), *device;
    const json_int_t schema = json_integer_value(json_object_get(root, "schema"));
    size_t i;

    if (!root)
        fprintf(stderr, "attncl-bench: %s, line %d: %s\n", path, error.line, error.text);
    else if (schema != REPORT_SCHEMA)
        fprintf(stderr, "attncl-bench: %s has schema %lld, this program reads %d\n", path,
                (long long)schema, REPORT_SCHEMA);
    else
        json_array_foreach (json_object_get(root, "devices"), i, device) {
            add_device(devices, device);
        }
    json_decref(root);
    return root && schema == REPORT_SCHEMA;
}

// The devices of reports, whose names have commas between them, each with the best run of every
// case.  NULL, with a message printed, when one cannot be read.
static json_t *load(const char *paths)
{
    json_t *devices = json_array();
    char *list = strdup(paths), *rest = list;
    bool read = true;

    for (const char *path; (path = strsep(&rest, ","));)
        read = add_file(devices, path) && read;
    free(list);
    if (read)
        return devices;
    json_decref(devices);
    return NULL;
}

struct table {
    bool markdown;
    size_t n, n_a_faster, n_b_faster; // rows with a ratio
    double sum_of_logs;
    size_t n_unmatched;
};

// +1: A is faster by more than the spread, -1: B is, 0: neither.
static int beyond_spread(const json_t *a, const json_t *b)
{
    const double a_min = wall(a, "min_s"), b_min = wall(b, "min_s");

    if (wall(a, "q3_s") < wall(b, "q1_s") && a_min < b_min)
        return 1;
    if (wall(b, "q3_s") < wall(a, "q1_s") && b_min < a_min)
        return -1;
    return 0;
}

static const char *milliseconds(const json_t *x, char words[32])
{
    if (x && is_ok(x))
        snprintf(words, 32, "%.4g", 1e3 * wall(x, "min_s"));
    else
        snprintf(words, 32, "%s", x ? text(x, "outcome") : "-");
    return words;
}

static void print_row(const struct table *t, const char *name, const char *a, const char *b,
                      const char *ratio, const char *note)
{
    printf(t->markdown ? "| %s | %s | %s | %s | %s |\n" : "%-64s %12s %12s %8s  %s\n", name, a, b,
           ratio, note);
}

// Either may be NULL, for a case that one side does not have.
static void compare_results(struct table *t, const json_t *a, const json_t *b)
{
    static const char *const notes[] = {"B faster", "", "A faster"};
    const char *variant = text(b ? b : a, "variant");
    char name[160], a_ms[32], b_ms[32], ratio[32] = "-";
    const char *note = !b ? "only in A" : !a ? "only in B" : "not compared";

    snprintf(name, sizeof name, "%s%s%s%s", text(a ? a : b, "case"), *variant ? " [" : "", variant,
             *variant ? "]" : "");
    if (a && b && is_ok(a) && is_ok(b)) {
        const double r = wall(b, "min_s") / wall(a, "min_s");
        const int faster = beyond_spread(a, b);

        ++t->n;
        t->n_a_faster += faster > 0;
        t->n_b_faster += faster < 0;
        t->sum_of_logs += log(r);
        snprintf(ratio, sizeof ratio, "%.3f", r);
        note = notes[faster + 1];
    } else {
        ++t->n_unmatched;
    }
    print_row(t, name, milliseconds(a, a_ms), milliseconds(b, b_ms), ratio, note);
}

// Compares A's `x` with all of B's results of its case: a baseline may have several variants.
// t NULL: nothing is printed.  False when there is none.
static bool compare_case(struct table *t, const json_t *x, const json_t *others)
{
    size_t i;
    json_t *other;
    bool found = false;

    json_array_foreach (others, i, other) {
        if (!same(x, other, "case"))
            continue;
        if (t)
            compare_results(t, x, other);
        found = true;
    }
    return found;
}

static void print_device(char name, const json_t *device)
{
    const char *platform = text(device, "platform"), *driver = text(device, "driver");
    const char *reason = text(device, "reason"), *setting;
    json_t *value;

    printf("%c: %s  %s%s%s%s%s", name, text(device, "device"), text(device, "name"),
           *platform ? ", " : "", platform, *driver ? ", driver " : "", driver);
    json_object_foreach (json_object_get(device, "settings"), setting, value) {
        if (json_is_string(value))
            printf(", %s=%s", setting, json_string_value(value));
    }
    printf("%s%s\n", *reason ? "; not run: " : "", reason);
}

static size_t compare_devices(const json_t *a, const json_t *b, bool markdown)
{
    const json_t *a_results = json_object_get(a, "results");
    const json_t *b_results = json_object_get(b, "results");
    struct table t = {.markdown = markdown};
    json_t *x;
    size_t i;

    printf("\n");
    print_device('A', a);
    print_device('B', b);
    printf("\n");
    print_row(&t, "case", "A, min ms", "B, min ms", "B / A", "");
    if (markdown)
        printf("|---|---:|---:|---:|---|\n");
    json_array_foreach (a_results, i, x) {
        if (!compare_case(&t, x, b_results))
            compare_results(&t, x, NULL);
    }
    json_array_foreach (b_results, i, x) {
        if (!compare_case(NULL, x, a_results))
            compare_results(&t, NULL, x);
    }
    if (t.n)
        printf("\ngeometric mean of %zu ratios: %.3f; beyond the spread: A faster %zu, B faster "
               "%zu\n",
               t.n, exp(t.sum_of_logs / (double)t.n), t.n_a_faster, t.n_b_faster);
    if (t.n_unmatched)
        printf("%s%zu not compared\n", t.n ? "" : "\n", t.n_unmatched);
    return t.n;
}

static size_t count_name(const json_t *devices, const json_t *x)
{
    json_t *device;
    size_t i, n = 0;

    json_array_foreach (devices, i, device) {
        n += same_name(device, x);
    }
    return n;
}

// The same device on both sides, though a driver more or less may have moved its number.
static bool is_match(const json_t *a, const json_t *x, const json_t *b, const json_t *y)
{
    return same_name(x, y) &&
           (same(x, y, "device") || (count_name(a, x) == 1 && count_name(b, x) == 1));
}

// Compares pairs of one device, or every pair; returns how many, and adds to the number of ratios.
static size_t compare_pairs(const json_t *a, const json_t *b, bool every, bool markdown, size_t *n)
{
    json_t *x, *y;
    size_t i, j, n_pairs = 0;

    json_array_foreach (a, i, x) {
        json_array_foreach (b, j, y) {
            if (!every && !is_match(a, x, b, y))
                continue;
            ++n_pairs;
            *n += compare_devices(x, y, markdown);
        }
    }
    return n_pairs;
}

static void print_missing(char name, const json_t *side, const json_t *other)
{
    json_t *x, *y;
    size_t i, j;

    json_array_foreach (side, i, x) {
        bool found = false;
        json_array_foreach (other, j, y) {
            found = found || is_match(side, x, other, y);
        }
        if (!found)
            printf("\nonly in %c: %s  %s\n", name, text(x, "device"), text(x, "name"));
    }
}

int compare_reports(const char *a, const char *b, bool markdown)
{
    json_t *a_devices = load(a), *b_devices = load(b);
    size_t n = 0;

    if (a_devices && b_devices) {
        if (compare_pairs(a_devices, b_devices, false, markdown, &n) > 0) {
            print_missing('A', a_devices, b_devices);
            print_missing('B', b_devices, a_devices);
        } else {
            compare_pairs(a_devices, b_devices, true, markdown, &n);
        }
        if (n == 0)
            fprintf(stderr, "attncl-bench: nothing could be compared\n");
    }
    json_decref(a_devices);
    json_decref(b_devices);
    return n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
