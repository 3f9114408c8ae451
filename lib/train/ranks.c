// SPDX-License-Identifier: MIT
//
// Opens and closes ranks.  The MPI plugin is loaded only if a launcher started more than one process, so
// that a single process needs no MPI.

#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "train/ranks.h"

static const char plugin_name[] = "libattncl_mpi.so";

// Longer than slow devices take to build their kernels or to encode a text.
enum { DEFAULT_TIMEOUT_S = 1800 };

// The number of ranks according to the launcher's environment: 0 if unknown, 1 without a launcher.
static int size_in_environment(const char **variable_ret)
{
    static const struct {
        enum env_var var;
        const char *name;
    } sizes[] = {{ENV_OMPI_COMM_WORLD_SIZE, "OMPI_COMM_WORLD_SIZE"}, {ENV_PMI_SIZE, "PMI_SIZE"}};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        const char *value = attncl__env_get(sizes[i].var);
        const long size = value ? strtol(value, NULL, 10) : 0;
        *variable_ret = sizes[i].name;
        if (size >= 1 && size <= INT_MAX)
            return (int)size;
    }
    *variable_ret = "PMIX_RANK";
    return attncl__env_get(ENV_PMIX_RANK) ? 0 : 1;
}

// The plugin's default path: the directory of the library, or of the program linked with it.
static void write_default_path(char *path, size_t bytes)
{
    Dl_info info;
    const char *file = dladdr((const void *)plugin_name, &info) ? info.dli_fname : NULL;
    const char *slash = file ? strrchr(file, '/') : NULL;

    snprintf(path, bytes, "%.*s%s", slash ? (int)(slash + 1 - file) : 0, slash ? file : "",
             plugin_name);
}

static attncl_status load_plugin(const char *variable, const struct ranks_plugin **ret)
{
    const char *given = attncl__env_get(ENV_MPI_PLUGIN);
    char path[4096];

    if (given)
        snprintf(path, sizeof path, "%s", given);
    else
        write_default_path(path, sizeof path);
    // RTLD_GLOBAL, since MPI's own plugins need its symbols; never closed, since MPI's threads stay.
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    REQUIRE(
        library, ATTNCL_ERR_UNSUPPORTED,
        "%s says that a launcher started this process, but the MPI plugin cannot be loaded: %s; "
        "it is built where CMake finds MPI, and ATTNCL_MPI_PLUGIN names another",
        variable, dlerror());
    ranks_plugin_entry *entry = NULL;
    void *symbol = dlsym(library, RANKS_PLUGIN_ENTRY);
    memcpy(&entry, &symbol, sizeof entry); // C has no cast from an object to a function
    REQUIRE(entry, ATTNCL_ERR_UNSUPPORTED, "%s is no MPI plugin of this library: it has no %s",
            path, RANKS_PLUGIN_ENTRY);
    const struct ranks_plugin *plugin = entry();
    REQUIRE(plugin->version == RANKS_PLUGIN_VERSION, ATTNCL_ERR_UNSUPPORTED,
            "%s is plugin version %d, this library takes version %d", path, plugin->version,
            RANKS_PLUGIN_VERSION);
    *ret = plugin;
    return ATTNCL_OK;
}

static attncl_status join_ranks(attncl_ranks *ranks)
{
    const char *variable = NULL;
    const int expected = size_in_environment(&variable);
    const struct ranks_plugin *plugin = NULL;

    ranks->place = (struct ranks_place){.size = 1, .local_size = 1};
    if (expected == 1)
        return ATTNCL_OK;
    TRY(attncl__env_check());
    const char *timeout = attncl__env_get(ENV_RANKS_TIMEOUT);
    ranks->timeout_s = timeout ? (int)strtol(timeout, NULL, 10) : DEFAULT_TIMEOUT_S;
    TRY(load_plugin(variable, &plugin));
    const char *failure = plugin->open(&ranks->place);
    REQUIRE(!failure, ATTNCL_ERR_STATE, "MPI: %s", failure);
    ranks->plugin = plugin;
    REQUIRE(expected == 0 || expected == ranks->place.size, ATTNCL_ERR_UNSUPPORTED,
            "%s says %d ranks, MPI says %d: the MPI plugin is built for another MPI than the "
            "launcher's",
            variable, expected, ranks->place.size);
    return ATTNCL_OK;
}

attncl_status attncl_ranks_open(attncl_ranks **ranks_ret)
{
    REQUIRE(ranks_ret, ATTNCL_ERR_ARGUMENT, "ranks_ret is NULL");

    attncl_status status = ATTNCL_OK;
    attncl_ranks *ranks = attncl__alloc_zero(sizeof *ranks);
    REQUIRE(ranks, ATTNCL_ERR_NO_MEMORY, "ranks");
    TRY_DONE(join_ranks(ranks));
    *ranks_ret = ranks;
    ranks = NULL;
done:
    attncl_ranks_close(ranks);
    return status;
}

void attncl_ranks_close(attncl_ranks *ranks)
{
    if (!ranks)
        return;
    // After a failure other ranks may wait elsewhere, and closing would wait for them forever.
    if (ranks->plugin && !ranks->has_failed && attncl_ranks_sum_wait(ranks, 0) == ATTNCL_OK)
        ranks->plugin->close();
    for (size_t i = 0; i < MAX_SUMS; ++i) {
        attncl__free(ranks->sum[i].pieces);
        attncl__free(ranks->sum[i].blocks);
    }
    attncl__free(ranks);
}

int attncl_ranks_rank(const attncl_ranks *ranks)
{
    return ranks ? ranks->place.rank : 0;
}

int attncl_ranks_size(const attncl_ranks *ranks)
{
    return ranks ? ranks->place.size : 1;
}

int attncl_ranks_local_rank(const attncl_ranks *ranks)
{
    return ranks ? ranks->place.local_rank : 0;
}

int attncl_ranks_local_size(const attncl_ranks *ranks)
{
    return ranks ? ranks->place.local_size : 1;
}

void attncl_ranks_abort(attncl_ranks *ranks)
{
    if (attncl__ranks_are_many(ranks))
        ranks->plugin->end_all(1);
}
