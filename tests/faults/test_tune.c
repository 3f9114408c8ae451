// SPDX-License-Identifier: MIT
// Calls fail while a device is tuned: an error that names the call, or a candidate less; nothing is left,
// and no file is written.

#include <string.h>

#include "attncl/tune.h"
#include "base/alloc.h"
#include "device/context.h"
#include "support/directory.h"
#include "support/faults.h"

enum { N_SAMPLES = 8 };

static void up(void)
{
    directory_up();
    setenv("ATTNCL_TUNE", IN_DIRECTORY("tuning"), 1);
    faults_begin();
}

static void down(void)
{
    setenv("ATTNCL_TUNE", "off", 1);
    faults_end();
    directory_down();
}

FIXTURE(up, down);

static attncl_status tune(void)
{
    attncl_tune_options options = ATTNCL_TUNE_OPTIONS_INIT;
    options.seconds = 0.05;
    options.kernel = test_context()->caps.variant == VARIANT_CPU ? "flat_cpu" : "flat_gpu";
    options.check = 1;
    return attncl_device_tune(NULL, &options, NULL);
}

static const struct {
    cl_int code;
    bool all;
} kinds[] = {{CL_OUT_OF_RESOURCES, false}, {CL_OUT_OF_HOST_MEMORY, true}};

TABLE_TEST(faults_in_tuning, kinds)
{
    const size_t heap = attncl__alloc_live();

    if (test_context()->caps.max_loop_iterations != 0)
        return; // the device takes no rows: tuning refuses
    faults_none();
    ck_ok(tune());
    const size_t n_calls = faults_report().n_calls;
    ck_assert_uint_gt(n_calls, 50);
    for (size_t i = 0; i < N_SAMPLES; ++i) {
        faults_plan((struct fault_plan){.at = 1 + i * n_calls / N_SAMPLES,
                                        .all = kinds[_i].all,
                                        .code = kinds[_i].code,
                                        .queries = true});
        const attncl_status status = tune();
        const struct fault_report report = faults_taken();
        // The last calls are the end of the context.
        if (kinds[_i].all && report.n_failed > 1)
            ck_assert_int_ne(status, ATTNCL_OK);
        if (status != ATTNCL_OK)
            ck_assert_msg(strstr(attncl_last_error(), report.first) != NULL, "%s: \"%s\"",
                          report.first, attncl_last_error());
        ck_assert_uint_eq(attncl__alloc_live(), heap);
        ck_assert_uint_eq(directory_entries(), 0);
    }
    ck_ok(tune());
}
