// SPDX-License-Identifier: MIT
// The file of the tuning table: ATTNCL_TUNE, or attncl/tune.txt in the user's configuration
// directory.
#ifndef ATTNCL_STORE_TUNING_FILE_H
#define ATTNCL_STORE_TUNING_FILE_H

#include "attncl/status.h"
#include "attncl/version.h"
#include "store/keyed_lines.h"
#include "store/tuning_table.h"

enum { TUNING_MAX_BYTES = 65536 }; // of a file

// Whose entries, and whether the environment may say where the file is.
struct tuning_key {
    const char *device, *driver;
    bool ignore_environment;
};

// The file's table for this device, or NULL when it has no entry for it.  Cannot fail: faults of
// the file are logged.  Freed by attncl__tuning_free(), which accepts NULL.
struct tune_table *attncl__tuning_load(const struct tuning_key *key);
void attncl__tuning_free(struct tune_table *table);

// ERR_ARGUMENT when ATTNCL_TUNE names a file that is not there or begins as no tuning file does.  One that is
// going to be written may be missing, but not be something that cannot be read.
attncl_status attncl__tuning_check_named(const struct tuning_key *key, bool is_written);

// ERR_IO when the file cannot be written: worth knowing before measuring.
attncl_status attncl__tuning_check_path(const struct tuning_key *key);

// Writes the table's entries for everything `measured`.  Creates file and directory when they are
// missing; without an entry, only where ATTNCL_TUNE names it.  *path_ret, the file, is the caller's
// (attncl__free); unchanged when nothing was written.  ERR_IO when the file cannot be written.
attncl_status attncl__tuning_store(const struct tuning_key *key, const struct tune_table *table,
                                   const bool measured[N_TUNABLES][TUNE_MAX_CLASSES],
                                   char **path_ret);

struct strbuf;
// The whole file, the caller's (attncl__free); *n_ret 0: there is none.  ERR_IO when it may not be read.
attncl_status attncl__tuning_text(char **data_ret, size_t *n_ret);
// Replaces the whole file.  ERR_IO when it cannot be written.
attncl_status attncl__tuning_write(const struct strbuf *text);

// -- tuning_text.c: the lines of the file

#define TUNING_FIRST_LINE "attncl-tune 1 " ATTNCL_VERSION_STRING
#define TUNING_HEAD                                                                                \
    TUNING_FIRST_LINE "\n# device, driver, kernel, class of shapes, values; by attncl tune\n"

enum { WHY_BYTES = 128 };

// True for an empty line and a comment.
bool attncl__tuning_is_ignored(struct slice line);
// False, and the reason, unless the line is an entry of some device.
bool attncl__tuning_is_entry(struct slice line, char why[WHY_BYTES]);

#endif
