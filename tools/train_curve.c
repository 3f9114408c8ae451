// SPDX-License-Identifier: MIT
//
// Draws RUN/curve.svg: losses and learning rate over the steps, from the log.

#include <stdlib.h>

#include "picture.h"
#include "train.h"

enum { MAX_POINTS = 1000, N_CURVES = 3 };
enum curve_of { OF_LOSS, OF_VALID_LOSS, OF_RATE };

struct points {
    float (*at)[2]; // x, y
    int64_t n, capacity;
};

static const char *const keys[N_CURVES] = {"loss", "valid_loss", "learning_rate"};

static bool add_point(struct points *p, double x, double y)
{
    if (p->n == p->capacity) {
        const int64_t capacity = p->capacity ? 2 * p->capacity : 256;
        void *grown = realloc(p->at, (size_t)capacity * sizeof *p->at);
        if (!grown)
            return false;
        p->at = grown;
        p->capacity = capacity;
    }
    p->at[p->n][0] = (float)x;
    p->at[p->n++][1] = (float)y;
    return true;
}

// Replaces runs of points by their means, so that at most MAX_POINTS are left.
static void thin_out(struct points *p)
{
    const int64_t each = (p->n + MAX_POINTS - 1) / MAX_POINTS;
    int64_t n = 0;

    for (int64_t i = 0; i < p->n; n++) {
        const int64_t end = i + each < p->n ? i + each : p->n, count = end - i;
        double sum[2] = {0, 0};
        for (; i < end; i++)
            for (int k = 0; k < 2; k++)
                sum[k] += (double)p->at[i][k];
        for (int k = 0; k < 2; k++)
            p->at[n][k] = (float)(sum[k] / (double)count);
    }
    p->n = n;
}

static struct curve curve_through(const struct points *p, const char *title)
{
    struct curve curve = {
        .x = p->at[0], .y = p->at[0] + 1, .n = p->n, .step = 2, .points = p->n == 1};

    snprintf(curve.title, sizeof curve.title, "%s", title);
    return curve;
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
    if (points[OF_LOSS].n + points[OF_VALID_LOSS].n == 0 || points[OF_RATE].n == 0)
        return TOOL_OK; // nothing to draw
    if (points[OF_LOSS].n > 0)
        losses[n++] = curve_through(&points[OF_LOSS], "training");
    if (points[OF_VALID_LOSS].n > 0)
        losses[n++] = curve_through(&points[OF_VALID_LOSS], "held out");
    const struct curve rate = curve_through(&points[OF_RATE], "learning rate");
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
    for (int i = 0; i < N_CURVES; i++)
        free(points[i].at);
    return status;
}
