// SPDX-License-Identifier: MIT
// What became of a fault that was planned.
#ifndef ATTNCL_TEST_FAILURE_H
#define ATTNCL_TEST_FAILURE_H

#include <string.h>

#include "support/faults.h"

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
