// SPDX-License-Identifier: MIT
// Status names, the last error of a thread, and the error macros.

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "support/test.h"

NO_DEVICE;

TEST(every_status_has_its_pinned_value_name_and_meaning)
{
    static const struct {
        attncl_status status;
        int value;
        const char *name;
    } rows[] = {
        {ATTNCL_OK, 0, "ATTNCL_OK"},
        {ATTNCL_ERR_ARGUMENT, 1, "ATTNCL_ERR_ARGUMENT"},
        {ATTNCL_ERR_SHAPE, 2, "ATTNCL_ERR_SHAPE"},
        {ATTNCL_ERR_DTYPE, 3, "ATTNCL_ERR_DTYPE"},
        {ATTNCL_ERR_STATE, 4, "ATTNCL_ERR_STATE"},
        {ATTNCL_ERR_UNSUPPORTED, 5, "ATTNCL_ERR_UNSUPPORTED"},
        {ATTNCL_ERR_NO_DEVICE, 6, "ATTNCL_ERR_NO_DEVICE"},
        {ATTNCL_ERR_NO_MEMORY, 7, "ATTNCL_ERR_NO_MEMORY"},
        {ATTNCL_ERR_DEVICE_MEMORY, 8, "ATTNCL_ERR_DEVICE_MEMORY"},
        {ATTNCL_ERR_COMPILE, 9, "ATTNCL_ERR_COMPILE"},
        {ATTNCL_ERR_OPENCL, 10, "ATTNCL_ERR_OPENCL"},
        {ATTNCL_ERR_BLAS, 11, "ATTNCL_ERR_BLAS"},
        {ATTNCL_ERR_IO, 12, "ATTNCL_ERR_IO"},
        {ATTNCL_ERR_FORMAT, 13, "ATTNCL_ERR_FORMAT"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        ck_assert_int_eq((int)rows[i].status, rows[i].value);
        ck_assert_str_eq(attncl_status_name(rows[i].status), rows[i].name);
        ck_assert_str_ne(attncl_status_text(rows[i].status), "unknown status");
    }
    ck_assert_str_eq(attncl_status_name((attncl_status)99), "unknown status");
    ck_assert_str_eq(attncl_status_text((attncl_status)-1), "unknown status");
}

static attncl_status refuse(int a, int b)
{
    REQUIRE(a == b, ATTNCL_ERR_SHAPE, "a has %d, b has %d", a, b);
    return ATTNCL_OK;
}

static attncl_status pass_up(int a, int b)
{
    TRY(refuse(a, b));
    return ATTNCL_OK;
}

static attncl_status clean_up(int a, int b, int *released)
{
    attncl_status status = ATTNCL_OK;
    TRY_DONE(pass_up(a, b));
    TRY_DONE(refuse(a, a));
done:
    ++*released;
    return status;
}

TEST(a_failure_passes_up_with_its_sentence_and_place)
{
    int released = 0;
    ck_assert_int_eq(clean_up(48, 64, &released), ATTNCL_ERR_SHAPE);
    ck_assert_str_eq(attncl_last_error(), "a has 48, b has 64");
    ck_assert_ptr_eq(strstr(attncl_last_error_where(), "test_error.c:"), attncl_last_error_where());
    ck_assert_int_eq(clean_up(1, 1, &released), ATTNCL_OK);
    ck_assert_int_eq(released, 2);
    ck_assert_str_eq(attncl_last_error(), "a has 48, b has 64"); // success does not clear it
}

TEST(a_prefix_goes_before_the_message)
{
    (void)FAIL(ATTNCL_ERR_FORMAT, "heads is a string");
    attncl__prefix_failure(ATTNCL_ERR_FORMAT, "%s", "config");
    attncl__prefix_failure(ATTNCL_ERR_FORMAT, "m.safetensors");
    ck_assert_str_eq(attncl_last_error(), "m.safetensors: config: heads is a string");
    (void)FAIL(ATTNCL_ERR_FORMAT, "again: %s", attncl_last_error()); // reads what it replaces
    ck_assert_str_eq(attncl_last_error(), "again: m.safetensors: config: heads is a string");
}

TEST(a_sentence_is_one_line_of_bounded_length)
{
    char text[4000];
    (void)FAIL(ATTNCL_ERR_COMPILE, "line\nnext\ttab\x1b[31m\x7f\xc2\x9b end \xc3\xa9");
    ck_assert_str_eq(attncl_last_error(), "line next tab [31m    end \xc3\xa9");

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)FAIL(ATTNCL_ERR_COMPILE, "%s", text);
    const size_t length = strlen(attncl_last_error());
    ck_assert_uint_ge(length, 500);
    ck_assert_uint_lt(length, sizeof text - 1);
    attncl__prefix_failure(ATTNCL_ERR_FORMAT, "where");
    ck_assert_uint_eq(strlen(attncl_last_error()), length);
    ck_assert_int_eq(strncmp(attncl_last_error(), "where: xxx", 10), 0);
    attncl__prefix_failure(ATTNCL_ERR_FORMAT, "%s", text); // no space for both: the fact is kept
    ck_assert_int_eq(strncmp(attncl_last_error(), "where: xxx", 10), 0);
}

static void *fail_in_a_thread(void *seen)
{
    *(bool *)seen = *attncl_last_error() == '\0';
    (void)FAIL(ATTNCL_ERR_IO, "of the other thread");
    return NULL;
}

TEST(each_thread_has_its_own)
{
    pthread_t thread;
    bool began_empty = false;
    (void)FAIL(ATTNCL_ERR_IO, "of this thread");
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_in_a_thread, &began_empty), 0);
    pthread_join(thread, NULL);
    ck_assert(began_empty);
    ck_assert_str_eq(attncl_last_error(), "of this thread");
}

TEST(a_lack_of_memory_is_said_once)
{
    FAIL(ATTNCL_ERR_NO_MEMORY, "mask [%d, %d]", 3, 4);
    ck_assert_str_eq(attncl_last_error(), "out of memory: mask [3, 4]");
    attncl__prefix_failure(ATTNCL_ERR_FORMAT, "encoder");
    FAIL(ATTNCL_ERR_NO_MEMORY, "%s", attncl_last_error()); // passed on
    ck_assert_str_eq(attncl_last_error(), "encoder: out of memory: mask [3, 4]");
}
