// SPDX-License-Identifier: MIT
//
// RUN/curve.svg: losses and learning rate over the steps, from the log.

#include <stdlib.h>
#include <string.h>

#include "picture.h"
#include "train.h"

enum { MAX_POINTS = 1000, N_CURVES = 3 };
enum curve_of { OF_LOSS, OF_VALID_LOSS, OF_RATE };

// Points, of which many steps become one: their mean.
struct points {
    float *x, *y;
    int64_t n, capacity;
};

static const char *const keys[N_CURVES] = {"loss", "valid_loss", "learning_rate"};

static bool add_point(struct points *p, double x, double y)
{
    if (p->n == p->capacity) {
        const int64_t capacity = p->capacity ? 2 * p->capacity : 256;
        float *grown_x = realloc(p->x, (size_t)capacity * sizeof *p->x);
        if (grown_x)
            p->x = grown_x;
        float *grown_y = realloc(p->y, (size_t)capacity * sizeof *p->y);
        if (grown_y)
            p->y = grown_y;
        if (!grown_x || !grown_y)
            return false;
        p->capacity = capacity;
    }
    p->x[p->n] = (float)x;
    p->y[p->n++] = (float)y;
    return true;
}

static void thin_out(struct points *p)
{
    const int64_t each = (p->n + MAX_POINTS - 1) / MAX_POINTS;
    int64_t n = 0;

    for (int64_t i = 0; i < p->n; n++) {
        const int64_t end = i + each < p->n ? i + each : p->n, count = end - i;
        double x = 0, y = 0;
        for (; i < end; i++) {
            x += (double)p->x[i];
            y += (double)p->y[i];
        }
        p->x[n] = (float)(x / (double)count);
        p->y[n] = (float)(y / (double)count);
    }
    p->n = n;
}

static bool read_log(FILE *log, struct points points[N_CURVES])
{
    json_t *line;
    bool ok = true;

    while (ok && (line = json_loadf(log, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        const double step = json_number_value(json_object_get(line, "step"));
        for (int i = 0; i < N_CURVES && ok; i++) {
            const json_t *value = json_object_get(line, keys[i]);
            if (value)
                ok = add_point(&points[i], step, json_number_value(value));
        }
        json_decref(line);
    }
    return ok;
}

static int draw(const char *path, struct points points[N_CURVES])
{
    struct curve losses[2];
    struct picture picture;
    int n = 0;

    for (int i = 0; i < N_CURVES; i++)
        thin_out(&points[i]);
    for (int i = OF_LOSS; i <= OF_VALID_LOSS; i++) {
        if (points[i].n == 0)
            continue;
        losses[n] = (struct curve){.x = points[i].x,
                                   .y = points[i].y,
                                   .n = points[i].n,
                                   .step = 1,
                                   .points = points[i].n == 1};
        strcpy(losses[n++].title, i == OF_LOSS ? "training" : "held out");
    }
    const struct curve rate = {.title = "learning rate",
                               .x = points[OF_RATE].x,
                               .y = points[OF_RATE].y,
                               .n = points[OF_RATE].n,
                               .step = 1,
                               .points = points[OF_RATE].n == 1};
    if (n == 0 || rate.n == 0)
        return TOOL_OK; // nothing to draw
    const int status = picture_open(path, 1, 2, &picture);
    if (status != TOOL_OK)
        return status;
    picture_curves(&picture, "loss", "step", "nats", losses, n);
    picture_curves(&picture, "learning rate", "step", "", &rate, 1);
    return picture_close(&picture, status);
}

int run_draw_curve(const struct run_directory *run)
{
    struct points points[N_CURVES] = {{0}};
    FILE *log = fopen(IN_RUN(run, "log.jsonl"), "r");
    int status = TOOL_OK;

    if (log && read_log(log, points))
        status = draw(IN_RUN(run, "curve.svg"), points);
    else
        status = tool_error("%s: cannot be read", IN_RUN(run, "log.jsonl"));
    if (log)
        fclose(log);
    for (int i = 0; i < N_CURVES; i++) {
        free(points[i].x);
        free(points[i].y);
    }
    return status;
}
