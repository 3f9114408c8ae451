// SPDX-License-Identifier: MIT

#include "support/sources.h"

#include <stdlib.h>
#include <string.h>

#include "device/program.h"
#include "support/directory.h"
#include "support/test.h"

void sources_write(const char *file, const char *from, const char *to)
{
    bool replaced = false;

    for (size_t i = 0; i < attncl__n_sources; ++i) {
        char text[65536];
        const size_t n = attncl__sources[i].n_bytes;
        ck_assert_uint_lt(n + strlen(to), sizeof text);
        memcpy(text, attncl__sources[i].bytes, n);
        text[n] = '\0';
        char *at = strcmp(attncl__sources[i].file, file) == 0 ? strstr(text, from) : NULL;
        if (at) {
            memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
            memcpy(at, to, strlen(to));
            replaced = true;
        }
        directory_write(attncl__sources[i].file, text);
    }
    ck_assert(replaced);
    setenv("ATTNCL_CL_DIR", IN_DIRECTORY("."), 1);
}

void findings_up(void)
{
    directory_begin();
    unsetenv("ATTNCL_CACHE"); // findings are kept; programs not where that compiles them again
}

void findings_down(void)
{
    setenv("ATTNCL_CACHE", "off", 1);
    unsetenv("ATTNCL_CL_DIR");
    directory_end();
}

attncl_context *findings_context(void)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *ctx = NULL;

    options.cache_dir = IN_DIRECTORY("cache");
    ck_ok(attncl_context_create(&options, &ctx));
    return ctx;
}
