// SPDX-License-Identifier: MIT
/**
 * @file attncl/tokenizer.h
 * Text as the token numbers of a language model, and back: byte-level BPE, and BPE with byte fallback, as a
 * Hugging Face tokenizer.json describes them (docs/model-files.md lists the rules).
 *
 * Threads: one at a time per tokenizer and its streams.
 */
#ifndef ATTNCL_TOKENIZER_H
#define ATTNCL_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "attncl/status.h"

ATTNCL_BEGIN

typedef struct attncl_tokenizer attncl_tokenizer;

/**
 * Creates a tokenizer from the text of a tokenizer.json.  A model file holds it as metadata:
 * attncl_model_metadata(model, "attncl.tokenizer").
 *
 * ERR_FORMAT: the text is damaged or contradicts itself.  ERR_UNSUPPORTED names a rule that this library does not
 * have.
 *
 * @param text           borrowed for the call
 * @param tokenizer_ret  owned by the caller, released by attncl_tokenizer_destroy()
 * Errors: ERR_FORMAT, ERR_UNSUPPORTED, ERR_NO_MEMORY.  Threads: any.
 */
ATTNCL_API attncl_status attncl_tokenizer_create(const char *text, size_t bytes,
                                                 attncl_tokenizer **tokenizer_ret);

/** NULL is fine.  Destroy its streams first.
 * Errors: none. */
ATTNCL_API void attncl_tokenizer_destroy(attncl_tokenizer *tokenizer);

/** The largest token number, plus 1.
 * Errors: none. */
ATTNCL_API int64_t attncl_tokenizer_count(const attncl_tokenizer *tokenizer);

/**
 * The tokens of a text.
 * @param text        UTF-8; zero bytes are characters
 * @param add_begin   1: first the tokens that the tokenizer puts before a text (the post-processor of
 *                    tokenizer.json), if any
 * @param tokens_ret  [*n_ret], borrowed until the next call
 *
 * ERR_ARGUMENT names the byte where the text is not UTF-8.
 * Errors: ERR_ARGUMENT, ERR_UNSUPPORTED, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_tokenizer_encode(attncl_tokenizer *tokenizer, const char *text,
                                                 size_t bytes, int add_begin,
                                                 const int32_t **tokens_ret, size_t *n_ret);

/**
 * The text of tokens, always UTF-8: U+FFFD replaces bytes that are no character.  Numbers without a token have no
 * text.
 * @param skip_special  1: special tokens have no text either
 * @param text_ret      *bytes_ret bytes and a zero after them, borrowed until the next call
 * Errors: ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_tokenizer_decode(attncl_tokenizer *tokenizer, const int32_t *tokens,
                                                 size_t n, int skip_special, const char **text_ret,
                                                 size_t *bytes_ret);

/** Text that grows token by token. */
typedef struct attncl_tokenizer_stream attncl_tokenizer_stream;

/**
 * @param skip_special  as for attncl_tokenizer_decode()
 * @param stream_ret    owned by the caller, released by attncl_tokenizer_stream_destroy()
 * Errors: ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_tokenizer_stream_create(const attncl_tokenizer *tokenizer,
                                                        int skip_special,
                                                        attncl_tokenizer_stream **stream_ret);

/** NULL is fine.
 * Errors: none. */
ATTNCL_API void attncl_tokenizer_stream_destroy(attncl_tokenizer_stream *stream);

/**
 * The text that the next tokens add.  It always consists of whole characters: the bytes of an unfinished one are
 * kept for the next call.
 * @param text_ret  *bytes_ret bytes and a zero after them, borrowed until the stream's next call
 * Errors: ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_tokenizer_stream_add(attncl_tokenizer_stream *stream,
                                                     const int32_t *tokens, size_t n,
                                                     const char **text_ret, size_t *bytes_ret);

/** Ends the text: U+FFFD for the bytes of an unfinished character, else nothing.  The stream then begins another text.
 * Errors: ERR_NO_MEMORY. */
ATTNCL_API attncl_status attncl_tokenizer_stream_end(attncl_tokenizer_stream *stream,
                                                     const char **text_ret, size_t *bytes_ret);

ATTNCL_END

#endif
