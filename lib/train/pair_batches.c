// SPDX-License-Identifier: MIT
//
// Batches of pairs.  Of sentences: dec_X is <bos> and the target but its last word.

#include "base/try.h"
#include "train/order.h"
#include "train/pairs.h"

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
        batch->n_targets += target[t] != p->base.pad;
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
        for (int64_t t = 0; t < T; ++t) {
            to[time_first ? t * B + b : b * T + t] = ids[t];
            batch->n_targets += side == TARGET && ids[t] != p->base.pad;
        }
    }
}

static attncl_status create_batch(const struct pair_dataset *p, int64_t B, struct batch *ret)
{
    const struct dataset_options *o = &p->base.options;
    const int64_t T = o->seq_len, rows = o->time_first ? T : B, columns = o->time_first ? B : T;
    const struct batch_array sentences[] = {{"enc_X", 2, {B, T}},
                                            {"dec_X", 2, {B, T}},
                                            {"enc_valid_lens", 1, {B}},
                                            {"targets", 2, {B, T}}};
    const struct batch_array tokens = {"tokens", 2, {rows, columns}}, lens = {"valid_lens", 1, {B}};
    const struct batch_array label = {"targets", 1, {B}}, tags = {"targets", 2, {rows, columns}};
    const struct batch_array targets = o->pair_form == PAIR_CLASS ? label : tags;

    if (o->pair_form == PAIR_SENTENCES)
        return attncl__batch_create(sentences, 4, ret);
    if (o->with_lens)
        return attncl__batch_create((const struct batch_array[]){tokens, lens, targets}, 3, ret);
    return attncl__batch_create((const struct batch_array[]){tokens, targets}, 2, ret);
}

attncl_status attncl__pairs_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                  struct batch *ret)
{
    const struct pair_dataset *p = (const struct pair_dataset *)d;
    const struct dataset_options *o = &d->options;
    const int64_t first = index * o->batch_size;
    const bool train = split == SPLIT_TRAIN;
    int64_t B = o->batch_size;

    if (!train && p->n - p->n_train - first < B)
        B = p->n - p->n_train - first;
    TRY(create_batch(p, B, ret));
    for (int64_t b = 0; b < B; ++b) {
        const int64_t pair = train ? attncl__order_item(o->order, o->seed, p->n_train, first + b)
                                   : p->n_train + first + b;
        if (o->pair_form == PAIR_SENTENCES)
            fill_sentences(p, pair, b, ret);
        else
            fill_labels(p, pair, b, ret);
    }
    return ATTNCL_OK;
}
