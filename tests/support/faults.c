// SPDX-License-Identifier: MIT
//
// Finds the layer that the OpenCL loader has loaded: the same file gives the same handle.

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>

#include "support/faults.h"

enum { EXIT_SKIPPED = 77 };

static fault_layer_set_fn *set;
static fault_layer_report_fn *report;
static fault_layer_each_fn *each;
static struct fault_report before;
static size_t descriptors_before;

static void *symbol(void *layer, const char *name)
{
    void *const found = layer ? dlsym(layer, name) : NULL;

    if (!found) {
        fprintf(stderr, "skipped: the OpenCL loader has not loaded the layer %s\n",
                getenv("OPENCL_LAYERS") ? getenv("OPENCL_LAYERS") : "of OPENCL_LAYERS");
        exit(EXIT_SKIPPED);
    }
    return found;
}

static void find_layer(void)
{
    const char *path = getenv("OPENCL_LAYERS");
    void *const layer = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;

    *(void **)&set = symbol(layer, "fault_layer_set");
    *(void **)&report = symbol(layer, "fault_layer_report");
    *(void **)&each = symbol(layer, "fault_layer_each");
}

size_t faults_descriptors(void)
{
    size_t n = 0;
    DIR *list = opendir("/dev/fd");

    while (list && readdir(list))
        ++n;
    if (list)
        closedir(list);
    return n;
}

void faults_begin(void)
{
    if (!set)
        find_layer();
    faults_none();
    before = faults_report();
    descriptors_before = faults_descriptors();
}

void faults_end(void)
{
    faults_none();
    const struct fault_report after = faults_report();
    ck_assert_uint_eq(after.live, before.live);
    ck_assert_uint_eq(after.over_released, before.over_released);
    ck_assert_uint_eq(faults_descriptors(), descriptors_before);
}

void faults_plan(struct fault_plan plan)
{
    set(&plan);
}

void faults_none(void)
{
    set(&(struct fault_plan){.queries = true});
}

struct fault_report faults_report(void)
{
    struct fault_report ret;
    report(&ret);
    return ret;
}

void faults_each(fault_layer_visit_fn *visit, void *user)
{
    each(visit, user);
}
