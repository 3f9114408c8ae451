// SPDX-License-Identifier: MIT
// A run of a case on a device: opened, run once, checked, and only then timed, in rounds: the
// devices are interleaved, so that background load affects all of them equally.
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "harness/case.h"
#include "harness/sensors.h"

enum outcome {
    OUTCOME_OK,
    OUTCOME_WRONG,   // beyond its limit: not timed
    OUTCOME_FAILED,  // the library reported an error
    OUTCOME_NOT_RUN, // the device cannot
};

enum { N_PROBES = 8 };

struct run_options {
    attncl_context *ctx;   // the device's, unless compilation is timed
    const char *device;    // "PLATFORM:DEVICE"
    const char *directory; // of programs, when compilation is timed: cold, then cached; else NULL
    double budget_s;       // of one round
    size_t min_runs; // of one round; done even when they take longer, up to four times the budget
    struct sensors *sensors; // of the device
    // The driver's clFinish and event times do not wait for the work: a run ends with its result
    // read, and there is no device time.
    bool driver_does_not_wait;
};

struct run {
    struct run_options options;
    const struct bench_case *c;
    enum outcome outcome;
    char reason[256]; // why it failed or did not run
    double error, error_limit;
    // The result at N_PROBES places spread over all its elements, the last one included, for
    // baselines to compare with; n_probes is 0 when there is no such result.
    double probe[N_PROBES];
    size_t n_probes;
    double cold_s, cached_s; // kernels built and memory planned; 0: not measured
    size_t runs, rounds;
    struct spread wall;         // of one run and the wait for it
    struct spread latency;      // of one token of a decoder; 0 when there is none
    struct sensor_sums sensors; // while it ran
    json_t *by_round;           // list: each round's median and load
    struct spread event;        // sum of the commands' times on the device; 0 when not known
    double flop, bytes;         // of one run, by the ops' own formulas; 0 when not known
    bool has_memory;
    attncl_memory_report memory; // of the compiled graph, where there is one
    double spent_s;              // timing

    // while it goes on
    struct case_data data;
    struct samples samples, latencies;
    attncl_context *own;        // of this run alone, when compilation is timed
    char cache_buster[64];      // makes this run's programs new to every cache
    double first_s, cold_run_s; // a first run, which some drivers compile in
};

// Afterwards the outcome is OUTCOME_OK when it can be timed.  NULL: no memory.
struct run *run_begin(const struct run_options *options, const struct bench_case *c);
// Nothing unless the outcome is OUTCOME_OK.
void run_round(struct run *r);
// Completes the result and releases all but it.
void run_end(struct run *r);
void run_free(struct run *r);

#endif
