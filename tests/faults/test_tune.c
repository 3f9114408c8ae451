// SPDX-License-Identifier: MIT
// Calls fail while a device is tuned: an error that names the call, or a warning that does and a candidate
// less; nothing is left, and no file is written.

#include <string.h>

#include "attncl/log.h"
#include "attncl/tune.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "device/context.h"
#include "support/directory.h"
#include "support/faults.h"

enum { N_SAMPLES = 8 };

static struct strbuf warnings;

static void add_warning(attncl_log_level level, const char *text, void *user)
{
    (void)level;
    attncl__strbuf_add(user, "%s\n", text);
}

static void up(void)
{
    attncl_log_set(add_warning, &warnings, ATTNCL_LOG_WARN);
    directory_up();
    setenv("ATTNCL_TUNE", IN_DIRECTORY("tuning"), 1);
    faults_begin();
}

static void down(void)
{
    setenv("ATTNCL_TUNE", "off", 1);
    attncl_log_set(NULL, NULL, ATTNCL_LOG_WARN);
    faults_end();
    directory_down();
}

FIXTURE(up, down);

static void take_count(const attncl_tune_result *result, void *n_tried)
{
    *(size_t *)n_tried = result->n_tried;
}

static attncl_status tune(double seconds, size_t *n_tried_ret)
{
    attncl_tune_options options = ATTNCL_TUNE_OPTIONS_INIT;
    options.seconds = seconds;
    options.report = take_count;
    options.user = n_tried_ret;
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
    size_t n_tried = 0, n_dropped = 0;
    double seconds = 0.05;

    if (test_context()->caps.max_loop_iterations != 0)
        return; // the device takes no rows: tuning refuses
    for (; n_tried < 2; seconds *= 2)
        ck_ok(tune(seconds, &n_tried));
    faults_none();
    ck_ok(tune(seconds, &n_tried));
    const size_t n_calls = faults_report().n_calls;
    ck_assert_uint_gt(n_calls, 50);
    for (size_t i = 0; i < N_SAMPLES; ++i) {
        faults_plan((struct fault_plan){.at = 1 + i * n_calls / N_SAMPLES,
                                        .all = kinds[_i].all,
                                        .code = kinds[_i].code,
                                        .queries = true});
        attncl__strbuf_add(&warnings, "warnings:\n");
        const attncl_status status = tune(seconds, &n_tried);
        const struct fault_report report = faults_taken();
        if (status != ATTNCL_OK)
            attncl__strbuf_add(&warnings, "%s", attncl_last_error());
        // A probe may do without what failed, and what follows fails too.
        const char *const named = kinds[_i].all ? "CL_OUT_OF_HOST_MEMORY" : report.first;
        // Waiting before something is released has no result to lose.
        if (report.n_failed && strcmp(named, "clFinish") != 0)
            ck_assert_msg(strstr(warnings.data, named) != NULL, "%s: %s, %s", report.first,
                          attncl_status_name(status), warnings.data);
        n_dropped += strstr(warnings.data, "is left out") != NULL;
        attncl__strbuf_free(&warnings);
        ck_assert_uint_eq(attncl__alloc_live(), heap);
        ck_assert_uint_eq(directory_entries(), 0);
    }
    ck_assert_uint_gt(n_dropped, 0);
    ck_ok(tune(seconds, &n_tried));
}
