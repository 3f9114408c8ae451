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
    else if (strcmp(s->layer, "llama") == 0)
        snprintf(text, 512,
                 "{\"layer\": \"transformer\", \"n_vocab\": %d, \"d_model\": %d, \"n_layers\": %d, "
                 "\"heads\": %d, \"n_kv_heads\": %d, \"d_ff\": %d, \"activation\": \"silu\", "
                 "\"is_gated\": true, \"norm\": \"rms\", \"pos\": \"no_pos\", \"rope\": true, "
                 "\"embed_scale\": 1, \"generator_bias\": false, \"bias\": false, "
                 "\"value_bias\": false, \"output_bias\": false, \"bias1\": false, "
                 "\"bias2\": false, \"bias_gate\": false}",
                 v, c, n, (int)s->heads, (int)s->heads / LLAMA_SHARED_BY, f);
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

// The type in which the model's file stores an array.
static attncl_dtype stored_type(const struct case_data *t, const struct case_array *a)
{
    const attncl_dtype weights = t->c->sizes.weights;
    const bool in_blocks = weights == ATTNCL_Q8 || weights == ATTNCL_Q4;

    return weights == ATTNCL_DTYPE_NONE || a->dtype != ATTNCL_F32 || a->rank != 2 ||
                   (in_blocks && !strstr(a->name, "weight"))
               ? a->dtype
               : weights;
}

// A matrix as the file stores it, allocated; NULL if there is no memory or its numbers cannot be quantised.
static void *stored(const struct case_array *a, attncl_dtype type, size_t *bytes_ret)
{
    const size_t bytes = type == ATTNCL_F16 ? (size_t)a->count * sizeof(uint16_t)
                                            : attncl_quantised_bytes(type, a->dim[0], a->dim[1]);
    void *to = attncl__alloc(bytes);

    *bytes_ret = bytes;
    for (int64_t k = 0; to && type == ATTNCL_F16 && k < a->count; ++k)
        ((uint16_t *)to)[k] = to_half(((const float *)a->data)[k]);
    if (!to || type == ATTNCL_F16 ||
        attncl_quantise(type, a->dim[0], a->dim[1], a->data, to) == ATTNCL_OK)
        return to;
    attncl__free(to);
    return NULL;
}

// Gives an array the values that a reader of the file gets.
static attncl_status round_array(const struct case_array *a, attncl_dtype type)
{
    size_t bytes;
    void *as_stored = stored(a, type, &bytes);
    attncl_status status = ATTNCL_OK;

    REQUIRE(as_stored, ATTNCL_ERR_NO_MEMORY, "%s: %s", a->name, attncl_last_error());
    for (int64_t k = 0; type == ATTNCL_F16 && k < a->count; ++k)
        ((float *)a->data)[k] = attncl__half_to_float(((const uint16_t *)as_stored)[k]);
    if (type != ATTNCL_F16)
        status = attncl_dequantise(type, a->dim[0], a->dim[1], as_stored, a->data);
    attncl__free(as_stored);
    return status;
}

attncl_status lm_parameters(struct case_data *t)
{
    attncl_description *d = NULL;
    attncl_status status = ATTNCL_OK;
    char config[512];

    config_text(&t->c->sizes, config);
    TRY(attncl_description_create(arch_of(&t->c->sizes), config, 0, &d));
    for (size_t i = 0; i < attncl_description_count(d); ++i) {
        const attncl_entry *e = attncl_description_at(d, i);
        if (e->kind != ATTNCL_ENTRY_PARAMETER || e->optional)
            continue;
        const struct case_array *a = case_array_add(t, e->name, spread_of(e), e->rank, e->dim);
        if (a && stored_type(t, a) != a->dtype)
            TRY_DONE(round_array(a, stored_type(t, a)));
    }
    status = t->status;
done:
    attncl_description_destroy(d);
    return status;
}

// A model's arrays as its file stores them.
struct model_file {
    attncl_array arrays[MAX_CASE_ARRAYS];
    void *owned[MAX_CASE_ARRAYS];
    size_t n;
};

static attncl_status add_array(struct model_file *f, const struct case_array *a, attncl_dtype type)
{
    attncl_array *to = &f->arrays[f->n];

    *to = (attncl_array){.name = a->name,
                         .dtype = a->dtype,
                         .rank = a->rank,
                         .data = a->data,
                         .bytes = case_array_bytes(a)};
    memcpy(to->dim, a->dim, sizeof a->dim);
    if (type != a->dtype) {
        f->owned[f->n] = stored(a, type, &to->bytes);
        REQUIRE(f->owned[f->n], ATTNCL_ERR_NO_MEMORY, "%s: %s", a->name, attncl_last_error());
        to->data = f->owned[f->n];
        to->dtype = type;
    }
    ++f->n;
    return ATTNCL_OK;
}

static attncl_status write_model(const struct case_data *t, const char *path)
{
    struct model_file *f = attncl__alloc_zero(sizeof *f);
    attncl_status status = ATTNCL_OK;
    char config[512];
    const char *const metadata[] = {"attncl.arch", arch_of(&t->c->sizes), "attncl.config", config,
                                    NULL};

    REQUIRE(f, ATTNCL_ERR_NO_MEMORY, "a model's file");
    config_text(&t->c->sizes, config);
    // The results, from "y" on, come after the weights.
    for (int i = 0; i < t->n_arrays && strcmp(t->arrays[i].name, "y") != 0; ++i)
        TRY_DONE(add_array(f, &t->arrays[i], stored_type(t, &t->arrays[i])));
    status = attncl_safetensors_write(path, f->arrays, f->n, metadata);

done:
    for (size_t i = 0; i < MAX_CASE_ARRAYS; ++i)
        attncl__free(f->owned[i]);
    attncl__free(f);
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
