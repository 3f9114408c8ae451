// SPDX-License-Identifier: MIT
// A machine without any OpenCL driver.

#include <string.h>

#include "base/alloc.h"
#include "support/test.h"

NO_DEVICE;

TEST(no_driver_is_no_failure)
{
    const size_t heap_before = attncl__alloc_live();
    attncl_context *ctx = NULL;
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
    size_t n = 99;

    setenv("OCL_ICD_VENDORS", "/nonexistent", 1); // before the loader's first look
    ck_ok(attncl_device_count(&n));
    ck_assert_uint_eq(n, 0);
    ck_fails(attncl_device_get(0, &info), ATTNCL_ERR_NO_DEVICE, "there are 0");
    ck_fails(attncl_context_create(NULL, &ctx), ATTNCL_ERR_NO_DEVICE, "no OpenCL device was found");
    ck_assert_ptr_null(ctx);
    ck_assert_uint_eq(attncl__alloc_live(), heap_before);
}
