// SPDX-License-Identifier: MIT
//
// Vocabularies of words.

#include <stdlib.h>
#include <string.h>

#include "train/dataset.h"

static const char *const reserved_words[N_RESERVED_WORDS] = {"<unk>", "<pad>", "<bos>", "<eos>"};

void attncl__words_free(struct words *w)
{
    for (int i = 0; i < w->n; ++i)
        attncl__free(w->list[i].text);
    attncl__free(w->list);
    attncl__name_table_free(&w->table);
    *w = (struct words){0};
}

static attncl_status add_word(struct words *w, const char *word)
{
    REQUIRE(GROW_LIST(w->list, w->n, w->capacity), ATTNCL_ERR_NO_MEMORY, "%d words", w->n + 1);
    char *copy = attncl__copy_text(word);
    REQUIRE(copy, ATTNCL_ERR_NO_MEMORY, "a word of %zu bytes", strlen(word));
    w->list[w->n] = (struct word){copy, 0};
    const attncl_status status = attncl__name_add(&w->table, copy, w->n);
    if (status == ATTNCL_OK)
        w->n++;
    else
        attncl__free(copy);
    return status;
}

attncl_status attncl__words_count(struct words *w, const char *word, int *index_ret)
{
    int index = attncl__name_find(&w->table, word);

    if (index < 0) {
        TRY(add_word(w, word));
        index = w->n - 1;
    }
    w->list[index].count++;
    *index_ret = index;
    return ATTNCL_OK;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

attncl_status attncl__words_make_vocabulary(const struct words *counted, int64_t min_frequency,
                                            int reserved, struct words *ret)
{
    attncl_status status = ATTNCL_OK;
    struct words w = {0};
    size_t n = 0;
    const char **sorted = attncl__alloc_array((size_t)counted->n, sizeof *sorted);

    REQUIRE(sorted, ATTNCL_ERR_NO_MEMORY, "%d words", counted->n);
    for (int i = 0; i < counted->n; ++i)
        if (counted->list[i].count >= min_frequency)
            sorted[n++] = counted->list[i].text;
    qsort(sorted, n, sizeof *sorted, compare_words);
    for (int i = 0; i < N_RESERVED_WORDS; ++i) {
        w.reserved[i] = reserved & 1 << i ? w.n : -1;
        if (w.reserved[i] >= 0)
            TRY_DONE(add_word(&w, reserved_words[i]));
    }
    for (size_t i = 0; i < n; ++i)
        if (attncl__name_find(&w.table, sorted[i]) < 0)
            TRY_DONE(add_word(&w, sorted[i]));
    *ret = w;
    w = (struct words){0};

done:
    attncl__words_free(&w);
    attncl__free(sorted);
    return status;
}

// Adds each line of `lines` as a word; overwrites `lines`.
static attncl_status add_lines(const char *key, char *lines, int reserved, struct words *w)
{
    for (char *line = lines; *line;) {
        const size_t length = strcspn(line, "\n");
        const bool last = line[length] == '\0';
        line[length] = '\0';
        REQUIRE(length > 0, ATTNCL_ERR_FORMAT, "%s: line %d is empty", key, w->n + 1);
        REQUIRE(attncl__name_find(&w->table, line) < 0, ATTNCL_ERR_FORMAT, "%s holds '%s' twice",
                key, line);
        TRY(add_word(w, line));
        line += length + !last;
    }
    for (int i = 0; i < N_RESERVED_WORDS; ++i) {
        w->reserved[i] = attncl__name_find(&w->table, reserved_words[i]);
        REQUIRE(w->reserved[i] >= 0 || !(reserved & 1 << i), ATTNCL_ERR_FORMAT,
                "%s lacks the word %s", key, reserved_words[i]);
        if (!(reserved & 1 << i))
            w->reserved[i] = -1;
    }
    return ATTNCL_OK;
}

attncl_status attncl__words_read_vocabulary(const char *key, const char *text, int reserved,
                                            struct words *ret)
{
    struct words w = {0};
    char *lines = attncl__copy_text(text);

    REQUIRE(lines, ATTNCL_ERR_NO_MEMORY, "%s", key);
    const attncl_status status = add_lines(key, lines, reserved, &w);
    attncl__free(lines);
    if (status == ATTNCL_OK)
        *ret = w;
    else
        attncl__words_free(&w);
    return status;
}

attncl_status attncl__words_write_vocabulary(const struct words *w, char **ret)
{
    struct strbuf text = STRBUF_EMPTY;

    for (int i = 0; i < w->n; ++i)
        attncl__strbuf_add(&text, "%s%s", i ? "\n" : "", w->list[i].text);
    if (text.failed) {
        attncl__strbuf_free(&text);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "a vocabulary of %d words", w->n);
    }
    *ret = text.data;
    return ATTNCL_OK;
}

int attncl__words_find(const struct words *w, const char *word)
{
    const int index = attncl__name_find(&w->table, word);

    return index < 0 ? w->reserved[WORD_UNK] : index;
}
