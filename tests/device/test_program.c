// SPDX-License-Identifier: MIT
// Programs: built once, by the first thread that needs them, and kept on disk.

#define _GNU_SOURCE // RTLD_NEXT
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attncl/log.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "device/context.h"
#include "store/private_dir.h"
#include "support/directory.h"
#include "support/test.h"

NO_DEVICE;

static const char source[] = "__kernel void probe_fill_fwd(__global int *x) { x[0] = VALUE; }\n";

static atomic_int n_built, n_cached, n_warned, // several threads build
    n_told;                                    // programs with sizes of their kernel
static size_t heap_before;

static void listen(attncl_log_level level, const char *text, void *user)
{
    (void)user;
    n_built += strstr(text, "probe.cl built") != NULL;
    n_cached += strstr(text, "probe.cl from the cache") != NULL;
    n_told +=
        strstr(text, "program {\"file\": \"probe.cl\", \"macros\": \"#define VALUE 41\\u000a\"") &&
        strstr(text, "{\"name\": \"probe_fill_fwd\", \"work_group\": ") &&
        !strstr(text, "\"work_group\": null");
    n_warned += level <= ATTNCL_LOG_WARN;
}

static void set_up(void)
{
    size_t n = 0;

    if (attncl_device_count(&n) != ATTNCL_OK || n == 0) {
        fprintf(stderr, "skipped: no OpenCL device was found\n");
        exit(77);
    }
    heap_before = attncl__alloc_live();
    directory_up();
    directory_write("cl/probe.cl", source);
    setenv("ATTNCL_CL_DIR", IN_DIRECTORY("cl"), 1);
    setenv("ATTNCL_CACHE", "rw", 1);
    setenv("ATTNCL_CACHE_DIR", IN_DIRECTORY("cache"), 1);
    attncl_log_set(listen, NULL, ATTNCL_LOG_DEBUG);
    n_built = n_cached = n_warned = n_told = 0;
}

static void tear_down(void)
{
    struct object_counts counts;

    attncl_log_set(NULL, NULL, ATTNCL_LOG_ERROR);
    directory_down();
    attncl__objects_count(&counts);
    for (int i = 0; i < N_OBJECT_KINDS; ++i)
        ck_assert_int_eq(counts.live[i], 0);
    ck_assert_uint_eq(attncl__alloc_live(), heap_before);
}

static enum device_vendor vendor(void)
{
    attncl_context *ctx = NULL;

    ck_ok(attncl_context_create(NULL, &ctx));
    const enum device_vendor v = ctx->caps.vendor;
    ck_ok(attncl_context_destroy(ctx));
    return v;
}

// A process's life: a context, the program, its kernel run; gives what the kernel wrote.
static int live_once(const char *defines)
{
    attncl_context *ctx = NULL;
    struct kernel_program *program = NULL;
    cl_kernel kernel = NULL;
    cl_mem x = NULL;
    int got = -1;
    const size_t one = 1;

    ck_ok(attncl_context_create(NULL, &ctx));
    ck_ok(attncl__program_get(ctx, "probe.cl", defines, &program));
    ck_ok(attncl__kernel_create(program, "probe_fill_fwd", &kernel));
    ck_ok(attncl__buffer_create(ctx, sizeof got, &x));
    ck_assert_int_eq(clSetKernelArg(kernel, 0, sizeof x, &x), CL_SUCCESS);
    ck_assert_int_eq(clEnqueueNDRangeKernel(ctx->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL),
                     CL_SUCCESS);
    ck_ok(attncl__buffer_read(ctx, x, 0, &got, sizeof got));
    attncl__kernel_release(&kernel);
    attncl__buffer_release(&x);
    ck_ok(attncl_context_destroy(ctx));
    return got;
}

// A context that builds two programs and says that it lived for `seconds`, and how long the compiler took.
static void live_compiling(int value, double seconds, double compiling)
{
    attncl_context *ctx = NULL;
    struct kernel_program *program = NULL;

    ck_ok(attncl_context_create(NULL, &ctx));
    for (int i = value; i < value + 2; ++i) {
        char defines[32];
        snprintf(defines, sizeof defines, "#define VALUE %d\n", i);
        ck_ok(attncl__program_get(ctx, "probe.cl", defines, &program));
    }
    ctx->created_s = attncl__clock_seconds() - seconds;
    ctx->compiling_s = compiling;
    ck_ok(attncl_context_destroy(ctx));
}

static void live_with_two(int value, double seconds)
{
    live_compiling(value, seconds, 0);
}

// The one entry of the cache.
static const char *entry_path(char path[FILE_BYTES])
{
    DIR *dir = opendir(IN_DIRECTORY("cache"));
    const struct dirent *entry;
    char name[FILE_BYTES] = "";

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)))
        if (strstr(entry->d_name, ".program"))
            snprintf(name, sizeof name, "cache/%s", entry->d_name);
    closedir(dir);
    ck_assert_str_ne(name, "");
    return directory_path(name, path);
}

FIXTURE(set_up, tear_down);

TEST(the_second_process_compiles_nothing)
{
    ck_assert_int_eq(live_once("#define VALUE 41\n"), 41);
    ck_assert_int_eq(live_once("#define VALUE 41\n"), 41);
    ck_assert_int_eq(n_built, 1);
    ck_assert_int_eq(n_cached, 1);
    ck_assert_int_eq(n_told, 2);
    ck_assert_uint_eq(directory_count(), 2); // the source and one entry

    // Other macros, another source: other programs.
    ck_assert_int_eq(live_once("#define VALUE 42\n"), 42);
    directory_write("cl/probe.cl",
                    "__kernel void probe_fill_fwd(__global int *x) { x[0] = -VALUE; }\n");
    ck_assert_int_eq(live_once("#define VALUE 41\n"), -41);
    ck_assert_int_eq(n_built, 3);

    // Another environment of the driver too.
    setenv("POCL_OF_A_TEST", "1", 1);
    ck_assert_int_eq(live_once("#define VALUE 41\n"), -41);
    unsetenv("POCL_OF_A_TEST");
    ck_assert_int_eq(n_built, 4);
    ck_assert_int_eq(live_once("#define VALUE 41\n"), -41);
    ck_assert_int_eq(n_built, 4);
    ck_assert_int_eq(n_warned, 0);
}

TEST(a_damaged_entry_is_replaced)
{
    char path[FILE_BYTES];

    ck_assert_int_eq(live_once("#define VALUE 7\n"), 7);
    const int fd = open(entry_path(path), O_RDWR);
    ck_assert_int_eq(pwrite(fd, "?", 1, 1000), 1);
    close(fd);
    ck_assert_int_eq(live_once("#define VALUE 7\n"), 7);
    ck_assert_int_eq(n_built, 2);
    ck_assert_int_eq(n_warned, 1);
    ck_assert_int_eq(live_once("#define VALUE 7\n"), 7);
    ck_assert_int_eq(n_cached, 1);
}

// Gives the cache's one entry another payload, made by `change` from the old one, rightly hashed.
static void replace_payload(size_t (*change)(char *payload, size_t n))
{
    enum { ROOM = 1 << 20, HEADER = 64, KEY_BYTES_AT = 16 };
    char path[FILE_BYTES], *data = malloc(ROOM);
    struct private_dir directory;
    uint64_t key_bytes = 0;
    const char *why;

    const int fd = open(entry_path(path), O_RDONLY);
    const ssize_t n = read(fd, data, ROOM);
    close(fd);
    ck_assert(n > HEADER && n < ROOM);
    memcpy(&key_bytes, data + KEY_BYTES_AT, sizeof key_bytes);
    char *payload = data + HEADER + key_bytes;
    const size_t payload_bytes = change(payload, (size_t)n - HEADER - key_bytes);
    ck_assert(attncl__private_dir_open(IN_DIRECTORY("cache"), true, &directory, &why));
    ck_assert(attncl__cache_entry_write(&directory, (struct bytes){data + HEADER, key_bytes},
                                        (struct bytes){payload, payload_bytes}));
    attncl__private_dir_close(&directory);
    free(data);
}

static size_t no_binary(char *payload, size_t n)
{
    static const char text[] = "probe_fill_fwd\0this is no program";

    ck_assert_uint_gt(n, sizeof text);
    memcpy(payload, text, sizeof text);
    return sizeof text;
}

static size_t other_kernels(char *payload, size_t n)
{
    payload[0] = 'P'; // the names come first
    return n;
}

TEST(what_the_driver_refuses_is_built)
{
    if (vendor() != VENDOR_POCL) // PoCL says no; rusticl has ended the process over such a binary
        return;
    ck_assert_int_eq(live_once("#define VALUE 7\n"), 7);
    replace_payload(no_binary);
    ck_assert_int_eq(live_once("#define VALUE 7\n"), 7);
    ck_assert_int_eq(n_built, 2);
    ck_assert_int_eq(n_warned, 1);
}

TEST(what_lacks_a_kernel_is_built)
{
    ck_assert_int_eq(live_once("#define VALUE 7\n"), 7);
    replace_payload(other_kernels);
    ck_assert_int_eq(live_once("#define VALUE 7\n"), 7);
    ck_assert_int_eq(n_built, 2);
    ck_assert_int_eq(n_warned, 1);
}

TEST(modes_and_places)
{
    setenv("ATTNCL_CACHE", "off", 1);
    live_once("#define VALUE 1\n");
    setenv("ATTNCL_CACHE", "ro", 1);
    live_once("#define VALUE 1\n");
    ck_assert_uint_eq(directory_count(), 1); // nothing was written
    setenv("ATTNCL_CACHE", "rw", 1);

    // A file where the directory should be.
    directory_write("file", "");
    setenv("ATTNCL_CACHE_DIR", IN_DIRECTORY("file"), 1);
    attncl_context *ctx = NULL;
    ck_fails(attncl_context_create(NULL, &ctx), ATTNCL_ERR_ARGUMENT, "expected a directory");

    unsetenv("ATTNCL_CACHE_DIR");
    char *const home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    char *const xdg = getenv("XDG_CACHE_HOME") ? strdup(getenv("XDG_CACHE_HOME")) : NULL;
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    n_warned = 0;
    live_once("#define VALUE 1\n");
    ck_assert_int_eq(n_warned, 1);
    setenv("XDG_CACHE_HOME", "relative", 1);
    live_once("#define VALUE 1\n");
    ck_assert_int_eq(n_warned, 2);
    setenv("ATTNCL_CACHE", "off", 1);
    live_once("#define VALUE 1\n");
    setenv("ATTNCL_CACHE", "rw", 1);
    ck_assert_int_eq(n_warned, 2);
    ck_assert_int_eq(n_cached, 0);
    ck_assert_uint_eq(directory_count(), 2);
    setenv("HOME", IN_DIRECTORY("home"), 1);
    live_once("#define VALUE 1\n");
    ck_assert_int_eq(access(IN_DIRECTORY("home/.cache/attncl"), X_OK), 0);
    setenv("XDG_CACHE_HOME", IN_DIRECTORY("xdg"), 1);
    live_once("#define VALUE 1\n");
    ck_assert_int_eq(access(IN_DIRECTORY("xdg/attncl"), X_OK), 0);
    unsetenv("XDG_CACHE_HOME");
    if (home)
        setenv("HOME", home, 1);
    if (xdg)
        setenv("XDG_CACHE_HOME", xdg, 1);
    free(home);
    free(xdg);
}

// A directory that cannot be made, and one in which nothing can be written: a line each, whatever there is to store.
TEST(impossible_directories_are_told_once)
{
    attncl_context *ctx = NULL;
    struct kernel_program *program = NULL;

    setenv("ATTNCL_CACHE_DIR", "/proc/attncl/cache", 1);
    live_once("#define VALUE 1\n");
    ck_assert_int_eq(n_warned, 1);
    setenv("ATTNCL_CACHE_DIR", IN_DIRECTORY("cache"), 1);
    ck_ok(attncl_context_create(NULL, &ctx));
    ck_assert_int_eq(rmdir(IN_DIRECTORY("cache")), 0);
    ck_ok(attncl__program_get(ctx, "probe.cl", "#define VALUE 1\n", &program));
    ck_ok(attncl__program_get(ctx, "probe.cl", "#define VALUE 2\n", &program));
    ck_ok(attncl_context_destroy(ctx));
    ck_assert_int_eq(n_warned, 2);
}

// In the place of OpenCL's: counts what asks for binaries.
static atomic_int n_binaries_asked;

cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t bytes, void *value,
                        size_t *bytes_ret)
{
    cl_int (*real)(cl_program, cl_program_info, size_t, void *, size_t *) = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "clGetProgramInfo");
    n_binaries_asked += what == CL_PROGRAM_BINARY_SIZES || what == CL_PROGRAM_BINARIES;
    return real(program, what, bytes, value, bytes_ret);
}

// PoCL compiles again for it, which would delay the process's end: a context that lived for no time asks once.
TEST(a_driver_with_a_cache_of_its_own_is_asked_for_few_binaries)
{
    const bool keeps = vendor() == VENDOR_POCL;

    unsetenv("ATTNCL_CACHE");
    n_binaries_asked = 0;
    live_with_two(3, 0);
    const int asked_for_one = keeps ? n_binaries_asked : n_binaries_asked / 2;
    ck_assert_int_gt(asked_for_one, 0);
    live_with_two(5, 1e6); // long enough for both
    ck_assert_int_eq(n_binaries_asked, (keeps ? 3 : 4) * asked_for_one);
    live_with_two(3, 0); // the next one goes on
    ck_assert_int_eq(n_cached, keeps ? 1 : 2);
    live_with_two(3, 0);
    ck_assert_int_eq(n_cached, keeps ? 3 : 4);
    ck_assert_int_eq(n_binaries_asked, 4 * asked_for_one);
    setenv("ATTNCL_CACHE", "rw", 1);
    live_with_two(7, 0);
    ck_assert_int_eq(n_binaries_asked, 6 * asked_for_one);
    // What is there is used by default, too.
    unsetenv("ATTNCL_CACHE");
    live_with_two(7, 0);
    ck_assert_int_eq(n_cached, keeps ? 5 : 6);
    ck_assert_int_eq(n_warned, 0);
}

// It asks again what it has just compiled: the next process does that.
TEST(a_driver_with_a_cache_of_its_own_is_asked_for_nothing_after_compiling)
{
    const bool keeps = vendor() == VENDOR_POCL;

    unsetenv("ATTNCL_CACHE");
    n_binaries_asked = 0;
    live_compiling(3, 1e6, 1);
    ck_assert_int_eq(n_binaries_asked > 0, !keeps);
    setenv("ATTNCL_CACHE", "rw", 1); // somebody asks for it
    n_binaries_asked = 0;
    live_compiling(5, 0, 1);
    ck_assert_int_gt(n_binaries_asked, 0);
}

// A process that is interrupted loses nothing.
TEST(binaries_are_stored_when_they_are_built)
{
    attncl_context *ctx = NULL;
    struct kernel_program *program = NULL;

    ck_ok(attncl_context_create(NULL, &ctx));
    ctx->caps.has_own_cache = false;
    ck_ok(attncl__program_get(ctx, "probe.cl", "#define VALUE 1\n", &program));
    ck_assert_uint_eq(directory_count(), 2);
    n_binaries_asked = 0;
    ck_ok(attncl_context_destroy(ctx));
    ck_assert_int_eq(n_binaries_asked, 0); // once
}

// Nobody asked for its cache.
TEST(a_driver_with_a_cache_of_its_own_needs_no_directory)
{
    const bool keeps = vendor() == VENDOR_POCL;

    unsetenv("ATTNCL_CACHE");
    setenv("ATTNCL_CACHE_DIR", "/proc/attncl/cache", 1);
    ck_assert_int_eq(live_once("#define VALUE 3\n"), 3);
    ck_assert_int_eq(n_warned, keeps ? 0 : 1);
}

static attncl_context *shared;

static void *get_program(void *user)
{
    struct kernel_program *program = NULL;

    (void)user;
    return attncl__program_get(shared, "probe.cl", "#define VALUE 5\n", &program) == ATTNCL_OK
               ? program
               : NULL;
}

TEST(threads_share_one_build)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    void *got[THREADS];

    ck_ok(attncl_context_create(NULL, &shared));
    for (int i = 0; i < THREADS; ++i)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, get_program, NULL), 0);
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(thread[i], &got[i]);
        ck_assert_ptr_nonnull(got[i]);
        ck_assert_ptr_eq(got[i], got[0]);
    }
    ck_assert_int_eq(n_built, 1);
    ck_ok(attncl_context_destroy(shared));
}

// In the place of OpenCL's: waits until so many threads build, or for a second.
static int n_gathering;
static atomic_int n_building, most_building;

cl_int clBuildProgram(cl_program program, cl_uint n, const cl_device_id *devices,
                      const char *options, void (*told)(cl_program, void *), void *user)
{
    cl_int (*real)(cl_program, cl_uint, const cl_device_id *, const char *,
                   void (*)(cl_program, void *), void *) = NULL;
    const int now = atomic_fetch_add(&n_building, 1) + 1;

    *(void **)&real = dlsym(RTLD_NEXT, "clBuildProgram");
    if (now > most_building)
        most_building = now;
    for (int ms = 0; most_building < n_gathering && ms < 1000; ++ms)
        usleep(1000);
    const cl_int code = real(program, n, devices, options, told, user);
    atomic_fetch_sub(&n_building, 1);
    return code;
}

static struct {
    size_t calls, done, total;
} told;

static void take_progress(size_t done, size_t total, void *user)
{
    (void)user;
    ck_assert(told.calls++ ? done >= told.done && total == told.total : done == 0);
    told.done = done;
    told.total = total;
}

// Whether the device is a GPU, how many programs it wants, and by how many threads they are built.
static const struct {
    bool is_gpu;
    int n_wanted, n_threads;
} wants[] = {{true, 7, 4}, {true, 3, 3}, {false, 7, 1}, {true, 0, 0}};

TABLE_TEST(what_is_wanted_is_built_by_several_threads, wants)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *ctx = NULL;
    struct kernel_program *program = NULL;
    char defines[32];

    options.compile_progress = take_progress;
    memset(&told, 0, sizeof told);
    ck_ok(attncl_context_create(&options, &ctx));
    ctx->caps.is_gpu = wants[_i].is_gpu;
    ck_ok(attncl__program_get(ctx, "probe.cl", "#define VALUE 0\n", &program));
    most_building = 0;
    n_gathering = wants[_i].n_threads;
    for (int twice = 0; twice < 2; ++twice)
        for (int i = 0; i <= wants[_i].n_wanted; ++i) {
            snprintf(defines, sizeof defines, "#define VALUE %d\n", i);
            ck_ok(attncl__program_request(ctx, "probe.cl", defines));
        }
    attncl__programs_build(ctx);
    n_gathering = 0;
    ck_assert_int_eq(most_building, wants[_i].n_threads);
    ck_assert_int_eq(n_built, 1 + wants[_i].n_wanted);
    ck_assert_uint_eq(told.total, wants[_i].n_wanted);
    ck_assert_uint_eq(told.done, told.total);
    ck_ok(attncl__program_get(ctx, "probe.cl", defines, &program));
    ck_assert_int_eq(n_built, 1 + wants[_i].n_wanted);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(sources_and_logs_are_dumped_on_request)
{
    directory_write("dump/readme", "");
    setenv("ATTNCL_DUMP_CL", IN_DIRECTORY("dump"), 1);
    live_once("#define VALUE 1\n");
    live_once("#define VALUE 2\n");
    live_once("#define VALUE 2\n");
    unsetenv("ATTNCL_DUMP_CL");
    ck_assert_uint_eq(directory_count(), 2 + 2 + 2); // sources, dumps, entries
}

TEST(an_unknown_kernel_is_named)
{
    attncl_context *ctx = NULL;
    struct kernel_program *program = NULL;
    cl_kernel kernel = NULL;

    if (vendor() == VENDOR_OCLGRIND) // reports the refused kernel as a finding
        return;
    ck_ok(attncl_context_create(NULL, &ctx));
    ck_ok(attncl__program_get(ctx, "probe.cl", "#define VALUE 1\n", &program));
    ck_fails(attncl__kernel_create(program, "absent", &kernel), ATTNCL_ERR_STATE, "absent");
    ck_assert_ptr_null(kernel);
    ck_ok(attncl_context_destroy(ctx));
}
