// SPDX-License-Identifier: MIT
// Is a result right?  The largest distance from the definition, relative to the largest value.
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "cases.h"
#include "support/host.h"

struct check {
    int64_t n;         // elements compared
    double difference; // largest |got - want|; infinite when something is not finite or misshapen
    double magnitude;  // largest |want|
};

// Adds the elements of two arrays of one shape.
void check_compare(struct check *c, const struct host *got, const struct host *want);

double check_error(const struct check *c);
// What is allowed for this family and these sizes.
double check_limit(const struct family *family, const struct sizes *sizes);

#endif
