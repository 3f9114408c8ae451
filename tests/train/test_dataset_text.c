// SPDX-License-Identifier: MIT
// Texts as training data: vocabulary, split, windows in each order, and what is refused.

#define _XOPEN_SOURCE 700 // utimensat
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/directory.h"
#include "support/test.h"
#include "train/dataset.h"

NO_DEVICE;

static struct dataset *opened(const char *text, const struct dataset_options *options)
{
    struct dataset *d = NULL;

    directory_write("text", text);
    ck_ok(attncl__dataset_open(&attncl__data_text, IN_DIRECTORY("text"), options, &d));
    return d;
}

static void refuse(const char *text, size_t bytes, const struct dataset_options *options,
                   const char *words)
{
    struct dataset *d = NULL;

    directory_write_bytes("text", text, bytes);
    ck_fails(attncl__dataset_open(&attncl__data_text, IN_DIRECTORY("text"), options, &d),
             ATTNCL_ERR_FORMAT, words);
    ck_assert_ptr_null(d);
}

static struct batch batch_of(struct dataset *d, enum dataset_split split, int64_t index)
{
    struct batch b = {0};

    ck_ok(attncl__dataset_batch(d, split, index, &b));
    ck_assert_uint_eq(b.n, 2);
    ck_assert_str_eq(b.array[0].name, "tokens");
    ck_assert_str_eq(b.array[1].name, "targets");
    return b;
}

static const int32_t *elements(const struct batch *b, size_t i)
{
    return b->array[i].data;
}

FIXTURE(directory_begin, directory_end);

TEST(the_vocabulary_is_the_sorted_characters)
{
    const struct dataset_options o = {.batch_size = 1, .seq_len = 4};
    struct dataset *d = opened("h\xc3\xa9 h\xf0\x9f\x98\x80", &o); // h e-acute space h U+1F600
    const char *value = NULL;
    int64_t source = 0, target = -1;

    ck_assert_str_eq(attncl__dataset_metadata(d, 0, &value), "attncl.vocab");
    ck_assert_str_eq(value, " h\xc3\xa9\xf0\x9f\x98\x80");
    ck_assert_ptr_null(attncl__dataset_metadata(d, 1, &value));
    attncl__dataset_vocabularies(d, &source, &target);
    ck_assert_int_eq(source, 4);
    ck_assert_int_eq(target, 0);
    ck_assert_int_eq(d->pad, -1);
    attncl__dataset_close(d);
}

TEST(a_given_vocabulary_gives_the_indices)
{
    const struct dataset_options o = {.batch_size = 1, .seq_len = 3, .vocabulary = "cxab"};
    struct dataset *d = opened("abca", &o);
    struct batch b = batch_of(d, SPLIT_TRAIN, 0);
    static const int32_t tokens[] = {2, 3, 0}, targets[] = {3, 0, 2};

    ck_assert_mem_eq(elements(&b, 0), tokens, sizeof tokens);
    ck_assert_mem_eq(elements(&b, 1), targets, sizeof targets);
    attncl__batch_free(&b);
    attncl__dataset_close(d);
    refuse("ab\xc3\xa9", 4, &o,
           "text: character '\xc3\xa9' (U+00E9) at byte 2 is not in the model's");
    refuse("ab\n", 3, &o, "character '' (U+000A) at byte 2");
    const struct dataset_options twice = {.batch_size = 1, .seq_len = 3, .vocabulary = "aba"};
    refuse("abab", 4, &twice, "attncl.vocab holds the character U+0061 twice");
}

// 10 or 11 targets: windows at 0, 3, 6.
LOOP_TEST(sequential_windows_are_side_by_side, 0, 2)
{
    const struct dataset_options o = {.batch_size = 2, .seq_len = 3};
    struct dataset *d = opened(_i == 0 ? "abcdefghijk" : "abcdefghijkl", &o);
    static const int32_t first[] = {0, 3, 1, 4, 2, 5}, second[] = {6, 0, 7, 1, 8, 2};

    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_TRAIN), 2);
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_VALID), 0);
    struct batch b = batch_of(d, SPLIT_TRAIN, 0);
    ck_assert_int_eq(b.array[0].dim[0], 3);
    ck_assert_int_eq(b.array[0].dim[1], 2);
    ck_assert_mem_eq(elements(&b, 0), first, sizeof first);
    for (size_t i = 0; i < 6; ++i)
        ck_assert_int_eq(elements(&b, 1)[i], first[i] + 1);
    attncl__batch_free(&b);
    b = batch_of(d, SPLIT_TRAIN, 1); // the epoch's end goes on with its first window
    ck_assert_mem_eq(elements(&b, 0), second, sizeof second);
    attncl__batch_free(&b);
    b = batch_of(d, SPLIT_TRAIN, 3);
    ck_assert_mem_eq(elements(&b, 0), first, sizeof first);
    attncl__batch_free(&b);
    attncl__dataset_close(d);
}

// 0, 1, 2 ... as characters U+0100 on, so that a token is its own position.
static void make_count(char *text, int n)
{
    for (int i = 0; i < n; ++i, text += 2) {
        text[0] = (char)(0xc4 + i / 64);
        text[1] = (char)(0x80 + i % 64);
    }
    *text = '\0';
}

// Each window of an epoch begins in [iT, iT + T), once for each i, at the place that the seed gives, and its targets
// follow its tokens.  Behind the last one there are three tokens.
TEST(a_shuffled_epoch_has_each_window_once)
{
    enum { N = 203, T = 4, WINDOWS = (N - 1) / T, B = 5 };
    const struct dataset_options o = {
        .batch_size = B, .seq_len = T, .order = ORDER_SHUFFLED, .seed = 11};
    char text[2 * N + 1];

    make_count(text, N);
    struct dataset *d = opened(text, &o);
    for (int epoch = 0; epoch < 2; ++epoch) {
        int seen[WINDOWS] = {0};
        for (int k = 0; k < WINDOWS / B; ++k) {
            const int first = epoch * WINDOWS + k * B;
            struct batch b = batch_of(d, SPLIT_TRAIN, first / B);
            for (int w = 0; w < B; ++w) {
                const int start = elements(&b, 0)[w], bound = start / T + 1 < WINDOWS ? T : 3;
                for (int t = 0; t < T; ++t) {
                    ck_assert_int_eq(elements(&b, 0)[t * B + w], start + t);
                    ck_assert_int_eq(elements(&b, 1)[t * B + w], start + t + 1);
                }
                ck_assert_int_eq(seen[start / T]++, 0);
                ck_assert_int_eq(start % T, attncl__order_offset(o.seed, bound, first + w));
            }
            attncl__batch_free(&b);
        }
    }
    attncl__dataset_close(d);
}

TEST(random_windows_reach_both_ends)
{
    enum { N = 20, T = 4, B = 8 };
    const struct dataset_options o = {
        .batch_size = B, .seq_len = T, .order = ORDER_RANDOM, .seed = 11};
    char text[2 * N + 1];
    int seen[N] = {0};

    make_count(text, N);
    struct dataset *d = opened(text, &o);
    for (int k = 0; k < 40; ++k) {
        struct batch b = batch_of(d, SPLIT_TRAIN, k);
        for (int w = 0; w < B; ++w)
            ++seen[elements(&b, 0)[w]];
        attncl__batch_free(&b);
    }
    for (int start = 0; start < N; ++start)
        ck_assert_int_eq(seen[start] > 0, start <= N - T - 1);
    attncl__dataset_close(d);
}

// A batch is that of a training with one length, its own.  Two batches are a step: it changes before batches 6 and 10.
LOOP_TEST(batches_of_a_length_are_those_of_it_alone, 0, 3)
{
    enum { N = 203, B = 3 };
    static const int64_t T[] = {4, 7, 5};
    struct dataset_options o = {.batch_size = B,
                                .seq_len = 7,
                                .order = (enum dataset_order)_i,
                                .seed = 11,
                                .accumulate = 2};
    char text[2 * N + 1];
    struct dataset *alone[3];

    make_count(text, N);
    for (int i = 0; i < 3; ++i) {
        o.seq_len = T[i];
        alone[i] = opened(text, &o);
    }
    o.seq_len = 7;
    o.lengths = (struct json_pairs){3, {{0, T[0]}, {3, T[1]}, {5, T[2]}}};
    struct dataset *d = opened(text, &o);
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_TRAIN), (N - 1) / 7 / B + 1);
    for (int k = 0; k < 40; ++k) {
        const int i = k < 6 ? 0 : k < 10 ? 1 : 2;
        struct batch a = batch_of(d, SPLIT_TRAIN, k), b = batch_of(alone[i], SPLIT_TRAIN, k);
        ck_assert_int_eq(a.array[0].dim[0], T[i]);
        for (int j = 0; j < 2; ++j) {
            ck_assert_uint_eq(a.array[j].bytes, b.array[j].bytes);
            ck_assert_mem_eq(a.array[j].data, b.array[j].data, a.array[j].bytes);
        }
        attncl__batch_free(&a);
        attncl__batch_free(&b);
    }
    for (int i = 0; i < 3; ++i)
        attncl__dataset_close(alone[i]);
    attncl__dataset_close(d);
}

// Held out are the last 0.3: tokens 14 to 19.  Targets 15 .. 19: a window of 2 in a batch of 2, and the
// token that is left.
TEST(held_out_targets_come_once)
{
    enum { N = 20 };
    const struct dataset_options o = {
        .batch_size = 2, .seq_len = 5, .valid_len = 2, .valid_fraction = 0.3};
    char text[2 * N + 1];

    make_count(text, N);
    struct dataset *d = opened(text, &o);
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_VALID), 2);
    struct batch b = batch_of(d, SPLIT_VALID, 0);
    static const int32_t first[] = {14, 16, 15, 17};
    ck_assert_int_eq(b.array[0].dim[0], 2);
    ck_assert_int_eq(b.array[0].dim[1], 2);
    ck_assert_mem_eq(elements(&b, 0), first, sizeof first);
    attncl__batch_free(&b);
    b = batch_of(d, SPLIT_VALID, 1);
    ck_assert_int_eq(b.array[0].dim[0], 1);
    ck_assert_int_eq(b.array[0].dim[1], 1);
    ck_assert_int_eq(elements(&b, 1)[0], 19);
    attncl__batch_free(&b);
    ck_fails(attncl__dataset_batch(d, SPLIT_VALID, 2, &b), ATTNCL_ERR_ARGUMENT,
             "batch 2 is asked for, there are 2");
    attncl__dataset_close(d);
}

// Every length and batch size, with and without whole windows: each target but the first once.
LOOP_TEST(held_out_targets_come_once_at_all_sizes, 2, 14)
{
    enum { N = 40 };
    char text[2 * N + 1];

    make_count(text, N);
    for (int B = 1; B < 5; ++B)
        for (int T = 1; T < 7; ++T) {
            const struct dataset_options o = {
                .batch_size = B, .seq_len = T, .valid_fraction = (_i - 0.5) / N};
            struct dataset *d = opened(text, &o);
            int next = N - _i;
            for (int64_t k = 0; k < attncl__dataset_count(d, SPLIT_VALID); ++k) {
                struct batch b = batch_of(d, SPLIT_VALID, k);
                const int length = (int)b.array[0].dim[0], n = (int)b.array[0].dim[1];
                for (int w = 0; w < n; ++w)
                    for (int t = 0; t < length; ++t, ++next) {
                        ck_assert_int_eq(elements(&b, 0)[t * n + w], next);
                        ck_assert_int_eq(elements(&b, 1)[t * n + w], next + 1);
                    }
                attncl__batch_free(&b);
            }
            ck_assert_int_eq(next, N - 1);
            attncl__dataset_close(d);
        }
}

// tiny shakespeare's 1,115,394 characters give 1,003,854 and 111,540; windows are found far into a text
// whose characters have one to four bytes.
TEST(long_texts_are_cut_as_published)
{
    enum { N = 1115394, TRAIN = 1003854, T = 256 };
    static const char *const kinds[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "b"};
    const struct dataset_options o = {.batch_size = 32, .seq_len = T, .valid_fraction = 0.1};
    static const int32_t index[] = {0, 2, 3, 4, 1}; // by code
    char *text = malloc(4 * (size_t)N + 1), *at = text;

    for (int i = 0; i < N; ++i)
        for (const char *c = kinds[i % 5]; *c; ++c)
            *at++ = *c;
    *at = '\0';
    struct dataset *d = opened(text, &o);
    free(text);
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_TRAIN), ((TRAIN - 1) / T + 31) / 32);
    struct batch b = batch_of(d, SPLIT_TRAIN, 100);
    for (int w = 0; w < 32; ++w)
        for (int t = 0; t < T; ++t)
            ck_assert_int_eq(elements(&b, 0)[t * 32 + w], index[((3200 + w) * T + t) % 5]);
    attncl__batch_free(&b);
    b = batch_of(d, SPLIT_VALID, 0);
    ck_assert_int_eq(elements(&b, 0)[0], index[TRAIN % 5]);
    attncl__batch_free(&b);
    attncl__dataset_close(d);
}

TEST(bad_texts_are_refused)
{
    const struct dataset_options o = {.batch_size = 1, .seq_len = 8, .valid_fraction = 0.1};
    struct dataset *d = NULL;

    refuse("", 0, &o, "text: is empty");
    refuse("abcdefgh", 8, &o, "7 characters to train on, a window of seq_len 8 needs 9");
    refuse("abcdefghij", 10, &o, "valid_fraction 0.1 holds out 1 of 10 characters, at least 2");
    refuse("abcdefghijklmno\xc3(", 17, &o, "text: is not UTF-8 at byte 15");
    refuse("abcdefghijklmno\xe2\x82", 17, &o, "is not UTF-8 at byte 15");
    refuse("abcdefgh\0jklmnopq", 17, &o, "a zero byte at byte 8");
    ck_fails(attncl__dataset_open(&attncl__data_text, IN_DIRECTORY("absent"), &o, &d),
             ATTNCL_ERR_IO, "absent: No such file");
    ck_fails(attncl__dataset_open(&attncl__data_text, IN_DIRECTORY("."), &o, &d), ATTNCL_ERR_IO,
             "is a directory");
}

// A mistake in the second chunk of the pass over the text.
TEST(positions_count_from_the_files_begin)
{
    enum { AT = 100001, N = AT + 10 };
    const struct dataset_options o = {.batch_size = 1, .seq_len = 8};
    char *text = malloc(N);

    for (int i = 0; i < N; ++i) // two bytes each, so that a chunk's end cuts one
        text[i] = i == 0 ? 'a' : i % 2 ? '\xc3' : '\xa9';
    text[AT] = '\xff';
    refuse(text, N, &o, "is not UTF-8 at byte 100001");
    free(text);
}

static void set_time(time_t seconds)
{
    const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};

    ck_assert_int_eq(utimensat(AT_FDCWD, IN_DIRECTORY("text"), times, 0), 0);
}

TEST(a_change_of_the_file_is_noticed)
{
    const struct dataset_options o = {.batch_size = 1, .seq_len = 3};
    struct dataset *d = opened("abcdefgh", &o);
    const uint64_t hash = attncl__dataset_hash(d);
    struct batch b = {0};

    set_time(1000); // another time, the same text
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b));
    attncl__batch_free(&b);
    directory_write("text", "abcdefhg");
    set_time(1000); // another file, of the time and size that the first had
    ck_assert_int_eq(rename(IN_DIRECTORY("text"), IN_DIRECTORY("other")), 0);
    directory_write("text", "abcdefgh");
    set_time(1000);
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b));
    attncl__batch_free(&b);
    ck_assert_int_eq(rename(IN_DIRECTORY("other"), IN_DIRECTORY("text")), 0);
    ck_fails(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b), ATTNCL_ERR_IO,
             "text: has another content now: changed while in use");
    directory_write("text", "abcdefghi");
    ck_fails(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b), ATTNCL_ERR_IO,
             "had 8 bytes and has 9 now");
    directory_write("text", "");
    ck_fails(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b), ATTNCL_ERR_IO, "changed while in use");
    directory_write("text", "abcdefgh");
    ck_assert_int_eq(unlink(IN_DIRECTORY("text")), 0);
    ck_fails(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b), ATTNCL_ERR_IO, "No such file");
    directory_write("text", "abcdefgh"); // the same text in a new file
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b));
    attncl__batch_free(&b);
    ck_assert_uint_eq(attncl__dataset_hash(d), hash);
    attncl__dataset_close(d);
    d = opened("abcdefhg", &o);
    ck_assert_uint_ne(attncl__dataset_hash(d), hash);
    attncl__dataset_close(d);
}
