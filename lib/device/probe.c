// SPDX-License-Identifier: MIT
//
// What is known of kernels on this device: by the context, by the file beside the program cache, else found now.  Findings of
// attncl selftest are kept there too, and told when a context is created.

#include "device/probe.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/try.h"
#include "device/internal.h"
#include "device/program_cache.h"
#include "device/source.h"
#include "store/verdict_file.h"

_Static_assert((int)PROBE_WHY_BYTES == (int)VERDICT_WHY_BYTES, "the same texts");

struct known_verdict {
    char name[PROBE_NAME_BYTES], why[PROBE_WHY_BYTES];
    enum probe_verdict verdict;
};

static struct verdict_key key_of(const attncl_context *ctx)
{
    return (struct verdict_key){attncl__sources_digest, ctx->info.name, ctx->info.driver_version};
}

static void read_kept(const attncl_context *ctx, attncl__verdict_fn fn, void *user)
{
    const struct verdict_key key = key_of(ctx);
    struct private_dir directory;
    const char *why = NULL;

    if (!ctx->cache_directory || attncl__context_env(ctx, ENV_CL_DIR) ||
        !attncl__private_dir_open(ctx->cache_directory, false, &directory, &why))
        return;
    attncl__verdicts_read(&directory, &key, fn, user);
    attncl__private_dir_close(&directory);
}

struct wanted {
    const char *name;
    char *why;
    bool found;
};

static void take_wanted(const char *name, const char *why, void *user)
{
    struct wanted *w = user;

    if (strcmp(name, w->name) != 0)
        return;
    w->found = true;
    strcpy(w->why, why);
}

bool attncl__verdict_kept(const attncl_context *ctx, const char *name, char why[PROBE_WHY_BYTES])
{
    struct wanted w = {name, why, false};

    read_kept(ctx, take_wanted, &w);
    return w.found;
}

attncl_status attncl__verdict_keep(const attncl_context *ctx, const char *name, const char *failed)
{
    const struct verdict_key key = key_of(ctx);
    const char *mode = attncl__context_env(ctx, ENV_CACHE), *why = NULL;
    struct private_dir directory;

    REQUIRE(strlen(failed) < PROBE_WHY_BYTES, ATTNCL_ERR_ARGUMENT,
            "failed has %zu bytes, at most %d are kept", strlen(failed), PROBE_WHY_BYTES - 1);
    REQUIRE(ctx->cache_directory && !(mode && strcmp(mode, "ro") == 0), ATTNCL_ERR_STATE,
            "there is no directory of the program cache that is written to");
    REQUIRE(!attncl__context_env(ctx, ENV_CL_DIR), ATTNCL_ERR_STATE,
            "the kernels are those of ATTNCL_CL_DIR");
    REQUIRE(attncl__private_dir_open(ctx->cache_directory, true, &directory, &why), ATTNCL_ERR_IO,
            "%s: %s", ctx->cache_directory, why);
    const bool written = attncl__verdict_write(&directory, &key, name, failed);
    attncl__private_dir_close(&directory);
    REQUIRE(written, ATTNCL_ERR_IO, "%s/verdicts.txt cannot be written", ctx->cache_directory);
    return ATTNCL_OK;
}

// -- probes

static struct known_verdict *find(const attncl_context *ctx, const char *name)
{
    for (int i = 0; i < ctx->n_verdicts; ++i)
        if (strcmp(ctx->verdicts[i].name, name) == 0)
            return &ctx->verdicts[i];
    return NULL;
}

// Without memory it is asked for again.
static void remember(attncl_context *ctx, const char *name, enum probe_verdict verdict,
                     const char *why)
{
    struct known_verdict *known = find(ctx, name);

    if (!known) {
        known = attncl__grow_array(ctx->verdicts, (size_t)ctx->n_verdicts + 1, sizeof *known);
        if (!known)
            return;
        ctx->verdicts = known;
        known += ctx->n_verdicts++;
        snprintf(known->name, sizeof known->name, "%s", name);
    }
    known->verdict = verdict;
    snprintf(known->why, sizeof known->why, "%s", why);
}

void attncl__probe_remember(attncl_context *ctx, const char *name, enum probe_verdict verdict,
                            const char *why)
{
    pthread_mutex_lock(&ctx->probe_lock);
    remember(ctx, name, verdict, why);
    pthread_mutex_unlock(&ctx->probe_lock);
}

// Compares now, and keeps what was found.
static enum probe_verdict judge(attncl_context *ctx, const struct device_caps *caps,
                                const struct probe *probe, char why[PROBE_WHY_BYTES])
{
    if (probe->run(ctx, caps, probe->user, why) != ATTNCL_OK) {
        attncl__log(ATTNCL_LOG_WARN, "%s: cannot be compared: %s", probe->name,
                    attncl_last_error());
        *why = '\0';
        return PROBE_UNKNOWN;
    }
    if (attncl__verdict_keep(ctx, probe->name, why) != ATTNCL_OK)
        attncl__log(ATTNCL_LOG_INFO, "%s: compared again in the next context: %s", probe->name,
                    attncl_last_error());
    return *why ? PROBE_FAILED : PROBE_PASSED;
}

static enum probe_verdict find_out(attncl_context *ctx, const struct device_caps *caps,
                                   const struct probe *probe, enum probe_mode mode,
                                   char why[PROBE_WHY_BYTES])
{
    enum probe_verdict verdict = PROBE_UNKNOWN;

    if (attncl__verdict_kept(ctx, probe->name, why))
        verdict = *why ? PROBE_FAILED : PROBE_PASSED;
    else if (mode == PROBE_LOOK_UP)
        return PROBE_UNKNOWN;
    else
        verdict = judge(ctx, caps, probe, why);
    if (verdict == PROBE_FAILED)
        attncl__log(ATTNCL_LOG_WARN, "%s with driver %s: %s is not used: %s", ctx->info.name,
                    ctx->info.driver_version, probe->name, why);
    else if (verdict == PROBE_PASSED)
        attncl__log(ATTNCL_LOG_INFO, "%s: passed", probe->name);
    remember(ctx, probe->name, verdict, why);
    return verdict;
}

enum probe_verdict attncl__probe(attncl_context *ctx, const struct device_caps *caps,
                                 const struct probe *probe, enum probe_mode mode,
                                 char why[PROBE_WHY_BYTES])
{
    enum probe_verdict verdict = PROBE_UNKNOWN;

    *why = '\0';
    pthread_mutex_lock(&ctx->probe_lock); // while kernels are compared too
    const struct known_verdict *known = find(ctx, probe->name);
    if (known) {
        verdict = known->verdict;
        strcpy(why, known->why);
    } else {
        verdict = find_out(ctx, caps, probe, mode, why);
    }
    pthread_mutex_unlock(&ctx->probe_lock);
    return verdict;
}

// -- what attncl selftest found, and all that is kept

static const char *selftest_name(const attncl_context *ctx)
{
    return ctx->caps.variant == VARIANT_CPU ? "selftest cpu" : "selftest gpu";
}

void attncl__selftest_consult(const attncl_context *ctx)
{
    char failed[PROBE_WHY_BYTES];

    if (attncl__verdict_kept(ctx, selftest_name(ctx), failed) && *failed)
        attncl__log(ATTNCL_LOG_WARN, "attncl selftest failed on %s with driver %s: %s",
                    ctx->info.name, ctx->info.driver_version, failed);
}

attncl_status attncl__selftest_keep(const attncl_context *ctx, const char *failed)
{
    return attncl__verdict_keep(ctx, selftest_name(ctx), failed);
}

struct lines {
    char *text;
    size_t used, capacity;
};

static void add_line(const char *name, const char *why, void *user)
{
    struct lines *l = user;
    const int n = snprintf(l->text + l->used, l->capacity - l->used, "%s: %s%s\n", name,
                           *why ? "failed: " : "passed", why);

    if (n < 0 || (size_t)n >= l->capacity - l->used) {
        l->text[l->used] = '\0';
        l->capacity = l->used; // no later one either
    } else {
        l->used += (size_t)n;
    }
}

attncl_status attncl_device_findings(size_t index, char *text, size_t capacity)
{
    attncl_context ctx = {.info = ATTNCL_DEVICE_INFO_INIT}; // of a device that is not opened
    struct lines lines = {text, 0, capacity};

    REQUIRE(text && capacity, ATTNCL_ERR_ARGUMENT, "text is NULL or has no capacity");
    TRY(attncl_device_get(index, &ctx.info));
    text[0] = '\0';
    ctx.cache_directory = attncl__cache_directory(&ctx, NULL);
    read_kept(&ctx, add_line, &lines);
    attncl__free(ctx.cache_directory);
    return ATTNCL_OK;
}
