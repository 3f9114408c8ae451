// SPDX-License-Identifier: MIT
// Token ids and ready batches of safetensors files as training data; datasets of all kinds in short memory.

#include <string.h>

#include "attncl/safetensors.h"
#include "base/alloc.h"
#include "support/directory.h"
#include "support/test.h"
#include "train/dataset.h"

NO_DEVICE;

static int32_t ids[64];
static int64_t wide[64];

static attncl_array of_i32(const char *name, int rank, int64_t a, int64_t b, int64_t c)
{
    const size_t n = (size_t)(a * (rank > 1 ? b : 1) * (rank > 2 ? c : 1));
    return (attncl_array){name, ATTNCL_I32, rank, {a, b, c}, ids, n * sizeof *ids};
}

static attncl_array of_i64(const char *name, int64_t n)
{
    return (attncl_array){name, ATTNCL_I64, 1, {n}, wide, (size_t)n * sizeof *wide};
}

static void write_arrays(const attncl_array *arrays, size_t n)
{
    ck_ok(attncl_safetensors_write(IN_DIRECTORY("data"), arrays, n, NULL));
}

static const struct dataset_options plain = {.batch_size = 1, .seq_len = 3};

static void refuse_tokens(attncl_status status, const char *words)
{
    struct dataset *d = NULL;

    ck_fails(attncl__dataset_open(&attncl__data_tokens, IN_DIRECTORY("data"), &plain, &d), status,
             words);
    ck_assert_ptr_null(d);
}

static void refuse_batches(attncl_status status, const char *words)
{
    struct dataset *d = NULL;

    ck_fails(attncl__dataset_open(&attncl__data_batches, IN_DIRECTORY("data"), &plain, &d), status,
             words);
    ck_assert_ptr_null(d);
}

static void count_up(void)
{
    for (int i = 0; i < 64; ++i)
        wide[i] = ids[i] = i;
}

FIXTURE(directory_begin, directory_end);

TEST(tokens_of_any_integers)
{
    const attncl_array arrays[] = {of_i64("tokens", 10)};
    const struct dataset_options o = {.batch_size = 2, .seq_len = 2, .valid_fraction = 0.25};
    struct dataset *d = NULL;
    struct batch b = {0};
    int64_t source, target;

    count_up();
    write_arrays(arrays, 1);
    ck_ok(attncl__dataset_open(&attncl__data_tokens, IN_DIRECTORY("data"), &o, &d));
    attncl__dataset_vocabularies(d, &source, &target);
    ck_assert_int_eq(source, 10);
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_TRAIN), 2); // 7 tokens, 3 windows
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_VALID), 1); // 3 tokens, 2 targets
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b));
    static const int32_t tokens[] = {0, 2, 1, 3};
    ck_assert_mem_eq(b.array[0].data, tokens, sizeof tokens);
    attncl__batch_free(&b);
    ck_assert_ptr_null(attncl__dataset_metadata(d, 0, &(const char *){NULL}));
    attncl__dataset_close(d);
}

TEST(bad_tokens_are_refused)
{
    attncl_array array = of_i64("tokens", 10);

    count_up();
    wide[4] = -3;
    write_arrays(&array, 1);
    refuse_tokens(ATTNCL_ERR_FORMAT, "data: tokens: element 4 is -3, no token");
    wide[4] = INT64_C(1) << 40;
    write_arrays(&array, 1);
    refuse_tokens(ATTNCL_ERR_ARGUMENT, "tokens");
    array = of_i32("token", 1, 10, 0, 0);
    write_arrays(&array, 1);
    refuse_tokens(ATTNCL_ERR_FORMAT, "holds no array \"tokens\"");
    array = of_i32("tokens", 2, 2, 5, 0);
    write_arrays(&array, 1);
    refuse_tokens(ATTNCL_ERR_FORMAT, "tokens has 2 axes, 1 is expected");
    array = of_i32("tokens", 1, 3, 0, 0);
    write_arrays(&array, 1);
    refuse_tokens(ATTNCL_ERR_FORMAT, "3 tokens to train on, a window of seq_len 3 needs 4");
    array = of_i32("tokens", 1, 10, 0, 0);
    array.dtype = ATTNCL_F32;
    write_arrays(&array, 1);
    refuse_tokens(ATTNCL_ERR_FORMAT, "tokens is not of integers");
    directory_write("data", "12345678 no such file");
    refuse_tokens(ATTNCL_ERR_FORMAT, "data");
}

TEST(ready_batches_of_a_text)
{
    const attncl_array arrays[] = {of_i32("tokens", 3, 2, 3, 4), of_i32("targets", 3, 2, 3, 4)};
    struct dataset *d = NULL;
    struct batch b = {0};

    count_up();
    write_arrays(arrays, 2);
    ck_ok(attncl__dataset_open(&attncl__data_batches, IN_DIRECTORY("data"), &plain, &d));
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_TRAIN), 2);
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_VALID), 0);
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 1, &b));
    ck_assert_uint_eq(b.n, 2);
    ck_assert_int_eq(b.array[1].dim[0], 3);
    ck_assert_int_eq(b.array[1].dim[1], 4);
    ck_assert_mem_eq(b.array[0].data, ids + 12, 12 * sizeof *ids);
    attncl__batch_free(&b);
    ck_fails(attncl__dataset_batch(d, SPLIT_TRAIN, 2, &b), ATTNCL_ERR_ARGUMENT,
             "batch 2 is asked for, there are 2");
    attncl__dataset_close(d);
}

TEST(ready_batches_of_pairs)
{
    attncl_array arrays[] = {of_i32("enc_X", 3, 2, 3, 4), of_i32("dec_X", 3, 2, 3, 5),
                             of_i32("targets", 3, 2, 3, 5), of_i32("enc_valid_lens", 2, 2, 3, 0)};
    arrays[3].data = ids + 58; // larger than any token
    struct dataset *d = NULL;
    struct batch b = {0};
    int64_t source, target;

    count_up();
    for (size_t n = 3; n <= 4; ++n) {
        write_arrays(arrays, n);
        ck_ok(attncl__dataset_open(&attncl__data_batches, IN_DIRECTORY("data"), &plain, &d));
        attncl__dataset_vocabularies(d, &source, &target);
        ck_assert_int_eq(source, 24);
        ck_assert_int_eq(target, 30);
        ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 1, &b));
        ck_assert_uint_eq(b.n, n);
        ck_assert_str_eq(b.array[n - 1].name, "targets");
        ck_assert_mem_eq(b.array[n - 1].data, ids + 15, 15 * sizeof *ids);
        attncl__batch_free(&b);
        attncl__dataset_close(d);
    }
    directory_write("pairs", "a\tb\n"); // in place of which they have more words
    ck_ok(attncl__dataset_open(&attncl__data_pairs, IN_DIRECTORY("pairs"), &plain, &d));
    ck_ok(attncl__dataset_use_batches(d, IN_DIRECTORY("data")));
    attncl__dataset_vocabularies(d, &source, &target);
    ck_assert(source == 24 && target == 30);
    attncl__dataset_close(d);
}

// A target for each sequence, or each word.
TEST(ready_batches_of_labels)
{
    const attncl_array arrays[] = {of_i32("tokens", 3, 2, 3, 4), of_i32("targets", 2, 2, 3, 0)};
    const struct dataset_options class = {.batch_size = 1, .seq_len = 3, .pair_form = PAIR_CLASS};
    const struct dataset_options tags = {.batch_size = 1, .seq_len = 3, .pair_form = PAIR_TAGS};
    struct dataset *d = NULL;

    write_arrays(arrays, 2);
    ck_ok(attncl__dataset_open(&attncl__data_batches, IN_DIRECTORY("data"), &class, &d));
    attncl__dataset_close(d);
    ck_fails(attncl__dataset_open(&attncl__data_batches, IN_DIRECTORY("data"), &tags, &d),
             ATTNCL_ERR_FORMAT, "holds no array \"targets\" of 3 axes");
}

// The text's vocabulary and held-out part, the file's batches.
TEST(ready_batches_replace_those_of_a_text)
{
    const attncl_array arrays[] = {of_i32("tokens", 3, 2, 3, 4), of_i32("targets", 3, 2, 3, 4)};
    const struct dataset_options o = {.batch_size = 2, .seq_len = 2, .valid_fraction = 0.5};
    struct dataset *d = NULL;
    struct batch b = {0};
    int64_t source, target;

    count_up();
    write_arrays(arrays, 2);
    directory_write("text", "abcabcabcabc");
    ck_ok(attncl__dataset_open(&attncl__data_text, IN_DIRECTORY("text"), &o, &d));
    const uint64_t hash = attncl__dataset_hash(d);
    ck_fails(attncl__dataset_use_batches(d, IN_DIRECTORY("absent")), ATTNCL_ERR_IO, "absent");
    ck_assert_uint_eq(attncl__dataset_hash(d), hash);
    ck_ok(attncl__dataset_use_batches(d, IN_DIRECTORY("data")));
    ck_assert_uint_ne(attncl__dataset_hash(d), hash);
    attncl__dataset_vocabularies(d, &source, &target);
    ck_assert_int_eq(source, 24);
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_TRAIN), 2);
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_VALID), 2);
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 1, &b));
    ck_assert_mem_eq(b.array[0].data, ids + 12, 12 * sizeof *ids);
    attncl__batch_free(&b);
    ck_ok(attncl__dataset_batch(d, SPLIT_VALID, 0, &b));
    ck_assert_int_eq(b.array[0].dim[0], 2);
    attncl__batch_free(&b);
    ck_fails(attncl__dataset_batch(d, SPLIT_TRAIN, 2, &b), ATTNCL_ERR_ARGUMENT,
             "batch 2 is asked for, there are 2");
    attncl__dataset_close(d);
}

TEST(bad_batches_are_refused)
{
    attncl_array arrays[] = {of_i32("tokens", 3, 2, 3, 4), of_i32("targets", 3, 2, 3, 5)};

    count_up();
    write_arrays(arrays, 2);
    refuse_batches(ATTNCL_ERR_SHAPE, "axis 2 of tokens is 4, of targets 5");
    write_arrays(arrays, 1);
    refuse_batches(ATTNCL_ERR_FORMAT, "holds no array \"targets\"");
    arrays[1] = of_i32("targets", 3, 3, 3, 4);
    write_arrays(arrays, 2);
    refuse_batches(ATTNCL_ERR_SHAPE, "tokens has 2 batches, targets has 3");
    arrays[0] = arrays[1] = of_i32("targets", 3, 2, 0, 4);
    arrays[0].name = "tokens";
    write_arrays(arrays, 2);
    refuse_batches(ATTNCL_ERR_FORMAT, "axis 1 of tokens is empty");
    arrays[0] = of_i32("tokens", 3, 2, 3, 4);
    arrays[1] = of_i32("target", 3, 2, 3, 4);
    write_arrays(arrays, 2);
    refuse_batches(ATTNCL_ERR_FORMAT, "array \"target\" is not of batches");
}

static const struct {
    const struct dataset_class *class;
    const char *content; // NULL: tokens
    enum pair_form form;
} kinds[] = {
    {&attncl__data_text, "abcdefgh", PAIR_SENTENCES},
    {&attncl__data_pairs, "Go.\tVa !\nHi,  you.\t\xc3\x89t\xc3\xa9!\n", PAIR_SENTENCES},
    {&attncl__data_pairs, "So good!\t very happy \nbad\tSad\n", PAIR_CLASS},
    {&attncl__data_pairs, "a b\tX Y\nb\tY\n", PAIR_TAGS},
    {&attncl__data_tokens, NULL, PAIR_SENTENCES},
};

TABLE_TEST(no_memory_is_reported, kinds)
{
    const attncl_array tokens = of_i32("tokens", 1, 10, 0, 0);
    const struct dataset_options o = {
        .batch_size = 1, .seq_len = 3, .min_frequency = 1, .pair_form = kinds[_i].form};
    attncl_status status = ATTNCL_ERR_NO_MEMORY;
    struct dataset *d = NULL;
    struct batch b = {0};

    count_up();
    write_arrays(&tokens, 1);
    if (kinds[_i].content)
        directory_write("data", kinds[_i].content);
    for (size_t n = 1; status == ATTNCL_ERR_NO_MEMORY; ++n) {
        attncl__alloc_fail_at(n);
        status = attncl__dataset_open(kinds[_i].class, IN_DIRECTORY("data"), &o, &d);
        if (status == ATTNCL_OK)
            status = attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b);
        attncl__alloc_fail_at(0);
        attncl__batch_free(&b);
        attncl__dataset_close(d);
        d = NULL;
    }
    ck_ok(status);
}
