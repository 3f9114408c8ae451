// SPDX-License-Identifier: MIT
/**
 * @file attncl/model.h
 * Model files: an architecture and its PyTorch weights in one safetensors file
 * (docs/model-files.md), run by name of input and output.
 *
 * Threads: one at a time per model and its graphs, results and decoders.
 */
#ifndef ATTNCL_MODEL_H
#define ATTNCL_MODEL_H

#include "attncl/array.h"
#include "attncl/graph.h"

ATTNCL_BEGIN

typedef struct attncl_model attncl_model;

/**
 * Opens a model file and uploads its weights, once for every graph made of it.  F16 and BF16 matrices of linear maps and
 * embeddings stay so on the device.
 *
 * ERR_IO, ERR_FORMAT (damaged file or one of another format, metadata missing, configuration not
 * acceptable, a key that no configuration of the architecture reads, a parameter missing or of a
 * wrong shape).
 *
 * @param model_ret  owned by the caller, released by attncl_model_close() before the context
 * Errors: ERR_IO, ERR_FORMAT, ERR_ARGUMENT, ERR_SHAPE, ERR_DEVICE_MEMORY, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_model_open(attncl_context *context, const char *path,
                                           attncl_model **model_ret);

/** NULL is fine.  Destroy its graphs and decoders first.
 * Errors: none. */
ATTNCL_API void attncl_model_close(attncl_model *model);

/** The architecture's name, "lm".  Borrowed.
 * Errors: none. */
ATTNCL_API const char *attncl_model_arch(const attncl_model *model);

/** A metadata value of the file, or NULL: "attncl.vocab", "attncl.config".  Borrowed.
 * Errors: none. */
ATTNCL_API const char *attncl_model_metadata(const attncl_model *model, const char *key);

/** An integer of the configuration; `otherwise` when it is not there.
 * Errors: none. */
ATTNCL_API int64_t attncl_model_config_int(const attncl_model *model, const char *key,
                                           int64_t otherwise);

/**
 * The model's computation for inputs of given shapes, compiled.  Of each of the `n` arrays only
 * name, dtype and shape matter; absent optional ones are absent.
 *
 * @param graph_ret  owned by the caller; its inputs and outputs carry the architecture's names
 *
 * ERR_ARGUMENT for a missing input and for one that the architecture does not name (the message has
 * the nearest and all that it names), ERR_SHAPE and ERR_DTYPE for a wrong one, ERR_UNSUPPORTED for an
 * architecture that is not one graph (lm_sample).
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, ERR_UNSUPPORTED, and those of attncl_graph_compile().
 */
ATTNCL_API attncl_status attncl_model_graph(attncl_model *model, const attncl_array *inputs,
                                            size_t n, attncl_graph **graph_ret);

/**
 * With `shown` 1, graphs and runs that follow have one more output for each layer of softmax
 * attention inside an encoder or a language model: its weights, [T, S, B, H], called as the layer's
 * parameters are, encoder.layers.0.self_attn.attn.  They take memory for T S B H elements each.
 * Errors: none.
 */
ATTNCL_API void attncl_model_show_attention(attncl_model *model, int shown);

/** The results of attncl_model_run(): arrays that own their data. */
typedef struct attncl_results attncl_results;
/** How many results there are.  Errors: none. */
ATTNCL_API size_t attncl_results_count(const attncl_results *results);
/** Result `i`, borrowed; NULL beyond the last.  Errors: none. */
ATTNCL_API const attncl_array *attncl_results_at(const attncl_results *results, size_t i);
/** NULL is fine.  Errors: none. */
ATTNCL_API void attncl_results_destroy(attncl_results *results);

/**
 * Builds, runs and reads, in one call, for every architecture.  Inputs may have any type that
 * converts (F64 to F32, I64 to I32, BOOL to masks); a token out of range is ERR_ARGUMENT.
 *
 * Inputs `cotangent.OUTPUT`, of the outputs' shapes, ask for gradients: the results then also hold
 * `grad.NAME`, the gradient of the sum of all output * cotangent, for every float input and
 * trainable parameter; zeros where nothing flows.  ERR_UNSUPPORTED when the architecture, or an op
 * in it, has none.
 *
 * @param graph_ret  NULL, or receives the graph that ran, for its profile; owned by the caller
 * Errors: those of attncl_model_graph() and attncl_graph_run().
 */
ATTNCL_API attncl_status attncl_model_run(attncl_model *model, const attncl_array *inputs, size_t n,
                                          attncl_results **results_ret, attncl_graph **graph_ret);

/* -- language models, token by token
 * -------------------------------------------------------------------------------- */

/** The most tokens that a decoder of the model takes, 0: no limit, or no language model.  Known
 * before anything is compiled.
 * Errors: none. */
ATTNCL_API int64_t attncl_model_decoder_limit(const attncl_model *model);

/** An `lm` model's state after a prefix: one step costs O(window) per AFT-local layer and
 * O(position) per gMLP or transformer layer. */
typedef struct attncl_decoder attncl_decoder;

/** A decoder for `batch` sequences side by side, at position 0, owned by the caller and released by
 * attncl_decoder_destroy().  ERR_UNSUPPORTED when the model is not an lm.
 * Errors: ERR_ARGUMENT, ERR_UNSUPPORTED, and those of attncl_graph_compile(). */
ATTNCL_API attncl_status attncl_decoder_create(attncl_model *model, int64_t batch,
                                               attncl_decoder **decoder_ret);

/** How to decode.  Start from ATTNCL_DECODER_OPTIONS_INIT; zero means default. */
typedef struct attncl_decoder_options {
    size_t struct_size;
    /** Type of what layers keep of a position: the keys and values of transformer layers, of a feedback
     * transformer's memories and of AFT's window, the rows of gMLP.  F32 (default), F16 or BF16, which take
     * half the memory; a step stores them rounded to nearest, in F16 infinite from 65520 on, and computes in
     * F32.  AFT's sums of older keys stay F32. */
    attncl_dtype state_dtype;
    /** 0 (default): the decoder ends at the model's limit.  Else it has none: from `window` tokens on, at most
     * the limit, each score is that of a text of the last `window` tokens alone, which are computed again for every
     * score and every drawn token, as O(window) steps. */
    int64_t window;
} attncl_decoder_options;

#define ATTNCL_DECODER_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_decoder_options), ATTNCL_F32, 0                                              \
    }

/** attncl_decoder_create() with options, borrowed for the call; NULL: all defaults.  ERR_UNSUPPORTED too
 * where a state_dtype of 16 bits is asked of layers that keep sums alone, in F32: AFT without a window.
 * Errors: as attncl_decoder_create().  Threads: one at a time per model and its decoders. */
ATTNCL_API attncl_status attncl_decoder_create_with(attncl_model *model, int64_t batch,
                                                    const attncl_decoder_options *options,
                                                    attncl_decoder **decoder_ret);
/** NULL is fine.  Errors: none. */
ATTNCL_API void attncl_decoder_destroy(attncl_decoder *decoder);

/** Back to position 0; after a step that failed, too.
 * Errors: ERR_ARGUMENT, ERR_OPENCL. */
ATTNCL_API attncl_status attncl_decoder_reset(attncl_decoder *decoder);

/** Tokens taken so far; the most it can take (0: no limit); size of the vocabulary.  The limit is
 * that of the layers and positions; transformer layers, which keep every position's keys and
 * values, are bounded by max_len also without positions.
 * Errors: none. */
ATTNCL_API int64_t attncl_decoder_position(const attncl_decoder *decoder);
/** The most tokens it can take, 0: no limit.  Errors: none. */
ATTNCL_API int64_t attncl_decoder_limit(const attncl_decoder *decoder);
/** Size of the vocabulary.  Errors: none. */
ATTNCL_API int64_t attncl_decoder_vocabulary(const attncl_decoder *decoder);

/**
 * Takes one token per sequence.
 * @param tokens  [batch]
 * @param logits  [batch, vocabulary], the scores of the next token; NULL: not wanted (and the call
 * does not wait)
 *
 * ERR_STATE beyond the limit, ERR_ARGUMENT for a token out of range; the state is then as before.
 * After any other failure it is as before as well, or undefined: then steps give ERR_STATE until
 * attncl_decoder_reset().  The position is that before the step.  What fails in a step without
 * `logits` may be told by a later call, and counts as that step's failure.
 * Errors: ERR_STATE, ERR_ARGUMENT, and those of attncl_graph_run().
 */
ATTNCL_API attncl_status attncl_decoder_step(attncl_decoder *decoder, const int32_t *tokens,
                                             float *logits);

/**
 * Takes the next n tokens of each sequence, a prompt: as n steps do, but for rounding.  At position 0
 * they are computed at once, by a graph that is compiled at the first prompt of about this length (the
 * last four lengths are kept) and shares the decoder's state; later on, and where the device has not
 * the memory or loops for it, one after another.
 * @param n       at least 1
 * @param tokens  [n, batch]
 * @param logits  [batch, vocabulary], the scores of the token after the last; NULL: not wanted
 *
 * ERR_STATE beyond the limit, ERR_ARGUMENT for a token out of range; the state is then as before.
 * After any other failure it is as after a failed attncl_decoder_step().
 * Errors: as attncl_decoder_step(), and those of attncl_graph_compile().  Threads: one at a time per
 * model and its decoders.
 */
ATTNCL_API attncl_status attncl_decoder_prefill(attncl_decoder *decoder, int64_t n,
                                                const int32_t *tokens, float *logits);

/** How attncl_decoder_sample() draws a token: token c of score s_c has the weight
 * exp(s_c / temperature).  Start from ATTNCL_SAMPLING_INIT. */
typedef struct attncl_sampling {
    size_t struct_size;
    double temperature; /**< 0: always the likeliest token, of equals the first */
    int64_t top_k;      /**< only the top_k likeliest tokens; 0: all */
    uint64_t seed;      /**< another seed, other tokens */
} attncl_sampling;

#define ATTNCL_SAMPLING_INIT                                                                       \
    {                                                                                              \
        sizeof(attncl_sampling), 1, 0, 0                                                           \
    }

/**
 * n steps on the device: each takes a token of each sequence and draws the next, which the step after it
 * takes.  The host waits after 256 steps each and at the end.  The first call compiles a graph of a step.
 * A token is a function of the scores, the sampling and the position of the token before it, the same
 * on every device: n calls for one token each, or any other division of n, give the same tokens.
 * @param n           at least 1
 * @param tokens      [batch], the tokens to take first
 * @param sampling    borrowed for the call
 * @param tokens_ret  [n, batch], the tokens drawn, of which the last has not been taken
 *
 * ERR_STATE beyond the limit, ERR_ARGUMENT for a token or a sampling that is not acceptable; the state is
 * then as before.  ERR_STATE too where scores are not finite: tokens_ret has the tokens before that of
 * each sequence, and -1 from there on.  After this and any other failure it is as after a failed
 * attncl_decoder_step(); the position is that before the call.
 * Errors: as attncl_decoder_step(), and those of attncl_graph_compile().  Threads: one at a time per
 * model and its decoders.
 */
ATTNCL_API attncl_status attncl_decoder_sample(attncl_decoder *decoder, int64_t n,
                                               const int32_t *tokens,
                                               const attncl_sampling *sampling,
                                               int32_t *tokens_ret);

/** The step's graph, borrowed, for profiles.
 * Errors: none. */
ATTNCL_API attncl_graph *attncl_decoder_graph(attncl_decoder *decoder);

ATTNCL_END

#endif
