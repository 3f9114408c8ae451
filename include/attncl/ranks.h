// SPDX-License-Identifier: MIT
/**
 * @file attncl/ranks.h
 * Several processes that work together: the ranks that `mpirun -n N` starts.
 *
 * Sums have a fixed order: element i of the sum is x_0[i] + x_1[i] + ... + x_{N-1}[i], added in
 * double in the order of the ranks and rounded once.  So every rank has the same bits, and N ranks
 * have the same bits each time, whichever message comes first.
 *
 * MPI is loaded at run time: libattncl_mpi.so, from the library's own directory or as
 * ATTNCL_MPI_PLUGIN says, and only where a launcher started more than one process.  All calls but
 * those that ask for numbers are collective: every rank makes the same calls in the same order.
 * NULL stands for one rank everywhere: sums, broadcasts and comparisons then change nothing.
 *
 * Where a rank fails, the others wait for it: call attncl_ranks_abort() then.  One that hangs is
 * waited for as many seconds as ATTNCL_RANKS_TIMEOUT says, 1800 without it, 0 for ever; then the
 * call that waits is ERR_IO.  attncl_ranks_close() has no limit: attncl_ranks_barrier() before it has.
 *
 * Threads: one thread of a process uses its ranks, the one that opened them.
 */
#ifndef ATTNCL_RANKS_H
#define ATTNCL_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "attncl/export.h"
#include "attncl/status.h"

ATTNCL_BEGIN

typedef struct attncl_ranks attncl_ranks;

/**
 * Joins the ranks.  Without a launcher (no OMPI_COMM_WORLD_SIZE, PMI_SIZE or PMIX_RANK in the
 * environment) there is one rank and MPI is not loaded.  Where the program has called MPI_Init()
 * itself, that MPI is used and left open; else MPI lives as long as these ranks, and a second open
 * after the close is ERR_STATE.
 *
 * @param ranks_ret  owned by the caller, released by attncl_ranks_close()
 *
 * ERR_UNSUPPORTED where several processes were started and the plugin cannot be loaded or belongs to
 * another MPI.
 * Errors: ERR_ARGUMENT, ERR_STATE, ERR_UNSUPPORTED, ERR_IO, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_ranks_open(attncl_ranks **ranks_ret);

/** Leaves, when all ranks do: waits for them.  NULL is fine.
 * Errors: none. */
ATTNCL_API void attncl_ranks_close(attncl_ranks *ranks);

/** This process: 0 .. size - 1.
 * Errors: none. */
ATTNCL_API int attncl_ranks_rank(const attncl_ranks *ranks);

/** How many there are, at least 1.
 * Errors: none. */
ATTNCL_API int attncl_ranks_size(const attncl_ranks *ranks);

/** This process among those on the same machine, from 0 on: for the choice of its device.
 * Errors: none. */
ATTNCL_API int attncl_ranks_local_rank(const attncl_ranks *ranks);

/** How many are on this machine, at least 1.
 * Errors: none. */
ATTNCL_API int attncl_ranks_local_size(const attncl_ranks *ranks);

/**
 * Replaces data [n] by its sum over the ranks.  Every rank gives the same n.  Begun sums are
 * finished first.
 * Errors: ERR_ARGUMENT, ERR_NO_MEMORY, ERR_IO from MPI.
 */
ATTNCL_API attncl_status attncl_ranks_sum(attncl_ranks *ranks, float *data, size_t n);

/** The same for doubles, in the same order; meant for a few numbers: each rank receives all N * n.
 * Errors: ERR_ARGUMENT, ERR_NO_MEMORY, ERR_IO from MPI. */
ATTNCL_API attncl_status attncl_ranks_sum_double(attncl_ranks *ranks, double *data, size_t n);

/**
 * Begins a sum, as attncl_ranks_sum() computes it, and returns: for a bucket of gradients while
 * others are still computed.  `data` stays the ranks' until the sum is finished.  Sums finish in
 * the order in which they were begun.  They advance only within calls with these ranks:
 * attncl_ranks_sum_poll() now and then lets messages travel while the device computes.
 * Errors: ERR_ARGUMENT, ERR_NO_MEMORY, ERR_IO from MPI.
 */
ATTNCL_API attncl_status attncl_ranks_sum_begin(attncl_ranks *ranks, float *data, size_t n);

/** Advances the sums that were begun, without waiting; *n_left_ret of them are not finished.
 * Errors: ERR_ARGUMENT, ERR_IO from MPI. */
ATTNCL_API attncl_status attncl_ranks_sum_poll(attncl_ranks *ranks, size_t *n_left_ret);

/** Waits until at most `n_left` of the sums that were begun are not finished; 0: for all.
 * Errors: ERR_IO from MPI. */
ATTNCL_API attncl_status attncl_ranks_sum_wait(attncl_ranks *ranks, size_t n_left);

/** Copies rank 0's data [bytes] to all ranks.
 * Errors: ERR_ARGUMENT, ERR_IO from MPI. */
ATTNCL_API attncl_status attncl_ranks_broadcast(attncl_ranks *ranks, void *data, size_t bytes);

/** Waits until all ranks have called it.
 * Errors: ERR_IO from MPI. */
ATTNCL_API attncl_status attncl_ranks_barrier(attncl_ranks *ranks);

/**
 * Whether all ranks give the same value, a hash of what they should have in common.  ERR_STATE, on
 * every rank, where they do not; the message has `what` and names the first rank that differs from
 * rank 0.
 * Errors: ERR_ARGUMENT, ERR_STATE, ERR_NO_MEMORY, ERR_IO from MPI.
 */
ATTNCL_API attncl_status attncl_ranks_compare(attncl_ranks *ranks, const char *what,
                                              uint64_t value);

/**
 * Ends the processes of all ranks, this one too, with exit status 1: for a rank that cannot go on,
 * after it has said why.  Returns only where there is one rank.
 * Errors: none.
 */
ATTNCL_API void attncl_ranks_abort(attncl_ranks *ranks);

ATTNCL_END

#endif
