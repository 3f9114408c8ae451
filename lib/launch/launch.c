// SPDX-License-Identifier: MIT
//
// Turns a kernel specialisation, a grid and arguments into a command.

#include "launch/launch.h"
#include "base/alloc.h"
#include "base/ckd.h"
#include "base/log.h"
#include "device/clerr.h"
#include "launch/command_list.h"

// A failed build gives no limit: some compilers fail when registers or local memory are short.  Every GPU
// runs work-groups of 64.
static const struct launch_refusal build_refusal = {.refused = true, .max_group = 64};

static attncl_status want_program(struct launcher *l, const struct kspec *spec)
{
    struct kspec complete = *spec;

    kspec_set_shuffle(&complete, l->caps);
    return attncl__program_request(l->command_list->ctx, spec->file, complete.defines);
}

static attncl_status open_kernel(struct launcher *l, const struct kspec *spec, cl_kernel *ret)
{
    struct kernel_program *program = NULL;
    struct kspec complete = *spec;

    kspec_set_shuffle(&complete, l->caps);
    const attncl_status status =
        attncl__program_get(l->command_list->ctx, spec->file, complete.defines, &program);
    if (status == ATTNCL_ERR_COMPILE)
        l->refusal = build_refusal;
    TRY(status);
    return attncl__kernel_create(program, spec->kernel, ret);
}

// A kernel's limits depend on its registers and may be lower than the device's.  Some drivers do not count
// local memory that is passed as an argument.
static attncl_status check_kernel(struct launcher *l, const struct kspec *spec, cl_kernel kernel,
                                  size_t local, size_t local_arg_bytes, size_t *private_ret)
{
    size_t group = 0, local_bytes = 0;

    TRY(attncl__kernel_query_limits(l->command_list->ctx, kernel, &group, &local_bytes,
                                    private_ret));
    if (local_bytes < local_arg_bytes)
        local_bytes = local_arg_bytes;
    if (local > group || local_bytes > l->caps->local_bytes)
        l->refusal = (struct launch_refusal){true, local > group ? group : 0};
    REQUIRE(local <= group, ATTNCL_ERR_UNSUPPORTED,
            "%s needs work-groups of %zu work-items, the device can run %zu", spec->kernel, local,
            group);
    REQUIRE(local_bytes <= l->caps->local_bytes, ATTNCL_ERR_UNSUPPORTED,
            "%s needs %zu bytes of local memory, the device has %zu", spec->kernel, local_bytes,
            l->caps->local_bytes);
    return ATTNCL_OK;
}

static size_t sum_local_arg_bytes(const struct arg *args, size_t n_args)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n_args; ++i)
        if (args[i].kind == ARG_LOCAL && !ckd_add_size(bytes, args[i].u.local_bytes, &bytes))
            return SIZE_MAX;
    return bytes;
}

static size_t sum_argument_bytes(const struct launcher *l, const struct arg *args, size_t n_args)
{
    const size_t pointer = l->caps->address_bits / 8;
    size_t bytes = 0;

    for (size_t i = 0; i < n_args; ++i)
        bytes += args[i].kind == ARG_MEM   ? pointer
                 : args[i].kind == ARG_I64 ? sizeof(int64_t)
                                           : sizeof(int32_t);
    return bytes;
}

static attncl_status check_arguments(struct launcher *l, const struct kspec *spec,
                                     const struct arg *args, size_t n_args)
{
    const size_t bytes = sum_argument_bytes(l, args, n_args);
    size_t max = 0;

    if (bytes <= MIN_ARGUMENT_BYTES)
        return ATTNCL_OK;
    TRY(attncl__device_max_argument_bytes(l->command_list->ctx, &max));
    if (bytes > max)
        l->refusal = (struct launch_refusal){true, 0};
    REQUIRE(bytes <= max, ATTNCL_ERR_UNSUPPORTED,
            "%s takes %zu bytes of arguments, the device allows %zu", spec->kernel, bytes, max);
    return ATTNCL_OK;
}

// Checks an argument's type under ATTNCL_GUARD, since argument lists are written by hand.
static attncl_status check_arg(cl_kernel kernel, const char *name, size_t i, const struct arg *a)
{
    static const char *const kinds[] = {"memory", "int", "long", "float", "local memory"};
    struct kernel_arg takes = {0};

    TRY(attncl__kernel_query_arg(kernel, (cl_uint)i, &takes));
    const char *kind = takes.kind + (takes.kind[0] == 'u'); // uint is passed as int
    REQUIRE(!*kind || strcmp(kind, kinds[a->kind]) == 0, ATTNCL_ERR_STATE,
            "%s, argument %zu (%s): the kernel takes %s, the host passes %s", name, i, takes.name,
            kind, kinds[a->kind]);
    return ATTNCL_OK;
}

// By enum arg_kind.
static const size_t value_bytes[] = {sizeof(struct span), sizeof(int32_t), sizeof(int64_t),
                                     sizeof(float), sizeof(size_t)};

static attncl_status set_args(struct launcher *l, struct command *c, size_t first,
                              const struct arg *args, size_t n_args)
{
    for (size_t i = first; i < first + n_args; ++i) {
        const struct arg *a = &args[i - first];
        struct storage *const s = a->kind == ARG_MEM ? a->u.mem.storage : NULL;
        const cl_mem *mem = s && s->mem ? &s->mem : &l->command_list->dummy;
        const void *value = a->kind == ARG_MEM ? mem : (const void *)&a->u;
        size_t bytes = a->kind == ARG_MEM ? sizeof *mem : value_bytes[a->kind];

        if (attncl__context_env(l->command_list->ctx, ENV_GUARD))
            TRY(check_arg(c->kernel, c->name, i, a));
        if (s)
            c->mem_args[c->n_mem_args++] = (struct mem_arg){(cl_uint)i, s, a->writes};
        if (a->kind == ARG_LOCAL) {
            value = NULL;
            bytes = a->u.local_bytes ? a->u.local_bytes : sizeof(float); // 0 is not allowed
        }
        TRY(attncl__prefix_failure(
            attncl__command_list_set_arg(c->kernel, (cl_uint)i, bytes, value), "%s, argument %zu",
            c->name, i));
    }
    return ATTNCL_OK;
}

static size_t count_work_items(const struct grid *grid)
{
    return grid->local[0] * grid->local[1] * grid->local[2];
}

static attncl_status set_range(const struct launcher *l, const struct grid *grid, struct command *c)
{
    // The device's size_t; GPU drivers count in int and compute wrong results beyond that.
    const size_t max_size = l->caps->is_gpu               ? INT32_MAX
                            : l->caps->address_bits == 32 ? UINT32_MAX
                                                          : SIZE_MAX;

    for (int i = 0; i < 3; ++i) {
        c->local[i] = grid->local[i];
        REQUIRE(ckd_mul_size(grid->groups[i], grid->local[i], &c->global[i]) &&
                    c->global[i] <= max_size,
                ATTNCL_ERR_UNSUPPORTED,
                "%s: %zu work-groups of %zu work-items overflow the device's %zu", c->name,
                grid->groups[i], grid->local[i], max_size);
    }
    return ATTNCL_OK;
}

attncl_status attncl__check_loops(const struct device_caps *caps, const char *kernel,
                                  int64_t iterations)
{
    REQUIRE(attncl__loops_fit(caps, iterations), ATTNCL_ERR_UNSUPPORTED,
            "%s takes %" PRId64 " loop iterations, the device stops at %" PRIu64, kernel,
            iterations, caps->max_loop_iterations);
    return ATTNCL_OK;
}

attncl_status attncl__launch(struct launcher *l, const struct kspec *spec, struct grid grid,
                             const struct arg *args, size_t n_args)
{
    attncl_status status = ATTNCL_OK;
    struct command command = {.kind = COMMAND_KERNEL, .name = spec->kernel};
    size_t private_bytes = 0;

    if (grid.groups[0] == 0 || grid.groups[1] == 0 || grid.groups[2] == 0)
        return ATTNCL_OK;
    if (l->is_rehearsal)
        return want_program(l, spec);
    command.queue = l->command_list->queue;
    TRY_DONE(attncl__check_loops(l->caps, spec->kernel, grid.iterations));
    TRY_DONE(set_range(l, &grid, &command));
    TRY_DONE(check_arguments(l, spec, args, n_args));
    TRY_DONE(open_kernel(l, spec, &command.kernel));
    command.mem_args = attncl__alloc_array(n_args, sizeof(struct mem_arg));
    if (!command.mem_args)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%zu arguments", n_args));
    TRY_DONE(set_args(l, &command, 0, args, n_args));
    TRY_DONE(check_kernel(l, spec, command.kernel, count_work_items(&grid),
                          sum_local_arg_bytes(args, n_args), &private_bytes));
    TRY_DONE(attncl__command_list_append(l->command_list, command));
    command.kernel = NULL; // the command list owns them now
    command.mem_args = NULL;

done:
    attncl__kernel_release(&command.kernel);
    attncl__free(command.mem_args);
    return status;
}

// -- joint launches

static bool equal_args(const struct arg *a, const struct arg *b, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        if (a[i].kind != b[i].kind || memcmp(&a[i].u, &b[i].u, value_bytes[a[i].kind]) != 0)
            return false;
    return true;
}

static bool share_memory(const struct storage *a, const struct storage *b)
{
    return a == b || (a->begin < b->end && b->begin < a->end);
}

// True when the part or the command reads or writes memory that the other one writes.
static bool has_conflict(const struct command *command, const struct arg *part, size_t n)
{
    for (size_t i = 0; i < n * command->n_mem_args; ++i) {
        const struct arg *a = &part[i / command->n_mem_args];
        const struct mem_arg *b = &command->mem_args[i % command->n_mem_args];
        if (a->kind == ARG_MEM && a->u.mem.storage && (a->writes || b->writes) &&
            share_memory(a->u.mem.storage, b->storage))
            return true;
    }
    return false;
}

// Returns the command that the part can join; NULL if there is none.  A loop begins with its index, which joins
// nothing, so no part in a loop joins a command before the loop.
static struct command *find_joint(const struct launcher *l, const struct kspec *spec,
                                  const struct arg *shared, size_t n_shared, const struct arg *part,
                                  size_t n_part)
{
    const struct joint_launch *joint = l->joint;
    const struct command_list *list = l->command_list;

    if (l->is_rehearsal || !joint || joint->n_parts == 0 || joint->n_parts == N_PARTS ||
        joint->command + 1 != list->n_commands)
        return NULL;
    struct command *command = &list->commands[joint->command];
    const bool fits = command->queue == list->queue && command->trip_count == 0 &&
                      strcmp(joint->spec.kernel, spec->kernel) == 0 &&
                      strcmp(joint->spec.defines, spec->defines) == 0 &&
                      equal_args(joint->args.arg, shared, n_shared) &&
                      !has_conflict(command, part, n_part);
    return fits ? command : NULL;
}

static void add_part(struct arg_list *list, const struct arg *part, size_t n_part, size_t first)
{
    arg_list_add(list, part, n_part);
    arg_list_add(list, ARGS(arg_i32((int64_t)first)));
}

attncl_status attncl__launch_part(struct launcher *l, const struct kspec *spec, struct grid grid,
                                  const struct arg *shared, size_t n_shared, const struct arg *part,
                                  size_t n_part)
{
    struct command *command = find_joint(l, spec, shared, n_shared, part, n_part);
    struct arg_list args = {.n = 0};
    struct kspec own = *spec;
    size_t max = MIN_ARGUMENT_BYTES;

    if (grid.groups[0] == 0)
        return ATTNCL_OK;
    if (command &&
        command->global[0] / command->local[0] + grid.groups[0] <= INT32_MAX / command->local[0]) {
        const size_t first = command->global[0] / command->local[0];
        add_part(&args, part, n_part, first);
        command->global[0] += grid.groups[0] * grid.local[0];
        return set_args(l, command, n_shared + (size_t)l->joint->n_parts++ * args.n, args.arg,
                        args.n);
    }
    arg_list_add(&args, shared, n_shared);
    add_part(&args, part, n_part, 0);
    for (int i = 1; i < N_PARTS; ++i) { // absent parts: their first work-group is never reached
        add_part(&args, part, n_part, INT32_MAX);
        for (size_t k = args.n - n_part - 1; k < args.n; ++k)
            if (args.arg[k].kind == ARG_MEM)
                args.arg[k] = arg_mem((struct span){NULL});
    }
    if (sum_argument_bytes(l, args.arg, args.n) > max)
        TRY(attncl__device_max_argument_bytes(l->command_list->ctx, &max));
    const bool has_space = sum_argument_bytes(l, args.arg, args.n) <= max;
    if (!has_space) { // the device allows too few argument bytes: a kernel with one part
        args.n = n_shared + n_part + 1;
        kspec_int(&own, "ONE_PART", 1);
    }
    TRY(attncl__launch(l, &own, grid, args.arg, args.n));
    if (l->joint && !l->is_rehearsal && has_space)
        *l->joint = (struct joint_launch){*spec, args, l->command_list->n_commands - 1, 1};
    return ATTNCL_OK;
}

bool attncl__kernel_fits(struct launcher *l, const struct kspec *spec, size_t local, bool no_spills)
{
    cl_kernel kernel = NULL;
    enum { FEW_BYTES = 32 }; // spilling a few values costs less than another kernel
    size_t private_bytes = 0;

    if (l->is_rehearsal)
        return want_program(l, spec) == ATTNCL_OK;
    attncl_status status = open_kernel(l, spec, &kernel);
    if (status == ATTNCL_OK)
        status = check_kernel(l, spec, kernel, local, 0, &private_bytes);
    attncl__kernel_release(&kernel);
    if (status == ATTNCL_OK && no_spills && l->caps->is_gpu && private_bytes > FEW_BYTES)
        status = FAIL(ATTNCL_ERR_UNSUPPORTED, "%s spills %zu bytes of each work-item to memory",
                      spec->kernel, private_bytes);
    if (status != ATTNCL_OK)
        attncl__log(ATTNCL_LOG_WARN, "%s is not used: %s", spec->kernel, attncl_last_error());
    return status == ATTNCL_OK;
}
