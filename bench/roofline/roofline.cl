// SPDX-License-Identifier: MIT
// What a device does at most: copies memory, multiplies and adds, starts kernels.
//
//   Work      roofline_copy: one work-item per PER vectors that lie side by side; roofline_fma: each work-item on its own,
//             CHAINS independent chains of vectors; roofline_launch: nothing.
//   Memory    roofline_copy reads and writes each element once; roofline_fma writes one float per work-item.
//   Numerics  roofline_copy is exact; roofline_fma too when a and b are 1 and the sums stay below 2^24.
//
//   Macro     meaning                                        values
//   VW        floats in a vector                             1, 4, 8, 16
//   PER       vectors that a work-item copies                1 on GPUs, more where a work-item is a loop
#if !defined VW || !defined PER
#error "VW or PER is missing"
#endif

#if VW == 1
typedef float vec;
#else
#define VECTOR(n)    float##n
#define VECTOR_OF(n) VECTOR(n)
typedef VECTOR_OF(VW) vec;
#endif

// Without a fast fma() what the library writes too: OpenCL C lets compilers contract it, which they
// do where they can.
#ifdef FP_FAST_FMAF
#define MULTIPLY_ADD(x, a, b) fma((x), (a), (b))
#else
#define MULTIPLY_ADD(x, a, b) ((x) * (a) + (b))
#endif

__kernel void roofline_copy(__global const vec *from, __global vec *to)
{
    const size_t first = get_global_id(0) * PER;

    for (int i = 0; i < PER; ++i)
        to[first + i] = from[first + i];
}

// sums[i] = the sum over chains and lanes of x, where x = a x + b is done `n` times, a multiple of
// 4.  Eight chains: as many as two pipes of latency four need.
__kernel void roofline_fma(__global float *sums, float a, float b, int n)
{
    const size_t id = get_global_id(0);
    const float start = (float)(id & 7);
    const vec va = (vec)(a), vb = (vec)(b);
    vec x0 = (vec)(start), x1 = (vec)(start + 1), x2 = (vec)(start + 2), x3 = (vec)(start + 3);
    vec x4 = (vec)(start + 4), x5 = (vec)(start + 5), x6 = (vec)(start + 6), x7 = (vec)(start + 7);

#define STEP                                                                                       \
    x0 = MULTIPLY_ADD(x0, va, vb), x1 = MULTIPLY_ADD(x1, va, vb), x2 = MULTIPLY_ADD(x2, va, vb),   \
    x3 = MULTIPLY_ADD(x3, va, vb), x4 = MULTIPLY_ADD(x4, va, vb), x5 = MULTIPLY_ADD(x5, va, vb),   \
    x6 = MULTIPLY_ADD(x6, va, vb), x7 = MULTIPLY_ADD(x7, va, vb)
    for (int i = 0; i < n; i += 4) {
        STEP;
        STEP;
        STEP;
        STEP;
    }
    const vec x = ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7));
    const float *lanes = (const float *)&x;
    float sum = 0;
    for (int i = 0; i < VW; ++i)
        sum += lanes[i];
    sums[id] = sum;
}

// Called with n = 0: the argument keeps the compiler from leaving the kernel out.
__kernel void roofline_launch(__global float *x, int n)
{
    if (n > 0)
        x[get_global_id(0)] = (float)n;
}
