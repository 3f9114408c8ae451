// SPDX-License-Identifier: MIT
//
// Rules for every tensor of a safetensors file, read or written.

#include <inttypes.h>
#include <string.h>

#include "base/ckd.h"
#include "base/dtype.h"
#include "base/utf8.h"
#include "io/safetensors.h"

// The format's schema limits extents to 2^48 - 1.  Here element counts have the same limit, so that
// sums of a few products stay within 64 bits.
static const int64_t max_elements = (INT64_C(1) << 48) - 1;

// C0, DEL and C1 (U+0080 to U+009F, two bytes of UTF-8): a terminal would execute them.
static bool has_control(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; ++p)
        if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
            return true;
    return false;
}

attncl_status attncl__st_check_name(const char *name, attncl_status blame)
{
    REQUIRE(name && *name, blame, "a tensor without a name");
    const size_t bytes = strlen(name);
    REQUIRE(bytes <= ST_MAX_NAME_BYTES, blame,
            "a tensor's name of %zu bytes, at most %d are possible", bytes, ST_MAX_NAME_BYTES);
    REQUIRE(attncl__is_utf8(name), blame, "a tensor's name is not UTF-8");
    REQUIRE(!has_control(name), blame, "a tensor's name has a control character: %s", name);
    REQUIRE(strcmp(name, ST_METADATA_KEY) != 0, blame, "a tensor named %s", name);
    return ATTNCL_OK;
}

attncl_status attncl__st_bytes(const attncl_array *array, attncl_status blame, size_t *bytes_ret)
{
    const size_t bits_each = attncl__dtype_bits(array->dtype);
    int64_t product = 1; // of the extents above 0: an overflow is one whatever the order of axes
    bool empty = false;

    REQUIRE(bits_each > 0, blame, "element type %d is unknown", (int)array->dtype);
    REQUIRE(array->rank >= 0 && array->rank <= ATTNCL_MAX_RANK, blame,
            "rank %d, at most %d axes are possible", array->rank, ATTNCL_MAX_RANK);
    for (int i = 0; i < array->rank; ++i) {
        const int64_t extent = array->dim[i];
        REQUIRE(extent >= 0 && extent <= max_elements, blame,
                "axis %d has extent %" PRId64 ", possible are 0 to 2^48 - 1", i, extent);
        empty = empty || extent == 0;
        REQUIRE(extent == 0 || (ckd_mul_i64(product, extent, &product) && product <= max_elements),
                blame, "more than 2^48 - 1 elements");
    }

    size_t bits = 0;
    REQUIRE(empty || ckd_mul_size((size_t)product, bits_each, &bits), blame, "too many bytes");
    REQUIRE(bits % 8 == 0, blame, "%" PRId64 " elements of %zu bits are no whole number of bytes",
            product, bits_each);
    *bytes_ret = bits / 8;
    return ATTNCL_OK;
}
