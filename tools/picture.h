// SPDX-License-Identifier: MIT
// Pictures by gnuplot: PNG and SVG files of panels in a grid.
#ifndef ATTNCL_TOOL_PICTURE_H
#define ATTNCL_TOOL_PICTURE_H

#include "tool.h"

// A file being drawn: gnuplot, reading commands.
struct picture {
    FILE *commands;
    char *path, *part; // drawn under another name and renamed
};

// Starts a picture of rows times columns panels: an SVG file where the path ends so, else PNG.  Returns an exit status; a failure is reported.
int picture_open(const char *path, int rows, int columns, struct picture *picture);

// Ends it.  Returns `status`, or the failure of drawing, after which there is no file.
int picture_close(struct picture *picture, int status);

// A matrix of rows times columns floats: element (i, j) is at data[i * row_step + j * column_step].
struct matrix_view {
    const float *data;
    int64_t rows, columns;
    int64_t row_step, column_step;
};

// Its largest absolute value, of those below 1e30.
double matrix_max_abs(const struct matrix_view *m);

// One panel: the matrix as a heat map, its first row on top.  Colours run from `low` to `high`,
// through white at 0 when `low` is negative.
void picture_heatmap(struct picture *picture, const char *title, const char *x_label,
                     const char *y_label, const struct matrix_view *m, double low, double high);

// One curve of a panel: n points (x null: 0, 1, 2 ...), `step` floats from one to the next.
struct curve {
    char title[32];
    const float *x, *y;
    int64_t n, step;
    bool points; // dots instead of a line
    bool dashed;
};
void picture_curves(struct picture *picture, const char *title, const char *x_label,
                    const char *y_label, const struct curve *curves, int n);

// An array's elements as floats, free() them; NULL, reported, when there is no memory or the type
// is not real.
float *array_floats(const attncl_array *array);

// Weights that a run has because of attncl_model_show_attention(): for pictures alone.
bool is_shown_attention(const attncl_array *array);

// Draws every array that holds attention weights, and the model's position biases, into
// `directory`, which is created when it does not exist.  Returns an exit status; a failure is reported.
int draw_heatmaps(const struct session *session, const char *model_path,
                  const attncl_results *results, const char *directory);

// Draws an array of a safetensors or .npy file: its last two axes are a matrix, those before them a grid.  Returns an
// exit status; a failure is reported.
struct array_request {
    const char *file, *picture;
    const char *name;  // null: the only one
    const char *index; // of the first axes, "2,0"; null: none
};
int draw_file(const struct array_request *request);

#endif
