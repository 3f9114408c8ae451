// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/kinds.h"
#include "attncl/recurrent.h"
#include "ref/layers.h"
#include "ref/ref.h"
#include "support/op_spec.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

// r, z = sigmoid(xi + hh),  n = tanh(xi_n + r hh_n),  h' = (1 - z) n + z h,  hh = W_hh h + b_hh;
// plain units: h' = f(xi + hh)
static void step(int plain, const double *xi, const struct host *weight, const struct host *bias,
                 const double *h, double *y)
{
    const int64_t width = weight->dim[1];

    for (int64_t c = 0; c < width; ++c) {
        double gate[3] = {0};
        for (int i = 0; i < (plain ? 1 : 3); ++i) {
            const int64_t row = i * width + c;
            double hh = bias->data[row];
            for (int64_t k = 0; h && k < width; ++k)
                hh += weight->data[row * width + k] * h[k];
            if (plain)
                y[c] = plain == ATTNCL_TANH ? tanh(xi[row] + hh)
                       : xi[row] + hh < 0   ? 0
                                            : xi[row] + hh;
            else
                gate[i] = i < 2 ? sigmoid(xi[row] + hh) : tanh(xi[row] + gate[0] * hh);
        }
        if (!plain)
            y[c] = (1 - gate[1]) * gate[2] + gate[1] * (h ? h[c] : 0);
    }
}

// lens NULL: all steps; else masked is y with zeros from its entry's length on, where the state stays.
void ref_gru_fwd(const struct host *xi, const struct host *weight, const struct host *bias,
                 const struct host *h0, const struct host *lens, const struct gru_fwd_params *p,
                 struct host *y, struct host *masked)
{
    const bool time_first = p->layout == ATTNCL_LAYOUT_TIME_FIRST;
    const int64_t width = weight->dim[1], n_steps = y->dim[!time_first], batch = y->dim[time_first];

    for (int64_t b = 0; b < batch; ++b) {
        const double *h = h0 ? h0->data + b * width : NULL;
        for (int64_t i = 0; i < n_steps; ++i) {
            const int64_t t = p->reversed ? n_steps - 1 - i : i;
            const int64_t row = time_first ? t * batch + b : b * n_steps + t;
            if (!lens || (double)t < lens->data[b])
                step(p->plain, xi->data + row * weight->dim[0], weight, bias, h,
                     y->data + row * width);
            else
                for (int64_t c = 0; c < width; ++c)
                    y->data[row * width + c] = h ? h[c] : 0;
            h = y->data + row * width;
            for (int64_t c = 0; masked && c < width; ++c)
                masked->data[row * width + c] = (double)t < lens->data[b] ? h[c] : 0;
        }
    }
}

// -- the op

enum { XI, WEIGHT, BIAS, H0, LENS };

static void gru(const void *params, struct host *const *in, struct host *const *out)
{
    ref_gru_fwd(in[XI], in[WEIGHT], in[BIAS], in[H0], in[LENS], params, out[0],
                in[LENS] ? out[2] : NULL);
}

static void gru_bwd(const void *params, struct host *const *in, struct host *const *dy,
                    struct host *const *dx)
{
    struct host *y = host_like(dy[0]), *before = host_like(y), *dhh = host_like(in[XI]);

    ref_gru_fwd(in[XI], in[WEIGHT], in[BIAS], in[H0], in[LENS], params, y, NULL);
    ref_gru_bwd(in[XI], in[WEIGHT], in[BIAS], in[H0], in[LENS], params, y, dy[0],
                in[LENS] ? dy[2] : NULL, dx[XI], dhh, before, dx[H0]);
    ref_linear_bwd_weight(dhh, before, dx[WEIGHT]);
    ref_linear_bwd_bias(dhh, dx[BIAS]);
}

// A gate's argument: H products of a state within [-1, 1] (that of h0 aside) by weights of about 1 / sqrt(H), H + 2 roundings
// of at most its size; sigmoid and tanh have slopes of at most 1.  The error of a step passes to the next with weights whose
// rows sum to at most sqrt(H) or so: with updates that halve it, some 4 steps' worth remains.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] =
            16 * (spec_extent(p, 'H') + 20) * 0x1p-24 + 16 * 0x1p-24 * fabs(want->data[i]);
}

static void scale_weight(struct host *const *in)
{
    host_scale(in[WEIGHT], 0.5 / (1 + (double)in[WEIGHT]->dim[1] / 16));
}

// Gates are 0 or 1: the state stays, or is +-1.
static void set_extremes(struct host *const *in)
{
    scale_weight(in);
    host_scale(in[XI], 1e4);
    host_scale(in[H0], 1e4);
}

static void set_limits(struct host *const *in)
{
    scale_weight(in);
    for (int64_t i = 0; i < in[XI]->count; ++i)
        in[XI]->data[i] = i % 3 ? 3e38f : -3e38f;
}

#define FORM(layout_, reversed_, plain_)                                                           \
    SPEC_PARAMS(gru_fwd, .layout = (layout_), .reversed = (reversed_), .plain = (plain_))
#define TIME                  FORM(ATTNCL_LAYOUT_TIME_FIRST, false, 0)
#define BATCH                 FORM(ATTNCL_LAYOUT_BATCH_FIRST, false, 0)
#define REVERSED(layout)      FORM(layout, true, 0)
#define PLAIN(kind, reversed) FORM(ATTNCL_LAYOUT_TIME_FIRST, reversed, kind)
#define FROM_STATE            "h0 f32 B H"
#define BATCH_FIRST           "xi f32 B T X; y f32 B T H;"
#define WITH_LENS             "lens i32:-1:T+2 B; masked f32 T B H;"
#define WITH_LENS_BATCH_FIRST "lens i32:-1:T+2 B; masked f32 B T H;"
#define CASE(name_, ...)                                                                           \
    {                                                                                              \
        name_, __VA_ARGS__, .prepare = scale_weight                                                \
    }
static const char some[] = "T=3 B=2 X=60 H=20";
// Plain units: the gates' axis is the state's.
#define OF_PLAIN                                                                                   \
    .smoke = "T=4 B=3 X=3 H=3; T=1 B=1 X=1 H=1; T=5 B=3 X=21 H=21", .full = "T=2 B=9 X=64 H=64",   \
    .special = "T=4 B=2 X=3 H=3", .gpu = "T=4 B=8 X=256 H=256"
OP_SPEC(
    gru_fwd,
    .in = "xi f32 T B X; weight_hh f32 X H; bias_hh f32 X; h0? f32 B H; "
          "lens? i32:-1:T+2 B",
    .out = "y f32 T B H; gates? f32 T B X; masked? f32 T B H", .ref = gru,
    .grad = "xi weight_hh bias_hh h0", .ref_bwd = gru_bwd, .allow = allow, .leeway = MEETS,
    .nonzero = "XH",
    .smoke =
        "T=4 B=3 X=9 H=3; T=1 B=1 X=3 H=1; T=5 B=3 X=21 H=7; T=3 B=2 X=48 H=16; T=4 B=5 X=99 H=33",
    .gpu = "T=64 B=8 X=768 H=256", .full = "T=2 B=9 X=192 H=64; T=2 B=1 X=900 H=300",
    .special = "T=4 B=2 X=9 H=3",
    .cases = {CASE("time first", TIME),
              CASE("from a state", TIME, FROM_STATE),
              CASE("batch first", BATCH, BATCH_FIRST),
              CASE("batch first, from a state", BATCH, BATCH_FIRST FROM_STATE),
              CASE("reversed", REVERSED(ATTNCL_LAYOUT_TIME_FIRST), .gpu = ""),
              CASE("reversed, batch first, from a state", REVERSED(ATTNCL_LAYOUT_BATCH_FIRST),
                   BATCH_FIRST FROM_STATE, .gpu = ""),
              CASE("lengths", TIME, WITH_LENS, .gpu = ""),
              CASE("lengths, reversed, from a state", REVERSED(ATTNCL_LAYOUT_TIME_FIRST),
                   WITH_LENS FROM_STATE, .gpu = ""),
              CASE("lengths, reversed, batch first", REVERSED(ATTNCL_LAYOUT_BATCH_FIRST),
                   WITH_LENS_BATCH_FIRST BATCH_FIRST, .gpu = ""),
              CASE("tanh", PLAIN(ATTNCL_TANH, false), FROM_STATE, OF_PLAIN),
              CASE("relu, reversed", PLAIN(ATTNCL_RELU, true), OF_PLAIN),
              {"extremes", TIME, FROM_STATE, .grad = "", .smoke = some, .special = "",
               .prepare = set_extremes},
              {"limits", TIME, .grad = "", .smoke = some, .special = "", .prepare = set_limits}},
    .refusals = {
        {ATTNCL_ERR_ARGUMENT, "layout 7", FORM(7, false, 0)},
        {ATTNCL_ERR_ARGUMENT, "activation 3 of recurrent units, must be tanh or relu",
         PLAIN(ATTNCL_SIGMOID, false)},
        {ATTNCL_ERR_UNSUPPORTED, "plain units take no lens", PLAIN(ATTNCL_TANH, false),
         "xi f32 T B H; weight_hh f32 H H; bias_hh f32 H;" WITH_LENS},
        {ATTNCL_ERR_SHAPE, "lens, expected 3 entries", TIME, "lens i32:0:1 B+B"},
        {ATTNCL_ERR_SHAPE, "weight_hh is [9, 3], must be [H, H]", PLAIN(ATTNCL_TANH, false)}});

// The layer as users call it, with the map of its input.
enum { LAYER_X, WEIGHT_IH, BIAS_IH, WEIGHT_HH, BIAS_HH, LAYER_H0, LAYER_LENS };

static void layer(const void *params, struct host *const *in, struct host *const *out)
{
    struct host *xi =
        host_new(ATTNCL_F32, DIMS(in[LAYER_X]->dim[0], in[LAYER_X]->dim[1], in[WEIGHT_IH]->dim[0]));

    ref_dense(in[LAYER_X], in[WEIGHT_IH], in[BIAS_IH], xi);
    if (in[LAYER_LENS])
        ref_gru_fwd(xi, in[WEIGHT_HH], in[BIAS_HH], in[LAYER_H0], in[LAYER_LENS], params,
                    host_like(out[0]), out[0]);
    else
        ref_gru_fwd(xi, in[WEIGHT_HH], in[BIAS_HH], in[LAYER_H0], NULL, params, out[0], NULL);
}

static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    const struct gru_fwd_params *const gru_params = params;
    const attncl_gru_params p = {sizeof p,
                                 in[WEIGHT_IH],
                                 in[BIAS_IH],
                                 in[WEIGHT_HH],
                                 in[BIAS_HH],
                                 NULL,
                                 (attncl_activation)gru_params->plain,
                                 gru_params->reversed,
                                 in[LAYER_LENS]};

    out[0] = attncl_gru(g, &p, in[LAYER_X], in[LAYER_H0], (attncl_layout)gru_params->layout, NULL);
}

// Terms of some units in size, summed within gates; states below 1.
OP_SPEC(gru,
        .in = "x f32 T B I; weight_ih f32+ H+H+H I; bias_ih f32 H+H+H; weight_hh f32 H+H+H H; "
              "bias_hh f32 H+H+H; h0? f32 B H; lens? i32:-1:T+2 B",
        .out = "y f32 T B H", .ref = layer, .build = build,
        .grad = "x weight_ih bias_ih weight_hh bias_hh h0", .rel = 40, .tiny = 40 * 0x1p-24,
        .grad_tolerance = 3e-5, .smoke = "T=3 B=2 I=5 H=7",
        .cases = {{"time first", TIME},
                  {"batch first, from a state", BATCH, "x f32 B T I; y f32 B T H; h0 f32 B H"},
                  {"lengths, reversed", REVERSED(ATTNCL_LAYOUT_TIME_FIRST), "lens i32:0:2 B"},
                  {"tanh, reversed", PLAIN(ATTNCL_TANH, true),
                   "weight_ih f32+ H I; bias_ih f32 H; weight_hh f32 H H; bias_hh f32 H"}});
