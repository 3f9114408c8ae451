// SPDX-License-Identifier: MIT
//
// Descriptions: entries, and the keys of an architecture's configuration.  Rows of the table with the
// same name are one key.

#include <assert.h>
#include <string.h>

#include "model/model.h"

enum { N_TEXTS = 5 };
static const char **get_text(attncl_entry *entry, int i)
{
    const char **const texts[N_TEXTS] = {&entry->name, &entry->shape, &entry->standard,
                                         &entry->choices, &entry->condition};
    return texts[i];
}

attncl_status attncl__entry_add(struct entry_list *entries, const attncl_entry *entry)
{
    REQUIRE(GROW_LIST(entries->list, entries->n, entries->capacity), ATTNCL_ERR_NO_MEMORY,
            "description of %zu entries", entries->n);
    attncl_entry *added = &entries->list[entries->n++];
    bool complete = true;
    *added = *entry;
    added->struct_size = sizeof *added;
    for (int i = 0; i < N_TEXTS; ++i) {
        const char **text = get_text(added, i), *given = *text;
        *text = given ? attncl__copy_text(given) : NULL;
        complete &= !given || *text;
    }
    REQUIRE(complete, ATTNCL_ERR_NO_MEMORY, "description of %zu entries", entries->n);
    return ATTNCL_OK;
}

void attncl__entries_free(struct entry_list *entries)
{
    for (size_t i = 0; i < entries->n * N_TEXTS; ++i)
        attncl__free((char *)*get_text(&entries->list[i / N_TEXTS], (int)(i % N_TEXTS)));
    attncl__free(entries->list);
}

struct key_rows {
    struct config_row list[CONFIG_MAX_ROWS];
    size_t n;
};

static size_t add_rows(struct config_row parent, const struct key *table, struct config_row *rows,
                       size_t n)
{
    for (const struct key *key = table; key->type; ++key) {
        struct config_row row = parent;
        row.key = key;
        if (key->when.key) {
            assert(row.n_when < CONFIG_MAX_NESTING);
            row.when[row.n_when++] = &key->when;
        }
        if (key->type == KEY_TABLE)
            n = add_rows(row, key->inner, rows, n);
        if (!key->name)
            continue;
        assert(n < CONFIG_MAX_ROWS);
        rows[n++] = row;
        if (key->type == KEY_OBJECT)
            n = add_rows((struct config_row){.object = key->name}, key->inner, rows, n);
    }
    return n;
}

size_t attncl__config_rows(const struct key *table, struct config_row rows[CONFIG_MAX_ROWS])
{
    return add_rows((struct config_row){0}, table, rows, 0);
}

static bool is_same_key(const struct config_row *a, const struct config_row *b)
{
    return a->object == b->object && strcmp(a->key->name, b->key->name) == 0;
}

// -- conditions

// Whether any row of the key may be read if key `cause` has the value `word`.
static bool is_read(const struct key_rows *rows, const struct config_row *first, const char *cause,
                    const char *word)
{
    for (size_t i = 0; i < rows->n; ++i) {
        const struct config_row *row = &rows->list[i];
        bool holds = is_same_key(row, first);
        for (int k = 0; k < row->n_when && holds; ++k)
            holds = strcmp(row->when[k]->key, cause) != 0 ||
                    attncl__condition_holds(row->when[k], word);
        if (holds)
            return true;
    }
    return false;
}

// The values of a condition's key.  For an integer: the condition's own, and two dummies for all others.
enum { MAX_WORDS = 16 };
static size_t list_words(const struct key_rows *rows, const struct config_row *row,
                         const struct condition *when, const char *words[MAX_WORDS])
{
    size_t n = 0, i = 0;
    while (rows->list[i].object != row->object || strcmp(rows->list[i].key->name, when->key) != 0)
        ++i;
    const struct key *cause = rows->list[i].key;
    if (cause->type == KEY_WORD)
        for (; cause->choices[n].word && n < MAX_WORDS; ++n)
            words[n] = cause->choices[n].word;
    else if (cause->type == KEY_BOOL)
        words[n++] = "false", words[n++] = "true";
    else
        words[n++] = when->words[0], words[n++] = "", words[n++] = "";
    return n;
}

// "layer is a, b", or "layer is not c" if that is shorter.
static void add_condition(const struct key_rows *rows, const struct config_row *row,
                          const struct condition *when, struct strbuf *text)
{
    const char *words[MAX_WORDS];
    const size_t n = list_words(rows, row, when, words);
    size_t n_read = 0;
    for (size_t i = 0; i < n; ++i)
        n_read += is_read(rows, row, when->key, words[i]);
    if (n_read == n)
        return;
    const bool is_not = 2 * n_read > n;
    attncl__strbuf_add(text, "%s%s%s%s", text->used ? " and " : "", row->object ? row->object : "",
                       row->object ? "." : "", when->key);
    const char *before = is_not ? " is not " : " is ";
    for (size_t i = 0; i < n; ++i) {
        if (is_read(rows, row, when->key, words[i]) == is_not)
            continue;
        attncl__strbuf_add(text, "%s%s", before, words[i]);
        before = ", ";
    }
}

static bool is_among(const struct condition *const *list, int n, const char *key)
{
    for (int i = 0; i < n; ++i)
        if (strcmp(list[i]->key, key) == 0)
            return true;
    return false;
}

// -- defaults

// NULL if there is no default or it depends on other keys.
static const char *default_text(const struct key *key, char text[KEY_TEXT_BYTES])
{
    if (!key->optional || key->same_as || key->derive || key->is_preset)
        return NULL;
    return key->word ? key->word : attncl__key_text(key, key->otherwise, text);
}

// The default of the key's optional rows; NULL if they differ.
static const char *common_default(const struct key_rows *rows, const struct config_row *first,
                                  bool *is_optional, char text[KEY_TEXT_BYTES])
{
    const char *common = NULL;
    *is_optional = false;
    for (size_t i = 0; i < rows->n; ++i) {
        char other[KEY_TEXT_BYTES];
        const struct key *key = rows->list[i].key;
        if (!is_same_key(&rows->list[i], first) || !key->optional)
            continue;
        const char *standard = default_text(key, *is_optional ? other : text);
        if (!standard || (common && strcmp(standard, common) != 0)) {
            *is_optional = true;
            return NULL;
        }
        common = *is_optional ? common : standard;
        *is_optional = true;
    }
    return common;
}

// -- the description

static attncl_status add_key(const struct key_rows *rows, const struct config_row *row,
                             struct entry_list *entries)
{
    static const char *const types[] = {
        [KEY_INT] = "integer",
        [KEY_NUMBER] = "number",
        [KEY_BOOL] = "true or false",
        [KEY_PRESENCE] = "true or false",
        [KEY_WORD] = "word",
        [KEY_INTS] = "integers",
        [KEY_PAIRS] = "pairs",
        [KEY_NUMBERS] = "numbers",
        [KEY_OBJECT] = "object",
        [KEY_FLAGS] = "list of 0 and 1",
        [KEY_LIST] = "list of numbers",
    };
    const struct key *key = row->key;
    struct strbuf name = STRBUF_EMPTY, choices = STRBUF_EMPTY, condition = STRBUF_EMPTY;
    char text[KEY_TEXT_BYTES];
    bool is_optional;
    attncl__strbuf_add(&name, "%s%s%s", row->object ? row->object : "", row->object ? "." : "",
                       key->name);
    for (size_t i = 0; key->choices && key->choices[i].word; ++i)
        attncl__strbuf_add(&choices, "%s%s", i ? ", " : "", key->choices[i].word);
    for (int k = 0; k < row->n_when; ++k)
        if (!is_among(row->when, k, row->when[k]->key))
            add_condition(rows, row, row->when[k], &condition);
    const char *standard = common_default(rows, row, &is_optional, text);
    const attncl_entry entry = {
        .kind = ATTNCL_ENTRY_KEY,
        .optional = is_optional,
        .name = name.data,
        .type = types[key->type],
        .standard = standard,
        .choices = choices.data,
        .condition = condition.data,
        .rank = -1,
    };
    const attncl_status status = name.failed || choices.failed || condition.failed
                                     ? FAIL(ATTNCL_ERR_NO_MEMORY, "key %s", key->name)
                                     : attncl__entry_add(entries, &entry);
    attncl__strbuf_free(&name);
    attncl__strbuf_free(&choices);
    attncl__strbuf_free(&condition);
    return status;
}

attncl_status attncl__describe_keys(const struct arch_class *arch, struct entry_list *entries)
{
    attncl_status status = ATTNCL_OK;
    if (!arch->keys)
        return ATTNCL_OK;
    struct key_rows *rows = attncl__alloc(sizeof *rows);
    REQUIRE(rows, ATTNCL_ERR_NO_MEMORY, "keys of an arch");
    rows->n = attncl__config_rows(arch->keys, rows->list);
    for (size_t i = 0; status == ATTNCL_OK && i < rows->n; ++i) {
        size_t first = 0;
        while (!is_same_key(&rows->list[first], &rows->list[i]))
            ++first;
        if (first == i)
            status = add_key(rows, &rows->list[i], entries);
    }
    attncl__free(rows);
    return status;
}
