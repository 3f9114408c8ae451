// SPDX-License-Identifier: MIT
//
// Pairs of sentences from a file of lines "source TAB target", prepared as d2l prepares its pairs: words,
// <eos> after the last, cut to T or filled up with <pad>; dec_X is <bos> and the target but its last
// word.  Columns after the second are not read.

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/try.h"
#include "base/utf8.h"
#include "train/dataset_internal.h"
#include "train/order.h"
#include "train/words.h"

enum side { SOURCE, TARGET, N_SIDES };

static const char *const vocab_key[N_SIDES] = {"attncl.source_vocab", "attncl.target_vocab"};

struct pair_dataset {
    struct dataset base;
    int64_t n, n_train;
    // [n][T] of each side.  While lines are read: indices of counted words, -1 is padding.
    int32_t *ids[N_SIDES];
    size_t capacity[N_SIDES]; // pairs
    struct words words[N_SIDES];
};

// -- lines

// Adds a sentence as pair d->n of its side.
static attncl_status add_sentence(struct pair_dataset *p, enum side side, const char *sentence,
                                  size_t bytes)
{
    attncl_status status = ATTNCL_OK;
    const size_t T = (size_t)p->base.options.seq_len;
    struct strbuf text = STRBUF_EMPTY;
    size_t length = 0, row_bytes;

    REQUIRE(ckd_mul_size(T, sizeof(int32_t), &row_bytes), ATTNCL_ERR_NO_MEMORY, "a sentence");
    int32_t *ids = attncl__grow_list(p->ids[side], (size_t)p->n, &p->capacity[side], row_bytes);
    REQUIRE(ids, ATTNCL_ERR_NO_MEMORY, "%" PRId64 " pairs", p->n + 1);
    p->ids[side] = ids;
    int32_t *row = ids + (size_t)p->n * T;
    TRY_DONE(attncl__sentence_words(sentence, bytes, &text));
    if (text.used == 0 && !text.failed)
        TRY_DONE(
            FAIL(ATTNCL_ERR_FORMAT, "no word in the %s", side == SOURCE ? "source" : "target"));
    attncl__strbuf_add(&text, " <eos>");
    if (text.failed)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "a sentence of %zu bytes", bytes));
    for (char *word = text.data, *end = word + text.used; word < end && length < T; ++length) {
        const size_t word_bytes = strcspn(++word, " ");
        int index;
        word[word_bytes] = '\0';
        TRY_DONE(attncl__words_count(&p->words[side], word, &index));
        row[length] = index;
        word += word_bytes;
    }
    while (length < T)
        row[length++] = -1;

done:
    attncl__strbuf_free(&text);
    return status;
}

static attncl_status add_line(struct pair_dataset *p, const char *line, size_t bytes)
{
    const char *tab = memchr(line, '\t', bytes), *end = line + bytes;

    REQUIRE(tab, ATTNCL_ERR_FORMAT, "no TAB between source and target");
    const char *after = memchr(tab + 1, '\t', (size_t)(end - tab - 1));
    TRY(add_sentence(p, SOURCE, line, (size_t)(tab - line)));
    TRY(add_sentence(p, TARGET, tab + 1, (size_t)((after ? after : end) - tab - 1)));
    p->n++;
    return ATTNCL_OK;
}

static attncl_status check_text(const struct pair_dataset *p, const char *text, size_t bytes)
{
    for (size_t at = 0, length; at < bytes; at += length) {
        uint32_t code = 0;
        length = attncl__utf8_decode(text + at, bytes - at, &code);
        REQUIRE(length > 0, ATTNCL_ERR_FORMAT, "%s: is not UTF-8 at byte %zu", p->base.file.path,
                at);
        REQUIRE(code != 0, ATTNCL_ERR_FORMAT, "%s: a zero byte at byte %zu: it is no text",
                p->base.file.path, at);
    }
    return ATTNCL_OK;
}

static attncl_status add_lines(struct pair_dataset *p, const char *text, size_t bytes)
{
    int64_t number = 1;

    for (size_t at = 0; at < bytes; ++number) {
        const char *line = text + at, *end = memchr(line, '\n', bytes - at);
        size_t length = end ? (size_t)(end - line) : bytes - at;
        at += length + 1;
        length -= length > 0 && line[length - 1] == '\r';
        if (length == 0)
            continue;
        const attncl_status status = add_line(p, line, length);
        if (status != ATTNCL_OK) {
            attncl__error_prefix("%s: line %" PRId64, p->base.file.path, number);
            return status;
        }
    }
    return ATTNCL_OK;
}

static attncl_status read_lines(struct pair_dataset *p)
{
    attncl_status status = ATTNCL_OK;
    const size_t bytes = (size_t)p->base.file.bytes;
    char *text = attncl__alloc(bytes);

    REQUIRE(text, ATTNCL_ERR_NO_MEMORY, "%s: %zu bytes", p->base.file.path, bytes);
    TRY_DONE(attncl__data_file_read(&p->base.file, 0, text, bytes));
    TRY_DONE(check_text(p, text, bytes));
    TRY_DONE(add_lines(p, text, bytes));

done:
    attncl__free(text);
    return status;
}

// -- vocabularies

// From indices of counted words to those of the vocabulary, which replaces the counted ones.
static attncl_status number_words(struct pair_dataset *p, enum side side, const char *given)
{
    struct dataset *d = &p->base;
    struct words vocabulary = {0}, *counted = &p->words[side];
    const size_t n = (size_t)p->n * (size_t)d->options.seq_len;

    TRY(given ? attncl__words_of_text(vocab_key[side], given, &vocabulary)
              : attncl__words_number(counted, d->options.min_frequency, &vocabulary));
    for (size_t i = 0; i < n; ++i) {
        int32_t *id = &p->ids[side][i];
        *id = *id < 0 ? vocabulary.reserved[WORD_PAD]
                      : attncl__words_find(&vocabulary, counted->list[*id].text);
    }
    attncl__words_free(counted);
    *counted = vocabulary;
    d->key[side] = vocab_key[side];
    d->n_vocab[side] = vocabulary.n;
    return attncl__words_text(counted, &d->value[side]);
}

static attncl_status split(struct pair_dataset *p)
{
    struct dataset *d = &p->base;
    const int64_t B = d->options.batch_size;

    p->n_train = attncl__dataset_n_train(d, p->n);
    REQUIRE(p->n_train >= 1, ATTNCL_ERR_FORMAT,
            "%s: %" PRId64 " pairs, valid_fraction %g leaves none to train on", d->file.path, p->n,
            d->options.valid_fraction);
    d->count[SPLIT_TRAIN] = (p->n_train + B - 1) / B;
    d->count[SPLIT_VALID] = (p->n - p->n_train + B - 1) / B;
    return ATTNCL_OK;
}

// -- batches

static void fill_pair(const struct pair_dataset *p, int64_t pair, int64_t b, struct batch *batch)
{
    const int64_t T = p->base.options.seq_len;
    const int32_t *source = p->ids[SOURCE] + pair * T, *target = p->ids[TARGET] + pair * T;
    int32_t *enc_X = attncl__batch_data(batch, 0) + b * T;
    int32_t *dec_X = attncl__batch_data(batch, 1) + b * T;
    int32_t *enc_valid_lens = attncl__batch_data(batch, 2) + b;
    int32_t *targets = attncl__batch_data(batch, 3) + b * T;

    dec_X[0] = p->words[TARGET].reserved[WORD_BOS];
    for (int64_t t = 0; t < T; ++t) {
        enc_X[t] = source[t];
        *enc_valid_lens += source[t] != p->words[SOURCE].reserved[WORD_PAD];
        targets[t] = target[t];
        if (t + 1 < T)
            dec_X[t + 1] = target[t];
        batch->n_targets += target[t] != p->base.pad;
    }
}

static attncl_status pairs_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                 struct batch *ret)
{
    const struct pair_dataset *p = (const struct pair_dataset *)d;
    const struct dataset_options *o = &d->options;
    const int64_t T = o->seq_len, first = index * o->batch_size;
    const bool train = split == SPLIT_TRAIN;
    int64_t B = o->batch_size;

    if (!train && p->n - p->n_train - first < B)
        B = p->n - p->n_train - first;
    const struct batch_array arrays[] = {{"enc_X", 2, {B, T}},
                                         {"dec_X", 2, {B, T}},
                                         {"enc_valid_lens", 1, {B}},
                                         {"targets", 2, {B, T}}};
    TRY(attncl__batch_create(arrays, 4, ret));
    for (int64_t b = 0; b < B; ++b)
        fill_pair(p,
                  train ? attncl__order_item(o->order, o->seed, p->n_train, first + b)
                        : p->n_train + first + b,
                  b, ret);
    return ATTNCL_OK;
}

static void close_pairs(struct dataset *d)
{
    struct pair_dataset *p = (struct pair_dataset *)d;

    for (int side = 0; side < N_SIDES; ++side) {
        attncl__free(p->ids[side]);
        attncl__words_free(&p->words[side]);
    }
}

static const struct dataset_class pairs_class = {close_pairs, pairs_batch, true};

attncl_status attncl__dataset_open_pairs(const char *path, const struct dataset_options *options,
                                         struct dataset **ret)
{
    attncl_status status = ATTNCL_OK;
    struct dataset *d = NULL;

    TRY(attncl__dataset_create(&pairs_class, sizeof(struct pair_dataset), path, options, &d));
    struct pair_dataset *p = (struct pair_dataset *)d;
    TRY_DONE(read_lines(p));
    if (p->n == 0)
        TRY_DONE(FAIL(ATTNCL_ERR_FORMAT, "%s: holds no pair", path));
    TRY_DONE(number_words(p, SOURCE, options->vocabulary));
    TRY_DONE(number_words(p, TARGET, options->target_vocabulary));
    d->pad = p->words[TARGET].reserved[WORD_PAD];
    TRY_DONE(split(p));
    TRY_DONE(attncl__data_file_check(&d->file)); // between the hash and the reading
    *ret = d;
    d = NULL;

done:
    attncl__dataset_close(d);
    return status;
}
