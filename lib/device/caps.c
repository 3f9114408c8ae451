// SPDX-License-Identifier: MIT
//
// A device's capabilities: the driver's answers, then the quirks, then ATTNCL_VARIANT.

#include <string.h>

#if defined __x86_64__
#include <cpuid.h>
#endif

#include "base/log.h"
#include "base/suggest.h"
#include "device/internal.h"

// Queries of cl_nv_device_attribute_query, cl_amd_device_attribute_query and OpenCL 3.0.
enum {
    NV_COMPUTE_CAPABILITY_MAJOR = 0x4000,
    NV_COMPUTE_CAPABILITY_MINOR = 0x4001,
    NV_WARP_SIZE = 0x4003,
    AMD_WAVEFRONT_WIDTH = 0x4043,
    PREFERRED_GROUP_MULTIPLE = 0x1067,
    SUB_GROUP_SIZES_INTEL = 0x4108, // cl_intel_required_subgroup_size
    FEATURES_INTEL = 0x4256,        // cl_intel_device_attribute_query
    FEATURE_DPAS_INTEL = 2,
};

// Minima of OpenCL 1.2's full profile.
enum { MIN_ALIGN_BYTES = 128, MIN_LOCAL_BYTES = 32768 };

// Devices with smaller work-groups get the CPU variant.
enum { MIN_GPU_GROUP = 4 };

// Makes a query that the driver may not know; then the answer is zeros.  Also zeroes the answer beyond what the driver
// writes.
static attncl_status query_optional(cl_device_id id, cl_device_info what, size_t size, void *answer)
{
    memset(answer, 0, size);
    const cl_int code = clGetDeviceInfo(id, what, size, answer, NULL);

    TRY(CL_CODE(attncl__cl_is_refusal(code) ? CL_SUCCESS : code, "clGetDeviceInfo"));
    if (attncl__cl_is_refusal(code))
        memset(answer, 0, size);
    return ATTNCL_OK;
}

// Each vendor gets its own query only, because a driver may answer an unknown one with success and any value.
static attncl_status query_group_multiple(cl_device_id id, const attncl_device_info *info,
                                          enum device_vendor vendor, unsigned *ret)
{
    unsigned multiple = 0;
    size_t preferred = 0;

    if (vendor == VENDOR_NVIDIA) {
        TRY(query_optional(id, NV_WARP_SIZE, sizeof multiple, &multiple));
    } else if (vendor == VENDOR_AMD) {
        TRY(query_optional(id, AMD_WAVEFRONT_WIDTH, sizeof multiple, &multiple));
    } else if (strncmp(info->opencl_version, "OpenCL 3", 8) == 0) {
        TRY(DEVICE_QUERY(id, PREFERRED_GROUP_MULTIPLE, &preferred));
        multiple = preferred <= 1024 ? (unsigned)preferred : 0;
    }
    *ret = multiple >= 1 && multiple <= 1024 ? multiple : 1;
    return ATTNCL_OK;
}

double attncl__estimate_peak_flop_per_second(const attncl_device_info *info)
{
    const enum device_vendor vendor = attncl__quirks_find_vendor(info);
    const double lanes = info->type != ATTNCL_DEVICE_GPU                     ? 8
                         : vendor == VENDOR_NVIDIA || vendor == VENDOR_APPLE ? 128
                         : vendor == VENDOR_AMD                              ? 64
                                                                             : 8;
    const double units = info->compute_units ? (double)info->compute_units : 1;
    const double mhz = info->clock_mhz ? (double)info->clock_mhz : 500;

    return 2 * lanes * units * mhz * 1e6;
}

static void override_variant(struct device_caps *caps, const char *variant)
{
    if (variant && strcmp(variant, "cpu") == 0) {
        caps->variant = VARIANT_CPU;
    } else if (variant && strcmp(variant, "gpu") == 0 && caps->max_group < MIN_GPU_GROUP) {
        attncl__log(
            ATTNCL_LOG_WARN,
            "ATTNCL_VARIANT is gpu, which takes work-groups of %d; the device runs %zu: cpu",
            MIN_GPU_GROUP, caps->max_group);
    } else if (variant && strcmp(variant, "gpu") == 0) {
        caps->variant = VARIANT_GPU;
        caps->vector_width = 4;
    }
}

// *ret: the smallest sub-group size of at least 8, which leaves each work-item the most registers: 8, or 16 on devices
// with registers of twice the width.  0: the driver lists none.
static attncl_status query_min_sub_group(cl_device_id id, unsigned *ret)
{
    enum { MAX_SIZES = 16, MIN_LANES = 8, MAX_LANES = 128 };
    size_t sizes[MAX_SIZES], smallest = 0;

    TRY(query_optional(id, SUB_GROUP_SIZES_INTEL, sizeof sizes, sizes));
    for (size_t i = 0; i < MAX_SIZES; ++i) {
        const bool power = sizes[i] && (sizes[i] & (sizes[i] - 1)) == 0;
        if (power && sizes[i] >= MIN_LANES && sizes[i] <= MAX_LANES &&
            (!smallest || sizes[i] < smallest))
            smallest = sizes[i];
    }
    *ret = (unsigned)smallest;
    return ATTNCL_OK;
}

// Detects Intel's matrix instruction by extensions, a device feature and the smallest sub-group size.
static attncl_status detect_dpas(cl_device_id id, const char *extensions, struct device_caps *caps)
{
    unsigned features = 0, lanes = 0;

    if (caps->vendor != VENDOR_INTEL || !caps->is_gpu ||
        !attncl__has_word(extensions, "cl_intel_subgroup_matrix_multiply_accumulate") ||
        !attncl__has_word(extensions, "cl_intel_required_subgroup_size") ||
        !attncl__has_word(extensions, "cl_intel_device_attribute_query"))
        return ATTNCL_OK;
    TRY(query_min_sub_group(id, &lanes));
    TRY(query_optional(id, FEATURES_INTEL, sizeof features, &features));
    if (features & FEATURE_DPAS_INTEL)
        caps->mma_candidate = lanes == 8 ? MMA_DPAS_8 : lanes == 16 ? MMA_DPAS_16 : MMA_NONE;
    return ATTNCL_OK;
}

static attncl_status detect_shuffle(cl_device_id id, const char *extensions,
                                    struct device_caps *caps)
{
    enum { KHR_LANES = 16 };
    unsigned lanes = 0;

    if (caps->shuffle_candidate != SHUFFLE_NONE)
        return ATTNCL_OK;
    if (attncl__has_word(extensions, "cl_intel_subgroups") &&
        attncl__has_word(extensions, "cl_intel_required_subgroup_size"))
        TRY(query_min_sub_group(id, &lanes));
    if (lanes) {
        caps->shuffle_candidate = SHUFFLE_INTEL;
    } else if (attncl__has_word(extensions, "cl_khr_subgroup_shuffle")) {
        caps->shuffle_candidate = SHUFFLE_KHR;
        lanes = KHR_LANES;
    }
    caps->shuffle_lanes = lanes;
    return ATTNCL_OK;
}

// Detects instructions that the table of architectures does not have.
static attncl_status detect_by_extensions(cl_device_id id, struct device_caps *caps)
{
    attncl_status status = ATTNCL_OK;
    char *extensions = NULL;

    TRY(attncl__device_query_text(id, CL_DEVICE_EXTENSIONS, &extensions));
    TRY_DONE(detect_shuffle(id, extensions, caps));
    TRY_DONE(detect_dpas(id, extensions, caps));
done:
    attncl__free(extensions);
    return status;
}

static bool host_has_vnni(void)
{
#if defined __x86_64__
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & bit_AVX512VNNI;
#else
    return false;
#endif
}

attncl_status attncl__caps_fill(cl_device_id id, const attncl_device_info *info,
                                const char *variant, struct device_caps *ret)
{
    const enum device_vendor vendor = attncl__quirks_find_vendor(info);
    const bool is_cpu = info->type == ATTNCL_DEVICE_CPU;
    cl_uint align_bits = 0, address_bits = 0;
    unsigned multiple = 1, major = 0, minor = 0, unified = 0;

    TRY(query_optional(id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified,
                       &unified)); // deprecated since OpenCL 2.0
    TRY(DEVICE_QUERY(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &align_bits));
    TRY(DEVICE_QUERY(id, CL_DEVICE_ADDRESS_BITS, &address_bits));
    TRY(query_group_multiple(id, info, vendor, &multiple));
    if (vendor == VENDOR_NVIDIA) {
        TRY(query_optional(id, NV_COMPUTE_CAPABILITY_MAJOR, sizeof major, &major));
        TRY(query_optional(id, NV_COMPUTE_CAPABILITY_MINOR, sizeof minor, &minor));
    }
    struct device_caps caps = {
        .vendor = vendor,
        .variant = is_cpu ? VARIANT_CPU : VARIANT_GPU,
        .is_cpu = is_cpu,
        .is_gpu = info->type == ATTNCL_DEVICE_GPU,
        .compute_units = info->compute_units ? info->compute_units : 1,
        .max_group = info->max_work_group ? (size_t)info->max_work_group : 1,
        .local_bytes =
            info->local_memory_bytes ? (size_t)info->local_memory_bytes : MIN_LOCAL_BYTES,
        .global_bytes = info->global_memory_bytes,
        .max_buffer_bytes = info->max_buffer_bytes,
        .align_bytes = MIN_ALIGN_BYTES,
        .vector_width = is_cpu ? (info->vector_width >= 16 ? 16 : 8) : 4,
        .group_multiple = multiple,
        .address_bits = address_bits == 32 ? 32 : 64,
        .flop_per_second =
            info->type == ATTNCL_DEVICE_GPU ? 0.1 * attncl__estimate_peak_flop_per_second(info) : 0,
        .clblast_candidate = true,
        .uses_host_memory = is_cpu && unified != 0,
        .nv_compute_capability = 10 * major + minor,
    };
    while (caps.align_bytes < align_bits / 8 && caps.align_bytes < 65536)
        caps.align_bytes *= 2;
    if (caps.max_group < MIN_GPU_GROUP)
        caps.variant = VARIANT_CPU;
    attncl__quirks_apply(info, &caps);
    // A device of another host has memory of its own.
    caps.vnni = vendor == VENDOR_POCL && caps.uses_host_memory && host_has_vnni();
    TRY(detect_by_extensions(id, &caps));
    override_variant(&caps, variant);
    *ret = caps;
    return ATTNCL_OK;
}
