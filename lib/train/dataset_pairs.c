// SPDX-License-Identifier: MIT
//
// Pairs from a file of lines "source TAB target".  Sentences are prepared as in d2l: words and <eos>,
// truncated to T or padded with <pad>.  If targets are labels, sources have no <eos>, and labels have
// their own vocabulary, with <pad> for tags and without reserved words for classes.

#include <inttypes.h>

#include "train/dataset.h"

// -- vocabularies

struct vocabulary_kind {
    const char *key;
    int64_t min_frequency;
    int reserved;
};

static struct vocabulary_kind get_kind(const struct pair_dataset *p, enum side side)
{
    const struct dataset_options *o = &p->base.options;

    if (side == SOURCE)
        return (struct vocabulary_kind){"attncl.source_vocab", o->min_frequency, RESERVED_ALL};
    if (o->pair_form == PAIR_SENTENCES)
        return (struct vocabulary_kind){"attncl.target_vocab", o->min_frequency, RESERVED_ALL};
    return (struct vocabulary_kind){"attncl.labels", 1,
                                    o->pair_form == PAIR_TAGS ? RESERVED_PAD : RESERVED_NONE};
}

// Makes or reads a side's vocabulary, and replaces indices of counted words by indices in it.
static attncl_status number_words(struct pair_dataset *p, enum side side)
{
    const struct vocabulary_kind kind = get_kind(p, side);
    struct dataset *d = &p->base;
    const char *given = side == SOURCE ? d->options.vocabulary : d->options.target_vocabulary;
    struct words vocabulary = {0}, *counted = &p->words[side];
    const int64_t n = d->n * p->length[side];
    attncl_status status = ATTNCL_OK;

    TRY(given ? attncl__words_read_vocabulary(kind.key, given, kind.reserved, &vocabulary)
              : attncl__words_make_vocabulary(counted, kind.min_frequency, kind.reserved,
                                              &vocabulary));
    for (int64_t i = 0; i < n; ++i) {
        int32_t *id = &p->ids[side][i];
        const char *word = *id < 0 ? NULL : counted->list[*id].text;
        *id = word ? attncl__words_find(&vocabulary, word) : vocabulary.reserved[WORD_PAD];
        if (*id < 0)
            TRY_DONE(FAIL(ATTNCL_ERR_FORMAT, "%s: line %" PRId64 ": label '%s' is not in %s",
                          d->file.path, p->line[i / p->length[side]], word, kind.key));
    }
    attncl__words_free(counted);
    *counted = vocabulary;
    vocabulary = (struct words){0};
    d->key[side] = kind.key;
    d->n_vocab[side] = counted->n;
    TRY_DONE(attncl__words_write_vocabulary(counted, &d->value[side]));

done:
    attncl__words_free(&vocabulary);
    return status;
}

static attncl_status split_pairs(struct dataset *d)
{
    const int64_t B = d->options.batch_size;

    attncl__dataset_split(d);
    REQUIRE(d->n_train >= 1, ATTNCL_ERR_FORMAT,
            "%s: %" PRId64 " pairs, valid_fraction %g leaves none to train on", d->file.path, d->n,
            d->options.valid_fraction);
    d->count[SPLIT_TRAIN] = (d->n_train + B - 1) / B;
    d->count[SPLIT_VALID] = (d->n - d->n_train + B - 1) / B;
    return ATTNCL_OK;
}

// Refuses held-out labels that training never sees, as their score would mean nothing.
static attncl_status check_labels(const struct pair_dataset *p)
{
    const struct words *labels = &p->words[TARGET];
    const int64_t n_train = p->base.n_train * p->length[TARGET];
    const int64_t n = p->base.n * p->length[TARGET];
    const int32_t *ids = p->ids[TARGET];
    int64_t i;
    bool *seen = attncl__alloc_array((size_t)labels->n, sizeof *seen);

    REQUIRE(seen, ATTNCL_ERR_NO_MEMORY, "%d labels", labels->n);
    if (p->base.pad >= 0)
        seen[p->base.pad] = true;
    for (i = 0; i < n_train; ++i)
        seen[ids[i]] = true;
    while (i < n && seen[ids[i]])
        ++i;
    attncl__free(seen);
    REQUIRE(i == n, ATTNCL_ERR_FORMAT,
            "%s: line %" PRId64 ": label '%s' is only in the held-out part, valid_fraction %g",
            p->base.file.path, p->line[i / p->length[TARGET]], labels->list[ids[i]].text,
            p->base.options.valid_fraction);
    return ATTNCL_OK;
}

// -- batches; dec_X is <bos> and the target without its last word

static void fill_sentences(const struct pair_dataset *p, int64_t pair, int64_t b,
                           struct batch *batch)
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
    }
}

static void fill_labels(const struct pair_dataset *p, int64_t pair, int64_t b, struct batch *batch)
{
    const bool time_first = p->base.options.time_first;
    const int64_t B = batch->array[SOURCE].dim[time_first ? 1 : 0];
    const size_t place[N_SIDES] = {[SOURCE] = 0, [TARGET] = batch->n - 1};
    const int32_t pad = p->words[SOURCE].reserved[WORD_PAD];

    if (p->base.options.with_lens)
        for (int64_t t = 0; t < p->length[SOURCE]; ++t)
            attncl__batch_data(batch, 1)[b] += p->ids[SOURCE][pair * p->length[SOURCE] + t] != pad;
    for (int side = 0; side < N_SIDES; ++side) {
        const int64_t T = p->length[side];
        const int32_t *ids = p->ids[side] + pair * T;
        int32_t *to = attncl__batch_data(batch, place[side]);
        for (int64_t t = 0; t < T; ++t)
            to[time_first ? t * B + b : b * T + t] = ids[t];
    }
}

static attncl_status create_batch(const struct pair_dataset *p, int64_t B, struct batch *ret)
{
    const struct dataset_options *o = &p->base.options;
    const int64_t T = o->seq_len, rows = o->time_first ? T : B, columns = o->time_first ? B : T;
    const attncl_array sentences[] = {{.name = "enc_X", .rank = 2, .dim = {B, T}},
                                      {.name = "dec_X", .rank = 2, .dim = {B, T}},
                                      {.name = "enc_valid_lens", .rank = 1, .dim = {B}},
                                      {.name = "targets", .rank = 2, .dim = {B, T}}};
    const attncl_array tokens = {.name = "tokens", .rank = 2, .dim = {rows, columns}},
                       lens = {.name = "valid_lens", .rank = 1, .dim = {B}};
    const attncl_array label = {.name = "targets", .rank = 1, .dim = {B}},
                       tags = {.name = "targets", .rank = 2, .dim = {rows, columns}};
    const attncl_array targets = o->pair_form == PAIR_CLASS ? label : tags;

    if (o->pair_form == PAIR_SENTENCES)
        return attncl__batch_create(sentences, 4, ret);
    if (o->with_lens)
        return attncl__batch_create((const attncl_array[]){tokens, lens, targets}, 3, ret);
    return attncl__batch_create((const attncl_array[]){tokens, targets}, 2, ret);
}

static attncl_status pairs_batch(struct dataset *d, enum dataset_split split_pairs, int64_t index,
                                 struct batch *ret)
{
    const struct pair_dataset *p = (const struct pair_dataset *)d;
    const struct dataset_options *o = &d->options;
    const int64_t first = index * o->batch_size;
    const bool train = split_pairs == SPLIT_TRAIN;
    int64_t B = o->batch_size;

    if (!train && d->n - d->n_train - first < B)
        B = d->n - d->n_train - first;
    TRY(create_batch(p, B, ret));
    for (int64_t b = 0; b < B; ++b) {
        const int64_t pair = train ? attncl__order_item(o->order, o->seed, d->n_train, first + b)
                                   : d->n_train + first + b;
        if (o->pair_form == PAIR_SENTENCES)
            fill_sentences(p, pair, b, ret);
        else
            fill_labels(p, pair, b, ret);
    }
    return ATTNCL_OK;
}

// -- the dataset

static void close_pairs(struct dataset *d)
{
    struct pair_dataset *p = (struct pair_dataset *)d;

    for (int side = 0; side < N_SIDES; ++side) {
        attncl__free(p->ids[side]);
        attncl__words_free(&p->words[side]);
    }
    attncl__free(p->line);
}

static attncl_status read_pairs(struct dataset *d)
{
    struct pair_dataset *p = (struct pair_dataset *)d;
    const struct dataset_options *o = &d->options;

    p->length[SOURCE] = o->seq_len;
    p->length[TARGET] = o->pair_form == PAIR_CLASS ? 1 : o->seq_len;
    TRY(attncl__pairs_read(p));
    REQUIRE(d->n > 0, ATTNCL_ERR_FORMAT, "%s: holds no pair", d->file.path);
    TRY(number_words(p, SOURCE));
    TRY(number_words(p, TARGET));
    d->pad = p->words[TARGET].reserved[WORD_PAD];
    TRY(split_pairs(d));
    return o->pair_form != PAIR_SENTENCES && !o->target_vocabulary ? check_labels(p) : ATTNCL_OK;
}

const struct dataset_class attncl__data_pairs = {
    .bytes = sizeof(struct pair_dataset),
    .read = read_pairs,
    .close = close_pairs,
    .batch = pairs_batch,
    .endless = true,
};
