// SPDX-License-Identifier: MIT
//
// The tunable fields of each kernel with their limits, and the table as text: a first line, then one line per entry.
//
//   attncl-tune 1 0.1.0
//   DEVICE <tab> DRIVER <tab> KERNEL <tab> CLASS <tab> NAME=VALUE NAME=VALUE ...
//
// Empty lines and lines that begin with # are ignored.  Other library versions' entries are left out,
// because they were measured with other kernels.

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "store/tuning_table.h"

#define GEMM_SIZES "small", "medium", "large"
enum { CPU = 1, GPU = 2 }; // bits of enum kernel_variant

// The limits keep unsuitable entries cheap to reject: no kernel is compiled with larger arrays or
// work-groups, and no scratch exceeds 16 MiB.
const struct tune_kernel attncl__tune_kernels[N_TUNABLES] = {
    [TUNE_GEMM_CPU] = {"gemm_cpu",
                       CPU,
                       {GEMM_SIZES},
                       {{"TM", 6, 1536, 6}, {"TN", 8, 1536, 8}, {"TK", 16, 1024, 16}}},
    [TUNE_GEMM_GPU] = {"gemm_gpu",
                       GPU,
                       {GEMM_SIZES, "skinny"},
                       {{"BM", 8, 256, 4},
                        {"BN", 8, 256, 4},
                        {"BK", 4, 64, 4},
                        {"TX", 1, 32, 0},
                        {"TY", 1, 32, 0}}},
    [TUNE_GEMM_BACKEND] = {"gemm_by", CPU | GPU, {"single", "batch"}, {{"CLBLAST", 0, 1, 1}}},
    [TUNE_ATTENTION_CPU] = {"attention_cpu",
                            CPU,
                            {"short", "long"},
                            {{"BLOCK", 6, 192, 6}, {"TILE", 32, 1024, 32}}},
    [TUNE_AFT_CPU] = {"aft_cpu",
                      CPU,
                      {"plain", "masked"},
                      {{"SLICE_KIB", 256, 16384, 256}, {"GROUP", 1, 256, 1}, {"BLOCKS", 1, 32, 1}}},
    [TUNE_ROWS_CPU] = {"rows_cpu",
                       CPU,
                       {"narrow", "wide"},
                       {{"ELEMENTS", 256, 1 << 22, 0}, {"VW", 4, 16, 0}}},
    [TUNE_ROWS_GPU] = {"rows_gpu", GPU, {"narrow", "wide"}, {{"LS", 16, 256, 0}}},
    [TUNE_FLAT_CPU] = {"flat_cpu", CPU, {"any"}, {{"PER_GROUP", 64, 1 << 20, 0}, {"VW", 4, 16, 0}}},
    [TUNE_FLAT_GPU] = {"flat_gpu", GPU, {"any"}, {{"LS", 16, 256, 0}}},
    [TUNE_THREE_TERMS] = {"three_terms", GPU, {"gemm", "attention"}, {{"USED", 0, 1, 1}}},
};

bool attncl__tune_is_allowed(const struct tune_field *field, long value)
{
    if (value < field->low || value > field->high)
        return false;
    return field->step ? value % field->step == 0 : (value & (value - 1)) == 0;
}

enum { MAX_LOGGED = 8, NAME_BYTES = 128 }; // bad lines logged; a device's or driver's name

enum cell { CELL_DEVICE, CELL_DRIVER, CELL_KERNEL, CELL_CLASS, CELL_VALUES, N_CELLS };

struct line {
    struct slice text;
    struct slice cell[N_CELLS];
    int number;
};

bool attncl__tuning_is_ignored(struct slice line)
{
    return line.n == 0 || line.at[0] == '#';
}

static bool split_cells(struct line *line)
{
    return attncl__split_line(line->text, N_CELLS, line->cell);
}

// Makes a driver's text fit one cell.
static void clean_name(const char *name, char ret[NAME_BYTES])
{
    size_t n = 0;

    for (; name[n] && n < NAME_BYTES - 1; ++n)
        ret[n] = (unsigned char)name[n] < 0x20 ? ' ' : name[n];
    ret[n] = '\0';
    if (ret[0] == '#')
        ret[0] = ' ';
}

// Removes a name and a value, "TM=192", from `rest`.
static bool parse_value(struct slice *rest, struct slice *name, long *value)
{
    size_t n = 0;

    while (n < rest->n && rest->at[n] != '=' && rest->at[n] != ' ')
        ++n;
    *name = (struct slice){rest->at, n};
    if (n == 0 || n == rest->n || rest->at[n] != '=')
        return false;
    const size_t digits = ++n;
    for (*value = 0; n < rest->n && rest->at[n] >= '0' && rest->at[n] <= '9'; ++n) {
        if (n - digits >= 9)
            return false;
        *value = 10 * *value + (rest->at[n] - '0');
    }
    if (n == digits || (n < rest->n && rest->at[n] != ' '))
        return false;
    n += n < rest->n;
    rest->at += n;
    rest->n -= n;
    return true;
}

// False, with the reason, unless the cell has each field of the kernel once, within its limits.
static bool parse_values(struct slice rest, const struct tune_kernel *kernel,
                         int ret[TUNE_MAX_FIELDS], char why[WHY_BYTES])
{
    bool seen[TUNE_MAX_FIELDS] = {false};
    struct slice name;
    long value;

    while (rest.n > 0) {
        if (!parse_value(&rest, &name, &value)) {
            snprintf(why, WHY_BYTES, "values are NAME=NUMBER, one space apart");
            return false;
        }
        int i = 0;
        while (kernel->fields[i].name && !attncl__slice_is(name, kernel->fields[i].name))
            ++i;
        const struct tune_field *f = &kernel->fields[i];
        if (!f->name || seen[i]) {
            snprintf(why, WHY_BYTES, "%s has no value of this name, or has it twice", kernel->name);
            return false;
        }
        if (!attncl__tune_is_allowed(f, value)) {
            snprintf(why, WHY_BYTES, "%s = %ld, it can be %d to %d, %s %d", f->name, value, f->low,
                     f->high, f->step ? "multiples of" : "powers of", f->step ? f->step : 2);
            return false;
        }
        seen[i] = true;
        ret[i] = (int)value;
    }
    for (int i = 0; kernel->fields[i].name; ++i)
        if (!seen[i]) {
            snprintf(why, WHY_BYTES, "%s is missing", kernel->fields[i].name);
            return false;
        }
    return true;
}

static bool find_class(const struct line *line, int *kernel_ret, int *class_ret)
{
    for (int k = 0; k < N_TUNABLES; ++k)
        for (int c = 0; attncl__tune_kernels[k].classes[c]; ++c)
            if (attncl__slice_is(line->cell[CELL_KERNEL], attncl__tune_kernels[k].name) &&
                attncl__slice_is(line->cell[CELL_CLASS], attncl__tune_kernels[k].classes[c])) {
                *kernel_ret = k;
                *class_ret = c;
                return true;
            }
    return false;
}

// False, with the reason, when the line is no entry.
static bool parse_entry(const struct line *line, int *kernel_ret, int *class_ret,
                        int values[TUNE_MAX_FIELDS], char why[WHY_BYTES])
{
    snprintf(why, WHY_BYTES, "no kernel of this name has this class");
    return find_class(line, kernel_ret, class_ret) &&
           parse_values(line->cell[CELL_VALUES], &attncl__tune_kernels[*kernel_ret], values, why);
}

// Adds a line to the table.  False, with the reason, when it is no entry or a repeated one.
static bool add_entry(const struct line *line, struct tune_table *table, char why[WHY_BYTES])
{
    int kernel, class, values[TUNE_MAX_FIELDS] = {0};

    if (!parse_entry(line, &kernel, &class, values, why))
        return false;
    struct tune_entry *entry = &table->entries[kernel][class];
    if (entry->line) {
        snprintf(why, WHY_BYTES, "line %d has this entry already", entry->line);
        return false;
    }
    memcpy(entry->value, values, sizeof entry->value);
    entry->line = line->number;
    return true;
}

static bool is_for(const struct line *line, const char *device, const char *driver)
{
    return attncl__slice_is(line->cell[CELL_DEVICE], device) &&
           attncl__slice_is(line->cell[CELL_DRIVER], driver);
}

bool attncl__tuning_is_entry(struct slice text, char why[WHY_BYTES])
{
    int kernel, class, values[TUNE_MAX_FIELDS] = {0};
    struct line line = {.text = text};

    snprintf(why, WHY_BYTES, "an entry has %d cells with tabs between them", N_CELLS);
    if (memchr(text.at, '\0', text.n) || !split_cells(&line))
        return false;
    return parse_entry(&line, &kernel, &class, values, why);
}

int attncl__tuned_parse(const char *text, size_t n, const char *path, const char *device,
                        const char *driver, struct tune_table *table)
{
    char name[NAME_BYTES], version[NAME_BYTES], why[WHY_BYTES];
    struct slice rest = {text, n};
    struct line line = {.number = 1};
    int taken = 0, n_bad = 0;

    clean_name(device, name);
    clean_name(driver, version);
    if (!attncl__next_line(&rest, &line.text))
        return 0;
    if (!attncl__slice_is(line.text, TUNING_FIRST_LINE)) {
        attncl__log(ATTNCL_LOG_WARN, "%s:1: does not begin with \"%s\"; attncl tune writes it anew",
                    path, TUNING_FIRST_LINE);
        return 0;
    }
    while (attncl__next_line(&rest, &line.text)) {
        line.number += 1;
        if (attncl__tuning_is_ignored(line.text))
            continue;
        snprintf(why, sizeof why, "an entry has %d cells with tabs between them", N_CELLS);
        if (split_cells(&line) && (!is_for(&line, name, version) || add_entry(&line, table, why))) {
            taken += is_for(&line, name, version);
            continue;
        }
        if (++n_bad <= MAX_LOGGED)
            attncl__log(ATTNCL_LOG_WARN, "%s:%d: %s; left out", path, line.number, why);
    }
    if (n_bad > MAX_LOGGED)
        attncl__log(ATTNCL_LOG_WARN, "%s: %d more lines left out", path, n_bad - MAX_LOGGED);
    return taken;
}

void attncl__tuned_add_values(enum tunable kernel, const int *values, struct strbuf *ret)
{
    const struct tune_field *fields = attncl__tune_kernels[kernel].fields;

    for (int i = 0; fields[i].name; ++i)
        attncl__strbuf_add(ret, "%s%s=%d", i ? " " : "", fields[i].name, values[i]);
}

// True for lines of the old file that stay in the new one.
static bool is_kept(struct line *line, const char *device, const char *driver,
                    const bool measured[N_TUNABLES][TUNE_MAX_CLASSES])
{
    int kernel, class;

    if (attncl__tuning_is_ignored(line->text) || memchr(line->text.at, '\0', line->text.n) ||
        !split_cells(line))
        return false;
    if (!is_for(line, device, driver))
        return true;
    return find_class(line, &kernel, &class) && !measured[kernel][class];
}

void attncl__tuned_merge(const char *old, size_t n, const char *device, const char *driver,
                         const struct tune_table *table,
                         const bool measured[N_TUNABLES][TUNE_MAX_CLASSES], struct strbuf *ret)
{
    char name[NAME_BYTES], version[NAME_BYTES];
    struct slice rest = {old, n};
    struct line line = {.number = 0};

    clean_name(device, name);
    clean_name(driver, version);
    attncl__strbuf_add(ret, "%s", TUNING_HEAD);
    if (attncl__next_line(&rest, &line.text) && attncl__slice_is(line.text, TUNING_FIRST_LINE))
        while (attncl__next_line(&rest, &line.text))
            if (is_kept(&line, name, version, measured)) {
                attncl__strbuf_add_bytes(ret, line.text.at, line.text.n);
                attncl__strbuf_add(ret, "\n");
            }
    for (int k = 0; k < N_TUNABLES; ++k)
        for (int c = 0; attncl__tune_kernels[k].classes[c]; ++c) {
            if (!measured[k][c] || !table->entries[k][c].line)
                continue;
            attncl__strbuf_add(ret, "%s\t%s\t%s\t%s\t", name, version, attncl__tune_kernels[k].name,
                               attncl__tune_kernels[k].classes[c]);
            attncl__tuned_add_values((enum tunable)k, table->entries[k][c].value, ret);
            attncl__strbuf_add(ret, "\n");
        }
}
