// SPDX-License-Identifier: MIT
//
// Parses the header of a safetensors file and checks every rule of the format.

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "io/json.h"
#include "io/safetensors.h"

// One tensor's value holds the object, three keys, the type, two arrays, two offsets and at most
// ATTNCL_MAX_RANK extents; a few more values are allowed so that a message can name them.
static const struct json_limits value_limits = {
    .depth = 7, .values = 16 + 2 * ATTNCL_MAX_RANK, .only_digits = true};

static size_t get_end(const struct st_tensor *t)
{
    return t->begin + t->array.bytes;
}

#define CONVERT "convert it with attncl-convert, see docs/model-files.md"

static const struct {
    const char *first;  // the file's first n bytes
    size_t n;           // length of `first`
    const char *within; // bytes that must follow somewhere; NULL: none
    const char *words;  // for the message
} formats[] = {
    {"PK\3\4", 4, "data.pkl", "a PyTorch checkpoint: " CONVERT},
    {"PK\3\4", 4, ".npy",
     "a NumPy archive (NPZ): save its arrays with safetensors.numpy.save_file()"},
    {"PK\3\4", 4, NULL, "a zip archive, not a safetensors file"},
    {"\x80\2", 2, NULL, "a Python pickle, as old PyTorch checkpoints are: " CONVERT},
    {"\x80\3", 2, NULL, "a Python pickle: " CONVERT},
    {"\x80\4", 2, NULL, "a Python pickle: " CONVERT},
    {"\x80\5", 2, NULL, "a Python pickle: " CONVERT},
    {"\x93NUMPY", 6, NULL, "a NumPy array (NPY): save it with safetensors.numpy.save_file()"},
    {"GGUF", 4, NULL, "a GGUF file: " CONVERT},
    {"\211HDF\r\n", 6, NULL,
     "an HDF5 file (Keras, say): convert the model from its PyTorch checkpoint"},
    {"\x08", 1, "\x12\7pytorch", "an ONNX model: convert the model from its PyTorch checkpoint"},
    {"\x08", 1, "onnx", "an ONNX model: convert the model from its PyTorch checkpoint"},
    {"version https://git-lfs", 23, NULL,
     "a Git LFS pointer: get the file itself with git lfs pull"},
    {"<!DOCTYPE", 9, NULL, "a web page, not a safetensors file"},
    {"<html", 5, NULL, "a web page, not a safetensors file"},
    {"{", 1, NULL, "a JSON text, not a safetensors file"},
    {"\x1f\x8b", 2, NULL, "compressed by gzip: unpack it first"},
};

static bool contains(const unsigned char *data, size_t n, const char *bytes)
{
    const size_t length = strlen(bytes);
    for (size_t i = 0; i + length <= n; ++i)
        if (memcmp(data + i, bytes, length) == 0)
            return true;
    return false;
}

// ERR_FORMAT, with advice, when the first bytes are another format's; else returns `status`.  Read as N, the first 8
// bytes of each format are far too large, so a valid file never comes here.
static attncl_status refuse_foreign(const unsigned char *data, size_t n, attncl_status status)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; ++i)
        REQUIRE(n < formats[i].n || memcmp(data, formats[i].first, formats[i].n) != 0 ||
                    (formats[i].within && !contains(data, n, formats[i].within)),
                ATTNCL_ERR_FORMAT, "%s", formats[i].words);
    return status;
}

static attncl_status check_bytes(uint64_t bytes, uint64_t total)
{
    REQUIRE(bytes <= ST_MAX_HEADER_BYTES, ATTNCL_ERR_FORMAT,
            "a header of %" PRIu64 " bytes, at most %d are possible: this is no safetensors file",
            bytes, ST_MAX_HEADER_BYTES);
    REQUIRE(bytes <= total - ST_LENGTH_BYTES, ATTNCL_ERR_FORMAT,
            "a header of %" PRIu64 " bytes in a file of %" PRIu64, bytes, total);
    return ATTNCL_OK;
}

attncl_status attncl__st_read_header_bytes(const unsigned char *first, size_t n, uint64_t total,
                                           size_t *bytes_ret)
{
    uint64_t bytes = 0;
    REQUIRE(total >= ST_LENGTH_BYTES, ATTNCL_ERR_FORMAT,
            "a file of %" PRIu64 " bytes, the header's length alone takes %d", total,
            ST_LENGTH_BYTES);
    REQUIRE(total <= SIZE_MAX, ATTNCL_ERR_NO_MEMORY, "a file of %" PRIu64 " bytes", total);
    for (int i = ST_LENGTH_BYTES - 1; i >= 0; --i)
        bytes = bytes << 8 | first[i];
    const attncl_status status = check_bytes(bytes, total);
    *bytes_ret = (size_t)bytes;
    return status == ATTNCL_OK ? status : refuse_foreign(first, n, status);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct st_entry *)a)->key, ((const struct st_entry *)b)->key);
}

static attncl_status refuse_duplicate_keys(const struct st_entry *entry, size_t n)
{
    attncl_status status = ATTNCL_OK;
    struct st_entry *sorted = attncl__alloc_array(n, sizeof *sorted);

    REQUIRE(sorted || n == 0, ATTNCL_ERR_NO_MEMORY, "%zu metadata entries", n);
    if (n > 0)
        memcpy(sorted, entry, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_keys);
    for (size_t i = 1; i < n; ++i)
        if (strcmp(sorted[i - 1].key, sorted[i].key) == 0)
            TRY_DONE(FAIL(ATTNCL_ERR_FORMAT, "duplicate key %.200s", sorted[i].key));

done:
    attncl__free(sorted);
    return status;
}

static attncl_status read_entries(struct attncl_safetensors *file, const struct json_span *value,
                                  char **end)
{
    struct json_members members = attncl__json_members(*value);

    while (attncl__json_next_member(&members)) {
        struct st_entry *entry = &file->metadata[file->n_metadata++];
        entry->key = *end;
        TRY(attncl__json_parse_text(&members.key, "a key", &value_limits, *end, end));
        entry->value = *end;
        TRY(attncl__json_parse_text(&members.value, entry->key, &value_limits, *end, end));
    }
    TRY(members.status);
    return refuse_duplicate_keys(file->metadata, file->n_metadata);
}

// Counts the object's members and the bytes of their keys as written.  with_metadata: ST_METADATA_KEY is
// not counted as a member, but its value's bytes are.
static attncl_status count_members(const struct json_span *object, bool with_metadata, size_t *n,
                                   size_t *bytes)
{
    static const char metadata_key[] = "\"" ST_METADATA_KEY "\"";
    struct json_members members = attncl__json_members(*object);

    *n = *bytes = 0;
    while (attncl__json_next_member(&members)) {
        const struct json_span key = members.key;
        const bool is_metadata = with_metadata && key.bytes == sizeof metadata_key - 1 &&
                                 memcmp(key.text, metadata_key, key.bytes) == 0;
        *bytes += key.bytes;
        if (is_metadata || (with_metadata && memchr(key.text, '\\', key.bytes)))
            *bytes += members.value.bytes;
        *n += is_metadata ? 0 : 1;
    }
    return members.status;
}

static attncl_status read_metadata(struct attncl_safetensors *file, const struct json_span *value,
                                   char **end)
{
    size_t n, bytes;

    REQUIRE(!file->metadata, ATTNCL_ERR_FORMAT, "duplicate key " ST_METADATA_KEY);
    if (*value->text != '{') {
        struct json *none;
        return attncl__json_parse_value(value, ST_METADATA_KEY, &value_limits, &none);
    }
    TRY(count_members(value, false, &n, &bytes));
    REQUIRE(n <= ST_MAX_METADATA, ATTNCL_ERR_FORMAT,
            ST_METADATA_KEY " has %zu entries, at most %d are possible", n, ST_MAX_METADATA);
    file->metadata = attncl__alloc_array(n + 1, sizeof *file->metadata);
    REQUIRE(file->metadata, ATTNCL_ERR_NO_MEMORY, "%zu metadata entries", n);
    return attncl__prefix_failure(read_entries(file, value, end), ST_METADATA_KEY);
}

// Reads one tensor's object, which has exactly dtype, shape and data_offsets.
static attncl_status read_tensor(const struct json *entry, size_t data_bytes,
                                 struct st_tensor *tensor)
{
    attncl_array *array = &tensor->array;
    const char *type_name;
    int64_t offset[2];
    size_t rank, n_offsets, bytes;

    TRY(attncl__json_text(entry, "dtype", NULL, &type_name));
    TRY(attncl__json_ints(entry, "shape", NULL, ATTNCL_MAX_RANK, array->dim, &rank));
    TRY(attncl__json_ints(entry, "data_offsets", NULL, 2, offset, &n_offsets));
    REQUIRE(attncl__json_count(entry) == 3, ATTNCL_ERR_FORMAT,
            "%zu keys, expected dtype, shape, data_offsets", attncl__json_count(entry));
    array->dtype = attncl__dtype_from_name(type_name);
    array->rank = (int)rank;
    REQUIRE(array->dtype != ATTNCL_DTYPE_NONE, ATTNCL_ERR_FORMAT, "dtype %s is unknown", type_name);
    TRY(attncl__st_compute_bytes(array, ATTNCL_ERR_FORMAT, &bytes));

    REQUIRE(n_offsets == 2, ATTNCL_ERR_FORMAT, "data_offsets has %zu entries, expected 2",
            n_offsets);
    REQUIRE(offset[0] <= offset[1], ATTNCL_ERR_FORMAT,
            "data_offsets [%" PRId64 ", %" PRId64 "] end before they begin", offset[0], offset[1]);
    REQUIRE((uint64_t)offset[1] <= data_bytes, ATTNCL_ERR_FORMAT,
            "data_offsets end at %" PRId64 ", the file has %zu bytes of data", offset[1],
            data_bytes);
    REQUIRE((size_t)(offset[1] - offset[0]) == bytes, ATTNCL_ERR_FORMAT,
            "data_offsets hold %" PRId64 " bytes, dtype and shape ask for %zu",
            offset[1] - offset[0], bytes);
    tensor->begin = (size_t)offset[0];
    array->bytes = bytes;
    return ATTNCL_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct st_tensor *)a)->array.name,
                  ((const struct st_tensor *)b)->array.name);
}

static attncl_status refuse_duplicates(const struct st_tensor *tensor, size_t n)
{
    for (size_t i = 1; i < n; ++i)
        REQUIRE(compare_names(&tensor[i - 1], &tensor[i]) != 0, ATTNCL_ERR_FORMAT,
                "duplicate tensor %.200s", tensor[i].array.name);
    return ATTNCL_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct st_tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    // An empty tensor comes before its neighbour.
    return get_end(x) < get_end(y) ? -1 : get_end(x) > get_end(y);
}

// Checks that the tensors, sorted by offset, cover the data without gap or overlap.
static attncl_status check_offsets(const struct st_tensor *tensor, size_t n, size_t data_bytes)
{
    size_t end = 0;

    for (size_t i = 0; i < n; ++i) {
        REQUIRE(tensor[i].begin == end, ATTNCL_ERR_FORMAT,
                "tensor %.200s: data begins at %zu, the one before ends at %zu",
                tensor[i].array.name, tensor[i].begin, end);
        end = get_end(&tensor[i]);
    }
    REQUIRE(end == data_bytes, ATTNCL_ERR_FORMAT,
            "the tensors take %zu bytes, the file has %zu bytes of data", end, data_bytes);
    return ATTNCL_OK;
}

static attncl_status read_value(const struct json_span *value, const char *name, size_t data_bytes,
                                struct st_tensor *tensor)
{
    struct json *entry = NULL;

    TRY(attncl__json_parse_value(value, name, &value_limits, &entry));
    const attncl_status status = read_tensor(entry, data_bytes, tensor);
    attncl__json_free(entry);
    return attncl__prefix_failure(status, "tensor %.200s", name);
}

static attncl_status read_members(struct attncl_safetensors *file, const struct json_span *header,
                                  size_t data_bytes)
{
    char *end = file->strings;
    struct json_members members = attncl__json_members(*header);

    while (attncl__json_next_member(&members)) {
        const char *name = end;
        TRY(attncl__json_parse_text(&members.key, "a key", &value_limits, end, &end));
        if (strcmp(name, ST_METADATA_KEY) == 0) {
            TRY(read_metadata(file, &members.value, &end));
            continue;
        }
        struct st_tensor *tensor = &file->tensor[file->n_tensors];
        TRY(attncl__st_check_name(name, ATTNCL_ERR_FORMAT));
        TRY(read_value(&members.value, name, data_bytes, tensor));
        tensor->array.name = name;
        tensor->array.data = NULL;
        file->n_tensors++;
    }
    return members.status;
}

// Members are parsed one by one, so that a hostile header never takes more memory than its arrays and
// names.
attncl_status attncl__st_read_header(struct attncl_safetensors *file, const char *text,
                                     size_t bytes, size_t data_bytes)
{
    const struct json_span header = {text, bytes};
    size_t n, string_bytes;

    TRY(count_members(&header, true, &n, &string_bytes));
    REQUIRE(n <= ST_MAX_TENSORS, ATTNCL_ERR_FORMAT, "%zu tensors, at most %d are possible", n,
            ST_MAX_TENSORS);
    file->strings = attncl__alloc(string_bytes + 1);
    file->tensor = attncl__alloc_array(n + 1, sizeof *file->tensor);
    REQUIRE(file->strings && file->tensor, ATTNCL_ERR_NO_MEMORY, "the names of %zu tensors", n);

    TRY(read_members(file, &header, data_bytes));
    qsort(file->tensor, file->n_tensors, sizeof *file->tensor, compare_names);
    TRY(refuse_duplicates(file->tensor, file->n_tensors));
    qsort(file->tensor, file->n_tensors, sizeof *file->tensor, compare_offsets);
    TRY(check_offsets(file->tensor, file->n_tensors, data_bytes));
    qsort(file->tensor, file->n_tensors, sizeof *file->tensor, compare_names);
    return ATTNCL_OK;
}
