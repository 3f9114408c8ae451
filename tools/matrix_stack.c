// SPDX-License-Identifier: MIT
//
// A stack of matrices in PNG files, a panel per batch entry (down) and head (across).

#include "matrix_stack.h"

#include <math.h>

// Panels of one picture.
enum { MAX_ROWS = 8, MAX_COLUMNS = 8 };

static struct matrix_view panel(const struct matrix_stack *s, int64_t batch, int64_t head)
{
    return (struct matrix_view){s->data + batch * s->batch_step + head * s->head_step, s->n_queries,
                                s->n_keys, s->query_step, s->key_step};
}

double stack_max_abs(const struct matrix_stack *s)
{
    double max = 0;

    for (int64_t b = 0; b < s->n_batch; b++)
        for (int64_t h = 0; h < s->n_heads; h++) {
            const struct matrix_view m = panel(s, b, h);
            max = fmax(max, matrix_max_abs(&m));
        }
    return max;
}

// A file name of an array's: letters, digits, dots, dashes.
static void clean_name(const char *name, char *clean, size_t capacity)
{
    size_t n = 0;
    for (; name[n] && n + 1 < capacity; n++) {
        const char c = name[n];
        const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                           (c >= 'a' && c <= 'z') || c == '-' || c == '_' || (c == '.' && n > 0);
        clean[n] = c;
        if (!plain)
            clean[n] = '_';
    }
    clean[n] = '\0';
}

// The panels from batch entry b0 and head h0 on.
static int draw_page(const struct matrix_stack *s, const char *path, int64_t b0, int64_t h0)
{
    const int64_t rows = s->n_batch - b0 < MAX_ROWS ? s->n_batch - b0 : MAX_ROWS;
    const int64_t columns = s->n_heads - h0 < MAX_COLUMNS ? s->n_heads - h0 : MAX_COLUMNS;
    struct picture picture;
    char title[160];

    if (picture_open(path, (int)rows, (int)columns, &picture) != TOOL_OK)
        return TOOL_FAILED;
    for (int64_t b = b0; b < b0 + rows; b++)
        for (int64_t h = h0; h < h0 + columns; h++) {
            const struct matrix_view m = panel(s, b, h);
            int used = snprintf(title, sizeof title, "%.100s", s->name);
            if (s->n_batch > 1)
                used += snprintf(title + used, sizeof title - (size_t)used, ", batch %lld",
                                 (long long)b);
            if (s->n_heads > 1)
                snprintf(title + used, sizeof title - (size_t)used, ", head %lld", (long long)h);
            picture_heatmap(&picture, title, "keys", "queries", &m, s->low, s->high);
        }
    return picture_close(&picture, TOOL_OK);
}

int stack_draw(const struct matrix_stack *s, const char *directory)
{
    const bool one = s->n_batch <= MAX_ROWS && s->n_heads <= MAX_COLUMNS;
    char clean[160], path[4096];

    clean_name(s->name, clean, sizeof clean);
    for (int64_t b = 0; b < s->n_batch; b += MAX_ROWS)
        for (int64_t h = 0; h < s->n_heads; h += MAX_COLUMNS) {
            int n;
            if (one)
                n = snprintf(path, sizeof path, "%s/%s.png", directory, clean);
            else
                n = snprintf(path, sizeof path, "%s/%s-batch%lld-head%lld.png", directory, clean,
                             (long long)b, (long long)h);
            if (n < 0 || (size_t)n >= sizeof path)
                return tool_error("%s: the path is too long", directory);
            if (draw_page(s, path, b, h) != TOOL_OK)
                return TOOL_FAILED;
        }
    return TOOL_OK;
}
