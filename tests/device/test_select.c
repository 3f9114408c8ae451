// SPDX-License-Identifier: MIT
// Which device a filter selects, from artificial lists; and this machine's list.

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/strbuf.h"
#include "device/internal.h"
#include "support/directory.h"
#include "support/test.h"

NO_DEVICE;

static struct device_entry entries[] = {
    {.info = {0, 0, 0, ATTNCL_DEVICE_CPU, "rusticl", "llvmpipe (LLVM 15)", "Mesa/X.org",
              .compute_units = 64, .clock_mhz = 3000, .available = 1}},
    {.info = {0, 1, 0, ATTNCL_DEVICE_CPU, "Portable Computing Language", "pthread-EPYC",
              "AuthenticAMD", .compute_units = 2, .clock_mhz = 2000, .available = 1}},
    {.info = {0, 2, 0, ATTNCL_DEVICE_GPU, "Intel(R) OpenCL HD", "UHD 620", "Intel(R) Corporation",
              .compute_units = 24, .clock_mhz = 1000, .available = 1}},
    {.info = {0, 3, 0, ATTNCL_DEVICE_GPU, "NVIDIA CUDA", "H200", "NVIDIA Corporation",
              .compute_units = 132, .clock_mhz = 1980, .available = 0}},
    {.info = {0, 3, 1, ATTNCL_DEVICE_GPU, "NVIDIA CUDA", "A2", "NVIDIA Corporation",
              .compute_units = 10, .clock_mhz = 1770, .available = 1}},
    {.info = {0, 4, 0, ATTNCL_DEVICE_OTHER, "Some FPGA", "board", "Maker", .compute_units = 10,
              .clock_mhz = 10, .available = 1}},
    {.info = {0, 5, 0, ATTNCL_DEVICE_CPU, "Oclgrind", "Oclgrind Simulator", "Oclgrind",
              .compute_units = 1, .clock_mhz = 1, .available = 1}},
    {.info = {0, 6, 0, ATTNCL_DEVICE_GPU, "Intel(R) OpenCL HD", "UHD 620 too",
              "Intel(R) Corporation", .compute_units = 24, .clock_mhz = 1000,
              .global_memory_bytes = 1 << 30, .available = 1}},
    {.info = {0, 6, 1, ATTNCL_DEVICE_GPU, "Intel(R) OpenCL HD", "UHD 620 again",
              "Intel(R) Corporation", .compute_units = 24, .clock_mhz = 1000,
              .global_memory_bytes = 1 << 30, .available = 1}},
};
enum { N_ENTRIES = COUNT_OF(entries) };

// What is chosen among the first `n` devices; by position.
static const struct {
    const char *wanted;
    size_t n;
    size_t index;
} choices[] = {
    {NULL, N_ENTRIES,
     4}, // the GPU that is available and computes the most: 10 units of 128 lanes, not 24 of 8
    {"", N_ENTRIES, 4},
    {"gpu", N_ENTRIES, 4},
    {"GPU", N_ENTRIES, 4},
    {NULL, 4, 2},          // the other one is not available
    {"hd", N_ENTRIES, 7},  // as fast as another, with more memory; the first of two
    {"cpu", N_ENTRIES, 1}, // not what imitates one, however many cores it claims
    {NULL, 2, 1},
    {"cpu", 1, 0},
    {NULL, 1, 0},
    {"3:1", N_ENTRIES, 4},
    {"0:0", N_ENTRIES, 0},
    {"nvidia", N_ENTRIES, 4}, // part of a platform's name
    {"uhd", 7, 2},            // part of a device's name
    {"SIMULATOR", N_ENTRIES, 6},
    {"pipe (LLVM", N_ENTRIES, 0},
    {"fpga", N_ENTRIES, 5},
    {"s", N_ENTRIES, 5}, // not software, nor a simulator
};

TABLE_TEST(filters_select_devices, choices)
{
    const struct device_list list = {entries, choices[_i].n, ""};
    size_t index = 99;

    ck_ok(attncl__device_select(&list, choices[_i].wanted, &index));
    ck_assert_msg(index == choices[_i].index, "\"%s\" gave %zu",
                  choices[_i].wanted ? choices[_i].wanted : "NULL", index);
}

static const char *const rejected[] = {"3:0", "9:9", "3:", ":", "3:1x", "99999:0", "H200", "tpu"};

TABLE_TEST(a_refusal_lists_what_there_is, rejected)
{
    const struct device_list list = {entries, N_ENTRIES, ""};
    size_t index = 99;

    ck_fails(attncl__device_select(&list, rejected[_i], &index), ATTNCL_ERR_NO_DEVICE,
             rejected[_i]);
    ck_assert_ptr_nonnull(strstr(attncl_last_error(), "2:0 UHD 620"));
    ck_assert_ptr_nonnull(strstr(attncl_last_error(), "3:0 H200 (NVIDIA CUDA) unavailable"));
    ck_assert_uint_eq(index, 99);
}

TEST(an_empty_list_says_so)
{
    const struct device_list list = {0};
    size_t index;

    ck_fails(attncl__device_select(&list, "gpu", &index), ATTNCL_ERR_NO_DEVICE,
             "no OpenCL device was found");
}

// What is said of GPUs that the list lacks, by a machine's files; root may open all of them, but not one that is not there.
static const struct {
    const char *file, *content;
    size_t n;          // entries of the list
    const char *words; // NULL: nothing is said
} machines[] = {
    {"dev/no-gpu", "", 2, NULL},
    {"dev/nvidiactl", "", 2,
     "; an NVIDIA GPU is there without its OpenCL driver: install it, or name it by "
     "OCL_ICD_VENDORS=libnvidia-opencl.so.1"},
    {"dev/nvidiactl", "", N_ENTRIES, NULL},
    {"dev/kfd", "", N_ENTRIES, "; an AMD GPU is there without"},
    {"sys/class/drm/renderD130/device/vendor", "0x8086\n", 2,
     "; an Intel GPU is there, but this user may not open "},
    {"sys/class/drm/renderD130/device/vendor", "0x10de\n", 2, NULL}, // reached by another file
};

TABLE_TEST(gpus_without_a_driver_are_named, machines)
{
    const struct device_list list = {entries, machines[_i].n, ""};
    const char *const words = machines[_i].words;
    struct strbuf t = STRBUF_EMPTY;
    char path[FILE_BYTES];

    directory_begin();
    directory_path(machines[_i].file, path);
    for (char *c = path + 1; (c = strchr(c, '/')) != NULL; *c++ = '/') {
        *c = '\0';
        mkdir(path, 0700);
    }
    directory_write(machines[_i].file, machines[_i].content);
    attncl__list_gpus_without_driver(directory_path("", path), &list, &t);
    ck_assert_msg(words ? t.data && strncmp(t.data, words, strlen(words)) == 0 : !t.data, "%s",
                  t.data ? t.data : "nothing");
    attncl__strbuf_free(&t);
    directory_end();
}

TEST(empty_platforms_are_named)
{
    const struct device_list list = {.empty_platforms = "NVIDIA CUDA"};
    size_t index;

    ck_fails(attncl__device_select(&list, NULL, &index), ATTNCL_ERR_NO_DEVICE,
             "no OpenCL device was found; without devices: NVIDIA CUDA");
}

TEST(this_machines_devices_are_described)
{
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
    size_t n = 99;

    ck_ok(attncl_device_count(&n));
    for (size_t i = 0; i < n; ++i) {
        attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
        attncl_context *ctx = NULL;
        char wanted[16];

        ck_ok(attncl_device_get(i, &info));
        ck_assert_uint_gt(strlen(info.platform_name), 0);
        ck_assert_uint_gt(info.compute_units, 0);
        snprintf(wanted, sizeof wanted, "%d:%d", info.platform, info.device);
        options.device = wanted;
        options.ignore_environment = 1;
        if (!info.available)
            continue;
        ck_ok(attncl_context_create(&options, &ctx));
        ck_ok(attncl_context_device(ctx, &info));
        ck_ok(attncl_context_destroy(ctx));
    }
    ck_fails(attncl_device_get(n, &info), ATTNCL_ERR_NO_DEVICE, "was asked for");
    ck_fails(attncl_device_get(0, NULL), ATTNCL_ERR_ARGUMENT, "NULL");
    ck_fails(attncl_device_count(NULL), ATTNCL_ERR_ARGUMENT, "NULL");
}
