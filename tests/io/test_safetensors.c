// SPDX-License-Identifier: MIT
// Reading safetensors from memory: valid files are read, and a file that breaks any rule of the
// format is refused.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attncl/safetensors.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "support/test.h"

NO_DEVICE;

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true // its memory and time are the sanitizer's
#else
#define SANITIZED false
#endif

static struct strbuf file; // the file under test
static size_t heap_before;

static void up(void)
{
    heap_before = attncl__alloc_live();
}

static void down(void)
{
    attncl__strbuf_free(&file);
    ck_assert_uint_eq(attncl__alloc_live(), heap_before);
}

static void add_length(uint64_t length)
{
    for (int i = 0; i < 8; ++i) {
        const unsigned char byte = (unsigned char)(length >> 8 * i);
        attncl__strbuf_add_bytes(&file, &byte, 1);
    }
}

// length | header | data_bytes bytes 0, 1, 2 ...
static void make_bytes(const char *header, size_t header_bytes, size_t data_bytes)
{
    attncl__strbuf_free(&file);
    add_length(header_bytes);
    attncl__strbuf_add_bytes(&file, header, header_bytes);
    for (size_t i = 0; i < data_bytes; ++i) {
        const unsigned char byte = (unsigned char)i;
        attncl__strbuf_add_bytes(&file, &byte, 1);
    }
}

static void make(const char *header, size_t data_bytes)
{
    make_bytes(header, strlen(header), data_bytes);
}

static attncl_status parse(attncl_safetensors **ret)
{
    // A copy of exactly the file's size, so that a sanitizer sees a read beyond it.
    char *exact = malloc(file.used ? file.used : 1);
    memcpy(exact, file.data, file.used);
    const attncl_status status = attncl_safetensors_parse(exact, file.used, ret);
    free(exact);
    return status;
}

// The file must be refused with these words.
static void refuse(const char *words)
{
    attncl_safetensors *got = NULL;

    ck_fails(parse(&got), ATTNCL_ERR_FORMAT, words);
    ck_assert_ptr_null(got);
}

static attncl_safetensors *accept(void)
{
    attncl_safetensors *got = NULL;

    ck_ok(parse(&got));
    return got;
}

// make_bytes() of a header, which it frees.
static void make_grown(struct strbuf *header, size_t data_bytes)
{
    make_bytes(header->data, header->used, data_bytes);
    attncl__strbuf_free(header);
}

// One row per way to break a rule.
struct bad {
    const char *header;
    size_t data_bytes;
    const char *words;
};
#define T(dtype, shape, offsets)                                                                   \
    "{\"w\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define SIZED(name, bytes, offsets)                                                                \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #bytes "],\"data_offsets\":" offsets "}"

static const struct bad bads[] = {
    // 4: UTF-8
    {"{\"\xed\xa0\x80\":1}", 0, "no valid JSON"},
    {"{\"__metadata__\":{\"k\":\"\xe2\x82\"}}", 0, "no valid JSON"},
    // 5: a JSON object, nothing after it
    {"", 0, "no valid JSON"},
    {"[]", 0, "array"},
    {"{} x", 0, "no valid JSON"},
    {"\xef\xbb\xbf{}", 0, "no valid JSON"},
    // 6: no key twice, however it is written
    {"{" SIZED("w", 4, "[0,4]") "," SIZED("w", 4, "[0,4]") "}", 4, "duplicate"},
    {"{" SIZED("w", 4, "[0,4]") "," SIZED("\\u0077", 4, "[0,4]") "}", 4, "duplicate"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate"},
    {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "duplicate"},
    {"{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "duplicate"},
    // 7: metadata maps strings to strings
    {"{\"__metadata__\":[]}", 0, "__metadata__ is an array, expected an object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "__metadata__: k is an integer, expected a string"},
    {"{\"__metadata__\":{\"k\":{}}}", 0, "k is an object, expected a string"},
    // 8: an entry is exactly dtype, shape, data_offsets
    {"{\"w\":1}", 0, "w is an integer, expected an object"},
    {"{\"w\":{}}", 0, "tensor w: dtype is missing"},
    {"{\"w\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "shape is missing"},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "data_offsets is missing"},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":0}}", 1, "4 keys"},
    {"{\"w\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype is an integer"},
    {T("U8", "1", "[0,1]"), 1, "shape is an integer"},
    {T("U8", "[\"1\"]", "[0,1]"), 1, "shape[0] is a string, expected an integer"},
    {T("U8", "[1,null]", "[0,1]"), 1, "shape[1] is null"},
    {T("U8", "[1]", "{}"), 1, "data_offsets is an object"},
    {T("U8", "[1]", "[0]"), 1, "data_offsets has 1 entries"},
    {T("U8", "[1]", "[0,1,1]"), 1, "data_offsets has 3 entries"},
    {T("U8", "[1]", "[0,\"1\"]"), 1, "data_offsets[1] is a string"},
    // integers: digits only, below 2^48
    {T("U8", "[-1]", "[0,1]"), 1, "-1 at byte"},
    {T("U8", "[-0]", "[0,0]"), 0, "-0 at byte"},
    {T("U8", "[1.0]", "[0,1]"), 1, "1.0 at byte"},
    {T("U8", "[1e0]", "[0,1]"), 1, "1e0 at byte"},
    {T("U8", "[1E0]", "[0,1]"), 1, "1E0 at byte"},
    {T("U8", "[+1]", "[0,1]"), 1, "+1 at byte"},
    {T("U8", "[1]", "[-0,1]"), 1, "-0 at byte"},
    {T("U8", "[281474976710656]", "[0,1]"), 1, "axis 0 has extent 281474976710656"},
    {T("U8", "[99999999999999999999]", "[0,1]"), 1, "no valid JSON"},
    // 9: known types only
    {T("f32", "[1]", "[0,4]"), 4, "dtype f32 is unknown"},
    {T("", "[1]", "[0,4]"), 4, "is unknown"},
    {T("NONE", "[0]", "[0,0]"), 0, "dtype NONE is unknown"},
    // 10: no hole, no overlap, in order
    {T("U8", "[4]", "[1,5]"), 5, "begins at 1, the one before ends at 0"},
    {T("U8", "[4]", "[4,0]"), 4, "end before they begin"},
    {"{" SIZED("a", 4, "[0,4]") "," SIZED("b", 4, "[5,9]") "}", 9, "begins at 5"},
    {"{" SIZED("a", 4, "[0,4]") "," SIZED("b", 4, "[3,7]") "}", 7, "begins at 3"},
    {"{" SIZED("a", 4, "[0,4]") "," SIZED("b", 4, "[0,4]") "}", 4, "begins at 0"},
    {"{" SIZED("a", 4, "[0,4]") "," SIZED("b", 0, "[2,2]") "}", 4,
     "begins at 2, the one before ends at 4"},
    // 11: products are checked
    {T("F32", "[4294967296,4294967296]", "[0,0]"), 0, "more than 2^48 - 1 elements"},
    {T("U8", "[0,281474976710655,2]", "[0,0]"), 0, "more than 2^48 - 1 elements"},
    {T("F64", "[281474976710655]", "[0,8]"), 8, "hold 8 bytes"},
    // 12: whole bytes
    {T("F4", "[3]", "[0,1]"), 1, "3 elements of 4 bits are no whole number of bytes"},
    // 13: offsets hold what type and shape ask for
    {T("F32", "[2]", "[0,4]"), 4, "hold 4 bytes, dtype and shape ask for 8"},
    {T("F32", "[1]", "[0,8]"), 8, "hold 8 bytes, dtype and shape ask for 4"},
    {T("U8", "[]", "[0,0]"), 0, "ask for 1"},
    {T("U8", "[0]", "[0,1]"), 1, "ask for 0"},
    // 14: the data ends with the last tensor
    {T("U8", "[4]", "[0,4]"), 3, "data_offsets end at 4, the file has 3 bytes of data"},
    {T("U8", "[4]", "[0,4]"), 5, "take 4 bytes, the file has 5 bytes of data"},
    {"{}", 1, "take 0 bytes, the file has 1 bytes"},
    {T("U8", "[1]", "[0,9223372036854775807]"), 1, "data_offsets end at 9223372036854775807"},
    {T("U8", "[1]", "[9223372036854775807,9223372036854775807]"), 1, "data_offsets end at"},
    // beyond the format: what a C program must bound
    {"{\"__metadata__\":{\"k\":\"a\\u0000b\"}}", 0, "no valid JSON"},
    {"{" SIZED("a\\nb", 1, "[0,1]") "}", 1, "control character"},
    {"{" SIZED("a\\u009fb", 1, "[0,1]") "}", 1, "control character"},
    {"{" SIZED("a\\u007f", 1, "[0,1]") "}", 1, "control character"},
    {"{" SIZED("", 1, "[0,1]") "}", 1, "without a name"},
    {T("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "shape has 9 entries, at most 8"},
    {"{\"w\":[[[[[[[[]]]]]]]]}", 0, "nested deeper than 7 levels"},
};

FIXTURE(up, down);

TABLE_TEST(a_broken_rule_is_refused, bads)
{
    make(bads[_i].header, bads[_i].data_bytes);
    refuse(bads[_i].words);
    ck_assert_uint_eq(attncl__alloc_live(), heap_before + 1); // the file itself
}

TEST(a_file_shorter_than_its_length_field_is_refused)
{
    attncl_safetensors *got = NULL;
    for (size_t bytes = 0; bytes < 8; ++bytes) {
        attncl__strbuf_free(&file);
        attncl__strbuf_add_bytes(&file, "\2\0\0\0\0\0\0\0", bytes);
        refuse("the header's length alone takes 8");
    }
    ck_fails(attncl_safetensors_parse(NULL, 0, &got), ATTNCL_ERR_FORMAT, "0 bytes");
}

TEST(a_header_length_beyond_the_cap_or_the_file_is_refused)
{
    static const struct {
        uint64_t length;
        const char *words;
    } rows[] = {
        {3, "3 bytes in a file of 10"},           {100000000, "100000000 bytes in a file of 10"},
        {100000001, "at most 100000000"},         {UINT64_MAX, "at most 100000000"},
        {UINT64_MAX - 7, "at most 100000000"}, // 8 + N = 0 in 64 bits
        {UINT64_C(1) << 63, "at most 100000000"}, {UINT64_C(2) << 32 | 2, "at most 100000000"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        attncl__strbuf_free(&file);
        add_length(rows[i].length);
        attncl__strbuf_add(&file, "{}");
        refuse(rows[i].words);
    }
}

TEST(every_truncation_is_refused)
{
    make("{" SIZED("a", 3, "[0,3]") "," SIZED("b", 5, "[3,8]") "}   ", 8);
    const size_t whole = file.used;
    attncl_safetensors_close(accept());
    for (file.used = 0; file.used < whole; ++file.used)
        refuse("");
}

TEST(deep_nesting_does_not_reach_the_parser)
{
    enum { DEPTH = 100000 };
    const char *const opens[] = {"[", "{\"a\":", "[{\"a\":"}, *const closes[] = {"]", "}", "}]"};
    for (size_t i = 0; i < 3; ++i) {
        struct strbuf deep = STRBUF_EMPTY;
        attncl__strbuf_add(&deep, "{\"w\":");
        for (int d = 0; d < DEPTH; ++d)
            attncl__strbuf_add(&deep, "%s", opens[i]);
        for (int d = 0; d < DEPTH; ++d)
            attncl__strbuf_add(&deep, "%s", closes[i]);
        attncl__strbuf_add(&deep, "}");
        make_grown(&deep, 0);
        refuse("nested deeper");
    }
}

TEST(a_name_has_at_most_4096_bytes)
{
    for (int n = 4096; n <= 4097; ++n) {
        struct strbuf header = STRBUF_EMPTY;
        attncl__strbuf_add(
            &header, "{\"%0*d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", n, 0);
        make_grown(&header, 1);
        if (n == 4096)
            attncl_safetensors_close(accept());
        else
            refuse("name of 4097 bytes, at most 4096");
    }
}

// A header of n members, each an own number between two texts, all between two others.
static void make_members(const char *before, const char *left, const char *right, int n,
                         const char *after)
{
    struct strbuf header = STRBUF_EMPTY;

    attncl__strbuf_add(&header, "%s", before);
    for (int i = 0; i < n; ++i) {
        attncl__strbuf_add(&header, "%s%s%x%s", i > 0 ? "," : "", left, i, right);
    }
    attncl__strbuf_add(&header, "%s", after);
    make_grown(&header, 0);
}

TEST(more_than_200000_tensors_are_refused_before_any_is_read)
{
    make_members("{", "\"", "\":0", 400000, "}");
    refuse("400000 tensors, at most 200000");
    make_members("{", "\"", "\":0", 200001, ",\"__metadata__\":{}}");
    refuse("200001 tensors, at most 200000");
}

TEST(more_than_100000_metadata_entries_are_refused)
{
    make_members("{\"__metadata__\":{", "\"", "\":\"\"", 100001, "}}");
    refuse("__metadata__ has 100001 entries, at most 100000");
    make_members("{\"__metadata__\":{", "\"", "\":\"\"", 100000, "}}");
    attncl_safetensors_close(accept());
}

TEST(more_values_than_a_tensor_has_are_refused)
{
    make_members("{\"w\":[", "\"", "\"", 500000, "]}");
    refuse("more than 32 values");
}

// A line of /proc/self/status in bytes: the memory that the process has, "VmRSS", or had at most,
// "VmHWM"; 0 where the system does not say.
static size_t memory_bytes(const char *name)
{
    char line[256];
    size_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");

    while (status && kib == 0 && fgets(line, sizeof line, status))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoul(line + strlen(name) + 1, NULL, 10);
    if (status)
        fclose(status);
    return 1024 * kib;
}

// "VmHWM" is "VmRSS" afterwards.
static void forget_peak(void)
{
    FILE *refs = fopen("/proc/self/clear_refs", "w");

    if (refs) {
        fputs("5", refs);
        fclose(refs);
    }
}

TEST(a_large_header_takes_at_most_four_times_its_memory)
{
    static const struct {
        const char *before, *left, *right;
        int n;
        const char *after;
    } rows[] = {
        {"{", "\"", "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", 200000, "}"},
        {"{\"__metadata__\":{", "\"", "\":\"0123456789\"", 100000, "}}"},
        {"{\"__metadata__\":{\"k\":\"", "", "", 1000000, "\"}}"},
        {"{\"\\u005f_metadata__\":{\"k\":\"", "\\u00e9", "", 600000, "\"}}"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        attncl_safetensors *got = NULL;
        make_members(rows[i].before, rows[i].left, rows[i].right, rows[i].n, rows[i].after);
        forget_peak();
        const size_t before = memory_bytes("VmRSS");
        const clock_t start = clock();
        ck_ok(attncl_safetensors_parse(file.data, file.used, &got));
        const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        const size_t grown = memory_bytes("VmHWM") - before;
        attncl_safetensors_close(got);
        // The text itself is one of the four.
        ck_assert_msg(SANITIZED || grown <= 3 * file.used + (1 << 20),
                      "row %zu: %zu bytes for a header of %zu", i, grown, file.used);
        ck_assert_msg(SANITIZED || seconds < 4, "row %zu: %g s", i, seconds);
    }
}

TEST(an_empty_file_has_no_tensors)
{
    static const char *const headers[] = {"{}", "{}      ", "  {}", "{}\n\t\r ",
                                          "{\"__metadata__\":{}}"};
    for (size_t i = 0; i < COUNT_OF(headers); ++i) {
        make(headers[i], 0);
        attncl_safetensors *got = accept();
        ck_assert_uint_eq(attncl_safetensors_count(got), 0);
        ck_assert_ptr_null(attncl_safetensors_at(got, 0));
        ck_assert_ptr_null(attncl_safetensors_find(got, "w"));
        ck_assert_ptr_null(attncl_safetensors_metadata(got, "k"));
        attncl_safetensors_close(got);
    }
    attncl_safetensors_close(NULL);
}

TEST(tensors_come_by_name_whatever_the_order_in_the_file)
{
    make("{" SIZED("c", 2, "[3,5]") ",\"__metadata__\":{\"k\":\"v\",\"\":\"\\n\\u00e9\"}," SIZED(
             "a", 1, "[5,6]") ","
                              "\"b\":{\"data_offsets\":[0,3],\"shape\":[3,1],\"dtype\":\"I8\"}}",
         6);
    attncl_safetensors *got = accept();
    ck_assert_uint_eq(attncl_safetensors_count(got), 3);
    ck_assert_str_eq(attncl_safetensors_at(got, 0)->name, "a");
    ck_assert_str_eq(attncl_safetensors_at(got, 1)->name, "b");
    ck_assert_str_eq(attncl_safetensors_at(got, 2)->name, "c");
    ck_assert_ptr_null(attncl_safetensors_at(got, 3));

    const attncl_array *b = attncl_safetensors_find(got, "b");
    ck_assert_ptr_eq(b, attncl_safetensors_at(got, 1));
    ck_assert(b->dtype == ATTNCL_I8 && b->rank == 2 && b->dim[0] == 3 && b->dim[1] == 1);
    ck_assert_uint_eq(b->bytes, 3);
    ck_assert_mem_eq(b->data, "\0\1\2", 3);
    ck_assert_mem_eq(attncl_safetensors_find(got, "c")->data, "\3\4", 2);
    ck_assert_mem_eq(attncl_safetensors_find(got, "a")->data, "\5", 1);

    const char *value = NULL;
    ck_assert_str_eq(attncl_safetensors_metadata(got, "k"), "v");
    ck_assert_str_eq(attncl_safetensors_metadata(got, ""), "\n\xc3\xa9");
    ck_assert_ptr_null(attncl_safetensors_metadata(got, "K"));
    ck_assert_str_eq(attncl_safetensors_metadata_at(got, 0, &value), "k");
    ck_assert_str_eq(value, "v");
    ck_assert_ptr_null(attncl_safetensors_metadata_at(got, 2, &value));
    attncl_safetensors_close(got);
}

TEST(scalars_and_empty_tensors_keep_their_shape)
{
    make("{\"z\":{\"dtype\":\"F32\",\"shape\":[2,0,5],\"data_offsets\":[4,4]},"
         "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
         "\"y\":{\"dtype\":\"F64\",\"shape\":[0,281474976710655],\"data_offsets\":[0,0]}}",
         4);
    attncl_safetensors *got = accept();
    const attncl_array *z = attncl_safetensors_find(got, "z");
    const attncl_array *s = attncl_safetensors_find(got, "s");
    ck_assert(z->rank == 3 && z->dim[2] == 5 && z->bytes == 0);
    ck_assert(s->rank == 0 && s->bytes == 4);
    ck_assert_mem_eq(s->data, "\0\1\2\3", 4);
    attncl_safetensors_close(got);
}

TEST(every_type_of_the_format_is_listed_by_name)
{
    static const struct {
        const char *name;
        int bits;
    } rows[] = {{"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6},
                {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},     {"F8_E4M3", 8},
                {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
                {"U16", 16},    {"F16", 16},        {"BF16", 16},       {"I32", 32},
                {"U32", 32},    {"F32", 32},        {"C64", 64},        {"F64", 64},
                {"I64", 64},    {"U64", 64}};
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        struct strbuf header = STRBUF_EMPTY;
        attncl__strbuf_add(&header,
                           "{\"w\":{\"dtype\":\"%s\",\"shape\":[4,2],\"data_offsets\":[0,%d]}}",
                           rows[i].name, rows[i].bits);
        make_grown(&header, (size_t)rows[i].bits);
        attncl_safetensors *got = accept();
        ck_assert_str_eq(attncl_dtype_name(attncl_safetensors_at(got, 0)->dtype), rows[i].name);
        ck_assert_uint_eq(attncl_safetensors_at(got, 0)->bytes, (size_t)rows[i].bits);
        attncl_safetensors_close(got);
    }
}

// The element of F32 w that is NaN, if any; x, whose bytes are NaN's too, is no floating-point tensor.
static const int not_finite[] = {-1, 0, 1, 511, 512, 599, 600};

TABLE_TEST(values_that_are_not_finite_are_found_on_request, not_finite)
{
    enum { N = 600 };
    const int at = not_finite[_i];
    const float nan_value = NAN;
    float values[N] = {0};
    struct strbuf header = STRBUF_EMPTY;
    char words[40];

    attncl__strbuf_add(&header,
                       "{\"w\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,%d]},"
                       "\"x\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[%d,%d]},"
                       "\"y\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[%d,%d]}}",
                       N, 4 * N, 4 * N, 4 * N + 4, 4 * N + 4, 4 * N + 6);
    make_grown(&header, 0);
    const uint16_t y = at == N ? 0x7fc0 : 0;
    if (at >= 0 && at < N)
        values[at] = NAN;
    attncl__strbuf_add_bytes(&file, values, sizeof values);
    attncl__strbuf_add_bytes(&file, &nan_value, sizeof nan_value);
    attncl__strbuf_add_bytes(&file, &y, sizeof y);
    attncl_safetensors *got = accept();
    snprintf(words, sizeof words, "tensor %c: element %d is", at == N ? 'y' : 'w', at % N);
    if (at < 0)
        ck_ok(attncl_safetensors_check_finite(got));
    else
        ck_fails(attncl_safetensors_check_finite(got), ATTNCL_ERR_FORMAT, words);
    attncl_safetensors_close(got);
}
