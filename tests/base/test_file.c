// SPDX-License-Identifier: MIT
// Whole files.  tests/io/test_safetensors_file.c tests more of them.

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "support/directory.h"
#include "support/test.h"

NO_DEVICE;

FIXTURE(directory_begin, directory_down);

TEST(parts_are_written_one_after_another)
{
    char all[8];
    int fd = -1;
    uint64_t bytes = 0;
    const struct bytes parts[] = {{"abc", 3}, {NULL, 0}, {"de", 2}};

    ck_ok(attncl__file_replace(IN_DIRECTORY("f"), parts, 3, false));
    ck_ok(attncl__file_open(IN_DIRECTORY("f"), &fd, &bytes));
    ck_assert_uint_eq(bytes, 5);
    ck_ok(attncl__file_read(fd, all, 5));
    ck_assert_mem_eq(all, "abcde", 5);
    ck_ok(attncl__file_read(fd, NULL, 0));
    ck_ok(attncl__file_check_size(fd, 5));
    attncl__file_close(&fd);
    attncl__file_close(&fd);
    ck_assert_int_eq(fd, -1);
    ck_assert_uint_eq(directory_entries(), 1);
}

TEST(a_change_while_reading_is_noticed)
{
    char all[8];
    int fd = -1;
    uint64_t bytes;

    directory_write_bytes("f", "abcdefgh", 8);
    ck_ok(attncl__file_open(IN_DIRECTORY("f"), &fd, &bytes));
    ck_assert_int_eq(truncate(IN_DIRECTORY("f"), 6), 0);
    ck_fails(attncl__file_check_size(fd, bytes), ATTNCL_ERR_IO, "had 8 bytes and has 6 now");
    ck_fails(attncl__file_read(fd, all, 8), ATTNCL_ERR_IO, "ended 2 bytes early");
    attncl__file_close(&fd);
}

TEST(a_failed_open_leaves_its_results)
{
    int fd = -1;
    uint64_t bytes = 7;
    ck_fails(attncl__file_open(IN_DIRECTORY("."), &fd, &bytes), ATTNCL_ERR_IO, "is a directory");
    ck_assert(fd == -1 && bytes == 7);
}
