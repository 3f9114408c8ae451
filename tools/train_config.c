// SPDX-License-Identifier: MIT
//
// The configuration of attncl train: from a file or a model, and --set.

#include <stdlib.h>
#include <string.h>

#include "train.h"

enum { KEY_BYTES = 128 };

static json_t *load_file(const char *path)
{
    json_error_t error;
    FILE *file = fopen(path, "r");

    if (!file) {
        run_failed_with(path);
        return NULL;
    }
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (root && json_is_object(root))
        return root;
    if (root)
        tool_error("%s: not a JSON object", path);
    else
        tool_error("%s: no valid JSON: line %d: %s", path, error.line, error.text);
    json_decref(root);
    return NULL;
}

// Loads {"arch", "model"} from a model file.
static json_t *load_model_config(const char *path)
{
    attncl_safetensors *file = NULL;
    json_t *root = NULL;

    if (attncl_safetensors_open(path, &file) != ATTNCL_OK) {
        tool_failed();
        return NULL;
    }
    const char *arch = attncl_safetensors_metadata(file, "attncl.arch");
    const char *config = attncl_safetensors_metadata(file, "attncl.config");
    json_t *model = json_loads(config ? config : "{}", JSON_REJECT_DUPLICATES, NULL);
    if (arch && model)
        root = json_pack("{ss sO}", "arch", arch, "model", model);
    else
        tool_error("%s: has no attncl.arch and attncl.config in its metadata", path);
    json_decref(model);
    attncl_safetensors_close(file);
    return root;
}

// Finds the object that `path` names up to its last dot, creating missing ones; *key_ret: the rest.
static json_t *find_object(json_t *root, const char *path, const char **key_ret)
{
    json_t *object = root;

    for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        char key[KEY_BYTES];
        snprintf(key, sizeof key, "%.*s", (int)(dot - path), path);
        json_t *inner = json_object_get(object, key);
        if (!inner) {
            json_object_set_new(object, key, json_object());
            inner = json_object_get(object, key);
        }
        if (!json_is_object(inner)) {
            tool_error("--set: %s is not an object", key);
            return NULL;
        }
        object = inner;
    }
    *key_ret = path;
    return object;
}

// Applies "model.d_model=128"; a value that is not JSON is a string.
static int apply_set(json_t *root, const char *set)
{
    const char *equal = strchr(set, '='), *key = NULL;
    char path[KEY_BYTES];

    snprintf(path, sizeof path, "%.*s", (int)(equal - set), set);
    json_t *object = find_object(root, path, &key);
    if (!object)
        return TOOL_FAILED;
    json_t *value = json_loads(equal + 1, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (!value)
        value = json_string(equal + 1);
    if (!value || !*key || json_object_set_new(object, key, value) != 0)
        return tool_error("--set %s: is not of the form KEY=VALUE in UTF-8", set);
    return TOOL_OK;
}

char *train_config_text(const struct train_request *r, const char *path, const char *from)
{
    json_t *root = path ? load_file(path) : from ? load_model_config(from) : json_object();
    char *text = NULL;
    int status = root ? TOOL_OK : TOOL_FAILED;

    if (root && !json_object_get(root, "arch"))
        json_object_set_new(root, "arch", json_string("lm"));
    for (int i = 0; i < r->n_sets && status == TOOL_OK; i++)
        status = apply_set(root, r->set[i]);
    if (status == TOOL_OK && !path && !from && !json_object_get(root, "model"))
        status = tool_error("no configuration: give CONFIG.json, --init M, --set model.KEY=VALUE, "
                            "or --resume with a RUN that has a config.json");
    if (status == TOOL_OK) {
        text = json_dumps(root, JSON_COMPACT);
        if (!text)
            tool_error("out of memory");
    }
    json_decref(root);
    return text;
}

// -- comparing

// Whether a key may change when a training is resumed.
static bool may_change(const char *path)
{
    static const char *const keys[] = {"train.steps", "train.eval_every", "train.checkpoint_every",
                                       "train.keep",  "train.patience",   "train.sample"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(path, keys[i]) == 0)
            return true;
    return false;
}

static bool same_value(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

static int report_difference(const char *file, const char *path, const json_t *old,
                             const json_t *now)
{
    char *was = old ? json_dumps(old, JSON_ENCODE_ANY | JSON_COMPACT | JSON_DIGITS) : NULL;
    char *is = now ? json_dumps(now, JSON_ENCODE_ANY | JSON_COMPACT | JSON_DIGITS) : NULL;

    tool_error("%s: %s is %s there and %s now; --resume needs the same", file, path,
               was ? was : "not given", is ? is : "not given");
    free(was);
    free(is);
    return TOOL_FAILED;
}

static int compare_objects(const char *file, const char *prefix, json_t *old, json_t *now)
{
    json_t *all = json_copy(old), *value;
    const char *key;
    int status = all ? TOOL_OK : tool_error("out of memory");

    if (all)
        json_object_update(all, now); // the keys of both
    json_object_foreach (all, key, value) {
        char path[KEY_BYTES];
        json_t *a = json_object_get(old, key), *b = json_object_get(now, key);
        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (status == TOOL_OK && json_is_object(a) && json_is_object(b))
            status = compare_objects(file, path, a, b);
        else if (status == TOOL_OK && !may_change(path) && !(a && b && same_value(a, b)))
            status = report_difference(file, path, a, b);
    }
    json_decref(all);
    return status;
}

int train_config_compare(const char *path, const char *text)
{
    FILE *file = fopen(path, "r");

    if (!file)
        return TOOL_OK;
    fclose(file);
    json_t *old = load_file(path), *now = json_loads(text, 0, NULL);
    int status = old && now ? compare_objects(path, "", old, now) : TOOL_FAILED;
    json_decref(old);
    json_decref(now);
    return status;
}
