// SPDX-License-Identifier: MIT

#include "op/row_launch.h"

struct rows attncl__rows(const struct tensor_desc *x)
{
    struct rows rows = {0};

    (void)attncl__desc_rows(x, &rows); // a view without rows was copied when the node was added
    return rows;
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Every row kernel runs in work-groups of up to the size that the widest rows get.
static size_t limit_tuned_group(const struct device_caps *caps, int wanted)
{
    const size_t max = attncl__group_for_row(caps, INT32_MAX);
    return (size_t)wanted < max ? (size_t)wanted : max;
}

// The most work-groups of `local` work-items along an axis.
static int64_t max_groups(const struct device_caps *caps, size_t local)
{
    return caps->is_gpu ? INT32_MAX / (int64_t)local : INT64_MAX;
}

static unsigned choose_cpu_vw(const struct device_caps *caps, const int *tuned, int field)
{
    return tuned ? (unsigned)tuned[field] : caps->vector_width;
}

int attncl__row_class(int64_t width)
{
    enum { WIDE = 512 };
    return width < WIDE ? TUNE_NARROW : TUNE_WIDE;
}

int64_t attncl__row_iterations(int64_t rows, int64_t width, unsigned vw, size_t lanes)
{
    enum { PASSES = 4 }; // over a row; kernels with more passes check their own iterations
    return rows * (PASSES * ceil_div(width, (int64_t)vw * (int64_t)lanes) + 1);
}

bool attncl__row_fits_work_item(const struct device_caps *caps, int64_t width)
{
    return caps->variant == VARIANT_CPU &&
           attncl__loops_fit(caps, attncl__row_iterations(1, width, caps->vector_width, 1));
}

struct row_launch attncl__row_launch(const struct device_caps *caps, const char *file,
                                     const char *kernel, int64_t rows, int64_t width)
{
    // CPU: a work-group is one work-item with rows of some 64K elements, which amortise its start
    // and let kernels prefetch, but eight work-groups per core if there are enough rows.  GPU: a
    // work-group per row.
    enum { ELEMENTS = 65536, GROUPS_PER_CORE = 8, PASSES = 16 };
    const bool cpu = attncl__row_fits_work_item(caps, width);
    const int *tuned =
        attncl__tuned(caps, cpu ? TUNE_ROWS_CPU : TUNE_ROWS_GPU, attncl__row_class(width));
    const int64_t elements = caps->max_loop_iterations ? (int64_t)caps->max_loop_iterations / PASSES
                             : cpu && tuned            ? tuned[ROWS_CPU_ELEMENTS]
                                                       : ELEMENTS;
    const size_t local = cpu     ? 1
                         : tuned ? limit_tuned_group(caps, tuned[ROWS_GPU_LS])
                                 : attncl__group_for_row(caps, width);
    const int64_t wanted = cpu ? elements / (width > 16 ? width : 16) : 1;
    const int64_t shared = ceil_div(rows, GROUPS_PER_CORE * (int64_t)caps->compute_units);
    const int64_t max = min_i64(wanted, shared);
    const int64_t min = ceil_div(rows, max_groups(caps, local));
    const int64_t per_group = max > min ? max : min > 1 ? min : 1;
    struct row_launch config = {kspec_begin(file, kernel),
                                grid_1d(ceil_div(rows, per_group), local), per_group,
                                cpu ? choose_cpu_vw(caps, tuned, ROWS_CPU_VW) : 1};

    config.grid.iterations = attncl__row_iterations(per_group, width, config.vw, local);
    kspec_set_vw_ls(&config.spec, config.vw, local);
    return config;
}

struct group_launch attncl__group_launch(const struct device_caps *caps, const char *file,
                                         const char *kernel, int64_t width)
{
    const bool cpu = caps->variant == VARIANT_CPU;
    struct group_launch p = {.spec = kspec_begin(file, kernel),
                             .local = cpu ? 1 : attncl__group_for_row(caps, width),
                             .vw = cpu ? caps->vector_width : 1};

    kspec_set_vw_ls(&p.spec, p.vw, p.local);
    return p;
}

struct item_launch attncl__item_launch(const struct device_caps *caps, const char *file,
                                       const char *kernel, int64_t count)
{
    enum { WIDTH = 4 * 64 };
    const struct group_launch p = attncl__group_launch(caps, file, kernel, WIDTH);
    const int64_t per_group = (int64_t)p.local * p.vw;

    return (struct item_launch){p.spec, grid_1d(ceil_div(count, per_group), p.local)};
}

struct elementwise_launch attncl__elementwise_launch(const struct device_caps *caps,
                                                     const char *file, const char *kernel,
                                                     int64_t count)
{
    // CPU: one work-item takes up to 16K elements in wide vectors, which amortise its start, but eight
    // work-groups per core if there are enough elements.  GPU: one float4 per work-item, more only
    // beyond the limit of work-groups.
    enum { MIN_ELEMENTS = 1024, MAX_ELEMENTS = 16384, GROUPS_PER_CORE = 8 };
    const bool cpu = caps->variant == VARIANT_CPU;
    const int64_t shared =
        count / (GROUPS_PER_CORE * (int64_t)caps->compute_units) / MIN_ELEMENTS * MIN_ELEMENTS;
    const int64_t walked = shared > MIN_ELEMENTS ? min_i64(shared, MAX_ELEMENTS) : MIN_ELEMENTS;
    const int *tuned = attncl__tuned(caps, cpu ? TUNE_FLAT_CPU : TUNE_FLAT_GPU, TUNE_ANY);
    const size_t local = cpu     ? 1
                         : tuned ? limit_tuned_group(caps, tuned[FLAT_GPU_LS])
                                 : attncl__group_for_row(caps, 1024);
    const int64_t whole = 4 * (int64_t)local;
    const int64_t float4s = ceil_div(ceil_div(count, max_groups(caps, local)), whole);
    const int64_t per_group = !cpu    ? (float4s > 1 ? float4s : 1) * whole
                              : tuned ? tuned[FLAT_CPU_PER_GROUP]
                                      : walked;
    struct elementwise_launch config = {kspec_begin(file, kernel),
                                        grid_1d(ceil_div(count, per_group), local), per_group,
                                        cpu ? choose_cpu_vw(caps, tuned, FLAT_CPU_VW) : 4};

    kspec_set_vw_ls(&config.spec, config.vw, local);
    return config;
}
