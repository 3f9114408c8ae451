// SPDX-License-Identifier: MIT
//
// Tuned rows as text.  A first line, then a line each:
//
//   attncl-tune 1 0.1.0
//   DEVICE <tab> DRIVER <tab> KERNEL <tab> CLASS <tab> NAME=VALUE NAME=VALUE ...
//
// Empty lines and lines that begin with # say nothing.  Rows of another version of the library were
// measured against other tables and are left out.

#include <stdio.h>
#include <string.h>

#include "attncl/version.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "device/tuned.h"

static const char first_line[] = "attncl-tune 1 " ATTNCL_VERSION_STRING;

// Of a thousand bad lines only the first few are logged.
enum { MAX_COMPLAINTS = 8, NAME_BYTES = 128, WHY_BYTES = 128 };
enum cell { CELL_DEVICE, CELL_DRIVER, CELL_KERNEL, CELL_CLASS, CELL_VALUES, N_CELLS };

struct piece {
    const char *at;
    size_t n;
};

struct line {
    struct piece text;
    int number;
    struct piece cell[N_CELLS];
};

// Takes the next line off `rest`; false at the end.
static bool next_line(struct piece *rest, struct line *line)
{
    if (rest->n == 0)
        return false;
    const char *end = memchr(rest->at, '\n', rest->n);
    const size_t n = end ? (size_t)(end - rest->at) : rest->n;

    line->text = (struct piece){rest->at, n};
    ++line->number;
    rest->at += end ? n + 1 : n;
    rest->n -= end ? n + 1 : n;
    return true;
}

static bool piece_is(struct piece p, const char *text)
{
    return p.n == strlen(text) && memcmp(p.at, text, p.n) == 0;
}

static bool says_nothing(const struct line *line)
{
    return line->text.n == 0 || line->text.at[0] == '#';
}

static bool split(struct line *line)
{
    struct piece rest = line->text;

    for (int i = 0; i < N_CELLS; ++i) {
        const char *tab = memchr(rest.at, '\t', rest.n);
        const bool last = i == N_CELLS - 1;
        if (last != (tab == NULL))
            return false;
        const size_t n = last ? rest.n : (size_t)(tab - rest.at);
        line->cell[i] = (struct piece){rest.at, n};
        rest.at += last ? n : n + 1;
        rest.n -= last ? n : n + 1;
    }
    return true;
}

// A device's name fits one cell of one line, whatever the driver put in it.
static void clean(const char *name, char ret[NAME_BYTES])
{
    size_t n = 0;

    for (; name[n] && n < NAME_BYTES - 1; ++n)
        ret[n] = (unsigned char)name[n] < 0x20 ? ' ' : name[n];
    ret[n] = '\0';
    if (ret[0] == '#')
        ret[0] = ' ';
}

// A value's name and number off `rest`: "TM=192".
static bool next_value(struct piece *rest, struct piece *name, long *value)
{
    size_t n = 0;

    while (n < rest->n && rest->at[n] != '=' && rest->at[n] != ' ')
        ++n;
    *name = (struct piece){rest->at, n};
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

// False, and the reason, unless the cell has each of the kernel's fields once with a value it
// takes.
static bool parse_values(struct piece rest, const struct tune_kernel *kernel,
                         int ret[TUNE_MAX_FIELDS], char why[WHY_BYTES])
{
    bool seen[TUNE_MAX_FIELDS] = {false};
    struct piece name;
    long value;

    while (rest.n > 0) {
        if (!next_value(&rest, &name, &value)) {
            snprintf(why, WHY_BYTES, "values are NAME=NUMBER, one space apart");
            return false;
        }
        int i = 0;
        while (kernel->fields[i].name && !piece_is(name, kernel->fields[i].name))
            ++i;
        const struct tune_field *f = &kernel->fields[i];
        if (!f->name || seen[i]) {
            snprintf(why, WHY_BYTES, "%s has no value of this name, or has it twice", kernel->name);
            return false;
        }
        if (!attncl__tune_takes(f, value)) {
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
            if (piece_is(line->cell[CELL_KERNEL], attncl__tune_kernels[k].name) &&
                piece_is(line->cell[CELL_CLASS], attncl__tune_kernels[k].classes[c])) {
                *kernel_ret = k;
                *class_ret = c;
                return true;
            }
    return false;
}

// A row of this device into the table.  False, and the reason, when it is none.
static bool take_row(const struct line *line, struct tune_table *table, char why[WHY_BYTES])
{
    int kernel, class, values[TUNE_MAX_FIELDS] = {0};

    if (!find_class(line, &kernel, &class)) {
        snprintf(why, WHY_BYTES, "no kernel of this name has this class");
        return false;
    }
    if (!parse_values(line->cell[CELL_VALUES], &attncl__tune_kernels[kernel], values, why))
        return false;
    struct tune_entry *entry = &table->entries[kernel][class];
    if (entry->line) {
        snprintf(why, WHY_BYTES, "line %d has this row already", entry->line);
        return false;
    }
    memcpy(entry->value, values, sizeof entry->value);
    entry->line = line->number;
    return true;
}

static bool is_of(const struct line *line, const char *device, const char *driver)
{
    return piece_is(line->cell[CELL_DEVICE], device) && piece_is(line->cell[CELL_DRIVER], driver);
}

int attncl__tuned_parse(const char *text, size_t n, const char *path, const char *device,
                        const char *driver, struct tune_table *table)
{
    char name[NAME_BYTES], version[NAME_BYTES], why[WHY_BYTES];
    struct piece rest = {text, n};
    struct line line = {.number = 0};
    int taken = 0, complaints = 0;

    clean(device, name);
    clean(driver, version);
    if (!next_line(&rest, &line))
        return 0;
    if (!piece_is(line.text, first_line)) {
        attncl__log(ATTNCL_LOG_WARN, "%s:1: does not begin with \"%s\"; attncl tune writes it anew",
                    path, first_line);
        return 0;
    }
    while (next_line(&rest, &line)) {
        if (says_nothing(&line))
            continue;
        snprintf(why, sizeof why, "a row has %d cells with tabs between them", N_CELLS);
        if (split(&line) && (!is_of(&line, name, version) || take_row(&line, table, why))) {
            taken += is_of(&line, name, version);
            continue;
        }
        if (++complaints <= MAX_COMPLAINTS)
            attncl__log(ATTNCL_LOG_WARN, "%s:%d: %s; left out", path, line.number, why);
    }
    if (complaints > MAX_COMPLAINTS)
        attncl__log(ATTNCL_LOG_WARN, "%s: %d more lines left out", path,
                    complaints - MAX_COMPLAINTS);
    return taken;
}

void attncl__tuned_values_text(enum tunable kernel, const int *values, struct strbuf *ret)
{
    const struct tune_field *fields = attncl__tune_kernels[kernel].fields;

    for (int i = 0; fields[i].name; ++i)
        attncl__strbuf_add(ret, "%s%s=%d", i ? " " : "", fields[i].name, values[i]);
}

// A line of the old file that stays.
static bool stays(struct line *line, const char *device, const char *driver,
                  const bool measured[N_TUNABLES][TUNE_MAX_CLASSES])
{
    int kernel, class;

    if (says_nothing(line) || memchr(line->text.at, '\0', line->text.n) || !split(line))
        return false;
    if (!is_of(line, device, driver))
        return true;
    return find_class(line, &kernel, &class) && !measured[kernel][class];
}

void attncl__tuned_merge(const char *old, size_t n, const char *device, const char *driver,
                         const struct tune_table *table,
                         const bool measured[N_TUNABLES][TUNE_MAX_CLASSES], struct strbuf *ret)
{
    char name[NAME_BYTES], version[NAME_BYTES];
    struct piece rest = {old, n};
    struct line line = {.number = 0};

    clean(device, name);
    clean(driver, version);
    attncl__strbuf_add(
        ret, "%s\n# device, driver, kernel, class of shapes, values; by attncl tune\n", first_line);
    if (next_line(&rest, &line) && piece_is(line.text, first_line))
        while (next_line(&rest, &line))
            if (stays(&line, name, version, measured)) {
                attncl__strbuf_add_bytes(ret, line.text.at, line.text.n);
                attncl__strbuf_add(ret, "\n");
            }
    for (int k = 0; k < N_TUNABLES; ++k)
        for (int c = 0; attncl__tune_kernels[k].classes[c]; ++c) {
            if (!measured[k][c] || !table->entries[k][c].line)
                continue;
            attncl__strbuf_add(ret, "%s\t%s\t%s\t%s\t", name, version, attncl__tune_kernels[k].name,
                               attncl__tune_kernels[k].classes[c]);
            attncl__tuned_values_text((enum tunable)k, table->entries[k][c].value, ret);
            attncl__strbuf_add(ret, "\n");
        }
}
