// SPDX-License-Identifier: MIT
// Pictures by gnuplot: PNG and SVG files of panels in a grid.
#ifndef ATTNCL_TOOL_PICTURE_H
#define ATTNCL_TOOL_PICTURE_H

#include "tool.h"

// A file being drawn: gnuplot, reading commands.
struct picture {
    FILE *commands;
    char *path, *part; // drawn as `part`, then renamed
};

// Starts a picture of rows times columns panels, SVG if the path ends so, else PNG.  Returns an exit status; reports a
// failure.
int picture_open(const char *path, int rows, int columns, struct picture *picture);

// Finishes the picture.  Returns `status`, or the status of a failure to draw, which leaves no file.
int picture_close(struct picture *picture, int status);

// A matrix: element (i, j) is data[i * row_step + j * column_step].
struct matrix_view {
    const float *data;
    int64_t rows, columns;
    int64_t row_step, column_step;
};

// The largest absolute value below 1e30.
double matrix_max_abs(const struct matrix_view *m);

// Adds a panel: the matrix as a heat map, its first row on top.  Colours run from `low` to `high`, through white at 0 if
// `low` is negative.
void picture_heatmap(struct picture *picture, const char *title, const char *x_label,
                     const char *y_label, const struct matrix_view *m, double low, double high);

// A curve of n points, `step` floats apart; x null: 0, 1, 2 ...
struct curve {
    char title[32];
    const float *x, *y;
    int64_t n, step;
    bool points; // dots instead of a line
    bool dashed;
};
void picture_curves(struct picture *picture, const char *title, const char *x_label,
                    const char *y_label, const struct curve *curves, int n);

// The array's elements as floats, which the caller frees.  NULL, reported, without memory or if the type is not real.
float *array_floats(const attncl_array *array);

// Whether attncl_model_show_attention() added these weights to the results, for pictures only.
bool is_shown_attention(const attncl_array *array);

// Draws every array of attention weights, and the model's position biases, into `directory`, which it creates if
// missing.  Returns an exit status; reports a failure.
int draw_heatmaps(const struct session *session, const char *model_path,
                  const attncl_results *results, const char *directory);

// Draws an array of a safetensors or .npy file: its last two axes as a matrix, the axes before them as a grid of panels.
// Returns an exit status; reports a failure.
struct array_request {
    const char *file, *picture;
    const char *name;  // null: the file's only array
    const char *index; // indices of the first axes, "2,0"; null: none
};
int draw_file(const struct array_request *request);

#endif
