// SPDX-License-Identifier: MIT
//
// Tables of workloads for each kernel and class of shapes, and of candidate configurations, which are
// compared with the built-in choice.  To try another configuration, add a row.

#include "tune/internal.h"

#define BIT(kernel) (1u << (kernel))
#define GEMMS       (BIT(TUNE_GEMM_CPU) | BIT(TUNE_GEMM_GPU))
#define BACKEND     BIT(TUNE_GEMM_BACKEND)
#define ROWS        (BIT(TUNE_ROWS_CPU) | BIT(TUNE_ROWS_GPU))
#define FLAT        (BIT(TUNE_FLAT_CPU) | BIT(TUNE_FLAT_GPU))
#define ATTENTION   BIT(TUNE_ATTENTION_CPU)
#define TERMS       BIT(TUNE_THREE_TERMS)

const struct workload attncl__workloads[] = {
    {GEMMS, TUNE_SMALL, "128x128x256 NN", WORK_GEMM, {128, 128, 256}, false},
    {GEMMS, TUNE_SMALL, "96x256x256 NT", WORK_GEMM, {96, 256, 256}, true},
    {GEMMS, TUNE_MEDIUM, "512x512x512 NN", WORK_GEMM, {512, 512, 512}, false},
    {GEMMS, TUNE_MEDIUM, "384x1024x256 NT", WORK_GEMM, {384, 1024, 256}, true},
    {GEMMS, TUNE_LARGE, "1024x1024x512 NN", WORK_GEMM, {1024, 1024, 512}, false},
    {GEMMS, TUNE_LARGE, "2048x512x512 NT", WORK_GEMM, {2048, 512, 512}, true},
    {BIT(TUNE_GEMM_GPU), TUNE_SKINNY, "8x1024x1024 NT", WORK_GEMM, {8, 1024, 1024}, true},
    {BIT(TUNE_GEMM_GPU), TUNE_SKINNY, "16x1024x512 NN", WORK_GEMM, {16, 1024, 512}, false},
    {BACKEND, TUNE_SINGLE, "1024x1024x512 NN", WORK_GEMM, {1024, 1024, 512}, false},
    {BACKEND, TUNE_SINGLE, "2048x512x512 NT", WORK_GEMM, {2048, 512, 512}, true},
    {BACKEND, TUNE_BATCH, "64 of 256x256x64", WORK_GEMM, {256, 256, 64, 64}, false},
    {BACKEND, TUNE_BATCH, "16 of 1024x1024x64", WORK_GEMM, {1024, 1024, 64, 16}, false},
    {ATTENTION, TUNE_SHORT, "16 heads T=256 D=64", WORK_ATTENTION, {16, 256, 64}, false},
    {ATTENTION, TUNE_LONG, "4 heads T=1024 D=64", WORK_ATTENTION, {4, 1024, 64}, false},
    {BIT(TUNE_AFT_CPU), TUNE_PLAIN, "T=1024 C=512 s=64", WORK_AFT, {1024, 512, 64}, false},
    {BIT(TUNE_AFT_CPU), TUNE_PLAIN, "T=256 C=2048 s=256", WORK_AFT, {256, 2048, 256}, false},
    {BIT(TUNE_AFT_CPU), TUNE_MASKED, "T=512 C=512 s=64", WORK_AFT, {512, 512, 64}, true},
    {ROWS, TUNE_NARROW, "softmax 8192x128", WORK_SOFTMAX, {8192, 128}, false},
    {ROWS, TUNE_NARROW, "layer norm 4096x256", WORK_NORM, {4096, 256}, false},
    {ROWS, TUNE_WIDE, "softmax 2048x1024", WORK_SOFTMAX, {2048, 1024}, false},
    {ROWS, TUNE_WIDE, "layer norm 1024x2048", WORK_NORM, {1024, 2048}, false},
    {FLAT, TUNE_ANY, "GELU 2048x1024", WORK_GELU, {2048, 1024}, false},
    {TERMS, TUNE_OF_GEMM, "512x512x512 NN", WORK_GEMM, {512, 512, 512}, false},
    {TERMS, TUNE_OF_GEMM, "2048x512x512 NT", WORK_GEMM, {2048, 512, 512}, true},
    {TERMS, TUNE_OF_ATTENTION, "16 heads T=256 D=64", WORK_ATTENTION, {16, 256, 64}, false},
    {TERMS, TUNE_OF_ATTENTION, "4 heads T=1024 D=64", WORK_ATTENTION, {4, 1024, 64}, false},
};
const size_t attncl__n_workloads = sizeof attncl__workloads / sizeof attncl__workloads[0];

const struct candidate attncl__candidates[] = {
    // Tiles of C, and the block of k that is packed at once.
    {TUNE_GEMM_CPU, {12, 64, 256}},
    {TUNE_GEMM_CPU, {24, 64, 256}},
    {TUNE_GEMM_CPU, {48, 64, 512}},
    {TUNE_GEMM_CPU, {48, 128, 256}},
    {TUNE_GEMM_CPU, {96, 64, 256}},
    {TUNE_GEMM_CPU, {96, 128, 384}},
    {TUNE_GEMM_CPU, {192, 64, 512}},
    {TUNE_GEMM_CPU, {192, 128, 384}},
    {TUNE_GEMM_CPU, {192, 256, 256}},
    {TUNE_GEMM_CPU, {384, 64, 512}},
    {TUNE_GEMM_CPU, {384, 256, 256}},
    {TUNE_GEMM_CPU, {768, 64, 512}},

    // BM BN BK TX TY, from the built-in tables of all vendors and from CLBlast's; the fastest to
    // compile first.
    {TUNE_GEMM_GPU, {16, 32, 16, 8, 4}},
    {TUNE_GEMM_GPU, {16, 64, 16, 16, 4}},
    {TUNE_GEMM_GPU, {16, 128, 16, 32, 4}},
    {TUNE_GEMM_GPU, {64, 64, 16, 8, 8}},
    {TUNE_GEMM_GPU, {32, 32, 16, 8, 4}},
    {TUNE_GEMM_GPU, {64, 64, 16, 16, 8}},
    {TUNE_GEMM_GPU, {32, 64, 16, 16, 8}},
    {TUNE_GEMM_GPU, {64, 64, 32, 8, 8}},
    {TUNE_GEMM_GPU, {32, 32, 32, 8, 8}},
    {TUNE_GEMM_GPU, {64, 64, 16, 16, 16}},
    {TUNE_GEMM_GPU, {64, 128, 16, 16, 8}},
    {TUNE_GEMM_GPU, {128, 64, 16, 16, 8}},
    {TUNE_GEMM_GPU, {128, 128, 16, 16, 16}},
    {TUNE_GEMM_GPU, {128, 128, 8, 16, 16}},
    {TUNE_GEMM_GPU, {128, 128, 8, 16, 8}},

    {TUNE_GEMM_BACKEND, {0}},
    {TUNE_GEMM_BACKEND, {1}},

    {TUNE_ATTENTION_CPU, {24, 128}},
    {TUNE_ATTENTION_CPU, {24, 256}},
    {TUNE_ATTENTION_CPU, {36, 128}},
    {TUNE_ATTENTION_CPU, {48, 64}},
    {TUNE_ATTENTION_CPU, {48, 256}},
    {TUNE_ATTENTION_CPU, {72, 128}},
    {TUNE_ATTENTION_CPU, {96, 64}},
    {TUNE_ATTENTION_CPU, {96, 128}},
    {TUNE_ATTENTION_CPU, {96, 256}},

    {TUNE_AFT_CPU, {2048, 8, 8}},
    {TUNE_AFT_CPU, {3072, 16, 8}},
    {TUNE_AFT_CPU, {6144, 8, 8}},
    {TUNE_AFT_CPU, {6144, 16, 4}},
    {TUNE_AFT_CPU, {6144, 32, 2}},
    {TUNE_AFT_CPU, {6144, 16, 16}},
    {TUNE_AFT_CPU, {12288, 16, 8}},
    {TUNE_AFT_CPU, {12288, 32, 4}},

    {TUNE_ROWS_CPU, {4096, 8}},
    {TUNE_ROWS_CPU, {4096, 16}},
    {TUNE_ROWS_CPU, {16384, 8}},
    {TUNE_ROWS_CPU, {16384, 16}},
    {TUNE_ROWS_CPU, {65536, 8}},
    {TUNE_ROWS_CPU, {65536, 16}},
    {TUNE_ROWS_CPU, {262144, 16}},
    {TUNE_ROWS_GPU, {32}},
    {TUNE_ROWS_GPU, {64}},
    {TUNE_ROWS_GPU, {128}},
    {TUNE_ROWS_GPU, {256}},

    {TUNE_FLAT_CPU, {1024, 8}},
    {TUNE_FLAT_CPU, {4096, 8}},
    {TUNE_FLAT_CPU, {4096, 16}},
    {TUNE_FLAT_CPU, {16384, 16}},
    {TUNE_FLAT_CPU, {65536, 8}},
    {TUNE_FLAT_CPU, {65536, 16}},
    {TUNE_FLAT_GPU, {32}},
    {TUNE_FLAT_GPU, {64}},
    {TUNE_FLAT_GPU, {128}},
    {TUNE_FLAT_GPU, {256}},

    {TUNE_THREE_TERMS, {1}},
};
const size_t attncl__n_candidates = sizeof attncl__candidates / sizeof attncl__candidates[0];
