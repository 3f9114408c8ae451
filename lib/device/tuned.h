// SPDX-License-Identifier: MIT
// Tuned rows: values that were measured on this device and stand in for what the library's own
// tables say.  `attncl tune` writes them, a context reads them once, planners ask for them here.
//
// A row is a hint: the consumer checks it as it checks its own rows, and what does not fit is
// rejected, never an error.  So a damaged or hostile file can make the library slow, not wrong.
#ifndef ATTNCL_DEVICE_TUNED_H
#define ATTNCL_DEVICE_TUNED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "device/caps.h"

// What can be tuned; names, classes and fields in tuned.c.
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
    N_TUNABLES
};

// The fields of each, in the order of a row's values.
enum { GEMM_CPU_TM, GEMM_CPU_TN, GEMM_CPU_TK };
enum { GEMM_GPU_BM, GEMM_GPU_BN, GEMM_GPU_BK, GEMM_GPU_TX, GEMM_GPU_TY };
enum { GEMM_BACKEND_CLBLAST };
enum { ATTENTION_CPU_BLOCK, ATTENTION_CPU_TILE };
enum { AFT_CPU_BLOCK_KIB, AFT_CPU_GROUP, AFT_CPU_SEGMENT };
enum { ROWS_CPU_ELEMENTS, ROWS_CPU_VW };
enum { ROWS_GPU_LS };
enum { FLAT_CPU_PER_GROUP, FLAT_CPU_VW };
enum { FLAT_GPU_LS };

// Classes of shapes.
enum { TUNE_SMALL, TUNE_MEDIUM, TUNE_LARGE }; // GEMM: elements of C
enum { TUNE_SHORT, TUNE_LONG };               // attention: keys
enum { TUNE_PLAIN, TUNE_MASKED };             // AFT
enum { TUNE_NARROW, TUNE_WIDE };              // rows: columns
enum { TUNE_ANY };

enum { TUNE_MAX_CLASSES = 3, TUNE_MAX_FIELDS = 5 };

// A field's values: low to high, multiples of `step`; step 0: powers of two.
struct tune_field {
    const char *name; // NULL ends a list
    int low, high, step;
};

struct tune_kernel {
    const char *name;
    unsigned variants;                         // bit i: devices of enum kernel_variant i use it
    const char *classes[TUNE_MAX_CLASSES + 1]; // ends with NULL
    struct tune_field fields[TUNE_MAX_FIELDS + 1];
};
extern const struct tune_kernel attncl__tune_kernels[N_TUNABLES];

struct tune_entry {
    int value[TUNE_MAX_FIELDS];
    int line; // of the file; 0: there is no row
    atomic_bool rejected;
    atomic_bool logged; // that it is in use
};

// A context's rows; all zeros: none.
struct tune_table {
    char *path;
    struct tune_entry entries[N_TUNABLES][TUNE_MAX_CLASSES];
};

// The values for this kernel and class, or NULL.  None on devices with an iteration cap: their
// planners count exactly.  The first time the log says so.  Any thread.
const int *attncl__tuned(const struct device_caps *caps, enum tunable kernel, int class);

// The row does not fit this device: said once, and it is gone.  `why`: "takes groups of 512; not
// used".
void attncl__tuned_reject(const struct device_caps *caps, enum tunable kernel, int class,
                          const char *why);

// A value is one the field takes.
bool attncl__tune_takes(const struct tune_field *field, long value);

// -- text (tuned_text.c)

// A file's rows for one device.  Lines that are none are logged by name and number, and left out.
// `path` is for the log.  Returns how many rows were taken.
int attncl__tuned_parse(const char *text, size_t n, const char *path, const char *device,
                        const char *driver, struct tune_table *table);

struct strbuf;
// "TM=192 TN=128 TK=256"
void attncl__tuned_values_text(enum tunable kernel, const int *values, struct strbuf *ret);
// The file with this table's rows for the device in place of those it has for the kernels and
// classes in `measured`; everything else of `old` that is a row is kept.
void attncl__tuned_merge(const char *old, size_t n, const char *device, const char *driver,
                         const struct tune_table *table,
                         const bool measured[N_TUNABLES][TUNE_MAX_CLASSES], struct strbuf *ret);

#endif
