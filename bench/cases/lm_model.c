// SPDX-License-Identifier: MIT

#include "cases/define.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/try.h"

static const char *arch_of(const struct sizes *s)
{
    return strcmp(s->layer, "seq2seq") == 0 ? "seq2seq_bahdanau" : "lm";
}

// Keys that a layer of language models does not know are ignored.
static void config_text(const struct sizes *s, char text[512])
{
    const int c = (int)s->C, f = (int)s->F, n = (int)s->layers, t = (int)s->T, v = (int)s->V;

    if (strcmp(s->layer, "seq2seq") == 0)
        snprintf(text, 512,
                 "{\"src_vocab_size\": %d, \"tgt_vocab_size\": %d, \"embed_size\": %d, "
                 "\"num_hiddens\": %d, \"num_layers\": %d}",
                 v, v, (int)s->E, c, n);
    else if (strcmp(s->layer, "gpt2") == 0)
        snprintf(text, 512,
                 "{\"layer\": \"transformer\", \"n_vocab\": %d, \"d_model\": %d, \"n_layers\": %d, "
                 "\"heads\": %d, \"d_ff\": %d, \"max_len\": %d, \"pos\": \"learned_pos\", "
                 "\"embed_scale\": 1, \"activation\": \"gelu_tanh\", \"tie_generator\": true, "
                 "\"generator_bias\": false}",
                 v, c, n, (int)s->heads, f, (int)s->N);
    else
        snprintf(text, 512,
                 "{\"layer\": \"%s\", \"n_vocab\": %d, \"d_model\": %d, \"n_layers\": %d, "
                 "\"seq_len\": %d, \"local_window_size\": %d, \"window_size\": %d, \"heads\": %d, "
                 "\"P\": %d, \"d_ff\": %d, \"d_ffn\": %d}",
                 s->layer, v, c, n, t, (int)s->window, (int)s->window, (int)s->heads, t, f, f);
}

// Of a parameter's values; the rule of bench/baselines/torch_baselines/registry.py.
static double spread_of(const attncl_entry *e)
{
    const char *end = strrchr(e->name, '.');

    if (strstr(e->name, "sgu.weight"))
        return 0.1;
    if (end && strcmp(end, ".bias") == 0)
        return strstr(e->name, "sgu.bias") ? 1 : 0.5;
    return e->rank == 2 && strstr(e->name, "weight") && strcmp(e->name, "src_embed.weight") != 0
               ? sqrt(3.0 / (double)e->dim[1])
               : 1;
}

// The nearest F16 of |x| < 2^15, ties to even.
static uint16_t to_half(float x)
{
    int exponent;
    const double fraction = frexp(fabs((double)x), &exponent); // in [0.5, 1)
    const unsigned sign = signbit(x) ? 0x8000 : 0;

    if (x == 0 || exponent < -13) // a multiple of 2^-24
        return (uint16_t)(sign | (unsigned)nearbyint(ldexp(fabs((double)x), 24)));
    return (uint16_t)(sign + ((unsigned)(exponent + 13) << 10) +
                      (unsigned)nearbyint(ldexp(fraction, 11)));
}

static bool is_half(const struct case_data *t, const struct case_array *a)
{
    return t->c->sizes.half && a->dtype == ATTNCL_F32 && a->rank == 2;
}

attncl_status lm_parameters(struct case_data *t)
{
    attncl_description *d = NULL;
    char config[512];

    config_text(&t->c->sizes, config);
    TRY(attncl_description_create(arch_of(&t->c->sizes), config, 0, &d));
    for (size_t i = 0; i < attncl_description_count(d); ++i) {
        const attncl_entry *e = attncl_description_at(d, i);
        if (e->kind != ATTNCL_ENTRY_PARAMETER || e->optional)
            continue;
        const struct case_array *a = case_array_add(t, e->name, spread_of(e), e->rank, e->dim);
        for (int64_t k = 0; a && is_half(t, a) && k < a->count; ++k)
            ((float *)a->data)[k] = attncl__half_to_float(to_half(((float *)a->data)[k]));
    }
    attncl_description_destroy(d);
    return t->status;
}

static attncl_status write_model(const struct case_data *t, const char *path)
{
    attncl_array arrays[MAX_CASE_ARRAYS] = {0};
    char config[512];
    const char *const metadata[] = {"attncl.arch", arch_of(&t->c->sizes), "attncl.config", config,
                                    NULL};
    uint16_t *halves[MAX_CASE_ARRAYS] = {0};
    attncl_status status = ATTNCL_OK;
    size_t n = 0;

    config_text(&t->c->sizes, config);
    for (int i = 0; i < t->n_arrays; ++i) {
        const struct case_array *a = &t->arrays[i];
        if (strcmp(a->name, "y") == 0) // after the weights
            break;
        arrays[n] = (attncl_array){.name = a->name,
                                   .dtype = a->dtype,
                                   .rank = a->rank,
                                   .data = a->data,
                                   .bytes = case_array_bytes(a)};
        memcpy(arrays[n].dim, a->dim, sizeof a->dim);
        if (is_half(t, a)) {
            halves[n] = attncl__alloc_array((size_t)a->count, sizeof *halves[n]);
            if (!halves[n])
                TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%s in F16", a->name));
            for (int64_t k = 0; k < a->count; ++k)
                halves[n][k] = to_half(((const float *)a->data)[k]);
            arrays[n].dtype = ATTNCL_F16;
            arrays[n].data = halves[n];
            arrays[n].bytes /= 2;
        }
        ++n;
    }
    status = attncl_safetensors_write(path, arrays, n, metadata);

done:
    for (size_t i = 0; i <= n && i < MAX_CASE_ARRAYS; ++i)
        attncl__free(halves[i]);
    return status;
}

attncl_status lm_write(const struct case_data *t, char path[LM_PATH_BYTES])
{
    const char *directory = getenv("TMPDIR");

    snprintf(path, LM_PATH_BYTES, "%s/attncl-bench-XXXXXX",
             directory && directory[0] ? directory : "/tmp");
    const int fd = mkstemp(path);
    REQUIRE(fd >= 0, ATTNCL_ERR_IO, "%s cannot be created", path);
    close(fd);
    const attncl_status status = write_model(t, path);
    if (status != ATTNCL_OK)
        unlink(path);
    return status;
}
