// SPDX-License-Identifier: MIT
//
// Verdicts on this device's kernels: loaded when a context is created, or found by running a probe.

#include "device/probe.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "device/internal.h"
#include "device/program.h"
#include "store/private_dir.h"
#include "store/tuning_table.h"

_Static_assert((int)PROBE_WHY_BYTES == (int)VERDICT_WHY_BYTES, "the same texts");

struct known_verdict {
    char name[PROBE_NAME_BYTES], why[PROBE_WHY_BYTES];
    enum probe_verdict verdict;
    bool is_logged;
};

static struct verdict_key make_verdict_key(const attncl_context *ctx)
{
    return (struct verdict_key){attncl__sources_digest, ctx->info.name, ctx->info.driver_version};
}

static struct known_verdict *find_verdict(const attncl_context *ctx, const char *name)
{
    for (int i = 0; i < ctx->n_verdicts; ++i)
        if (strcmp(ctx->verdicts[i].name, name) == 0)
            return &ctx->verdicts[i];
    return NULL;
}

// If memory is short, the probe runs again next time.
void attncl__probe_remember(attncl_context *ctx, const char *name, enum probe_verdict verdict,
                            const char *why)
{
    struct known_verdict *known = find_verdict(ctx, name);

    if (!known) {
        known = attncl__grow_array(ctx->verdicts, (size_t)ctx->n_verdicts + 1, sizeof *known);
        if (!known)
            return;
        ctx->verdicts = known;
        known += ctx->n_verdicts++;
        snprintf(known->name, sizeof known->name, "%s", name);
    }
    known->verdict = verdict;
    known->is_logged = false;
    snprintf(known->why, sizeof known->why, "%s", why);
}

attncl_status attncl__verdict_store(attncl_context *ctx, const char *name, const char *why)
{
    const struct verdict_key key = make_verdict_key(ctx);
    const char *mode = attncl__context_env(ctx, ENV_CACHE), *fault = NULL;
    struct private_dir directory;

    REQUIRE(strlen(why) < PROBE_WHY_BYTES, ATTNCL_ERR_ARGUMENT,
            "failed has %zu bytes, at most %d are kept", strlen(why), PROBE_WHY_BYTES - 1);
    REQUIRE(ctx->cache_directory && !(mode && strcmp(mode, "ro") == 0), ATTNCL_ERR_STATE,
            "there is no directory of the program cache that is written to");
    REQUIRE(!attncl__context_env(ctx, ENV_CL_DIR), ATTNCL_ERR_STATE,
            "the kernels are those of ATTNCL_CL_DIR");
    REQUIRE(attncl__private_dir_open(ctx->cache_directory, true, &directory, &fault), ATTNCL_ERR_IO,
            "%s: %s", ctx->cache_directory, fault);
    const bool written = attncl__verdict_write(&directory, &key, name, why);
    attncl__private_dir_close(&directory);
    REQUIRE(written, ATTNCL_ERR_IO, "%s/verdicts.txt cannot be written", ctx->cache_directory);
    attncl__probe_remember(ctx, name, *why ? PROBE_FAILED : PROBE_PASSED, why);
    return ATTNCL_OK;
}

static enum probe_verdict run_probe(attncl_context *ctx, const struct device_caps *caps,
                                    const struct probe *probe, char why[PROBE_WHY_BYTES])
{
    if (probe->run(ctx, caps, probe->user, why) != ATTNCL_OK) {
        attncl__log(ATTNCL_LOG_WARN, "%s: cannot be compared: %s", probe->name,
                    attncl_last_error());
        *why = '\0';
        return PROBE_UNKNOWN;
    }
    if (attncl__verdict_store(ctx, probe->name, why) != ATTNCL_OK)
        attncl__log(ATTNCL_LOG_INFO, "%s: compared again in the next context: %s", probe->name,
                    attncl_last_error());
    return *why ? PROBE_FAILED : PROBE_PASSED;
}

// Logs a verdict once per context.
static void log_verdict(const attncl_context *ctx, struct known_verdict *known)
{
    if (!known->is_logged && known->verdict == PROBE_FAILED)
        attncl__log(ATTNCL_LOG_WARN, "%s with driver %s: %s is not used: %s", ctx->info.name,
                    ctx->info.driver_version, known->name, known->why);
    else if (!known->is_logged && known->verdict == PROBE_PASSED)
        attncl__log(ATTNCL_LOG_INFO, "%s: passed", known->name);
    known->is_logged = true;
}

enum probe_verdict attncl__probe_get_verdict(attncl_context *ctx, const struct device_caps *caps,
                                             const struct probe *probe, enum probe_mode mode,
                                             char why[PROBE_WHY_BYTES])
{
    enum probe_verdict verdict = PROBE_UNKNOWN;

    *why = '\0';
    pthread_mutex_lock(&ctx->probe_lock); // held while kernels are compared
    if (!find_verdict(ctx, probe->name) && mode == PROBE_RUN) {
        verdict = run_probe(ctx, caps, probe, why);
        attncl__probe_remember(ctx, probe->name, verdict, why);
    }
    struct known_verdict *known = find_verdict(ctx, probe->name);
    if (known) {
        verdict = known->verdict;
        strcpy(why, known->why);
        log_verdict(ctx, known);
    }
    pthread_mutex_unlock(&ctx->probe_lock);
    return verdict;
}

// -- stored verdicts, including attncl selftest's

static const char *selftest_name(const attncl_context *ctx)
{
    return ctx->caps.variant == VARIANT_CPU ? "selftest cpu" : "selftest gpu";
}

static void remember_stored(const char *name, const char *why, void *user)
{
    attncl__probe_remember(user, name, *why ? PROBE_FAILED : PROBE_PASSED, why);
}

static void load_stored(attncl_context *ctx)
{
    const struct verdict_key key = make_verdict_key(ctx);
    struct private_dir directory;
    const char *why = NULL;

    if (!ctx->cache_directory || attncl__context_env(ctx, ENV_CL_DIR) ||
        !attncl__private_dir_open(ctx->cache_directory, false, &directory, &why))
        return;
    attncl__verdicts_read(&directory, &key, remember_stored, ctx);
    attncl__private_dir_close(&directory);
}

void attncl__verdicts_load(attncl_context *ctx)
{
    load_stored(ctx);
    const struct known_verdict *selftest = find_verdict(ctx, selftest_name(ctx));
    if (selftest && selftest->verdict == PROBE_FAILED)
        attncl__log(ATTNCL_LOG_WARN, "attncl selftest failed on %s with driver %s: %s",
                    ctx->info.name, ctx->info.driver_version, selftest->why);
}

attncl_status attncl_context_keep_selftest(attncl_context *context, const char *failed)
{
    REQUIRE(context && failed, ATTNCL_ERR_ARGUMENT, "context or failed is NULL");
    TRY(attncl__context_check_usable(context));
    pthread_mutex_lock(&context->probe_lock);
    const attncl_status status = attncl__verdict_store(context, selftest_name(context), failed);
    pthread_mutex_unlock(&context->probe_lock);
    return status;
}

// Describes the choice that lib/gemm/gemm_backend.c makes.
static void add_gemm_backend(const attncl_context *ctx, struct strbuf *text)
{
    const char *asked = attncl__context_env(ctx, ENV_GEMM);
    const struct tuning_key key = {ctx->info.name, ctx->info.driver_version, false};
    struct tune_table *tuned = attncl__tuning_load(&key);
    const struct tune_entry *entries = tuned ? tuned->entries[TUNE_GEMM_BACKEND] : NULL;

    if (asked)
        attncl__strbuf_add(text, "GEMMs: %s (ATTNCL_GEMM)\n", asked);
    else if (!ctx->caps.clblast_candidate || ctx->caps.variant == VARIANT_CPU)
        attncl__strbuf_add(text, "GEMMs: native kernels (CLBlast is slow on this device)\n");
    else if (ctx->caps.mma_candidate == MMA_MFMA)
        attncl__strbuf_add(text, "GEMMs: native kernels (matrix instructions)\n");
    else
        for (int i = TUNE_SINGLE; i <= TUNE_BATCH; ++i)
            attncl__strbuf_add(text, "large %s: %s\n",
                               i == TUNE_BATCH ? "batches of GEMMs" : "GEMMs",
                               entries && entries[i].line && !entries[i].value[GEMM_BACKEND_CLBLAST]
                                   ? "native kernels (tuned)"
                                   : "CLBlast, where it passed");
    attncl__tuning_free(tuned);
}

attncl_status attncl_device_findings(size_t index, char *text, size_t capacity)
{
    attncl_context ctx = {0}; // the device is not opened
    struct strbuf lines = STRBUF_EMPTY;
    struct device_entry entry;

    REQUIRE(text && capacity, ATTNCL_ERR_ARGUMENT, "text is NULL or has no capacity");
    TRY(attncl__device_get_entry(index, &entry));
    ctx.info = entry.info;
    TRY(attncl__caps_fill(entry.id, &ctx.info, attncl__context_env(&ctx, ENV_VARIANT), &ctx.caps));
    add_gemm_backend(&ctx, &lines);
    ctx.cache_directory = attncl__cache_find_directory(&ctx, NULL);
    load_stored(&ctx);
    for (const struct known_verdict *v = ctx.verdicts; v < ctx.verdicts + ctx.n_verdicts; ++v)
        attncl__strbuf_add(&lines, "%s: %s%s\n", v->name, *v->why ? "failed: " : "passed", v->why);
    // Cut to whole lines.
    const attncl_status status =
        lines.failed ? FAIL(ATTNCL_ERR_NO_MEMORY, "what is known of a device") : ATTNCL_OK;
    size_t n = lines.failed ? 0 : lines.used;
    while (n >= capacity || (n > 0 && lines.data[n - 1] != '\n'))
        --n;
    memcpy(text, lines.data ? lines.data : "", n);
    text[n] = '\0';
    attncl__strbuf_free(&lines);
    attncl__free(ctx.verdicts);
    attncl__free(ctx.cache_directory);
    return status;
}
