// SPDX-License-Identifier: MIT
//
// Who makes a matrix product: CLBlast on the GPUs it is tuned for, the own kernels everywhere else.

#include "launch/gemm.h"

#include <pthread.h>

#include "base/log.h"
#include "launch/clblast.h"
#include "launch/gemm_own.h"

enum provider { BY_CLBLAST, BY_FEW_ROWS, BY_TILES };

struct choice {
    enum provider provider;
    const char *reason;
};

// One launch of the own kernel is faster than CLBlast's several when the product is this small.
static const double clblast_least_flop = 2.0 * 512 * 512 * 512;

static struct choice choose_own(const struct device_caps *caps, const struct gemm *g,
                                const char *reason)
{
    if (attncl__gemv_fits(caps, g))
        return (struct choice){BY_FEW_ROWS, "few rows"};
    return (struct choice){BY_TILES, reason};
}

static struct choice choose(const struct launcher *l, const struct gemm *g)
{
    const char *refusal = attncl__clblast_refuses(g);

    if (g->norm.weight.storage)
        return (struct choice){BY_FEW_ROWS, "few rows, normalised"};
    if (l->gemm && strcmp(l->gemm, "own") == 0)
        return choose_own(l->caps, g, "ATTNCL_GEMM=own");
    if (refusal)
        return choose_own(l->caps, g, refusal);
    if (l->gemm)
        return (struct choice){BY_CLBLAST, "ATTNCL_GEMM=clblast"};
    if (!l->caps->clblast_allowed)
        return choose_own(l->caps, g, "CLBlast is slow on CPU devices");
    const int *tuned = attncl__tuned(l->caps, TUNE_GEMM_BY, attncl__gemm_class(g));
    if (tuned && !attncl__gemm_has_epilogue(g))
        return tuned[GEMM_BY_CLBLAST] ? (struct choice){BY_CLBLAST, "tuned"}
                                      : choose_own(l->caps, g, "tuned");
    if (!attncl__clblast_knows(l->caps))
        return choose_own(l->caps, g, "CLBlast has no tuning for this device");
    if (attncl__gemm_has_epilogue(g))
        return choose_own(l->caps, g, "CLBlast cannot fuse the epilogue");
    if (2.0 * (double)g->m * (double)g->n * (double)g->k < clblast_least_flop)
        return choose_own(l->caps, g, "too small for CLBlast");
    if (attncl__gemv_fits(l->caps, g))
        return (struct choice){BY_FEW_ROWS, "few rows"};
    return (struct choice){BY_CLBLAST, "large and plain"};
}

// True the first time that `line` is seen.  Old lines are forgotten when the table is full.
static bool first_seen(const char *line)
{
    enum { N_SEEN = 256 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t seen[N_SEEN];
    static size_t n_seen;
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
    bool found = false;

    for (const char *c = line; *c; ++c)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_seen && i < N_SEEN && !found; ++i)
        found = seen[i] == hash;
    if (!found)
        seen[n_seen++ % N_SEEN] = hash;
    pthread_mutex_unlock(&lock);
    return !found;
}

static void log_choice(const struct gemm *g, const char *how, const char *reason)
{
    char line[256];

    if (!attncl__log_wanted(ATTNCL_LOG_INFO))
        return;
    snprintf(line, sizeof line,
             "gemm %" PRId64 "x%" PRId64 "x%" PRId64 " %c%c%s, batch %" PRId64 ": %s (%s)", g->m,
             g->n, g->k, g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', g->causal ? " causal" : "",
             g->batch, how, reason);
    if (first_seen(line))
        attncl__log(ATTNCL_LOG_INFO, "%s", line);
}

static attncl_status check(const struct launcher *l, const struct gemm *g)
{
    // Kernels count in int; what is left over absorbs the rounding up to whole tiles.
    const int64_t most = INT32_MAX / 2;

    REQUIRE(g->m <= most && g->n <= most && g->k <= most && g->batch <= most,
            ATTNCL_ERR_UNSUPPORTED,
            "a product of [%" PRId64 ", %" PRId64 "] and [%" PRId64 ", %" PRId64 "], batch %" PRId64
            ", has an extent above %" PRId64,
            g->m, g->k, g->k, g->n, g->batch, most);
    REQUIRE(!l->gemm || strcmp(l->gemm, "own") == 0 || strcmp(l->gemm, "clblast") == 0,
            ATTNCL_ERR_ARGUMENT, "ATTNCL_GEMM is \"%s\", it can be own or clblast", l->gemm);
    assert(!g->norm.weight.storage || (attncl__gemm_norms(l->caps, g) && g->n > 1));
    assert(!g->causal || (g->m == g->k && !g->trans_a));
    assert((g->bias_kind == GEMM_BIAS_NONE) == (g->bias.storage == NULL));
    return ATTNCL_OK;
}

// A matrix times one column is a row times the transposed matrix, which is the few-rows kernel's
// case.
static struct gemm as_one_row(const struct gemm *g)
{
    const bool column_is_dense = g->trans_b || g->b.ld == 1;
    struct gemm t = *g;

    if (g->n != 1 || g->m == 1 || g->causal || !column_is_dense || g->c.ld != 1 ||
        (g->gate.span.storage && g->gate.ld != 1) ||
        (g->residual.span.storage && g->residual.ld != 1))
        return t;
    t.m = 1;
    t.n = g->m;
    t.a = g->b;
    t.b = g->a;
    t.a.ld = g->k; // of single rows; what follows must hold for whoever checks
    t.c.ld = t.gate.ld = t.residual.ld = g->m;
    t.trans_a = false;
    t.trans_b = !g->trans_a;
    if (g->bias_kind == GEMM_BIAS_ROW)
        t.bias_kind = GEMM_BIAS_COLUMN;
    else if (g->bias_kind == GEMM_BIAS_COLUMN)
        t.bias_kind = GEMM_BIAS_ROW;
    return t;
}

// The activation's argument is kept: the product goes there, and one more pass makes C of it.
static attncl_status keep_and_finish(struct launcher *l, const struct gemm *product)
{
    struct gemm plain = *product, rest = *product;

    plain.c = (struct gemm_matrix){product->kept, 0, product->n, product->m * product->n};
    plain.activation = GEMM_ACT_NONE;
    plain.gate = plain.residual = (struct gemm_matrix){.ld = 0};
    plain.kept = (struct span){NULL};
    rest.bias_kind = GEMM_BIAS_NONE;
    rest.bias = (struct span){NULL};
    rest.scratch = product->kept;
    TRY(attncl__gemm(l, &plain));
    return attncl__gemm_finish(l, &rest, GEMM_SUMS_IN_PARTS, 1);
}

attncl_status attncl__gemm(struct launcher *l, const struct gemm *product)
{
    char how[GEMM_HOW_BYTES] = "CLBlast";

    if (product->batch == 0 || product->m == 0 || product->n == 0)
        return ATTNCL_OK;
    TRY(check(l, product));
    if (product->kept.storage)
        return keep_and_finish(l, product);
    if (product->k == 0)
        return attncl__gemm_finish(l, product, GEMM_SUMS_ZERO, 0);

    const struct gemm g = as_one_row(product);
    const struct choice choice = choose(l, &g);
    switch (choice.provider) {
    case BY_CLBLAST:
        TRY(attncl__clblast_gemm(l, &g));
        if (attncl__gemm_has_epilogue(&g))
            TRY(attncl__gemm_finish(l, &g, GEMM_SUMS_IN_C, 0));
        break;
    case BY_FEW_ROWS:
        TRY(attncl__gemv(l, &g, how));
        break;
    case BY_TILES:
        TRY(attncl__gemm_tiles(l, &g, how));
        break;
    }
    log_choice(&g, how, choice.reason);
    return ATTNCL_OK;
}
