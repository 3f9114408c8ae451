// SPDX-License-Identifier: MIT
//
// How kernels that need all of a row share it out among work-items (cl/common/shares.clh), GPU
// form: which shape for which width, as data.
//
// A row that fits the registers of a few work-items is read once, and a group has several; longer
// ones take more work-items, and the longest are read twice.  Vectors are float4s where rows
// consist of whole ones, which then are aligned, else floats.

#include "op/op.h"

struct share_row {
    enum device_vendor vendor; // VENDOR_OTHER: any
    unsigned group_multiple;   // 0: any
    int items, held, rows;     // work-items of a row, float4s that each holds, rows of a group
};

// By columns, of which a row takes at most 4 items held; several for as many: by vendor, and by how
// many arrays are held.  From what PyTorch, llm.c and
// oneDNN do (docs/kernels.md); not yet measured on a GPU.
static const struct share_row share_rows[] = {
    {VENDOR_OTHER, 0, 8, 2, 16},  // up to 64 columns
    {VENDOR_OTHER, 0, 16, 2, 8},  // 128
    {VENDOR_OTHER, 0, 32, 2, 4},  // 256
    {VENDOR_OTHER, 0, 32, 4, 4},  // 512
    {VENDOR_OTHER, 0, 64, 2, 2},  // 512 of four arrays
    {VENDOR_AMD, 64, 64, 4, 4},   // 1024: a wave for each row
    {VENDOR_INTEL, 0, 64, 4, 2},  // 1024: half the registers of others
    {VENDOR_OTHER, 0, 32, 8, 4},  // 1024
    {VENDOR_OTHER, 0, 64, 4, 2},  // 1024 of two arrays
    {VENDOR_OTHER, 0, 128, 2, 1}, // 1024 of four
    {VENDOR_INTEL, 0, 256, 4, 1}, // 4096
    {VENDOR_OTHER, 0, 128, 8, 1}, // 4096
    {VENDOR_OTHER, 0, 256, 4, 1}, // 4096 of two arrays
    {VENDOR_OTHER, 0, 256, 2, 1}, // 2048 of four
    {VENDOR_OTHER, 0, 256, 8, 1}, // 8192
    {VENDOR_OTHER, 0, 256, 0, 1}, // any
    {VENDOR_OTHER, 0, 64, 0, 1},  {VENDOR_OTHER, 0, 16, 0, 1}, {VENDOR_OTHER, 0, 1, 0, 1},
};
enum { N_SHARE_ROWS = sizeof share_rows / sizeof share_rows[0] };

// float4s that a work-item keeps of all arrays together; work-items of a group where a row takes
// fewer; groups for each multiprocessor that keep it busy.
enum { MOST_HELD = 8, GROUP = 128, GROUPS_PER_UNIT = 2 };

static bool holds(const struct share_row *r, const struct row_work *w)
{
    return r->held == 0 ||
           (4 * (int64_t)r->items * r->held >= w->width && r->held * w->arrays <= MOST_HELD);
}

static bool is_for_device(const struct device_caps *caps, const struct share_row *r)
{
    return (r->vendor == VENDOR_OTHER || r->vendor == caps->vendor) &&
           (r->group_multiple == 0 || r->group_multiple == caps->group_multiple) &&
           (size_t)r->items <= caps->max_group;
}

static void add_shares(struct kspec *spec, int items, int held)
{
    kspec_int(spec, "ITEMS", items);
    kspec_int(spec, "HELD", held);
}

static struct row_pass pass_of(const struct device_caps *caps, const struct row_work *w,
                               const struct share_row *r)
{
    const unsigned vw = w->whole && r->items > 1 ? 4 : 1;
    int64_t rows = r->rows;

    while (rows > 1 && ((size_t)(rows * r->items) > caps->max_group ||
                        (rows * r->items > 32 &&
                         ceil_div(w->rows, rows) < GROUPS_PER_UNIT * (int64_t)caps->compute_units)))
        rows /= 2;
    struct row_pass pass = {w->spec, grid_1d(ceil_div(w->rows, rows), (size_t)(rows * r->items)),
                            rows, vw};
    kspec_form(&pass.spec, vw, pass.grid.local[0]);
    add_shares(&pass.spec, r->items, r->held * (4 / (int)vw));
    return pass;
}

// The tuned number of work-items, with as little held as takes the row.
static bool tuned_pass(struct launcher *l, const struct row_work *w, struct row_pass *ret)
{
    const int class = attncl__row_class(w->width);
    const int *tuned = attncl__tuned(l->caps, TUNE_ROWS_GPU, class);

    if (!tuned)
        return false;
    const int items = tuned[ROWS_GPU_LS];
    struct share_row r = {.items = items, .rows = items < GROUP ? GROUP / items : 1};
    for (int held = MOST_HELD; held > 0; held /= 2)
        if (holds(&(struct share_row){.items = items, .held = held}, w))
            r.held = held;
    if ((size_t)items <= l->caps->max_group) {
        *ret = pass_of(l->caps, w, &r);
        if (attncl__launch_fits_registers(l, &ret->spec, ret->grid.local[0]))
            return true;
    }
    attncl__tuned_refuse(l->caps, TUNE_ROWS_GPU, class, "does not run on this device; not used");
    return false;
}

// Rows of which nothing is kept: as many work-items as have two vectors each, in large groups.
static struct row_pass loose_pass(struct launcher *l, const struct row_work *w)
{
    static const int groups[] = {256, 64, 16, 4, 1};
    struct row_pass pass = {.rows_per_group = 1};

    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; ++i) {
        struct share_row r = {.items = groups[i] < 8 ? groups[i] : 8, .held = 0};
        while (r.items < groups[i] && 8 * (int64_t)r.items < w->width)
            r.items *= 2;
        r.rows = groups[i] / r.items;
        pass = pass_of(l->caps, w, &r);
        if (is_for_device(l->caps, &r) && attncl__launch_fits(l, &pass.spec, pass.grid.local[0]))
            break;
    }
    return pass;
}

// The first row that keeps all values of a work-item in registers; else any; else the last, which
// says at launch why it does not run.
static struct row_pass gpu_pass(struct launcher *l, const struct row_work *w)
{
    struct row_pass pass = {.rows_per_group = 1};

    if (tuned_pass(l, w, &pass))
        return pass;
    for (int registers = 1; registers >= 0; --registers)
        for (int i = 0; i < N_SHARE_ROWS; ++i) {
            if (!is_for_device(l->caps, &share_rows[i]) || !holds(&share_rows[i], w))
                continue;
            pass = pass_of(l->caps, w, &share_rows[i]);
            if (registers ? attncl__launch_fits_registers(l, &pass.spec, pass.grid.local[0])
                          : attncl__launch_fits(l, &pass.spec, pass.grid.local[0]))
                return pass;
        }
    return pass;
}

void attncl__share_nothing(struct kspec *spec, size_t group)
{
    add_shares(spec, (int)group, 0);
}

struct row_pass attncl__share_rows(struct launcher *l, const struct row_work *w)
{
    if (l->caps->form == FORM_GPU)
        return w->arrays > 0 ? gpu_pass(l, w) : loose_pass(l, w);
    struct row_pass pass =
        attncl__row_pass(l->caps, w->spec.file, w->spec.kernel, w->rows, w->width);
    pass.spec = w->spec;
    kspec_form(&pass.spec, pass.vw, 1);
    attncl__share_nothing(&pass.spec, 1);
    return pass;
}

bool attncl__rows_are_whole(int64_t start, const struct rows *rows)
{
    return start % 4 == 0 && rows->stride % 4 == 0 && rows->width % 4 == 0;
}

struct row_pass attncl__group_rows(struct launcher *l, const char *file, const char *kernel,
                                   int64_t rows, int64_t width)
{
    struct row_pass pass = attncl__row_pass(l->caps, file, kernel, rows, width);
    size_t local = pass.grid.local[0];

    do {
        pass.spec = kspec_begin(file, kernel);
        pass.grid.local[0] = local;
        kspec_form(&pass.spec, pass.vw, local);
        attncl__share_nothing(&pass.spec, local);
        local = local > 4 ? local / 2 : 1; // the kernels know no group of two
    } while (pass.grid.local[0] > 1 && !attncl__launch_fits(l, &pass.spec, pass.grid.local[0]));
    return pass;
}
