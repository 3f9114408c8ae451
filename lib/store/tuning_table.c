// SPDX-License-Identifier: MIT
//
// What can be tuned: the fields of each kernel, with their limits.

#include "store/tuning_table.h"

#define GEMM_SIZES "small", "medium", "large"
enum { CPU = 1, GPU = 2 }; // bits of enum kernel_variant

// The limits keep an unsuitable entry cheap to reject: no kernel is compiled with larger arrays or
// work-groups, and no scratch exceeds 16 MiB.
const struct tune_kernel attncl__tune_kernels[N_TUNABLES] = {
    [TUNE_GEMM_CPU] = {"gemm_cpu",
                       CPU,
                       {GEMM_SIZES},
                       {{"TM", 6, 1536, 6}, {"TN", 8, 1536, 8}, {"TK", 16, 1024, 16}}},
    [TUNE_GEMM_GPU] = {"gemm_gpu",
                       GPU,
                       {GEMM_SIZES, "skinny"},
                       {{"BM", 8, 256, 4},
                        {"BN", 8, 256, 4},
                        {"BK", 4, 64, 4},
                        {"TX", 1, 32, 0},
                        {"TY", 1, 32, 0}}},
    [TUNE_GEMM_BACKEND] = {"gemm_by", CPU | GPU, {"single", "batch"}, {{"CLBLAST", 0, 1, 1}}},
    [TUNE_ATTENTION_CPU] = {"attention_cpu",
                            CPU,
                            {"short", "long"},
                            {{"BLOCK", 6, 192, 6}, {"TILE", 32, 1024, 32}}},
    [TUNE_AFT_CPU] = {"aft_cpu",
                      CPU,
                      {"plain", "masked"},
                      {{"SLICE_KIB", 256, 16384, 256}, {"GROUP", 1, 256, 1}, {"BLOCKS", 1, 32, 1}}},
    [TUNE_ROWS_CPU] = {"rows_cpu",
                       CPU,
                       {"narrow", "wide"},
                       {{"ELEMENTS", 256, 1 << 22, 0}, {"VW", 4, 16, 0}}},
    [TUNE_ROWS_GPU] = {"rows_gpu", GPU, {"narrow", "wide"}, {{"LS", 16, 256, 0}}},
    [TUNE_FLAT_CPU] = {"flat_cpu", CPU, {"any"}, {{"PER_GROUP", 64, 1 << 20, 0}, {"VW", 4, 16, 0}}},
    [TUNE_FLAT_GPU] = {"flat_gpu", GPU, {"any"}, {{"LS", 16, 256, 0}}},
    [TUNE_THREE_TERMS] = {"three_terms", GPU, {"gemm", "attention"}, {{"USED", 0, 1, 1}}},
};

bool attncl__tune_takes(const struct tune_field *field, long value)
{
    if (value < field->low || value > field->high)
        return false;
    return field->step ? value % field->step == 0 : (value & (value - 1)) == 0;
}
