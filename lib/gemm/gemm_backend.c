// SPDX-License-Identifier: MIT
//
// GEMM backend selection: CLBlast for large GEMMs on GPUs, native kernels otherwise
// (docs/dev/decisions/0018-clblast.md).  choose_backend() has the rules; the log names the deciding one.

#include <pthread.h>

#include "base/log.h"
#include "gemm/internal.h"

enum gemm_backend { BACKEND_CLBLAST, BACKEND_SKINNY, BACKEND_TILED, BACKEND_QUANTISED };

struct choice {
    enum gemm_backend backend;
    const char *reason;
};

static struct choice choose_native(const struct device_caps *caps, const struct gemm *g,
                                   const char *reason)
{
    if (attncl__gemm_is_skinny(caps, g))
        return (struct choice){BACKEND_SKINNY, "skinny"};
    return (struct choice){BACKEND_TILED, reason};
}

// Returns the reason for native kernels; NULL: use CLBlast, whose kernels have no matrix instructions and whose calls
// cannot be split.
static const char *find_reason_for_native(const struct launcher *l, const struct gemm *g)
{
    const struct device_caps *caps = l->caps;
    const double flop = 2.0 * (double)g->m * (double)g->n * (double)g->k;
    const bool is_batch = g->batch > 1;
    const bool one_call = attncl__clblast_is_one_call(g);
    const int *tuned = attncl__tuned(caps, TUNE_GEMM_BACKEND, is_batch ? TUNE_BATCH : TUNE_SINGLE);

    if (!caps->clblast_candidate)
        return "CLBlast is slow on this device";
    if (caps->mma)
        return "matrix instructions";
    if ((one_call ? (double)g->batch : 1) * flop < CLBLAST_MIN_FLOP)
        return one_call ? "too small for CLBlast" : "matrices too small for a call of CLBlast each";
    if (attncl__parts_at_once(l, 4, 1) == 1)
        return "a call of CLBlast may take more than a second";
    if (tuned && !tuned[GEMM_BACKEND_CLBLAST])
        return "tuned";
    return caps->clblast ? NULL : "CLBlast's results were not found right";
}

static struct choice choose_backend(const struct launcher *l, const struct gemm *g)
{
    const char *reason = attncl__clblast_unsupported_reason(g);

    if (attncl__is_quantised(g->b_dtype))
        return (struct choice){BACKEND_QUANTISED, "weights of 8 or 4 bits"};
    if (g->norm.weight.storage)
        return (struct choice){BACKEND_SKINNY, "skinny, normalised"};
    if (g->merge.position.storage)
        return (struct choice){BACKEND_SKINNY, "skinny, merged"};
    if (g->other[0].b.span.storage)
        return (struct choice){BACKEND_SKINNY, "skinny, several products"};
    if (attncl__is_16_bit(g->b_dtype))
        return choose_native(l->caps, g, "weights of 16 bits");
    if (l->gemm && strcmp(l->gemm, "native") == 0)
        return choose_native(l->caps, g, "ATTNCL_GEMM=native");
    if (reason)
        return choose_native(l->caps, g, reason);
    if (l->gemm)
        return (struct choice){BACKEND_CLBLAST, "ATTNCL_GEMM=clblast"};
    reason = find_reason_for_native(l, g);
    if (reason || attncl__gemm_is_skinny(l->caps, g))
        return choose_native(l->caps, g, reason);
    return (struct choice){BACKEND_CLBLAST, "large"};
}

// True the first time that `line` is seen.  A full table drops the oldest line.
static bool is_first_seen(const char *line)
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

    if (!attncl__log_is_wanted(ATTNCL_LOG_INFO))
        return;
    snprintf(line, sizeof line,
             "gemm %" PRId64 "x%" PRId64 "x%" PRId64 " %c%c%s, batch %" PRId64 ": %s (%s)", g->m,
             g->n, g->k, g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', g->causal ? " causal" : "",
             g->batch, how, reason);
    if (is_first_seen(line))
        attncl__log(ATTNCL_LOG_INFO, "%s", line);
}

static attncl_status check_extents(const struct gemm *g)
{
    // Kernels count in int; half of its range is reserved for rounding up to whole tiles.
    const int64_t max_extent = INT32_MAX / 2;

    REQUIRE(g->m <= max_extent && g->n <= max_extent && g->k <= max_extent &&
                g->batch <= max_extent,
            ATTNCL_ERR_UNSUPPORTED,
            "a GEMM of [%" PRId64 ", %" PRId64 "] and [%" PRId64 ", %" PRId64 "], batch %" PRId64
            ", has an extent above %" PRId64,
            g->m, g->k, g->k, g->n, g->batch, max_extent);
    assert(!g->causal || (g->m == g->k && !g->trans_a));
    assert((g->bias_kind == GEMM_BIAS_NONE) == (g->bias.storage == NULL));
    return ATTNCL_OK;
}

size_t attncl__gemm_scratch(const struct device_caps *caps, const struct gemm *g)
{
    if (g->m == 0 || g->n == 0 || g->k == 0 || g->batch == 0 || attncl__is_quantised(g->b_dtype) ||
        attncl__gemm_is_skinny(caps, g))
        return 0;
    return caps->variant == VARIANT_CPU ? attncl__gemm_cpu_scratch(caps, g)
                                        : attncl__gemm_gpu_scratch(caps, g);
}

// Turns a matrix times one column into a row times the transposed matrix, which is a skinny GEMM.
static struct gemm turn_column_into_row(const struct gemm *g)
{
    const bool column_is_dense = g->trans_b || g->b.ld == 1;
    struct gemm t = *g;

    if (g->n != 1 || g->m == 1 || g->causal || !column_is_dense || g->c.ld != 1 ||
        attncl__is_16_bit(g->b_dtype) || attncl__is_quantised(g->b_dtype) ||
        (g->gate.span.storage && g->gate.ld != 1) ||
        (g->residual.span.storage && g->residual.ld != 1))
        return t;
    t.m = 1;
    t.n = g->m;
    t.a = g->b;
    t.b = g->a;
    t.a.ld = g->k; // for a single row any leading dimension is right; this one passes the checks
    t.c.ld = t.gate.ld = t.residual.ld = g->m;
    t.trans_a = false;
    t.trans_b = !g->trans_a;
    if (g->bias_kind == GEMM_BIAS_ROW)
        t.bias_kind = GEMM_BIAS_COLUMN;
    else if (g->bias_kind == GEMM_BIAS_COLUMN)
        t.bias_kind = GEMM_BIAS_ROW;
    return t;
}

// The GEMM writes the activation's argument, which is saved for backward, and a second launch computes
// C from it.
static attncl_status save_and_apply_epilogue(struct launcher *l, const struct gemm *problem)
{
    struct gemm plain = *problem, rest = *problem;

    plain.c =
        (struct gemm_matrix){problem->saved_for_backward, 0, problem->n, problem->m * problem->n};
    plain.activation = ATTNCL_IDENTITY;
    plain.gate = plain.residual = (struct gemm_matrix){.ld = 0};
    plain.saved_for_backward = (struct span){NULL};
    rest.bias_kind = GEMM_BIAS_NONE;
    rest.bias = (struct span){NULL};
    rest.scratch = problem->saved_for_backward;
    TRY(attncl__gemm(l, &plain));
    return attncl__gemm_apply_epilogue(l, &rest, 1);
}

attncl_status attncl__gemm(struct launcher *l, const struct gemm *problem)
{
    char how[GEMM_HOW_BYTES] = "CLBlast";

    if (problem->batch == 0 || problem->m == 0 || problem->n == 0)
        return ATTNCL_OK;
    TRY(check_extents(problem));
    assert(!problem->norm.weight.storage ||
           (attncl__gemm_can_norm(l->caps, problem) && problem->n > 1));
    assert(!problem->merge.position.storage || attncl__gemm_can_merge(l->caps, problem));
    assert(!problem->other[0].b.span.storage || attncl__gemm_can_take_others(l->caps, problem));
    if (problem->saved_for_backward.storage)
        return save_and_apply_epilogue(l, problem);
    if (problem->k == 0)
        return attncl__gemm_apply_epilogue(l, problem, 0);

    const struct gemm g = turn_column_into_row(problem);
    const struct choice choice = choose_backend(l, &g);
    switch (choice.backend) {
    case BACKEND_CLBLAST:
        TRY(attncl__clblast_gemm(l, &g));
        if (attncl__gemm_has_epilogue(&g))
            TRY(attncl__gemm_apply_epilogue(l, &g, GEMM_SUMS_IN_C));
        break;
    case BACKEND_SKINNY:
        TRY(attncl__gemm_skinny(l, &g, how));
        break;
    case BACKEND_QUANTISED:
        TRY(attncl__gemm_quantised(l, &g, how));
        break;
    case BACKEND_TILED:
        TRY(l->caps->variant == VARIANT_CPU ? attncl__gemm_cpu(l, &g, how)
                                            : attncl__gemm_gpu(l, &g, how));
        break;
    }
    log_choice(&g, how, choice.reason);
    return ATTNCL_OK;
}
