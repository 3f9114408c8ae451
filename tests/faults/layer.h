// SPDX-License-Identifier: MIT
// An OpenCL layer (OPENCL_LAYERS) that numbers a program's calls, makes chosen ones fail, and keeps
// a ledger of OpenCL objects.  A test finds these functions in the layer that the loader has loaded:
// faults/faults.h.
#ifndef ATTNCL_TEST_FAULT_LAYER_H
#define ATTNCL_TEST_FAULT_LAYER_H

#include <stdbool.h>
#include <stddef.h>

#include "device/cl.h"

// Which calls fail.  Releases never do and have no number.  A failing wait still waits.
struct fault_plan {
    size_t at;        // number of the first that fails, counted from 1; 0: none
    bool all;         // and all after it
    cl_int code;      // what they return
    const char *only; // number the calls of this function only; NULL: of all
    bool queries;     // false: clGetXInfo() has no number and does not fail
};

struct fault_report {
    size_t n_calls, n_failed; // since the plan was set
    char first[64];           // the function that failed first; ""
    size_t live;              // objects that are not released, but for programs
    size_t over_released;     // releases of objects that were dead: not passed on to the driver
};

typedef void fault_layer_set_fn(const struct fault_plan *plan);
typedef void fault_layer_report_fn(struct fault_report *ret);
// Visits the functions that were called, and those that failed, since the program began.
typedef void fault_layer_visit_fn(const char *function, size_t n_calls, size_t n_failed,
                                  void *user);
typedef void fault_layer_each_fn(fault_layer_visit_fn *visit, void *user);

fault_layer_set_fn fault_layer_set;
fault_layer_report_fn fault_layer_report;
fault_layer_each_fn fault_layer_each;

#endif
