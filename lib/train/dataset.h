// SPDX-License-Identifier: MIT
// Training data: batches by index.  A batch depends only on the data, the options and its index, so
// training can resume from a step number without further state.
//
// Calls on one dataset come from one thread at a time.
#ifndef ATTNCL_TRAIN_DATASET_H
#define ATTNCL_TRAIN_DATASET_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "attncl/safetensors.h"
#include "base/alloc.h"
#include "base/name_table.h"
#include "base/strbuf.h"
#include "base/try.h"
#include "io/json.h"

enum dataset_order {
    ORDER_SEQUENTIAL, // windows or pairs in the order of the data
    ORDER_SHUFFLED,   // each once per epoch, in random order, windows shifted by up to T - 1
    ORDER_RANDOM,     // independent random windows or pairs
};

enum dataset_split { SPLIT_TRAIN, SPLIT_VALID };

enum pair_form {    // the kind of a pair's target
    PAIR_SENTENCES, // another sentence
    PAIR_CLASS,     // the label of the source
    PAIR_TAGS,      // a label for each word of the source
};

// The options have been checked.  Ready batches use only pair_form.
struct dataset_options {
    int64_t batch_size; // B
    int64_t seq_len;    // T; of a pair: the length of source and target
    // T of the training windows of text and tokens, by step, at most seq_len; empty: seq_len.
    struct json_pairs lengths;
    int64_t accumulate; // batches per step, for `lengths`
    enum pair_form pair_form;
    bool time_first;       // labelled pairs: [T, B] instead of [B, T]
    bool with_lens;        // labelled pairs: also valid_lens [B]
    int64_t valid_len;     // T of the held-out windows of text and tokens; 0: seq_len
    double valid_fraction; // fraction held out, at the end of the data; 0: none
    enum dataset_order order;
    uint64_t seed;
    int64_t min_frequency; // pairs: rarer words are <unk>
    // From an existing model's metadata; NULL: made from the data.  Text: its characters; pairs: the
    // words of the source, one per line.
    const char *vocabulary;
    const char *target_vocabulary; // pairs: the words of the target, or the labels
    const char *tokenizer; // text: the tokenizer.json that encodes it; NULL: characters are tokens
    const char *tokenizer_path; // the file that the tokenizer is from
    bool has_model; // the model's n_vocab is fixed: it must only exceed the text's largest token
};

enum { BATCH_MAX_ARRAYS = 4 };

// Named inputs of a model and, last, its targets, all I32.
struct batch {
    size_t n;
    attncl_array array[BATCH_MAX_ARRAYS];
    int64_t begin,
        total;       // part of a batch: its first sequence, and the batch's number, for dropout
    int32_t *memory; // of all arrays
};
void attncl__batch_free(struct batch *batch);

struct dataset;

// Kinds of datasets: the characters of a UTF-8 text; a text encoded by a tokenizer; token ids in a
// safetensors file ("tokens" [n]); pairs in a TSV file, with lines "source TAB target", whose words are
// prepared as in d2l, or with labels as targets (batches of "tokens", maybe "valid_lens", and
// "targets"); ready batches in a safetensors file: "tokens" and "targets" [N, T, B]; or "enc_X",
// "dec_X", "targets" [N, B, T] and optional "enc_valid_lens" [N, B]; or, with labels, "tokens" of rank 3,
// optional "valid_lens" [N, B], and "targets", [N, B] for classes, like "tokens" for tags.
extern const struct dataset_class attncl__data_text, attncl__data_encoded, attncl__data_tokens,
    attncl__data_pairs, attncl__data_batches;
attncl_status attncl__dataset_open(const struct dataset_class *class, const char *path,
                                   const struct dataset_options *options, struct dataset **ret);
// Takes the batches of SPLIT_TRAIN from a file of ready batches; the rest still comes from the data.
attncl_status attncl__dataset_use_batches(struct dataset *d, const char *path);
void attncl__dataset_close(struct dataset *d); // accepts NULL

// Metadata for a model file, key ("attncl.vocab") and value; NULL after the last.
const char *attncl__dataset_metadata(const struct dataset *d, size_t i, const char **value_ret);
// Sizes of the vocabularies: of the tokens, or of source and target; 0: none.  For token ids, ready
// batches and with has_model: the largest id + 1, the least that a model needs.
void attncl__dataset_vocabularies(const struct dataset *d, int64_t *source_ret,
                                  int64_t *target_ret);
// A hash of the whole file and the tokenizer.
uint64_t attncl__dataset_hash(const struct dataset *d);
// Batches of an epoch of SPLIT_TRAIN, whose last may continue into the next epoch; or all batches of
// SPLIT_VALID.
int64_t attncl__dataset_count(const struct dataset *d, enum dataset_split split);

// Reads batch `index`, from 0 on.  SPLIT_TRAIN continues with further epochs, except for ready batches
// (ERR_ARGUMENT beyond the last).  The batches of SPLIT_VALID predict every held-out target but the
// first token once, so their shapes may differ.  ERR_IO if the file has changed.
attncl_status attncl__dataset_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                    struct batch *ret);

// -- data_file.c: a file that is read repeatedly at any offset, and checked for changes

struct data_file { // starts as DATA_FILE_EMPTY
    char *path;
    int fd;
    uint64_t bytes;
    uint64_t hash; // of all bytes
    // The file's state when it was hashed.
    struct timespec modified;
    dev_t device;
    ino_t inode;
};
#define DATA_FILE_EMPTY ((struct data_file){.fd = -1})

// Continues `hash` (0: a new one) with the data.
uint64_t attncl__data_hash(uint64_t hash, const void *data, size_t bytes);

// Opens the file and hashes it.  Messages start with the path.
attncl_status attncl__data_file_open(const char *path, struct data_file *file);
void attncl__data_file_close(struct data_file *file);

// Reads `bytes` from `offset` on; ERR_IO if the file is shorter.
attncl_status attncl__data_file_read(const struct data_file *file, uint64_t offset, void *data,
                                     size_t bytes);

// ERR_IO if the path's content has changed since it was opened.  Hashes the file again only if its size,
// time or identity differ.
attncl_status attncl__data_file_check(struct data_file *file);

// -- order.c: endless sequences of n items

// The item in [0, n) at `position`.  Sequential: 0, 1 ... n-1, 0, 1 ...; shuffled: a new permutation
// every n positions; random: independent items.
int64_t attncl__order_item(enum dataset_order order, uint64_t seed, int64_t n, int64_t position);

// A random number in [0, bound) for `position`, independent of attncl__order_item().
int64_t attncl__order_offset(uint64_t seed, int64_t bound, int64_t position);

// -- dataset.c

struct dataset_class {
    size_t bytes; // size of the kind's struct, which begins with struct dataset
    // Reads the file; read_arrays: a safetensors file.
    attncl_status (*read)(struct dataset *d);
    attncl_status (*read_arrays)(struct dataset *d, const attncl_safetensors *file);
    void (*close)(struct dataset *d); // frees what the kind adds
    // index is at least 0 and, except for SPLIT_TRAIN of an endless kind, below the count.
    attncl_status (*batch)(struct dataset *d, enum dataset_split split, int64_t index,
                           struct batch *ret);
    // For windows.c: reads n tokens from token `at` on.
    attncl_status (*tokens)(struct dataset *d, int64_t at, int64_t n, int32_t *ret);
    bool endless; // SPLIT_TRAIN repeats in epochs
};

enum { DATASET_MAX_METADATA = 2 };

struct dataset { // the first member of each kind
    const struct dataset_class *class;
    struct dataset_options options; // vocabularies and tokenizer are NULL after opening
    struct data_file file;
    uint64_t tokenizer_hash; // 0: no tokenizer
    int64_t n, n_train;      // characters, tokens or pairs; the first n_train are for training
    int64_t count[2];        // batches by split
    const char *key[DATASET_MAX_METADATA];
    char *value[DATASET_MAX_METADATA];
    int64_t n_vocab[2];
    int32_t pad;           // the target that is padding; -1: none
    struct dataset *ready; // provides the batches of SPLIT_TRAIN; NULL: this dataset does
};

// Sets n_train from n and valid_fraction.
void attncl__dataset_split(struct dataset *d);

// Creates a batch of I32 arrays with these names and shapes, filled with zeros.
attncl_status attncl__batch_create(const attncl_array *arrays, size_t n, struct batch *batch);
int32_t *attncl__batch_data(const struct batch *batch, size_t i);

// Reads an array of the dataset's file as token ids, for the caller to free; ERR_FORMAT for invalid ids.
// Raises *largest_ret to the largest id.
attncl_status attncl__dataset_read_ids(const struct dataset *d, const attncl_array *array,
                                       int64_t *largest_ret, int32_t **ret);

// -- windows.c: windows [T, B] of a sequence of n tokens

// Sets the counts of both splits.  `unit` is for messages: "characters".
attncl_status attncl__windows_split(struct dataset *d, const char *unit);
attncl_status attncl__windows_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                    struct batch *ret);

// -- words.c: vocabularies of words

// Unknown word, padding, beginning of a target, end of a sentence.
enum reserved_word { WORD_UNK, WORD_PAD, WORD_BOS, WORD_EOS, N_RESERVED_WORDS };
// The reserved words of a vocabulary: bits 1 << reserved_word.
enum {
    RESERVED_NONE = 0,
    RESERVED_PAD = 1 << WORD_PAD,
    RESERVED_ALL = (1 << N_RESERVED_WORDS) - 1
};

struct words { // starts zeroed
    struct word {
        char *text;
        int64_t count;
    } * list;
    int n;
    size_t capacity;
    struct name_table table;
    int reserved[N_RESERVED_WORDS]; // indices; -1: the vocabulary lacks the word
};
void attncl__words_free(struct words *w);

// Counts a word.  *index_ret: its index in w->list.
attncl_status attncl__words_count(struct words *w, const char *word, int *index_ret);

// Makes a vocabulary: the reserved words, then, in bytewise order, the words counted at least
// `min_frequency` times.
attncl_status attncl__words_make_vocabulary(const struct words *counted, int64_t min_frequency,
                                            int reserved, struct words *ret);
// Reads a vocabulary from metadata `key`: one word per line, including the reserved ones.
attncl_status attncl__words_read_vocabulary(const char *key, const char *text, int reserved,
                                            struct words *ret);
attncl_status attncl__words_write_vocabulary(const struct words *w,
                                             char **ret); // the caller's to free

// The index of a word; that of <unk> if it is not in the vocabulary; -1 if <unk> is not either.
int attncl__words_find(const struct words *w, const char *word);

// -- pairs

enum side { SOURCE, TARGET, N_SIDES };

struct pair_dataset {
    struct dataset base;
    // [n][length] for each side.  While lines are read: indices of counted words, -1 for padding.
    int32_t *ids[N_SIDES];
    int64_t length[N_SIDES];  // T, or 1 for a class
    size_t capacity[N_SIDES]; // pairs
    int64_t *line;            // [n], line numbers from 1 on
    size_t line_capacity;
    struct words words[N_SIDES];
};

// Reads the file: counts the words of both sides and fills `ids` with their indices.
attncl_status attncl__pairs_read(struct pair_dataset *p);

#endif
