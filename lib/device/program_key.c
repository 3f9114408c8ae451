// SPDX-License-Identifier: MIT
//
// What the keys of all entries of the program cache share: whatever but a program's own source could
// change its binary.

#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>

#include "attncl/version.h"
#include "base/strbuf.h"
#include "device/internal.h"

static attncl_status add_device_text(struct strbuf *t, cl_device_id id, cl_device_info what)
{
    char *value = NULL;

    TRY(attncl__device_text_whole(id, what, &value));
    attncl__strbuf_add(t, "%s\n", value);
    attncl__free(value);
    return ATTNCL_OK;
}

// Size and time of the driver's file: a rebuilt driver may keep its version number.  A platform
// with cl_khr_icd begins with a pointer to its functions; the first one leads to the file.
static attncl_status add_driver_file(struct strbuf *t, cl_platform_id platform)
{
    char extensions[1024];
    struct stat st;
    Dl_info info;

    TRY(attncl__platform_text(platform, CL_PLATFORM_EXTENSIONS, extensions, sizeof extensions));
    if (!strstr(extensions, "cl_khr_icd"))
        return ATTNCL_OK;
    void *const *const *first_word = (void *const *const *)platform;
    if (!*first_word || !dladdr(**first_word, &info) || !info.dli_fname ||
        stat(info.dli_fname, &st) != 0)
        return ATTNCL_OK;
    attncl__strbuf_add(t, "%s %lld %lld\n", info.dli_fname, (long long)st.st_size,
                       (long long)st.st_mtime);
    return ATTNCL_OK;
}

// Environment variables that change what drivers compile.
static void add_driver_environment(struct strbuf *t)
{
    static const char *const prefixes[] = {"AMD_",      "CL_",   "IGC_",    "NEO",
                                           "OCLGRIND_", "POCL_", "RUSTICL_"};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; ++i)
        for (const char *entry = NULL; (entry = attncl__env_next(prefixes[i], entry)) != NULL;)
            attncl__strbuf_add(t, "%s\n", entry);
}

static attncl_status add_all(const attncl_context *ctx, struct strbuf *t)
{
    static const cl_device_info texts[] = {
        CL_DEVICE_NAME,    CL_DEVICE_VENDOR,     CL_DEVICE_VERSION,          CL_DRIVER_VERSION,
        CL_DEVICE_PROFILE, CL_DEVICE_EXTENSIONS, CL_DEVICE_OPENCL_C_VERSION,
    };
    char version[256];
    cl_platform_id platform = NULL;
    cl_uint vendor_id = 0, address_bits = 0;

    TRY(DEVICE_ANSWER(ctx->device, CL_DEVICE_PLATFORM, &platform));
    TRY(attncl__platform_text(platform, CL_PLATFORM_VERSION, version, sizeof version));
    TRY(DEVICE_ANSWER(ctx->device, CL_DEVICE_VENDOR_ID, &vendor_id));
    TRY(DEVICE_ANSWER(ctx->device, CL_DEVICE_ADDRESS_BITS, &address_bits));
    attncl__strbuf_add(t, "libattncl %s\n%s\n%s\n%u %u\n", ATTNCL_VERSION_STRING,
                       ctx->info.platform_name, version, vendor_id, address_bits);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i)
        TRY(add_device_text(t, ctx->device, texts[i]));
    TRY(add_driver_file(t, platform));
    add_driver_environment(t);
    return ATTNCL_OK;
}

char *attncl__program_device_key(const attncl_context *ctx)
{
    struct strbuf t = STRBUF_EMPTY;

    if (add_all(ctx, &t) != ATTNCL_OK || t.failed)
        attncl__strbuf_free(&t);
    return t.data;
}
