// SPDX-License-Identifier: MIT
//
// Reading, checking and completing configurations by tables of keys.

#include "model/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/strbuf.h"
#include "base/suggest.h"

// -- values in the settings

static void store_number(const struct key *key, double number, void *value)
{
    if (key->type == KEY_INT)
        *(int64_t *)value = (int64_t)number;
    else if (key->type == KEY_NUMBER)
        *(double *)value = number;
    else if (key->type == KEY_BOOL)
        *(bool *)value = number != 0;
    else
        *(int *)value = (int)number; // an enumeration
}

static double load_number(const struct key *key, const void *value)
{
    return key->type == KEY_INT     ? (double)*(const int64_t *)value
           : key->type == KEY_PAIRS ? (double)((const struct json_pairs *)value)->list[0][1]
           : key->type == KEY_NUMBER || key->type == KEY_NUMBERS ? *(const double *)value
           : key->type == KEY_BOOL                               ? *(const bool *)value
                                                                 : *(const int *)value;
}

const char *attncl__key_text(const struct key *key, double number, char text[KEY_TEXT_BYTES])
{
    static const char *const presences[] = {"false", "true", "if the file has it"};
    const struct choice *choice = key->choices;
    switch (key->type) {
    case KEY_WORD:
        while (choice->word && choice->value != (int)number)
            ++choice;
        return choice->word ? choice->word : "";
    case KEY_BOOL:
    case KEY_PRESENCE:
        return presences[(int)number];
    case KEY_FLAGS:
        return "[1]";
    case KEY_NUMBERS:
        snprintf(text, KEY_TEXT_BYTES, "[%g, %g]", key->numbers[0], key->numbers[1]);
        return text;
    default:
        snprintf(text, KEY_TEXT_BYTES, key->type == KEY_NUMBER ? "%g" : "%.0f", number);
        return text;
    }
}

// -- which keys apply

// An object, its table of keys, and the settings being filled; without settings every key applies.
struct reader {
    const struct key *table;
    const struct json *object;
    const char *settings;
};

static bool key_applies(const struct reader *r, const struct key *key)
{
    return !key->when.key || !r->settings ||
           attncl__config_holds(r->table, r->settings, &key->when);
}

// The first applicable key with the name, and the address of its value in the settings.
static const struct key *find_key(const struct reader *r, const struct key *table,
                                  const char *settings, const char *name, const char **value_ret)
{
    for (const struct key *key = table; key->type; ++key) {
        const char *value = settings ? settings + key->at : NULL;
        const struct key *found = NULL;
        if (key->name && strcmp(key->name, name) == 0 && key_applies(r, key))
            found = key, *value_ret = value;
        else if (key->type == KEY_TABLE && key_applies(r, key))
            found = find_key(r, key->inner, value, name, value_ret);
        if (found)
            return found;
    }
    return NULL;
}

bool attncl__condition_holds(const struct condition *when, const char *word)
{
    for (size_t i = 0; i < CONDITION_MAX_WORDS && when->words[i]; ++i)
        if (strcmp(when->words[i], word) == 0)
            return !when->is_not;
    return when->is_not;
}

bool attncl__config_holds(const struct key *table, const void *settings,
                          const struct condition *when)
{
    char text[KEY_TEXT_BYTES];
    const struct key *key;
    const void *value = attncl__config_value(table, settings, when->key, &key);
    return value &&
           attncl__condition_holds(when, attncl__key_text(key, load_number(key, value), text));
}

const void *attncl__config_value(const struct key *table, const void *settings, const char *name,
                                 const struct key **key_ret)
{
    const struct reader r = {table, NULL, settings};
    const char *value, *dot = strchr(name, '.');
    char object[32];
    *key_ret = dot ? NULL : find_key(&r, table, settings, name, &value);
    if (!dot)
        return *key_ret ? value : NULL;
    snprintf(object, sizeof object, "%.*s", (int)(dot - name), name);
    const struct key *outer = find_key(&r, table, settings, object, &value);
    return outer ? attncl__config_value(outer->inner, value, dot + 1, key_ret) : NULL;
}

// -- reading

static attncl_status check_int(const struct key *key, int64_t value)
{
    const int64_t min = (int64_t)key->min, max = key->max > 0 ? (int64_t)key->max : INT32_MAX;
    REQUIRE(value >= min, ATTNCL_ERR_FORMAT, "%s is %" PRId64 ", must be at least %" PRId64,
            key->name, value, min);
    REQUIRE(value <= max, ATTNCL_ERR_FORMAT, "%s is %" PRId64 ", must be at most %" PRId64,
            key->name, value, max);
    REQUIRE(key->parity == PARITY_ANY || (value % 2 != 0) == (key->parity == PARITY_ODD),
            ATTNCL_ERR_FORMAT, "%s is %" PRId64 ", expected an %s number", key->name, value,
            key->parity == PARITY_ODD ? "odd" : "even");
    return ATTNCL_OK;
}

static attncl_status check_number(const struct key *key, double value)
{
    const double top = key->max > 0 ? key->max : FLT_MAX;
    REQUIRE(value >= key->min, ATTNCL_ERR_FORMAT, "%s is %g, must be at least %g", key->name, value,
            key->min);
    REQUIRE(value <= top, ATTNCL_ERR_FORMAT, "%s is %g, must be at most %g", key->name, value, top);
    REQUIRE(key->below == 0 || value < key->below, ATTNCL_ERR_FORMAT,
            "%s is %g, must be less than %g", key->name, value, key->below);
    return ATTNCL_OK;
}

static attncl_status read_ints(const struct key *key, const struct json *object,
                               struct int_list *ints)
{
    TRY(attncl__json_ints(object, key->name, NULL, ATTNCL_MAX_RANK, ints->list, &ints->n));
    REQUIRE(ints->n >= 1, ATTNCL_ERR_FORMAT, "%s is empty", key->name);
    for (size_t i = 0; i < ints->n; ++i)
        REQUIRE(ints->list[i] >= (int64_t)key->min && ints->list[i] <= INT32_MAX, ATTNCL_ERR_FORMAT,
                "%s holds %" PRId64 ", expected %" PRId64 " to %d", key->name, ints->list[i],
                (int64_t)key->min, INT32_MAX);
    return ATTNCL_OK;
}

static attncl_status read_choice(const struct key *key, const char *word, int *value)
{
    struct suggestion s = {.word = word};
    for (const struct choice *choice = key->choices; choice->word; ++choice) {
        if ((key->any_case ? strcasecmp : strcmp)(choice->word, word) == 0) {
            *value = choice->value;
            return ATTNCL_OK;
        }
        attncl__suggestion_add(&s, choice->word);
    }
    return FAIL(ATTNCL_ERR_FORMAT, "%s %.100s is not known%s", key->name, word,
                attncl__suggestion_text(&s, "choices"));
}

static attncl_status read_object(const struct key *key, const struct json *object, void *settings)
{
    const struct json *inner;
    TRY(attncl__json_object(object, key->name, NULL, &inner));
    return attncl__prefix_failure(attncl__config_read(key->inner, inner, settings), "%s",
                                  key->name);
}

// `value` holds the default and keeps it if the key is absent, which is an error if `present` is NULL.
static attncl_status read_value(const struct key *key, const struct json *object, bool *present,
                                void *value)
{
    const char *word = key->word;
    bool is_there = false;
    switch (key->type) {
    case KEY_INT:
        TRY(attncl__json_int(object, key->name, present, value));
        return present && !*present ? ATTNCL_OK : check_int(key, *(int64_t *)value);
    case KEY_NUMBER:
        TRY(attncl__json_double(object, key->name, present, value));
        return present && !*present ? ATTNCL_OK : check_number(key, *(double *)value);
    case KEY_BOOL:
        return attncl__json_bool(object, key->name, present, value);
    case KEY_PRESENCE:
        TRY(attncl__json_bool(object, key->name, present, &is_there));
        if (*present)
            store_number(key, is_there ? PRESENT_ALWAYS : PRESENT_NEVER, value);
        return ATTNCL_OK;
    case KEY_WORD:
        TRY(attncl__json_text(object, key->name, present, &word));
        return word ? read_choice(key, word, value) : ATTNCL_OK;
    case KEY_INTS:
        return read_ints(key, object, value);
    case KEY_FLAGS:
        return attncl__json_flags(object, key->name, present, value);
    case KEY_PAIRS:
        return attncl__json_pairs(object, key->name, present, value);
    case KEY_LIST:
        return attncl__json_numbers(object, key->name, present, value);
    case KEY_NUMBERS:
        return attncl__json_doubles(object, key->name, present, 2, value);
    default:
        return read_object(key, object, value);
    }
}

static double get_default(const struct reader *r, const struct key *key, const char *settings)
{
    const struct key *other = key;
    const void *value =
        key->same_as ? attncl__config_value(r->table, r->settings, key->same_as, &other) : NULL;
    return value ? load_number(other, value) : key->derive ? key->derive(settings) : key->otherwise;
}

static attncl_status read_key(const struct reader *r, const struct key *key, char *settings)
{
    bool present = false;
    void *value = settings + key->at;
    if (key->only_given && !attncl__json_has(r->object, key->name))
        return ATTNCL_OK;
    if (key->type == KEY_NUMBERS)
        memcpy(value, key->numbers, sizeof key->numbers);
    else if (!key->name || (key->optional && !key->is_preset && key->type != KEY_FLAGS))
        store_number(key, get_default(r, key, settings), value);
    return key->name ? read_value(key, r->object, key->optional ? &present : NULL, value)
                     : ATTNCL_OK;
}

static attncl_status read_table(const struct reader *r, const struct key *table, char *settings)
{
    for (const struct key *key = table; key->type; ++key) {
        if (!key_applies(r, key))
            continue;
        if (key->type == KEY_TABLE)
            TRY(read_table(r, key->inner, settings + key->at));
        else if (key->type == KEY_CHECK)
            TRY(key->check(settings));
        else
            TRY(read_key(r, key, settings));
    }
    return ATTNCL_OK;
}

attncl_status attncl__config_read(const struct key *table, const struct json *object,
                                  void *settings)
{
    const struct reader reader = {table, object, settings};
    return read_table(&reader, table, settings);
}

// -- unknown keys

static void suggest_keys(const struct reader *r, const struct key *table, struct suggestion *s)
{
    const char *value;
    for (const struct key *key = table; key->type; ++key) {
        if (key->type == KEY_TABLE && key_applies(r, key))
            suggest_keys(r, key->inner, s);
        else if (key->name && find_key(r, r->table, r->settings, key->name, &value) == key)
            attncl__suggestion_add(s, key->name);
    }
}

attncl_status attncl__config_check_keys(const struct key *table, const struct json *object,
                                        const void *settings)
{
    const struct reader r = {table, object, settings};
    for (const char *name = NULL; (name = attncl__json_next(object, name)) != NULL;) {
        const char *value;
        const struct json *inner;
        bool present;
        const struct key *key = find_key(&r, table, settings, name, &value);
        if (!key) {
            struct suggestion s = {.word = name};
            suggest_keys(&r, table, &s);
            return FAIL(ATTNCL_ERR_FORMAT, "key %.100s is not known%s", name,
                        attncl__suggestion_text(&s, "keys"));
        }
        if (key->type != KEY_OBJECT ||
            attncl__json_object(object, name, &present, &inner) != ATTNCL_OK)
            continue; // reading refuses a value of another type
        TRY(attncl__prefix_failure(attncl__config_check_keys(key->inner, inner, value), "%s",
                                   name));
    }
    return ATTNCL_OK;
}

// -- defaults

static attncl_status write_value(const struct key *key, double number, struct json *object)
{
    char text[KEY_TEXT_BYTES];
    struct strbuf json = STRBUF_EMPTY;
    if (key->type == KEY_NUMBER)
        return attncl__json_set_number(object, key->name, number);
    if (key->type == KEY_PRESENCE && number == PRESENT_IF_IN_FILE)
        return ATTNCL_OK;
    const char *value = key->word ? key->word : attncl__key_text(key, number, text);
    if (key->type == KEY_WORD)
        attncl__strbuf_add_quoted(&json, value);
    else
        attncl__strbuf_add(&json, "%s", value);
    const attncl_status status = json.failed
                                     ? FAIL(ATTNCL_ERR_NO_MEMORY, "default of %s", key->name)
                                     : attncl__json_set(object, key->name, json.data);
    attncl__strbuf_free(&json);
    return status;
}

static attncl_status fill_defaults(const struct reader *r, const struct key *table,
                                   const char *settings, struct json *object)
{
    for (const struct key *key = table; key->type; ++key) {
        if (!key_applies(r, key))
            continue;
        if (key->type == KEY_TABLE) {
            TRY(fill_defaults(r, key->inner, settings + key->at, object));
        } else if (key->type == KEY_OBJECT) {
            struct json *inner;
            TRY(attncl__json_inner(object, key->name, &inner));
            TRY(attncl__config_fill(key->inner, inner, settings + key->at));
        } else if (key->name && key->optional && !attncl__json_has(object, key->name)) {
            TRY(write_value(key, load_number(key, settings + key->at), object));
        }
    }
    return ATTNCL_OK;
}

attncl_status attncl__config_fill(const struct key *table, struct json *object,
                                  const void *settings)
{
    const struct reader reader = {table, object, settings};
    return fill_defaults(&reader, table, settings, object);
}
