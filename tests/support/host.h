// SPDX-License-Identifier: MIT
// Host tensors for tests: doubles in C order, from an arena that device_down() (or host_reset())
// empties: no frees in tests.
#ifndef ATTNCL_TEST_HOST_H
#define ATTNCL_TEST_HOST_H

#include "base/desc.h"

struct host {
    attncl_dtype dtype; // type on the device: F32 (default), I32, U8
    int rank;
    int64_t dim[ATTNCL_MAX_RANK];
    int64_t count;
    double *data;
    bool as_view; // run_op() hands it to the op as a view into a wider array, with NaN between the
                  // rows
};

// DIMS(2, 3, 4): rank and extents.  A scalar is 0, NULL.
#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

struct host *host_new(attncl_dtype dtype, int rank, const int64_t *dim); // zeros
struct host *host_with(attncl_dtype dtype, const double *values, int rank, const int64_t *dim);
struct host *host_like(const struct host *h); // zeros
struct host *host_copy(const struct host *h);
struct host *host_row(const struct host *h, int64_t t); // a copy of h[t], of one axis less
struct host *host_random(unsigned seed, int rank,
                         const int64_t *dim); // F32, N(0,1), each value exactly a float
struct host *host_uniform(unsigned seed, double low, double high, int rank,
                          const int64_t *dim); // F32, exactly floats
struct host *host_ints(unsigned seed, int low, int high, int rank,
                       const int64_t *dim); // I32 in [low, high)
struct host *host_mask(unsigned seed, double p_visible, int rank, const int64_t *dim); // U8, 0 or 1
struct host *host_stored(struct host *h,
                         attncl_dtype dtype); // rounds to a type of floats, or Q8 or Q4; returns h
bool host_is_constant(const struct host *h);  // of a type that inputs of graphs have not
void host_scale(struct host *h, double factor);      // and rounds to float
void host_set(struct host *h, const double *values); // all of them, in C order
struct host *host_view(struct host *h);              // sets as_view and returns h
double host_largest(const struct host *h);           // of the absolute values; NaN where one is
double host_dot(const struct host *a, const struct host *b); // sum a_i b_i

// The values in the tensor's own type, and back.
size_t host_bytes(const struct host *h);
void *host_pack(const struct host *h);
void host_unpack(struct host *h, const void *bytes);

void host_reset(void);

// Fails the test unless |got - want| <= atol + rtol * |want| everywhere and got is finite; prints
// the worst element.
void ck_near(const struct host *got, const struct host *want, double rtol, double atol);

// Fails the test unless |got - want| <= relative * size + absolute everywhere; size: the sum of the
// sizes of all terms of an element, `name` what the message calls it.
void ck_terms(const struct host *got, const struct host *want, const struct host *size,
              double relative, double absolute, const char *name);

#endif
