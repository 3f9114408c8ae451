// SPDX-License-Identifier: MIT
//
// What was found on this device with this driver, kept by attncl selftest and by GEMMs; what the former found is
// told when a context is created.

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/clerr.h"
#include "device/internal.h"
#include "device/program_cache.h"
#include "store/selftest_file.h"

_Static_assert((int)FINDING_BYTES == (int)SELFTEST_FAILED_BYTES, "the same texts");

static struct selftest_key key_of(const attncl_context *ctx, const char *what)
{
    return (struct selftest_key){ctx->info.name, ctx->info.driver_version, what};
}

static const char *variant_name(const attncl_context *ctx)
{
    return ctx->caps.variant == VARIANT_CPU ? "cpu" : "gpu";
}

bool attncl__finding_read(const attncl_context *ctx, const char *what, char failed[FINDING_BYTES])
{
    const struct selftest_key key = key_of(ctx, what);
    struct private_dir directory;
    const char *why = NULL;

    if (!ctx->cache_directory || attncl__context_env(ctx, ENV_CL_DIR) ||
        !attncl__private_dir_open(ctx->cache_directory, false, &directory, &why))
        return false;
    const bool known = attncl__selftest_read(&directory, &key, failed);
    attncl__private_dir_close(&directory);
    return known;
}

void attncl__selftest_consult(const attncl_context *ctx)
{
    char failed[FINDING_BYTES];

    if (attncl__finding_read(ctx, variant_name(ctx), failed) && *failed)
        attncl__log(ATTNCL_LOG_WARN, "attncl selftest failed on %s with driver %s: %s",
                    ctx->info.name, ctx->info.driver_version, failed);
}

attncl_status attncl__finding_keep(const attncl_context *ctx, const char *what, const char *failed)
{
    struct private_dir directory;
    const char *why = NULL;

    const char *mode = attncl__context_env(ctx, ENV_CACHE);
    REQUIRE(strlen(failed) < FINDING_BYTES, ATTNCL_ERR_ARGUMENT,
            "failed has %zu bytes, at most %d are kept", strlen(failed), FINDING_BYTES - 1);
    REQUIRE(ctx->cache_directory && !(mode && strcmp(mode, "ro") == 0), ATTNCL_ERR_STATE,
            "there is no directory of the program cache that is written to");
    REQUIRE(!attncl__context_env(ctx, ENV_CL_DIR), ATTNCL_ERR_STATE,
            "the kernels are those of ATTNCL_CL_DIR");
    REQUIRE(attncl__private_dir_open(ctx->cache_directory, true, &directory, &why), ATTNCL_ERR_IO,
            "%s: %s", ctx->cache_directory, why);
    const struct selftest_key key = key_of(ctx, what);
    const bool written = attncl__selftest_write(&directory, &key, failed);
    attncl__private_dir_close(&directory);
    REQUIRE(written, ATTNCL_ERR_IO, "%s/selftest.txt cannot be written", ctx->cache_directory);
    return ATTNCL_OK;
}

bool attncl__finding_make(attncl_context *ctx, const struct device_caps *caps,
                          const struct finding_source *source, char found[FINDING_BYTES])
{
    if (source->judge(ctx, caps, found) != ATTNCL_OK) {
        attncl__log(ATTNCL_LOG_WARN, "%s: %s", source->otherwise, attncl_last_error());
        return false;
    }
    if (attncl__finding_keep(ctx, source->what, found) != ATTNCL_OK)
        attncl__log(ATTNCL_LOG_INFO, "%s: judged again in the next context: %s", source->what,
                    attncl_last_error());
    return true;
}

attncl_status attncl__selftest_keep(const attncl_context *ctx, const char *failed)
{
    return attncl__finding_keep(ctx, variant_name(ctx), failed);
}

// What may be kept, and what an empty text says of it.
static const struct {
    const char *what, *title, *good, *bad;
} kinds[] = {
    {"cpu", "selftest, cpu kernels", "passed", "failed: "},
    {"gpu", "selftest, gpu kernels", "passed", "failed: "},
    {"kernels gpu", "kernels at first use", "right", "not used: "},
    {"kernels cpu", "kernels of one work-item at first use", "right", "wrong: "},
    {"mma f32", "matrix instructions, float32", "used", "not used: "},
    {"mma tf32", "matrix instructions, tf32", "used", "not used: "},
    {"mma bf16", "matrix instructions, bf16", "used", "not used: "},
    {"mma attention f32", "attention by matrix instructions, float32", "used", "not used: "},
    {"mma attention tf32", "attention by matrix instructions, tf32", "used", "not used: "},
    {"mma attention bf16", "attention by matrix instructions, bf16", "used", "not used: "},
    {"shuffle", "shuffles", "used", "not used: "},
};

attncl_status attncl_device_findings(size_t index, char *text, size_t capacity)
{
    attncl_context ctx = {.info = ATTNCL_DEVICE_INFO_INIT}; // of a device that is not opened
    char failed[FINDING_BYTES];
    size_t used = 0;

    REQUIRE(text && capacity, ATTNCL_ERR_ARGUMENT, "text is NULL or has no capacity");
    TRY(attncl_device_get(index, &ctx.info));
    text[0] = '\0';
    ctx.cache_directory = attncl__cache_directory(&ctx, NULL);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        if (!attncl__finding_read(&ctx, kinds[i].what, failed))
            continue;
        const int n = snprintf(text + used, capacity - used, "%s: %s%s\n", kinds[i].title,
                               *failed ? kinds[i].bad : kinds[i].good, failed);
        if (n < 0 || (size_t)n >= capacity - used) {
            text[used] = '\0';
            break;
        }
        used += (size_t)n;
    }
    attncl__free(ctx.cache_directory);
    return ATTNCL_OK;
}
