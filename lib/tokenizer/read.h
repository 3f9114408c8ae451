// SPDX-License-Identifier: MIT
// What the files that read tokenizer.json share.  `what` names an object in messages.
#ifndef ATTNCL_TOKENIZER_READ_H
#define ATTNCL_TOKENIZER_READ_H

#include "io/json.h"
#include "tokenizer/tokenizer.h"

// Refuses keys that are none of `known`, which are separated by spaces.
attncl_status attncl__check_keys(const struct json *object, const char *what, const char *known);
// Where the name is in a list separated by spaces; ERR_UNSUPPORTED where it is not.
attncl_status attncl__choose(const char *what, const char *name, const char *list, int *ret);
attncl_status attncl__read_bool(const struct json *object, const char *key, bool otherwise,
                                bool *ret);
attncl_status attncl__read_span(attncl_tokenizer *t, const struct json *object, const char *key,
                                struct span *ret);
// The value of "pattern": {"String": s} or {"Regex": s}.
attncl_status attncl__read_pattern(const struct json *object, struct pattern **ret);
// Reads one after another the objects of a list, which is all that `object` has beside its type.
typedef attncl_status (*attncl__object_reader)(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__read_sequence(attncl_tokenizer *t, const struct json *object,
                                    const char *what, const char *key, attncl__object_reader read);
// One more element, zeroed, of an array that grows one by one.
attncl_status attncl__add_element(void **list, size_t *n, size_t bytes_each, void **ret);

// A member that is too large for the limits of JSON; value.text NULL: it is absent.
struct large_member {
    const char *name;
    struct json_span value;
};
// Finds them; *rest_ret: the other members that are not null, the caller's.
attncl_status attncl__read_members(const struct json_span *object, struct large_member *large,
                                   size_t n, struct json **rest_ret);

attncl_status attncl__normalizer_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__split_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__decoder_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__template_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__model_read(attncl_tokenizer *t, const struct json_span *model);
// The token of a text as the file has it; -1: none.
int32_t attncl__token_find(attncl_tokenizer *t, const char *text, size_t bytes);

#endif
