// SPDX-License-Identifier: MIT
//
// The program cache: binaries on disk, keyed by everything that could change them.
//
// A binary is stored when it is built.  PoCL's is stored when the context is destroyed: by then it has
// machine code for every work-group size in use, so that the next process compiles nothing (0.9 ms per
// program, against 18 ms from source with PoCL's own cache warm).  PoCL needs as long to return a binary
// as to compile it.  So, by default, a process that compiled stores none, and later ones spend a small
// part of their time on it (docs/dev/decisions/0003-program-cache.md).

#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "attncl/version.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "device/internal.h"
#include "device/program.h"
#include "store/private_dir.h"

static const uint64_t max_cache_bytes = (uint64_t)256 << 20;

struct disk_cache {
    struct private_dir directory;
    char *device_key; // the part of the key that all programs share
    bool is_sparing;  // the driver is slow to return binaries, and ATTNCL_CACHE is not set
    atomic_bool has_stored, has_failed; // set by the threads that build programs
};

// -- the key: the program's source, and everything else that could change its binary

static attncl_status add_device_text(struct strbuf *t, cl_device_id id, cl_device_info what)
{
    char *value = NULL;

    TRY(attncl__device_query_text(id, what, &value));
    attncl__strbuf_add(t, "%s\n", value);
    attncl__free(value);
    return ATTNCL_OK;
}

// Adds the size and time of the driver's file, since a rebuilt driver may keep its version number.  A
// cl_khr_icd platform begins with a pointer to its functions; the first function leads to the file.
static attncl_status add_driver_file(struct strbuf *t, cl_platform_id platform)
{
    char extensions[1024];
    struct stat st;
    Dl_info info;

    TRY(attncl__platform_query_text(platform, CL_PLATFORM_EXTENSIONS, extensions,
                                    sizeof extensions));
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

static void add_driver_environment(struct strbuf *t)
{
    static const char *const prefixes[] = {"AMD_",      "CL_",   "IGC_",    "NEO",
                                           "OCLGRIND_", "POCL_", "RUSTICL_"};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; ++i)
        for (const char *entry = NULL; (entry = attncl__env_next(prefixes[i], entry)) != NULL;)
            attncl__strbuf_add(t, "%s\n", entry);
}

static attncl_status add_device_key(const attncl_context *ctx, struct strbuf *t)
{
    static const cl_device_info texts[] = {
        CL_DEVICE_NAME,    CL_DEVICE_VENDOR,     CL_DEVICE_VERSION,          CL_DRIVER_VERSION,
        CL_DEVICE_PROFILE, CL_DEVICE_EXTENSIONS, CL_DEVICE_OPENCL_C_VERSION,
    };
    char version[256];
    cl_platform_id platform = NULL;
    cl_uint vendor_id = 0, address_bits = 0;

    TRY(DEVICE_QUERY(ctx->device, CL_DEVICE_PLATFORM, &platform));
    TRY(attncl__platform_query_text(platform, CL_PLATFORM_VERSION, version, sizeof version));
    TRY(DEVICE_QUERY(ctx->device, CL_DEVICE_VENDOR_ID, &vendor_id));
    TRY(DEVICE_QUERY(ctx->device, CL_DEVICE_ADDRESS_BITS, &address_bits));
    attncl__strbuf_add(t, "libattncl %s\n%s\n%s\n%u %u\n", ATTNCL_VERSION_STRING,
                       ctx->info.platform_name, version, vendor_id, address_bits);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i)
        TRY(add_device_text(t, ctx->device, texts[i]));
    TRY(add_driver_file(t, platform));
    add_driver_environment(t);
    return ATTNCL_OK;
}

static char *make_device_key(const attncl_context *ctx)
{
    struct strbuf t = STRBUF_EMPTY;

    if (add_device_key(ctx, &t) != ATTNCL_OK || t.failed)
        attncl__strbuf_free(&t);
    return t.data;
}

static bool make_key(const attncl_context *ctx, const char *source, struct strbuf *ret)
{
    attncl__strbuf_add(ret, "%s%s\n%s", ctx->cache->device_key, attncl__build_options(ctx), source);
    return !ret->failed;
}

char *attncl__cache_find_directory(const attncl_context *ctx, const char *given)
{
    const char *own = given ? given : attncl__context_env(ctx, ENV_CACHE_DIR);
    const char *mode = attncl__context_env(ctx, ENV_CACHE);
    struct strbuf path = STRBUF_EMPTY;

    if (attncl__is_privileged() || (mode && strcmp(mode, "rw") != 0 && strcmp(mode, "ro") != 0))
        return NULL;
    if (own)
        attncl__strbuf_add(&path, "%s", own);
    else if (!ctx->ignore_environment)
        attncl__add_user_path(ENV_XDG_CACHE_HOME, ".cache", "attncl", &path);
    if (path.failed)
        attncl__strbuf_free(&path);
    return path.data;
}

struct disk_cache *attncl__cache_open(const attncl_context *ctx)
{
    const char *mode = attncl__context_env(ctx, ENV_CACHE);
    const bool writable = !mode || strcmp(mode, "rw") == 0;
    const bool is_sparing = !mode && ctx->caps.has_own_cache;
    const char *why = "out of memory";
    struct disk_cache *cache = NULL;

    if (!ctx->cache_directory) {
        if (writable && !is_sparing && !ctx->ignore_environment && !attncl__is_privileged())
            attncl__log(ATTNCL_LOG_ERROR,
                        "no program cache: neither ATTNCL_CACHE_DIR nor an absolute "
                        "XDG_CACHE_HOME or HOME names a directory");
        return NULL;
    }
    cache = attncl__alloc_zero(sizeof *cache);
    if (!cache)
        return NULL;
    cache->directory.fd = -1;
    cache->is_sparing = is_sparing;
    if (attncl__private_dir_open(ctx->cache_directory, writable, &cache->directory, &why) ||
        (is_sparing &&
         attncl__private_dir_open(ctx->cache_directory, false, &cache->directory, &why)))
        cache->device_key = make_device_key(ctx);
    if (!cache->device_key) {
        // With a driver that has its own cache this is no loss.
        attncl__log(is_sparing ? ATTNCL_LOG_DEBUG : ATTNCL_LOG_ERROR, "no program cache in %s: %s",
                    ctx->cache_directory, why ? why : "out of memory");
        attncl__cache_close(cache);
        cache = NULL;
    }
    return cache;
}

void attncl__cache_close(struct disk_cache *cache)
{
    if (!cache)
        return;
    if (cache->has_stored)
        attncl__cache_evict(&cache->directory, max_cache_bytes);
    attncl__private_dir_close(&cache->directory);
    attncl__free(cache->device_key);
    attncl__free(cache);
}

// -- programs.  An entry's payload: the kernels' names, a zero byte, the driver's binary.

static char *query_kernel_names(cl_program program)
{
    size_t n = 0;

    if (clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &n) != CL_SUCCESS ||
        n > 1 << 20)
        return NULL;
    char *names = attncl__alloc_zero(n + 1);
    if (names && clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, n, names, NULL) == CL_SUCCESS)
        return names;
    attncl__free(names);
    return NULL;
}

// True when the code blames the binary, not anything else.
static bool is_about_binary(cl_int code)
{
    return code == CL_INVALID_BINARY || code == CL_INVALID_PROGRAM || code == CL_INVALID_VALUE ||
           code == CL_BUILD_PROGRAM_FAILURE || code == CL_INVALID_BUILD_OPTIONS;
}

// Creates a program from a binary.  NULL when the driver rejects it or finds other kernels than were
// stored.  *invalid_ret: whether the cache entry is to blame.
static cl_program create_from_binary(const attncl_context *ctx, const char *names,
                                     const unsigned char *binary, size_t n, bool *invalid_ret)
{
    cl_int code = CL_SUCCESS, per_device = CL_SUCCESS;

    cl_program program =
        clCreateProgramWithBinary(ctx->cl, 1, &ctx->device, &n, &binary, &per_device, &code);
    if (code != CL_SUCCESS || per_device != CL_SUCCESS) {
        if (program)
            clReleaseProgram(program);
        *invalid_ret = per_device != CL_SUCCESS || is_about_binary(code);
        return NULL;
    }
    char *now = NULL;
    code = clBuildProgram(program, 1, &ctx->device, attncl__build_options(ctx), NULL, NULL);
    if (code == CL_SUCCESS)
        now = query_kernel_names(program);
    const bool same = now && strcmp(now, names) == 0;
    *invalid_ret = code == CL_SUCCESS ? now && !same : is_about_binary(code);
    attncl__free(now);
    if (same)
        return program;
    clReleaseProgram(program);
    return NULL;
}

cl_program attncl__cache_load(const attncl_context *ctx, const char *source)
{
    cl_program program = NULL;
    struct strbuf key = STRBUF_EMPTY;
    void *payload = NULL;
    bool invalid = true;
    size_t n = 0;

    if (!ctx->cache || !make_key(ctx, source, &key))
        goto done;
    const struct bytes key_bytes = {key.data, key.used};
    if (!attncl__cache_entry_read(&ctx->cache->directory, key_bytes, &payload, &n))
        goto done;
    const char *end = memchr(payload, '\0', n);
    if (end) {
        const size_t skip = (size_t)(end - (const char *)payload) + 1;
        program = create_from_binary(ctx, payload, (const unsigned char *)payload + skip, n - skip,
                                     &invalid);
    }
    if (!program && invalid) {
        attncl__log(ATTNCL_LOG_WARN, "program cache: the driver refuses an entry");
        attncl__cache_entry_remove(&ctx->cache->directory, key_bytes);
    }

done:
    attncl__strbuf_free(&key);
    attncl__free(payload);
    return program;
}

bool attncl__cache_is_writable(const attncl_context *ctx)
{
    return ctx->cache && ctx->cache->directory.writable;
}

double attncl__cache_compute_budget(const attncl_context *ctx, double lifetime_s, double build_s)
{
    const double max_hit_s =
        0.1; // PoCL takes 0.02 to 0.06 with its cache warm, at least 0.15 to compile

    if (!ctx->cache || !ctx->cache->is_sparing)
        return INFINITY;
    return build_s > max_hit_s ? -1 : lifetime_s / 20;
}

static bool make_payload(cl_program program, struct strbuf *ret)
{
    unsigned char *binary = NULL;
    size_t n = 0;
    char *names = query_kernel_names(program);

    if (!names ||
        clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof n, &n, NULL) != CL_SUCCESS ||
        n == 0)
        goto done;
    binary = attncl__alloc(n);
    if (binary && clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) ==
                      CL_SUCCESS) {
        attncl__strbuf_add_bytes(ret, names, strlen(names) + 1);
        attncl__strbuf_add_bytes(ret, binary, n);
    }

done:
    attncl__free(binary);
    attncl__free(names);
    return ret->data && !ret->failed;
}

void attncl__cache_store(const attncl_context *ctx, const char *source, cl_program program)
{
    struct strbuf key = STRBUF_EMPTY, payload = STRBUF_EMPTY;

    if (attncl__cache_is_writable(ctx) && make_key(ctx, source, &key) &&
        make_payload(program, &payload)) {
        const bool stored =
            attncl__cache_entry_write(&ctx->cache->directory, (struct bytes){key.data, key.used},
                                      (struct bytes){payload.data, payload.used});
        if (stored)
            atomic_store(&ctx->cache->has_stored, true);
        else if (!atomic_exchange(&ctx->cache->has_failed, true))
            attncl__log(ctx->cache->is_sparing ? ATTNCL_LOG_DEBUG : ATTNCL_LOG_ERROR,
                        "program cache: entries cannot be written into %s", ctx->cache_directory);
    }
    attncl__strbuf_free(&key);
    attncl__strbuf_free(&payload);
}
