// SPDX-License-Identifier: MIT
//
// Windows of a sequence of tokens: T tokens as input, and the tokens one position later as targets.
//
// Training windows begin at iT, i < (n - 1) / T, shifted by up to T - 1 if the order is shuffled;
// sequential windows omit the sequence's remainder.  A batch has B windows; an epoch's last batch
// continues with windows of the next epoch, so that all have the same shape.  If T changes with the
// step, a batch is the one of a training with its T throughout.  Held-out windows are adjacent, as in
// `attncl eval`: batches of B, a smaller batch of the remaining windows, and a shorter window of the
// remaining tokens.

#include <inttypes.h>

#include "train/dataset.h"

static int64_t valid_len(const struct dataset *d)
{
    return d->options.valid_len > 0 ? d->options.valid_len : d->options.seq_len;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

attncl_status attncl__windows_split(struct dataset *d, const char *unit)
{
    const int64_t T = d->options.seq_len, B = d->options.batch_size;

    attncl__dataset_split(d);
    const int64_t n_valid = d->n - d->n_train;
    REQUIRE(d->n_train > T, ATTNCL_ERR_FORMAT,
            "%s: %" PRId64 " %s to train on, a window of seq_len %" PRId64 " needs %" PRId64,
            d->file.path, d->n_train, unit, T, T + 1);
    REQUIRE(n_valid != 1, ATTNCL_ERR_FORMAT,
            "%s: valid_fraction %g holds out 1 of %" PRId64 " %s, at least 2 are needed",
            d->file.path, d->options.valid_fraction, d->n, unit);
    d->count[SPLIT_TRAIN] = divide_up((d->n_train - 1) / T, B);
    if (n_valid > 0) {
        const int64_t n_targets = n_valid - 1, length = valid_len(d);
        d->count[SPLIT_VALID] = divide_up(n_targets / length, B) + (n_targets % length != 0);
    }
    return ATTNCL_OK;
}

// T of a training batch.
static int64_t train_len(const struct dataset *d, int64_t index)
{
    const struct json_pairs *lengths = &d->options.lengths;
    int64_t T = d->options.seq_len;

    for (size_t i = 0; i < lengths->n; ++i)
        if (lengths->list[i][0] * d->options.accumulate <= index)
            T = lengths->list[i][1];
    return T;
}

// The first token of training window `position`, as if all windows had T tokens.
static int64_t train_window(const struct dataset *d, int64_t T, int64_t position)
{
    const uint64_t seed = d->options.seed;
    const int64_t n = d->options.order == ORDER_RANDOM ? d->n_train - T : (d->n_train - 1) / T;
    const int64_t item = attncl__order_item(d->options.order, seed, n, position);

    if (d->options.order == ORDER_RANDOM)
        return item;
    const int64_t start = item * T, after = d->n_train - start - T;
    if (d->options.order == ORDER_SHUFFLED)
        return start + attncl__order_offset(seed, after < T ? after : T, position);
    return start;
}

// Fills column b of the batch with the window that begins at `start`.
static attncl_status fill_window(struct dataset *d, int64_t start, int64_t b, int32_t *window,
                                 struct batch *batch)
{
    const int64_t T = batch->array[0].dim[0], B = batch->array[0].dim[1];
    int32_t *tokens = attncl__batch_data(batch, 0), *targets = attncl__batch_data(batch, 1);

    TRY(d->class->tokens(d, start, T + 1, window));
    for (int64_t t = 0; t < T; ++t) {
        tokens[t * B + b] = window[t];
        targets[t * B + b] = window[t + 1];
    }
    return ATTNCL_OK;
}

attncl_status attncl__windows_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                    struct batch *ret)
{
    attncl_status status = ATTNCL_OK;
    const bool train = split == SPLIT_TRAIN;
    int64_t T = train_len(d, index), B = d->options.batch_size, start = 0;
    int32_t *window = NULL;

    const int64_t first = index * B; // window
    if (!train) {
        const int64_t n_targets = d->n - d->n_train - 1;
        T = valid_len(d);
        start = first * T;
        if (start + T > n_targets) { // the remaining tokens
            start = n_targets / T * T;
            T = n_targets - start;
            B = 1;
        } else if ((n_targets - start) / T < B) {
            B = (n_targets - start) / T;
        }
    }
    const attncl_array arrays[] = {{.name = "tokens", .rank = 2, .dim = {T, B}},
                                   {.name = "targets", .rank = 2, .dim = {T, B}}};
    TRY_DONE(attncl__batch_create(arrays, 2, ret));
    window = attncl__alloc_array((size_t)T + 1, sizeof *window);
    if (!window)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "a window of %" PRId64 " tokens", T));
    for (int64_t b = 0; b < B; ++b)
        TRY_DONE(fill_window(d, train ? train_window(d, T, first + b) : d->n_train + start + b * T,
                             b, window, ret));

done:
    attncl__free(window);
    return status;
}
