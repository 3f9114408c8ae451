// SPDX-License-Identifier: MIT
//
// Decoding token by token: one compiled step graph serves every position, which it reads from device
// memory.  decoder_prefill.c takes prompts at once, decoder_sample.c draws the next tokens,
// decoder_crop.c handles texts longer than a window, decoder_slots.c a position per sequence.

#include <inttypes.h>
#include <string.h>

#include "base/struct.h"
#include "model/decoder.h"

// split: a text that becomes longer moves to another decoder; 0: none does.
static attncl_status create(attncl_model *model, int64_t batch, int64_t limit, int64_t split,
                            int64_t capacity, const attncl_decoder_options *o,
                            attncl_decoder **decoder_ret)
{
    const int64_t window = split ? split : o->window, end = split ? split : limit;
    const bool grows = model->arch->has_kv_cache(model->settings) && capacity < end;
    attncl_status status = ATTNCL_OK;
    attncl_decoder *decoder = attncl__alloc_zero(sizeof *decoder);
    REQUIRE(decoder, ATTNCL_ERR_NO_MEMORY, "decoder");
    *decoder = (attncl_decoder){
        .model = model,
        .step = attncl__alloc_array(2 * (size_t)batch, sizeof *decoder->step),
        .batch = batch,
        .vocabulary = model->arch->vocabulary(model->settings),
        .limit = end,
        .reach = o->window ? 0 : limit,
        .capacity = grows ? capacity : end,
        .long_limit = split ? limit : 0,
        .state_dtype = o->state_dtype,
    };
    if (!decoder->step)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%" PRId64 " tokens", batch));
    TRY_DONE(attncl__decoder_open(decoder, o->slot_limit ? DECODE_SLOTS : DECODE_STEP, 0,
                                  &decoder->graph));
    if (o->slot_limit)
        TRY_DONE(attncl__decoder_slots_init(decoder));
    if (window)
        TRY_DONE(attncl__decoder_crop_init(decoder, window));
    *decoder_ret = decoder;
    decoder = NULL; // ownership has passed to the caller

done:
    attncl_decoder_destroy(decoder);
    return status;
}

// The longest text with the short factors of longrope; 0: texts of all lengths turn alike.
static int64_t find_short_length(const attncl_model *model)
{
    const struct key *const keys = model->arch->keys, *found;
    const int *scaling = attncl__config_value(keys, model->settings, "rope_scaling", &found);
    if (!scaling || *scaling != ATTNCL_ROTARY_LONGROPE)
        return 0;
    return *(const int64_t *)attncl__config_value(keys, model->settings,
                                                  "rope_original_max_position_embeddings", &found);
}

attncl_status attncl__decoder_create_for(attncl_model *model, int64_t batch, int64_t n_positions,
                                         int64_t capacity, const attncl_decoder_options *o,
                                         attncl_decoder **decoder_ret)
{
    REQUIRE(model && decoder_ret, ATTNCL_ERR_ARGUMENT, "model or decoder_ret is NULL");
    REQUIRE(model->arch->build_decoding, ATTNCL_ERR_UNSUPPORTED, "arch %s is no language model",
            model->arch_name);
    REQUIRE(batch >= 1 && batch <= INT32_MAX, ATTNCL_ERR_ARGUMENT,
            "batch is %" PRId64 ", must be at least 1", batch);
    const int64_t limit = n_positions > 0 ? n_positions : model->arch->limit(model->settings);
    const int64_t split = o->slot_limit ? 0 : find_short_length(model);
    return create(model, batch, limit, split < limit ? split : 0, capacity, o, decoder_ret);
}

static attncl_status check_lengths(const attncl_model *model, const attncl_decoder_options *o)
{
    const int64_t limit = attncl_model_decoder_limit(model), max = limit > 0 ? limit : INT32_MAX;

    REQUIRE(o->window >= 0 && o->window <= max, ATTNCL_ERR_ARGUMENT,
            "window is %" PRId64 ", allowed are 0 to %" PRId64, o->window, max);
    REQUIRE(o->slot_limit >= 0 && o->slot_limit <= max, ATTNCL_ERR_ARGUMENT,
            "slot_limit is %" PRId64 ", allowed are 0 to %" PRId64, o->slot_limit, max);
    REQUIRE(o->window == 0 || o->slot_limit == 0, ATTNCL_ERR_ARGUMENT,
            "window is %" PRId64 " and slot_limit is %" PRId64 ": slots have no window", o->window,
            o->slot_limit);
    return ATTNCL_OK;
}

attncl_status attncl_decoder_create(attncl_model *model, int64_t batch,
                                    const attncl_decoder_options *options,
                                    attncl_decoder **decoder_ret)
{
    enum { FIRST_CAPACITY = 1024 }; // a model may allow more than the device has memory for
    attncl_decoder_options o = ATTNCL_DECODER_OPTIONS_INIT;

    REQUIRE(decoder_ret, ATTNCL_ERR_ARGUMENT, "decoder_ret is NULL");
    if (options)
        TRY(STRUCT_READ(attncl_decoder_options, &o, options));
    if (o.state_dtype == ATTNCL_DTYPE_NONE)
        o.state_dtype = ATTNCL_F32;
    REQUIRE(o.state_dtype == ATTNCL_F32 || o.state_dtype == ATTNCL_Q8 ||
                attncl__is_16_bit(o.state_dtype),
            ATTNCL_ERR_ARGUMENT, "state_dtype is %s, must be F32, F16, BF16 or Q8",
            attncl_dtype_name(o.state_dtype));
    TRY(check_lengths(model, &o));
    if (o.slot_limit)
        return attncl__decoder_create_for(model, batch, o.slot_limit, o.slot_limit, &o,
                                          decoder_ret);
    return attncl__decoder_create_for(model, batch, o.window, FIRST_CAPACITY, &o, decoder_ret);
}

void attncl_decoder_destroy(attncl_decoder *decoder)
{
    if (!decoder)
        return;
    for (int i = 0; i < N_PREFILLS; ++i)
        attncl__decoder_prefill_free(&decoder->prefills[i]);
    attncl_decoder_destroy(decoder->beyond);
    attncl_graph_destroy(decoder->sampling_step);
    attncl_graph_destroy(decoder->cropped);
    attncl_graph_destroy(decoder->graph); // waits
    attncl__free(decoder->drawn);
    attncl__free(decoder->text);
    attncl__free(decoder->cropped_text);
    attncl__free(decoder->slot_positions);
    attncl__free(decoder->slot_ends);
    attncl__free(decoder->step);
    attncl__free(decoder);
}

static attncl_status restart(attncl_graph *g)
{
    return g ? attncl__graph_restart(g) : ATTNCL_OK;
}

// The state stays as it is: a text reads nothing of one before it, and a KV cache is large.
attncl_status attncl_decoder_reset(attncl_decoder *decoder)
{
    REQUIRE(decoder, ATTNCL_ERR_ARGUMENT, "decoder is NULL");
    TRY(restart(decoder->graph));
    for (int i = 0; i < N_PREFILLS; ++i)
        TRY(restart(decoder->prefills[i].graph));
    TRY(restart(decoder->sampling_step));
    TRY(restart(decoder->cropped));
    if (decoder->beyond)
        TRY(attncl_decoder_reset(decoder->beyond));
    decoder->position = 0;
    for (int64_t i = 0; decoder->slot_positions && i < decoder->batch; ++i)
        decoder->slot_positions[i] = decoder->slot_ends[i] = 0;
    return ATTNCL_OK;
}

int64_t attncl_decoder_position(const attncl_decoder *decoder)
{
    return decoder ? decoder->position : 0;
}

int64_t attncl_decoder_limit(const attncl_decoder *decoder)
{
    return decoder ? decoder->reach : 0;
}

int64_t attncl_model_decoder_limit(const attncl_model *model)
{
    return model && model->arch->limit ? model->arch->limit(model->settings) : 0;
}

int64_t attncl_decoder_vocabulary(const attncl_decoder *decoder)
{
    return decoder ? decoder->vocabulary : 0;
}

attncl_graph *attncl_decoder_graph(attncl_decoder *decoder)
{
    return decoder ? decoder->graph : NULL;
}

static attncl_status check_capacity(const attncl_decoder *decoder, int64_t n)
{
    const int64_t max = attncl_decoder_limit(decoder), limit = max > 0 ? max : INT32_MAX;
    REQUIRE(n <= limit - decoder->position, ATTNCL_ERR_STATE,
            "the decoder has taken %" PRId64 " tokens, the model takes at most %" PRId64
            ", not %" PRId64 " more",
            decoder->position, limit, n);
    return ATTNCL_OK;
}

// -- beyond the window: cropped, but with longrope all keys turn otherwise, so that another decoder takes the whole text

static attncl_status open_beyond(attncl_decoder *d)
{
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
    if (!d->long_limit)
        return attncl__decoder_crop_open(d);
    options.state_dtype = d->state_dtype;
    options.window = d->reach ? 0 : d->long_limit;
    if (d->beyond)
        return ATTNCL_OK;
    // Keys turn by the capacity, which short texts never reach.
    return create(d->model, d->batch, d->long_limit, 0, 2 * d->window, &options, &d->beyond);
}

// Gives the decoder beyond the text so far, which it always has once past the window.
static attncl_status catch_up(attncl_decoder *d)
{
    TRY(open_beyond(d));
    if (d->position > d->window || d->position == d->beyond->position)
        return ATTNCL_OK;
    TRY(attncl_decoder_reset(d->beyond));
    return d->position == 0 ? ATTNCL_OK
                            : attncl_decoder_prefill(d->beyond, d->position, d->text, NULL);
}

static attncl_status take_beyond(attncl_decoder *d, int64_t n, const int32_t *tokens, float *logits)
{
    if (!d->long_limit)
        return attncl__decoder_crop_take(d, n, tokens, logits);
    TRY(catch_up(d));
    TRY(attncl_decoder_prefill(d->beyond, n, tokens, logits));
    d->position += n;
    return ATTNCL_OK;
}

static attncl_status sample_beyond(attncl_decoder *d, int64_t n, const int32_t *tokens,
                                   const attncl_sampling *sampling, int32_t *tokens_ret)
{
    if (!d->long_limit)
        return attncl__decoder_crop_sample(d, n, tokens, sampling, tokens_ret);
    TRY(catch_up(d));
    return attncl_decoder_sample(d->beyond, n, tokens, sampling, tokens_ret);
}

// How many of n more tokens fit the window.
static int64_t count_inside(const attncl_decoder *d, int64_t n)
{
    if (d->window == 0 || n <= d->window - d->position)
        return n;
    return d->position < d->window ? d->window - d->position : 0;
}

attncl_status attncl_decoder_step(attncl_decoder *decoder, const int32_t *tokens, float *logits)
{
    REQUIRE(decoder && tokens, ATTNCL_ERR_ARGUMENT, "decoder or tokens is NULL");
    if (decoder->slot_positions)
        return attncl__decoder_slots_step(decoder, tokens, logits);
    TRY(check_capacity(decoder, 1));
    TRY(attncl__graph_check_state_defined(decoder->graph));
    TRY(attncl__check_tokens(decoder->vocabulary, decoder->batch,
                             tokens)); // before anything changes
    if (count_inside(decoder, 1) == 0)
        return take_beyond(decoder, 1, tokens, logits);
    TRY(attncl__decoder_make_room(decoder, 1));
    const size_t bytes = (size_t)decoder->batch * sizeof *tokens;
    TRY(attncl__decoder_step_begin(decoder));
    decoder->step[0] = (int32_t)decoder->position;
    memcpy(decoder->step + 1, tokens, bytes);
    TRY(attncl__decoder_step_run(decoder, bytes + sizeof *tokens, logits));
    attncl__decoder_crop_keep_tokens(decoder, 1, tokens);
    ++decoder->position;
    return ATTNCL_OK;
}

attncl_status attncl_decoder_prefill(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                     float *logits)
{
    bool taken = false;

    REQUIRE(decoder && tokens, ATTNCL_ERR_ARGUMENT, "decoder or tokens is NULL");
    REQUIRE(!decoder->slot_positions, ATTNCL_ERR_UNSUPPORTED,
            "the decoder has slots: attncl_decoder_slot_prefill() takes their prompts");
    REQUIRE(n >= 1, ATTNCL_ERR_ARGUMENT, "%" PRId64 " tokens, must be at least 1", n);
    TRY(check_capacity(decoder, n));
    TRY(attncl__graph_check_state_defined(decoder->graph));
    TRY(attncl__check_tokens(decoder->vocabulary, n * decoder->batch, tokens));
    if (count_inside(decoder, n) < n)
        return take_beyond(decoder, n, tokens, logits);
    TRY(attncl__decoder_make_room(decoder, n));
    TRY(attncl__decoder_prefill_take(decoder, 0, n, tokens, logits, &taken));
    if (taken) {
        attncl__decoder_crop_keep_tokens(decoder, n, tokens);
        decoder->position += n;
    }
    for (int64_t i = 0; i < n && !taken; ++i)
        TRY(attncl_decoder_step(decoder, tokens + i * decoder->batch, i + 1 == n ? logits : NULL));
    return ATTNCL_OK;
}

static attncl_status sample_tokens(attncl_decoder *d, int64_t n, const int32_t *tokens,
                                   const attncl_sampling *sampling, int32_t *tokens_ret)
{
    const int64_t inside = count_inside(d, n), position = d->position;
    const int32_t *next = inside > 0 ? tokens_ret + (inside - 1) * d->batch : tokens;

    TRY(attncl__decoder_make_room(d, inside));
    if (inside < n) {
        TRY(open_beyond(d)); // before anything changes on the device
        memset(tokens_ret, 0xff, (size_t)(n * d->batch) * sizeof *tokens_ret); // -1
    }
    if (inside > 0) {
        TRY(attncl__decoder_sample_take(d, inside, tokens, sampling, tokens_ret));
        attncl__decoder_crop_keep_drawn(d, inside, tokens, tokens_ret);
    }
    if (inside == n)
        return ATTNCL_OK;
    int32_t *rest = tokens_ret + inside * d->batch;
    const attncl_status status = sample_beyond(d, n - inside, next, sampling, rest);
    if (status == ATTNCL_OK)
        attncl__decoder_crop_keep_drawn(d, n - inside, next, rest);
    if (status == ATTNCL_OK || inside == 0)
        return status;
    d->position = position; // but the first steps' changes of the state stay
    return attncl__graph_mark_run_failed(d->graph, status);
}

attncl_status attncl_decoder_sample(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                    const attncl_sampling *sampling, int32_t *tokens_ret)
{
    REQUIRE(decoder && tokens && sampling && tokens_ret, ATTNCL_ERR_ARGUMENT,
            "decoder, tokens, sampling or tokens_ret is NULL");
    REQUIRE(n >= 1, ATTNCL_ERR_ARGUMENT, "%" PRId64 " tokens, must be at least 1", n);
    REQUIRE(!decoder->slot_positions, ATTNCL_ERR_UNSUPPORTED,
            "the decoder has slots: draw their tokens from the scores of attncl_decoder_step()");
    TRY(check_capacity(decoder, n));
    TRY(attncl__graph_check_state_defined(decoder->graph));
    TRY(attncl__check_tokens(decoder->vocabulary, decoder->batch, tokens));
    return sample_tokens(decoder, n, tokens, sampling, tokens_ret);
}
