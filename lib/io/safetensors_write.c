// SPDX-License-Identifier: MIT
//
// Writing a safetensors file atomically.

#include "io/safetensors.h"

attncl_status attncl_safetensors_write(const char *path, const attncl_array *arrays, size_t n,
                                       const char *const *metadata)
{
    REQUIRE(path && (arrays || n == 0), ATTNCL_ERR_ARGUMENT, "path or arrays is NULL");

    attncl_status status = ATTNCL_OK;
    struct st_layout layout = {.header = STRBUF_EMPTY};

    TRY_DONE(attncl__st_lay_out(&layout, arrays, n, metadata));
    TRY_DONE(attncl__file_replace(path, layout.part, layout.n_parts));

done:
    attncl__st_layout_free(&layout);
    return status;
}

attncl_status attncl__st_write_durably(const char *path, const attncl_array *arrays, size_t n,
                                       const char *const *metadata)
{
    attncl_status status = ATTNCL_OK;
    struct st_layout layout = {.header = STRBUF_EMPTY};

    TRY_DONE(attncl__st_lay_out(&layout, arrays, n, metadata));
    TRY_DONE(attncl__file_replace_durably(path, layout.part, layout.n_parts));

done:
    attncl__st_layout_free(&layout);
    return status;
}
