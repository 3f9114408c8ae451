// SPDX-License-Identifier: MIT

#define _GNU_SOURCE // nftw

#include "harness/directory.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

// Drivers keep programs in the user's home.  There they would be found again in the next run, and
// what is compiled once to be timed would stay for ever.
static bool move_caches(const char *path)
{
    static const char *const variables[] = {"POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR",
                                            "CUDA_CACHE_PATH", "NEO_CACHE_DIR"};
    bool done = true;

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; ++i) {
        char sub[300];

        snprintf(sub, sizeof sub, "%s/%s", path, variables[i]);
        done = done && mkdir(sub, 0700) == 0 && setenv(variables[i], sub, 1) == 0;
    }
    return done;
}

bool directory_make(struct directory *f)
{
    const char *base = getenv("TMPDIR");
    const int n =
        snprintf(f->path, sizeof f->path, "%s/attncl-bench-XXXXXX", base && *base ? base : "/tmp");

    if (n >= (int)sizeof f->path || !mkdtemp(f->path) || !move_caches(f->path)) {
        perror("attncl-bench: a temporary directory for programs");
        directory_remove(f);
        return false;
    }
    return true;
}

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
    (void)s, (void)type, (void)ftw;
    return remove(path);
}

void directory_remove(struct directory *f)
{
    if (f->path[0])
        nftw(f->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    f->path[0] = '\0';
}
