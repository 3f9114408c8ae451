// SPDX-License-Identifier: MIT
// Makes kernel sources new to every compiler cache, the library's and the driver's.
#ifndef ATTNCL_BENCH_CACHE_BUSTER_H
#define ATTNCL_BENCH_CACHE_BUSTER_H

// From now on every source that the library loads begins with `text`; NULL: as it is.  Borrowed.
void cache_buster_set(const char *text);

#endif
