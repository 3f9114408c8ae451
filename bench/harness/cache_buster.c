// SPDX-License-Identifier: MIT

#include "harness/cache_buster.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/try.h"
#include "device/source.h"

static const char *prefix;

void cache_buster_set(const char *text)
{
    prefix = text;
}

// The linker's --wrap sends calls of X to __wrap_X; __real_X is the library's function.
attncl_status __real_attncl__source_load(const attncl_context *ctx, const char *file,
                                         char **text_ret);
attncl_status __wrap_attncl__source_load(const attncl_context *ctx, const char *file,
                                         char **text_ret);

attncl_status __wrap_attncl__source_load(const attncl_context *ctx, const char *file,
                                         char **text_ret)
{
    struct strbuf text = STRBUF_EMPTY;

    TRY(__real_attncl__source_load(ctx, file, text_ret));
    if (!prefix)
        return ATTNCL_OK;
    attncl__strbuf_add(&text, "%s%s", prefix, *text_ret);
    attncl__free(*text_ret);
    *text_ret = text.data;
    REQUIRE(!text.failed, ATTNCL_ERR_NO_MEMORY, "%s", file);
    return ATTNCL_OK;
}
