// SPDX-License-Identifier: MIT
//
// A GPU is found by its PCI address: hwmon and the driver's own files in sysfs (amdgpu, i915, xe), NVML
// for NVIDIA's, loaded when it is there.  A CPU's files have fixed names.

#include "harness/sensors.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/context.h"
#include "harness/case.h"

// Files with one number; of several that the pattern names, the largest.
static const struct sensor_file {
    bool cpu;
    enum sensor sensor;
    double unit;
    const char *pattern; // below sysfs; of a GPU, below its PCI device
} files[] = {
    {true, SENSOR_CLOCK, 1e-3, "devices/system/cpu/cpu*/cpufreq/scaling_cur_freq"},
    {true, SENSOR_TEMPERATURE, 1e-3, "devices/platform/coretemp.*/hwmon/hwmon*/temp1_input"},
    {true, SENSOR_TEMPERATURE, 1e-3,
     "module/k10temp/drivers/pci:k10temp/*/hwmon/hwmon*/temp1_input"},
    {true, SENSOR_THROTTLED, 1, "devices/system/cpu/cpu*/thermal_throttle/package_throttle_count"},
    {true, SENSOR_POWER, 1e-6, "class/powercap/intel-rapl:0/energy_uj"},
    {false, SENSOR_CLOCK, 1e-6, "hwmon/hwmon*/freq1_input"},
    {false, SENSOR_CLOCK, 1, "drm/card*/gt_act_freq_mhz"},
    {false, SENSOR_CLOCK, 1, "tile0/gt0/freq0/act_freq"},
    {false, SENSOR_TEMPERATURE, 1e-3, "hwmon/hwmon*/temp1_input"},
    {false, SENSOR_POWER, 1e-6, "hwmon/hwmon*/power1_average"},
    {false, SENSOR_POWER, 1e-6, "hwmon/hwmon*/power1_input"},
    {false, SENSOR_THROTTLED, 1, "drm/card*/gt/gt0/throttle_reason_status"},
    {false, SENSOR_THROTTLED, 1, "tile0/gt0/freq0/throttle/status"},
};

// nvml.h's functions that are called, and their numbers.
enum { NVML_CLOCK_SM = 1, NVML_TEMPERATURE_GPU = 0 };
// Power cap, hardware slowdown, thermal slowdowns, power brake.
#define NVML_THROTTLED 0xecULL
struct nvml {
    void *library, *device; // NULL: not there
    int (*clock)(void *device, int which, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*temperature)(void *device, int which, unsigned *celsius);
    int (*reasons)(void *device, unsigned long long *mask);
};

struct sensors {
    bool cpu;
    char directory[256];
    struct nvml nvml;
    // CPUs count energy and throttling up: the reading before this one.
    double last[N_SENSORS], last_s[N_SENSORS];
};

// "0000:41:00.0", or "" when no extension tells.
static void pci_address(cl_device_id device, char text[32])
{
    enum { BUS_INFO_KHR = 0x410F, BUS_NV = 0x4008, SLOT_NV = 0x4009, TOPOLOGY_AMD = 0x4037 };
    cl_uint khr[4] = {0}, bus, slot;
    unsigned char amd[24];

    text[0] = '\0';
    if (clGetDeviceInfo(device, BUS_INFO_KHR, sizeof khr, khr, NULL) == CL_SUCCESS)
        snprintf(text, 32, "%04x:%02x:%02x.%x", khr[0], khr[1], khr[2], khr[3]);
    else if (clGetDeviceInfo(device, BUS_NV, sizeof bus, &bus, NULL) == CL_SUCCESS &&
             clGetDeviceInfo(device, SLOT_NV, sizeof slot, &slot, NULL) == CL_SUCCESS)
        snprintf(text, 32, "0000:%02x:%02x.%x", bus, slot >> 3, slot & 7);
    else if (clGetDeviceInfo(device, TOPOLOGY_AMD, sizeof amd, amd, NULL) == CL_SUCCESS)
        snprintf(text, 32, "0000:%02x:%02x.%x", amd[21], amd[22], amd[23]);
}

// A function pointer out of dlsym's object pointer, as POSIX asks for.
static bool take_symbol(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof symbol);
    return symbol;
}

static void open_nvml(struct nvml *n, const char *address)
{
    int (*init)(void), (*find)(const char *address, void **device);

    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!n->library || !take_symbol(n->library, "nvmlInit_v2", &init) ||
        !take_symbol(n->library, "nvmlDeviceGetHandleByPciBusId_v2", &find) ||
        !take_symbol(n->library, "nvmlDeviceGetClockInfo", &n->clock) ||
        !take_symbol(n->library, "nvmlDeviceGetPowerUsage", &n->power) ||
        !take_symbol(n->library, "nvmlDeviceGetTemperature", &n->temperature) ||
        !take_symbol(n->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons))
        return;
    if (init() == 0 && find(address, &n->device) != 0)
        n->device = NULL;
}

struct sensors *sensors_open(const attncl_context *ctx)
{
    const char *root = getenv("ATTNCL_BENCH_SYSFS"); // of a test
    struct sensors *s = attncl__alloc_zero(sizeof *s);
    char address[32] = "";

    if (!s)
        return NULL;
    s->cpu = ctx->caps.is_cpu;
    if (!s->cpu)
        pci_address(ctx->device, address);
    root = root ? root : "/sys";
    if (s->cpu)
        snprintf(s->directory, sizeof s->directory, "%s", root);
    else if (address[0])
        snprintf(s->directory, sizeof s->directory, "%s/bus/pci/devices/%s", root, address);
    if (address[0])
        open_nvml(&s->nvml, address);
    return s;
}

void sensors_close(struct sensors *s)
{
    if (s && s->nvml.library)
        dlclose(s->nvml.library);
    attncl__free(s);
}

// The largest number in the files that the pattern names.
static bool read_files(const struct sensors *s, const struct sensor_file *f, double *ret)
{
    char pattern[400];
    glob_t found;
    bool any = false;

    snprintf(pattern, sizeof pattern, "%s/%s", s->directory, f->pattern);
    if (glob(pattern, 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc; ++i) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        double x;
        if (file && fscanf(file, "%lf", &x) == 1) {
            *ret = any && *ret > f->unit * x ? *ret : f->unit * x;
            any = true;
        }
        if (file)
            fclose(file);
    }
    globfree(&found);
    return any;
}

static void add(struct sensor_sums *sums, enum sensor which, double value)
{
    sums->sum[which] += value;
    ++sums->n[which];
}

// Of a number that is counted up: its growth, per second where it is an energy.
static void add_growth(struct sensors *s, struct sensor_sums *sums, enum sensor which, double value)
{
    const double now = clock_now(), grown = value - s->last[which];

    if (s->last_s[which] > 0 && grown >= 0)
        add(sums, which, which == SENSOR_POWER ? grown / (now - s->last_s[which]) : grown > 0);
    s->last[which] = value;
    s->last_s[which] = now;
}

static void read_nvml(const struct nvml *n, struct sensor_sums *sums)
{
    unsigned long long mask;
    unsigned x;

    if (n->clock(n->device, NVML_CLOCK_SM, &x) == 0)
        add(sums, SENSOR_CLOCK, x);
    if (n->power(n->device, &x) == 0)
        add(sums, SENSOR_POWER, 1e-3 * x);
    if (n->temperature(n->device, NVML_TEMPERATURE_GPU, &x) == 0)
        add(sums, SENSOR_TEMPERATURE, x);
    if (n->reasons(n->device, &mask) == 0)
        add(sums, SENSOR_THROTTLED, (mask & NVML_THROTTLED) != 0);
}

void sensors_read(struct sensors *s, struct sensor_sums *sums)
{
    bool known[N_SENSORS] = {false};
    double x;

    if (s && s->nvml.device)
        read_nvml(&s->nvml, sums);
    if (!s || !s->directory[0] || s->nvml.device)
        return;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; ++i) {
        const struct sensor_file *f = &files[i];
        if (f->cpu != s->cpu || known[f->sensor] || !read_files(s, f, &x))
            continue;
        known[f->sensor] = true;
        if (s->cpu && (f->sensor == SENSOR_POWER || f->sensor == SENSOR_THROTTLED))
            add_growth(s, sums, f->sensor, x);
        else
            add(sums, f->sensor, f->sensor == SENSOR_THROTTLED ? x > 0 : x);
    }
}

json_t *sensors_json(const struct sensor_sums *sums)
{
    static const char *const names[] = {"clock_mhz", "power_w", "temperature_c", "throttled"};
    json_t *object = json_object();

    for (int i = 0; i < N_SENSORS; ++i) {
        const double mean = sums->n[i] ? sums->sum[i] / sums->n[i] : 0;
        json_object_set_new(object, names[i],
                            !sums->n[i]             ? json_null()
                            : i == SENSOR_THROTTLED ? json_boolean(mean > 0)
                                                    : json_real(mean));
    }
    return object;
}
