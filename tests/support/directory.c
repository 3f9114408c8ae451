// SPDX-License-Identifier: MIT
//
// Temporary directories.

#define _GNU_SOURCE // nftw
#include <check.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/directory.h"

enum { MAX_OPEN = 16 };

static char directory[DIRECTORY_BYTES];
static size_t n_files, n_entries, heap_before;

const char *directory_up(void)
{
    strcpy(directory, "/tmp/attncl-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    return directory;
}

void directory_begin(void)
{
    heap_before = attncl__alloc_live();
    directory_up();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void directory_down(void)
{
    ck_assert_int_eq(nftw(directory, remove_one, MAX_OPEN, FTW_DEPTH | FTW_PHYS), 0);
}

void directory_end(void)
{
    directory_down();
    ck_assert_uint_eq(attncl__alloc_live(), heap_before);
}

const char *directory_path(const char *name, char path[FILE_BYTES])
{
    ck_assert_int_lt(snprintf(path, FILE_BYTES, "%s/%s", directory, name), FILE_BYTES);
    return path;
}

void directory_write_bytes(const char *name, const void *data, size_t bytes)
{
    char path[FILE_BYTES];

    directory_path(name, path);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, bytes, file), bytes);
    ck_assert_int_eq(fclose(file), 0);
}

void directory_write(const char *name, const char *text)
{
    directory_write_bytes(name, text, strlen(text));
}

void directory_empty(const char *name)
{
    char path[FILE_BYTES];
    DIR *opened = opendir(directory_path(name, path));

    ck_assert_ptr_nonnull(opened);
    for (const struct dirent *entry; (entry = readdir(opened)) != NULL;)
        if (*entry->d_name != '.')
            ck_assert_int_eq(unlinkat(dirfd(opened), entry->d_name, 0), 0);
    closedir(opened);
}

static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path;
    (void)type;
    n_files += S_ISREG(st->st_mode) != 0;
    n_entries += ftw->level == 1;
    return 0;
}

static void count(void)
{
    n_files = n_entries = 0;
    ck_assert_int_eq(nftw(directory, count_one, MAX_OPEN, FTW_PHYS), 0);
}

size_t directory_count(void)
{
    count();
    return n_files;
}

size_t directory_entries(void)
{
    count();
    return n_entries;
}
