// SPDX-License-Identifier: MIT
//
// Op specs as text: declarations, sizes, reports.

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "support/spec_point.h"

enum { MAX_SPECS = 128, MAX_REPORTED = 8 };
#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

struct spec_tally spec_tally;
static const struct op_spec *specs[MAX_SPECS];
static int n_specs;

void spec_add(const struct op_spec *spec)
{
    if (n_specs == MAX_SPECS)
        abort();
    specs[n_specs++] = spec;
}

const struct op_spec *spec_at(int i)
{
    return i < n_specs ? specs[i] : NULL;
}

const struct op_spec *spec_find(const char *op)
{
    for (int i = 0; i < n_specs; ++i)
        if (strcmp(specs[i]->op, op) == 0)
            return specs[i];
    return NULL;
}

// -- declarations and sizes

// A spec that cannot be read is a mistake in the tree.
static void must(bool holds, const char *op, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "OP_SPEC(%s): %s\n", op, what);
    abort();
}

static struct spec_slot parse_slot(char *text)
{
    static const attncl_dtype types[] = {ATTNCL_F32,  ATTNCL_I32, ATTNCL_U8, ATTNCL_F16,
                                         ATTNCL_BF16, ATTNCL_Q8,  ATTNCL_Q4};
    struct spec_slot s = {.low = "0", .high = "0"};
    char type[8] = "", axes[64] = "";
    int n = 0, end = 0;

    sscanf(text, " %23[^ ?]%n", s.name, &n);
    s.present = text[n] != '?';
    n += !s.present;
    sscanf(text + n, " %7[a-z0-9]%n", type, &end);
    s.any_type = text[n + end] == '+';
    s.ranged = sscanf(text + n + end + s.any_type, ":%15[^: ]:%15s", s.low, s.high) > 0;
    for (size_t i = 0; i < COUNT_OF(types); ++i)
        if (strcasecmp(attncl_dtype_name(types[i]), type) == 0)
            s.dtype = types[i];
    must(s.dtype != ATTNCL_DTYPE_NONE, s.name, type);
    sscanf(text + n, " %*[^ ] %63[^;]", axes);
    s.any_rank = axes[0] && axes[1] == '*';
    n = 0;
    for (const char *at = axes; *at; ++at)
        if (isalnum((unsigned char)*at) || *at == '+')
            s.axes[n++] = *at;
    must(n < (int)sizeof s.axes, s.name, axes);
    return s;
}

static int parse_slots(const char *text, struct spec_slot *slots, int max)
{
    char copy[SPEC_TEXT_BYTES], *rest = NULL;
    int n = 0;

    snprintf(copy, sizeof copy, "%s", text);
    for (char *at = strtok_r(copy, ";", &rest); at && n < max; at = strtok_r(NULL, ";", &rest))
        slots[n++] = parse_slot(at);
    return n;
}

void spec_declare(struct spec_point *p, const char *with)
{
    struct spec_slot changed[SPEC_MAX_IN + SPEC_MAX_OUT];
    const int n = parse_slots(with ? with : "", changed, SPEC_MAX_IN + SPEC_MAX_OUT);

    for (int k = 0; k < n; ++k) {
        struct spec_slot *found = NULL;
        for (int i = 0; i < p->n_in + p->n_out; ++i) {
            struct spec_slot *const s = i < p->n_in ? &p->in_slot[i] : &p->out_slot[i - p->n_in];
            found = strcmp(s->name, changed[k].name) == 0 ? s : found;
        }
        must(found, p->spec->op, changed[k].name);
        *found = changed[k];
    }
}

struct spec_point spec_point_of(const struct op_spec *spec, const struct op_case *c)
{
    struct spec_point p = {.spec = spec, .c = c, .kind = NORMAL};

    p.n_in = parse_slots(spec->in, p.in_slot, SPEC_MAX_IN);
    p.n_out = parse_slots(spec->out, p.out_slot, SPEC_MAX_OUT);
    spec_declare(&p, c->with);
    return p;
}

static void set_size(struct spec_sizes *s, char letter, const char *text)
{
    int *const rank = &s->rank[letter - 'A'];
    char *end;

    *rank = 0;
    for (const char *at = text; *at && *at != '-'; at = *end == 'x' ? end + 1 : end)
        s->dim[letter - 'A'][(*rank)++] = strtoll(at, &end, 10);
}

bool spec_sizes_at(const char *text, int k, struct spec_sizes *ret)
{
    char copy[SPEC_TEXT_BYTES], *lines = NULL;

    must(strlen(text) < sizeof copy, "sizes", text);
    snprintf(copy, sizeof copy, "%s", text);
    for (char *line = strtok_r(copy, ";", &lines); line; line = strtok_r(NULL, ";", &lines)) {
        char *words = NULL;
        int n_all = 1;
        for (int i = 0; i < SPEC_LETTERS; ++i)
            ret->rank[i] = -1;
        for (char *w = strtok_r(line, " ", &words); w; w = strtok_r(NULL, " ", &words)) {
            const char letter = *w;
            char *values = NULL, *value[16];
            int n = 0;
            for (char *v = strtok_r(w + 2, ",", &values); v; v = strtok_r(NULL, ",", &values))
                value[n++] = v;
            set_size(ret, letter, value[k / n_all % n]);
            n_all *= n;
        }
        if (k < n_all)
            return true;
        k -= n_all;
    }
    return false;
}

const char *spec_sizes_text(const struct spec_point *p, bool full)
{
    const char *const text = full          ? p->c->full    ? p->c->full
                                             : p->c->smoke ? NULL
                                                           : p->spec->full
                             : p->c->smoke ? p->c->smoke
                                           : p->spec->smoke;
    return text ? text : "";
}

unsigned spec_wanted(const struct spec_point *p)
{
    unsigned wanted = 0;
    char words[SPEC_TEXT_BYTES], name[32];

    const char *const names = p->c->grad ? p->c->grad : p->spec->grad;
    snprintf(words, sizeof words, " %s ", names ? names : "");
    for (int i = 0; i < p->n_in; ++i) {
        snprintf(name, sizeof name, " %s ", p->in_slot[i].name);
        if (p->in_slot[i].present && p->in_slot[i].dtype == ATTNCL_F32 && strstr(words, name))
            wanted |= 1u << i;
    }
    return wanted;
}

int spec_shape(const struct spec_slot *s, const struct spec_sizes *sizes, int64_t *dim)
{
    int rank = 0;

    for (const char *axis = s->axes; *axis; ++axis) {
        const bool adds = *axis == '+';
        axis += adds;
        rank -= adds; // to the axis before
        const int64_t before = adds ? dim[rank] : 0;
        if (isdigit((unsigned char)*axis))
            dim[rank++] = *axis - '0' + before;
        else
            for (int i = 0; i < sizes->rank[*axis - 'A']; ++i)
                dim[rank++] = sizes->dim[*axis - 'A'][i] + before;
    }
    return rank;
}

double spec_extent(const struct spec_point *p, char letter)
{
    const struct spec_sizes *const s = &p->sizes;
    double n = 1;

    for (int i = 0; i < s->rank[letter - 'A']; ++i)
        n *= (double)s->dim[letter - 'A'][i];
    return n;
}

const void *spec_params(const struct spec_point *p)
{
    return p->c->params;
}

const struct host *spec_in(const struct spec_point *p, int i)
{
    return p->in[i];
}

const struct host *spec_dy(const struct spec_point *p, int i)
{
    return p->dy[i];
}

double spec_span(const struct spec_point *p)
{
    return p->kind & (SPAN90 | FAR | RISING) ? 90 : p->kind & NORMAL ? 9 : 20;
}

double spec_number(const struct spec_point *p, const char *text) // "-2", "C", "S+10"
{
    return isupper((unsigned char)*text) ? spec_extent(p, *text) + strtod(text + 1, NULL)
                                         : strtod(text, NULL);
}

static void append(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void append(char *text, const char *fmt, ...)
{
    const size_t used = strlen(text);
    va_list args;

    va_start(args, fmt);
    vsnprintf(text + used, SPEC_TEXT_BYTES - used, fmt, args);
    va_end(args);
}

void spec_describe(const struct spec_point *p, char text[SPEC_TEXT_BYTES])
{
    *text = 0;
    append(text, "%s%s%s,", p->spec->op, p->c->name ? " " : "", p->c->name ? p->c->name : "");
    for (int i = 0; i < SPEC_LETTERS; ++i) {
        if (p->sizes.rank[i] >= 0)
            append(text, " %c=%s", 'A' + i, p->sizes.rank[i] ? "" : "-");
        for (int a = 0; a < p->sizes.rank[i]; ++a)
            append(text, a ? "x%lld" : "%lld", (long long)p->sizes.dim[i][a]);
    }
}

void spec_wrong(const struct spec_point *p, const char *fmt, ...)
{
    static const char *const names[] = {
        "NORMAL",   "SPAN90",      "FAR",       "OFFSET",    "SCALED",  "PEAK",
        "LIMITS",   "ALIKE",       "RISING",    "MINUS_INF", "TAILS",   "NEAR_ZERO",
        "NAN_ROWS", "MASK_SPARSE", "MASK_LAST", "MASK_NONE", "INT_ENDS"};
    char text[SPEC_TEXT_BYTES], what[SPEC_TEXT_BYTES];
    va_list args;
    int kind = 0;

    if (spec_tally.n_wrong++ >= MAX_REPORTED)
        return;
    while (p->kind >> kind > 1)
        ++kind;
    spec_describe(p, text);
    append(text, "%s, %s%s%s: ", p->view ? " as views" : "", names[kind], *p->note ? ", " : "",
           p->note);
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    append(text, "%s", what);
    if (spec_tally.n_wrong == 1)
        memcpy(spec_tally.first, text, sizeof text);
    if (!spec_tally.is_quiet)
        fprintf(stderr, "%s\n", text);
}
