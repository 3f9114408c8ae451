// SPDX-License-Identifier: MIT
//
// Reading keys of a configuration: each typed read notes its key.

#include "model/config_note.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "base/try.h"

// -- integers, booleans, numbers

static attncl_status check_int(const char *key, int64_t min, int64_t value)
{
    REQUIRE(value >= min, ATTNCL_ERR_FORMAT, "%s is %" PRId64 ", must be at least %" PRId64, key,
            value, min);
    REQUIRE(value <= INT32_MAX, ATTNCL_ERR_FORMAT, "%s is %" PRId64 ", must be at most %d", key,
            value, INT32_MAX);
    return ATTNCL_OK;
}

attncl_status attncl__config_int(struct config *config, const char *key, int64_t min, int64_t *ret)
{
    attncl__config_note_number(config, key, CONFIG_INT, (double)min);
    if (!config->object) {
        *ret = min * config->keys->scale;
        return ATTNCL_OK;
    }
    TRY(attncl__json_int(config->object, key, NULL, ret));
    return check_int(key, min, *ret);
}

attncl_status attncl__config_count(struct config *config, const char *key, int64_t min, int64_t max,
                                   int64_t *ret)
{
    TRY(attncl__config_int(config, key, min, ret));
    REQUIRE(*ret <= max, ATTNCL_ERR_FORMAT, "%s is %" PRId64 ", must be at most %" PRId64, key,
            *ret, max);
    return ATTNCL_OK;
}

attncl_status attncl__config_int_or(struct config *config, const char *key, int64_t min,
                                    int64_t otherwise, int64_t *ret)
{
    char text[24];
    bool present = false;
    struct config_key *noted = attncl__config_note_number(config, key, CONFIG_INT, (double)min);
    snprintf(text, sizeof text, "%" PRId64, otherwise);
    attncl__config_note_default(noted, text);
    *ret = otherwise;
    if (!config->object) {
        if (attncl__config_variant(config, noted) != CONFIG_NONE)
            *ret = otherwise == min ? min + 1 : min;
        return ATTNCL_OK;
    }
    TRY(attncl__json_int(config->object, key, &present, ret));
    return present ? check_int(key, min, *ret) : ATTNCL_OK;
}

attncl_status attncl__config_bool_or(struct config *config, const char *key, bool otherwise,
                                     bool *ret)
{
    bool present = false;
    struct config_key *noted = attncl__config_note(config, key, CONFIG_BOOL);
    attncl__config_note_default(noted, otherwise ? "true" : "false");
    *ret = otherwise;
    if (!config->object) {
        *ret = otherwise != (attncl__config_variant(config, noted) != CONFIG_NONE);
        return ATTNCL_OK;
    }
    return attncl__json_bool(config->object, key, &present, ret);
}

attncl_status attncl__config_presence(struct config *config, const char *key,
                                      enum presence otherwise, enum presence *ret)
{
    static const char *const texts[] = {"false", "true", "if the file has it"};
    bool given = false, present = false;
    attncl__config_note_default(attncl__config_note(config, key, CONFIG_BOOL), texts[otherwise]);
    if (config->object)
        TRY(attncl__json_bool(config->object, key, &given, &present));
    *ret = !given ? otherwise : present ? PRESENT_ALWAYS : PRESENT_NEVER;
    return ATTNCL_OK;
}

static attncl_status check_number(const char *key, double min, double value)
{
    REQUIRE(value >= min, ATTNCL_ERR_FORMAT, "%s is %g, must be at least %g", key, value, min);
    return ATTNCL_OK;
}

attncl_status attncl__config_number(struct config *config, const char *key, double min, double *ret)
{
    attncl__config_note_number(config, key, CONFIG_NUMBER, min);
    if (!config->object) {
        *ret = isfinite(min) ? min : 1;
        return ATTNCL_OK;
    }
    TRY(attncl__json_double(config->object, key, NULL, ret));
    return check_number(key, min, *ret);
}

attncl_status attncl__config_number_or(struct config *config, const char *key, double min,
                                       double otherwise, double *ret)
{
    char text[24];
    bool present = false;
    struct config_key *noted = attncl__config_note_number(config, key, CONFIG_NUMBER, min);
    snprintf(text, sizeof text, "%g", otherwise);
    attncl__config_note_default(noted, text);
    noted->number = otherwise;
    *ret = otherwise;
    if (!config->object) {
        *ret *= (double)config->keys->scale; // a default that follows this number varies
        return ATTNCL_OK;
    }
    TRY(attncl__json_double(config->object, key, &present, ret));
    return present ? check_number(key, min, *ret) : ATTNCL_OK;
}

// -- arrays and objects

attncl_status attncl__config_ints(struct config *config, const char *key, int64_t min,
                                  size_t capacity, int64_t *ret, size_t *n)
{
    attncl__config_note_number(config, key, CONFIG_INTS, (double)min);
    if (!config->object) {
        ret[0] = min * config->keys->scale;
        *n = 1;
        return ATTNCL_OK;
    }
    TRY(attncl__json_ints(config->object, key, NULL, capacity, ret, n));
    REQUIRE(*n >= 1, ATTNCL_ERR_FORMAT, "%s is empty", key);
    for (size_t i = 0; i < *n; ++i)
        REQUIRE(ret[i] >= min && ret[i] <= INT32_MAX, ATTNCL_ERR_FORMAT,
                "%s holds %" PRId64 ", expected %" PRId64 " to %d", key, ret[i], min, INT32_MAX);
    return ATTNCL_OK;
}

attncl_status attncl__config_numbers_or(struct config *config, const char *key, size_t n,
                                        double *ret)
{
    char text[40] = "[";
    bool present = false;
    size_t used = 1;
    for (size_t i = 0; i < n && used < sizeof text; ++i)
        used += (size_t)snprintf(text + used, sizeof text - used, "%g%s", ret[i],
                                 i + 1 < n ? ", " : "]");
    attncl__config_note_default(attncl__config_note(config, key, CONFIG_NUMBERS), text);
    return config->object ? attncl__json_doubles(config->object, key, &present, n, ret) : ATTNCL_OK;
}

attncl_status attncl__config_object(struct config *config, const char *key, struct config *ret)
{
    const struct config_key *noted = attncl__config_note(config, key, CONFIG_OBJECT);
    *ret = *config;
    ret->parent = (int)(noted - config->keys->list);
    return config->object ? attncl__json_object(config->object, key, NULL, &ret->object)
                          : ATTNCL_OK;
}

// -- words

// The key's word: the configuration's, or this run's.
static attncl_status read_word(struct config *config, const struct config_key *key,
                               const char *first, const char *otherwise, const char **ret)
{
    bool present = false;
    *ret = otherwise ? otherwise : first;
    if (config->object)
        return attncl__json_text(config->object, key->name, otherwise ? &present : NULL, ret);
    const int variant = attncl__config_variant(config, key);
    if (variant != CONFIG_NONE)
        *ret = key->words[variant];
    return ATTNCL_OK;
}

static attncl_status choose(struct config *config, const char *key, const struct choice *choices,
                            size_t n, const char *otherwise,
                            int (*compare)(const char *, const char *), int *ret)
{
    const char *word;
    struct config_key *noted = attncl__config_note(config, key, CONFIG_WORD);
    for (size_t i = 0; i < n; ++i)
        attncl__config_note_word(noted, choices[i].word);
    if (otherwise)
        attncl__config_note_default(noted, otherwise);
    TRY(read_word(config, noted, choices[0].word, otherwise, &word));
    for (size_t i = 0; i < n; ++i) {
        if (compare(choices[i].word, word) == 0) {
            *ret = choices[i].value;
            return ATTNCL_OK;
        }
    }
    struct suggestion s = {.word = word};
    for (size_t i = 0; i < noted->n_words; ++i)
        attncl__suggestion_add(&s, noted->words[i]);
    return FAIL(ATTNCL_ERR_FORMAT, "%s %.100s is not known%s", key, word,
                attncl__suggestion_text(&s, "choices"));
}

attncl_status attncl__config_choice(struct config *config, const char *key,
                                    const struct choice *choices, size_t n, const char *otherwise,
                                    int *ret)
{
    return choose(config, key, choices, n, otherwise, strcmp, ret);
}

bool attncl__config_is(struct config *config, const char *key, const char *word)
{
    struct config_key *noted = attncl__config_note(config, key, CONFIG_WORD);
    const char *given = "";
    attncl__config_note_word(noted, word);
    if (config->object) {
        bool present;
        return attncl__json_text(config->object, key, &present, &given) == ATTNCL_OK &&
               strcmp(given, word) == 0;
    }
    const int variant = attncl__config_variant(config, noted);
    return variant != CONFIG_NONE && strcmp(noted->words[variant], word) == 0;
}

attncl_status attncl__config_activation(struct config *config, const char *key,
                                        const char *otherwise, attncl_activation *ret)
{
    static const struct choice kinds[] = {
        {"identity", ATTNCL_IDENTITY},   {"gelu", ATTNCL_GELU}, {"relu", ATTNCL_RELU},
        {"sigmoid", ATTNCL_SIGMOID},     {"tanh", ATTNCL_TANH}, {"silu", ATTNCL_SILU},
        {"gelu_tanh", ATTNCL_GELU_TANH},
    };
    int kind;
    // A class and its function differ in case only.
    TRY(choose(config, key, kinds, N_CHOICES(kinds), otherwise, strcasecmp, &kind));
    *ret = (attncl_activation)kind;
    return ATTNCL_OK;
}
