// SPDX-License-Identifier: MIT
//
// Dropout, given the generator's words: element c of a row is word c mod 4 of the row's block c / 4.

#include <math.h>
#include <string.h>

#include "attncl/dropout.h"
#include "attncl/gradient.h"
#include "ref/ref.h"
#include "support/op_spec.h"

// Philox-4x32-10 (Salmon et al. 2011).
void ref_philox(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
        const uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
        const uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1,
                                  (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
        memcpy(c, next, sizeof next);
    }
}

double ref_dropout_factor(const struct ref_dropout *d, int64_t row, int64_t width, int64_t column)
{
    const uint64_t block = (uint64_t)(row * ((width + 3) / 4) + column / 4);
    uint32_t words[4] = {(uint32_t)block, (uint32_t)(block >> 32), d->site, d->step};

    ref_philox(words, (uint32_t)d->seed, (uint32_t)(d->seed >> 32));
    return d->p < 1 && words[column % 4] >= d->p * 4294967296.0 ? 1 / (1 - d->p) : 0;
}

void ref_dropout_fwd(const struct ref_dropout *d, const struct host *x, int64_t position,
                     const struct host *residual, struct host *y)
{
    const int64_t width = x->rank > 0 ? x->dim[x->rank - 1] : 1;

    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t row = position * (x->count / width) + i / width;
        y->data[i] = x->data[i] * ref_dropout_factor(d, row, width, i % width) +
                     (residual ? residual->data[i] : 0);
    }
}

// -- the op

static const double roundings = 1.8e-7; // of the factor, the product and the sum

static struct ref_dropout definition(const void *params, const struct host *step)
{
    const struct dropout_fwd_params *p = params;
    return (struct ref_dropout){p->p, p->seed, (uint32_t)p->site, (uint32_t)(int32_t)step->data[0]};
}

static void dropout(const void *params, struct host *const *in, struct host *const *out)
{
    const struct ref_dropout d = definition(params, in[1]);
    ref_dropout_fwd(&d, in[0], in[2] ? (int64_t)in[2]->data[0] : 0, in[3], out[0]);
}

static void gradients(const void *params, struct host *const *in, struct host *const *dy,
                      struct host *const *dx)
{
    const struct ref_dropout d = definition(params, in[1]);

    ref_dropout_fwd(&d, dy[0], in[2] ? (int64_t)in[2]->data[0] : 0, NULL, dx[0]);
    if (in[3])
        host_set(dx[3], dy[0]->data);
}

static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const double absolute = spec_in(p, 3) ? roundings * host_largest(want) : 0;

    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = roundings * fabs(want->data[i]) + absolute;
}

#define DROP(...) SPEC_PARAMS(dropout_fwd, __VA_ARGS__)
static const struct dropout_fwd_params some = {.p = 0.3, .seed = 0x0123456789abcdefu, .site = 7};
attncl_dropout_desc spec_dropout(const struct dropout_fwd_params *p, attncl_value step)
{
    attncl_dropout_desc desc = ATTNCL_DROPOUT_DESC_INIT;

    desc.p = p->p;
    desc.seed = p->seed;
    desc.site = (uint32_t)p->site;
    desc.step = step;
    return desc;
}

static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    attncl_dropout_desc desc = spec_dropout(params, in[1]);

    desc.position = in[2];
    desc.residual = in[3];
    out[0] = attncl_dropout(g, in[0], &desc);
}

OP_SPEC(dropout_fwd,
        .in = "x f32 R*; step i32:-2147483648:2147483647; position? i32:0:70000000 1; "
              "residual? f32 R*",
        .out = "y f32 R*", .ref = dropout, .build = build, .grad = "x residual",
        .ref_bwd = gradients, .grad_tolerance = 2e-7, .allow = allow,
        .smoke = "R=-,1,3x2x2,3x2x3,5x64,3x5,7x6,3x1031,9x1028", .gpu = "R=4096x63,4096x1024",
        .full = "R=300x65", .data = INT_ENDS,
        .cases = {{"plain", &some},
                  {"residual", &some, "residual f32 R*"},
                  {"position", DROP(.p = 0.5, .seed = 3, .site = 0xffffffff),
                   "position i32:0:70000000 1", .smoke = "R=3x10,7x64"},
                  {"position, residual", DROP(.p = 0.5, .seed = 3),
                   "position i32:0:70000000 1; residual f32 R*", .smoke = "R=3x10"},
                  {"p = 0", DROP(.p = 0, .seed = 11, .site = 1), .smoke = "R=20x36"},
                  {"p = 1", DROP(.p = 1, .seed = 11, .site = 1), .smoke = "R=20x36"},
                  {"p = 1e-9", DROP(.p = 1e-9, .seed = 11, .site = 1), .smoke = "R=20x36"},
                  {"p = 0.999999", DROP(.p = 0.999999, .seed = 11), .smoke = "R=20x36"},
                  {"p = 1 - 1e-12", DROP(.p = 1 - 1e-12, .seed = 11), .smoke = "R=20x36"}},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "p is -0.1", DROP(.p = -0.1)},
                     {ATTNCL_ERR_ARGUMENT, "site is -1", DROP(.p = 0.5, .site = -1)},
                     {ATTNCL_ERR_ARGUMENT, "batch is axis 1 of x [2, 3]", DROP(0.5, 0, 0, 1, 0, 9),
                      .sizes = "R=2x3"},
                     {ATTNCL_ERR_ARGUMENT, "2 entries from 3 on of a batch of 4",
                      DROP(0.5, 0, 0, 0, 3, 4), .sizes = "R=2x3"},
                     {ATTNCL_ERR_SHAPE, "step", .with = "step i32 1"}});
