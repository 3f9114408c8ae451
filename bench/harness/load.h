// SPDX-License-Identifier: MIT
// What this process and others did to the CPUs while something was timed: whether it was disturbed.
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

// Counters, of which two readings are subtracted.
struct load {
    double wall_s;
    double cpu_s;  // of this process, all threads
    double busy_s; // of the CPUs that it may use, by anyone, stolen time included; 0: not known
    long switches; // involuntary context switches of this process
};

struct load load_now(void);
struct load load_since(const struct load *before);

#endif
