// SPDX-License-Identifier: MIT
//
// Descriptions of architectures and model files, as text and as JSON.

#include "describe.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

enum { WORD_COLUMNS = 14, MAX_COLUMNS = 100 };

// -- text

void describe_line(const char *word, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int bytes = vsnprintf(NULL, 0, format, args) + 1;
    char *text = malloc((size_t)bytes), *rest = text;
    va_end(args);
    if (text)
        vsnprintf(text, (size_t)bytes, format, again);
    va_end(again);
    if (!text)
        return;
    printf("%-*s", WORD_COLUMNS, word);
    while (strlen(rest) > MAX_COLUMNS - WORD_COLUMNS) {
        char *cut = rest + MAX_COLUMNS - WORD_COLUMNS;
        while (cut > rest && *cut != ' ')
            cut--;
        if (cut == rest)
            break;
        printf("%.*s\n%*s", (int)(cut - rest), rest, WORD_COLUMNS, "");
        rest = cut + 1;
    }
    printf("%s\n", rest);
    free(text);
}

static void print_key(const attncl_entry *e)
{
    const char *is = e->standard   ? "default "
                     : e->optional ? "default from other keys"
                                   : "required";

    describe_line("key", "%s: %s, %s%s%s%s%s%s", e->name, e->type, is,
                  e->standard ? e->standard : "", e->choices ? ", one of " : "",
                  e->choices ? e->choices : "", e->condition ? "; read where " : "",
                  e->condition ? e->condition : "");
}

// "layers.0.weight" as "layers.{i}.weight", "bias_hh_l0" as "bias_hh_l{i}".
static void make_pattern(const char *name, char *pattern, size_t bytes)
{
    size_t used = 0;

    while (*name && used + 4 < bytes) {
        const size_t digits = strspn(name, "0123456789");
        const bool begins = used == 0 || pattern[used - 1] == '.' ||
                            (used > 1 && strncmp(pattern + used - 2, "_l", 2) == 0);
        if (digits > 0 && begins && (name[digits] == '.' || name[digits] == '\0')) {
            memcpy(pattern + used, "{i}", 3);
            used += 3;
            name += digits;
        } else {
            pattern[used++] = *name++;
        }
    }
    pattern[used] = '\0';
}

enum {
    PATTERN_BYTES = 512,
    MAX_COLLAPSED = 10000
}; // limited, since all pairs of names are compared

// The name to print for an entry: its own, or for parameters of equal shape in each layer their pattern.  NULL: the
// pattern was printed before.
static const char *collapse_name(const attncl_description *description, size_t index,
                                 char pattern[PATTERN_BYTES])
{
    const attncl_entry *e = attncl_description_at(description, index), *other;
    char name[PATTERN_BYTES];
    size_t n = 0;
    bool is_first = true;

    make_pattern(e->name, pattern, PATTERN_BYTES);
    for (size_t i = 0; (other = attncl_description_at(description, i)) != NULL; i++) {
        if (other->kind != e->kind)
            continue;
        make_pattern(other->name, name, sizeof name);
        if (strcmp(name, pattern) != 0)
            continue;
        if (strcmp(other->shape, e->shape) != 0)
            return e->name;
        is_first &= i >= index;
        n++;
    }
    if (n == 1)
        return e->name;
    return is_first ? pattern : NULL;
}

static void print_entry(const attncl_entry *e, const char *name)
{
    static const char *const words[] = {
        [ATTNCL_ENTRY_PARAMETER] = "parameter", [ATTNCL_ENTRY_BUFFER] = "buffer",
        [ATTNCL_ENTRY_INPUT] = "input",         [ATTNCL_ENTRY_OUTPUT] = "output",
        [ATTNCL_ENTRY_EXTRA] = "ignored",
    };
    const bool notes = e->optional && e->kind != ATTNCL_ENTRY_EXTRA;
    const char *note = e->kind == ATTNCL_ENTRY_OUTPUT ? ", with the optional inputs" : ", optional";

    if (e->kind == ATTNCL_ENTRY_KEY)
        print_key(e);
    else
        describe_line(words[e->kind], "%s %s %s%s", name, e->type, e->shape, notes ? note : "");
}

static void print_problem(const attncl_entry *e)
{
    const bool is_missing = strcmp(e->problem, "is missing") == 0;

    describe_line("problem", "%s %s%s%s", e->name, e->problem, is_missing ? ", expected " : "",
                  is_missing ? e->shape : "");
}

void describe_text(const attncl_description *description, attncl_entry_kind first, bool collapse)
{
    char pattern[PATTERN_BYTES];
    const attncl_entry *e;

    collapse &= attncl_description_count(description) <= MAX_COLLAPSED;
    for (size_t i = 0; (e = attncl_description_at(description, i)) != NULL; i++) {
        if (e->problem)
            print_problem(e);
        if (e->kind < first)
            continue;
        const bool is_tensor = e->kind == ATTNCL_ENTRY_PARAMETER || e->kind == ATTNCL_ENTRY_BUFFER;
        const char *name = collapse && is_tensor ? collapse_name(description, i, pattern) : e->name;
        if (name)
            print_entry(e, name);
    }
}

// -- JSON

// "[T, 64]" as ["T", 64]; ignores text after the first ']'.
static json_t *json_dims(const char *shape)
{
    json_t *list = json_array();
    const char *at = shape + 1;

    while (*at != ']') {
        char *end;
        const size_t bytes = strcspn(at, ",]");
        const long long number = strtoll(at, &end, 10);
        json_array_append_new(list,
                              end == at + bytes ? json_integer(number) : json_stringn(at, bytes));
        at += bytes;
        at += strspn(at, ", ");
    }
    return list;
}

static json_t *json_key(const attncl_entry *e)
{
    return json_pack("{ss ss sb ss* ss* ss*}", "name", e->name, "type", e->type, "required",
                     !e->optional, "default", e->standard, "choices", e->choices, "condition",
                     e->condition);
}

static json_t *json_tensor(const attncl_entry *e)
{
    return json_pack("{ss ss so sb sb}", "name", e->name, "dtype", e->type, "shape",
                     json_dims(e->shape), "optional", e->optional, "trained",
                     e->kind == ATTNCL_ENTRY_PARAMETER);
}

static json_t *json_value(const attncl_entry *e)
{
    const char *other = strstr(e->shape, "] or [");

    return json_pack("{ss ss so so* sb}", "name", e->name, "dtype", e->type, "shape",
                     json_dims(e->shape), "or_shape", other ? json_dims(other + 5) : NULL,
                     "optional", e->optional);
}

static json_t *json_problem(const attncl_entry *e)
{
    return e->problem ? json_pack("{ss ss}", "name", e->name, "problem", e->problem) : NULL;
}

static json_t *json_name(const attncl_entry *e)
{
    return json_string(e->name);
}

// Adds a list of row(entry), if not NULL, for all entries of kinds `first` to `last`.
static bool add_list(const attncl_description *description, attncl_entry_kind first,
                     attncl_entry_kind last, json_t *(*row)(const attncl_entry *), const char *name,
                     json_t *object)
{
    const attncl_entry *e;
    json_t *list = json_array();

    for (size_t i = 0; (e = attncl_description_at(description, i)) != NULL; i++) {
        json_t *value = e->kind >= first && e->kind <= last ? row(e) : NULL;
        if (value && json_array_append_new(list, value) != 0)
            break;
    }
    return !e && json_object_set_new(object, name, list) == 0;
}

bool describe_keys_json(const attncl_description *description, json_t *object)
{
    return add_list(description, ATTNCL_ENTRY_KEY, ATTNCL_ENTRY_KEY, json_key, "keys", object);
}

bool describe_tensors_json(const attncl_description *description, json_t *object)
{
    return add_list(description, ATTNCL_ENTRY_PARAMETER, ATTNCL_ENTRY_BUFFER, json_tensor,
                    "tensors", object);
}

bool describe_values_json(const attncl_description *description, json_t *object)
{
    return add_list(description, ATTNCL_ENTRY_INPUT, ATTNCL_ENTRY_INPUT, json_value, "inputs",
                    object) &&
           add_list(description, ATTNCL_ENTRY_OUTPUT, ATTNCL_ENTRY_OUTPUT, json_value, "outputs",
                    object);
}

bool describe_problems_json(const attncl_description *description, json_t *object)
{
    return add_list(description, ATTNCL_ENTRY_PARAMETER, ATTNCL_ENTRY_BUFFER, json_problem,
                    "problems", object) &&
           add_list(description, ATTNCL_ENTRY_EXTRA, ATTNCL_ENTRY_EXTRA, json_name, "ignored",
                    object);
}
