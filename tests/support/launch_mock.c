// SPDX-License-Identifier: MIT

#include <clblast_c.h>
#include <stdlib.h>

#include "device/context.h"
#include "support/launch_mock.h"

static const struct launch_mock *current;
static size_t argument_bytes, local_bytes;
bool launch_mock_spills_nothing;

void launch_mock_set(const struct launch_mock *mock)
{
    current = mock;
}

size_t launch_mock_argument_bytes(void)
{
    return argument_bytes;
}

size_t launch_mock_local_bytes(void)
{
    return local_bytes;
}

struct device_caps launch_mock_gpu(enum device_vendor vendor, unsigned multiple, unsigned units)
{
    return (struct device_caps){.vendor = vendor,
                                .variant = VARIANT_GPU,
                                .is_gpu = true,
                                .compute_units = units,
                                .max_group = 256,
                                .local_bytes = 32768,
                                .vector_width = 4,
                                .group_multiple = multiple};
}

// The linker's --wrap sends calls of X to __wrap_X; __real_X is the library's function.
attncl_status __real_attncl__launch(struct launcher *l, const struct kspec *spec, struct grid grid,
                                    const struct arg *args, size_t n_args);
bool __real_attncl__kernel_fits(struct launcher *l, const struct kspec *spec, size_t local,
                                bool no_spills);
attncl_status __real_attncl__kernel_query_limits(attncl_context *ctx, cl_kernel kernel,
                                                 size_t *group_ret, size_t *local_ret,
                                                 size_t *private_ret);
attncl_status __wrap_attncl__kernel_query_limits(attncl_context *ctx, cl_kernel kernel,
                                                 size_t *group_ret, size_t *local_ret,
                                                 size_t *private_ret);
attncl_status __wrap_attncl__launch(struct launcher *l, const struct kspec *spec, struct grid grid,
                                    const struct arg *args, size_t n_args);
bool __wrap_attncl__kernel_fits(struct launcher *l, const struct kspec *spec, size_t local,
                                bool no_spills);
attncl_status __real_attncl__launch_part(struct launcher *l, const struct kspec *spec,
                                         struct grid grid, const struct arg *shared,
                                         size_t n_shared, const struct arg *part, size_t n_part);
attncl_status __wrap_attncl__launch_part(struct launcher *l, const struct kspec *spec,
                                         struct grid grid, const struct arg *shared,
                                         size_t n_shared, const struct arg *part, size_t n_part);

attncl_status __wrap_attncl__launch(struct launcher *l, const struct kspec *spec, struct grid grid,
                                    const struct arg *args, size_t n_args)
{
    if (!current)
        return __real_attncl__launch(l, spec, grid, args, n_args);
    if (grid.groups[0] == 0 || grid.groups[1] == 0 || grid.groups[2] == 0)
        return ATTNCL_OK;
    argument_bytes = local_bytes = 0;
    for (size_t i = 0; i < n_args; ++i) {
        local_bytes += args[i].kind == ARG_LOCAL ? args[i].u.local_bytes : 0;
        argument_bytes += args[i].kind == ARG_MEM || args[i].kind == ARG_I64 ? 8 : 4;
    }
    return current->launch(spec, &grid);
}

attncl_status __wrap_attncl__launch_part(struct launcher *l, const struct kspec *spec,
                                         struct grid grid, const struct arg *shared,
                                         size_t n_shared, const struct arg *part, size_t n_part)
{
    struct arg_list args = {.n = 0};

    if (!current)
        return __real_attncl__launch_part(l, spec, grid, shared, n_shared, part, n_part);
    arg_list_add(&args, shared, n_shared);
    for (int i = 0; i < N_PARTS; ++i) {
        arg_list_add(&args, part, n_part);
        arg_list_add(&args, ARGS(arg_i32(0)));
    }
    return __wrap_attncl__launch(l, spec, grid, args.arg, args.n);
}

attncl_status __wrap_attncl__kernel_query_limits(attncl_context *ctx, cl_kernel kernel,
                                                 size_t *group_ret, size_t *local_ret,
                                                 size_t *private_ret)
{
    const char *most = getenv("TEST_KERNEL_GROUP");
    const attncl_status status =
        __real_attncl__kernel_query_limits(ctx, kernel, group_ret, local_ret, private_ret);

    if (most && *group_ret > (size_t)atol(most))
        *group_ret = (size_t)atol(most);
    if (launch_mock_spills_nothing)
        *private_ret = 0;
    return status;
}

bool __wrap_attncl__kernel_fits(struct launcher *l, const struct kspec *spec, size_t local,
                                bool no_spills)
{
    if (!current)
        return __real_attncl__kernel_fits(l, spec, local, no_spills);
    return !current->is_launchable || current->is_launchable(spec, no_spills);
}

cl_int (*launch_mock_flush)(cl_command_queue queue);
struct launch_mock_clblast launch_mock_clblast;

cl_int __real_clFlush(cl_command_queue queue);
cl_int __wrap_clFlush(cl_command_queue queue);

cl_int __wrap_clFlush(cl_command_queue queue)
{
    return launch_mock_flush ? launch_mock_flush(queue) : __real_clFlush(queue);
}

static float wrong_alpha(float alpha, size_t size)
{
    struct launch_mock_clblast *const mock = &launch_mock_clblast;

    mock->n_products += size != mock->last_size;
    mock->last_size = size;
    return mock->n_products == mock->wrong_one ? 1.001f * alpha : alpha;
}

#define SGEMM_PARAMETERS                                                                           \
    CLBlastLayout layout, CLBlastTranspose trans_a, CLBlastTranspose trans_b, size_t m, size_t n,  \
        size_t k, float alpha, cl_mem a, size_t a_offset, size_t a_ld, cl_mem b, size_t b_offset,  \
        size_t b_ld, float beta, cl_mem c, size_t c_offset, size_t c_ld, cl_command_queue *queue,  \
        cl_event *event, cl_mem temp
CLBlastStatusCode __real_CLBlastSgemmWithTempBuffer(SGEMM_PARAMETERS);
CLBlastStatusCode __wrap_CLBlastSgemmWithTempBuffer(SGEMM_PARAMETERS);

CLBlastStatusCode __wrap_CLBlastSgemmWithTempBuffer(SGEMM_PARAMETERS)
{
    return launch_mock_clblast.fails
               ? CLBlastInsufficientMemoryTemp
               : __real_CLBlastSgemmWithTempBuffer(
                     layout, trans_a, trans_b, m, n, k, wrong_alpha(alpha, m * n * k), a, a_offset,
                     a_ld, b, b_offset, b_ld, beta, c, c_offset, c_ld, queue, event, temp);
}

#define BATCHED_PARAMETERS                                                                         \
    CLBlastLayout layout, CLBlastTranspose trans_a, CLBlastTranspose trans_b, size_t m, size_t n,  \
        size_t k, float alpha, cl_mem a, size_t a_offset, size_t a_ld, size_t a_stride, cl_mem b,  \
        size_t b_offset, size_t b_ld, size_t b_stride, float beta, cl_mem c, size_t c_offset,      \
        size_t c_ld, size_t c_stride, size_t batch, cl_command_queue *queue, cl_event *event
CLBlastStatusCode __real_CLBlastSgemmStridedBatched(BATCHED_PARAMETERS);
CLBlastStatusCode __wrap_CLBlastSgemmStridedBatched(BATCHED_PARAMETERS);

CLBlastStatusCode __wrap_CLBlastSgemmStridedBatched(BATCHED_PARAMETERS)
{
    return __real_CLBlastSgemmStridedBatched(layout, trans_a, trans_b, m, n, k,
                                             wrong_alpha(alpha, m * n * k), a, a_offset, a_ld,
                                             a_stride, b, b_offset, b_ld, b_stride, beta, c,
                                             c_offset, c_ld, c_stride, batch, queue, event);
}
