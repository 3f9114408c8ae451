// SPDX-License-Identifier: MIT
// Training data: batches by index.  A batch is a function of the data, the options and its index alone,
// so that a position in the data is a number, and training resumes without any other state.
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

// For the kinds of datasets.

// -- data_file.c: a file that is read again and again, at any place, and that tells when it changes

struct data_file { // starts as DATA_FILE_EMPTY
    char *path;
    int fd;
    uint64_t bytes;
    uint64_t hash; // of all bytes
    // How the file looked when its hash was taken.
    struct timespec modified;
    dev_t device;
    ino_t inode;
};
#define DATA_FILE_EMPTY ((struct data_file){.fd = -1})

// A hash that goes on from `hash`, 0: begins.
uint64_t attncl__data_hash(uint64_t hash, const void *data, size_t bytes);

// Opens the file and hashes it.  Messages start with the path.
attncl_status attncl__data_file_open(const char *path, struct data_file *file);
void attncl__data_file_close(struct data_file *file);

// Reads `bytes` from `offset` on; ERR_IO when the file is shorter.
attncl_status attncl__data_file_read(const struct data_file *file, uint64_t offset, void *data,
                                     size_t bytes);

// ERR_IO when there is another content under the path than when it was opened.  Costs one look at the
// file's time, and a hash where that is another one.
attncl_status attncl__data_file_check(struct data_file *file);

// -- order.c: which of n things comes at a position of an endless sequence

// The thing at `position`, in [0, n).  Sequential: 0, 1 ... n-1, 0, 1 ...; shuffled: another
// permutation each n positions; random: independent of all others.
int64_t attncl__order_item(enum dataset_order order, uint64_t seed, int64_t n, int64_t position);

// A number in [0, bound) for `position`, independent of attncl__order_item().
int64_t attncl__order_offset(uint64_t seed, int64_t bound, int64_t position);

// -- dataset.c

struct dataset_class {
    size_t bytes; // of the kind, which begins with struct dataset
    // Takes from the file what the kind keeps; read_arrays: from a safetensors file.
    attncl_status (*read)(struct dataset *d);
    attncl_status (*read_arrays)(struct dataset *d, const attncl_safetensors *file);
    void (*close)(struct dataset *d); // frees what the kind adds
    // index is at least 0, and below the count but for SPLIT_TRAIN where `endless`.
    attncl_status (*batch)(struct dataset *d, enum dataset_split split, int64_t index,
                           struct batch *ret);
    // For kinds that are read in windows: n tokens from token `at` on.
    attncl_status (*tokens)(struct dataset *d, int64_t at, int64_t n, int32_t *ret);
    bool endless;
};

enum { DATASET_MAX_METADATA = 2 };

struct dataset { // the first member of each kind
    const struct dataset_class *class;
    struct dataset_options options; // without the vocabularies once it is open
    struct data_file file;
    uint64_t tokenizer_hash; // 0: there is none
    int64_t n, n_train;      // characters, tokens or pairs; those for training come first
    int64_t count[2];        // by split
    const char *key[DATASET_MAX_METADATA];
    char *value[DATASET_MAX_METADATA];
    int64_t n_vocab[2];
    int32_t pad;           // the target that is padding; -1: none is
    struct dataset *ready; // whose batches stand for those of SPLIT_TRAIN; NULL: its own do
};

// Sets n_train, of n.
void attncl__dataset_split(struct dataset *d);

// A batch of I32 arrays of these names and shapes, whose elements are zeros and the caller's to fill.
attncl_status attncl__batch_create(const attncl_array *arrays, size_t n, struct batch *batch);
int32_t *attncl__batch_data(const struct batch *batch, size_t i);

// An array of the dataset's file with its elements as I32, the caller's to free; ERR_FORMAT for one
// that is no number of a token.  *largest_ret: the largest one, or more where it was larger.
attncl_status attncl__dataset_ids(const struct dataset *d, const attncl_array *array,
                                  int64_t *largest_ret, int32_t **ret);

// -- windows.c: windows [T, B] of a sequence of n tokens

// `unit` is for messages: "characters".
attncl_status attncl__windows_split(struct dataset *d, const char *unit);
attncl_status attncl__windows_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                    struct batch *ret);

// -- words.c: vocabularies of words

// Reserved words: for unknown words, behind a sentence's end, before a target's first word, after each sentence's last.
enum reserved_word { WORD_UNK, WORD_PAD, WORD_BOS, WORD_EOS, N_RESERVED_WORDS };
// Which of them a vocabulary has: bits 1 << reserved_word.
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
    int reserved[N_RESERVED_WORDS]; // their indices in a vocabulary; -1: it lacks the word
};
void attncl__words_free(struct words *w);

// Counts a word.  *index_ret: its index among those that were counted.
attncl_status attncl__words_count(struct words *w, const char *word, int *index_ret);

// The vocabulary of counted words: the reserved ones, then in the order of their bytes the words that were counted at
// least `min_frequency` times.
attncl_status attncl__words_number(const struct words *counted, int64_t min_frequency, int reserved,
                                   struct words *ret);
// The vocabulary that metadata `key` holds: a word on each line, the reserved ones among them.
attncl_status attncl__words_of_text(const char *key, const char *text, int reserved,
                                    struct words *ret);
attncl_status attncl__words_text(const struct words *w, char **ret); // the caller's to free

// The index of a word, of <unk> for one that the vocabulary does not have; -1 where it lacks that too.
int attncl__words_find(const struct words *w, const char *word);

// -- pairs

enum side { SOURCE, TARGET, N_SIDES };

struct pair_dataset {
    struct dataset base;
    // [n][length] of each side.  While lines are read: indices of counted words, -1 is padding.
    int32_t *ids[N_SIDES];
    int64_t length[N_SIDES];  // T, or 1 of a class
    size_t capacity[N_SIDES]; // pairs
    int64_t *line;            // [n], from 1 on
    size_t line_capacity;
    struct words words[N_SIDES];
};

// Reads the file: counts the words of both sides and fills the rows with their indices.
attncl_status attncl__pairs_read(struct pair_dataset *p);

#endif
