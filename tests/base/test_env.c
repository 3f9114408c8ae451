// SPDX-License-Identifier: MIT
// Environment variables, the log and the version.

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "attncl/context.h"
#include "attncl/version.h"
#include "base/env.h"
#include "base/log.h"
#include "support/test.h"

NO_DEVICE;

TEST(a_variable_is_its_value_or_null)
{
    ck_assert_int_eq(setenv("ATTNCL_DUMP_CL", "/some/where", 1), 0);
    ck_assert_str_eq(attncl__env_get(ENV_DUMP_CL), "/some/where");
    ck_assert_int_eq(setenv("ATTNCL_DUMP_CL", "", 1), 0);
    ck_assert_ptr_null(attncl__env_get(ENV_DUMP_CL));
    ck_assert_int_eq(unsetenv("ATTNCL_DUMP_CL"), 0);
    ck_assert_ptr_null(attncl__env_get(ENV_DUMP_CL));
    ck_assert(!attncl__is_privileged());
}

// A value that is none, and a name that is nearly one.
TEST(wrong_values_and_names_are_refused)
{
    static const struct {
        const char *name, *value, *words; // NULL: accepted
    } rows[] = {
        {"ATTNCL_CACHE", "yes", "ATTNCL_CACHE is yes, expected one of: rw, ro, off"},
        {"ATTNCL_CACHE", "r", "ATTNCL_CACHE is r, expected one of: rw, ro, off"},
        {"ATTNCL_CACHE", "rw, ro", "expected one of: rw, ro, off"},
        {"ATTNCL_CACHE", "ro", NULL},
        {"ATTNCL_CACHE", "", NULL},
        {"ATTNCL_GEMM", "own", "ATTNCL_GEMM is own, expected one of: native, clblast"},
        {"ATTNCL_GEMM", "clblast", NULL},
        {"ATTNCL_VARIANT", "CPU", "ATTNCL_VARIANT is CPU, expected one of: cpu, gpu"},
        {"ATTNCL_GUARD", "yes", "ATTNCL_GUARD is yes, expected one of: 0, 1"},
        {"ATTNCL_CL_DIR", "/no/such", "ATTNCL_CL_DIR is /no/such, expected an existing directory"},
        {"ATTNCL_DUMP_CL", "/dev/null", "expected an existing directory"},
        {"ATTNCL_DUMP_CL", "/", NULL},
        {"ATTNCL_CACHE_DIR", "/dev/null", "ATTNCL_CACHE_DIR is /dev/null, expected a directory"},
        {"ATTNCL_CACHE_DIR", "/no/such", NULL},
        {"ATTNCL_TUNE", "yes", "ATTNCL_TUNE is yes, expected off or a file"},
        {"ATTNCL_TUNE", "new.txt", NULL},
        {"ATTNCL_DEVICE", "anything", NULL},
        {"ATTNCL_DEVCE", "cpu", "ATTNCL_DEVCE is not known, nearest: ATTNCL_DEVICE"},
        {"ATTNCL_GEM", "native", "ATTNCL_GEM is not known, nearest: ATTNCL_GEMM"},
        {"ATTNCL_CACHE_DIRS", "/", "nearest: ATTNCL_CACHE_DIR"},
        {"ATTCNL_DEVICE", "cpu", "ATTCNL_DEVICE is not known, nearest: ATTNCL_DEVICE"},
        {"ATNCL_GEMM", "native", "ATNCL_GEMM is not known, nearest: ATTNCL_GEMM"},
        {"ATTNCLTUNE", "off", "ATTNCLTUNE is not known, nearest: ATTNCL_TUNE"},
        {"ATTNCL_GE", "1", NULL}, // too short to be two letters off
        {"ATTNCL_TEST_A", "1", NULL},
        {"ATTNCL_", "1", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        const char *found = getenv(rows[i].name);
        char *old = found ? strdup(found) : NULL;
        setenv(rows[i].name, rows[i].value, 1);
        if (rows[i].words)
            ck_fails(attncl_environment_check(), ATTNCL_ERR_ARGUMENT, rows[i].words);
        else
            ck_ok(attncl_environment_check());
        if (old)
            setenv(rows[i].name, old, 1);
        else
            unsetenv(rows[i].name);
        free(old);
    }
}

TEST(variables_of_a_prefix_are_in_order)
{
    static const char prefix[] = "ATTNCL_TEST_";
    ck_assert_int_eq(setenv("ATTNCL_TEST_B", "", 1), 0);
    ck_assert_int_eq(setenv("ATTNCL_TEST_A", "1", 1), 0);
    const char *entry = attncl__env_next(prefix, NULL);
    ck_assert_str_eq(entry, "ATTNCL_TEST_A=1");
    entry = attncl__env_next(prefix, entry);
    ck_assert_str_eq(entry, "ATTNCL_TEST_B=");
    ck_assert_ptr_null(attncl__env_next(prefix, entry));
    ck_assert_int_eq(unsetenv("ATTNCL_TEST_A"), 0);
    ck_assert_int_eq(unsetenv("ATTNCL_TEST_B"), 0);
}

static struct {
    int n_lines;
    attncl_log_level level;
    char text[600];
} seen;

static void see(attncl_log_level level, const char *text, void *user)
{
    ck_assert_ptr_eq(user, &seen);
    ++seen.n_lines;
    seen.level = level;
    strncpy(seen.text, text, sizeof seen.text - 1);
}

TEST(the_log_delivers_what_is_wanted)
{
    attncl__log(ATTNCL_LOG_ERROR, "no listener");
    ck_assert(!attncl__log_is_wanted(ATTNCL_LOG_ERROR));

    attncl_log_set(see, &seen, ATTNCL_LOG_INFO);
    attncl__log(ATTNCL_LOG_INFO, "chose %s over %d", "own", 2);
    ck_assert_int_eq(seen.n_lines, 1);
    ck_assert_int_eq(seen.level, ATTNCL_LOG_INFO);
    ck_assert_str_eq(seen.text, "chose own over 2");
    attncl__log(ATTNCL_LOG_DEBUG, "too much");
    ck_assert_int_eq(seen.n_lines, 1);
    attncl__log(ATTNCL_LOG_WARN, "%1000d", 1); // cut, not overflowed
    ck_assert_int_eq(seen.n_lines, 2);
    ck_assert_uint_lt(strlen(seen.text), 600);

    attncl_log_set(NULL, NULL, ATTNCL_LOG_DEBUG);
    attncl__log(ATTNCL_LOG_ERROR, "no listener again");
    ck_assert_int_eq(seen.n_lines, 2);
}

TEST(the_version_is_that_of_the_headers)
{
    ck_assert_str_eq(attncl_version(), ATTNCL_VERSION_STRING);
}
