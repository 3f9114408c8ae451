// SPDX-License-Identifier: MIT
//
// Environment variables: the only getenv.

#define _GNU_SOURCE // secure_getenv
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/suggest.h"
#include "base/try.h"

// Values that are not words of a list.  The text appears in the error message.
#define DIRECTORY     "an existing directory"
#define NEW_DIRECTORY "a directory"
#define TUNING_FILE   "off or a file"
#define SECONDS       "whole seconds up to 999999999"

static const struct {
    const char *name, *values;
} table[N_ENV] = {
#define ENV(id, name, values, meaning) [ENV_##id] = {name, values},
#include "base/env_list.def"
#undef ENV
};

const char *attncl__env_get(enum env_var var)
{
    const char *value = secure_getenv(table[var].name);
    return value && *value ? value : NULL;
}

static bool is_accepted(const char *value, const char *values)
{
    struct stat found;
    const bool exists = stat(value, &found) == 0;
    if (strcmp(values, DIRECTORY) == 0)
        return exists && S_ISDIR(found.st_mode);
    if (strcmp(values, NEW_DIRECTORY) == 0)
        return !exists || S_ISDIR(found.st_mode);
    if (strcmp(values, TUNING_FILE) == 0) // a new file's name looks like one
        return exists || strcmp(value, "off") == 0 || strpbrk(value, "/.");
    if (strcmp(values, SECONDS) == 0)
        return strlen(value) <= 9 && strspn(value, "0123456789") == strlen(value);
    return attncl__has_word(values, value);
}

static attncl_status check_value(enum env_var var)
{
    const char *value = attncl__env_get(var), *values = table[var].values;
    REQUIRE(!value || !*values || is_accepted(value, values), ATTNCL_ERR_ARGUMENT,
            "environment variable %s is %.200s, expected %s%s", table[var].name, value,
            strchr(values, ',') ? "one of: " : "", values);
    return ATTNCL_OK;
}

// Refuses an unknown name that is probably a typo: one or two letters differ from a known name.
static attncl_status check_name(const char *entry)
{
    enum { PREFIX = sizeof "ATTNCL_" - 1, MAX_NAME = 40 };
    const size_t n = strcspn(entry, "=");
    char name[MAX_NAME];
    if (n >= MAX_NAME)
        return ATTNCL_OK;
    memcpy(name, entry, n);
    name[n] = '\0';
    size_t min_distance = n < PREFIX + 5 ? 2 : 3; // one more than a typo has
    const char *nearest = NULL;
    for (int i = 0; i < N_ENV; ++i) {
        const size_t length = strlen(table[i].name);
        // A distance is at least the difference of the lengths: most names of other programs end here.
        if (strncmp(table[i].name, "ATTNCL_", PREFIX) != 0 || n + 2 < length || length + 2 < n)
            continue;
        if (strcmp(table[i].name, name) == 0)
            return ATTNCL_OK;
        const size_t distance = attncl__edit_distance(name, table[i].name);
        if (distance < min_distance) {
            min_distance = distance;
            nearest = table[i].name;
        }
    }
    REQUIRE(!nearest, ATTNCL_ERR_ARGUMENT, "environment variable %s is not known, nearest: %s",
            name, nearest);
    return ATTNCL_OK;
}

attncl_status attncl__env_check(void)
{
    if (attncl__is_privileged())
        return ATTNCL_OK;
    for (char **entry = environ; entry && *entry; ++entry)
        TRY(check_name(*entry));
    for (enum env_var var = 0; var < N_ENV; ++var)
        TRY(check_value(var));
    return ATTNCL_OK;
}

const char *attncl__env_next(const char *prefix, const char *entry)
{
    const char *next = NULL;

    for (char **e = environ; e && *e; ++e)
        if (strncmp(*e, prefix, strlen(prefix)) == 0 && (!entry || strcmp(*e, entry) > 0) &&
            (!next || strcmp(*e, next) < 0))
            next = *e;
    return next;
}

bool attncl__is_privileged(void)
{
    return getauxval(AT_SECURE) != 0;
}
