// SPDX-License-Identifier: MIT
// What became of a case on a device.
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include "harness/measure.h"

enum outcome {
    OUTCOME_OK,
    OUTCOME_WRONG,   // beyond its limit: not timed
    OUTCOME_FAILED,  // the library reported an error
    OUTCOME_NOT_RUN, // the device cannot
};

enum { N_PROBES = 8 };

struct result {
    const struct bench_case *c;
    enum outcome outcome;
    char reason[256]; // why it failed or did not run
    double error, error_limit;
    // The result at N_PROBES places spread over all its elements, the last one included, for
    // baselines to compare with; n_probes is 0 when there is no such result.
    double probe[N_PROBES];
    size_t n_probes;
    double cold_s, cached_s; // kernels built and memory planned; 0: not measured
    struct timing timing;
    bool has_memory;
    attncl_memory_report memory; // of the compiled graph, where there is one
    const char *bound;           // "compute", "memory"; NULL without a roofline
    double roofline_percent;
    double copy_percent; // of the bandwidth of a copy with the same footprint; 0: not known
};

#endif
