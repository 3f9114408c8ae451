// SPDX-License-Identifier: MIT
//
// Eviction of program cache files, least recently used first.

#define _GNU_SOURCE // O_DIRECTORY and the *at functions together with C11
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "store/private_dir.h"

enum { TEMP_LIFE_SECONDS = 3600 };

struct found {
    char name[CACHE_NAME_BYTES];
    uint64_t bytes;
    struct timespec used;
};

static int oldest_first(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

// Files with other names are never touched.
static bool is_ours(const char *name, size_t n_digits, const char *end)
{
    return strspn(name, "0123456789abcdef") >= n_digits && strcmp(name + n_digits, end) == 0;
}

// Lists the entries and removes abandoned temporary files.
static size_t list_entries(int fd, DIR *dir, struct found **ret)
{
    const time_t now = time(NULL);
    const struct dirent *entry;
    struct found *list = NULL;
    size_t n = 0, capacity = 0;
    struct stat st;

    while ((entry = readdir(dir))) {
        const bool temp = is_ours(entry->d_name, 32, ".tmp");

        if (!temp && !is_ours(entry->d_name, 64, ".program"))
            continue;
        if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (temp) {
            if (now - st.st_mtime > TEMP_LIFE_SECONDS)
                unlinkat(fd, entry->d_name, 0);
            continue;
        }
        struct found *grown = attncl__grow_list(list, n, &capacity, sizeof *grown);
        if (!grown)
            break;
        list = grown;
        strcpy(list[n].name, entry->d_name);
        list[n].bytes = (uint64_t)st.st_size;
        list[n].used = st.st_mtim;
        ++n;
    }
    *ret = list;
    return n;
}

void attncl__cache_evict(const struct private_dir *directory, uint64_t cap_bytes)
{
    struct found *list = NULL;
    uint64_t total = 0;

    if (!directory->writable)
        return;
    const int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    const size_t n = list_entries(directory->fd, dir, &list);
    if (n > 0)
        qsort(list, n, sizeof *list, oldest_first);
    for (size_t i = 0; i < n; ++i)
        total += list[i].bytes;
    for (size_t i = 0; i < n && total > cap_bytes; ++i) {
        unlinkat(directory->fd, list[i].name, 0);
        total -= list[i].bytes;
    }
    attncl__free(list);
    closedir(dir);
}
