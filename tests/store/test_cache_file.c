// SPDX-License-Identifier: MIT
// Files of the program cache.  The driver executes what cache_entry_read() returns, so it must never
// return a modified entry.

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/private_dir.h"
#include "support/directory.h"
#include "support/test.h"

NO_DEVICE;

static const char *path;
static char file_path[FILE_BYTES];
static struct private_dir directory;
static const char key_text[] = "device, options, source";
static const struct bytes key = {key_text, sizeof key_text - 1};
static char payload_text[300];
static const struct bytes payload = {payload_text, sizeof payload_text};
static size_t heap_before;

static void open_directory(void)
{
    const char *why = NULL;

    ck_assert_msg(attncl__private_dir_open(path, true, &directory, &why), "%s", why);
}

static void set_up(void)
{
    char name[CACHE_NAME_BYTES];

    heap_before = attncl__alloc_live();
    path = directory_up();
    open_directory();
    for (size_t i = 0; i < sizeof payload_text; ++i)
        payload_text[i] = (char)(i * 7);
    attncl__cache_entry_make_name(key, name);
    directory_path(name, file_path);
}

static void tear_down(void)
{
    attncl__private_dir_close(&directory);
    directory_down();
    ck_assert_uint_eq(attncl__alloc_live(), heap_before);
}

static bool reads(void)
{
    void *got = NULL;
    size_t n = 0;
    const bool found = attncl__cache_entry_read(&directory, key, &got, &n);

    if (found) {
        ck_assert_uint_eq(n, payload.n);
        ck_assert_mem_eq(got, payload_text, n);
    } else {
        ck_assert_ptr_null(got);
    }
    attncl__free(got);
    return found;
}

static bool exists(void)
{
    struct stat st;
    return lstat(file_path, &st) == 0;
}

// The entry's file as bytes, and back.
static size_t slurp(char *data, size_t capacity)
{
    FILE *file = fopen(file_path, "rb");
    const size_t n = fread(data, 1, capacity, file);
    fclose(file);
    return n;
}

static void spit(const char *data, size_t n)
{
    unlink(file_path);
    const int fd = open(file_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, data, n), (ssize_t)n);
    close(fd);
}

FIXTURE(set_up, tear_down);

TEST(what_was_written_is_read)
{
    struct stat st;

    ck_assert(!reads());
    umask(0);
    ck_assert(attncl__cache_entry_write(&directory, key, payload));
    umask(022);
    ck_assert(reads());
    ck_assert_int_eq(stat(file_path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    attncl__cache_entry_remove(&directory, key);
    ck_assert(!exists());
    ck_assert(!reads());
}

TEST(every_changed_byte_is_seen)
{
    char good[1024];

    ck_assert(attncl__cache_entry_write(&directory, key, payload));
    const size_t n = slurp(good, sizeof good);
    ck_assert_uint_eq(n, 64 + key.n + payload.n);
    for (size_t i = 0; i < n; ++i)
        for (int bit = 0; bit < 8; bit += 7) {
            good[i] ^= (char)(1 << bit);
            spit(good, n);
            ck_assert_msg(!reads(), "byte %zu, bit %d", i, bit);
            ck_assert(!exists()); // a bad entry is removed
            good[i] ^= (char)(1 << bit);
        }
    spit(good, n);
    ck_assert(reads());
}

TEST(every_other_length_is_seen)
{
    char good[1024] = {0};

    ck_assert(attncl__cache_entry_write(&directory, key, payload));
    const size_t n = slurp(good, sizeof good);
    for (size_t i = 0; i < n + 40; ++i) {
        spit(good, i);
        ck_assert_msg(reads() == (i == n), "%zu of %zu bytes", i, n);
    }
}

TEST(another_key_under_this_name_is_refused)
{
    static const char other_text[] = "device, options, sourcE";
    const struct bytes other = {other_text, sizeof other_text - 1};
    char name[CACHE_NAME_BYTES], other_path[FILE_BYTES];

    ck_assert(attncl__cache_entry_write(&directory, other, payload));
    attncl__cache_entry_make_name(other, name);
    directory_path(name, other_path);
    ck_assert_int_eq(rename(other_path, file_path), 0);
    ck_assert(!reads());
}

TEST(files_of_the_wrong_kind_are_refused)
{
    char good[1024], link_path[FILE_BYTES];

    ck_assert(attncl__cache_entry_write(&directory, key, payload));
    const size_t n = slurp(good, sizeof good);

    chmod(file_path, 0620);
    ck_assert(!reads());
    spit(good, n);
    chmod(file_path, 0602);
    ck_assert(!reads());

    // A link to a file that is right in itself.
    spit(good, n);
    directory_path("elsewhere", link_path);
    ck_assert_int_eq(rename(file_path, link_path), 0);
    ck_assert_int_eq(symlink(link_path, file_path), 0);
    ck_assert(!reads());

    // A pipe without a writer must not block, a directory not confuse.
    unlink(file_path);
    ck_assert_int_eq(mkfifo(file_path, 0600), 0);
    ck_assert(!reads());
    unlink(file_path);
    ck_assert_int_eq(mkdir(file_path, 0700), 0);
    ck_assert(!reads());
    rmdir(file_path);

    if (geteuid() == 0) { // only root can give files away
        spit(good, n);
        ck_assert_int_eq(chown(file_path, 12345, (gid_t)-1), 0);
        ck_assert(!reads());
    }
}

TEST(directories_of_others_are_refused)
{
    struct private_dir f;
    const char *why = NULL;
    char link_path[FILE_BYTES], below[FILE_BYTES];

    chmod(path, 0770);
    ck_assert(!attncl__private_dir_open(path, true, &f, &why));
    ck_assert_ptr_nonnull(strstr(why, "others"));
    ck_assert_int_eq(f.fd, -1);
    chmod(path, 0700);

    directory_path("link", link_path);
    ck_assert_int_eq(symlink(path, link_path), 0);
    ck_assert(!attncl__private_dir_open(link_path, true, &f, &why));

    directory_path("a/b", below);
    ck_assert(!attncl__private_dir_open(below, false, &f, &why)); // read-only creates none
    struct stat st;
    umask(0);
    ck_assert(attncl__private_dir_open(below, true, &f, &why));
    umask(022);
    ck_assert_int_eq(stat(below, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0700);
    attncl__private_dir_close(&f);

    if (geteuid() == 0) {
        ck_assert_int_eq(chown(below, 12345, (gid_t)-1), 0);
        ck_assert(!attncl__private_dir_open(below, true, &f, &why));
        ck_assert_ptr_nonnull(strstr(why, "another user"));
    }
}

TEST(read_only_changes_nothing)
{
    struct private_dir reader = directory;
    char junk[100] = "junk";
    void *got = NULL;
    size_t n = 0;

    reader.writable = false;
    ck_assert(!attncl__cache_entry_write(&reader, key, payload));
    ck_assert(!exists());
    spit(junk, sizeof junk);
    ck_assert(!attncl__cache_entry_read(&reader, key, &got, &n));
    ck_assert(exists());
    attncl__cache_entry_remove(&reader, key);
    attncl__cache_evict(&reader, 0);
    ck_assert(exists());
}

// Makes entry `i` of 1000 bytes, used `age` seconds ago.
static void make_aged(int i, long age)
{
    char text[16], name[CACHE_NAME_BYTES];
    static const char kilo[1000];
    const struct timespec when[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    const struct bytes k = {text, (size_t)snprintf(text, sizeof text, "key %d", i)};

    ck_assert(attncl__cache_entry_write(&directory, k, (struct bytes){kilo, sizeof kilo}));
    attncl__cache_entry_make_name(k, name);
    ck_assert_int_eq(utimensat(directory.fd, name, when, 0), 0);
}

static bool has(int i)
{
    char text[16], name[CACHE_NAME_BYTES];
    struct stat st;
    const struct bytes k = {text, (size_t)snprintf(text, sizeof text, "key %d", i)};

    attncl__cache_entry_make_name(k, name);
    return fstatat(directory.fd, name, &st, 0) == 0;
}

TEST(trimming_keeps_what_was_used_last)
{
    static const char temp[] = "0123456789abcdef0123456789abcdef.tmp";
    static const char *const foreign[] = {"notes.txt", "x123456789abcdef0123456789abcdef.tmp"};
    const struct timespec old[2] = {{.tv_sec = time(NULL) - 7200}, {.tv_sec = time(NULL) - 7200}};
    const struct timespec recent[2] = {{.tv_sec = time(NULL) - 600}, {.tv_sec = time(NULL) - 600}};
    void *got = NULL;
    size_t n;
    struct stat st;

    for (int i = 0; i < 5; ++i)
        make_aged(i, 100 * (i + 1)); // 0 is the newest
    // Reading makes 4, the oldest, the newest.
    ck_assert(attncl__cache_entry_read(&directory, (struct bytes){"key 4", 5}, &got, &n));
    attncl__free(got);
    close(openat(directory.fd, temp, O_CREAT | O_WRONLY, 0600));
    ck_assert_int_eq(utimensat(directory.fd, temp, recent, 0), 0);
    attncl__cache_evict(&directory, 3 * 1100);
    ck_assert(has(4) && has(0) && has(1) && !has(2) && !has(3));
    ck_assert_int_eq(fstatat(directory.fd, temp, &st, 0), 0); // somebody may be writing it
    ck_assert_int_eq(utimensat(directory.fd, temp, old, 0), 0);
    for (int i = 0; i < 2; ++i) {
        close(openat(directory.fd, foreign[i], O_CREAT | O_WRONLY, 0600));
        ck_assert_int_eq(utimensat(directory.fd, foreign[i], old, 0), 0);
    }
    attncl__cache_evict(&directory, 0);
    ck_assert(!has(0) && !has(1) && !has(4));
    ck_assert_int_ne(fstatat(directory.fd, temp, &st, 0), 0);
    for (int i = 0; i < 2; ++i)
        ck_assert_int_eq(fstatat(directory.fd, foreign[i], &st, 0), 0); // not ours
}

static void *write_often(void *user)
{
    long bad = 0;

    (void)user;
    for (int i = 0; i < 50; ++i)
        bad += !attncl__cache_entry_write(&directory, key, payload);
    return (void *)bad;
}

TEST(writers_do_not_disturb_each_other)
{
    enum { WRITERS = 4 };
    pthread_t thread[WRITERS];
    void *bad;

    ck_assert(attncl__cache_entry_write(&directory, key, payload));
    for (int i = 0; i < WRITERS; ++i)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, write_often, NULL), 0);
    for (int i = 0; i < 100; ++i)
        ck_assert(reads());
    for (int i = 0; i < WRITERS; ++i) {
        pthread_join(thread[i], &bad);
        ck_assert_ptr_null(bad);
    }
    ck_assert(reads());
}
