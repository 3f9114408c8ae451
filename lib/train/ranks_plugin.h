// SPDX-License-Identifier: MIT
// The interface of libattncl_mpi.so: the few MPI calls that ranks need, so that the library itself does
// not depend on MPI.  MPICH's and Open MPI's handles differ; here they are bytes.
#ifndef ATTNCL_TRAIN_RANKS_PLUGIN_H
#define ATTNCL_TRAIN_RANKS_PLUGIN_H

enum { RANKS_PLUGIN_VERSION = 1 };

struct ranks_place {
    int rank, size;
    int local_rank, local_size; // among the processes of this machine
};

// An operation in flight.
struct ranks_request {
    _Alignas(16) unsigned char bytes[16];
};

// A block of bytes for each rank: offset and length.
struct ranks_blocks {
    const int *at, *bytes; // [size]
};

// Each function returns NULL, or MPI's error message, in static storage until the next call.  All ranks
// must begin exchanges in the same order, likewise gathers, likewise other operations.
struct ranks_plugin {
    int version;
    const char *(*open)(struct ranks_place *ret);
    const char *(*close)(void);
    // Sends block r of `out` to rank r, which receives it as block (this rank) of `in`.
    const char *(*exchange)(const void *out, struct ranks_blocks out_blocks, void *in,
                            struct ranks_blocks in_blocks, struct ranks_request *ret);
    // Sends block (this rank) of `data` to all ranks.
    const char *(*gather)(void *data, struct ranks_blocks blocks, struct ranks_request *ret);
    const char *(*broadcast)(void *data, int bytes, struct ranks_request *ret); // from rank 0
    // Advances a request; *done_ret 1: it is finished.
    const char *(*test)(struct ranks_request *request, int *done_ret);
    void (*end_all)(int exit_status);
};

// The one name that the plugin exports.
#define RANKS_PLUGIN_ENTRY "attncl_ranks_plugin"
typedef const struct ranks_plugin *ranks_plugin_entry(void);

#endif
