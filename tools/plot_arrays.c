// SPDX-License-Identifier: MIT
//
// Heat maps of an array in a safetensors or .npy file.

#include <stdlib.h>
#include <string.h>

#include "picture.h"

enum { MAX_PANELS = 8 }; // across, and down

// Parses a .npy file as numpy writes it; its header is {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
static int read_npy(const char *path, const char *file, size_t bytes, attncl_array *ret)
{
    static const struct {
        const char *code;
        attncl_dtype dtype;
    } types[] = {{"f2", ATTNCL_F16}, {"f4", ATTNCL_F32}, {"f8", ATTNCL_F64}, {"b1", ATTNCL_BOOL},
                 {"u1", ATTNCL_U8},  {"i1", ATTNCL_I8},  {"u2", ATTNCL_U16}, {"i2", ATTNCL_I16},
                 {"u4", ATTNCL_U32}, {"i4", ATTNCL_I32}, {"u8", ATTNCL_U64}, {"i8", ATTNCL_I64}};
    const unsigned char *b = (const unsigned char *)file;
    const size_t start = bytes > 6 && b[6] == 1 ? 10 : 12; // versions 2 and 3: a longer length
    size_t length = 0, count = 1;
    char header[1024];

    if (bytes < start || memcmp(file, "\x93NUMPY", 6) != 0)
        return tool_error("%s: not a .npy file", path);
    for (size_t i = start; i-- > 8;)
        length = length << 8 | b[i];
    if (length >= sizeof header || length > bytes - start)
        return tool_error("%s: a header of %zu bytes, expected at most %zu", path, length,
                          sizeof header - 1);
    snprintf(header, sizeof header, "%.*s", (int)length, file + start);
    const char *type = strstr(header, "'descr': '"), *shape = strstr(header, "'shape': (");
    if (!type || !shape || strstr(header, "'fortran_order': True"))
        return tool_error("%s: expected one array of numbers in C order", path);
    const char *slash = strrchr(path, '/');
    *ret = (attncl_array){.name = slash ? slash + 1 : path, .data = file + start + length};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (type[10] != '>' && strncmp(type + 11, types[i].code, 2) == 0 && type[13] == '\'')
            ret->dtype = types[i].dtype;
    if (!ret->dtype)
        return tool_error("%s: elements of type %.8s, expected numbers, little-endian", path,
                          type + 10);
    char *end;
    for (shape += 10; *shape != ')' && ret->rank < ATTNCL_MAX_RANK; shape = end + (*end == ',')) {
        const long long extent = strtoll(shape, &end, 10);
        if (end == shape || extent < 0 || (extent > 0 && count > bytes / (size_t)extent))
            return tool_error("%s: its shape does not fit %zu bytes", path, bytes);
        count *= (size_t)extent;
        ret->dim[ret->rank++] = extent;
    }
    ret->bytes = count * attncl_dtype_bytes(ret->dtype);
    if (*shape != ')' || ret->bytes != bytes - start - length)
        return tool_error("%s: its shape does not fit %zu bytes", path, bytes);
    return TOOL_OK;
}

// Takes the part of the array at the indices `text`, "2,0", of its first axes.
static int take_index(const char *text, attncl_array *a)
{
    for (const char *at = text; at;) {
        char *end;
        const long long i = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ','))
            return tool_error("--index: '%s' is not of the form I,J...", text);
        if (a->rank == 0)
            return tool_error("--index %s: %s has fewer axes", text, a->name);
        if (i < 0 || i >= a->dim[0])
            return tool_error("--index %s: %lld is not in 0 to %lld, an axis of %s", text, i,
                              (long long)a->dim[0] - 1, a->name);
        a->bytes /= (size_t)a->dim[0];
        a->data = (const char *)a->data + (size_t)i * a->bytes;
        memmove(a->dim, a->dim + 1, (size_t)--a->rank * sizeof a->dim[0]);
        at = *end ? end + 1 : NULL;
    }
    return TOOL_OK;
}

static void draw_grid(struct picture *picture, const char *name, const struct matrix_view *all,
                      const int64_t extent[4])
{
    const double high = matrix_max_abs(all);
    double low = 0;
    char title[160];

    for (int64_t i = 0; i < all->rows * all->columns && low == 0; i++)
        low = all->data[i] < 0 ? -high : 0;
    for (int64_t r = 0; r < extent[0]; r++)
        for (int64_t c = 0; c < extent[1]; c++) {
            const struct matrix_view m = {all->data + (r * extent[1] + c) * extent[2] * extent[3],
                                          extent[2], extent[3], extent[3], 1};
            int used = snprintf(title, sizeof title, "%.100s", name);
            if (extent[0] > 1)
                used += snprintf(title + used, sizeof title - (size_t)used, " %lld", (long long)r);
            if (extent[1] > 1)
                snprintf(title + used, sizeof title - (size_t)used, " %lld", (long long)c);
            picture_heatmap(picture, title, "column", "row", &m, low, high);
        }
}

// The last two axes are a matrix, the axes before them a grid of panels.
static int draw_array(const struct array_request *r, attncl_array *a)
{
    int64_t extent[4] = {1, 1, 1, 1};
    struct picture picture;
    char name[120];

    snprintf(name, sizeof name, "%.60s%s%.40s", a->name, r->index ? " " : "",
             r->index ? r->index : "");
    TOOL_TRY(take_index(r->index, a));
    if (a->rank < 1 || a->rank > 4)
        return tool_error("%s has %d axes, expected 1 to 4; --index I,J... picks from the first",
                          a->name, a->rank);
    for (int i = 0; i < a->rank; i++)
        extent[4 - a->rank + i] = a->dim[i];
    if (extent[0] > MAX_PANELS || extent[1] > MAX_PANELS)
        return tool_error("%s has %lld x %lld matrices, at most %d x %d fit; --index picks some",
                          a->name, (long long)extent[0], (long long)extent[1], MAX_PANELS,
                          MAX_PANELS);
    if (a->bytes == 0)
        return tool_error("%s has no element", a->name);
    float *values = array_floats(a);
    if (!values)
        return TOOL_FAILED;
    int status = picture_open(r->picture, (int)extent[0], (int)extent[1], &picture);
    if (status == TOOL_OK) {
        const struct matrix_view all = {values, extent[0] * extent[1] * extent[2], extent[3],
                                        extent[3], 1};
        draw_grid(&picture, name, &all, extent);
        status = picture_close(&picture, status);
    }
    free(values);
    return status;
}

static int draw_named(const struct array_request *r, const attncl_safetensors *file)
{
    const size_t n = attncl_safetensors_count(file);
    const attncl_array *found = r->name  ? attncl_safetensors_find(file, r->name)
                                : n == 1 ? attncl_safetensors_at(file, 0)
                                         : NULL;
    char names[400] = "";

    if (found) {
        attncl_array array = *found;
        return draw_array(r, &array);
    }
    for (size_t i = 0, used = 0; i < n && used < sizeof names - 1; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 attncl_safetensors_at(file, i)->name);
    return r->name ? tool_error("%s: there is no array %s; there are %s", r->file, r->name, names)
                   : tool_error("%s: --array is missing, one of %s", r->file, names);
}

int draw_file(const struct array_request *r)
{
    const char *path = r->file;
    attncl_safetensors *file = NULL;
    attncl_array array;
    size_t bytes;
    int status = TOOL_FAILED;

    if (name_ends_with(path, "npy")) {
        char *data = read_range(path, (const int64_t[2]){0, -1}, &bytes);
        if (data && read_npy(path, data, bytes, &array) == TOOL_OK)
            status = draw_array(r, &array);
        free(data);
        return status;
    }
    TOOL_TRY(tool_status(attncl_safetensors_open(path, &file)));
    status = draw_named(r, file);
    attncl_safetensors_close(file);
    return status;
}
