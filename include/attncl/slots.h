// SPDX-License-Identifier: MIT
/**
 * @file attncl/slots.h
 * Serving many texts: a decoder (model.h) whose sequences are slots with a position each.  A slot starts, ends and
 * takes another text while others go on, and one step reads the weights once for all of them.
 *
 *     options.slot_limit = 2048;                                    attncl_decoder_create(), for `batch` slots
 *     attncl_decoder_slot_prefill(decoder, 3, n, prompt, scores);   slot 3 starts
 *     attncl_decoder_step(decoder, tokens, logits);                 a token for each slot, -1 where it is idle
 *     attncl_decoder_slot_truncate(decoder, 3, 0);                  slot 3 is free again
 *
 * The scores of a slot depend on its own tokens alone, not on those of others.  The first prompt takes the memory of one
 * slot more.
 *
 * Layers with a window keep a slot's last `window` tokens.  So a slot that has taken more than that since it was empty
 * can give up its last token, or all tokens, and no other number: keep a common beginning in a slot of its own.
 *
 * Threads: one at a time per model and its decoders.
 */
#ifndef ATTNCL_SLOTS_H
#define ATTNCL_SLOTS_H

#include "attncl/model.h"

ATTNCL_BEGIN

/** Tokens that a slot has taken.  0 for a slot that is not there.
 * Errors: none. */
ATTNCL_API int64_t attncl_decoder_slot_position(const attncl_decoder *decoder, int64_t slot);

/**
 * One slot takes its next n tokens; the others stay as they are.  One graph computes all of them, as in
 * attncl_decoder_prefill().  Few are taken step by step: attncl_decoder_step() costs the same, and lets other slots go on.
 * @param n       at least 1
 * @param tokens  [n]
 * @param logits  [vocabulary], the scores of the token after the last; NULL: not wanted
 *
 * Failures have the effect of those of attncl_decoder_prefill().
 * Errors: as attncl_decoder_prefill(), and ERR_ARGUMENT for a slot that is not there.
 */
ATTNCL_API attncl_status attncl_decoder_slot_prefill(attncl_decoder *decoder, int64_t slot,
                                                     int64_t n, const int32_t *tokens,
                                                     float *logits);

/**
 * Slot `to` drops its text and takes the first n tokens of slot `from`, whose keys and values are copied on the
 * device: texts with the same beginning compute it once.
 * @param n  at most the position of `from`; with a window, what `from` has kept
 * Errors: ERR_STATE, ERR_ARGUMENT, ERR_OPENCL.  After ERR_OPENCL, attncl_decoder_reset() is needed.
 */
ATTNCL_API attncl_status attncl_decoder_slot_copy(attncl_decoder *decoder, int64_t to, int64_t from,
                                                  int64_t n);

/**
 * A slot keeps the first n of its tokens.  0: it is empty.  Takes no time on the device.
 * @param n  at most the slot's position; with a window, what the slot has kept
 * Errors: ERR_ARGUMENT.
 */
ATTNCL_API attncl_status attncl_decoder_slot_truncate(attncl_decoder *decoder, int64_t slot,
                                                      int64_t n);

ATTNCL_END

#endif
