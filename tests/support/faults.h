// SPDX-License-Identifier: MIT
// Calls of OpenCL that fail when a test wants it, by the layer in faults/layer.c.
//
// A file begins with FAULTS_FIXTURE after its includes; CTest sets OPENCL_LAYERS for tests of
// tests/faults.
#ifndef ATTNCL_TEST_FAULTS_H
#define ATTNCL_TEST_FAULTS_H

#include <string.h>

#include "faults/layer.h"
#include "support/test.h"

// Each case ends with no fault planned, as many OpenCL objects and open descriptors as it began with,
// and no object released twice.
#define FAULTS_FIXTURE FIXTURE(faults_begin, faults_end)
void faults_begin(void);
void faults_end(void);

void faults_plan(struct fault_plan plan);
void faults_none(void);
struct fault_report faults_report(void); // since the last of these two
void faults_each(fault_layer_visit_fn *visit, void *user);
size_t faults_descriptors(void); // open in this process; 0 where the system does not list them

// The n-th call of a function from now on fails once.
#define FAIL_CALL(function, n, cl_code)                                                            \
    faults_plan(                                                                                   \
        (struct fault_plan){.at = (n), .code = (cl_code), .only = (function), .queries = true})

// The report; nothing fails from now on.
static inline struct fault_report faults_taken(void)
{
    const struct fault_report report = faults_report();
    faults_none();
    return report;
}

// Call n failed: so says the status, and the message names it.
static inline void check_failure(size_t n, const struct fault_report *report, attncl_status status)
{
    ck_assert_msg(status != ATTNCL_OK, "call %zu, %s: unnoticed", n, report->first);
    ck_assert_msg(strstr(attncl_last_error(), report->first) != NULL, "call %zu, %s: \"%s\"", n,
                  report->first, attncl_last_error());
}

#endif
