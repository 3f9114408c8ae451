// SPDX-License-Identifier: MIT
//
// Pictures drawn by gnuplot, which gets only numbers, fixed words and quoted names.

#include "picture.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PANEL_WIDTH = 380, PANEL_HEIGHT = 340 };

static void (*old_handler)(int); // SIGPIPE's, while a picture is drawn

// Writes a text in gnuplot's single quotes, where a quote is doubled.
static void put_quoted(FILE *out, const char *text)
{
    putc('\'', out);
    for (; *text; text++) {
        if (*text == '\'')
            putc('\'', out);
        putc((unsigned char)*text < 0x20 ? '?' : *text, out);
    }
    putc('\'', out);
}

static bool is_svg(const char *path)
{
    const size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".svg") == 0;
}

int picture_open(const char *path, int rows, int columns, struct picture *picture)
{
    char file[PATH_MAX];
    const char *const target = output_target(path, file);

    *picture = (struct picture){0};
    output_file_begin();
    picture->path = strdup(target);
    picture->part = malloc(strlen(target) + sizeof ".part");
    if (!picture->path || !picture->part)
        return picture_close(picture, tool_error("out of memory"));
    sprintf(picture->part, "%s.part", target);

    old_handler = signal(SIGPIPE, SIG_IGN); // if gnuplot ends early, picture_close() reports it
    picture->commands = popen("exec gnuplot >/dev/null 2>&1", "w");
    if (!picture->commands)
        return picture_close(picture, tool_error("%s: %s", path, strerror(errno)));
    FILE *out = picture->commands;
    fprintf(out, "size_x = %d\nsize_y = %d\n", columns * PANEL_WIDTH, rows * PANEL_HEIGHT);
    if (is_svg(path))
        fputs("set terminal svg size size_x,size_y dynamic background '#ffffff'\n", out);
    else
        fputs(
            "if (strstrt(GPVAL_TERMINALS, 'pngcairo')) { set terminal pngcairo size size_x,size_y "
            "font ',10' } else { set terminal png truecolor size size_x,size_y }\n",
            out);
    fputs("set encoding utf8\nset output ", out);
    put_quoted(out, picture->part);
    fprintf(out, "\nset multiplot layout %d,%d\nset tics out nomirror\nset key below samplen 2\n",
            rows, columns);
    return TOOL_OK;
}

static int check_gnuplot(const struct picture *p, int wait_status)
{
    struct stat file;

    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 127)
        return tool_error("%s: pictures are drawn by gnuplot, which is not installed", p->path);
    if (wait_status != 0 || stat(p->part, &file) != 0 || file.st_size == 0)
        return tool_error("%s: gnuplot could not draw it", p->path);
    if (rename(p->part, p->path) != 0)
        return tool_error("%s: %s", p->path, strerror(errno));
    return TOOL_OK;
}

int picture_close(struct picture *picture, int status)
{
    if (picture->commands) {
        fputs("unset multiplot\nset output\nexit\n", picture->commands);
        const int ended = pclose(picture->commands);
        signal(SIGPIPE, old_handler);
        if (status == TOOL_OK)
            status = check_gnuplot(picture, ended);
    }
    if (status != TOOL_OK && picture->part)
        remove(picture->part);
    output_file_end();
    free(picture->path);
    free(picture->part);
    *picture = (struct picture){0};
    return status;
}

// Writes a number as gnuplot reads it; numbers that are not finite become NaN.
static void put_number(FILE *out, double x)
{
    if (isfinite(x))
        fprintf(out, "%.7g ", x);
    else
        fputs("NaN ", out);
}

static void put_labels(FILE *out, const char *title, const char *x_label, const char *y_label)
{
    fputs("set title ", out);
    put_quoted(out, title);
    fputs(" noenhanced\nset xlabel ", out);
    put_quoted(out, x_label);
    fputs(" noenhanced\nset ylabel ", out);
    put_quoted(out, y_label);
    fputs(" noenhanced\n", out);
}

double matrix_max_abs(const struct matrix_view *m)
{
    double max = 0;

    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->columns; j++) {
            const double x = fabs(m->data[i * m->row_step + j * m->column_step]);
            max = x > max && x < 1e30 ? x : max;
        }
    return max;
}

void picture_heatmap(struct picture *picture, const char *title, const char *x_label,
                     const char *y_label, const struct matrix_view *m, double low, double high)
{
    FILE *out = picture->commands;

    // Browsers smooth the image in an SVG file; with several pixels per number they blur only its edges.
    const int64_t longest = m->rows > m->columns ? m->rows : m->columns;
    const int64_t repeat = is_svg(picture->path) ? 1 + 200 / (longest + 1) : 1;

    if (!(high > low))
        high = low + 1;
    fputs("$panel << END_OF_PANEL\n", out);
    for (int64_t i = 0; i < m->rows * repeat; i++) {
        for (int64_t j = 0; j < m->columns * repeat; j++)
            put_number(out, m->data[i / repeat * m->row_step + j / repeat * m->column_step]);
        putc('\n', out);
    }
    fputs("END_OF_PANEL\n", out);
    put_labels(out, title, x_label, y_label);
    if (low < 0)
        fputs("set palette defined (-1 '#2166ac', 0 '#ffffff', 1 '#b2182b')\n", out);
    else
        fputs("set palette defined (0 '#ffffff', 0.5 '#6baed6', 1 '#08306b')\n", out);
    fprintf(out, "set cbrange [%.7g:%.7g]\nset xrange [-0.5:%lld.5]\nset yrange [%lld.5:-0.5]\n",
            low, high, (long long)m->columns - 1, (long long)m->rows - 1);
    fprintf(out,
            "plot $panel matrix using (($1 + 0.5) / %d - 0.5):(($2 + 0.5) / %d - 0.5):3 with image "
            "notitle\n",
            (int)repeat, (int)repeat);
}

void picture_curves(struct picture *picture, const char *title, const char *x_label,
                    const char *y_label, const struct curve *curves, int n)
{
    FILE *out = picture->commands;

    for (int c = 0; c < n; c++) {
        fprintf(out, "$curve%d << END_OF_CURVE\n", c);
        for (int64_t i = 0; i < curves[c].n; i++) {
            put_number(out, curves[c].x ? (double)curves[c].x[i * curves[c].step] : (double)i);
            put_number(out, curves[c].y[i * curves[c].step]);
            putc('\n', out);
        }
        fputs("END_OF_CURVE\n", out);
    }
    put_labels(out, title, x_label, y_label);
    fputs("set autoscale x\nset autoscale y\n", out);
    for (int c = 0; c < n; c++) {
        fprintf(out, "%s$curve%d with %s title ", c ? ", " : "plot ", c,
                curves[c].points   ? "points pointtype 7 pointsize 0.6"
                : curves[c].dashed ? "lines linewidth 2 dashtype 2"
                                   : "lines linewidth 2");
        put_quoted(out, curves[c].title);
        fputs(" noenhanced", out);
    }
    putc('\n', out);
}
