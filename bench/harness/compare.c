// SPDX-License-Identifier: MIT
//
// A ratio is B's least time over A's.  Two runs of one program differ by chance too: a difference
// counts only where the quartiles of the two sides do not overlap, and is marked.

#include "harness/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report_set.h"

struct table {
    bool markdown;
    size_t n, n_a_faster, n_b_faster; // rows with a ratio
    double sum_of_logs;
    size_t n_unmatched;
};

// +1: A is faster by more than the spread, -1: B is, 0: neither.
static int beyond_spread(const json_t *a, const json_t *b)
{
    const double a_min = report_set_wall(a, "min_s"), b_min = report_set_wall(b, "min_s");

    if (report_set_wall(a, "q3_s") < report_set_wall(b, "q1_s") && a_min < b_min)
        return 1;
    if (report_set_wall(b, "q3_s") < report_set_wall(a, "q1_s") && b_min < a_min)
        return -1;
    return 0;
}

static const char *milliseconds(const json_t *x, char text[32])
{
    if (x && report_set_is_ok(x))
        snprintf(text, 32, "%.4g", 1e3 * report_set_wall(x, "min_s"));
    else
        snprintf(text, 32, "%s", x ? report_set_text(x, "outcome") : "-");
    return text;
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
    const char *variant = report_set_text(b ? b : a, "variant");
    char name[160], a_ms[32], b_ms[32], ratio[32] = "-";
    const char *note = a ? "only in A" : "only in B";

    snprintf(name, sizeof name, "%s%s%s%s", report_set_text(a ? a : b, "case"),
             *variant ? " [" : "", variant, *variant ? "]" : "");
    if (a && b && report_set_is_ok(a) && report_set_is_ok(b)) {
        const double r = report_set_wall(b, "min_s") / report_set_wall(a, "min_s");
        const int faster = beyond_spread(a, b);

        ++t->n;
        t->n_a_faster += faster > 0;
        t->n_b_faster += faster < 0;
        t->sum_of_logs += log(r);
        snprintf(ratio, sizeof ratio, "%.3f", r);
        note = notes[faster + 1];
    } else {
        ++t->n_unmatched;
        if (a && b)
            note = "not compared";
    }
    print_row(t, name, milliseconds(a, a_ms), milliseconds(b, b_ms), ratio, note);
}

// Compares `x` of one side with all of the other side's runs of its case (a baseline may have
// several variants); false when there is none.
static bool compare_with_all(struct table *t, const json_t *x, const json_t *others)
{
    size_t i;
    json_t *other;
    bool found = false;

    json_array_foreach(others, i, other)
    {
        if (strcmp(report_set_text(x, "case"), report_set_text(other, "case")) != 0)
            continue;
        compare_results(t, x, other);
        found = true;
    }
    return found;
}

static bool has_case(const json_t *results, const json_t *x)
{
    size_t i;
    json_t *other;

    json_array_foreach(results, i, other)
    {
        if (strcmp(report_set_text(x, "case"), report_set_text(other, "case")) == 0)
            return true;
    }
    return false;
}

static void print_side(char name, const json_t *device)
{
    const char *platform = report_set_text(device, "platform"),
               *driver = report_set_text(device, "driver");
    const char *reason = report_set_text(device, "reason"), *setting;
    json_t *value;

    printf("%c: %s  %s%s%s%s%s", name, report_set_text(device, "device"),
           report_set_text(device, "name"), *platform ? ", " : "", platform,
           *driver ? ", driver " : "", driver);
    json_object_foreach(json_object_get(device, "settings"), setting, value)
    {
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
    print_side('A', a);
    print_side('B', b);
    printf("\n");
    print_row(&t, "case", "A, min ms", "B, min ms", "B / A", "");
    if (markdown)
        printf("|---|---:|---:|---:|---|\n");
    json_array_foreach(a_results, i, x)
    {
        if (!compare_with_all(&t, x, b_results))
            compare_results(&t, x, NULL);
    }
    json_array_foreach(b_results, i, x)
    {
        if (!has_case(a_results, x))
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

// Pairs of the same device; 0 when the sides have no device in common.
static size_t compare_same_devices(const json_t *a, const json_t *b, bool markdown, bool *any_ret)
{
    json_t *x, *y;
    size_t i, j, n = 0;

    *any_ret = false;
    json_array_foreach(a, i, x)
    {
        json_array_foreach(b, j, y)
        {
            if (report_set_match(a, x, b, y)) {
                n += compare_devices(x, y, markdown);
                *any_ret = true;
            }
        }
    }
    return n;
}

// Names what has no counterpart.
static void print_missing(char name, const json_t *side, const json_t *other)
{
    json_t *x, *y;
    size_t i, j;

    json_array_foreach(side, i, x)
    {
        bool found = false;
        json_array_foreach(other, j, y)
        {
            found = found || report_set_match(side, x, other, y);
        }
        if (!found)
            printf("\nonly in %c: %s  %s\n", name, report_set_text(x, "device"),
                   report_set_text(x, "name"));
    }
}

static size_t compare_all_devices(const json_t *a, const json_t *b, bool markdown)
{
    json_t *x, *y;
    size_t i, j, n = 0;

    json_array_foreach(a, i, x)
    {
        json_array_foreach(b, j, y)
        {
            n += compare_devices(x, y, markdown);
        }
    }
    return n;
}

int compare_reports(const char *a, const char *b, bool markdown)
{
    json_t *a_devices = report_set_load(a), *b_devices = report_set_load(b);
    bool same_devices = false;
    size_t n = 0;

    if (a_devices && b_devices) {
        n = compare_same_devices(a_devices, b_devices, markdown, &same_devices);
        if (same_devices) {
            print_missing('A', a_devices, b_devices);
            print_missing('B', b_devices, a_devices);
        } else {
            n = compare_all_devices(a_devices, b_devices, markdown);
        }
        if (n == 0)
            fprintf(stderr, "attncl-bench: nothing could be compared\n");
    }
    json_decref(a_devices);
    json_decref(b_devices);
    return n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
