// SPDX-License-Identifier: MIT
// Pairs of sentences as training data: words, vocabularies, lengths, and what is refused.

#include <string.h>

#include "support/directory.h"
#include "support/test.h"
#include "train/dataset.h"

NO_DEVICE;

static struct dataset *opened(const char *text, const struct dataset_options *options)
{
    struct dataset *d = NULL;

    directory_write("pairs", text);
    ck_ok(attncl__dataset_open(&attncl__data_pairs, IN_DIRECTORY("pairs"), options, &d));
    return d;
}

static void refuse(const char *text, const struct dataset_options *options, const char *words)
{
    struct dataset *d = NULL;

    directory_write("pairs", text);
    ck_fails(attncl__dataset_open(&attncl__data_pairs, IN_DIRECTORY("pairs"), options, &d),
             ATTNCL_ERR_FORMAT, words);
    ck_assert_ptr_null(d);
}

static const char *metadata(const struct dataset *d, const char *key)
{
    const char *value = NULL, *found;

    for (size_t i = 0; (found = attncl__dataset_metadata(d, i, &value)) != NULL; ++i)
        if (strcmp(found, key) == 0)
            return value;
    return "";
}

FIXTURE(directory_begin, directory_end);

static const char go[] = "Go.\tVa !\n"
                         "Hi, \xc2\xa0you.\t\xc3\x89t\xc3\xa9\xe2\x80\xaf!\r\n"
                         "\n"
                         "Go you on now\tVa\tattribution\n";

TEST(words_and_vocabularies)
{
    const struct dataset_options o = {.batch_size = 3, .seq_len = 4, .min_frequency = 2};
    struct dataset *d = opened(go, &o);
    struct batch b = {0};
    int64_t source, target;

    // Of "go . <eos>", "hi , you .", "go you on now" and of "va ! <eos>", "ete ! <eos>", "va <eos>"
    ck_assert_str_eq(metadata(d, "attncl.source_vocab"), "<unk>\n<pad>\n<bos>\n<eos>\n.\ngo\nyou");
    ck_assert_str_eq(metadata(d, "attncl.target_vocab"), "<unk>\n<pad>\n<bos>\n<eos>\n!\nva");
    attncl__dataset_vocabularies(d, &source, &target);
    ck_assert_int_eq(source, 7);
    ck_assert_int_eq(target, 6);
    ck_assert_int_eq(d->pad, 1);
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b));
    static const int32_t enc_X[] = {5, 4, 3, 1, 0, 0, 6, 4, 5, 6, 0, 0}, lens[] = {3, 4, 4},
                         targets[] = {5, 4, 3, 1, 0, 4, 3, 1, 5, 3, 1, 1},
                         dec_X[] = {2, 5, 4, 3, 2, 0, 4, 3, 2, 5, 3, 1};
    ck_assert_uint_eq(b.n, 4);
    ck_assert_str_eq(b.array[0].name, "enc_X");
    ck_assert_str_eq(b.array[2].name, "enc_valid_lens");
    ck_assert_mem_eq(b.array[0].data, enc_X, sizeof enc_X);
    ck_assert_mem_eq(b.array[1].data, dec_X, sizeof dec_X);
    ck_assert_mem_eq(b.array[2].data, lens, sizeof lens);
    ck_assert_mem_eq(b.array[3].data, targets, sizeof targets);
    attncl__batch_free(&b);
    attncl__dataset_close(d);
}

// Upper case beyond ASCII, and all words where each counts; those that are cut off do not.
TEST(words_are_in_lower_case)
{
    const struct dataset_options o = {.batch_size = 1, .seq_len = 2, .min_frequency = 1};
    struct dataset *d = opened(go, &o);

    ck_assert_str_eq(metadata(d, "attncl.target_vocab"),
                     "<unk>\n<pad>\n<bos>\n<eos>\n!\nva\n\xc3\xa9t\xc3\xa9");
    ck_assert_str_eq(metadata(d, "attncl.source_vocab"),
                     "<unk>\n<pad>\n<bos>\n<eos>\n,\n.\ngo\nhi\nyou");
    attncl__dataset_close(d);
}

TEST(given_vocabularies_give_the_indices)
{
    const struct dataset_options o = {.batch_size = 1,
                                      .seq_len = 3,
                                      .vocabulary = "go\n<eos>\n<bos>\n<pad>\n<unk>",
                                      .target_vocabulary = "<unk>\n<bos>\n<pad>\n<eos>\nva"};
    struct dataset *d = opened("go\tva va va\nx\tva\n", &o);
    struct batch b = {0};
    static const int32_t enc_X[] = {0, 1, 3}, dec_X[] = {1, 4, 4}, unknown[] = {4, 1, 3};

    ck_assert_int_eq(d->pad, 2);
    ck_assert_str_eq(metadata(d, "attncl.source_vocab"), o.vocabulary);
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b));
    ck_assert_mem_eq(b.array[0].data, enc_X, sizeof enc_X);
    ck_assert_mem_eq(b.array[1].data, dec_X, sizeof dec_X);
    attncl__batch_free(&b);
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 1, &b));
    ck_assert_mem_eq(b.array[0].data, unknown, sizeof unknown);
    attncl__batch_free(&b);
    attncl__dataset_close(d);
    const struct dataset_options lacking = {
        .batch_size = 1, .seq_len = 3, .vocabulary = "<unk>\n<pad>\n<bos>"};
    refuse("go\tva\n", &lacking, "attncl.source_vocab lacks the word <eos>");
    const struct dataset_options twice = {
        .batch_size = 1, .seq_len = 3, .vocabulary = "<unk>\ngo\ngo"};
    refuse("go\tva\n", &twice, "attncl.source_vocab holds 'go' twice");
}

static const char ten[] = "a\ta\nb\ta\nc\ta\nd\ta\ne\ta\nf\ta\ng\ta\nh\ta\ni\ta\nj\ta";

// 10 pairs, 3 held out in batches of 2 and 1; each of the 7 once in a shuffled epoch.
TEST(pairs_are_split_and_shuffled)
{
    const struct dataset_options o = {.batch_size = 2,
                                      .seq_len = 2,
                                      .valid_fraction = 0.3,
                                      .order = ORDER_SHUFFLED,
                                      .seed = 3,
                                      .min_frequency = 1};
    struct dataset *d = opened(ten, &o);
    struct batch b = {0};
    int seen[16] = {0};

    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_TRAIN), 4);
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_VALID), 2);
    for (int64_t k = 0; k < 7; ++k) { // two epochs
        ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, k, &b));
        ++seen[((const int32_t *)b.array[0].data)[0]];
        ++seen[((const int32_t *)b.array[0].data)[2]];
        attncl__batch_free(&b);
    }
    for (int i = 0; i < 16; ++i)
        ck_assert_int_eq(seen[i], i >= 4 && i < 11 ? 2 : 0);
    ck_ok(attncl__dataset_batch(d, SPLIT_VALID, 1, &b));
    ck_assert_int_eq(b.array[0].dim[0], 1);
    ck_assert_int_eq(((const int32_t *)b.array[0].data)[0], 13);
    attncl__batch_free(&b);
    attncl__dataset_close(d);
}

TEST(bad_pairs_are_refused)
{
    const struct dataset_options o = {.batch_size = 1, .seq_len = 4, .min_frequency = 1};
    const struct dataset_options most = {
        .batch_size = 1, .seq_len = 4, .min_frequency = 1, .valid_fraction = 0.9};

    refuse("", &o, "pairs: holds no pair");
    refuse("\n\n", &o, "pairs: holds no pair");
    refuse("a\tb\n\nc d\n", &o, "pairs: line 3: no TAB between source and target");
    refuse("a\tb\n \tb\n", &o, "pairs: line 2: no word in the source");
    refuse("a\t\n", &o, "pairs: line 1: no word in the target");
    refuse("a\tb\nc\xff\td\n", &o, "pairs: is not UTF-8 at byte 5");
    refuse("a\tb\n", &most, "1 pairs, valid_fraction 0.9 leaves none to train on");
    struct dataset *d = opened(ten, &most);
    ck_assert_int_eq(attncl__dataset_count(d, SPLIT_TRAIN), 1); // though 10 * (1 - 0.9) < 1
    attncl__dataset_close(d);
}

// Labels as they are written, sorted, each counting whatever min_frequency is.
static const char moods[] = "So good!\t very happy \r\n"
                            "bad\tSad\n"
                            "so so bad now\tvery happy\tnote\n";

static void check_batch(const struct batch *b, int64_t rows, int64_t columns, const int32_t *tokens,
                        const int32_t *targets)
{
    ck_assert_uint_eq(b->n, 2);
    ck_assert_str_eq(b->array[0].name, "tokens");
    ck_assert_str_eq(b->array[1].name, "targets");
    ck_assert_int_eq(b->array[0].dim[0], rows);
    ck_assert_int_eq(b->array[0].dim[1], columns);
    ck_assert_mem_eq(b->array[0].data, tokens, b->array[0].bytes);
    ck_assert_mem_eq(b->array[1].data, targets, b->array[1].bytes);
}

TEST(classes_are_whole_targets)
{
    static const int32_t by_time[] = {6, 4, 6, 5, 1, 6, 0, 1, 4},
                         by_row[] = {6, 5, 0, 4, 1, 1, 6, 6, 4}, targets[] = {1, 0, 1};
    struct dataset_options o = {.batch_size = 3,
                                .seq_len = 3,
                                .min_frequency = 1,
                                .pair_form = PAIR_CLASS,
                                .time_first = true,
                                .vocabulary = "<unk>\n<pad>\n<bos>\n<eos>\nbad\ngood\nso"};
    struct dataset *d = opened(moods, &o);
    struct batch b = {0};
    int64_t source, target;

    attncl__dataset_vocabularies(d, &source, &target);
    ck_assert_int_eq(source, 7);
    ck_assert_int_eq(target, 2);
    ck_assert_str_eq(metadata(d, "attncl.labels"), "Sad\nvery happy");
    ck_assert_int_eq(d->pad, -1);
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b));
    check_batch(&b, 3, 3, by_time, targets);
    ck_assert_int_eq(b.array[1].rank, 1);
    attncl__batch_free(&b);
    attncl__dataset_close(d);

    o.time_first = false;
    o.target_vocabulary = "very happy\nSad\n<pad>"; // a label like any other
    d = opened(moods, &o);
    ck_assert_int_eq(d->pad, -1);
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b));
    static const int32_t other[] = {0, 1, 0};
    check_batch(&b, 3, 3, by_row, other);
    attncl__batch_free(&b);
    attncl__dataset_close(d);
}

TEST(labelled_pairs_say_how_long_their_sources_are)
{
    static const int32_t lens[] = {3, 1, 3}; // the last source is cut
    struct dataset_options o = {.batch_size = 3,
                                .seq_len = 3,
                                .min_frequency = 1,
                                .pair_form = PAIR_CLASS,
                                .with_lens = true};
    struct dataset *d = opened(moods, &o);
    struct batch b = {0};

    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b));
    ck_assert_uint_eq(b.n, 3);
    ck_assert_str_eq(b.array[1].name, "valid_lens");
    ck_assert_int_eq(b.array[1].rank, 1);
    ck_assert_mem_eq(b.array[1].data, lens, sizeof lens);
    ck_assert_str_eq(b.array[2].name, "targets");
    attncl__batch_free(&b);
    attncl__dataset_close(d);
}

// Marks begin no word, tags stay in upper case; what is cut off or padding does not count.
TEST(tags_belong_to_words)
{
    static const char text[] = "Dr. A sees 3.5 cats\tN N V D N\n"
                               "a, b\t<pad> N\n";
    static const int32_t by_time[] = {7, 4, 5, 6, 8, 1, 0, 1},
                         targets_by_time[] = {1, 0, 1, 1, 2, 0, 3, 0},
                         targets_by_row[] = {1, 1, 2, 3, 0, 1, 0, 0};
    struct dataset_options o = {.batch_size = 2,
                                .seq_len = 4,
                                .pair_form = PAIR_TAGS,
                                .time_first = true,
                                .vocabulary = "<unk>\n<pad>\n<bos>\n<eos>\na,\na\nb\ndr.\nsees",
                                .target_vocabulary = "<pad>\nN\nV\nD"};
    struct dataset *d = opened(text, &o);
    struct batch b = {0};

    ck_assert_int_eq(d->pad, 0);
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b));
    check_batch(&b, 4, 2, by_time, targets_by_time);
    attncl__batch_free(&b);
    attncl__dataset_close(d);
    o.time_first = false;
    d = opened(text, &o);
    ck_ok(attncl__dataset_batch(d, SPLIT_TRAIN, 0, &b));
    ck_assert_mem_eq(b.array[1].data, targets_by_row, sizeof targets_by_row);
    attncl__batch_free(&b);
    attncl__dataset_close(d);
    o.target_vocabulary = NULL;
    o.min_frequency = 9; // not of labels
    d = opened(text, &o);
    ck_assert_str_eq(metadata(d, "attncl.labels"), "<pad>\nD\nN\nV");
    attncl__dataset_close(d);
}

TEST(bad_labels_are_refused)
{
    struct dataset_options o = {.batch_size = 1,
                                .seq_len = 4,
                                .min_frequency = 1,
                                .valid_fraction = 0.5,
                                .pair_form = PAIR_CLASS};
    refuse("a\tx\n\nb\ty\n", &o,
           "pairs: line 3: label 'y' is only in the held-out part, valid_fraction 0.5");
    refuse("a\t \n", &o, "pairs: line 1: no label in the target");
    o.target_vocabulary = "x\nz";
    refuse("a\tx\n\nb\ty\n", &o, "pairs: line 3: label 'y' is not in attncl.labels");
    o.target_vocabulary = "x\ny";
    attncl__dataset_close(opened("a\tx\n\nb\ty\n", &o)); // one of a training before
    o.pair_form = PAIR_TAGS;
    refuse("a\tx\n", &o, "attncl.labels lacks the word <pad>");
    o.target_vocabulary = NULL;
    refuse("a b\tx x\na b c\tx x\n", &o,
           "pairs: line 2: 3 words in the source, 2 labels in the target");
    refuse("a\tx\nb a\tx y\n", &o, "line 2: label 'y' is only in the held-out part");
    attncl__dataset_close(opened("a b c d\tx x x x\nb\tx\n", &o)); // padding is no label
}
