// SPDX-License-Identifier: MIT
// Safetensors files on disk: opening things that are not regular files, atomic writing, round
// trips.

#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attncl/safetensors.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "support/directory.h"
#include "support/test.h"

NO_DEVICE;

static unsigned char elements[64 * 8];

static attncl_array array_of(const char *name, attncl_dtype dtype, int64_t extent)
{
    const size_t bytes = (size_t)extent * attncl__dtype_bits(dtype) / 8;
    return (attncl_array){name, dtype, 1, {extent}, elements, bytes};
}

// -- opening --

FIXTURE(directory_begin, directory_end);

TEST(what_is_no_file_is_refused)
{
    attncl_safetensors *got = NULL;
    const char *fifo = IN_DIRECTORY("fifo");
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);

    ck_fails(attncl_safetensors_open(IN_DIRECTORY("absent"), &got), ATTNCL_ERR_IO,
             "absent: No such file or directory");
    ck_fails(attncl_safetensors_open(IN_DIRECTORY("."), &got), ATTNCL_ERR_IO, "is a directory");
    ck_fails(attncl_safetensors_open(fifo, &got), ATTNCL_ERR_IO, "fifo: is no regular file");
    ck_fails(attncl_safetensors_open("/dev/zero", &got), ATTNCL_ERR_IO, "is no regular file");
    ck_fails(attncl_safetensors_open("", &got), ATTNCL_ERR_IO, "No such file");
    ck_fails(attncl_safetensors_open(NULL, &got), ATTNCL_ERR_ARGUMENT, "NULL");
    ck_assert_ptr_null(got);
}

TEST(a_damaged_file_is_refused_with_its_path)
{
    attncl_safetensors *got = NULL;
    directory_write_bytes("bad", "\2\0\0\0\0\0\0\0{]", 10);
    ck_fails(attncl_safetensors_open(IN_DIRECTORY("bad"), &got), ATTNCL_ERR_FORMAT,
             "/bad: no valid JSON");
    directory_write_bytes("empty", "", 0);
    ck_fails(attncl_safetensors_open(IN_DIRECTORY("empty"), &got), ATTNCL_ERR_FORMAT, "0 bytes");
    directory_write_bytes("long", "\2\0\0\0\0\0\0\0{}x", 11);
    ck_fails(attncl_safetensors_open(IN_DIRECTORY("long"), &got), ATTNCL_ERR_FORMAT,
             "the file has 1 bytes of data");
    ck_assert_ptr_null(got);
}

// A file that says, and has, 1 TiB costs no memory when its header is wrong.
TEST(files_of_other_formats_are_named)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"PK\3\4................archive/data.pkl",
         "a PyTorch checkpoint: convert it with attncl-convert"},
        {"PK\3\4................x.npy", "a NumPy archive (NPZ): save its arrays"},
        {"PK\3\4................word/document.xml", "a zip archive, not a safetensors file"},
        {"\x80\2\x8a\nl\xfc\x9c\x46\xf9 j", "a Python pickle, as old PyTorch checkpoints are"},
        {"\x80\4\x95..........", "a Python pickle: convert it with attncl-convert"},
        {"\x93NUMPY..............", "a NumPy array (NPY)"},
        {"GGUF\3...............", "a GGUF file"},
        {"\211HDF\r\n\032\n....", "an HDF5 file"},
        {"\x08\x08\x12\7pytorch\x1a..", "an ONNX model"},
        {"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"},
        {"<!DOCTYPE html>", "a web page"},
        {"{\"weight\": [1, 2]}", "a JSON text"},
        {"\x1f\x8b\x08...........", "compressed by gzip"},
        {"\x80\2", "a file of 2 bytes"},
        {"no tensors here", "a header of "},
    };
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        attncl_safetensors *got = NULL;
        directory_write("foreign", rows[i].text);
        ck_fails(attncl_safetensors_open(IN_DIRECTORY("foreign"), &got), ATTNCL_ERR_FORMAT,
                 rows[i].words);
        ck_fails(attncl_safetensors_parse(rows[i].text, strlen(rows[i].text), &got),
                 ATTNCL_ERR_FORMAT, rows[i].words);
        ck_assert_ptr_null(got);
    }
}

TEST(a_huge_file_is_judged_by_its_header_first)
{
    attncl_safetensors *got = NULL;
    directory_write_bytes("huge", "\2\0\0\0\0\0\0\0{}", 10);
    if (truncate(IN_DIRECTORY("huge"), INT64_C(1) << 40) != 0)
        return; // the file system has no sparse files
    ck_fails(attncl_safetensors_open(IN_DIRECTORY("huge"), &got), ATTNCL_ERR_FORMAT,
             "the tensors take 0 bytes");
    ck_assert_ptr_null(got);
}

// -- writing --

TEST(every_type_comes_back)
{
    static const attncl_dtype types[] = {
#define TYPE(name, value, bits) ATTNCL_##name,
        ATTNCL_DTYPE_LIST(TYPE)
#undef TYPE
    };
    enum { N = COUNT_OF(types) };
    attncl_array arrays[N + 2];
    attncl_safetensors *got = NULL;

    for (size_t i = 0; i < sizeof elements; ++i)
        elements[i] = (unsigned char)(i * 37);
    for (int i = 0; i < N; ++i)
        arrays[i] = array_of(attncl_dtype_name(types[i]), types[i], 4 * (i % 4 + 1));
    arrays[N] = (attncl_array){"scalar", ATTNCL_F32, 0, {0}, elements, 4};
    arrays[N + 1] = (attncl_array){"empty", ATTNCL_F32, 3, {2, 0, 3}, NULL, 0};
    ck_ok(attncl_safetensors_write(IN_DIRECTORY("f"), arrays, N + 2, NULL));
    ck_ok(attncl_safetensors_open(IN_DIRECTORY("f"), &got));

    ck_assert_uint_eq(attncl_safetensors_count(got), N + 2);
    for (int i = 0; i < N + 2; ++i) {
        const attncl_array *a = attncl_safetensors_find(got, arrays[i].name);
        ck_assert_ptr_nonnull(a);
        ck_assert_int_eq(a->dtype, arrays[i].dtype);
        ck_assert_int_eq(a->rank, arrays[i].rank);
        ck_assert_mem_eq(a->dim, arrays[i].dim, sizeof a->dim);
        ck_assert_uint_eq(a->bytes, arrays[i].bytes);
        if (a->bytes > 0)
            ck_assert_mem_eq(a->data, arrays[i].data, a->bytes);
        const size_t align = attncl_dtype_bytes(a->dtype) ? attncl_dtype_bytes(a->dtype) : 1;
        ck_assert_uint_eq((uintptr_t)a->data % align, 0);
    }
    attncl_safetensors_close(got);
}

TEST(names_and_metadata_of_any_text_come_back)
{
    const char *const metadata[] = {
        "attncl.arch", "lm", "attncl.vocab", "\n\t\"\\\x01\x7f/ \xc3\xa9\xf0\x9f\x98\x80", "", "",
        NULL};
    const attncl_array arrays[] = {array_of("layers.0.\"quoted\"\\", ATTNCL_U8, 3),
                                   array_of("\xc3\xa9t\xc3\xa9", ATTNCL_U8, 2)};
    attncl_safetensors *got = NULL;

    ck_ok(attncl_safetensors_write(IN_DIRECTORY("f"), arrays, 2, metadata));
    ck_ok(attncl_safetensors_open(IN_DIRECTORY("f"), &got));
    ck_assert_ptr_nonnull(attncl_safetensors_find(got, arrays[0].name));
    ck_assert_ptr_nonnull(attncl_safetensors_find(got, arrays[1].name));
    for (int i = 0; metadata[i]; i += 2)
        ck_assert_str_eq(attncl_safetensors_metadata(got, metadata[i]), metadata[i + 1]);
    attncl_safetensors_close(got);
}

TEST(the_file_is_ordered_by_width_then_name_and_padded)
{
    const attncl_array arrays[] = {array_of("c", ATTNCL_U8, 1), array_of("b", ATTNCL_F32, 1),
                                   array_of("a", ATTNCL_F32, 1), array_of("d", ATTNCL_F64, 1)};
    static const char header[] = "{\"d\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
                                 "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]},"
                                 "\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[16,17]}}";
    char bytes[1024];

    ck_ok(attncl_safetensors_write(IN_DIRECTORY("f"), arrays, 4, NULL));
    FILE *f = fopen(IN_DIRECTORY("f"), "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    const size_t padded = (sizeof header - 1 + 7) / 8 * 8;
    ck_assert_uint_eq(size, 8 + padded + 17);
    ck_assert_uint_eq((unsigned char)bytes[0] + 256u * (unsigned char)bytes[1], padded);
    ck_assert_mem_eq(bytes + 2, "\0\0\0\0\0\0", 6);
    ck_assert_mem_eq(bytes + 8, header, sizeof header - 1);
    for (size_t i = 8 + sizeof header - 1; i < 8 + padded; ++i)
        ck_assert_int_eq(bytes[i], ' ');
}

TEST(weights_in_8_and_4_bits_are_bytes_with_metadata)
{
    const attncl_dtype types[] = {ATTNCL_Q8, ATTNCL_Q4};
    const char *const taken[] = {ATTNCL_QUANTISED_KEY "w", "x", NULL};
    const char *const other[] = {"k", "v", NULL};
    unsigned char bytes[4096];

    for (size_t i = 0; i < sizeof bytes; ++i)
        bytes[i] = (unsigned char)(i * 37);
    for (int i = 0; i < 2; ++i) {
        attncl_safetensors *got = NULL;
        attncl_dtype dtype;
        int64_t dim[2];
        const attncl_array arrays[] = {
            attncl_array_make("w", types[i], 2, (const int64_t[]){17, 32}, bytes),
            array_of("v", ATTNCL_F32, 2)};
        ck_fails(attncl_safetensors_write(IN_DIRECTORY("f"), arrays, 2, taken), ATTNCL_ERR_ARGUMENT,
                 "metadata attncl.quantised.w is given twice");
        ck_ok(attncl_safetensors_write(IN_DIRECTORY("f"), arrays, 2, other));
        ck_ok(attncl_safetensors_open(IN_DIRECTORY("f"), &got));
        ck_ok(attncl_safetensors_quantised(got, "w", &dtype, dim));
        ck_assert_int_eq(dtype, types[i]);
        ck_assert_int_eq(dim[0], 17);
        ck_assert_int_eq(dim[1], 32);
        const attncl_array *w = attncl_safetensors_find(got, "w");
        ck_assert_int_eq(w->dtype, ATTNCL_U8);
        ck_assert_uint_eq(w->bytes, attncl_quantised_bytes(types[i], 17, 32));
        ck_assert_mem_eq(w->data, bytes, w->bytes);
        ck_ok(attncl_safetensors_quantised(got, "v", &dtype, dim));
        ck_assert_int_eq(dtype, ATTNCL_DTYPE_NONE);
        ck_assert_str_eq(attncl_safetensors_metadata(got, ATTNCL_QUANTISED_KEY "w"),
                         types[i] == ATTNCL_Q8 ? "q8 [17, 32]" : "q4 [17, 32]");
        attncl_safetensors_close(got);
    }
}

TEST(an_empty_set_is_sixteen_bytes)
{
    struct stat info;
    attncl_safetensors *got = NULL;
    ck_ok(attncl_safetensors_write(IN_DIRECTORY("f"), NULL, 0, NULL));
    ck_assert_int_eq(stat(IN_DIRECTORY("f"), &info), 0);
    ck_assert_int_eq(info.st_size, 16);
    ck_ok(attncl_safetensors_open(IN_DIRECTORY("f"), &got));
    attncl_safetensors_close(got);
}

// An array of two F32.
#define NAMED(text, words)                                                                         \
    {                                                                                              \
        {(text), ATTNCL_F32, 1, {2}, elements, 8}, (words)                                         \
    }
static char long_name[4098];
static const struct {
    attncl_array array;
    const char *words;
} bad_arrays[] = {
    NAMED(NULL, "without a name"),
    NAMED("", "without a name"),
    NAMED("__metadata__", "named __metadata__"),
    NAMED("a\nb", "control character"),
    NAMED("a\xc2\x9b", "control character"),
    NAMED("\xff", "not UTF-8"),
    NAMED("\xe2\x82", "not UTF-8"),
    NAMED("\xed\xa0\x80", "not UTF-8"),
    NAMED("\xf4\x90\x80\x80", "not UTF-8"),
    NAMED(long_name, "name of 4097 bytes"),
    {{"w", ATTNCL_F32, 1, {2}, elements, 7},
     "tensor w: 7 bytes are given, type and shape ask for 8"},
    {{"w", ATTNCL_F32, 1, {2}, NULL, 8}, "data is NULL"},
    {{"w", ATTNCL_F32, 9, {2}, elements, 8}, "rank 9"},
    {{"w", ATTNCL_F32, 1, {-1}, elements, 8}, "extent -1"},
    {{"w", ATTNCL_DTYPE_NONE, 1, {2}, elements, 8}, "element type 0"},
    {{"w", ATTNCL_F4, 1, {3}, elements, 8}, "no whole number"},
    {{"w", ATTNCL_Q8, 1, {32}, elements, 8}, "tensor w: Q8 has 1 axes, not 2"},
    {{"w", ATTNCL_Q8, 2, {1, 33}, elements, 8}, "tensor w: Q8 cannot have shape [1, 33]"},
    {{"w", ATTNCL_Q4, 2, {17, 32}, elements, 8}, "type and shape ask for 1152"},
};

TABLE_TEST(unusable_arrays_are_refused, bad_arrays)
{
    memset(long_name, 'n', sizeof long_name - 1);
    ck_fails(attncl_safetensors_write(IN_DIRECTORY("f"), &bad_arrays[_i].array, 1, NULL),
             ATTNCL_ERR_ARGUMENT, bad_arrays[_i].words);
    ck_assert_uint_eq(directory_entries(), 0);
}

static const struct {
    const char *metadata[5], *words;
} bad_metadata[] = {
    {{"k", NULL}, "metadata k has no value"},
    {{"k", "a", "k", "b", NULL}, "k is given twice"},
    {{"k", "\xff", NULL}, "not UTF-8"},
};

TABLE_TEST(unusable_metadata_is_refused, bad_metadata)
{
    const attncl_array twins[] = {array_of("w", ATTNCL_F32, 2), array_of("w", ATTNCL_U8, 2)};
    ck_fails(attncl_safetensors_write(IN_DIRECTORY("f"), NULL, 0, bad_metadata[_i].metadata),
             ATTNCL_ERR_ARGUMENT, bad_metadata[_i].words);
    ck_fails(attncl_safetensors_write(IN_DIRECTORY("f"), twins, 2, NULL), ATTNCL_ERR_ARGUMENT,
             "two tensors are named w");
    ck_assert_uint_eq(directory_entries(), 0);
}

// -- one tensor after another --

struct asked {
    attncl_status status; // of the second
    size_t n, order[4];
};

static attncl_status give_elements(void *user, size_t i, const void **data_ret)
{
    struct asked *asked = user;
    asked->order[asked->n++] = i;
    *data_ret = asked->n == 2 && asked->status == ATTNCL_OK ? NULL : elements + i;
    return asked->n == 2 ? asked->status : ATTNCL_OK;
}

TEST(what_a_source_gives_is_read_back_one_by_one)
{
    attncl_array arrays[] = {array_of("c", ATTNCL_U8, 1), array_of("b", ATTNCL_F32, 0),
                             array_of("a", ATTNCL_F32, 2)};
    struct asked asked = {.n = 0};
    attncl_safetensors *got = NULL;
    float a[2];

    for (int i = 0; i < 3; ++i)
        arrays[i].data = NULL;
    memset(elements, 0x11, sizeof elements);
    ck_ok(attncl_safetensors_write_from(IN_DIRECTORY("f"), arrays, 3, NULL, give_elements, &asked));
    ck_assert_uint_eq(asked.n, 3);
    ck_assert_uint_eq(asked.order[0], 2);
    ck_assert_uint_eq(asked.order[2], 0);
    ck_ok(attncl_safetensors_open_header(IN_DIRECTORY("f"), &got));
    ck_assert_ptr_null(attncl_safetensors_find(got, "a")->data);
    ck_ok(attncl_safetensors_read(got, "a", a, 8));
    ck_assert_mem_eq(a, elements + 2, 8);
    ck_ok(attncl_safetensors_check_finite(got));
    ck_fails(attncl_safetensors_read(got, "a", a, 4), ATTNCL_ERR_ARGUMENT,
             "tensor a has 8 bytes, not 4");
    ck_fails(attncl_safetensors_read(got, "x", a, 8), ATTNCL_ERR_ARGUMENT, "no tensor x");
    ck_assert_int_eq(truncate(IN_DIRECTORY("f"), 20), 0);
    ck_fails(attncl_safetensors_read(got, "a", a, 8), ATTNCL_ERR_IO, "");
    attncl_safetensors_close(got);
}

TEST(a_source_that_fails_leaves_the_old_file)
{
    const attncl_array arrays[] = {array_of("a", ATTNCL_F32, 2), array_of("b", ATTNCL_U8, 3)};
    struct asked none = {.n = 0}, failing = {.status = ATTNCL_ERR_IO};

    directory_write_bytes("f", "old", 3);
    ck_fails(
        attncl_safetensors_write_from(IN_DIRECTORY("f"), arrays, 2, NULL, give_elements, &failing),
        ATTNCL_ERR_IO, "f: tensor b: its source failed");
    ck_fails(
        attncl_safetensors_write_from(IN_DIRECTORY("f"), arrays, 2, NULL, give_elements, &none),
        ATTNCL_ERR_ARGUMENT, "f: tensor b: its source gave NULL");
    ck_assert_uint_eq(directory_entries(), 1);
    ck_assert_uint_eq(none.n, 2);
}

// -- nothing half-written --

TEST(a_failed_write_leaves_nothing_behind)
{
    const attncl_array a = array_of("w", ATTNCL_F32, 2);
    const char *directory = IN_DIRECTORY("directory"), *fifo = IN_DIRECTORY("fifo");
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);

    ck_fails(attncl_safetensors_write(IN_DIRECTORY("absent/f"), &a, 1, NULL), ATTNCL_ERR_IO,
             "absent/f: No such file or directory");
    ck_fails(attncl_safetensors_write(directory, &a, 1, NULL), ATTNCL_ERR_IO,
             "directory: is a directory");
    ck_fails(attncl_safetensors_write(fifo, &a, 1, NULL), ATTNCL_ERR_IO, "is no regular file");
    ck_fails(attncl_safetensors_write("/dev/null", &a, 1, NULL), ATTNCL_ERR_IO,
             "is no regular file");
    ck_fails(attncl_safetensors_write("", &a, 1, NULL), ATTNCL_ERR_IO, "No such file");
    if (geteuid() != 0) { // root writes everywhere
        ck_assert_int_eq(chmod(directory, 0500), 0);
        ck_fails(attncl_safetensors_write(IN_DIRECTORY("directory/f"), &a, 1, NULL), ATTNCL_ERR_IO,
                 "Permission denied");
    }
    ck_assert_uint_eq(directory_entries(), 2);
}

// A limit on file sizes stands for a full disk: the write stops in the middle.
TEST(a_write_that_fails_midway_keeps_the_old_file)
{
    const attncl_array small = array_of("w", ATTNCL_F32, 2), large = array_of("w", ATTNCL_F64, 64);
    const char *path = IN_DIRECTORY("f");
    attncl_safetensors *got = NULL;
    struct rlimit old, limit;

    ck_ok(attncl_safetensors_write(path, &small, 1, NULL));
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    limit = old;
    limit.rlim_cur = 300;
    // No assertion while the limit holds: Check writes every one to a file of its own.
    const int limited = setrlimit(RLIMIT_FSIZE, &limit);
    const attncl_status status = attncl_safetensors_write(path, &large, 1, NULL);
    const int restored = setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    ck_assert_int_eq(limited, 0);
    ck_assert_int_eq(restored, 0);

    ck_fails(status, ATTNCL_ERR_IO, "f: File too large");
    ck_assert_uint_eq(directory_entries(), 1);
    ck_ok(attncl_safetensors_open(path, &got));
    ck_assert_int_eq(attncl_safetensors_at(got, 0)->dtype, ATTNCL_F32);
    attncl_safetensors_close(got);
}

TEST(an_old_file_is_replaced_and_a_link_kept)
{
    const attncl_array a = array_of("w", ATTNCL_F32, 2);
    const char *link = IN_DIRECTORY("link"), *target = IN_DIRECTORY("target");
    struct stat info;
    attncl_safetensors *old = NULL;

    ck_ok(attncl_safetensors_write(target, NULL, 0, NULL));
    ck_assert_int_eq(symlink("target", link), 0);
    ck_ok(attncl_safetensors_open(link, &old));
    ck_ok(attncl_safetensors_write(link, &a, 1, NULL));
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(stat(target, &info), 0);
    ck_assert_int_gt(info.st_size, 16);
    ck_assert_uint_eq(attncl_safetensors_count(old), 0); // what was opened stays as it was
    ck_assert_uint_eq(directory_entries(), 2);
    attncl_safetensors_close(old);
}

TEST(a_link_that_leads_nowhere_yet_is_followed)
{
    const char *link = IN_DIRECTORY("link"), *inner = IN_DIRECTORY("inner"),
               *target = IN_DIRECTORY("target");
    struct stat info;

    ck_assert_int_eq(symlink("inner", link), 0);
    ck_assert_int_eq(symlink(target, inner), 0);
    ck_ok(attncl_safetensors_write(link, NULL, 0, NULL));
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(lstat(target, &info), 0);
    ck_assert(S_ISREG(info.st_mode));
    ck_assert_uint_eq(directory_entries(), 3);
}

TEST(a_link_into_no_directory_is_refused)
{
    const char *link = IN_DIRECTORY("link");
    struct stat info;

    ck_assert_int_eq(symlink("nowhere/target", link), 0);
    ck_fails(attncl_safetensors_write(link, NULL, 0, NULL), ATTNCL_ERR_IO, "No such file");
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_uint_eq(directory_entries(), 1);
}

TEST(the_new_file_has_the_usual_permissions)
{
    struct stat info;
    const mode_t old = umask(027);
    ck_ok(attncl_safetensors_write(IN_DIRECTORY("f"), NULL, 0, NULL));
    umask(old);
    ck_assert_int_eq(stat(IN_DIRECTORY("f"), &info), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0640);
}

TEST(a_name_of_the_longest_length_can_be_written)
{
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    ck_ok(attncl_safetensors_write(IN_DIRECTORY(name), NULL, 0, NULL));
    ck_assert_uint_eq(directory_entries(), 1);
}

TEST(short_memory_is_a_status_and_leaves_nothing)
{
    const size_t heap_before = attncl__alloc_live();
    const attncl_array arrays[] = {array_of("a", ATTNCL_F32, 2), array_of("b", ATTNCL_U8, 3)};
    const char *const metadata[] = {"k", "v", NULL};
    const char *path = IN_DIRECTORY("f");
    int n_failures = 0;

    for (size_t n = 1;; ++n) {
        attncl_safetensors *got = NULL;
        attncl__alloc_fail_at(n);
        attncl_status status = attncl_safetensors_write(path, arrays, 2, metadata);
        const int failed_writing = attncl__alloc_has_failed();
        if (status == ATTNCL_OK)
            status = attncl_safetensors_open(path, &got);
        const int fired = attncl__alloc_has_failed();
        attncl__alloc_fail_at(0);

        ck_assert_int_eq(status, fired ? ATTNCL_ERR_NO_MEMORY : ATTNCL_OK);
        ck_assert_uint_eq(directory_entries(), failed_writing ? 0 : 1);
        attncl_safetensors_close(got);
        ck_assert_uint_eq(attncl__alloc_live(), heap_before);
        unlink(path);
        if (!fired)
            break;
        ++n_failures;
    }
    ck_assert_int_ge(n_failures, 8);
}
