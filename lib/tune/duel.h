// SPDX-License-Identifier: MIT
// Two ways to do the same work, timed by turns.
#ifndef ATTNCL_TUNE_DUEL_H
#define ATTNCL_TUNE_DUEL_H

#include "tune/workloads.h"

enum { DUEL_MOST_SAMPLES = 63 };

// One side: a compiled graph and what its runs took.
struct side {
    attncl_graph *graph;
    float *result; // "y", once read
    double sample[DUEL_MOST_SAMPLES];
    int n_samples;
};

double attncl__seconds(void); // on a clock that only goes forward

// Runs the graph once, unmeasured, and reads its result.
attncl_status attncl__side_begin(struct side *s, int64_t n_result);
void attncl__side_end(struct side *s);

// True when the results agree: elements differ by no more than rounding lets sums of `terms` terms
// differ whose order is another.
bool attncl__sides_agree(const struct side *a, const struct side *b, int64_t n, double terms);

// Turns of both sides, `runs` runs each, until `seconds` are over; 3 turns at least.  The times of
// earlier turns are forgotten.
attncl_status attncl__duel(struct side *a, struct side *b, int runs, double seconds);

// Seconds of one run of `s`, and of several: by the fastest and by the middle sample.
attncl_status attncl__side_time(struct side *s, int runs, double *seconds_ret);
double attncl__side_least(const struct side *s);
double attncl__side_median(const struct side *s);

#endif
