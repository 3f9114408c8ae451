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

double attncl__seconds(void); // on a clock that only goes forward

// Runs the graph once, unmeasured, and reads its result.
attncl_status attncl__variant_begin(struct variant *s, int64_t n_result);
void attncl__variant_end(struct variant *s);

// True when the results agree: elements differ by no more than rounding lets sums of `terms` terms
// differ whose order is another.
bool attncl__variants_agree(const struct variant *a, const struct variant *b, int64_t n,
                            double terms);

// Interleaved rounds of both variants, `runs` runs each, until `seconds` are over; 3 rounds at
// least.  The times of earlier rounds are dropped.
attncl_status attncl__ab_time(struct variant *a, struct variant *b, int runs, double seconds);

// Seconds of one run of `s`, and of several: by the fastest and by the middle sample.
attncl_status attncl__variant_time(struct variant *s, int runs, double *seconds_ret);
double attncl__variant_min(const struct variant *s);
double attncl__variant_median(const struct variant *s);

#endif
