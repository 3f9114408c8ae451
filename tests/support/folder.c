// SPDX-License-Identifier: MIT
//
// Temporary folders.

#define _GNU_SOURCE // nftw
#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/folder.h"

enum { MOST_OPEN = 16 };

static char folder[FOLDER_BYTES];
static size_t n_files;

const char *folder_up(void)
{
    strcpy(folder, "/tmp/attncl-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    return folder;
}

void folder_begin(void)
{
    folder_up();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void folder_down(void)
{
    ck_assert_int_eq(nftw(folder, remove_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS), 0);
}

const char *folder_path(const char *name, char path[FILE_BYTES])
{
    ck_assert_int_lt(snprintf(path, FILE_BYTES, "%s/%s", folder, name), FILE_BYTES);
    return path;
}

void folder_write_bytes(const char *name, const void *data, size_t bytes)
{
    char path[FILE_BYTES];

    folder_path(name, path);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, bytes, file), bytes);
    ck_assert_int_eq(fclose(file), 0);
}

void folder_write(const char *name, const char *text)
{
    folder_write_bytes(name, text, strlen(text));
}

static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path;
    (void)type;
    (void)ftw;
    n_files += S_ISREG(st->st_mode) != 0;
    return 0;
}

size_t folder_count(void)
{
    n_files = 0;
    ck_assert_int_eq(nftw(folder, count_one, MOST_OPEN, FTW_PHYS), 0);
    return n_files;
}

static int count_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path;
    (void)st;
    (void)type;
    n_files += ftw->level == 1;
    return 0;
}

size_t folder_entries(void)
{
    n_files = 0;
    ck_assert_int_eq(nftw(folder, count_entry, MOST_OPEN, FTW_PHYS), 0);
    return n_files;
}
