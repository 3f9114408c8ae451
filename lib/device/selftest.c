// SPDX-License-Identifier: MIT
//
// What attncl selftest found on this device with this driver: kept, and told when a context is created.

#include <string.h>

#include "base/log.h"
#include "device/clerr.h"
#include "device/internal.h"
#include "store/selftest_file.h"

static struct selftest_key key_of(const attncl_context *ctx)
{
    return (struct selftest_key){ctx->info.name, ctx->info.driver_version,
                                 ctx->caps.variant == VARIANT_CPU ? "cpu" : "gpu"};
}

void attncl__selftest_consult(const attncl_context *ctx)
{
    const struct selftest_key key = key_of(ctx);
    struct private_dir directory;
    char failed[SELFTEST_FAILED_BYTES];
    const char *why = NULL;

    if (!ctx->cache_directory || attncl__context_env(ctx, ENV_CL_DIR) ||
        !attncl__private_dir_open(ctx->cache_directory, false, &directory, &why))
        return;
    if (attncl__selftest_read(&directory, &key, failed) && *failed)
        attncl__log(ATTNCL_LOG_WARN, "attncl selftest failed on %s with driver %s: %s", key.device,
                    key.driver, failed);
    attncl__private_dir_close(&directory);
}

attncl_status attncl__selftest_keep(const attncl_context *ctx, const char *failed)
{
    struct private_dir directory;
    const char *why = NULL;

    const char *mode = attncl__context_env(ctx, ENV_CACHE);
    REQUIRE(strlen(failed) < SELFTEST_FAILED_BYTES, ATTNCL_ERR_ARGUMENT,
            "failed has %zu bytes, at most %d are kept", strlen(failed), SELFTEST_FAILED_BYTES - 1);
    REQUIRE(ctx->cache_directory && !(mode && strcmp(mode, "ro") == 0), ATTNCL_ERR_STATE,
            "there is no directory of the program cache that is written to");
    REQUIRE(!attncl__context_env(ctx, ENV_CL_DIR), ATTNCL_ERR_STATE,
            "the kernels are those of ATTNCL_CL_DIR");
    REQUIRE(attncl__private_dir_open(ctx->cache_directory, true, &directory, &why), ATTNCL_ERR_IO,
            "%s: %s", ctx->cache_directory, why);
    const struct selftest_key key = key_of(ctx);
    const bool written = attncl__selftest_write(&directory, &key, failed);
    attncl__private_dir_close(&directory);
    REQUIRE(written, ATTNCL_ERR_IO, "%s/selftest.txt cannot be written", ctx->cache_directory);
    return ATTNCL_OK;
}
