// SPDX-License-Identifier: MIT
//
// Keys of a configuration.

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/try.h"
#include "model/config.h"

static attncl_status check_int(const char *key, int64_t min, int64_t value)
{
    REQUIRE(value >= min, ATTNCL_ERR_FORMAT, "%s is %" PRId64 ", must be at least %" PRId64, key,
            value, min);
    REQUIRE(value <= INT32_MAX, ATTNCL_ERR_FORMAT, "%s is %" PRId64 ", must be at most %d", key,
            value, INT32_MAX);
    return ATTNCL_OK;
}

attncl_status attncl__config_int(const struct json *config, const char *key, int64_t min,
                                 int64_t *ret)
{
    TRY(attncl__json_int(config, key, NULL, ret));
    return check_int(key, min, *ret);
}

attncl_status attncl__config_int_or(const struct json *config, const char *key, int64_t min,
                                    int64_t otherwise, int64_t *ret)
{
    bool present = false;
    *ret = otherwise;
    TRY(attncl__json_int(config, key, &present, ret));
    return present ? check_int(key, min, *ret) : ATTNCL_OK;
}

attncl_status attncl__config_bool_or(const struct json *config, const char *key, bool otherwise,
                                     bool *ret)
{
    bool present = false;
    *ret = otherwise;
    return attncl__json_bool(config, key, &present, ret);
}

static attncl_status check_number(const char *key, double min, double value)
{
    REQUIRE(value >= min, ATTNCL_ERR_FORMAT, "%s is %g, must be at least %g", key, value, min);
    return ATTNCL_OK;
}

attncl_status attncl__config_number(const struct json *config, const char *key, double min,
                                    double *ret)
{
    TRY(attncl__json_double(config, key, NULL, ret));
    return check_number(key, min, *ret);
}

attncl_status attncl__config_number_or(const struct json *config, const char *key, double min,
                                       double otherwise, double *ret)
{
    bool present = false;
    *ret = otherwise;
    TRY(attncl__json_double(config, key, &present, ret));
    return present ? check_number(key, min, *ret) : ATTNCL_OK;
}

attncl_status attncl__config_choice(const struct json *config, const char *key,
                                    const struct choice *choices, size_t n, const char *otherwise,
                                    int *ret)
{
    const char *word = otherwise;
    bool present = false;
    TRY(attncl__json_text(config, key, otherwise ? &present : NULL, &word));
    for (size_t i = 0; i < n; ++i) {
        if (strcmp(choices[i].word, word) != 0)
            continue;
        *ret = choices[i].value;
        return ATTNCL_OK;
    }
    return FAIL(ATTNCL_ERR_FORMAT, "%s %.100s is not known", key, word);
}

attncl_status attncl__config_activation(const struct json *config, const char *key,
                                        const char *otherwise, attncl_activation *ret)
{
    static const struct choice kinds[] = {
        {"identity", ATTNCL_IDENTITY}, {"gelu", ATTNCL_GELU}, {"relu", ATTNCL_RELU},
        {"sigmoid", ATTNCL_SIGMOID},   {"tanh", ATTNCL_TANH}, {"silu", ATTNCL_SILU},
    };
    const char *word = otherwise;
    bool present = false;
    TRY(attncl__json_text(config, key, otherwise ? &present : NULL, &word));
    for (size_t i = 0; i < N_CHOICES(kinds); ++i) {
        if (strcasecmp(kinds[i].word, word) == 0) { // a class and its function differ in case only
            *ret = (attncl_activation)kinds[i].value;
            return ATTNCL_OK;
        }
    }
    return FAIL(ATTNCL_ERR_FORMAT, "%s %.100s is not known", key, word);
}
