// SPDX-License-Identifier: MIT
// Keys of configurations: what an architecture does not read is refused, what any of its layers
// reads is accepted.

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "attncl/safetensors.h"
#include "base/alloc.h"
#include "model/arch.h"
#include "support/test.h"

NO_DEVICE;

// What reading a configuration returns; the message is attncl_last_error().
static attncl_status configure(const struct arch_class *arch, const char *text)
{
    struct json *object = NULL;
    void *settings = attncl__alloc_zero(arch->settings_bytes);
    ck_assert_ptr_nonnull(settings);
    ck_ok(attncl__json_parse(text, strlen(text), JSON_CONFIG_LIMITS, &object));
    const attncl_status status = attncl__arch_configure(arch, object, settings);
    attncl__json_free(object);
    attncl__free(settings);
    return status;
}

// {"model": {"name": 1}}
static void write_config(const struct config_keys *keys, const struct config_key *key,
                         const char *name, char *text, size_t bytes)
{
    if (key->parent == CONFIG_NONE)
        snprintf(text, bytes, "{\"%s\": 1}", name);
    else
        snprintf(text, bytes, "{\"%s\": {\"%s\": 1}}", keys->list[key->parent].name, name);
}

static void misspell_key(const struct arch_class *arch, const struct config_keys *keys,
                         const struct config_key *key)
{
    char wrong[64], text[256], words[256];
    const char *object = key->parent == CONFIG_NONE ? "" : keys->list[key->parent].name;
    snprintf(wrong, sizeof wrong, "%sq", key->name);
    write_config(keys, key, wrong, text, sizeof text);
    snprintf(words, sizeof words, "%s%skey %s is not known, nearest: %s; keys: ", object,
             *object ? ": " : "", wrong, key->name);
    ck_fails(configure(arch, text), ATTNCL_ERR_FORMAT, words);
    ck_assert_ptr_null(strchr(attncl_last_error(), '\n'));

    write_config(keys, key, key->name, text, sizeof text);
    if (configure(arch, text) != ATTNCL_OK)
        ck_assert_ptr_null(strstr(attncl_last_error(), "is not known"));
}

TEST(every_key_of_every_architecture_misspelt_is_refused)
{
    static struct config_keys keys;
    const struct arch_class *arch;
    size_t n = 0;
    for (size_t i = 0; (arch = attncl__arch_at(i)) != NULL; ++i) {
        ck_ok(attncl__arch_keys(arch, &keys));
        ck_assert_uint_lt(keys.n, CONFIG_MAX_KEYS);
        for (size_t k = 0; k < keys.n; ++k, ++n)
            misspell_key(arch, &keys, &keys.list[k]);
        ck_fails(configure(arch, "{\"qqqq\": 1}"), ATTNCL_ERR_FORMAT,
                 "key qqqq is not known; keys: ");
    }
    ck_assert_uint_gt(n, 200);
}

static const struct config_key *find(const char *arch, struct config_keys *keys, const char *name)
{
    const struct arch_class *class;
    ck_ok(attncl__arch_find(arch, &class));
    ck_ok(attncl__arch_keys(class, keys));
    for (size_t i = 0; i < keys->n; ++i)
        if (strcmp(keys->list[i].name, name) == 0)
            return &keys->list[i];
    return NULL;
}

// Exploring finds every key that a golden file's configuration reads, also behind two choices at once.
TEST(all_keys_that_are_read_are_found_without_a_configuration)
{
    static struct config_keys keys;
    DIR *directory = opendir(ATTNCL_TEST_DATA);
    const struct dirent *entry;
    size_t n = 0;
    ck_assert_ptr_nonnull(directory);
    while ((entry = readdir(directory)) != NULL) {
        char path[sizeof ATTNCL_TEST_DATA + sizeof entry->d_name + 1];
        attncl_safetensors *file = NULL;
        struct json *object = NULL;
        const struct arch_class *arch;
        if (!strstr(entry->d_name, ".safetensors"))
            continue;
        snprintf(path, sizeof path, "%s/%s", ATTNCL_TEST_DATA, entry->d_name);
        ck_ok(attncl_safetensors_open(path, &file));
        const char *text = attncl_safetensors_metadata(file, "attncl.config");
        ck_ok(attncl__arch_find(attncl_safetensors_metadata(file, "attncl.arch"), &arch));
        ck_ok(attncl__json_parse(text, strlen(text), JSON_CONFIG_LIMITS, &object));
        ck_ok(attncl__arch_keys(arch, &keys));
        const size_t n_found = keys.n;
        struct config config = {.object = object, .keys = &keys, .parent = CONFIG_NONE};
        void *settings = attncl__alloc_zero(arch->settings_bytes);
        if (arch->configure)
            ck_ok(arch->configure(&config, settings));
        ck_assert_msg(keys.n == n_found, "%s: %s", entry->d_name, keys.list[n_found].name);
        attncl__free(settings);
        attncl__json_free(object);
        attncl_safetensors_close(file);
        ++n;
    }
    closedir(directory);
    ck_assert_uint_gt(n, 100);
}

TEST(keys_have_defaults_and_choices)
{
    static struct config_keys keys;
    const struct config_key *key = find("lm", &keys, "layer");
    ck_assert_int_eq(key->type, CONFIG_WORD);
    ck_assert_uint_eq(key->n_words, 8);
    ck_assert_str_eq(key->otherwise, "");

    key = find("lm", &keys, "max_len");
    ck_assert_int_eq(key->type, CONFIG_INT);
    ck_assert_str_eq(key->otherwise, "5000");
    ck_assert(!key->varies && !key->is_read && key->min == 1);

    key = find("lm", &keys, "score");
    ck_assert_str_eq(keys.list[key->cause].name, "layer");
    ck_assert(key->varies); // the layer says which

    key = find("multi_head_attention", &keys, "query_size");
    ck_assert(key->otherwise[0] && key->varies);

    key = find("encoder", &keys, "embed_scale"); // sqrt(d_model), read with n_vocab alone
    ck_assert(key->varies);
    key = find("encoder", &keys, "final_norm_eps"); // layer_norm_eps
    ck_assert(key->varies);

    key = find("optimizer_step", &keys, "betas");
    ck_assert_str_eq(key->otherwise, "[0.9, 0.999]");

    key = find("train", &keys, "model");
    ck_assert_int_eq(key->type, CONFIG_OBJECT);
    ck_assert_ptr_null(find("encoder", &keys, "P"));
    ck_assert_ptr_null(find("lm", &keys, "steps"));
}

// Another layer's key changes nothing; the key that is not known is named before the missing one.
TEST(keys_of_other_layers_are_accepted)
{
    const struct arch_class *arch;
    ck_ok(attncl__arch_find("transformer_layer", &arch));
    ck_ok(configure(arch, "{\"layer\": \"gmlp\", \"d_model\": 4, \"d_ffn\": 6, \"seq_len\": 8, "
                          "\"heads\": 3, \"local_window_size\": 2, \"d_ff\": 7}"));
    ck_fails(configure(arch, "{\"layer\": \"gmlp\", \"d_model\": 4, \"d_ffn\": 6, \"seq_len\": 8, "
                             "\"norm_first\": false}"),
             ATTNCL_ERR_FORMAT, "layer gmlp has its norm first");
    ck_fails(configure(arch, "{\"layer\": \"gmlp\", \"d_model\": 4, \"dffn\": 6, \"seq_len\": 8}"),
             ATTNCL_ERR_FORMAT, "key dffn is not known, nearest: d_ffn; keys: layer, ");
    ck_fails(configure(arch, "{\"layer\": \"gmpl\"}"), ATTNCL_ERR_FORMAT,
             "layer gmpl is not known, nearest: gmlp; choices: ");
}
