// SPDX-License-Identifier: MIT
// Descriptions of architectures and model files, as text and as JSON.
#ifndef ATTNCL_TOOL_DESCRIBE_H
#define ATTNCL_TOOL_DESCRIBE_H

#include <stdbool.h>

#include <jansson.h>

#include <attncl/attncl.h>

// Prints one line per entry of the kinds from `first` on.  `collapse`: prints parameters that every layer has once, as
// layers.{i}.weight.
void describe_text(const attncl_description *description, attncl_entry_kind first, bool collapse);

// Add a list for each kind to the object.  False without memory.
bool describe_keys_json(const attncl_description *description, json_t *object);
bool describe_tensors_json(const attncl_description *description, json_t *object);
bool describe_values_json(const attncl_description *description, json_t *object);
bool describe_problems_json(const attncl_description *description, json_t *object);

// Prints a word and a text, wrapped at 100 columns.
void describe_line(const char *word, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
