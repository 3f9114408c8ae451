// SPDX-License-Identifier: MIT
// What every test file includes.  A test file defines suite(); support/main.c runs it without
// forking (OpenCL does not survive fork) and exits 77 when the suite needs a device and there is
// none.
#ifndef ATTNCL_TEST_H
#define ATTNCL_TEST_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "attncl/context.h"
#include "attncl/status.h"

Suite *suite(void);

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

// Unchecked fixtures.  device_up opens the device of ATTNCL_DEVICE (exit 77 when there is none);
// device_down closes it and fails the program when an OpenCL object of the library or a heap block
// is still alive.
void device_up(void);
void device_down(void);
attncl_context *test_context(void); // the fixture's context

#endif
