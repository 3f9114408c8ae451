// SPDX-License-Identifier: MIT
// What every test file includes.  `attncl-tests FAMILY.CASE` runs the TEST()s of FAMILY/.../test_CASE.c, in their order,
// in one process (OpenCL does not survive fork) on the device of ATTNCL_DEVICE; exit 77 when there is none.
#ifndef ATTNCL_TEST_H
#define ATTNCL_TEST_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "attncl/context.h"
#include "attncl/graph.h"
#include "attncl/model.h"
#include "attncl/status.h"
#include "base/desc.h"

// Check's own sends a message through a file for each assertion that holds: of millions, seconds.
#undef ck_assert_msg
#define ck_assert_msg(holds, ...) ((holds) ? (void)0 : ck_abort_msg(__VA_ARGS__))
#undef ck_assert
#define ck_assert(holds) ck_assert_msg(holds, "%s", #holds)

// TEST(name) { ... }: a case.  LOOP_TEST: a case for each _i of [first, end); TABLE_TEST: for each
// row table[_i].
#define TEST(name)              LOOP_TEST(name, 0, 1)
#define TABLE_TEST(name, table) LOOP_TEST(name, 0, (int)COUNT_OF(table))
#define COUNT_OF(array)         (sizeof(array) / sizeof(array)[0])
#define LOOP_TEST(name, first, end)                                                                \
    static const TTest *name;                                                                      \
    __attribute__((constructor)) static void name##_register(void)                                 \
    {                                                                                              \
        test_add(name, first, end);                                                                \
    }                                                                                              \
    START_TEST(name)

// Calls up() before and down() after each of the cases below, until the next fixture that follows a
// case; FIXTURE_ONCE: before the first and after the last of them.  NULL: nothing to call.
#define FIXTURE(up, down)      TEST_FIXTURE(up, down, true)
#define FIXTURE_ONCE(up, down) TEST_FIXTURE(up, down, false)
// Above all fixtures and cases: they open devices themselves, or need none.
#define NO_DEVICE FIXTURE_ONCE(NULL, NULL)

// The line puts cases and fixtures in the file's order.
#define TEST_FIXTURE(up, down, each)          TEST_FIXTURE_AT(__LINE__, up, down, each)
#define TEST_FIXTURE_AT(line, up, down, each) TEST_FIXTURE_NAMED(line, up, down, each)
#define TEST_FIXTURE_NAMED(line, up, down, each)                                                   \
    __attribute__((constructor)) static void fixture_##line##_register(void)                       \
    {                                                                                              \
        test_add_fixture(__FILE__, line, up, down, each);                                          \
    }                                                                                              \
    struct fixture_##line

void test_add(const TTest *test, int first, int end);
void test_add_at(const char *file, int line, const TTest *test, int first, int end);
void test_add_specs(void); // of op_spec.h
void test_add_fixture(const char *file, int line, SFun up, SFun down, bool each);

// Passes when `call` is OK, else prints the library's message.
#define ck_ok(call)                                                                                \
    do {                                                                                           \
        const attncl_status ck_ok_ = (call);                                                       \
        ck_assert_msg(ck_ok_ == ATTNCL_OK, "%s: %s: %s (%s)", #call, attncl_status_name(ck_ok_),   \
                      attncl_last_error(), attncl_last_error_where());                             \
    } while (0)

// Passes when `call` fails with `expected` and the message contains `words`.
#define ck_fails(call, expected, words)                                                            \
    do {                                                                                           \
        const attncl_status ck_fails_ = (call);                                                    \
        ck_assert_msg(ck_fails_ == (expected), "%s: got %s (%s), expected %s", #call,              \
                      attncl_status_name(ck_fails_), attncl_last_error(),                          \
                      attncl_status_name(expected));                                               \
        ck_assert_msg(strstr(attncl_last_error(), (words)) != NULL, "message \"%s\" lacks \"%s\"", \
                      attncl_last_error(), (words));                                               \
    } while (0)

// The fixture of a file without NO_DEVICE.  device_up opens the device; device_down closes it and
// fails the program when an OpenCL object of the library or a heap block is still alive.
void device_up(void);
void device_down(void);
const char *test_name(void); // "op.softmax"

// A contiguous F32 of that shape: CK_DESC(2, 3, 4).
static inline struct tensor_desc ck_desc(int rank, const int64_t *dim)
{
    struct tensor_desc d;
    ck_ok(attncl__desc_make(ATTNCL_F32, rank, dim, &d));
    return d;
}
#define CK_DESC(...)                                                                               \
    ck_desc((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

// TEST_SIZES=full (tests/run --full): large shapes and all combinations too.  Otherwise PoCL's compiler decides what a test
// takes: shapes share programs, and combinations are spread over them.  TEST_SIZES=few (tests/run without options): hardly
// any of the variant of the kernels that is not the device's own.
bool test_has_full_sizes(void);
bool test_has_few_sizes(void);

// Says that a case, or a part of it, cannot be run here, and why; the case returns after it.  A test with such a case
// counts as skipped (exit 77), never as passed.
void test_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// Ends the program as skipped, with the reason.
_Noreturn void test_exit_skipped(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
attncl_context *test_context(void); // the fixture's context
// A decoder of `batch` sequences whose state has that type; the caller's.
attncl_decoder *test_decoder(attncl_model *model, int64_t batch, attncl_dtype state_dtype);
attncl_graph *test_graph(void); // a new one there, the caller's

#endif
