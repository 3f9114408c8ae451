// SPDX-License-Identifier: MIT
// What libattncl_mpi.so offers: the few MPI calls that ranks.c is made of, so that the library itself
// knows no MPI.  MPICH's and Open MPI's handles differ; here they are bytes.
#ifndef ATTNCL_TRAIN_RANKS_PLUGIN_H
#define ATTNCL_TRAIN_RANKS_PLUGIN_H

enum { RANKS_PLUGIN_VERSION = 1 };

struct ranks_place {
    int rank, size;
    int local_rank, local_size; // among the processes of this machine
};

// An operation that was begun.
struct ranks_request {
    _Alignas(16) unsigned char bytes[16];
};

// Blocks of bytes, one for each rank: where it begins and how long it is.
struct ranks_blocks {
    const int *at, *bytes; // [size]
};

// Each returns NULL, or what MPI says of its failure: static storage, until the next call.  Exchanges,
// gathers and others are three kinds; operations of one kind are begun in the same order by all ranks.
struct ranks_plugin {
    int version;
    const char *(*open)(struct ranks_place *ret);
    const char *(*close)(void);
    // Block r of `out` goes to rank r, which finds it as block (this rank) of its `in`.
    const char *(*exchange)(const void *out, struct ranks_blocks out_blocks, void *in,
                            struct ranks_blocks in_blocks, struct ranks_request *ret);
    // Block (this rank) of `data` goes to all ranks.
    const char *(*gather)(void *data, struct ranks_blocks blocks, struct ranks_request *ret);
    const char *(*broadcast)(void *data, int bytes, struct ranks_request *ret); // rank 0's
    // Advances a request; *done_ret 1: it is finished.
    const char *(*test)(struct ranks_request *request, int *done_ret);
    void (*end_all)(int exit_status);
};

// The one name that the plugin exports.
#define RANKS_PLUGIN_ENTRY "attncl_ranks_plugin"
typedef const struct ranks_plugin *ranks_plugin_entry(void);

#endif
