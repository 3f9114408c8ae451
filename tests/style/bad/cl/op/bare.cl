// A contract that names a macro and does not insist on it, on purpose.
//
//   Work      one work-item per element
//   Memory    reads and writes each once
//
//   Macro     Meaning                                  Values
//   REAL      element type                             float

static inline float first(__local const float *tmp)
{
    return tmp[0];
}

KERNEL void bare_fwd(__global const REAL *x, __global REAL *y, size_t n)
{
    y[get_global_id(0)] = x[get_global_id(0)];
}
