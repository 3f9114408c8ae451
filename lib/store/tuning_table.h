// SPDX-License-Identifier: MIT
// The tuning table: tile configurations and work-group sizes that were measured on a device and
// replace the built-in ones.  `attncl tune` writes them to a file, a context reads them once,
// kernels look them up (launch/launch_size.c).  Knows no OpenCL.
//
// An entry is a hint.  The kernel's host code checks it like a built-in configuration and rejects
// what does not fit, without an error: a damaged or hostile file can make the library slow, not
// wrong.
#ifndef ATTNCL_STORE_TUNING_TABLE_H
#define ATTNCL_STORE_TUNING_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "attncl/status.h"
#include "attncl/version.h"
#include "store/keyed_lines.h"

// What can be tuned.  Names, classes and fields: tuning_table.c.
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

// The fields of each, in the order of an entry's values.
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
// GEMM: elements of C; rows of C, on GPUs
enum { TUNE_SMALL, TUNE_MEDIUM, TUNE_LARGE, TUNE_SKINNY };
enum { TUNE_SINGLE, TUNE_BATCH };         // GEMM backend
enum { TUNE_SHORT, TUNE_LONG };           // attention: keys
enum { TUNE_PLAIN, TUNE_MASKED };         // AFT
enum { TUNE_NARROW, TUNE_WIDE };          // rows: columns
enum { TUNE_OF_GEMM, TUNE_OF_ATTENTION }; // three terms: kernels by matrix instructions
enum { TUNE_ANY };

enum { TUNE_MAX_CLASSES = 4, TUNE_MAX_FIELDS = 5 };

// A field's values: low to high, multiples of `step`; step 0: powers of two.
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

// True when the field can have this value.
bool attncl__tune_takes(const struct tune_field *field, long value);

struct tune_entry {
    int value[TUNE_MAX_FIELDS];
    int line; // in the file; 0: no entry
    atomic_bool rejected;
    atomic_bool logged; // that it is in use
};

// The entries for one device and driver.  All zeros: none.
struct tune_table {
    char *path; // of the file
    struct tune_entry entries[N_TUNABLES][TUNE_MAX_CLASSES];
};

// -- as text (tuning_table.c)

// Takes a file's entries for one device and driver.  Other lines that are no entry are logged with
// their number and left out.  `path` is for the log.  Returns the number of entries taken.
int attncl__tuned_parse(const char *text, size_t n, const char *path, const char *device,
                        const char *driver, struct tune_table *table);

// "TM=192 TN=128 TK=256"
void attncl__tuned_values_text(enum tunable kernel, const int *values, struct strbuf *ret);

// The new text of a file: the device's entries for the kernels and classes in `measured` are
// replaced by those of the table.  Other valid lines of `old` are kept.
void attncl__tuned_merge(const char *old, size_t n, const char *device, const char *driver,
                         const struct tune_table *table,
                         const bool measured[N_TUNABLES][TUNE_MAX_CLASSES], struct strbuf *ret);

// -- the file (tuning_file.c): ATTNCL_TUNE, or attncl/tune.txt in the user's configuration directory

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

// The whole file, the caller's (attncl__free); *n_ret 0: there is none.  ERR_IO when it may not be read.
attncl_status attncl__tuning_text(char **data_ret, size_t *n_ret);
// Replaces the whole file.  ERR_IO when it cannot be written.
attncl_status attncl__tuning_write(const struct strbuf *text);

// -- tuning_table.c: the lines of the file

#define TUNING_FIRST_LINE "attncl-tune 1 " ATTNCL_VERSION_STRING
#define TUNING_HEAD                                                                                \
    TUNING_FIRST_LINE "\n# device, driver, kernel, class of shapes, values; by attncl tune\n"

enum { WHY_BYTES = 128 };

// True for an empty line and a comment.
bool attncl__tuning_is_ignored(struct slice line);
// False, and the reason, unless the line is an entry of some device.
bool attncl__tuning_is_entry(struct slice line, char why[WHY_BYTES]);

#endif
