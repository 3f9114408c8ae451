// SPDX-License-Identifier: MIT
// The tuning table: tile configurations and work-group sizes that were measured on a device and replace
// the built-in ones.  `attncl tune` writes them to a file, a context reads the file once, and kernels'
// host code looks them up (launch/launch_size.c).
//
// An entry is a hint.  Host code checks it like a built-in configuration and silently rejects what does
// not fit, so a damaged or hostile file can make the library slow but not wrong.
#ifndef ATTNCL_STORE_TUNING_TABLE_H
#define ATTNCL_STORE_TUNING_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "attncl/status.h"
#include "attncl/version.h"
#include "store/keyed_lines.h"

// Names, classes and fields are in tuning_table.c.
enum tunable {
    TUNE_GEMM_CPU,
    TUNE_GEMM_GPU,
    TUNE_GEMM_BACKEND,
    TUNE_ATTENTION_CPU,
    TUNE_AFT_CPU,
    TUNE_ROWS_CPU,
    TUNE_ROWS_GPU,
    TUNE_FLAT_CPU,
    TUNE_FLAT_GPU,
    TUNE_THREE_TERMS,
    N_TUNABLES
};

// The fields of each tunable, in the order of an entry's values.
enum { GEMM_CPU_TM, GEMM_CPU_TN, GEMM_CPU_TK };
enum { GEMM_GPU_BM, GEMM_GPU_BN, GEMM_GPU_BK, GEMM_GPU_TX, GEMM_GPU_TY };
enum { GEMM_BACKEND_CLBLAST };
enum { ATTENTION_CPU_BLOCK, ATTENTION_CPU_TILE };
enum { AFT_CPU_BLOCK_KIB, AFT_CPU_GROUP, AFT_CPU_BLOCKS };
enum { ROWS_CPU_ELEMENTS, ROWS_CPU_VW };
enum { ROWS_GPU_LS };
enum { FLAT_CPU_PER_GROUP, FLAT_CPU_VW };
enum { FLAT_GPU_LS };
enum { THREE_TERMS_USED };

// Classes of shapes.
enum {
    TUNE_SMALL,
    TUNE_MEDIUM,
    TUNE_LARGE,
    TUNE_SKINNY
};                                        // GEMM: by elements of C; SKINNY: few rows, on GPUs
enum { TUNE_SINGLE, TUNE_BATCH };         // GEMM backend
enum { TUNE_SHORT, TUNE_LONG };           // attention: by number of keys
enum { TUNE_PLAIN, TUNE_MASKED };         // AFT
enum { TUNE_NARROW, TUNE_WIDE };          // rows: by width
enum { TUNE_OF_GEMM, TUNE_OF_ATTENTION }; // three terms: by kernel
enum { TUNE_ANY };

enum { TUNE_MAX_CLASSES = 4, TUNE_MAX_FIELDS = 5 };

// A field's allowed values: low to high, multiples of `step`; step 0: powers of two.
struct tune_field {
    const char *name; // NULL ends a list
    int low, high, step;
};

struct tune_kernel {
    const char *name;
    unsigned variants;                         // bit i: enum kernel_variant i of device/caps.h
    const char *classes[TUNE_MAX_CLASSES + 1]; // ends with NULL
    struct tune_field fields[TUNE_MAX_FIELDS + 1];
};
extern const struct tune_kernel attncl__tune_kernels[N_TUNABLES];

bool attncl__tune_is_allowed(const struct tune_field *field, long value);

struct tune_entry {
    int value[TUNE_MAX_FIELDS];
    int line;             // line number in the file; 0: no entry
    atomic_bool rejected; // it does not run on this device
    atomic_bool logged;   // its first use is logged
};

// The entries of one device and driver.
struct tune_table {
    char *path; // of the file
    struct tune_entry entries[N_TUNABLES][TUNE_MAX_CLASSES];
};

// -- as text (tuning_table.c)

// Reads a file's entries of one device and driver into the table and returns their number.  Bad lines are
// logged with their number and left out; `path` is for the log.
int attncl__tuned_parse(const char *text, size_t n, const char *path, const char *device,
                        const char *driver, struct tune_table *table);

// Appends "TM=192 TN=128 TK=256".
void attncl__tuned_add_values(enum tunable kernel, const int *values, struct strbuf *ret);

// Appends the new text of a file: replaces the device's entries of the kernels and classes in `measured`
// by the table's, and keeps other valid lines of `old`.
void attncl__tuned_merge(const char *old, size_t n, const char *device, const char *driver,
                         const struct tune_table *table,
                         const bool measured[N_TUNABLES][TUNE_MAX_CLASSES], struct strbuf *ret);

// -- the file (tuning_file.c): ATTNCL_TUNE, or attncl/tune.txt in the user's configuration directory

enum { TUNING_MAX_BYTES = 65536 }; // of a file

struct tuning_key {
    const char *device, *driver;
    bool ignore_environment; // do not let the environment name the file
};

// Returns the file's table for this device, or NULL if it has no entry.  Faults of the file are logged.
// Freed by attncl__tuning_free(), which accepts NULL.
struct tune_table *attncl__tuning_load(const struct tuning_key *key);
void attncl__tuning_free(struct tune_table *table);

// ERR_ARGUMENT when ATTNCL_TUNE names a file that does not exist or is no tuning file.  is_written: the file may not
// exist yet, but if it exists it must be readable.
attncl_status attncl__tuning_check_file(const struct tuning_key *key, bool is_written);

// ERR_IO when the file cannot be written; to be checked before measuring.
attncl_status attncl__tuning_check_path(const struct tuning_key *key);

// Writes the table's entries for everything `measured`.  Creates file and directory if needed, but
// without an entry only a file that ATTNCL_TUNE names.  *path_ret: the file, freed by the caller;
// unchanged if nothing was written.  ERR_IO when the file cannot be written.
attncl_status attncl__tuning_store(const struct tuning_key *key, const struct tune_table *table,
                                   const bool measured[N_TUNABLES][TUNE_MAX_CLASSES],
                                   char **path_ret);

// Reads the whole file, which the caller frees; *n_ret 0: it does not exist.  ERR_IO when it may not be read.
attncl_status attncl__tuning_read(char **data_ret, size_t *n_ret);
// Replaces the whole file.  ERR_IO when it cannot be written.
attncl_status attncl__tuning_write(const struct strbuf *text);

// -- lines of the file (tuning_table.c)

#define TUNING_FIRST_LINE "attncl-tune 1 " ATTNCL_VERSION_STRING
#define TUNING_HEAD                                                                                \
    TUNING_FIRST_LINE "\n# device, driver, kernel, class of shapes, values; by attncl tune\n"

enum { WHY_BYTES = 128 };

// True for an empty line and a comment.
bool attncl__tuning_is_ignored(struct slice line);
// False, with the reason, unless the line is an entry of some device.
bool attncl__tuning_is_entry(struct slice line, char why[WHY_BYTES]);

#endif
