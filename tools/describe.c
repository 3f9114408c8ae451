// SPDX-License-Identifier: MIT
//
// What an architecture consists of and what a file lacks, in lines and lists.

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

static void key_line(const attncl_entry *e)
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
static void name_pattern(const char *name, char *pattern, size_t bytes)
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

enum { PATTERN_BYTES = 512, MAX_COLLAPSED = 10000 }; // names are compared in pairs

// The name as it is printed: of parameters of one shape, one for each layer, a pattern once.  Null:
// it was printed.
static const char *collapsed_name(const attncl_description *description, size_t index,
                                  char pattern[PATTERN_BYTES])
{
    const attncl_entry *e = attncl_description_at(description, index), *other;
    char name[PATTERN_BYTES];
    size_t n = 0;
    bool is_first = true;

    name_pattern(e->name, pattern, PATTERN_BYTES);
    for (size_t i = 0; (other = attncl_description_at(description, i)) != NULL; i++) {
        if (other->kind != e->kind)
            continue;
        name_pattern(other->name, name, sizeof name);
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

static void entry_line(const attncl_entry *e, const char *name)
{
    static const char *const words[] = {
        [ATTNCL_ENTRY_PARAMETER] = "parameter", [ATTNCL_ENTRY_BUFFER] = "buffer",
        [ATTNCL_ENTRY_INPUT] = "input",         [ATTNCL_ENTRY_OUTPUT] = "output",
        [ATTNCL_ENTRY_EXTRA] = "ignored",
    };
    const bool notes = e->optional && e->kind != ATTNCL_ENTRY_EXTRA;
    const char *note = e->kind == ATTNCL_ENTRY_OUTPUT ? ", with the optional inputs" : ", optional";

    if (e->kind == ATTNCL_ENTRY_KEY)
        key_line(e);
    else
        describe_line(words[e->kind], "%s %s %s%s", name, e->type, e->shape, notes ? note : "");
}

static void problem_line(const attncl_entry *e)
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
            problem_line(e);
        if (e->kind < first)
            continue;
        const bool is_tensor = e->kind == ATTNCL_ENTRY_PARAMETER || e->kind == ATTNCL_ENTRY_BUFFER;
        const char *name =
            collapse && is_tensor ? collapsed_name(description, i, pattern) : e->name;
        if (name)
            entry_line(e, name);
    }
}

// -- JSON

// "[T, 64]" as ["T", 64]; what follows " or [" is left out.
static json_t *shape_json(const char *shape)
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

static json_t *key_json(const attncl_entry *e)
{
    return json_pack("{ss ss sb ss* ss* ss*}", "name", e->name, "type", e->type, "required",
                     !e->optional, "default", e->standard, "choices", e->choices, "condition",
                     e->condition);
}

static json_t *tensor_json(const attncl_entry *e)
{
    return json_pack("{ss ss so sb sb}", "name", e->name, "dtype", e->type, "shape",
                     shape_json(e->shape), "optional", e->optional, "trained",
                     e->kind == ATTNCL_ENTRY_PARAMETER);
}

static json_t *value_json(const attncl_entry *e)
{
    const char *other = strstr(e->shape, "] or [");

    return json_pack("{ss ss so so* sb}", "name", e->name, "dtype", e->type, "shape",
                     shape_json(e->shape), "or_shape", other ? shape_json(other + 5) : NULL,
                     "optional", e->optional);
}

static json_t *problem_json(const attncl_entry *e)
{
    return e->problem ? json_pack("{ss ss}", "name", e->name, "problem", e->problem) : NULL;
}

static json_t *name_json(const attncl_entry *e)
{
    return json_string(e->name);
}

// A list of the entries of kinds [first, last] that `row` makes something of.
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
    return add_list(description, ATTNCL_ENTRY_KEY, ATTNCL_ENTRY_KEY, key_json, "keys", object);
}

bool describe_tensors_json(const attncl_description *description, json_t *object)
{
    return add_list(description, ATTNCL_ENTRY_PARAMETER, ATTNCL_ENTRY_BUFFER, tensor_json,
                    "tensors", object);
}

bool describe_values_json(const attncl_description *description, json_t *object)
{
    return add_list(description, ATTNCL_ENTRY_INPUT, ATTNCL_ENTRY_INPUT, value_json, "inputs",
                    object) &&
           add_list(description, ATTNCL_ENTRY_OUTPUT, ATTNCL_ENTRY_OUTPUT, value_json, "outputs",
                    object);
}

bool describe_problems_json(const attncl_description *description, json_t *object)
{
    return add_list(description, ATTNCL_ENTRY_PARAMETER, ATTNCL_ENTRY_BUFFER, problem_json,
                    "problems", object) &&
           add_list(description, ATTNCL_ENTRY_EXTRA, ATTNCL_ENTRY_EXTRA, name_json, "ignored",
                    object);
}
