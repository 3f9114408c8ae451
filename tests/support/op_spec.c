// SPDX-License-Identifier: MIT
//
// The driver of op specs: sizes and data from text, one graph for each case and size, what must come out.

#include "support/op_spec.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/compare.h"

enum { MAX_SPECS = 128, MAX_REPORTED = 8, FEW = 40000 };
static const double unit = 0x1p-24; // one rounding

static const struct op_spec *specs[MAX_SPECS];
static int n_specs, n_wrong, n_compared;

const struct op_spec *spec_find(const char *op)
{
    for (int i = 0; i < n_specs; ++i)
        if (strcmp(specs[i]->op, op) == 0)
            return specs[i];
    return NULL;
}

// An input or output as it is declared.
struct slot {
    char name[24], low[16], high[16]; // of integers; low alone: the share of ones of a mask
    char axes[32];                    // letters, digits that are extents, sums of these with '+'
    bool present, any_rank;           // the first axis may be any number of axes
    bool any_type, ranged;
    attncl_dtype dtype;
};

struct sizes {
    int rank[SPEC_LETTERS]; // -1: the letter is not used
    int64_t dim[SPEC_LETTERS][ATTNCL_MAX_RANK];
};

struct spec_point {
    const struct op_spec *spec;
    const struct op_case *c;
    struct slot in_slot[SPEC_MAX_IN], out_slot[SPEC_MAX_OUT];
    struct sizes sizes;
    bool view;
    unsigned kind;     // the bit of enum spec_data
    struct op_graph t; // its in, out and dy are this problem's
    char what[64];     // is special
};

// -- text

static struct slot parse_slot(char *text)
{
    static const attncl_dtype types[] = {ATTNCL_F32, ATTNCL_I32, ATTNCL_U8, ATTNCL_F16,
                                         ATTNCL_BF16};
    struct slot s = {.low = "0", .high = "0"};
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
    ck_assert_msg(s.dtype != ATTNCL_DTYPE_NONE, "%s: there is no type \"%s\"", s.name, type);
    sscanf(text + n, " %*[^ ] %63[^;]", axes);
    s.any_rank = axes[0] && axes[1] == '*';
    n = 0;
    for (const char *at = axes; *at; ++at)
        if (isalnum((unsigned char)*at) || *at == '+')
            s.axes[n++] = *at;
    ck_assert_int_lt(n, (int)sizeof s.axes);
    return s;
}

static int parse_slots(const char *text, struct slot *slots, int max)
{
    char copy[SPEC_TEXT_BYTES], *rest = NULL;
    int n = 0;

    snprintf(copy, sizeof copy, "%s", text);
    for (char *at = strtok_r(copy, ";", &rest); at && n < max; at = strtok_r(NULL, ";", &rest))
        slots[n++] = parse_slot(at);
    return n;
}

// The spec's declarations, with those of `with` in the place of the ones they name.
static void declare(struct spec_point *p, const char *with)
{
    struct slot changed[SPEC_MAX_IN + SPEC_MAX_OUT];
    const int n = parse_slots(with ? with : "", changed, SPEC_MAX_IN + SPEC_MAX_OUT);

    for (int k = 0; k < n; ++k) {
        struct slot *found = NULL;
        for (int i = 0; i < p->t.n_in + p->t.n_out; ++i) {
            struct slot *const s = i < p->t.n_in ? &p->in_slot[i] : &p->out_slot[i - p->t.n_in];
            found = strcmp(s->name, changed[k].name) == 0 ? s : found;
        }
        ck_assert_msg(found, "%s has no %s", p->spec->op, changed[k].name);
        *found = changed[k];
    }
}

static void set_size(struct sizes *s, char letter, const char *text)
{
    int *const rank = &s->rank[letter - 'A'];
    char *end;

    *rank = 0;
    for (const char *at = text; *at && *at != '-'; at = *end == 'x' ? end + 1 : end)
        s->dim[letter - 'A'][(*rank)++] = strtoll(at, &end, 10);
}

// The k-th combination of "R=1,3 C=7,2x5; R=4 C=-"; false behind the last one.
static bool sizes_at(const char *text, int k, struct sizes *ret)
{
    char copy[SPEC_TEXT_BYTES], *lines = NULL;

    ck_assert_uint_lt(strlen(text), sizeof copy);
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

static int shape_of(const struct slot *s, const struct sizes *sizes, int64_t *dim)
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
    const struct sizes *const s = &p->sizes;
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
    return p->t.in[i];
}

const struct host *spec_dy(const struct spec_point *p, int i)
{
    return p->t.dy[i];
}

double spec_span(const struct spec_point *p)
{
    return p->kind & (SPAN90 | FAR | RISING) ? 90 : p->kind & NORMAL ? 9 : 20;
}

static double number(const struct spec_point *p, const char *text) // "-2", "C", "S+10"
{
    return isupper((unsigned char)*text) ? spec_extent(p, *text) + strtod(text + 1, NULL)
                                         : strtod(text, NULL);
}

// The reports of a test go to stderr; its own failure counts them.
static void wrong(const struct spec_point *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void wrong(const struct spec_point *p, const char *fmt, ...)
{
    static const char *const names[] = {
        "NORMAL",   "SPAN90",      "FAR",       "OFFSET",    "SCALED",  "PEAK",
        "LIMITS",   "ALIKE",       "RISING",    "MINUS_INF", "TAILS",   "NEAR_ZERO",
        "NAN_ROWS", "MASK_SPARSE", "MASK_LAST", "MASK_NONE", "INT_ENDS"};
    char where[SPEC_TEXT_BYTES] = "";
    va_list args;
    int kind = 0;

    if (n_wrong++ >= MAX_REPORTED)
        return;
    while (p->kind >> kind > 1)
        ++kind;
    for (int i = 0, at = 0; i < SPEC_LETTERS; ++i) {
        if (p->sizes.rank[i] >= 0)
            at += snprintf(where + at, sizeof where - (size_t)at, " %c=%s", 'A' + i,
                           p->sizes.rank[i] ? "" : "-");
        for (int a = 0; a < p->sizes.rank[i]; ++a)
            at += snprintf(where + at, sizeof where - (size_t)at, a ? "x%lld" : "%lld",
                           (long long)p->sizes.dim[i][a]);
    }
    fprintf(stderr, "%s%s%s,%s%s, %s%s%s: ", p->spec->op, p->c->name ? " " : "",
            p->c->name ? p->c->name : "", where, p->view ? " as views" : "", names[kind],
            *p->what ? ", " : "", p->what);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

// -- data

static double element(unsigned kind, double normal, double flat, int64_t row, int64_t c, int64_t n)
{
    static const double offsets[] = {1, 100, 1e4}, scales[] = {1e-10, 1e15, 1};
    const double sign = row % 2 ? -1 : 1;

    switch (kind) {
    case SPAN90:
        return 45 * flat;
    case FAR:
        return sign * (9956 + 44 * flat);
    case OFFSET:
        return normal + offsets[row % 3];
    case SCALED:
        return normal * scales[row % 3];
    case PEAK:
        return c == 3 % n ? 1e4 : -1e4;
    case LIMITS:
        return c == n - 1 ? 3e38 : -3e38;
    case ALIKE:
        return row % 2 ? 10000 - (double)(c % 2) : 5.5;
    case RISING:
        return normal + sign * (double)c / 8;
    case MINUS_INF:
        return row % 3 == 1 || (row % 3 == 0 ? c % 2 == 1 : c < n - 1) ? -INFINITY : normal;
    case TAILS:
        return 86 * flat;
    case NAN_ROWS:
        return row % 3 == 1 ? NAN : normal;
    case NEAR_ZERO:
        return 1e-3 * flat;
    default:
        return normal;
    }
}

// A stream of its own for each input.
static unsigned seed(int stream)
{
    const char *const text = getenv("TEST_SEED");

    return (unsigned)stream + 1000u * (text ? (unsigned)atoi(text) : 0);
}

static struct host *floats(const struct spec_point *p, int i, int rank, const int64_t *dim,
                           unsigned kind)
{
    const char *const axes = p->in_slot[i].axes;
    const size_t last = strlen(axes);
    const int64_t n = last == 0 ? 1
                      : isupper((unsigned char)axes[last - 1]) && !strchr(axes, '+')
                          ? (int64_t)spec_extent(p, axes[last - 1])
                          : dim[rank - 1];
    struct host *x = p->in_slot[i].ranged ? host_uniform(seed(i + 1), number(p, p->in_slot[i].low),
                                                         number(p, p->in_slot[i].high), rank, dim)
                                          : host_random(seed(i + 1), rank, dim);
    const struct host *flat = kind == NORMAL ? x : host_uniform(seed(50), -1, 1, rank, dim);

    for (int64_t at = 0; kind != NORMAL && at < x->count; ++at)
        x->data[at] = (float)element(kind, x->data[at], flat->data[at], at / n, at % n, n);
    return p->in_slot[i].dtype == ATTNCL_F32 ? x : host_stored(x, p->in_slot[i].dtype);
}

static struct host *ints(const struct spec_point *p, int i, int rank, const int64_t *dim)
{
    const int low = (int)number(p, p->in_slot[i].low);
    const int high = (int)number(p, p->in_slot[i].high);
    const int ends[] = {low, high - 1, low + 1 < high ? low + 1 : low,
                        (int)(low + ((int64_t)high - 1 - low) / 2)};
    struct host *x = host_ints(seed(i + 1), low, high, rank, dim);

    for (int64_t at = 0; p->kind == INT_ENDS && at < x->count; ++at)
        x->data[at] = ends[at % 4];
    return x;
}

static struct host *mask(const struct spec_point *p, int i, int rank, const int64_t *dim)
{
    const double share = p->kind == MASK_SPARSE ? 0.02 : strtod(p->in_slot[i].low, NULL);
    struct host *x = host_mask(seed(i + 1), share, rank, dim);
    const int axis = rank > 1; // masks are [queries, keys, entries]
    int64_t inner = 1;

    for (int a = axis + 1; a < rank; ++a)
        inner *= dim[a];
    for (int64_t at = 0; at < x->count; ++at) {
        const int64_t first = at / (x->count / dim[0]);
        if (p->kind == MASK_NONE ||
            (p->kind == MASK_SPARSE && dim[0] > 1 && first % (dim[0] - 1) == 0))
            x->data[at] = 0;
        if (p->kind == MASK_LAST)
            x->data[at] = at / inner % dim[axis] == dim[axis] - 1;
    }
    return x;
}

static bool has(const struct spec_point *p, attncl_dtype dtype)
{
    for (int i = 0; i < p->t.n_in; ++i)
        if (p->in_slot[i].present && p->in_slot[i].dtype == dtype)
            return true;
    return false;
}

// Ends the life of all host tensors before.
static void fill(struct spec_point *p)
{
    unsigned kind = p->kind < MASK_SPARSE ? p->kind : NORMAL; // of the first input of floats
    int64_t dim[ATTNCL_MAX_RANK];

    host_reset();
    for (int i = 0; i < p->t.n_in; ++i) {
        const struct slot *const s = &p->in_slot[i];
        const int rank = shape_of(s, &p->sizes, dim);
        const bool takes_kind = s->dtype == ATTNCL_F32 && !s->ranged;
        p->t.in[i] = NULL;
        if (!s->present)
            continue;
        p->t.in[i] = s->dtype == ATTNCL_I32  ? ints(p, i, rank, dim)
                     : s->dtype == ATTNCL_U8 ? mask(p, i, rank, dim)
                                             : floats(p, i, rank, dim, takes_kind ? kind : NORMAL);
        p->t.in[i]->as_view = p->view && rank > 0 && !(p->t.cls->state >> i & 1) &&
                              (!attncl__is_16_bit(s->dtype) || p->t.cls->strided >> i & 1);
        kind = takes_kind ? NORMAL : kind;
    }
    if (p->c->prepare)
        p->c->prepare(p->t.in);
    for (int i = 0; i < p->t.n_in; ++i)
        if (p->t.in[i] && p->t.in[i]->dtype == ATTNCL_F32)
            host_scale(p->t.in[i], 1); // what was prepared as floats
    for (int i = 0; i < p->t.n_out; ++i) {
        const struct slot *const s = &p->out_slot[i];
        const int rank = shape_of(s, &p->sizes, dim);
        p->t.out[i] = s->present ? host_new(s->dtype, rank, dim) : NULL;
        p->t.dy[i] =
            s->present && s->dtype == ATTNCL_F32 ? host_random(seed(97 + i), rank, dim) : NULL;
    }
}

// -- comparing

static double ratio_of(double got, double want, double allowed, unsigned leeway)
{
    if (is_unwritten(got))
        return INFINITY;
    if (((leeway & SPREADS) && isnan(got)) || ((leeway & UNSEEN) && isnan(want)) ||
        ((leeway & MEETS) && !isfinite(want) && !isfinite(got)))
        return 0;
    return error_ratio(got, want, allowed);
}

// Reads what the device has, and compares it; `name`: of messages.  Returns it.  reach: NULL, or where NaN may be too.
static struct host *check_result(const struct spec_point *p, const char *prefix, int i,
                                 const struct host *want, const struct host *allowed,
                                 unsigned leeway, const struct host *reach)
{
    const char *const name = strcmp(prefix, "out") == 0 ? p->out_slot[i].name : p->in_slot[i].name;
    struct host *got = host_like(want);
    struct worst w = {0};
    int64_t n_bad = 0;

    if (op_graph_read(&p->t, prefix, i, got) != ATTNCL_OK) {
        wrong(p, "%s is not read: %s", name, attncl_last_error());
        return got;
    }
    for (int64_t at = 0; at < got->count; ++at) {
        const bool reached = reach && !isfinite(reach->data[at]);
        const double ratio = ratio_of(got->data[at], want->data[at], allowed->data[at],
                                      leeway | (reached ? SPREADS : 0));
        const struct worst worse = {ratio, 0, at, got->data[at], want->data[at], allowed->data[at]};
        n_bad += ratio > 1;
        if (at == 0 || ratio > w.ratio)
            w = worse;
    }
    n_compared += 1;
    if (n_bad)
        wrong(p, "%s%s[%lld] of %lld is %.9g%s, expected %.9g within %.3g; %lld are wrong",
              strcmp(prefix, "dx") == 0 ? "gradient of " : "", name, (long long)w.at,
              (long long)got->count, w.got, is_unwritten(w.got) ? " (never written)" : "", w.want,
              w.allowed, (long long)n_bad);
    return got;
}

static double largest(const struct host *h)
{
    double most = 0;

    for (int64_t i = 0; i < h->count; ++i)
        most = isfinite(h->data[i]) ? fmax(most, fabs(h->data[i])) : most;
    return most;
}

static struct host *spread(const struct host *like, double relative, double absolute)
{
    struct host *h = host_like(like);

    for (int64_t i = 0; i < h->count; ++i)
        h->data[i] = relative * (isfinite(like->data[i]) ? fabs(like->data[i]) : 0) + absolute;
    return h;
}

static struct host *allowance(const struct spec_point *p, int k, const struct host *want)
{
    const struct op_spec *const s = p->spec;
    const double n = s->chain ? spec_extent(p, s->chain) : 1;
    const double more = (s->spans ? spec_span(p) : 0) + (s->chain ? log2(fmax(n, 1)) + n / 256 : 0);

    if (want->dtype == ATTNCL_I32 || want->dtype == ATTNCL_U8)
        return host_like(want);
    if (*p->what)
        return spread(want, 1e-4, 1e-4);
    if (s->allow) {
        struct host *allowed = host_like(want);
        s->allow(p, k, want, allowed);
        return allowed;
    }
    return spread(want, ((p->c->rel > 0 ? p->c->rel : s->rel) + more) * unit,
                  s->abs * unit * largest(want) + s->tiny);
}

static struct host *grad_allowance(const struct spec_point *p, int i, const struct host *want,
                                   const struct host *size)
{
    const double tolerance = p->spec->grad_tolerance > 0 ? p->spec->grad_tolerance : 1e-5;

    if (*p->what)
        return spread(want, 1e-4, 1e-4);
    if (p->spec->allow_grad) {
        struct host *allowed = host_like(want);
        p->spec->allow_grad(p, i, want, allowed);
        return allowed;
    }
    return size ? spread(size, tolerance, 1e-37)
                : spread(want, 0, tolerance * fmax(largest(want), 0.1));
}

// Of the reference, or of differences of the definition; with both the one proves the other.
static void expected_gradients(const struct spec_point *p, struct host **want)
{
    int64_t n_elements = 0;
    struct host *out[SPEC_MAX_OUT] = {NULL};

    for (int i = 0; i < p->t.n_in; ++i)
        want[i] = p->t.in[i] ? host_like(p->t.in[i]) : NULL;
    for (int i = 0; i < p->t.n_out; ++i)
        out[i] = p->t.dy[i] ? host_like(p->t.dy[i]) : NULL;
    if (p->spec->ref_bwd)
        p->spec->ref_bwd(p->c->params, p->t.in, p->t.dy, want);
    for (int i = 0; i < p->t.n_in; ++i)
        n_elements += p->t.in[i] ? p->t.in[i]->count : 0;
    for (int i = 0; i < p->t.n_in; ++i) {
        if (!(p->t.wanted >> i & 1) || *p->what ||
            (p->spec->ref_bwd && (p->t.in[i]->count * n_elements > FEW ||
                                  (p->kind != NORMAL && p->kind < MASK_SPARSE))))
            continue;
        struct host *d =
            finite_differences(p->spec->ref, p->c->params, p->t.in, out, p->t.dy, p->t.n_out, i);
        for (int64_t at = 0; p->spec->ref_bwd && at < d->count; ++at)
            if (!(fabs(d->data[at] - want[i]->data[at]) <= 1e-5 * (largest(d) + 1e-3))) {
                wrong(p, "the reference's gradient of %s[%lld] is %.9g, differences give %.9g",
                      p->in_slot[i].name, (long long)at, want[i]->data[at], d->data[at]);
                break;
            }
        want[i] = p->spec->ref_bwd ? want[i] : d;
    }
}

// What the device gives the second time must have the same bits.
static void check_same(const struct spec_point *p, const char *name, const struct host *first,
                       const struct host *second)
{
    if (first && memcmp(first->data, second->data, (size_t)first->count * sizeof first->data[0]))
        wrong(p, "%s is not the same twice", name);
}

// What must come out: of output i at i, of the state at input i, and the gradients.
struct expected {
    struct host *out[SPEC_MAX_OUT], *state[SPEC_MAX_IN], *dx[SPEC_MAX_IN], *size[SPEC_MAX_IN];
    struct host *reach[SPEC_MAX_OUT], *dx_reach[SPEC_MAX_IN]; // NULL: of nothing special
};

static void expect(const struct spec_point *p, struct expected *e)
{
    struct host *in[SPEC_MAX_IN] = {NULL};

    for (int i = 0; i < p->t.n_in; ++i) {
        in[i] = p->t.in[i];
        if (in[i] && p->t.cls->state >> i & 1)
            e->state[i] = in[i] = host_copy(in[i]);
        e->size[i] = in[i] && p->spec->grad_sizes ? host_like(in[i]) : NULL;
        e->dx_reach[i] = in[i] && *p->what && p->spec->reach_bwd ? host_like(in[i]) : NULL;
    }
    for (int i = 0; i < p->t.n_out; ++i) {
        e->out[i] = p->t.out[i] ? host_like(p->t.out[i]) : NULL;
        e->reach[i] = p->t.out[i] && *p->what && p->spec->reach ? host_like(p->t.out[i]) : NULL;
    }
    p->spec->ref(p->c->params, in, e->out);
    if (*p->what && p->spec->reach)
        p->spec->reach(p->c->params, in, e->reach);
    if (*p->what && p->t.wanted && p->spec->reach_bwd)
        p->spec->reach_bwd(p->c->params, in, p->t.dy, e->dx_reach);
    if (p->t.wanted && p->spec->grad_sizes)
        p->spec->grad_sizes(p->c->params, in, p->t.dy, e->size);
    if (p->t.wanted)
        expected_gradients(p, e->dx);
}

// Runs the graph with what p->t.in holds; `repeat`: twice, with the same bits.
static void check_run(const struct spec_point *p, bool repeat)
{
    const unsigned leeway = *p->what ? p->c->leeway & ~(unsigned)UNSEEN : 0;
    const unsigned grad_leeway = *p->what ? p->spec->leeway | (p->c->leeway & UNSEEN) : 0;
    struct host *got[SPEC_MAX_OUT + 2 * SPEC_MAX_IN] = {NULL}, *now;
    struct expected e = {0};

    expect(p, &e);
    for (int pass = 0; pass <= repeat; ++pass) {
        struct host **last = got;
        if (op_graph_run(&p->t) != ATTNCL_OK) {
            wrong(p, "does not run: %s", attncl_last_error());
            return;
        }
        for (int i = 0; i < p->t.n_out; ++i, ++last)
            if (e.out[i]) {
                now = check_result(p, "out", i, e.out[i], allowance(p, i, e.out[i]), leeway,
                                   e.reach[i]);
                check_same(p, p->out_slot[i].name, *last, now);
                *last = now;
            }
        for (int i = 0; i < p->t.n_in; ++i, ++last)
            if (e.state[i]) {
                now = check_result(p, "in", i, e.state[i], allowance(p, p->t.n_out + i, e.state[i]),
                                   leeway, NULL);
                check_same(p, p->in_slot[i].name, *last, now);
                *last = now;
            }
        for (int i = 0; i < p->t.n_in; ++i, ++last)
            if (p->t.wanted >> i & 1) {
                now = check_result(p, "dx", i, e.dx[i], grad_allowance(p, i, e.dx[i], e.size[i]),
                                   grad_leeway, e.dx_reach[i]);
                check_same(p, p->in_slot[i].name, *last, now);
                *last = now;
            }
    }
}

static void close_graph(struct spec_point *p)
{
    op_graph_close(&p->t);
}

static bool open_graph(struct spec_point *p)
{
    char text[OP_GRAPH_TEXT_BYTES];

    fill(p);
    if (op_graph_open(&p->t, p->c->params) != ATTNCL_OK)
        wrong(p, "does not compile: %s", attncl_last_error());
    else if (!op_graph_has_shapes(&p->t, text))
        wrong(p, "%s", text);
    else
        return true;
    close_graph(p);
    return false;
}

// -- the tests

static const char *sizes_text(const struct spec_point *p, bool full)
{
    const char *const text = full          ? p->c->full    ? p->c->full
                                             : p->c->smoke ? NULL
                                                           : p->spec->full
                             : p->c->smoke ? p->c->smoke
                                           : p->spec->smoke;
    return text ? text : "";
}

static unsigned wanted_gradients(const struct spec_point *p)
{
    unsigned wanted = 0;
    char words[SPEC_TEXT_BYTES], name[32];

    const char *const names = p->c->grad ? p->c->grad : p->spec->grad;
    snprintf(words, sizeof words, " %s ", names ? names : "");
    for (int i = 0; i < p->t.n_in; ++i) {
        snprintf(name, sizeof name, " %s ", p->in_slot[i].name);
        if (p->in_slot[i].present && p->in_slot[i].dtype == ATTNCL_F32 && strstr(words, name))
            wanted |= 1u << i;
    }
    return wanted;
}

static void check_all_data(struct spec_point *p)
{
    const unsigned all = p->c->data ? p->c->data : p->spec->data, others = ~(MASK_SPARSE - 1u);
    const unsigned data = NORMAL | (p->t.wanted ? all & (others | p->spec->grad_data) : all);
    const unsigned idle = (has(p, ATTNCL_I32) ? 0 : INT_ENDS) |
                          (has(p, ATTNCL_U8) ? 0 : MASK_SPARSE | MASK_LAST | MASK_NONE);

    p->kind = NORMAL;
    const bool open = open_graph(p);
    for (unsigned kind = NORMAL; open && kind < END_OF_DATA; kind <<= 1) {
        if (!(data & ~idle & kind))
            continue;
        p->kind = kind;
        fill(p);
        check_run(p, kind == NORMAL);
    }
    p->kind = NORMAL;
    if (open)
        close_graph(p);
}

// Gradients of smoke sizes: dense and as views in turn.
static void check_sizes(struct spec_point *p)
{
    const bool full = test_has_full_sizes(), both = full || !p->t.wanted;

    for (int f = 0; f <= full; ++f)
        for (int k = 0; sizes_at(sizes_text(p, f), k, &p->sizes) && !(on_simulator() && k > 1); ++k)
            for (int view = 0; view < 2; ++view) {
                p->view = view;
                if (both || k % 2 == view)
                    check_all_data(p);
            }
}

static void check_gradients(struct spec_point *p)
{
    p->t.wanted = wanted_gradients(p);
    if (p->t.wanted)
        check_sizes(p);
}

// NaN and infinity in the first, a middle and the last element of each input, and of dy with gradients; these have a
// smoke run of one place for each infinity.
static void check_special_size(struct spec_point *p)
{
    static const double specials[] = {NAN, INFINITY, -INFINITY};
    const int n_in = p->t.n_in, n_slots = n_in + (p->t.wanted ? p->t.n_out : 0);
    const bool few = p->t.wanted && !test_has_full_sizes();

    if (!open_graph(p))
        return;
    for (int i = 0; i < n_slots; ++i)
        for (int s = 0; s < 9; ++s) {
            fill(p);
            struct host *const h = i < n_in ? p->t.in[i] : p->t.dy[i - n_in];
            if (!h || h->dtype != ATTNCL_F32 || h->count == 0 || (few && s % 3 != 0 && s % 4 != 0))
                continue;
            h->data[s / 3 * (h->count - 1) / 2] = specials[s % 3];
            snprintf(p->what, sizeof p->what, "%g in %s%s, place %d", specials[s % 3],
                     i < n_in ? "" : "d",
                     i < n_in ? p->in_slot[i].name : p->out_slot[i - n_in].name, s / 3);
            check_run(p, false);
            p->what[0] = 0;
        }
    close_graph(p);
}

static void check_specials(struct spec_point *p)
{
    const char *const text = p->c->special ? p->c->special : p->spec->special;

    for (int k = 0; sizes_at(text, k, &p->sizes); ++k)
        check_special_size(p);
}

static void check_special_gradients(struct spec_point *p)
{
    p->t.wanted = p->spec->ref_bwd ? wanted_gradients(p) : 0;
    if (p->t.wanted)
        check_specials(p);
}

// The status of an op with these inputs, which are zeros.
static attncl_status try(struct spec_point *p, struct host *const *in)
{
    for (int i = 0; i < p->t.n_in; ++i)
        p->t.in[i] = in[i];
    const attncl_status status = op_graph_open(&p->t, p->c->params);
    close_graph(p);
    return status;
}

static void keep(struct host **in, const struct spec_point *p)
{
    memcpy(in, p->t.in, SPEC_MAX_IN * sizeof in[0]);
}

static int uses(const struct spec_point *p, char letter)
{
    int n = 0;

    for (int i = 0; i < p->t.n_in; ++i)
        n += p->in_slot[i].present && strchr(p->in_slot[i].axes, letter);
    return n;
}

static bool is_used(const struct spec_point *p, char letter)
{
    for (int i = 0; i < p->t.n_out; ++i)
        if (p->out_slot[i].present && strchr(p->out_slot[i].axes, letter))
            return true;
    return uses(p, letter) > 0;
}

// The first size that has an axis of this letter.
static bool find_axis(struct spec_point *p, char letter)
{
    for (int k = 0; sizes_at(sizes_text(p, false), k, &p->sizes); ++k)
        if (p->sizes.rank[letter - 'A'] > 0 && is_used(p, letter))
            return true;
    return false;
}

static void check_empty(struct spec_point *p)
{
    const struct op_spec *const s = p->spec;

    for (char letter = 'A'; letter <= 'Z'; ++letter) {
        if (!find_axis(p, letter))
            continue;
        p->sizes.dim[letter - 'A'][0] = 0;
        if (s->nonzero && strchr(s->nonzero, letter)) {
            fill(p);
            struct host *in[SPEC_MAX_IN];
            keep(in, p);
            if (try(p, in) != ATTNCL_ERR_SHAPE)
                wrong(p, "%c = 0 gives %s", letter, attncl_last_error());
            continue;
        }
        for (int gradients = 0; gradients <= (s->ref_bwd != NULL); ++gradients) {
            p->t.wanted = gradients ? wanted_gradients(p) : 0;
            if (open_graph(p)) {
                check_run(p, false);
                close_graph(p);
            }
        }
    }
}

static bool has_word_of(const char *text, const char *word, size_t n)
{
    for (const char *at = text; (at = strchr(at, *word)); ++at)
        if (strncmp(at, word, n) == 0 &&
            (at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) &&
            !isalnum((unsigned char)at[n]) && at[n] != '_')
            return true;
    return false;
}

// As a whole word: every message begins with the op's name.  "value3" may be called "value" there.
static bool has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    size_t base = n;

    while (base > 1 && isdigit((unsigned char)word[base - 1]))
        --base;
    return has_word_of(text, word, n) || has_word_of(text, word, base);
}

// Expects a refusal whose message has one of the names of the inputs that `letter` is an axis of, or inputs[i]'s.
static void check_refused(struct spec_point *p, struct host *const *in, int i, const char *letters,
                          attncl_status status, const char *change)
{
    const attncl_status got = try(p, in);
    bool named = false;

    n_compared += 1;
    for (int k = 0; k < p->t.n_in; ++k)
        named |= (k == i || (letters && strpbrk(p->in_slot[k].axes, letters))) &&
                 has_word(attncl_last_error(), p->in_slot[k].name);
    if (got == ATTNCL_OK)
        wrong(p, "accepts %s with another %s", p->in_slot[i].name, change);
    else if (got != status || !named)
        wrong(p, "another %s of %s: %s: %s", change, p->in_slot[i].name, attncl_status_name(got),
              attncl_last_error());
}

// One extent more; the name in the message is of an input with that letter.
static void check_extent_refused(struct spec_point *p, struct host **in, int i, int axis,
                                 const char *letters)
{
    const struct host *const x = in[i];
    int64_t dim[ATTNCL_MAX_RANK];

    memcpy(dim, x->dim, sizeof dim);
    dim[axis] += 1;
    in[i] = host_new(x->dtype, x->rank, dim);
    check_refused(p, in, i, letters, ATTNCL_ERR_SHAPE, "extent");
}

static void check_refusals_of_input(struct spec_point *p, int i)
{
    struct host *in[SPEC_MAX_IN], *const x = p->t.in[i];
    const struct slot *const s = &p->in_slot[i];
    int axis = 0;

    keep(in, p);
    in[i] = host_new(x->dtype == ATTNCL_I32 ? ATTNCL_F32 : ATTNCL_I32, x->rank, x->dim);
    if (!s->any_type)
        check_refused(p, in, i, NULL, ATTNCL_ERR_DTYPE, "type");
    for (const char *at = s->axes; *at; ++at) {
        const char letters[] = {*at, 0};
        const bool sums = at[1] == '+';
        in[i] = x;
        if (isupper((unsigned char)*at) && uses(p, *at) > 1 && p->sizes.rank[*at - 'A'] > 0)
            check_extent_refused(p, in, i, axis, letters);
        axis += isdigit((unsigned char)*at) ? 1 : p->sizes.rank[*at - 'A'];
        while (sums && at[1] && (at[1] == '+' || *at == '+'))
            ++at;
    }
    // Weights of the last axes may have one less.
    const bool has_group =
        isupper((unsigned char)s->axes[0]) && p->sizes.rank[s->axes[0] - 'A'] > 1;
    if (x->rank > 0 && !(s->any_rank && (uses(p, s->axes[0]) < 2 || has_group))) {
        in[i] = host_new(x->dtype, x->rank - 1, x->dim + 1);
        check_refused(p, in, i, s->axes, ATTNCL_ERR_SHAPE, "rank");
    }
    if (s->any_rank && s->axes[1]) {
        in[i] = host_new(x->dtype, 0, NULL);
        check_refused(p, in, i, NULL, ATTNCL_ERR_SHAPE, "rank");
    }
}

static void check_refusals(struct spec_point *p)
{
    for (int k = 0; sizes_at(sizes_text(p, false), k, &p->sizes); ++k)
        for (int i = 0; i < p->t.n_in; ++i)
            if (fill(p), p->t.in[i])
                check_refusals_of_input(p, i);
    sizes_at(sizes_text(p, false), 0, &p->sizes);
    if (p->c != p->spec->cases)
        return;
    for (const struct op_refusal *r = p->spec->refusals; r->words; ++r) {
        struct spec_point q = *p;
        struct op_case changed = *p->c;
        struct host *in[SPEC_MAX_IN];
        changed.params = r->params ? r->params : changed.params;
        q.c = &changed;
        declare(&q, r->with);
        if (r->sizes)
            sizes_at(r->sizes, 0, &q.sizes);
        fill(&q);
        keep(in, &q);
        n_compared += 1;
        if (try(&q, in) != r->status || !strstr(attncl_last_error(), r->words))
            wrong(p, "expected a refusal with \"%s\", got: %s", r->words, attncl_last_error());
    }
}

static void check_cases(const struct op_spec *s, void (*check)(struct spec_point *p))
{
    n_wrong = n_compared = 0;
    for (const struct op_case *c = s->cases; c == s->cases || c->name; ++c) {
        struct spec_point p = {.spec = s, .c = c, .kind = NORMAL};
        p.t.cls = attncl__op_find(s->op);
        ck_assert_msg(p.t.cls, "there is no op %s", s->op);
        p.t.n_in = parse_slots(s->in, p.in_slot, SPEC_MAX_IN);
        p.t.n_out = parse_slots(s->out, p.out_slot, SPEC_MAX_OUT);
        ck_assert_int_le(p.t.n_in, p.t.cls->n_in);
        declare(&p, c->with);
        check(&p);
        host_reset();
    }
    ck_assert_msg(n_wrong == 0, "%s: %d wrong", s->op, n_wrong);
    ck_assert_msg(n_compared > 0, "%s: nothing was compared", s->op);
}

// _i: the spec.
#define SPEC_TEST(name, check)                                                                     \
    START_TEST(name)                                                                               \
    {                                                                                              \
        check_cases(specs[_i], check);                                                             \
    }                                                                                              \
    END_TEST

SPEC_TEST(matches_the_reference, check_sizes)
SPEC_TEST(gradients_match, check_gradients)
SPEC_TEST(special_values, check_specials)
SPEC_TEST(special_gradients, check_special_gradients)
SPEC_TEST(empty_axes, check_empty)
SPEC_TEST(refusals, check_refusals)

void spec_add(const struct op_spec *spec, const char *file, int line)
{
    const struct {
        const TTest *test;
        bool applies;
    } tests[] = {{matches_the_reference, true},
                 {gradients_match, spec->grad},
                 {special_values, spec->special},
                 {special_gradients, spec->special && spec->grad && spec->ref_bwd},
                 {empty_axes, strpbrk(spec->in, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")},
                 {refusals, true}};

    if (n_specs == MAX_SPECS)
        abort();
    for (size_t i = 0; i < COUNT_OF(tests); ++i)
        if (tests[i].applies)
            test_add_at(file, line, tests[i].test, n_specs, n_specs + 1);
    specs[n_specs++] = spec;
}
