// SPDX-License-Identifier: MIT
// The list of the keys that were read (struct config_keys), as the typed reads of config.c write it.
#ifndef ATTNCL_MODEL_CONFIG_NOTE_H
#define ATTNCL_MODEL_CONFIG_NOTE_H

#include "model/config.h"

// The key's row, added by its first read.
struct config_key *attncl__config_note(struct config *config, const char *name,
                                       enum config_type type);
struct config_key *attncl__config_note_number(struct config *config, const char *name,
                                              enum config_type type, double min);
// Its default as text; whether that varies.
void attncl__config_note_default(struct config_key *key, const char *otherwise);
// A word that it may have.
void attncl__config_note_word(struct config_key *key, const char *word);

// Exploring: which of its values a key has in this run; CONFIG_NONE: its default.
int attncl__config_variant(const struct config *config, const struct config_key *key);

#endif
