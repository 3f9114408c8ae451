// SPDX-License-Identifier: MIT
//
// Matching of shapes that are declared by letters.

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/shape_spec.h"
#include "base/try.h"

// An axis of a declared shape, or "...".
struct element {
    unsigned char letter; // 0: a number; '.': "..."
    int64_t extent;
    bool may_be_one, may_be_missing;
};

// Parses one element and advances *at; false at the end.
static bool parse_element(const char **at, struct element *ret)
{
    const char *c = *at;

    while (*c == ' ')
        ++c;
    if (!*c)
        return false;
    *ret = (struct element){.letter = (unsigned char)*c};
    if (isdigit((unsigned char)*c)) {
        ret->letter = 0;
        for (; isdigit((unsigned char)*c); ++c)
            ret->extent = 10 * ret->extent + (*c - '0');
    } else {
        c += *c == '.' ? 3 : 1;
    }
    ret->may_be_one = *c == '|';
    ret->may_be_missing = *c == '?';
    while (*c && *c != ' ')
        ++c;
    *at = c;
    return true;
}

// Counts the axes that a shape must have: neither "..." nor optional.
static int count_axes(const char *shape, bool *has_group_ret, int *n_optional_ret)
{
    int n = 0;

    *has_group_ret = false;
    *n_optional_ret = 0;
    for (const char *c = shape; *c; ++c) {
        *has_group_ret |= *c == '.';
        *n_optional_ret += *c == '?';
        n += *c != ' ' && (c == shape || c[-1] == ' ');
    }
    return n - *has_group_ret - *n_optional_ret;
}

// Writes "T or 1, ..., C", for messages.
static const char *write_shape_words(const char *shape, char text[SHAPE_TEXT_BYTES])
{
    struct element e;
    const char *at = shape;
    int used = 0;

    text[0] = 0;
    for (;;) {
        const char *const token = at + strspn(at, " ");
        if (!parse_element(&at, &e))
            return text;
        used += snprintf(text + used, (size_t)(SHAPE_TEXT_BYTES - used), "%s%.*s%s%s",
                         used ? ", " : "", (int)strcspn(token, " |?"), token,
                         e.may_be_one ? " or 1" : "", e.may_be_missing ? " or none" : "");
    }
}
#define WORDS(shape) write_shape_words((shape), (char[SHAPE_TEXT_BYTES]){0})

void attncl__axes_init(struct axes *axes)
{
    memset(axes->of, -1, sizeof axes->of);
    for (int letter = 'A'; letter <= 'Z'; ++letter)
        axes->source[letter].desc = NULL;
}

static attncl_status match_letter(struct axes *axes, const struct element *e, int64_t extent,
                                  const struct axis_source *value)
{
    int64_t *const known = &axes->of[e->letter];
    struct axis_source *const source = &axes->source[e->letter];

    if (*known == extent || (e->may_be_one && extent == 1))
        return ATTNCL_OK;
    if (*known < 0) {
        *known = extent;
        *source = *value;
        return ATTNCL_OK;
    }
    if (!source->desc || source->desc == value->desc)
        return FAIL(ATTNCL_ERR_SHAPE, "%s is %s, must be [%s] with %c = %" PRId64, value->name,
                    SHAPE(value->desc), WORDS(value->shape), e->letter, *known);
    return FAIL(ATTNCL_ERR_SHAPE, "%s is %s, must be [%s] with %c = %" PRId64 " as %s %s",
                value->name, SHAPE(value->desc), WORDS(value->shape), e->letter, *known,
                source->name, SHAPE(source->desc));
}

static attncl_status match_group(struct axes *axes, int rank, const int64_t *dim,
                                 const struct axis_source *value)
{
    struct axis_source *const source = &axes->source['.'];

    if (axes->of['.'] < 0) {
        axes->rank = rank;
        axes->dim = dim;
        axes->of['.'] = 1;
        for (int i = 0; i < rank; ++i)
            axes->of['.'] *= dim[i];
        *source = *value;
    }
    if (axes->rank == rank && memcmp(axes->dim, dim, (size_t)rank * sizeof *dim) == 0)
        return ATTNCL_OK;
    if (strcmp(value->shape, source->shape) == 0)
        return FAIL(ATTNCL_ERR_SHAPE, "%s is %s, must be [%s] as %s %s", value->name,
                    SHAPE(value->desc), WORDS(value->shape), source->name, SHAPE(source->desc));
    return FAIL(ATTNCL_ERR_SHAPE, "%s is %s, must be [%s] where %s %s is [%s]", value->name,
                SHAPE(value->desc), WORDS(value->shape), source->name, SHAPE(source->desc),
                WORDS(source->shape));
}

attncl_status attncl__axes_match(struct axes *axes, const char *shape, const char *name,
                                 const struct tensor_desc *d)
{
    const struct axis_source value = {name, shape, d};
    const char *at = shape;
    struct element e;
    bool has_group;
    int axis = 0, n_optional;

    int more = d->rank - count_axes(shape, &has_group, &n_optional);
    REQUIRE(more >= 0 && (has_group || more <= n_optional), ATTNCL_ERR_SHAPE,
            "%s is %s, must be [%s]", name, SHAPE(d), WORDS(shape));
    while (parse_element(&at, &e)) {
        if (e.letter == '.') {
            TRY(match_group(axes, more, &d->dim[axis], &value));
            axis += more;
            continue;
        }
        if (e.may_be_missing && more-- == 0)
            continue;
        if (e.letter)
            TRY(match_letter(axes, &e, d->dim[axis], &value));
        else
            REQUIRE(d->dim[axis] == e.extent, ATTNCL_ERR_SHAPE, "%s is %s, must be [%s]", name,
                    SHAPE(d), WORDS(shape));
        ++axis;
    }
    return ATTNCL_OK;
}

attncl_status attncl__axes_make(const struct axes *axes, const char *shape, attncl_dtype dtype,
                                struct tensor_desc *ret)
{
    int64_t dim[2 * ATTNCL_MAX_RANK];
    const char *at = shape;
    struct element e;
    int rank = 0;

    while (parse_element(&at, &e)) {
        assert(!e.letter || axes->of[e.letter] >= 0);
        if (e.letter == '.') {
            memcpy(dim + rank, axes->dim, (size_t)axes->rank * sizeof dim[0]);
            rank += axes->rank;
        } else {
            dim[rank++] = e.letter ? axes->of[e.letter] : e.extent;
        }
    }
    return attncl__desc_make(dtype, rank, dim, ret);
}
