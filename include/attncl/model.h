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

/** What a file is opened as.  Start from ATTNCL_MODEL_OPTIONS_INIT; NULL: as the file's metadata says. */
typedef struct attncl_model_options {
    size_t struct_size;
    /** The architecture, "lm", and its configuration, a JSON object, for a file of parameters alone: both or
     * neither.  The file's metadata is not used then. */
    const char *arch, *config;
} attncl_model_options;

#define ATTNCL_MODEL_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(attncl_model_options), NULL, NULL                                                   \
    }

/**
 * Opens a model file and uploads its weights once; all its graphs share them.  F16 and BF16 weights of linear maps and
 * embeddings stay 16-bit on the device.
 *
 * ERR_FORMAT: the file is damaged or of another format, metadata is missing, the configuration is not valid or has an
 * unknown key, or a parameter is missing or has the wrong shape.
 *
 * @param options    borrowed for the call; NULL: all defaults
 * @param model_ret  owned by the caller, released by attncl_model_destroy() before the context
 * Errors: ERR_IO, ERR_FORMAT, ERR_ARGUMENT, ERR_SHAPE, ERR_DEVICE_MEMORY, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_model_open(attncl_context *context, const char *path,
                                           const attncl_model_options *options,
                                           attncl_model **model_ret);

/** NULL is fine.  Destroy its graphs and decoders first.
 * Errors: none. */
ATTNCL_API void attncl_model_destroy(attncl_model *model);

/** The architecture's name, "lm".  Borrowed.
 * Errors: none. */
ATTNCL_API const char *attncl_model_arch(const attncl_model *model);

/** A metadata value of the file, or NULL: "attncl.vocab", "attncl.config".  Borrowed.
 * Errors: none. */
ATTNCL_API const char *attncl_model_metadata(const attncl_model *model, const char *key);

/** An integer of the configuration; `otherwise` if the key is absent.
 * Errors: none. */
ATTNCL_API int64_t attncl_model_config_int(const attncl_model *model, const char *key,
                                           int64_t otherwise);

/** 1 if the token ends a text: the file's metadata attncl.eos lists it.  attncl_decoder_sample() goes on after it.
 * Errors: none. */
ATTNCL_API int attncl_model_ends_text(const attncl_model *model, int32_t token);

/**
 * Builds and compiles the model's graph for inputs of these shapes.  Only the name, dtype and shape of each of the `n`
 * arrays are read.  Leave out optional inputs that you do not use.
 *
 * @param graph_ret  owned by the caller; its inputs and outputs carry the architecture's names
 *
 * ERR_ARGUMENT for a missing or an unknown input (the message names the nearest and all known inputs),
 * ERR_SHAPE and ERR_DTYPE for a wrong one, ERR_UNSUPPORTED for an architecture that is more than one
 * graph (lm_sample).
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, ERR_UNSUPPORTED, and those of attncl_graph_compile().
 */
ATTNCL_API attncl_status attncl_model_graph(attncl_model *model, const attncl_array *inputs,
                                            size_t n, attncl_graph **graph_ret);

/**
 * With `shown` 1, later graphs and runs also output the attention weights of each softmax attention layer
 * inside an encoder or a language model: [T, S, B, H], named like the layer's parameters, for example
 * encoder.layers.0.self_attn.attn.
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
 * Builds the graph, runs it and reads the results, for every architecture.  Inputs are converted where
 * possible (F64 to F32, I64 to I32, BOOL to masks).  A token out of range is ERR_ARGUMENT.
 *
 * Inputs `cotangent.OUTPUT`, with the outputs' shapes, ask for gradients.  The results then also hold
 * `grad.NAME` for every float input and trainable parameter: the gradient of the sum of output * cotangent
 * over all outputs, or zeros if no output depends on it.  ERR_UNSUPPORTED if the architecture or one of its
 * ops has no gradient.
 *
 * @param graph_ret  NULL, or receives the graph that ran, for its profile; owned by the caller
 * Errors: those of attncl_model_graph() and attncl_graph_run().
 */
ATTNCL_API attncl_status attncl_model_run(attncl_model *model, const attncl_array *inputs, size_t n,
                                          attncl_results **results_ret, attncl_graph **graph_ret);

/* -- language models, token by token
 * -------------------------------------------------------------------------------- */

/** The most tokens that a decoder of this model takes.  0: no limit, or not a language model.  Compiles
 * nothing.
 * Errors: none. */
ATTNCL_API int64_t attncl_model_decoder_limit(const attncl_model *model);

/** An `lm` model's state after a prefix: one step costs O(window) per AFT-local layer and
 * O(position) per gMLP or transformer layer.  KV caches begin with room for 1,024 tokens, fewer if the limit is, and
 * double when a text outgrows them, in the call that takes its next token; slots have all their room at once.
 * With rope_scaling longrope, a text that outgrows the original context is taken again as a whole, in a state that is
 * allocated then; slots turn by slot_limit at all lengths. */
typedef struct attncl_decoder attncl_decoder;

/** How to decode.  Start from ATTNCL_DECODER_OPTIONS_INIT; zero means default. */
typedef struct attncl_decoder_options {
    size_t struct_size;
    /** Type of the KV cache, of a Feedback Transformer's memories, of AFT's window and of gMLP's rows: F32
     * (default), or F16 or BF16 for half the memory.  Steps round to nearest when they store (F16 overflows to
     * infinity from 65520) and compute in F32.  AFT's sums over older keys stay F32.
     * Q8: a KV cache in about a quarter, of layer transformer alone.  States "keys" and "values" are U8 then: in a row a
     * signed byte q for each channel, filled up to a multiple of 4, then an F32 scale d for each head.  An element is
     * d q, d the head's largest magnitude / 127, q rounded to nearest: off by at most d / 2. */
    attncl_dtype state_dtype;
    /** 0 (default): the decoder stops at the model's limit.  Else, at most that limit, it has none: beyond `window`
     * tokens each step recomputes the last `window` tokens as a text of their own, which costs O(window) steps. */
    int64_t window;
    /** 0 (default): the sequences share a position.  Else each is a slot with a position of its own (slots.h) and takes
     * at most this many tokens, at most the model's limit. */
    int64_t slot_limit;
} attncl_decoder_options;

#define ATTNCL_DECODER_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_decoder_options), ATTNCL_F32, 0, 0                                           \
    }

/** Creates a decoder at position 0 for a batch of `batch` sequences.
 * @param options      borrowed for the call; NULL: all defaults
 * @param decoder_ret  owned by the caller, released by attncl_decoder_destroy()
 *
 * ERR_UNSUPPORTED if the model is not an lm, for slots if its layers have no KV cache, and for a state_dtype that
 * the layers lack: 16 bits where they keep nothing but F32 sums (AFT without a window), Q8 where they have no KV cache.
 * Errors: ERR_ARGUMENT, ERR_UNSUPPORTED, and those of attncl_graph_compile().  Threads: one at a time per model
 * and its decoders. */
ATTNCL_API attncl_status attncl_decoder_create(attncl_model *model, int64_t batch,
                                               const attncl_decoder_options *options,
                                               attncl_decoder **decoder_ret);
/** NULL is fine.  Errors: none. */
ATTNCL_API void attncl_decoder_destroy(attncl_decoder *decoder);

/** Returns to position 0, also after a failed step.
 * Errors: ERR_ARGUMENT, ERR_OPENCL. */
ATTNCL_API attncl_status attncl_decoder_reset(attncl_decoder *decoder);

/** Tokens taken so far; by the fullest slot.  Errors: none. */
ATTNCL_API int64_t attncl_decoder_position(const attncl_decoder *decoder);
/** The most tokens that it, or each slot, can take, 0: no limit.  Layers and positional encodings limit it;
 * transformer layers, whose KV cache has max_len rows, do so also without a positional encoding.  Errors: none. */
ATTNCL_API int64_t attncl_decoder_limit(const attncl_decoder *decoder);
/** Size of the vocabulary.  Errors: none. */
ATTNCL_API int64_t attncl_decoder_vocabulary(const attncl_decoder *decoder);

/**
 * Takes one token per sequence.
 * @param tokens  [batch]; -1 for an idle slot, whose logits mean nothing
 * @param logits  [batch, vocabulary], the scores of the next token; NULL: not wanted (and the call
 * does not wait)
 *
 * ERR_STATE beyond the limit and ERR_ARGUMENT for a token out of range leave the state unchanged.
 * Any other failure leaves the position unchanged; if the state was lost, steps return ERR_STATE until
 * attncl_decoder_reset().  A later call may report the failure of a step without `logits`.
 * Errors: ERR_STATE, ERR_ARGUMENT, and those of attncl_graph_run().
 */
ATTNCL_API attncl_status attncl_decoder_step(attncl_decoder *decoder, const int32_t *tokens,
                                             float *logits);

/**
 * Takes the next n tokens of each sequence: the same as n steps, up to rounding.  At position 0 one graph
 * computes all of them, at any later position another one does where the layers have a KV cache.  It is compiled at
 * the first prompt of about this length; the last four are kept.  Fewer than 8 tokens behind others, those of other
 * layers, and any without enough device memory are taken step by step.
 * @param n       at least 1
 * @param tokens  [n, batch]
 * @param logits  [batch, vocabulary], the scores of the token after the last; NULL: not wanted
 *
 * ERR_STATE beyond the limit and ERR_ARGUMENT for a token out of range leave the state unchanged.
 * Other failures have the effect of a failed attncl_decoder_step().
 * Errors: as attncl_decoder_step(), and those of attncl_graph_compile().  Threads: one at a time per
 * model and its decoders.
 */
ATTNCL_API attncl_status attncl_decoder_prefill(attncl_decoder *decoder, int64_t n,
                                                const int32_t *tokens, float *logits);

/** How attncl_decoder_sample() draws a token: token c of score s_c has the weight
 * exp(s_c / temperature).  Start from ATTNCL_SAMPLING_INIT. */
typedef struct attncl_sampling {
    size_t struct_size;
    double temperature; /**< 0: always the likeliest token, the first one of equals */
    int64_t top_k;      /**< draw from the top_k likeliest tokens; 0: from all */
    uint64_t seed;      /**< the tokens are a function of the seed */
} attncl_sampling;

#define ATTNCL_SAMPLING_INIT                                                                       \
    {                                                                                              \
        sizeof(attncl_sampling), 1, 0, 0                                                           \
    }

/**
 * Takes n steps on the device: each takes a token of each sequence and draws the next one, which the next
 * step takes.  The host waits once per 256 steps and at the end.  The first call compiles the step's graph.
 * A token depends only on the scores, the sampling and the previous token's position, on every device, so
 * n calls for one token each draw the same tokens as one call for n.
 * @param n           at least 1
 * @param tokens      [batch], the tokens to take first
 * @param sampling    borrowed for the call
 * @param tokens_ret  [n, batch], the tokens drawn, of which the last has not been taken
 *
 * ERR_STATE beyond the limit and ERR_ARGUMENT for a token or sampling that is not valid leave the state
 * unchanged.  ERR_STATE also for scores that are not finite: tokens_ret then has each sequence's tokens up to
 * there, and -1 from there on.  This and other failures have the effect of a failed attncl_decoder_step().
 * Errors: as attncl_decoder_step(), and those of attncl_graph_compile().  Threads: one at a time per
 * model and its decoders.
 */
ATTNCL_API attncl_status attncl_decoder_sample(attncl_decoder *decoder, int64_t n,
                                               const int32_t *tokens,
                                               const attncl_sampling *sampling,
                                               int32_t *tokens_ret);

/** The step's graph, borrowed until the next call that takes tokens, for profiles.
 * Errors: none. */
ATTNCL_API attncl_graph *attncl_decoder_graph(attncl_decoder *decoder);

ATTNCL_END

#endif
