KERNEL void bare_fwd(__global const REAL *x, __global REAL *y)
{
    y[get_global_id(0)] = x[get_global_id(0)];
}
