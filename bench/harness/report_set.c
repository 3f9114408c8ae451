// SPDX-License-Identifier: MIT

#include "harness/report_set.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "harness/json.h"

const char *report_set_text(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));

    return text ? text : "";
}

static bool same(const json_t *a, const json_t *b, const char *field)
{
    return strcmp(report_set_text(a, field), report_set_text(b, field)) == 0;
}

static bool same_name(const json_t *a, const json_t *b)
{
    return same(a, b, "kind") && same(a, b, "name") && same(a, b, "platform");
}

static bool same_device(const json_t *a, const json_t *b)
{
    return same(a, b, "device") && same_name(a, b);
}

// Runs of the same thing: a device with another driver or other settings is another one.
static bool same_setup(const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "settings"), *y = json_object_get(b, "settings");

    return same_device(a, b) && same(a, b, "driver") && (x == y || json_equal(x, y));
}

static size_t count_name(const json_t *devices, const json_t *x)
{
    json_t *device;
    size_t i, n = 0;

    json_array_foreach(devices, i, device)
    {
        n += same_name(device, x);
    }
    return n;
}

bool report_set_match(const json_t *a_devices, const json_t *a, const json_t *b_devices,
                      const json_t *b)
{
    const bool unique = count_name(a_devices, a) == 1 && count_name(b_devices, b) == 1;

    return unique ? same_name(a, b) : same_device(a, b);
}

bool report_set_is_ok(const json_t *result)
{
    return strcmp(report_set_text(result, "outcome"), "ok") == 0;
}

double report_set_wall(const json_t *result, const char *field)
{
    static const char *const fallback[] = {"median_s", "min_s"};
    const json_t *wall = json_object_get(result, "wall");
    const json_t *value = json_object_get(wall, field);

    for (size_t i = 0; i < 2 && !json_is_number(value); ++i)
        value = json_object_get(wall, fallback[i]);
    return json_number_value(value);
}

// Puts a run of a case among those of its device: in the place of a slower one of the same case.
static void add_result(json_t *results, json_t *x)
{
    size_t i;
    json_t *old;

    json_array_foreach(results, i, old)
    {
        if (!same(old, x, "case") || !same(old, x, "variant"))
            continue;
        if (report_set_is_ok(old) &&
            (!report_set_is_ok(x) || report_set_wall(x, "min_s") < report_set_wall(old, "min_s")))
            json_array_set(results, i, x);
        return;
    }
    json_array_append(results, x);
}

static void add_device(json_t *devices, json_t *x)
{
    size_t i;
    json_t *old = NULL, *result;

    json_array_foreach(devices, i, old)
    {
        if (same_setup(old, x))
            break;
    }
    if (i == json_array_size(devices)) {
        old = json_copy(x);
        json_object_set_new(old, "results", json_array());
        json_array_append_new(devices, old);
    }
    json_array_foreach(json_object_get(x, "results"), i, result)
    {
        add_result(json_object_get(old, "results"), result);
    }
}

static bool add_file(json_t *devices, const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    const json_t *schema = json_object_get(root, "schema");
    json_t *device;
    size_t i;

    if (!root) {
        fprintf(stderr, "attncl-bench: %s, line %d: %s\n", path, error.line, error.text);
        return false;
    }
    if (json_integer_value(schema) != JSON_SCHEMA) {
        fprintf(stderr, "attncl-bench: %s has schema %lld, this program reads %d\n", path,
                (long long)json_integer_value(schema), JSON_SCHEMA);
        json_decref(root);
        return false;
    }
    json_array_foreach(json_object_get(root, "devices"), i, device)
    {
        add_device(devices, device);
    }
    json_decref(root);
    return true;
}

json_t *report_set_load(const char *paths)
{
    json_t *devices = json_array();
    bool read = true;

    for (;;) {
        const size_t n = strcspn(paths, ",");
        struct strbuf path = STRBUF_EMPTY;

        attncl__strbuf_add(&path, "%.*s", (int)n, paths);
        read = !path.failed && add_file(devices, path.data) && read;
        attncl__strbuf_free(&path);
        if (!paths[n])
            break;
        paths += n + 1;
    }
    if (read)
        return devices;
    json_decref(devices);
    return NULL;
}
