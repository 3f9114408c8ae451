// SPDX-License-Identifier: MIT

#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/temp.h"
#include "support/test.h"

enum { N_PATHS = 16 };

static char folder[PATH_MAX];
static char paths[N_PATHS][PATH_MAX + NAME_MAX + 2];
static int n_paths;

void temp_up(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/attncl-test-XXXXXX", base && *base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    n_paths = 0;
}

// Calls `visit` for each entry's full path.
static size_t each_entry(int (*visit)(const char *))
{
    char path[PATH_MAX + NAME_MAX + 2];
    size_t n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        ++n;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (visit)
            visit(path);
    }
    closedir(d);
    return n;
}

void temp_down(void)
{
    each_entry(remove);
    rmdir(folder);
}

const char *temp_path(const char *name)
{
    ck_assert_int_lt(n_paths, N_PATHS);
    snprintf(paths[n_paths], sizeof paths[0], "%s/%s", folder, name);
    return paths[n_paths++];
}

void temp_write(const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(temp_path(name), "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
}

size_t temp_count(void)
{
    return each_entry(NULL);
}
