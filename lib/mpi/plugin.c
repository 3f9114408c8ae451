// SPDX-License-Identifier: MIT
//
// libattncl_mpi.so: implements struct ranks_plugin by MPI.  Compiled for one MPI implementation; the
// library loads it at run time.
//
// Ranks may begin operations of different kinds in different orders.  MPI allows that only on different
// communicators, so each kind has its own.

#include <mpi.h>
#include <string.h>

#include "train/ranks_plugin.h"

_Static_assert(sizeof(MPI_Request) <= sizeof(struct ranks_request), "a request holds MPI's handle");

enum { EXCHANGES, GATHERS, OTHERS, N_KINDS };
static MPI_Comm comms[N_KINDS]; // each of all ranks
static int is_ours;             // this plugin initialised MPI

// Returns MPI's text for a failure, NULL for success.
static const char *error_text(int code)
{
    static char text[MPI_MAX_ERROR_STRING];
    int length = 0;

    if (code == MPI_SUCCESS)
        return NULL;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        return "unknown error";
    return text;
}

static MPI_Request load_request(const struct ranks_request *request)
{
    MPI_Request r;
    memcpy(&r, request->bytes, sizeof r);
    return r;
}

static const char *store_request(int code, MPI_Request r, struct ranks_request *ret)
{
    memcpy(ret->bytes, &r, sizeof r);
    return error_text(code);
}

static int find_local(struct ranks_place *ret)
{
    MPI_Comm local;
    int code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);

    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(local, &ret->local_rank);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(local, &ret->local_size);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_free(&local);
    return code;
}

static const char *plugin_open(struct ranks_place *ret)
{
    int is_open = 0, was_closed = 0, code = MPI_SUCCESS;

    MPI_Finalized(&was_closed);
    if (was_closed)
        return "MPI was closed, and opens once in a process";
    MPI_Initialized(&is_open);
    if (!is_open) {
        code = MPI_Init(NULL, NULL);
        is_ours = code == MPI_SUCCESS;
    }
    for (int i = 0; i < N_KINDS && code == MPI_SUCCESS; ++i) {
        code = MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        if (code == MPI_SUCCESS) // else a failure ends the process
            code = MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN);
    }
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(comms[OTHERS], &ret->rank);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(comms[OTHERS], &ret->size);
    if (code == MPI_SUCCESS)
        code = find_local(ret);
    return error_text(code);
}

static const char *plugin_close(void)
{
    for (int i = 0; i < N_KINDS; ++i)
        MPI_Comm_free(&comms[i]);
    return is_ours ? error_text(MPI_Finalize()) : NULL;
}

static const char *plugin_exchange(const void *out, struct ranks_blocks out_blocks, void *in,
                                   struct ranks_blocks in_blocks, struct ranks_request *ret)
{
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = MPI_Ialltoallv(out, out_blocks.bytes, out_blocks.at, MPI_BYTE, in,
                                    in_blocks.bytes, in_blocks.at, MPI_BYTE, comms[EXCHANGES], &r);
    return store_request(code, r, ret);
}

static const char *plugin_gather(void *data, struct ranks_blocks blocks, struct ranks_request *ret)
{
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, blocks.bytes,
                                     blocks.at, MPI_BYTE, comms[GATHERS], &r);
    return store_request(code, r, ret);
}

static const char *plugin_broadcast(void *data, int bytes, struct ranks_request *ret)
{
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = MPI_Ibcast(data, bytes, MPI_BYTE, 0, comms[OTHERS], &r);
    return store_request(code, r, ret);
}

static const char *plugin_test(struct ranks_request *request, int *done_ret)
{
    MPI_Request r = load_request(request);
    const int code = MPI_Test(&r, done_ret, MPI_STATUS_IGNORE);
    return store_request(code, r, request);
}

static void plugin_end_all(int exit_status)
{
    MPI_Abort(MPI_COMM_WORLD, exit_status);
}

__attribute__((visibility("default"))) ranks_plugin_entry attncl_ranks_plugin;

const struct ranks_plugin *attncl_ranks_plugin(void)
{
    static const struct ranks_plugin plugin = {.version = RANKS_PLUGIN_VERSION,
                                               .open = plugin_open,
                                               .close = plugin_close,
                                               .exchange = plugin_exchange,
                                               .gather = plugin_gather,
                                               .broadcast = plugin_broadcast,
                                               .test = plugin_test,
                                               .end_all = plugin_end_all};
    return &plugin;
}
