// SPDX-License-Identifier: MIT
// Keys of configurations: what an architecture does not read is refused, what any of its layers
// reads is accepted.

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/model.h"
#include "support/test.h"

NO_DEVICE;

// What reading a configuration returns; the message is attncl_last_error().
static const struct arch_class *arch_at(size_t i)
{
    const struct arch_class *arch = NULL;
    if (attncl_arch_name(i))
        ck_ok(attncl__arch_find(attncl_arch_name(i), &arch));
    return arch;
}

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
static void write_config(const struct config_row *row, const char *name, char *text, size_t bytes)
{
    snprintf(text, bytes, row->object ? "{\"%s\": {\"%s\": 1}}" : "{%s\"%s\": 1}",
             row->object ? row->object : "", name);
}

static void misspell_key(const struct arch_class *arch, const struct config_row *row)
{
    char wrong[64], text[256], words[256];
    const char *object = row->object ? row->object : "", *name = row->key->name;
    snprintf(wrong, sizeof wrong, "%sq", name);
    write_config(row, wrong, text, sizeof text);
    snprintf(words, sizeof words, "%s%skey %s is not known, nearest: %s; keys: ", object,
             *object ? ": " : "", wrong, name);
    ck_fails(configure(arch, text), ATTNCL_ERR_FORMAT, words);
    ck_assert_ptr_null(strchr(attncl_last_error(), '\n'));

    write_config(row, name, text, sizeof text);
    if (configure(arch, text) != ATTNCL_OK)
        ck_assert_ptr_null(strstr(attncl_last_error(), "is not known"));
}

TEST(every_key_of_every_architecture_misspelt_is_refused)
{
    static struct config_row rows[CONFIG_MAX_ROWS];
    const struct arch_class *arch;
    size_t n_keys = 0;
    for (size_t i = 0; (arch = arch_at(i)) != NULL; ++i) {
        const size_t n = arch->keys ? attncl__config_rows(arch->keys, rows) : 0;
        for (size_t k = 0; k < n; ++k, ++n_keys)
            misspell_key(arch, &rows[k]);
        ck_fails(configure(arch, "{\"qqqq\": 1}"), ATTNCL_ERR_FORMAT,
                 "key qqqq is not known; keys: ");
    }
    ck_assert_uint_gt(n_keys, 200);
}

// A condition names a key above it that is always there: a word, a boolean or an integer.
TEST(conditions_name_keys_above_them)
{
    static struct config_row rows[CONFIG_MAX_ROWS];
    const struct arch_class *arch;
    for (size_t i = 0; (arch = arch_at(i)) != NULL; ++i) {
        const size_t n = arch->keys ? attncl__config_rows(arch->keys, rows) : 0;
        for (size_t k = 0; k < n; ++k) {
            for (int c = 0; c < rows[k].n_when; ++c) {
                size_t cause = 0;
                while (cause < k && (rows[cause].object != rows[k].object ||
                                     strcmp(rows[cause].key->name, rows[k].when[c]->key) != 0))
                    ++cause;
                ck_assert_msg(cause < k, "%s: %s", attncl_arch_name(i), rows[k].key->name);
            }
        }
    }
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

// Heads of a width of their own need not cut the model's, whatever that width is.
TEST(a_head_dim_cuts_nothing)
{
    const struct arch_class *arch;
    ck_ok(attncl__arch_find("mha", &arch));
    ck_ok(configure(arch, "{\"d_model\": 22, \"heads\": 4, \"head_dim\": 5}"));
    ck_ok(configure(arch, "{\"d_model\": 3, \"heads\": 4, \"head_dim\": 5}"));
    ck_fails(configure(arch, "{\"d_model\": 3, \"heads\": 4}"), ATTNCL_ERR_FORMAT,
             "d_model = 3 cannot be cut into heads = 4");
}
