// SPDX-License-Identifier: MIT
// A/B timing: two graphs for the same work, interleaved.
#ifndef ATTNCL_TUNE_AB_TIMING_H
#define ATTNCL_TUNE_AB_TIMING_H

#include "tune/workloads.h"

enum { AB_MAX_SAMPLES = 63 };

// One variant: a compiled graph and the times of its runs.
struct variant {
    attncl_graph *graph;
    float *result; // "y", once read
    double sample[AB_MAX_SAMPLES];
    int n_samples;
};

// Runs the graph once, unmeasured, and reads its result.
attncl_status attncl__variant_begin(struct variant *s, int64_t n_result);
void attncl__variant_end(struct variant *s);

// True when the results agree within the rounding of sums of `terms` terms in different orders.
bool attncl__variants_agree(const struct variant *a, const struct variant *b, int64_t n,
                            double terms);

// Interleaved rounds of both variants, `runs` runs each, until `seconds` are over; 3 rounds at
// least.  The times of earlier rounds are dropped.
attncl_status attncl__ab_time(struct variant *a, struct variant *b, int runs, double seconds);

// Seconds per run of `s`, by the fastest and by the median sample.
attncl_status attncl__variant_time(struct variant *s, int runs, double *seconds_ret);
double attncl__variant_min(const struct variant *s);
double attncl__variant_median(const struct variant *s);

#endif
