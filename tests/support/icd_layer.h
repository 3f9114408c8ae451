// SPDX-License-Identifier: MIT
// What the loader asks of an OpenCL layer.  The file that includes this defines LAYER_NAME before it, and then its entries and
// begin_layer(), which the loader's first call makes.
#ifndef ATTNCL_TEST_ICD_LAYER_H
#define ATTNCL_TEST_ICD_LAYER_H

#include <CL/cl_layer.h>
#include <string.h>

#define EXPORT      __attribute__((visibility("default")))
#define ENTRY(name) .name = layer_##name

static const cl_icd_dispatch *target; // the driver's
static const cl_icd_dispatch entries; // the layer's; those that are NULL go to the driver
static void begin_layer(void);

// Answers a query.
static cl_int give(const void *answer, size_t bytes, size_t n, void *value, size_t *n_ret)
{
    if (value && n < bytes)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, answer, bytes);
    if (n_ret)
        *n_ret = bytes;
    return CL_SUCCESS;
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t n, void *value,
                                                      size_t *n_ret)
{
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;

    if (what == CL_LAYER_API_VERSION)
        return give(&version, sizeof version, n, value, n_ret);
    return what == CL_LAYER_NAME ? give(LAYER_NAME, sizeof LAYER_NAME, n, value, n_ret)
                                 : CL_INVALID_VALUE;
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint n, const cl_icd_dispatch *next,
                                                   cl_uint *n_ret, const cl_icd_dispatch **ret)
{
    const cl_uint n_entries = sizeof(cl_icd_dispatch) / sizeof(void *);

    if (!next || !n_ret || !ret)
        return CL_INVALID_VALUE;
    begin_layer();
    target = next;
    *n_ret = n < n_entries ? n : n_entries; // an older loader knows fewer
    *ret = &entries;
    return CL_SUCCESS;
}

#endif
