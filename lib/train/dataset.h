// SPDX-License-Identifier: MIT
// Training data: batches by index.  A batch is a function of the data, the options and its index alone,
// so that a position in the data is a number, and training resumes without any other state.
//
// Calls on one dataset come from one thread at a time.
#ifndef ATTNCL_TRAIN_DATASET_H
#define ATTNCL_TRAIN_DATASET_H

#include <stdbool.h>

#include "attncl/array.h"
#include "attncl/status.h"
#include "io/json.h"

enum dataset_order {
    ORDER_SEQUENTIAL, // windows or pairs in the order of the data
    ORDER_SHUFFLED,   // each once in an epoch, in random order; a window begins up to T - 1 later
    ORDER_RANDOM,     // anywhere, independently
};

enum dataset_split { SPLIT_TRAIN, SPLIT_VALID };

enum pair_form {    // what the target of a pair is
    PAIR_SENTENCES, // another sentence
    PAIR_CLASS,     // the label of the source
    PAIR_TAGS,      // a label for each word of the source
};

// As the configuration has been checked.
struct dataset_options {
    int64_t batch_size; // B; ready batches have their own, as all options but pair_form
    int64_t seq_len;    // T; of a pair: the length of source and target
    // T of the training windows of text and tokens, from each step on, at most seq_len; empty: seq_len.
    struct json_pairs lengths;
    int64_t accumulate; // batches of a step, for `lengths`
    enum pair_form pair_form;
    bool time_first;       // labelled pairs: [T, B] instead of [B, T]
    bool with_lens;        // labelled pairs: valid_lens [B] too
    int64_t valid_len;     // T of the held-out windows of text and tokens; 0: seq_len
    double valid_fraction; // the last characters, tokens or pairs are held out; 0: none
    enum dataset_order order;
    uint64_t seed;
    int64_t min_frequency; // pairs: rarer words are <unk>
    // Of an existing model, as its metadata has them; NULL: made of the data.  Text: its characters;
    // pairs: the words of the source, a line each.
    const char *vocabulary;
    // Text: the tokenizer.json that encodes it, in place of characters; NULL: characters.
    const char *tokenizer;
    bool has_model;                // its n_vocab is given: only the text's own tokens need to fit
    const char *target_vocabulary; // pairs: the words of the target, or the labels
};

enum { BATCH_MAX_ARRAYS = 4 };

// Named inputs of a model and, last, its targets: I32, in memory of the batch.
struct batch {
    size_t n;
    attncl_array array[BATCH_MAX_ARRAYS];
    int64_t begin, total; // of a part, for dropout: its first sequence, and how many the batch has
    int32_t *memory;
};
void attncl__batch_free(struct batch *batch);

struct dataset;

// A UTF-8 text by characters, or by a tokenizer; token ids in a safetensors file ("tokens" [n]); pairs of a TSV file
// ("source TAB target", a line each), whose words are prepared as d2l does, or with labels as targets
// (batches of "tokens", "valid_lens" where wanted, and "targets"); or ready batches ("tokens"
// and "targets" [N, T, B], or "enc_X", "dec_X", "targets" [N, B, T] and "enc_valid_lens" [N, B], which
// may be missing; of labels "tokens" of rank 3, "valid_lens" [N, B], which may be missing, and
// "targets", [N, B] of classes, like "tokens" of tags).
extern const struct dataset_class attncl__data_text, attncl__data_encoded, attncl__data_tokens,
    attncl__data_pairs, attncl__data_batches;
attncl_status attncl__dataset_open(const struct dataset_class *class, const char *path,
                                   const struct dataset_options *options, struct dataset **ret);
// From now on the batches of SPLIT_TRAIN are the ready ones of a file; all else stays as the data say.
attncl_status attncl__dataset_use_batches(struct dataset *d, const char *path);
void attncl__dataset_close(struct dataset *d); // accepts NULL

// What a model file says of its data, key and value ("attncl.vocab"); NULL after the last.
const char *attncl__dataset_metadata(const struct dataset *d, size_t i, const char **value_ret);
// Sizes of the vocabularies: of the tokens, or of source and target.  Of token ids, of ready batches and with has_model:
// the largest plus 1, the least a model must have.  0: there is no such vocabulary.
void attncl__dataset_vocabularies(const struct dataset *d, int64_t *source_ret,
                                  int64_t *target_ret);
// The target that is padding; -1: none is.
int32_t attncl__dataset_pad(const struct dataset *d);
// Changes when the data do: of the whole file, and of the tokenizer.
uint64_t attncl__dataset_hash(const struct dataset *d);
// Batches of a split: of an epoch of SPLIT_TRAIN, where the last one may go on into the next epoch, or
// of all of SPLIT_VALID.
int64_t attncl__dataset_count(const struct dataset *d, enum dataset_split split);

// Batch `index` from 0 on; of SPLIT_TRAIN index may go on for ever, into further epochs, except for
// ready batches (ERR_ARGUMENT beyond the last).  The batches of SPLIT_VALID predict every held-out
// target but the first character once, so their arrays may differ in shape.  ERR_IO when the file has
// changed.
attncl_status attncl__dataset_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                    struct batch *ret);

#endif
