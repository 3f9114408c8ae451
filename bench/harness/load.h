// SPDX-License-Identifier: MIT
// The CPU time of this process and of all others during a timing.  bench/reporting/quiet.py finds
// disturbed cases from it.
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

// Counters: subtract two readings.
struct load {
    double wall_s;
    double cpu_s;  // of this process, all threads
    double busy_s; // of the CPUs that it may use, by anyone, stolen time included; 0: not known
    long switches; // involuntary context switches of this process
};

struct load load_now(void);
struct load load_since(const struct load *before);

#endif
